"""Two branches beside each other, turn by turn, from where they part."""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import zip_longest
from typing import Any

from store.conversation.turns import starts_turn
from store.engine.database import Database
from store.engine.values import decoded
from store.errors import Refused
from store.queries.context import visible_ids
from store.rows import is_tool_type
from store.usage import spent_of

_TOLD = ("toolName", "toolCallId", "input", "rawInput")
"""What of a tool part tells which call it was; what came out may be long, and is left."""


@dataclass(slots=True)
class BranchTurn:
    """One turn of a branch: a prompt and all that answered it.

    Attributes:
        message_id: The turn's first message.
        prompt: The text of the user message; empty where the turn has none.
        answer: The text of the assistant, joined.
        calls: Its tool calls in order: the names of the tools.
        failed: How many of the calls failed, were denied or broken off.
        tokens: Sum of all five buckets.
        parts: The same calls, as their parts without what came out of them.
    """

    message_id: str
    prompt: str = ""
    answer: str = ""
    calls: list[str] = field(default_factory=list)
    failed: int = 0
    tokens: int = 0
    parts: list[dict[str, object]] = field(default_factory=list, compare=False)


@dataclass(frozen=True, slots=True)
class Comparison:
    """Two branches.

    Attributes:
        common_messages: How many messages both begin with.
        common_turns: How many whole turns that is.
        rows: The turns after that, side by side; None where a branch has no more.
    """

    common_messages: int
    common_turns: int
    rows: list[tuple[BranchTurn | None, BranchTurn | None]]


def compare(db: Database, left: str, right: str) -> Comparison:
    """Compare the visible messages of two branches of one family.

    Messages are the same where one is a copy of the other, or both are copies of one.

    Args:
        db: The store.
        left: One session.
        right: The other session.

    Raises:
        Refused: The branches have no message in common.
    """
    left_ids, right_ids = visible_ids(db, left), visible_ids(db, right)
    origins = _Origins(db)
    common = 0
    for a, b in zip(left_ids, right_ids, strict=False):
        if origins.of(a) != origins.of(b):
            break
        common += 1
    if not common:
        raise Refused("these sessions have no message in common, so there is nothing to compare")
    shared = _turns(db, left, left_ids[:common])
    rest = (_turns(db, left, left_ids[common:]), _turns(db, right, right_ids[common:]))
    return Comparison(common, len(shared), list(zip_longest(*rest)))


class _Origins:
    """Follows ``metadata_json.inherited_from`` to the first message of a line of copies."""

    def __init__(self, db: Database) -> None:
        self._db = db
        self._known: dict[str, str] = {}

    def of(self, message_id: str) -> str:
        trail = [message_id]
        while (current := trail[-1]) not in self._known:
            row = self._db.connection.execute(
                f"SELECT {self._db.form.rare_fact('m', 'inherited_from')} FROM chat_messages m"
                " WHERE m.id = $1",
                {"1": current},
            ).fetchone()
            before = row[0] if row else None
            if not isinstance(before, str) or before in trail:
                self._known[current] = current
                break
            trail.append(before)
        origin = self._known[trail[-1]]
        self._known.update(dict.fromkeys(trail, origin))
        return origin


def _turns(db: Database, session_id: str, message_ids: list[str]) -> list[BranchTurn]:
    wanted = set(message_ids)
    turns: list[BranchTurn] = []
    rows = db.connection.execute(
        "SELECT m.id, m.role, m.metadata_json, p.type, p.tool_state, p.data_json"
        " FROM chat_messages m LEFT JOIN chat_parts p ON p.message_id = m.id"
        ' WHERE m.session_id = $1 ORDER BY m.created_at, m.id, p."index"',
        {"1": session_id},
    )
    current = ""
    for message_id, role, metadata, kind, state, data in rows:
        if message_id not in wanted:
            continue
        bag = decoded(metadata)
        if message_id != current:
            current = message_id
            prompt = starts_turn(role, bag)
            if prompt or not turns:
                turns.append(BranchTurn(message_id))
            if role == "assistant":
                turns[-1].tokens += spent_of(bag).total
        _add_part(turns[-1], role, kind, state, data)
    return turns


def _add_part(
    turn: BranchTurn, role: str, kind: str | None, state: str | None, data: str | None
) -> None:
    if kind == "text":
        words = decoded(data).get("text")
        if isinstance(words, str) and role == "user":
            turn.prompt += words
        elif isinstance(words, str):
            turn.answer = f"{turn.answer}\n{words}" if turn.answer else words
    elif kind is not None and is_tool_type(kind):
        part = decoded(data)
        dynamic = kind == "dynamic-tool"
        turn.calls.append(str(part.get("toolName", "tool")) if dynamic else kind[5:])
        ended = _ended(part)
        turn.parts.append(
            {"type": kind, "state": state, "resultProviderMetadata": {"backscroll": ended}}
            | {k: part[k] for k in _TOLD if k in part}
        )
        turn.failed += (
            state in ("output-error", "output-denied")
            or ended.get("status") in ("error", "denied", "interrupted")
            or ended.get("exit_code") not in (None, 0)
        )


def _ended(part: dict[str, Any]) -> dict[str, object]:
    """Return what is known of how a call ended, also of one that its agent named completed."""
    extras = part.get("resultProviderMetadata")
    own = extras.get("backscroll") if isinstance(extras, dict) else None
    return {k: own[k] for k in ("status", "exit_code") if k in own} if isinstance(own, dict) else {}
