"""What sessions cost: what was spent, each copy counted once, and what is in context now.

Spent and context are two things and never added: spent sums up the usage of every answer
of the model, hidden ones too; context is what the newest visible answer was given and
gave, which is what the next one will start from.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Literal

from store.database import Database
from store.queries.list_keys import day_of
from store.queries.transcript import last_usage
from store.verbs.rollups import BUCKETS, bucket

Grouping = Literal["all", "agent", "source", "workspace", "model", "day", "session"]
GROUPINGS: tuple[Grouping, ...] = (
    "all", "agent", "source", "workspace", "model", "day", "session",
)  # fmt: skip
KEYS = tuple(BUCKETS.values())


@dataclass(slots=True)
class Spending:
    """What one group of sessions spent.

    Attributes:
        sessions: Sessions with an answer in this group.
        answers: Assistant messages, copies left out.
        copies: Assistant messages that are copies of counted ones.
        spent: Tokens by bucket: input, output, reasoning, cache_read, cache_write.
        cost_usd: What sources said it cost; 0 where none says.
    """

    group: str
    sessions: int = 0
    answers: int = 0
    copies: int = 0
    spent: dict[str, int] = field(default_factory=lambda: dict.fromkeys(KEYS, 0))
    cost_usd: float = 0.0

    @property
    def total(self) -> int:
        """All tokens that were spent."""
        return sum(self.spent.values())


def spending(
    db: Database, *, by: Grouping = "all", session_ids: Sequence[str] | None = None
) -> list[Spending]:
    """Return what was spent, the dearest group first.

    A copy is not counted where its original is in the store too. Of copies whose original
    is gone, one is counted.

    Args:
        db: The store.
        by: What to group by; days are local, by the time of the answer.
        session_ids: Only these sessions; copies of others' messages count nothing then too.
    """
    groups: dict[str, Spending] = {}
    members: dict[str, set[str]] = {}
    counted_for: set[str] = set()
    for session_id, group, origin, has_original, at, *values in _answers(db, by, session_ids):
        name = day_of(at) if by == "day" else str(group or "")
        entry = groups.setdefault(name, Spending(name))
        members.setdefault(name, set()).add(session_id)
        if origin is not None and (has_original or origin in counted_for):
            entry.copies += 1
            continue
        if origin is not None:
            counted_for.add(origin)
        entry.answers += 1
        for key, value in zip(KEYS, values, strict=True):
            entry.spent[key] += value
    for name, entry in groups.items():
        entry.sessions = len(members[name])
        if by != "day":
            entry.cost_usd = _cost(db, members[name])
    return sorted(groups.values(), key=lambda entry: (-entry.total, entry.group))


def _answers(
    db: Database, by: Grouping, session_ids: Sequence[str] | None
) -> Iterator[tuple[str, str | None, str | None, int, int, int, int, int, int, int]]:
    form = db.form
    columns: dict[Grouping, str] = {
        "all": "''", "day": "''", "agent": "s.agent", "workspace": "s.workspace_root",
        "source": form.source_kind("s"), "session": "s.id",
        "model": f"coalesce({form.fact('m', 'model.model_id')}, CASE WHEN json_valid(s.model_json)"
        " THEN json_extract(s.model_json, '$.model_id') END)",
    }  # fmt: skip
    origin = form.rare_fact("m", "inherited_from")
    sums = ", ".join(bucket("m", key) for key in KEYS)
    only = "" if session_ids is None else f" AND s.id IN ({','.join('?' * len(session_ids))})"
    cursor = db.connection.execute(
        f"SELECT s.id, {columns[by]}, {origin},"
        f" EXISTS (SELECT 1 FROM chat_messages o WHERE o.id = {origin}), m.created_at, {sums}"
        " FROM chat_sessions s JOIN chat_messages m ON m.session_id = s.id"
        f" WHERE m.role = 'assistant'{only}",
        tuple(session_ids or ()),
    )
    while rows := cursor.fetchmany(1000):
        yield from rows


def _cost(db: Database, session_ids: set[str]) -> float:
    stored = db.form.fact("s", "backscroll.cost.usd")
    return sum(
        float(row[0] or row[1] or 0)
        for session_id in session_ids
        for row in db.connection.execute(
            f"SELECT s.cost_usd, {stored} FROM chat_sessions s WHERE s.id = $1", {"1": session_id}
        )
    )


def context_tokens(db: Database, session_id: str) -> int | None:
    """Return how many tokens are in a session's context now; None where nothing tells.

    The newest visible answer's input, both cache buckets and what it gave itself.
    """
    text = last_usage(db, session_id)
    if text is None:
        return None
    sums = " + ".join(bucket("m", key) for key in KEYS)
    row = db.connection.execute(
        f"SELECT {sums} FROM (SELECT $1 AS metadata_json) m", {"1": text}
    ).fetchone()
    return int(row[0])
