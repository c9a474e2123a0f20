"""Compactions of a part of the talk: what they preserve is no abandoned branch."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from store.engine.database import Database
from store.ids import IdMinter
from store.queries.context import context_ids, visible_ids
from store.sources.claude_code import ClaudeCodeSource
from store.system.clock import system_clock
from store.verbs.fork import fork
from tests.sources.claude_rows import File, read_one, shape
from tests.sources.grown import synced


def talk(file: File, count: int, first: int = 0) -> list[str]:
    uuids = []
    for number in range(first, first + count):
        uuids.append(file.user(f"q{number}"))
        uuids.append(file.assistant(f"a{number}", id=f"msg_{number}"))
    return uuids


def segment(head: str, tail: str, anchor: str = "summary") -> dict[str, Any]:
    return {"headUuid": head, "anchorUuid": anchor, "tailUuid": tail}


def compact(file: File, direction: str, logical: str, kept: dict[str, Any] | None) -> str:
    metadata: dict[str, Any] = {"trigger": "manual", "preTokens": 9}
    if kept is not None:
        metadata["preservedSegment"] = kept
    file.row("system", parent=None, logicalParentUuid=logical, subtype="compact_boundary",
             content="Conversation compacted", compactMetadata=metadata)
    return file.user("SUMMARY", isCompactSummary=True, isVisibleInTranscriptOnly=True,
                     summarizeMetadata={"messagesSummarized": 4, "direction": direction})


@pytest.mark.parametrize("next_off", ["summary", "tail"])
@pytest.mark.parametrize("named", [True, False])
def test_up_to_here_keeps_what_came_after_the_point(
    named: bool, next_off: str, tmp_path: Path
) -> None:
    file = File()
    rows = talk(file, 4)
    kept = segment(rows[4], rows[7]) if named else None
    summary = compact(file, "up_to", rows[3], kept)
    file.user("next", parent=summary if next_off == "summary" else rows[7])
    file.assistant("re next", id="msg_9")
    draft = read_one(file, tmp_path)
    assert [text for _, text in shape(draft)] == [
        *(f"{kind}{number}" for number in range(4) for kind in "qa"),
        "data-compaction", "next", "re next",
    ]


def test_a_rewound_branch_before_it_stays_hidden(tmp_path: Path) -> None:
    file = File()
    rows = talk(file, 2)
    talk(file, 1, first=7)
    file.last = rows[3]
    later = talk(file, 1, first=2)
    compact(file, "up_to", rows[3], segment(later[0], later[1]))
    file.user("next")
    draft = read_one(file, tmp_path)
    assert [text for _, text in shape(draft)] == [
        "q0", "a0", "q1", "a1", "q2", "a2", "data-compaction", "next",
    ]


@pytest.mark.parametrize(
    ("direction", "context"),
    [
        ("up_to", ["SUMMARY", "q2", "a2", "q3", "a3", "next", "re next"]),
        ("from", ["q0", "a0", "q1", "a1", "SUMMARY", "next", "re next"]),
    ],
)
def test_the_context_is_what_the_next_request_held(
    direction: str, context: list[str], tmp_path: Path
) -> None:
    file = File()
    rows = talk(file, 4)
    if direction == "up_to":
        compact(file, direction, rows[3], segment(rows[4], rows[7]))
    else:
        compact(file, direction, rows[7], segment(rows[0], rows[3], "boundary"))
    file.user("next")
    file.assistant("re next", id="msg_9")
    file.write(tmp_path / "projects" / "-w")
    assert context_of(tmp_path) == context


def context_of(folder: Path) -> list[str]:
    """Sync a root and return the texts of its only session's context."""
    db = synced(ClaudeCodeSource(), folder, folder / "store.db")
    ((session,),) = db.connection.execute("SELECT id FROM chat_sessions").fetchall()
    texts = texts_of(db, context_ids(db, session))
    db.close()
    return texts


def texts_of(db: Database, ids: list[str]) -> list[str]:
    texts = "SELECT coalesce(json_extract(data_json, '$.text'),"
    texts += " json_extract(data_json, '$.data.summary')) FROM chat_parts WHERE message_id = ?"
    return [text for name in ids for (text,) in db.connection.execute(texts, [name])]


def up_to_twice(file: File) -> list[str]:
    rows = talk(file, 4)
    compact(file, "up_to", rows[1], segment(rows[2], rows[7]))
    later = talk(file, 1, first=6)
    compact(file, "up_to", rows[5], segment(rows[6], later[1]))
    talk(file, 1, first=9)
    return ["SUMMARY", "q3", "a3", "q6", "a6", "q9", "a9"]


def up_to_then_from(file: File) -> list[str]:
    rows = talk(file, 4)
    first = compact(file, "up_to", rows[1], segment(rows[2], rows[7]))
    later = talk(file, 1, first=6)
    compact(file, "from", later[1], segment(first, rows[7], "boundary"))
    talk(file, 1, first=9)
    return ["SUMMARY", "q1", "a1", "q2", "a2", "q3", "a3", "SUMMARY", "q9", "a9"]


def rewound_before_it(file: File) -> list[str]:
    rows = talk(file, 4)
    compact(file, "up_to", rows[3], segment(rows[4], rows[7]))
    file.last = rows[3]
    talk(file, 1, first=9)
    return ["q0", "a0", "q1", "a1", "q9", "a9"]


def rewound_into_what_it_kept(file: File) -> list[str]:
    rows = talk(file, 4)
    compact(file, "up_to", rows[3], segment(rows[4], rows[7]))
    file.last = rows[5]
    talk(file, 1, first=9)
    return ["SUMMARY", "q2", "a2", "q9", "a9"]


def off_the_tail_and_compacted_again(file: File) -> list[str]:
    rows = talk(file, 4)
    compact(file, "up_to", rows[3], segment(rows[4], rows[7]))
    file.last = rows[7]
    later = talk(file, 1, first=6)
    compact(file, "up_to", rows[5], segment(rows[6], later[1]))
    talk(file, 1, first=9)
    return ["SUMMARY", "q3", "a3", "q6", "a6", "q9", "a9"]


def rewound_before_a_whole_one(file: File) -> list[str]:
    rows = talk(file, 3)
    file.row("system", parent=None, logicalParentUuid=rows[-1], subtype="compact_boundary")
    file.user("SUMMARY", isCompactSummary=True)
    talk(file, 1, first=5)
    file.last = rows[-1]
    talk(file, 1, first=9)
    return ["q0", "a0", "q1", "a1", "q2", "a2", "q9", "a9"]


def with_a_gap(file: File) -> list[str]:
    rows = talk(file, 4)
    named = {"anchorUuid": "summary", "uuids": [rows[place] for place in (2, 3, 6, 7)]}
    file.row("system", parent=None, logicalParentUuid=rows[-1], subtype="compact_boundary",
             compactMetadata={"trigger": "auto", "preservedMessages": named})  # fmt: skip
    file.user("SUMMARY", isCompactSummary=True)
    talk(file, 1, first=9)
    return ["SUMMARY", "q1", "a1", "q3", "a3", "q9", "a9"]


KINDS = [up_to_twice, up_to_then_from, rewound_before_it, rewound_into_what_it_kept,
         off_the_tail_and_compacted_again, rewound_before_a_whole_one, with_a_gap]  # fmt: skip


@pytest.mark.parametrize("make", KINDS, ids=lambda make: make.__name__)
def test_the_context_after_several_compactions_and_rewinds(
    make: Callable[[File], list[str]], tmp_path: Path
) -> None:
    file = File()
    context = make(file)
    file.write(tmp_path / "projects" / "-w")
    assert context_of(tmp_path) == context


def test_a_fork_keeps_what_a_compaction_kept(tmp_path: Path) -> None:
    file = File()
    context = up_to_twice(file)
    file.write(tmp_path / "projects" / "-w")
    db = synced(ClaudeCodeSource(), tmp_path, tmp_path / "store.db")
    ((session,),) = db.connection.execute("SELECT id FROM chat_sessions").fetchall()
    last = visible_ids(db, session)[-1]
    forked = fork(db, session, last, ids=IdMinter(), now=system_clock()).session_id
    assert not set(context_ids(db, forked)) & set(context_ids(db, session))
    assert texts_of(db, context_ids(db, forked)) == context
    db.close()
