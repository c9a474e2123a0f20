"""However a session grew, the store holds what one reading of its end gives.

Where what a source no longer has is not kept; ``test_sync_gone.py`` has what holds where it is.
"""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from store.engine.database import in_transaction, open_database
from store.ids import derived_session_id
from store.sources.base.drafts import LineageDraft, MessageDraft, PartDraft, SessionDraft
from store.sync.writer import write_session
from tests.store.sync_fakes import SIDE_TABLES, START, TABLES, dump, session

NAMES = [f"m{number}" for number in range(12)]
WRAP = 26 * 2**36


@st.composite
def parts(draw: st.DrawFn, at: int) -> PartDraft:
    if draw(st.booleans()):
        data = {"type": "text", "text": draw(st.text(max_size=8)), "state": "done"}
        return PartDraft("text", data, at, at, records=(draw(st.integers(0, 5)),))
    state = draw(st.sampled_from(["input-available", "output-available"]))
    data = {"type": "tool-Bash", "toolCallId": "t", "state": state}
    return PartDraft("tool-Bash", data, at, at + draw(st.integers(0, 9)), "t", state)


@st.composite
def messages(draw: st.DrawFn, name: str) -> MessageDraft:
    at = draw(st.sampled_from([START, WRAP])) + draw(st.integers(-2, 2))
    role: Any = draw(st.sampled_from(["user", "assistant"]))
    metadata: dict[str, Any] = {"usage": {"input": draw(st.integers(0, 9)), "output": 1}}
    if draw(st.booleans()):
        metadata["hidden_at"] = START
    inherited = draw(st.one_of(st.none(), st.sampled_from(NAMES)))
    content = [draw(parts(at)) for _ in range(draw(st.integers(0, 3)))]
    return MessageDraft(name, role, at, at + 1, metadata, content, inherited)


@st.composite
def drafts(draw: st.DrawFn, name: str, parent: str | None) -> SessionDraft:
    chosen = draw(st.lists(st.sampled_from(NAMES), unique=True, max_size=8))
    content = [draw(messages(one)) for one in chosen]
    lineage = None
    if parent is not None and draw(st.booleans()):
        lineage = LineageDraft("fork", parent, draw(st.sampled_from([None, *NAMES])))
    if lineage is None:
        for one in content:
            one.inherited_from = None
    records = [b"%d" % n for n in range(draw(st.integers(0, 6)))]
    title = draw(st.one_of(st.none(), st.text(max_size=5)))
    return session(name, *content, lineage=lineage, records=records, title=title)


HISTORIES = st.lists(
    st.one_of(drafts("parent", None), drafts("child", "parent"), drafts("grandchild", "child")),
    min_size=1,
    max_size=8,
)


def write_all(path: Path, history: list[SessionDraft]) -> dict[str, list[Any]]:
    database = open_database(path, create=True)
    for draft in history:
        in_transaction(database, write_session, "fake", draft, keep_gone=False)
    rows = dump(database, TABLES + SIDE_TABLES)
    database.connection.execute("PRAGMA foreign_key_check")
    for name in {draft.source_id for draft in history}:
        _check_order(rows, name, next(d for d in reversed(history) if d.source_id == name))
    before = database.connection.total_changes
    for draft in {draft.source_id: draft for draft in history}.values():
        again = in_transaction(database, write_session, "fake", draft, keep_gone=False)
        assert again.changed == []
    assert database.connection.total_changes == before
    database.close()
    return rows


def _check_order(rows: dict[str, list[Any]], name: str, draft: SessionDraft) -> None:
    session_id = derived_session_id("fake", name)
    own = [row for row in rows["chat_messages"] if row[1] == session_id]
    own.sort(key=lambda row: (row[4], row[0]))
    shown = [json.loads(row[3])["source"]["id"] for row in own]
    assert shown == [one.source_id for one in draft.messages]


@settings(max_examples=20, deadline=None)
@given(HISTORIES)
def test_the_end_alone_decides(history: list[SessionDraft]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        grown = write_all(Path(folder) / "grown.db", history)
        last = {draft.source_id: draft for draft in history}
        once = write_all(Path(folder) / "once.db", list(last.values()))
        turned = write_all(Path(folder) / "turned.db", list(last.values())[::-1])
    assert grown == once == turned
