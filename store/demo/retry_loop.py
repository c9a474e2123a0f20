"""The demo's first session: a bug hunt that runs right now, with a fork and a subagent."""

from __future__ import annotations

from store.demo.cast import (
    API,
    CLAUDE_PROMPT,
    HAIKU,
    HAIKU_PRICE,
    MINUTE,
    SONNET,
    SONNET_PRICE,
    claude_path,
)
from store.demo.retry_texts import EDIT_INPUT, FAILURES, PATCH, TODOS, WORKER
from store.demo.script import (
    Part,
    Scene,
    assistant,
    denied,
    failed,
    pending,
    say,
    think,
    tool,
    user,
)


def _todos(done: int) -> list[dict[str, str]]:
    return [
        {**todo, "status": "completed" if n < done else todo["status"]}
        for n, todo in enumerate(TODOS)
    ]


def _bash(command: str, description: str) -> dict[str, str | int]:
    return {"command": command, "description": description, "timeout": 120_000}


_OPENING = (
    user(
        "The sync worker retries forever once its token has expired. Find out why, fix it, "
        "and add a test that fails without the fix.",
        gap=5,
    ),
    assistant(
        think(
            "The user sees an endless retry. First I should see what the worker does with an "
            "error. A retry decorator or a bare except around the pull would explain it; if so, "
            "401 is treated like a dropped connection.",
            6,
        ),
        say("I will look at the worker and at its tests first."),
        tool("Grep", {"pattern": r"raise Retry|except Retry", "path": "src", "output_mode":
             "content"}, "src/sync/worker.py:24:            except Retry as reason:\n"
             "src/sync/worker.py:36:            raise Retry(error) from error", 0.2),
        tool("Read", {"file_path": f"{API}/src/sync/worker.py"}, WORKER, 0.1),
    ),
    assistant(
        say(
            "The worker turns *every* HTTP error into `Retry`, and a `401` is one of them. The "
            "token is never refreshed, so each round fails the same way.\n\n"
            "| status | today | should be |\n"
            "|---|---|---|\n"
            "| 401 | retries forever | refresh once, then give up |\n"
            "| 403, 404, 410 | retries forever | give up at once |\n"
            "| 429, 5xx | retries | retries, with backoff |\n\n"
            "I will separate the two kinds:\n\n"
            "1. **classify** errors in one place,\n"
            "2. refresh the token once, then give up.\n"
        ),
        tool("TodoWrite", {"todos": _todos(1)}, "Todos have been modified successfully.", 0.1),
        name="diagnosis",
    ),
    user("Good. Keep the delay as it is for now, I only want the 401 fixed.", gap=70, name="scope"),
)

_DETOUR = (
    assistant(
        say(
            "I will add a general retry policy with jitter, and move the delay into the settings."
        ),
        tool("Write", {"file_path": f"{API}/src/sync/policy.py", "content":
             "class Policy:\n    attempts = 5\n    base = 0.5\n    jitter = 0.2\n"},
             f"File created successfully at: {API}/src/sync/policy.py", 0.2),
        batch="scope",
    ),
    user("No, that is far too much. Go back.", gap=25, batch="scope"),
    assistant(say("Understood, I will remove the policy again."), batch="scope"),
    user("Never mind, I rewind.", gap=12, batch="scope"),
)

_FIX = (
    user("Only the 401 and the fatal ones, in worker.py, nothing else.", gap=30),
    assistant(
        think("A small change then: a set of fatal statuses and one flag.", 2),
        tool("Agent", {"description": "explore: where tokens expire", "subagent_type": "Explore",
             "prompt": "Find out where access tokens expire and whose clock decides it. Report "
             "files and lines."}, "Tokens expire in `auth/session.py:88`; the clock is the "
             "server's. `TokenSource.current()` returns the cached token without looking at "
             "`expires_at`, so only a 401 tells that it is stale.", 48, call="explore",
             structured={"status": "completed", "totalDurationMs": 48_000,
                         "totalToolUseCount": 5, "totalTokens": 21_480}),
        name="explored",
    ),
    assistant(
        say(
            "`TokenSource` hands out the cached token without looking at its expiry, so a `401` is "
            "the only sign. Here is the change:"
        ),
        tool("Edit", EDIT_INPUT, f"The file {API}/src/sync/worker.py has been updated.", 0.2,
             structured={"filePath": f"{API}/src/sync/worker.py", "structuredPatch": PATCH,
                         "userModified": False}),
        name="edited",
    ),
    assistant(
        failed("Bash", _bash("pytest -q tests/sync", "Run the sync tests"), f"Exit code 1\n"
               f"{FAILURES}", 3.2, exit_code=1),
        denied("Bash", _bash("git push --force origin main", "Push the fix"),
               "Not before I have read it."),
        gap=2,
    ),
    user("Do not push. Why does test_gives_up still run into the timeout?", gap=45),
    assistant(
        think(
            "The second 401 arrives with refreshed already True, and then it falls through to "
            "Retry. It has to give up there.",
            4,
        ),
        say(
            "After the refresh the second `401` still falls through to `Retry`. The branch has to "
            "give up when a refresh did not help:\n\n"
            "```python\n"
            "if status == 401:\n"
            "    if self.refreshed:\n"
            "        raise GiveUp(error) from error\n"
            "    self.refreshed = True\n"
            "    await self.tokens.refresh()\n"
            "```\n"
        ),
        tool("TodoWrite", {"todos": _todos(3)}, "Todos have been modified successfully.", 0.1),
        name="second-edit",
    ),
    assistant(
        say("The flag must also fall back once a pull succeeds, or the next expiry gives up "
            "at once. I reset it in the `finally` block and run the tests again."),
        Part(pending("Bash", _bash("pytest -q tests/sync -x --lf", "Run what failed")).data, 7),
        gap=4,
    ),
    user("then also update the changelog", queued=True, gap=0),
)

RETRY_LOOP = Scene(
    key="retry-loop",
    title="Retry loop in the sync worker",
    agent="claude-code",
    model=SONNET,
    workspace=API,
    ended=0,
    activity=("running", "stored"),
    price=SONNET_PRICE,
    system_prompt=CLAUDE_PROMPT,
    path=claude_path(API, "retry-loop"),
    context=61_000,
    permissions=(
        {"permission": "Bash", "pattern": "pytest *", "action": "allow", "source": "session"},
        {"permission": "Bash", "pattern": "git push *", "action": "ask", "source": "project"},
    ),
    messages=(*_OPENING, *_DETOUR, *_FIX),
)

EXPLORE = Scene(
    key="retry-loop-explore",
    title="explore: where tokens expire",
    agent="claude-code",
    model=HAIKU,
    workspace=API,
    ended=2.3 * MINUTE,
    parent="retry-loop",
    at="explored",
    lineage="subagent",
    call="explore",
    price=HAIKU_PRICE,
    path=claude_path(API, "retry-loop/subagents/agent-explore"),
    context=9_000,
    messages=(
        user("Find out where access tokens expire and whose clock decides it. Report files and "
             "lines.", gap=1),
        assistant(
            tool("Grep", {"pattern": "expires_at", "path": f"{API}/src"},
                 "src/auth/session.py:88:        self.expires_at = answer.date + lifetime\n"
                 "src/sync/tokens.py:21:    expires_at: datetime", 0.3),
            tool("Read", {"file_path": f"{API}/src/auth/session.py", "offset": 80, "limit": 16},
                 "    80\t    def renew(self, answer: Answer) -> None:\n"
                 "    81\t        lifetime = timedelta(seconds=answer.json()['expires_in'])\n"
                 "    88\t        self.expires_at = answer.date + lifetime", 0.1),
        ),
        assistant(
            failed("Read", {"file_path": f"{API}/src/auth/clock.py"}, "File does not exist.", 0.1),
            tool("Glob", {"pattern": "src/auth/*.py"},
                 "src/auth/__init__.py\nsrc/auth/session.py\nsrc/auth/scopes.py", 0.1),
        ),
        assistant(
            say("Tokens expire in `auth/session.py:88`; the clock is the server's. "
                "`TokenSource.current()` returns the cached token without looking at "
                "`expires_at`, so only a 401 tells that it is stale."),
        ),
    ),
)

BACKOFF = Scene(
    key="backoff-fork",
    title="fork at turn 2: backoff with jitter",
    title_from="user",
    agent="claude-code",
    model=SONNET,
    workspace=API,
    branch="backoff",
    ended=3 * MINUTE,
    parent="retry-loop",
    at="diagnosis",
    inherits=True,
    price=SONNET_PRICE,
    path=claude_path(API, "backoff-fork"),
    context=58_000,
    messages=(
        user("In this branch, do it properly: exponential backoff with jitter.", gap=20),
        assistant(
            think("Full jitter is simplest and spreads the load best.", 3),
            say("I use *full jitter*: each delay is drawn between zero and the current ceiling."),
            tool("Edit", {"file_path": f"{API}/src/sync/worker.py",
                 "old_string": "await asyncio.sleep(self.delay)",
                 "new_string": "await asyncio.sleep(random.uniform(0, self.ceiling()))"},
                 f"The file {API}/src/sync/worker.py has been updated.", 0.2,
                 structured={"filePath": f"{API}/src/sync/worker.py", "structuredPatch": [
                     {"oldStart": 26, "oldLines": 1, "newStart": 26, "newLines": 1, "lines": [
                         "-                await asyncio.sleep(self.delay)",
                         "+                await asyncio.sleep(random.uniform(0, "
                         "self.ceiling()))"]}]}),
            tool("Bash", _bash("pytest -q tests/sync", "Run the sync tests"),
                 "............................................             [100%]\n"
                 "44 passed in 2.91s", 3.1, exit_code=0),
        ),
        assistant(say("All 44 tests pass. The ceiling doubles up to 30 s and falls back to half "
                      "a second after a pull that succeeds.")),
    ),
)

SCENES = (RETRY_LOOP, EXPLORE, BACKOFF)
