"""However a store was written, its index equals it once the indexer has caught up."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import Any

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule

from store.engine.database import in_transaction
from store.errors import Refused
from store.search.index import blocks, term_blocks
from store.search.index.building import Indexer
from store.search.index.checking import check
from store.search.index.reading import open_index
from store.sync.forget import forget
from store.verbs.fork import fork
from store.verbs.marks import rename
from store.verbs.rewind import rewind
from store.verbs.undo import undo
from tests.store.talks import Talk, make_store

WORDS = st.lists(
    st.sampled_from(["alpha", "Beta", "gamma_delta", "令牌", "x", "Café", "/src/a.py"]), max_size=6
).map(" ".join)


class IndexedStore(RuleBasedStateMachine):
    """A store that is written while an indexer works in any order with it."""

    @initialize(form=st.sampled_from(["own", "contract"]), small=st.booleans())
    def begin(self, form: str, small: bool) -> None:
        self.folder = tempfile.TemporaryDirectory()
        self.talk = Talk(make_store(Path(self.folder.name) / "store.db", form))
        self.path = self.talk.db.path
        self.limits = blocks.MERGED_AT, blocks.FULL, term_blocks.ADDED_AT
        if small:
            blocks.MERGED_AT, blocks.FULL, term_blocks.ADDED_AT = 2, 3, 1
        self.indexer = Indexer(self.path)

    def teardown(self) -> None:
        if hasattr(self, "folder"):
            self.catch_up()
            self.indexer.close()
            self.talk.db.close()
            blocks.MERGED_AT, blocks.FULL, term_blocks.ADDED_AT = self.limits
            self.folder.cleanup()

    @property
    def sessions(self) -> list[str]:
        rows = self.talk.db.connection.execute("SELECT id FROM chat_sessions ORDER BY id")
        return [row[0] for row in rows.fetchall()]

    def messages(self, session: str) -> list[str]:
        rows = self.talk.db.connection.execute(
            "SELECT id FROM chat_messages WHERE session_id = ? ORDER BY id", (session,)
        )
        return [row[0] for row in rows.fetchall()]

    def noted(self, session: str, message: str | None) -> None:
        """Write what each writer of a library writes to its log."""
        if self.talk.db.form.name == "own":
            self.talk.db.connection.execute(
                "INSERT INTO changes(session_id, message_id, changed_at) VALUES (?, ?, 0)",
                (session, message),
            )

    @rule(title=WORDS)
    def add_session(self, title: str) -> None:
        self.noted(self.talk.session(title), None)

    @precondition(lambda self: self.sessions)
    @rule(data=st.data(), texts=st.lists(WORDS, max_size=3), long=st.booleans())
    def add_message(self, data: st.DataObject, texts: list[str], long: bool) -> None:
        session = data.draw(st.sampled_from(self.sessions))
        if long:
            texts = [*texts, "filler " * 4_000, "filler " * 4_000]
        parts: list[dict[str, Any]] = [{"type": "text", "text": text} for text in texts]
        self.noted(session, self.talk.message(session, parts=parts))

    @precondition(lambda self: any(self.messages(each) for each in self.sessions))
    @rule(data=st.data(), text=WORDS, kind=st.sampled_from(["edit", "delete", "move"]))
    def write_to_message(self, data: st.DataObject, text: str, kind: str) -> None:
        session = data.draw(st.sampled_from([s for s in self.sessions if self.messages(s)]))
        message = data.draw(st.sampled_from(self.messages(session)))
        write = self.talk.db.connection.execute
        if kind == "edit":
            body = json.dumps({"type": "text", "text": text})
            write("UPDATE chat_parts SET data_json = ? WHERE message_id = ?", (body, message))
        elif kind == "delete":
            write("DELETE FROM chat_messages WHERE id = ?", (message,))
        else:
            write("UPDATE chat_messages SET created_at = created_at + 1 WHERE id = ?", (message,))
        self.noted(session, message)

    @precondition(lambda self: self.sessions)
    @rule(data=st.data(), verb=st.sampled_from(["rename", "fork", "rewind", "undo", "delete"]))
    def do(self, data: st.DataObject, verb: str) -> None:
        session = data.draw(st.sampled_from(self.sessions))
        messages, db, now = self.messages(session), self.talk.db, self.talk.now + 1
        try:
            if verb == "rename":
                in_transaction(db, rename, session, data.draw(WORDS) or "x", now=now)
            elif verb == "fork" and messages:
                in_transaction(db, fork, session, messages[0], ids=self.talk.ids, now=now)
            elif verb == "rewind" and messages:
                in_transaction(db, rewind, session, messages[0], now=now)
            elif verb == "undo":
                in_transaction(db, undo, now=now)
            elif verb == "delete":
                db.connection.execute("DELETE FROM chat_sessions WHERE id = ?", (session,))
                self.noted(session, None)
        except Refused:
            pass

    @precondition(lambda self: self.talk.db.form.name == "own" and self.sessions)
    @rule(data=st.data())
    def forget(self, data: st.DataObject) -> None:
        gone = forget(self.talk.db, [data.draw(st.sampled_from(self.sessions))])
        index = open_index(self.path)
        assert index is not None
        assert not {each.session_id for each in index.candidates([])} & set(gone)
        index.close()

    @rule()
    def look(self) -> None:
        self.indexer.look()

    @rule()
    def step(self) -> None:
        self.indexer.step()

    @rule()
    def end_and_begin_again(self) -> None:
        self.indexer.close()
        self.indexer = Indexer(self.path)

    @rule()
    def catch_up(self) -> None:
        self.indexer.look()
        self.indexer.resume()
        while self.indexer.step() or not self.indexer.idle:
            self.indexer.look()
            self.indexer.resume()
        assert check(self.path) == []


IndexedStore.TestCase.settings = settings(
    max_examples=12, stateful_step_count=18, deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)  # fmt: skip
test_index_equals_store = IndexedStore.TestCase
