"""What sessions do, as the turns of each source tell: at work, broken off, failed, at rest."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from store.activity.judgement import Known, Unsettled, judged
from store.sources.base.drafts import SessionDraft
from store.sources.copilot import CopilotSource
from store.sources.gemini import GeminiSource
from store.sources.pi import PiSource
from tests.sources import test_copilot, test_gemini, test_pi
from tests.sources.claude_rows import File
from tests.sources.claude_rows import read_one as read_claude
from tests.sources.codex_lines import START, Lines, read, read_one, thread_id
from tests.sources.grown import at, only
from tests.sources.opencode_rows import Rows, read_store, text

MINUTE = 60_000


def doing(draft: SessionDraft) -> str | None:
    found = draft.metadata.get("activity")
    return None if found is None else found["state"]


def codex(path: Path, *told: tuple[str, dict[str, Any]]) -> SessionDraft:
    lines = Lines(thread_id(1))
    lines.turn("one", "re one", "r1")
    for kind, fields in told:
        if kind == "user":
            lines.user("more")
        else:
            lines.event(kind, **fields)
    return read_one(lines, path)


@pytest.mark.parametrize(
    ("told", "state"),
    [
        ([], None),
        ([("task_started", {"turn_id": "t"}), ("user", {})], "running"),
        ([("turn_aborted", {"reason": "interrupted"})], "interrupted"),
        ([("task_complete", {"error": {"message": "bad"}})], "error"),
        ([("task_started", {"turn_id": "t"}), ("error", {"message": "bad"}),
          ("task_complete", {})], "error"),
        # Older versions tell nothing of turns that went well.
        ([("turn_aborted", {}), ("user", {})], None),
    ],
)  # fmt: skip
def test_turns_of_codex(
    tmp_path: Path, told: list[tuple[str, dict[str, Any]]], state: str | None
) -> None:
    draft = codex(tmp_path, *told)
    assert doing(draft) == state
    if state is not None:
        assert draft.metadata["activity"]["from"] == "stored"
        assert draft.metadata["activity"]["since"] > START


def test_codex_asks_the_turn_that_stands(tmp_path: Path) -> None:
    lines = Lines(thread_id(1))
    lines.turn("one", "re one", "r1")
    end = lines.ordinal
    lines.event("task_started", turn_id="t")
    lines.user("two")
    lines.write(tmp_path)
    base = {"thread_id": thread_id(1), "end_ordinal_exclusive": end}
    rewound = Lines(thread_id(1), end, lines.at, history_base=base)
    rewound.write(tmp_path, thread_id(2))
    (draft,) = read(tmp_path)[0].values()
    assert doing(draft) is None


@pytest.mark.parametrize(
    ("data", "state"),
    [
        ({"time": {"created": 1_790_000_000_000, "completed": 1_790_000_001_000}}, None),
        ({}, "running"),
        ({"error": {"name": "MessageAbortedError", "data": {}}}, "interrupted"),
        ({"error": {"name": "APIError", "data": {"message": "no"}}}, "error"),
    ],
)
def test_turns_of_opencode(tmp_path: Path, data: dict[str, Any], state: str | None) -> None:
    rows = Rows(tmp_path / "opencode.db")
    rows.session("ses_one")
    rows.message("ses_one", "user", text("hi"))
    rows.message("ses_one", "assistant", text("well"), **data)
    assert doing(read_store(rows.path)[0]["ses_one"]) == state


@pytest.mark.parametrize(
    ("kinds", "state"),
    [
        (["answer"], None),
        (["answer", "user"], "running"),
        (["answer", "user", "aborted"], "interrupted"),
        (["error"], "error"),
    ],
)
def test_turns_of_pi(tmp_path: Path, kinds: list[str], state: str | None) -> None:
    rows, before = [test_pi.header(), test_pi.user("u", None, 1, "hi")], "u"
    for second, kind in enumerate(kinds, 2):
        name = f"e{second}"
        if kind == "user":
            rows.append(test_pi.user(name, before, second, "more"))
        else:
            more = {} if kind == "answer" else {"stopReason": kind}
            rows.append(test_pi.answer(name, before, second, "well", **more))
        before = name
    test_pi.session(tmp_path, *rows)
    assert doing(only(PiSource(), tmp_path / "sessions")) == state


def test_turns_of_gemini(tmp_path: Path) -> None:
    rows = [test_gemini.user("u", "one", 1)]
    for row, state in (
        (None, "running"),
        (test_gemini.gemini("c", "", 2), "running"),
        # Its calls may be written later.
        (test_gemini.gemini("g", "two", 2), "running"),
        ({"id": "e", "timestamp": at(3), "type": "error", "content": "no"}, "error"),
    ):
        rows += [row] if row else []
        test_gemini.session(tmp_path, test_gemini.meta(), *rows)
        assert doing(only(GeminiSource(), test_gemini.root(tmp_path))) == state


def states_later(draft: SessionDraft, live: dict[str, Any] | None = None) -> list[str]:
    """What the session does 2, 9 and 11 seconds after its last words, and a minute before.

    Clocks that differ a little are no reason to take it for one that rests.
    """
    at = draft.messages[-1].updated_at
    known = Known("s", at, draft.metadata.get("activity"), live, imported=True)
    early = judged(known, Unsettled(), at - 500)
    found = [judged(known, Unsettled(), at + later) for later in (2_000, 9_000, 11_000, -MINUTE)]
    assert early.state == found[0].state
    assert all(one.from_ == "guessed" for one in found)
    assert [one.busy for one in found] == [one.state == "running" for one in found]
    return [one.state for one in found]


def test_words_that_calls_may_follow_are_a_guess_for_a_while(tmp_path: Path) -> None:
    rows = [test_gemini.user("u", "one", 1), test_gemini.gemini("g", "I look", 2)]
    test_gemini.session(tmp_path, test_gemini.meta(), *rows)
    draft = only(GeminiSource(), test_gemini.root(tmp_path))
    assert states_later(draft) == ["running", "running", "idle", "idle"]
    # Its process has ended after its last words.
    assert states_later(draft, {"state": "gone"}) == ["idle"] * 4


@pytest.mark.parametrize("reason", [None, "end_turn"])
def test_a_block_without_a_stop_reason_may_be_followed_by_another(
    tmp_path: Path, reason: str | None
) -> None:
    file = File(version="2.0.77")
    file.user("go on")
    file.assistant("first block", id="m1")
    for line in file.lines:
        if line["type"] == "assistant":
            line["message"]["stop_reason"] = reason
    draft = read_claude(file, tmp_path)
    goes_on = ["running", "running", "idle", "idle"]
    assert states_later(draft) == (goes_on if reason is None else ["idle"] * 4)


def test_turns_of_copilot(tmp_path: Path) -> None:
    events = test_copilot.Events(tmp_path)

    def now() -> str | None:
        return doing(only(CopilotSource(), tmp_path))

    events("user.message", content="hi")
    assert now() == "running"
    events("assistant.turn_start")
    events.answer("a", "", ("c1", "bash"))
    events("assistant.turn_end")
    assert now() == "running"
    events("assistant.turn_start")
    events.answer("b", "done")
    events("assistant.turn_end")
    assert now() is None
    events("user.message", content="more")
    events("session.error", message="no")
    assert now() == "error"
    events("user.message", content="again")
    events("abort", reason="user initiated")
    assert now() == "interrupted"


def test_a_turn_that_waits_for_its_user_is_not_at_work() -> None:
    stored = {"state": "running", "from": "stored", "since": START}
    def state(unsettled: Unsettled, later: int) -> str:
        return judged(Known("s", START, stored), unsettled, START + later).state

    assert state(Unsettled(), 5 * MINUTE) == "running"
    assert state(Unsettled(), 40 * MINUTE) == "interrupted"
    asked = Unsettled("input-available", "tool-request_user_input", START)
    assert state(asked, 5 * MINUTE) == "waiting-input"
    assert state(Unsettled("approval-requested", "tool-bash", START), 0) == "waiting-approval"
    # A command may take its time.
    assert state(Unsettled("input-available", "tool-bash", START), 5 * MINUTE) == "running"
