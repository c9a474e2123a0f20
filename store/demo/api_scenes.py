"""The demo's other sessions in the API's workspace: waiting, failed, archived, German."""

from __future__ import annotations

from store.demo.cast import (
    API,
    CODEX,
    DAY,
    GEMINI,
    GLM,
    HOUR,
    MINUTE,
    SONNET,
    SONNET_PRICE,
    claude_path,
)
from store.demo.script import (
    Scene,
    assistant,
    failed,
    note,
    pending,
    say,
    think,
    tool,
    user,
)

_MIGRATION = """\
CREATE TABLE sessions (
    id         uuid PRIMARY KEY,
    user_id    bigint NOT NULL REFERENCES users (id) ON DELETE CASCADE,
    data       jsonb NOT NULL DEFAULT '{}',
    expires_at timestamptz NOT NULL
);
CREATE INDEX sessions_user_expires ON sessions (user_id, expires_at);"""

POSTGRES = Scene(
    key="postgres-move",
    title="Move sessions to Postgres",
    agent="codex",
    model=CODEX,
    workspace=API,
    branch="postgres",
    ended=12 * MINUTE,
    activity=("waiting-approval", "stored"),
    path="/home/mira/.codex/sessions/2026/rollout-postgres-move.jsonl",
    context=112_000,
    messages=(
        user("Sessions live in Redis today. Move them to Postgres, with a migration that can "
             "run while the service is up."),
        assistant(
            think("**Planning a migration without downtime**\n\nWrite to both, backfill, read "
                  "from Postgres, then stop writing to Redis.", 11),
            tool("update_plan", {"plan": [
                {"step": "Table and index", "status": "completed"},
                {"step": "Write to both stores", "status": "in_progress"},
                {"step": "Backfill in batches of 1,000", "status": "pending"},
                {"step": "Read from Postgres behind a flag", "status": "pending"},
            ]}, "Plan updated", 0.1),
            tool("shell", {"command": ["bash", "-lc", "rg -n 'redis' src --stats | tail -4"]},
                 "41 matches\n38 matched lines\n9 files contained matches\n212 files searched",
                 0.4, exit_code=0),
        ),
        assistant(
            say(f"Four steps, each of which can be rolled back alone. First the table:\n\n"
                f"```sql\n{_MIGRATION}\n```\n"),
            tool("apply_patch", {"input": "*** Begin Patch\n"
                 "*** Add File: migrations/0042_sessions.sql\n"
                 + "\n".join(f"+{line}" for line in _MIGRATION.splitlines())
                 + "\n*** End Patch"}, "Success. Updated the following files:\n"
                 "A migrations/0042_sessions.sql", 0.3),
        ),
        assistant(
            say("The migration is ready. I want to run it against the staging database."),
            pending("shell", {"command": ["bash", "-lc",
                    "psql $STAGING_URL -f migrations/0042_sessions.sql"]},
                    "approval-requested", approval={"id": "approval-7"}),
        ),
    ),
)

LONG_LINES = Scene(
    key="lange-zeilen",
    title="Überlange Zeilen im Log",
    agent="opencode",
    model=GLM,
    workspace=API,
    ended=HOUR,
    path="/home/mira/.local/share/opencode/opencode.db",
    context=8_000,
    messages=(
        user("Im Log stehen Zeilen von über 100.000 Zeichen. Woher kommen sie, und wie kürzen "
             "wir sie, ohne dass etwas verloren geht?"),
        assistant(
            think("Zuerst die längsten Zeilen messen, dann die Stelle im Code suchen.", 2),
            tool("bash", {"command": "awk '{ print length }' app.log | sort -n | tail -3",
                 "description": "Längste Zeilen messen"}, "98412\n104377\n131072", 0.8,
                 exit_code=0),
            tool("grep", {"pattern": "log.debug\\(.*body", "path": "src"},
                 "src/http/middleware.py:52:    log.debug('answer body: %s', answer.body)", 0.2),
        ),
        assistant(say(
            "Die Zeilen kommen aus `src/http/middleware.py:52`: dort wird der **ganze** Rumpf "
            "jeder Antwort ausgegeben. Mein Vorschlag:\n\n"
            "- im Log nur die ersten 2.000 Zeichen und die Länge,\n"
            "- der volle Rumpf in eine Datei, deren Name im Log steht."
        )),
        user("Genau so."),
        assistant(
            tool("edit", {"filePath": "src/http/middleware.py",
                 "oldString": "    log.debug('answer body: %s', answer.body)",
                 "newString": "    log.debug('answer body: %s', shortened(answer.body))"},
                 "Edit applied successfully.", 0.1),
            say("Erledigt. Die Tests für die Middleware laufen durch."),
        ),
    ),
)

CI_FAILS = Scene(
    key="ci-3-13",
    title="CI fails on 3.13 only",
    agent="gemini",
    model=GEMINI,
    workspace=API,
    branch="py313",
    ended=3 * HOUR,
    activity=("error", "stored"),
    path="/home/mira/.gemini/tmp/api/chats/session-ci-3-13.json",
    context=140_000,
    messages=(
        user("CI is green on 3.11 and 3.12 and red on 3.13. The log is in ci.log."),
        assistant(
            tool("read_file", {"file_path": "ci.log", "offset": 400},
                 "E   AttributeError: module 'datetime' has no attribute 'UTC_OFFSET'\n"
                 "src/clock.py:9: AttributeError", 0.2),
            failed("run_shell_command", {"command": "python3.13 -m pytest -q tests/clock"},
                   "bash: python3.13: command not found", 0.1, exit_code=127),
            say("There is no Python 3.13 on this machine, so I read the traceback instead."),
        ),
        assistant(
            say("`src/clock.py` reaches into a private name that 3.13 removed. "),
            note("retry", attempt=1, message="Overloaded", retry_in_ms=2_000),
            note("retry", attempt=2, message="Overloaded", retry_in_ms=8_000),
        ),
        assistant(
            note("error", name="ApiError", status=529,
                 message="The model is overloaded. Please try again later."),
            gap=20,
            metadata={"backscroll": {"error": "The model is overloaded. Please try again later."},
                      "usage": {"input": 0, "output": 0, "reasoning": 0, "cache_read": 0,
                                "cache_write": 0}},
        ),
    ),
)

RATE_LIMITS = Scene(
    key="rate-limits",
    title="Rate limits for the public API",
    agent="claude-code",
    model=SONNET,
    workspace=API,
    branch="limits",
    ended=19 * DAY,
    archived=17 * DAY,
    price=SONNET_PRICE,
    path=claude_path(API, "rate-limits"),
    messages=(
        user("Which of our routes have no rate limit yet?"),
        assistant(
            tool("Bash", {"command": "python -m api.routes --json | jq '.[] | select(.limit == "
                 "null) | .path'", "description": "List routes without a limit"},
                 '"/v1/search"\n"/v1/export"\n"/v1/login"', 1.4, exit_code=0),
            say("Three: `/v1/search`, `/v1/export` and, worst of all, `/v1/login`."),
        ),
        user("Limit login to 5 a minute and address."),
        assistant(say("Done in `api/limits.py`, with a test that sends six.")),
    ),
)

INTERRUPTED = Scene(
    key="flaky-upload",
    title="Flaky upload test",
    agent="claude-code",
    model=SONNET,
    workspace=API,
    ended=26 * HOUR,
    activity=("interrupted", "guessed"),
    price=SONNET_PRICE,
    path=claude_path(API, "flaky-upload"),
    messages=(
        user("test_upload fails one time in twenty. Find the race."),
        assistant(
            say("I will run it until it fails."),
            failed("Bash", {"command": "pytest tests/test_upload.py --count 200 -x",
                   "description": "Repeat the upload test"},
                   "[Request interrupted by user for tool use]", 94, status="interrupted"),
        ),
        user("[Request interrupted by user for tool use]", gap=0,
             metadata={"origin": "notification"}),
    ),
)

SCENES = (POSTGRES, LONG_LINES, CI_FAILS, RATE_LIMITS, INTERRUPTED)
