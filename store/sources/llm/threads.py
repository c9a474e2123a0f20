"""What versions from 0.32 write: threads, which are places in a tree of messages.

Source: the llm format page, sections 2 (threads) and 4 (conversations of older versions that
were continued). A message says nothing of its time and its thread: the turns do, each of which
is one request to a model.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from store.sources.base.databases import decoded
from store.sources.base.protocol import Library
from store.sources.base.row_reader import Row, RowReader
from store.sources.base.row_session import RowSession
from store.sources.base.values import mapping, string
from store.sources.llm.legacy import nodes_of, read_legacy
from store.sources.llm.nodes import Node, Part, Request, filled, is_prompt

_TURN = (
    "id", "thread_id", "parent_message_hash", "tip_message_hash", "model", "resolved_model",
    "options_json", "schema_id", "input_tokens", "output_tokens", "token_details", "duration_ms",
    "datetime_utc",
)  # fmt: skip
_MOST_FORKS = 50


def turns_of(reader: RowReader, thread: str) -> list[Request]:
    """Return a thread's turns in order."""
    names = ", ".join(name for name in _TURN if name in reader.columns("turns"))
    rows = reader.rows(
        f"SELECT {names} FROM turns WHERE thread_id = $1 ORDER BY datetime_utc, id", thread
    )
    return [Request.of(row) for row in rows]


class Thread:
    """One thread: the messages that lead to its tip, and the branches that lost."""

    def __init__(
        self,
        reader: RowReader,
        session: RowSession,
        row: Row,
        library: Library,
        forks: tuple[str, ...] = (),
    ) -> None:
        """Read a thread.

        Args:
            reader: Runs the statements.
            session: Takes records and problems.
            row: Its row.
            library: Tells of a thread that this one was forked from and that is gone.
            forks: The threads that were forked from this one and are being read.
        """
        self._reader, self._session, self.row = reader, session, row
        self._library, self._forks = library, (*forks, session.id)
        self.turns = turns_of(reader, session.id)
        self.legacy = read_legacy(reader, session.id)
        chain = self._chain(row.get("tip_message_hash"), frozenset())
        self._path = [str(one["hash"]) for one in chain]
        self._texts: dict[int, str] = {}
        self.nodes = [self._node(one) for one in chain]
        self._take_lost_branches()
        self._take_times()
        self._take_requests()
        names = {id(node): node.name for node in self.nodes}
        self._take_older_requests()
        self._take_copies(names)
        times = filled([node.at for node in self.nodes])
        self.copied: dict[str, tuple[str, int]] = {
            names.get(id(node), node.name): (node.name, at)
            for node, at in zip(self.nodes, times, strict=True)
        }
        """By hash: what a message is called here, and when it was said."""

    def _chain(self, tip: object, until: frozenset[str]) -> list[Row]:
        """Return the messages that lead to one, the first one first.

        Args:
            tip: Its hash.
            until: Hashes that are not walked past, nor returned.
        """
        found: list[Row] = []
        seen: set[str] = set()
        name = string(tip)
        while name is not None and name not in seen and name not in until:
            seen.add(name)
            rows = self._reader.rows("SELECT * FROM messages WHERE hash = $1", name)
            if not rows:
                self._session.complain(f"message {name} is missing")
                break
            found.append(rows[0])
            name = string(rows[0].get("parent_hash"))
        return found[::-1]

    def _node(self, row: Row) -> Node:
        name = str(row["hash"])
        rows = self._reader.rows(
            "SELECT * FROM parts WHERE message_hash = $1 ORDER BY position, id", name
        )
        record = self._session.keep("messages", {**row, "parts": rows})
        parts = [self._part(name, one) for one in rows]
        return Node(name, string(row.get("role")) or "", parts, record)

    def _part(self, message: str, row: Row) -> Part:
        kind, text = string(row.get("type")) or "part", row.get("text")
        payload = decoded(row.get("payload"))
        if payload is not None and not isinstance(payload, dict):
            self._session.complain(f"part {row['id']} of message {message} holds no JSON object")
            payload = {"unreadable": payload}
        found: Part = {**mapping(payload), "type": kind}
        if kind == "attachment":
            return {"type": kind, "id": mapping(found.get("attachment")).get("id")}
        if kind == "tool_result":
            listed = found.get("attachments")
            found["attachments"] = [
                str(mapping(one).get("id")) for one in (listed if isinstance(listed, list) else ())
            ]
        if isinstance(text, str):
            found["text"] = text
        elif kind == "text" and isinstance(found.get("text_ref"), list):
            pieces = [mapping(one) for one in found.pop("text_ref")]
            found["text"] = "".join(self._piece(one) for one in pieces)
            typed = "".join(str(one["literal"]) for one in pieces if "literal" in one)
            if typed.strip() and typed != found["text"]:
                found["typed"] = typed.strip("\n")
        return found

    def _piece(self, piece: dict[str, Any]) -> str:
        """Return a literal, or the text of a fragment that a message borrows."""
        number = piece.get("fragment")
        if not isinstance(number, int):
            return string(piece.get("literal")) or ""
        if number not in self._texts:
            rows = self._reader.rows("SELECT content FROM fragments WHERE id = $1", number)
            if not rows:
                self._session.complain(f"fragment {number} is missing")
            self._texts[number] = (string(rows[0]["content"]) or "") if rows else ""
        return self._texts[number]

    def _take_lost_branches(self) -> None:
        """Add, after the message that they begin at, branches that another process ended."""
        on_path = frozenset(self._path)
        lost: set[str] = set()
        for turn in self.turns:
            tip = string(turn.row.get("tip_message_hash"))
            if tip is None or tip in on_path or tip in lost:
                continue
            branch = self._chain(tip, on_path | lost)
            if not branch:
                continue
            parent = string(branch[0].get("parent_hash"))
            names = [one.name for one in self.nodes]
            place = names.index(parent) + 1 if parent in names else 0
            while place < len(self.nodes) and self.nodes[place].name in lost:
                place += 1
            won = next((name for name in names[place:] if name in on_path), None)
            ends = [one.end for one in self.turns if self._is_after(one, won)]
            hidden_at = max(turn.at + 1, ends[0] if ends else turn.end)
            nodes = [self._node(one) for one in branch]
            for node in nodes:
                node.hidden_at = hidden_at
                lost.add(node.name)
            self.nodes[place:place] = nodes

    def _is_after(self, turn: Request, won: str | None) -> bool:
        """Return whether a turn ends on the path, at a message or after it."""
        tip = turn.row.get("tip_message_hash")
        return won is not None and tip in self._path[self._path.index(won) :]

    def _take_times(self) -> None:
        """Give messages the times of the turns that they were asked and answered in."""
        asked: dict[object, int] = {}
        answered: dict[object, tuple[int, int]] = {}
        for turn in self.turns:
            asked.setdefault(turn.row.get("parent_message_hash"), turn.at)
            answered.setdefault(turn.row.get("tip_message_hash"), (turn.at, turn.end))
        for node in self.nodes:
            node.at, node.end = answered.get(node.name) or (asked.get(node.name, 0),) * 2

    def _take_requests(self) -> None:
        """Give each turn to the message that it ended with."""
        nodes = {node.name: node for node in self.nodes}
        for turn in self.turns:
            node = nodes.get(str(turn.row.get("tip_message_hash")))
            if node is not None:
                node.requests.append(turn)
                continue
            self._session.complain(f"the answer of turn {turn.name} is missing")
            record = self._session.keep("turns", turn.row)
            self.nodes.append(
                Node(turn.name, "assistant", [], record, turn.at, turn.end, [turn])
            )

    def _old_end(self) -> int:
        """Return how many messages of the path were there before the thread's first own turn."""
        asked = [turn.row.get("parent_message_hash") for turn in self.turns]
        places = [self._path.index(str(one)) for one in asked if one in self._path]
        if not places:
            return len(self._path)
        roles = {node.name: node.role for node in self.nodes}
        end = min(places) + 1
        while end and roles[self._path[end - 1]] in ("user", "tool"):
            end -= 1
        return end

    def _take_older_requests(self) -> None:
        """Give what was a conversation of an older version its requests, times and names."""
        if not self.legacy.requests:
            return
        nodes = {node.name: node for node in self.nodes}
        old = [nodes[name] for name in self._path[: self._old_end()]]
        if not any(node.role == "assistant" for node in old):
            # The path does not hold what was said before: it is shown first.
            self.nodes[:0] = nodes_of(self._session, self.legacy)
            return
        for node, request in older_answers(old, self.legacy.requests):
            node.requests.insert(0, request)
            node.at, node.end = request.at, request.end
        for name, new in older_names(old, self.legacy.requests).items():
            nodes[name].name = new
        wrong = self.legacy.exceptions()
        for node in old:
            for part in node.parts:
                if part["type"] == "tool_result" and part.get("tool_call_id") in wrong:
                    part.setdefault("exception", wrong[part["tool_call_id"]])

    def _take_copies(self, hashes: Mapping[int, str]) -> None:
        """Note where the messages before a fork's own are from, with their times there.

        Args:
            hashes: By message: its hash.
        """
        parent = string(self.row.get("forked_from"))
        if parent is None:
            return
        known = frozenset(self._path[: self._old_end()])
        copies = [node for node in self.nodes if hashes.get(id(node)) in known]
        originals = self._originals(parent, copies)
        for node in copies:
            name = hashes[id(node)]
            if not originals or name in originals:
                node.inherited_from, at = originals.get(name, (name, 0))
                node.at = node.end = at or node.at

    def _originals(self, parent: str, copies: list[Node]) -> dict[str, tuple[str, int]]:
        """Return by hash what messages of another thread are called, and when they were said."""
        rows = self._reader.rows("SELECT * FROM threads WHERE id = $1", parent)
        if rows and parent not in self._forks and len(self._forks) < _MOST_FORKS:
            session = RowSession(parent, self._session.path)
            return Thread(self._reader, session, rows[0], self._library, self._forks).copied
        told = {one.name: (one.name, one.created_at) for one in self._library.messages(parent)}
        said = [node for node in copies if node.role in ("user", "assistant")]
        if not any(node.name in told for node in said):
            # It was begun by an older version: there its messages have other names.
            for node, same in zip(said, self._library.messages(parent), strict=False):
                if same.role == node.role:
                    told[node.name] = (same.name, same.created_at)
        return told


def older_answers(
    nodes: Sequence[Node], requests: Sequence[Request]
) -> list[tuple[Node, Request]]:
    """Return which older request each answer of a continued conversation is of, in order.

    Requests without a message of their own are counted with the last one. There is one.
    """
    answers = [node for node in nodes if node.role == "assistant"]
    return [
        (answers[min(place, len(answers) - 1)], request)
        for place, request in enumerate(requests)
    ]


def older_names(nodes: Sequence[Node], requests: Sequence[Request]) -> dict[str, str]:
    """Return what messages were called before their conversation was continued.

    Args:
        nodes: The messages that were there before.
        requests: The older version's requests.
    """
    names: dict[str, str] = {}
    place = 0
    for node in nodes:
        if place >= len(requests):
            break
        if node.role == "assistant":
            names[node.name] = requests[place].name
            place += 1
        elif is_prompt(node):
            names[node.name] = f"{requests[place].name}:prompt"
    return names


def threads_there(reader: RowReader) -> bool:
    """Return whether a database has the tables of threads."""
    return all(
        reader.columns(table) >= needed for table, needed in {
            "threads": {"id", "name", "tip_message_hash"},
            "turns": {"id", "thread_id", "parent_message_hash", "tip_message_hash"},
            "messages": {"hash", "parent_hash", "role"},
            "parts": {"message_hash", "position", "type", "text", "payload"},
        }.items()
    )  # fmt: skip
