"""Gemini CLI: histories that are recorded again, and stores of versions 0.10 and 0.20.

Both samples are genuine. In the first (0.61) a person denied a call, cancelled a request,
rewound to the middle of a turn, compressed, cancelled again and took up a saved
conversation: each time but the first the program recorded its history anew, mostly under
new ids. The model was asked last with the turns that are visible here.
"""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from store.sources.base.drafts import SessionDraft
from store.sources.gemini import GeminiSource
from store.sources.gemini.hashed import path_of_hash
from tests.sources.grown import (
    call,
    calls,
    check_records,
    extra,
    grows_like_a_whole,
    only,
    read_all,
    tokens,
    visible,
    words,
)
from tests.sources.test_gemini import gemini, meta, replaced, root, session, user

DATA = Path(__file__).parent.parent / "data"
ROOT = DATA / "gemini_rewritten"
OLD = DATA / "gemini_0_20"
LOG = ROOT / "tmp" / "project" / "chats" / "session-2026-11-28T03-22-3cc3864e.jsonl"
HELLO = "Hello **there** 🙂 — ok"


@pytest.fixture(scope="module")
def draft() -> SessionDraft:
    found = only(GeminiSource(), ROOT)
    check_records(found)
    return found


def test_each_turn_is_there_once(draft: SessionDraft) -> None:
    said = [(m.role, words(m)) for m in visible(draft)]
    assert said == [
        ("user", "first [[hi]]"),
        ("assistant", HELLO),
        ("user", "second [[par]]"),
        ("assistant", "Two at once"),
        ("assistant", "Both ran"),
        ("user", "third [[mk]]"),
        ("assistant", "I write it"),
        ("assistant", ""),
        ("assistant", "Edited it"),
        ("system", ""),
        ("user", "after chat resume [[hi]]"),
        ("assistant", HELLO),
    ]
    prompts = [words(m) for m in draft.messages if m.metadata.get("origin") == "human"]
    assert len(prompts) == len(set(prompts)) == 8


def test_what_was_taken_up_again_is_as_it_was(draft: SessionDraft) -> None:
    edited = next(m for m in draft.messages if words(m) == "Edited it")
    assert edited.metadata["usage"]["output"] == 149
    part = call(draft, "replace__replace_1795836222315_0")
    assert extra(part)["duration_ms"] == 2546
    assert extra(part)["structured"]["structuredPatch"]
    assert len(calls(draft.messages)) == 6


def test_each_answer_is_counted_once(draft: SessionDraft) -> None:
    used = tokens(draft.messages)
    # Ten answers; one more was broken off before the program recorded it.
    assert used["input"] == 10 * 900
    assert used["output"] == sum([144, 145, 146, 147, 148, 149, 151, 152, 155, 156])
    assert used["reasoning"] == 7 * 7


def test_the_compression_is_one_marker_whatever_came_of_it(draft: SessionDraft) -> None:
    markers = [m for m in draft.messages if m.parts and m.parts[0].type == "data-compaction"]
    (marker,) = markers
    third = next(m for m in draft.messages if words(m) == "third [[mk]]")
    assert marker.parts[0].data["data"]["tail_start_id"] == third.source_id
    assert "hidden_at" in marker.metadata  # The saved conversation is from before it.


def test_a_call_that_was_denied_is(draft: SessionDraft) -> None:
    denied = [p for p in calls(draft.messages) if extra(p)["status"] == "denied"]
    assert len(denied) == 3
    assert all(p.data["errorText"].endswith("User denied execution.") for p in denied)


def test_a_saved_conversation_may_have_a_blank_in_its_name(draft: SessionDraft) -> None:
    (note,) = draft.metadata["backscroll"]["checkpoints"]
    edited = next(m for m in draft.messages if words(m) == "Edited it")
    assert (note["tag"], note["message_source_id"]) == ("tag one", edited.source_id)


@pytest.mark.parametrize("step", [None, 1777])
def test_followed_it_is_the_same(tmp_path: Path, step: int | None) -> None:
    root = tmp_path / "gemini"
    shutil.copytree(ROOT, root)
    grows_like_a_whole(GeminiSource, root, root / LOG.relative_to(ROOT), step=step)


def test_older_sessions_know_their_folder_by_its_hash() -> None:
    drafts, problems = read_all(GeminiSource(), OLD)
    assert problems == []
    assert {one.workspace_root for one in drafts.values()} == {"/home/user/project"}
    assert len(drafts) == 5
    (folder,) = (OLD / "tmp").iterdir()
    assert path_of_hash(str(folder), str(folder / "chats")) == "/home/user/project"
    assert path_of_hash(str(OLD), str(folder / "chats")) is None


def test_older_commands_that_ended_well_did() -> None:
    drafts, _ = read_all(GeminiSource(), OLD)
    oldest = next(one for name, one in drafts.items() if name.startswith("cf6ad361"))
    assert "Signal: 0" in calls(oldest.messages)[0].data["output"]
    assert [(extra(p)["status"], extra(p)["exit_code"]) for p in calls(oldest.messages)] == [
        ("ok", 0)] * 3  # fmt: skip
    killed = next(one for name, one in drafts.items() if name.startswith("bfb17fd3"))
    assert [words(m) for m in killed.messages] == ["kill mid stream [[hang]]"]


def test_what_a_newer_version_copied_is_there_once(tmp_path: Path) -> None:
    root = tmp_path / "gemini"
    shutil.copytree(OLD, root)
    (older,) = (root / "tmp").iterdir()
    newer = root / "tmp" / "project"
    shutil.copytree(older, newer)
    (newer / ".project_root").write_text("/home/user/project")
    kept = next(older.glob("chats/*0678496b.json"))
    (newer / "chats" / kept.name).unlink()
    units = list(GeminiSource().units(root, []))
    assert len(units) == 5
    assert {unit.key.partition("/")[0] for unit in units if "0678496b" not in unit.key} == {
        "project"}  # fmt: skip
    drafts, problems = read_all(GeminiSource(), root)
    assert (len(drafts), problems) == (5, [])
    gone = next(older.glob("chats/*c1fde460.json"))
    assert GeminiSource().units_at(root, [str(gone)]) == []


def said(path: Path) -> list[tuple[str, bool]]:
    """Return a session's words in order, and which of them are visible."""
    draft = only(GeminiSource(), path)
    return [
        (words(message) or "summary", "hidden_at" not in message.metadata)
        for message in draft.messages
    ]


SUMMARY = "<state_snapshot>\nsummary\n</state_snapshot>"


def compacted(*later: dict[str, Any]) -> list[dict[str, Any]]:
    return [
        meta(), user("u1", "ONE", 1), gemini("g1", "one", 2), user("u2", "TWO", 3),
        gemini("g2", "two", 4),
        replaced([user("sum", SUMMARY, 5), gemini("ack", "Got it.", 5)], 5),
        user("u3", "THREE", 6), gemini("g3", "three", 7), *later,
        user("u4", "FOUR", 9), gemini("g4", "four", 10),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("later", "visible"),
    [
        (
            [replaced([user("u1", "ONE", 1), gemini("g1", "one", 2)], 8)],
            ["ONE", "one", "FOUR", "four"],
        ),
        ([{"$rewindTo": "sum"}], ["FOUR", "four"]),
        ([{"$rewindTo": "u1"}], ["FOUR", "four"]),
        ([{"$rewindTo": "u3"}], ["ONE", "one", "TWO", "two", "summary", "Got it.", "FOUR", "four"]),
        (
            [replaced([user("s2", SUMMARY, 8), gemini("a2", "OK.", 8)], 8), {"$rewindTo": "s2"}],
            ["FOUR", "four"],
        ),
        (
            [
                {"$rewindTo": "sum"},
                user("u5", "between", 8),
                replaced([user("sum", SUMMARY, 5), gemini("ack", "Got it.", 5)], 8),
            ],
            ["ONE", "one", "TWO", "two", "summary", "Got it.", "FOUR", "four"],
        ),
    ],
    ids=["another history", "the summary", "unknown", "after it", "a later summary", "restored"],
)
def test_a_summary_that_is_dropped_takes_with_it_what_it_stood_for(
    later: list[dict[str, Any]], visible: list[str], tmp_path: Path
) -> None:
    session(tmp_path, *compacted(*later))
    assert [text for text, shown in said(root(tmp_path)) if shown] == visible


def test_records_without_an_id_are_kept_in_their_order(tmp_path: Path) -> None:
    rows = [
        user("a", "one", 1),
        gemini("b", "two", 2),
        user("c", "three", 3),
        gemini("d", "four", 4),
    ]
    for row in rows:
        del row["id"]
    path = session(tmp_path, meta(), *rows)
    draft = only(GeminiSource(), root(tmp_path))
    assert [words(message) for message in draft.messages] == ["one", "two", "three", "four"]
    assert len({message.source_id for message in draft.messages}) == 4
    whole = {**meta(), "messages": rows}
    path.unlink()
    path.with_suffix(".json").write_text(json.dumps(whole))
    draft = only(GeminiSource(), root(tmp_path))
    assert [words(message) for message in draft.messages] == ["one", "two", "three", "four"]
    path.with_suffix(".json").unlink()
    session(tmp_path, meta(), replaced(rows, 5))
    draft = only(GeminiSource(), root(tmp_path))
    assert [words(message) for message in draft.messages] == ["one", "two", "three", "four"]
