"""A search that knows nothing of the real one: every row, every word, no index, no SQL."""

from __future__ import annotations

import json
import random
import sqlite3
import unicodedata
from dataclasses import dataclass, field
from pathlib import Path
from posixpath import join, normpath
from typing import Any

from store.engine.database import open_database
from tests.store.making import add_message, add_part, add_session

WORDS = (
    "RetryLoop", "retry_loop", "retry-loop", "retry", "loop", "src/sync/worker.py", "Überlange",
    "ueber", "uber", "同期", "再試行する", "日本", "ERROR", "error:", "timeout=30", "a\"b", "c\\d",
    "naïve", "ﬁle", "x", "Ж", "жук", "straße", "STRASSE", "std::vector", "100%", "__init__",
)
TITLES = ("Retry loop", "同期 worker", "untitled notes", "Überlange Zeilen", "")
FILES = ("src/sync/worker.py", "/w/src/loop.py", "/x/retry_loop.md", "./lib/../src/Überlange.py")
TOOLS = ("Bash", "Read", "exec_command", "mcp__github__create_issue")


def folded(text: str) -> str:
    """Fold a text slowly, by itself: case, accents and compatibility forms."""
    found = unicodedata.normalize("NFKD", text.casefold())
    found = "".join(one for one in found if not unicodedata.combining(one))
    return unicodedata.normalize("NFC", found.casefold())


def holds(text: str, word: str) -> bool:
    """Return whether a word is in a text, with or without ``-`` and ``_`` between letters."""
    text, word = folded(text), folded(word)
    return word in text or _joined(word) in _joined(text)


def holds_phrase(text: str, phrase: str) -> bool:
    """Return whether a phrase is in a text, whatever white space is between its words."""
    return " ".join(folded(phrase).split()) in " ".join(folded(text).split())


def _joined(text: str) -> str:
    return text.replace("-", "").replace("_", "")


@dataclass
class Asked:
    """A query in pieces, and the same as text."""

    words: list[str] = field(default_factory=list)
    phrases: list[str] = field(default_factory=list)
    without: list[str] = field(default_factory=list)
    places: list[str] = field(default_factory=list)
    role: str | None = None
    tool: str | None = None
    file: str | None = None
    agent: str | None = None
    hidden: bool = False
    failed: bool = False
    archived: bool = False

    @property
    def text(self) -> str:
        quoted = ['"' + phrase.replace('"', '""') + '"' for phrase in self.phrases]
        pieces = [*self.words, *quoted, *("-" + word for word in self.without)]
        pieces += [f"in:{','.join(self.places)}"] if self.places else []
        pieces += [f"role:{self.role}"] if self.role else []
        pieces += [f"tool:{self.tool}"] if self.tool else []
        pieces += [f"file:{self.file}"] if self.file else []
        pieces += [f"agent:{self.agent}"] if self.agent else []
        pieces += ["is:archived"] if self.archived else []
        pieces += ["is:hidden"] if self.hidden else []
        pieces += ["is:error"] if self.failed else []
        return " ".join(pieces)

    def terms_in(self, *texts: str) -> set[str]:
        """Return which words and phrases are in some of the texts."""
        return {word for word in self.words if any(holds(text, word) for text in texts)} | {
            f"{phrase}\n" for phrase in self.phrases
            if any(holds_phrase(text, phrase) for text in texts)}

    @property
    def terms(self) -> set[str]:
        """All words and phrases, as ``terms_in`` names them."""
        return {*self.words, *(f"{phrase}\n" for phrase in self.phrases)}


def fill(path: Path, seed: int, sessions: int = 6) -> Path:
    """Make a store with sessions, forks with copies, hidden messages and archived sessions."""
    chosen = random.Random(seed)
    open_database(path, create=True).close()
    connection = sqlite3.connect(path)
    made: list[tuple[str, list[str]]] = []
    for number in range(sessions):
        session = add_session(
            connection, f"ses_{number}", at=chosen.randrange(50),
            agent=chosen.choice(("claude", "codex")),
            archived_at=5 if chosen.random() < 0.2 else None,
            metadata={"title": chosen.choice(TITLES)},
        )
        messages: list[str] = []
        if made and chosen.random() < 0.4:
            _copy(connection, chosen, session, made, messages)
        for at in range(chosen.randrange(5)):
            messages.append(_message(connection, chosen, session, f"{session}_m{at}"))
        made.append((session, messages))
    connection.commit()
    connection.close()
    return path


def _message(connection: sqlite3.Connection, chosen: random.Random, session: str, id: str) -> str:
    metadata: dict[str, Any] = {"hidden_at": 7} if chosen.random() < 0.2 else {}
    if chosen.random() < 0.2:
        metadata["origin"] = chosen.choice(("meta", "command"))
    role = chosen.choice(("user", "assistant"))
    add_message(connection, session, id, chosen.randrange(40), role=role, metadata=metadata)
    for index in range(chosen.randrange(4)):
        data = _data(chosen, role)
        add_part(connection, session, id, f"{id}_p{index}", index, type=data["type"],
                 data=data, tool_state=data.get("state"))
    return id


def _data(chosen: random.Random, role: str) -> dict[str, Any]:
    def text() -> str:
        between = chosen.choice((" ", "\n", " / "))
        return between.join(chosen.choices(WORDS, k=chosen.randrange(1, 5)))

    kind = chosen.choice(("text", "reasoning", "tool")) if role == "assistant" else "text"
    if kind != "tool":
        return {"type": kind, "text": text()}
    tool = chosen.choice(TOOLS)
    given = {"file_path": chosen.choice(FILES)} if tool == "Read" else {"command": text()}
    data: dict[str, Any] = {"type": f"tool-{tool}", "toolCallId": "c", "input": given}
    if chosen.random() < 0.3:
        return data | {"state": "output-error", "errorText": text()}
    output = [{"type": "text", "text": text()}] if chosen.random() < 0.3 else text()
    return data | {"state": "output-available", "output": output}


def _copy(
    connection: sqlite3.Connection, chosen: random.Random, session: str,
    made: list[tuple[str, list[str]]], messages: list[str],
) -> None:
    """Copy some messages of an earlier session, as a fork does."""
    _, originals = chosen.choice(made)
    for number, original in enumerate(originals[: chosen.randrange(4)]):
        row = connection.execute(
            "SELECT role, created_at, metadata_json FROM chat_messages WHERE id = ?", (original,)
        ).fetchone()
        metadata = {**json.loads(row[2]), "inherited_from": original}
        metadata.pop("hidden_at", None)
        id = add_message(connection, session, f"{session}_c{number}", row[1], role=row[0],
                         metadata=metadata)
        for index, kind, data, state in connection.execute(
            'SELECT "index", type, data_json, tool_state FROM chat_parts WHERE message_id = ?',
            (original,),
        ).fetchall():
            add_part(connection, session, id, f"{id}_p{index}", index, type=kind,
                     data=json.loads(data), tool_state=state)
        messages.append(id)


Key = tuple[str, int]
"""Message (or session) and index of a hit; -1 for a title."""


@dataclass
class _Message:
    id: str
    session: str
    role: str
    metadata: dict[str, Any]
    at: int
    parts: list[tuple[int, dict[str, Any]]]


def search(path: Path, asked: Asked) -> tuple[list[Key], list[Key]]:
    """Return the hits, newest first, and those in archived sessions."""
    connection = sqlite3.connect(path)
    sessions = {
        row[0]: (row[1], row[2], json.loads(row[3]).get("title"))
        for row in connection.execute(
            "SELECT id, created_at, archived_at, metadata_json, agent FROM chat_sessions")
        if asked.agent in (None, row[4]) and (row[2] is not None or not asked.archived)
    }
    messages = {
        row[0]: _Message(row[0], row[1], row[2], json.loads(row[3]), row[4], [])
        for row in connection.execute(
            "SELECT id, session_id, role, metadata_json, created_at FROM chat_messages")
    }
    for message, index, data in connection.execute(
        'SELECT message_id, "index", data_json FROM chat_parts ORDER BY "index"'
    ):
        messages[message].parts.append((index, json.loads(data)))
    connection.close()
    archived = {name for name, row in sessions.items() if row[1] is not None}
    hits = {one.id: _hits(one, asked) if one.session in sessions else []
            for one in messages.values()}
    found: list[tuple[int, str, int, str]] = []
    for one in messages.values():
        if hits[one.id] and not _copied(one, messages, hits, archived):
            found += [(one.at, one.id, index, one.session) for index in hits[one.id]]
    for name, (at, _, title) in sessions.items():
        if _is_title_hit(title, asked):
            found.append((at, name, -1, name))
    found.sort(key=lambda hit: hit[2])
    found.sort(key=lambda hit: hit[:2], reverse=True)
    apart = set() if asked.archived else archived
    return ([(hit[1], hit[2]) for hit in found if hit[3] not in apart],
            [(hit[1], hit[2]) for hit in found if hit[3] in apart])


def _copied(
    one: _Message, messages: dict[str, _Message], hits: dict[str, list[int]], archived: set[str]
) -> bool:
    original = one.metadata.get("inherited_from")
    while original in messages:
        parent = messages[original]
        if hits[parent.id] and (parent.session not in archived or one.session in archived):
            return True
        original = parent.metadata.get("inherited_from")
    return False


def _is_title_hit(title: str | None, asked: Asked) -> bool:
    if title is None or asked.role or asked.tool or asked.file or asked.hidden or asked.failed:
        return False
    if asked.places and "title" not in asked.places:
        return False
    if not title and (asked.terms or asked.places):
        return False
    return asked.terms_in(title) == asked.terms and not any(
        holds(title, word) for word in asked.without)


def _hits(message: _Message, asked: Asked) -> list[int]:
    only_titles = asked.places == ["title"]
    nothing_of_parts = not (asked.terms or asked.role or asked.tool or asked.file or asked.hidden
                            or asked.failed or asked.places)
    if only_titles or nothing_of_parts or ("hidden_at" in message.metadata) is not asked.hidden:
        return []
    if asked.role and message.role != asked.role:
        return []
    eligible: list[tuple[int, set[str]]] = []
    for index, data in message.parts:
        texts = [text for where, text in _texts(message, data)
                 if not asked.places or where in asked.places]
        if not _fits(data, asked) or any(holds(text, word) for text in texts
                                         for word in asked.without):
            continue
        if not texts and not (asked.tool or asked.file or asked.failed):
            continue
        eligible.append((index, asked.terms_in(*texts)))
    whole = [index for index, found in eligible if found == asked.terms]
    if whole or not asked.terms:
        return whole
    if set().union(*(found for _, found in eligible)) != asked.terms:
        return []
    most = max(len(found) for _, found in eligible)
    return [next(index for index, found in eligible if len(found) == most)]


def _fits(data: dict[str, Any], asked: Asked) -> bool:
    name = data["type"].removeprefix("tool-")
    is_call = name != data["type"]
    if asked.tool and not (is_call and (
        name in ("Bash", "exec_command") if asked.tool == "bash" else asked.tool in name.lower()
    )):
        return False
    if asked.file:
        path = data["input"].get("file_path") if is_call else None
        if path is None or folded(asked.file) not in folded(normpath(join("/w", path))):
            return False
    return not asked.failed or (is_call and data["state"] == "output-error")


def _texts(message: _Message, data: dict[str, Any]) -> list[tuple[str, str]]:
    if data["type"] in ("text", "reasoning"):
        typed = message.role == "user" and message.metadata.get("origin") != "meta"
        where = "reasoning" if data["type"] == "reasoning" else "prompt" if typed else "text"
        return [(where, data["text"])]
    output = data.get("errorText") or data.get("output")
    if isinstance(output, list):
        output = output[0]["text"]
    return [("input", *data["input"].values()), ("output", output)]
