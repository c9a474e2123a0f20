"""Decides in the rows whether a message or a title is a hit.

A part is *eligible* when it fulfils the filters on parts (``role:``, ``tool:``, ``file:``,
``is:error``, ``is:denied``, ``in:``, ``after:``, ``before:``) and holds no word that is to be
left out. The hits of a message are

- the eligible parts in which every term matches, or, where there are none,
- the eligible part in which most terms match (the first of them), if every term matches in
  some eligible part of the message.

A search without words finds every eligible part that has text or is a call; a search with nothing
but filters on sessions finds the sessions, also those without a title. Messages that a rewind hid,
and those cancelled before they were sent, are found with ``is:hidden`` alone.

Forks carry the messages of their parent. A copy is left out where what it was copied from is a
hit itself, so that a text is found once, in the session that said it first. It is found in the
fork where the original is hidden, gone, archived, or outside of what the filters ask for.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple

from store.engine.database import Database
from store.engine.values import decoded, number, number_or_none, text
from store.language.matching import Folded, TermMatcher, fold, index_needle
from store.language.query import Query
from store.queries.helpers import without_helpers
from store.queries.matching_sessions import session_condition, session_test
from store.rows import is_tool_type
from store.search.conditions import Conditions, file_needles
from store.search.hits import Place
from store.search.index.reading import Candidate
from store.search.text import (
    Section,
    SideFile,
    Where,
    decode_part,
    sections,
    side_file_reader,
)
from store.text.stored_json import array_of

if TYPE_CHECKING:
    from store.sharing.masks import Masking, Masks

_MOST_ANCESTORS = 20
"""How far copies of copies are followed."""
_PLAIN = re.compile(r"[^\x00-\x20\x7f\"\\/]+")


class Session(NamedTuple):
    """What a search needs of a session.

    Attributes:
        wanted: Whether it fulfils the filters on sessions.
    """

    id: str
    agent: str
    workspace: str
    created_at: int
    archived: bool
    wanted: bool


class Message(NamedTuple):
    """What a search needs of a message."""

    id: str
    session_id: str
    role: str
    metadata: Mapping[str, Any]
    hidden: bool
    created_at: int


class Part(NamedTuple):
    """What a search needs of a part."""

    id: str
    position: int
    kind: str
    data_json: str
    state: str | None
    created_at: int
    updated_at: int


@dataclass(frozen=True, slots=True)
class Found:
    """A hit, before its excerpt is made.

    Attributes:
        message: None for a title; so are ``part`` and ``data``.
        sections: The sections in which terms may match.
        where: The place of the first match.
    """

    place: Place
    session: Session
    message: Message | None
    part: Part | None
    data: Mapping[str, Any] | None
    sections: Sequence[Section]
    where: Where


class WantedSessions:
    """What a query asks of sessions.

    Attributes:
        condition: The SQL condition on a session ``s``; what sessions do is not in it.
        values: Its parameters.
    """

    def __init__(
        self, db: Database, query: Query, *, helpers: bool, now: int,
        masking: Masking | None = None,
    ) -> None:
        """Prepare to test sessions.

        Args:
            db: The store.
            query: Its filters on sessions are tested.
            helpers: Whether runs that agents started for themselves are wanted.
            now: The present, epoch ms; what sessions do depends on it.
            masking: What is masked in values before they are compared; None for nothing.
        """
        self._db = db
        self.condition, self.values = session_condition(
            db, query, None if masking is None else _masks_of(masking))
        left_out = None if helpers else without_helpers(db)
        if left_out is not None:
            self.condition = f"({self.condition}) AND {left_out}"
        self._test = session_test(db, query, now)

    def rows(self, ids: Sequence[str]) -> list[tuple[Any, ...]]:
        """Return rowid, facts, and whether the condition holds, of some sessions."""
        sql = self._db.sql
        return self._db.connection.execute(
            f"SELECT {sql.rowid('s')}, s.id, s.agent, s.workspace_root, s.created_at,"
            f" s.archived_at, ({self.condition})"
            f" FROM {sql.texts('?', 'j')} JOIN chat_sessions s ON s.id = j.value",
            [*self.values, array_of(ids)],
        ).fetchall()

    def doing(self, rowids: Sequence[int]) -> set[int] | None:
        """Return which sessions do what is asked for; None where that is not asked."""
        return None if self._test is None else self._test(rowids)

    def count(self, every: int) -> int:
        """Return how many sessions are wanted.

        Args:
            every: How many there are.
        """
        if self._test is None and self.condition == "TRUE":
            return every
        if self._test is None:
            (count,) = self._db.connection.execute(
                f"SELECT count(*) FROM chat_sessions s WHERE {self.condition}", self.values
            ).fetchone()
            return int(count)
        rows = self._db.connection.execute(
            f"SELECT {self._db.sql.rowid('s')} FROM chat_sessions s WHERE {self.condition}",
            self.values).fetchall()
        return len(self._test([row[0] for row in rows]))


class Verifier:
    """Verifies candidates against the rows of a store.

    Attributes:
        asks: What the query asks of parts.
        wanted: What it asks of sessions.
        names: Names of files that each hit has in its text.
        sessions: Those that were read so far, by id.
    """

    def __init__(
        self, db: Database, conditions: Conditions, wanted: WantedSessions, *,
        copies: bool = False, masking: Masking | None = None,
    ) -> None:
        """Prepare to verify.

        Args:
            db: The store.
            conditions: What the query asks of parts.
            wanted: What it asks of sessions.
            copies: Whether copies of hits are hits too.
            masking: What is masked in all texts before they are searched; None for nothing.
        """
        self.sessions: dict[str, Session] = {}
        self._db = db
        self.asks, self.wanted = conditions, wanted
        self._copies = copies
        self._masks = None if masking is None else _masks_of(masking)
        self._kind = ""
        self._kind_fits: Callable[[object], bool] | None = None
        if conditions.tools or conditions.calls:
            # Rows of other kinds are left before their JSON is read.
            test = lru_cache(maxsize=1000)(lambda kind: conditions.kind_fits(text(kind) or ""))
            if db.server is None:
                db.file.create_function("search_kind", 1, test, deterministic=True)
                self._kind = " AND search_kind(p.type)"
            else:
                # A server has no such function: the types that fit are named to it.
                self._kind = f" AND p.type IN (SELECT value FROM {db.sql.texts('?', 'kinds')})"
                self._kind_fits = test
        self._words, self._phrases = _stored_tests(conditions.terms)
        self.names = file_needles(conditions, self._folders())
        self._stored_names = [fold(name) for name in self.names if _PLAIN.fullmatch(name)]
        self._originals: dict[str, bool] = {}

    def found(self, batch: Sequence[Candidate]) -> Iterator[list[Found]]:
        """Yield the hits of each candidate of a batch, in order; usually none or one.

        Args:
            batch: Candidates in the order of all hits.
        """
        self._read_sessions({each.session_id for each in batch})
        wanted = [each for each in batch if self._is_wanted(each.session_id)]
        titles = self._titles([each.session_id for each in wanted if each.message_id is None])
        messages, parts = self._messages_and_parts([each for each in wanted if each.message_id])
        for candidate in wanted:
            if candidate.message_id is None:
                yield self._title(candidate.session_id, titles.get(candidate.session_id))
            elif message := messages.get(candidate.message_id):
                hits = self._hits(message, parts.get(message.id, []))
                copied = hits and not self._copies and self._is_copy_of_hit(message)
                yield [] if copied else hits

    def _folders(self) -> list[str]:
        if not self.asks.calls:
            return []
        rows = self._db.connection.execute("SELECT DISTINCT workspace_root FROM chat_sessions")
        return [text(row[0]) or "" for row in rows.fetchall()]

    def _is_wanted(self, session_id: str) -> bool:
        session = self.sessions.get(session_id)
        return session is not None and session.wanted

    # Rows

    def _read_sessions(self, ids: set[str]) -> None:
        missing = [each for each in ids if each not in self.sessions]
        if not missing:
            return
        found = {row[1]: row for row in self.wanted.rows(missing)}
        doing = self.wanted.doing([rowid for rowid, *_, fits in found.values() if fits])
        for rowid, name, agent, workspace, created_at, archived_at, fits in found.values():
            session_id = text(name) or ""
            self.sessions[session_id] = Session(
                session_id, text(agent) or "", text(workspace) or "", number(created_at),
                archived_at is not None, bool(fits) and (doing is None or rowid in doing),
            )

    def _titles(self, ids: Sequence[str]) -> dict[str, str]:
        if not ids or not self.asks.titles:
            return {}
        rows = self._db.connection.execute(
            f"SELECT s.id, {self._db.form.title('s')} FROM {self._db.sql.texts('?', 'j')}"
            " JOIN chat_sessions s ON s.id = j.value", [array_of(ids)],
        )
        return {text(row[0]) or "": text(row[1]) or "" for row in rows}

    def _messages_and_parts(
        self, candidates: Sequence[Candidate]
    ) -> tuple[dict[str, Message], dict[str, list[Part]]]:
        """Return the candidates' messages that are wanted, and those of their parts that may match.

        Of the messages with the trigrams of a common phrase one in ten has the phrase.
        """
        if self.asks.of_messages:
            messages = self._messages([each.message_id or "" for each in candidates])
            return messages, self._parts([e for e in candidates if e.message_id in messages])
        parts = self._parts(candidates) if self.asks.parts else {}
        return self._messages(list(parts)), parts

    def _messages(self, ids: Sequence[str]) -> dict[str, Message]:
        if not ids or not self.asks.parts:
            return {}
        form = self._db.form
        columns = "m.hidden_at" if form.hidden_column else "NULL"
        rows = self._db.connection.execute(
            f"SELECT m.id, m.session_id, m.role, m.metadata_json, {columns}, m.created_at"
            f" FROM {self._db.sql.texts('?', 'j')} JOIN chat_messages m ON m.id = j.value",
            [array_of(ids)],
        )
        found = {}
        for name, session_id, role, metadata_json, hidden_at, created_at in rows:
            metadata = decoded(text(metadata_json))
            hidden = (
                number_or_none(hidden_at) is not None or metadata.get("hidden_at") is not None
                or metadata.get("queue_canceled_at") is not None
            )
            message = Message(text(name) or "", text(session_id) or "", text(role) or "",
                              metadata, hidden, number(created_at))
            if hidden is self.asks.hidden and self.asks.in_time(message.created_at) and (
                self.asks.role_fits(message.role) and self.asks.notes_fit(metadata)
            ):
                found[message.id] = message
        return found

    def _parts(self, candidates: Sequence[Candidate]) -> dict[str, list[Part]]:
        found: dict[str, list[Part]] = {}
        whole = [each.message_id or "" for each in candidates if not each.parts]
        if whole:
            listed = f"SELECT value FROM {self._db.sql.texts('?', 'j')}"
            self._read_parts(found, f"p.message_id IN ({listed})", [array_of(whole)])
        for each in candidates:
            for first, last in each.parts:
                self._read_parts(found, 'p.message_id = ? AND p."index" BETWEEN ? AND ?',
                                 [each.message_id, first, last])
        for parts in found.values():
            parts.sort(key=lambda part: part.position)
        return found

    def _read_parts(
        self, found: dict[str, list[Part]], condition: str, values: Sequence[Any]
    ) -> None:
        """Read the parts in which a term may match."""
        if self._kind_fits is not None:
            kinds = self._db.connection.execute(
                f"SELECT DISTINCT p.type FROM chat_parts p WHERE {condition}", values).fetchall()
            values = [*values, array_of(kind for (kind,) in kinds if self._kind_fits(kind))]
        rows = self._db.connection.execute(
            'SELECT p.message_id, p.id, p."index", p.type, p.data_json, p.tool_state,'
            f" p.created_at, p.updated_at FROM chat_parts p WHERE {condition}{self._kind}", values,
        ).fetchall()
        may_match = self._may_match
        for row in rows:
            message_id, name, index, kind, data_json, state, created_at, updated_at = row
            if not may_match(data_json if type(data_json) is str else text(data_json) or "{}"):
                continue
            if type(name) is type(kind) is type(data_json) is type(message_id) is str and (
                type(index) is type(created_at) is type(updated_at) is int
            ) and (state is None or type(state) is str):
                part = Part(*row[1:])
            else:
                part = Part(
                    text(name) or "", number(index), text(kind) or "", text(data_json) or "{}",
                    text(state), number(created_at), number(updated_at))
            found.setdefault(text(message_id) or "", []).append(part)

    # Tests

    def _title(self, session_id: str, title: str | None) -> list[Found]:
        session = self.sessions[session_id]
        if title is None or not self.asks.titles or not self.asks.in_time(session.created_at):
            return []
        if not title and (self.asks.terms or self.asks.limited):
            return []
        if self._masks is not None:
            title = self._masks.mask(title)
        folded = Folded(title)
        if not all(each.found(folded) for each in self.asks.terms) or any(
            each.found(folded) for each in self.asks.unwanted
        ):
            return []
        place = Place(session.created_at, session.id, -1)
        return [Found(place, session, None, None, None, [Section("title", title)], "title")]

    def _hits(self, message: Message, parts: Sequence[Part]) -> list[Found]:
        side_file = side_file_reader(self._db, message.session_id)
        terms = len(self.asks.terms)
        partly: list[tuple[set[int], Found]] = []
        hits = []
        for part in parts:
            matched, found = self._part(message, part, side_file)
            if found is None:
                continue
            if len(matched) == terms:
                hits.append(found)
            elif matched and not hits:
                partly.append((matched, found))
        if hits or not partly or len(set().union(*(matched for matched, _ in partly))) < terms:
            return hits
        most = max(len(matched) for matched, _ in partly)
        return [next(found for matched, found in partly if len(matched) == most)]

    def _part(
        self, message: Message, part: Part, side_file: SideFile
    ) -> tuple[set[int], Found | None]:
        """Return which terms match in a part, and it as a hit; None where it is not eligible."""
        asks, session = self.asks, self.sessions[message.session_id]
        data = decode_part(part.kind, part.data_json)
        if self._masks is not None:
            data = self._masks.mask_json(dict(data))
        if not asks.tool_fits(part.kind, data) or not asks.call_fits(data, session.workspace):
            return set(), None
        searched = [
            each if self._masks is None else each._replace(text=self._masks.mask(each.text))
            for each in sections(data, message.role, message.metadata.get("origin"), side_file)
            if each.where in asks.places
        ]
        matched: set[int] = set()
        best: tuple[int, Where] | None = None
        for section in searched:
            folded = Folded(section.text)
            if any(each.found(folded) for each in asks.unwanted):
                return set(), None
            here = {at for at, each in enumerate(asks.terms) if each.found(folded)}
            if here and (best is None or len(here) > best[0]):
                best = len(here), section.where
            matched |= here
        if asks.terms and not matched:
            return matched, None
        if not searched and not (asks.tools or asks.calls):
            return matched, None
        if best is not None:
            where = best[1]
        else:
            unsearched: Where = "input" if is_tool_type(part.kind) else "text"
            where = searched[-1].where if searched else unsearched
        place = Place(message.created_at, message.id, part.position)
        return matched, Found(place, session, message, part, data, searched, where)

    def _may_match(self, stored: str) -> bool:
        """Return whether a term may match, as the stored JSON tells without decoding it."""
        any_word = not self._words and not self._phrases
        if (any_word and not self._stored_names) or "\\u" in stored:
            return True
        folded = fold(stored)
        for name in self._stored_names:
            if name not in folded:
                return False
        if any_word or '"attachment"' in stored:
            return True
        for test in self._phrases:
            if test(folded):
                return True
        for word in self._words:
            if word in folded:
                return True
        if not self._words:
            return False
        squeezed = folded.replace("-", "").replace("_", "")
        return any(word in squeezed for word in self._words)

    def _is_copy_of_hit(self, message: Message) -> bool:
        """Return whether a message is a copy of one that is a hit in its own session."""
        name = message.metadata.get("inherited_from")
        archived = self.sessions[message.session_id].archived
        for _ in range(_MOST_ANCESTORS):
            if not isinstance(name, str):
                return False
            row = self._db.connection.execute(
                "SELECT m.session_id, m.metadata_json FROM chat_messages m WHERE m.id = ?", (name,)
            ).fetchone()
            if row is None:
                return False
            if self._is_hit(text(row[0]) or "", name, archived=archived):
                return True
            name = decoded(text(row[1])).get("inherited_from")
        return False

    def _is_hit(self, session_id: str, message_id: str, *, archived: bool) -> bool:
        self._read_sessions({session_id})
        session = self.sessions.get(session_id)
        if session is None or not session.wanted or (session.archived and not archived):
            return False
        if message_id not in self._originals:
            messages = self._messages([message_id])
            parts = self._parts([Candidate(session_id, message_id, 0)]) if messages else {}
            self._originals[message_id] = bool(messages) and bool(
                self._hits(messages[message_id], parts.get(message_id, [])))
        return self._originals[message_id]


def _masks_of(masking: Masking) -> Masks:
    # Only here: the rules take a while to load.
    from store.sharing.masks import Masks

    return Masks(masking)


def _stored_tests(
    terms: Sequence[TermMatcher],
) -> tuple[list[str], list[Callable[[str], object]]]:
    """Return what tests the stored, folded JSON of a part before it is decoded.

    What JSON may escape is left out, but for the white space between the words of a phrase.

    Returns:
        Words of which one is in the JSON without its ``-`` and ``_``, and tests of phrases of
        which one passes; both are empty where some term says nothing of the JSON.
    """
    found: list[str] = []
    phrases: list[Callable[[str], object]] = []
    for each in terms:
        words = fold(each.term.text).split()
        if each.term.kind == "phrase" and all(_PLAIN.fullmatch(word) for word in words):
            phrases.append(re.compile(r"(?:\s|\\[nrtf])+".join(map(re.escape, words))).search)
            continue
        needle = max(_PLAIN.findall(index_needle(each.term) or ""), key=len, default=None)
        if needle is None:
            return [], []
        found.append(needle)
    return found, phrases
