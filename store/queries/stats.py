"""What sessions cost: what was spent, each copy counted once, and what is in context now.

Spent and context are two things and never added: spent sums up the usage of every answer
of the model, hidden ones too; context is what the newest visible answer was given and
gave, which is what the next one will start from.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Literal

from store.engine.database import Database
from store.engine.values import amount, decoded, number
from store.queries.list_keys import day_of
from store.queries.shared_answers import SharedAnswers, shared_answers
from store.queries.transcript import last_usage
from store.usage import KEYS, Spent, bucket_sql, context_size

Grouping = Literal["all", "agent", "source", "workspace", "model", "day", "session"]
GROUPINGS: tuple[Grouping, ...] = (
    "all", "agent", "source", "workspace", "model", "day", "session",
)  # fmt: skip
_AS_IT_IS = Spent()
_LEAST_COST = 1e-9
"""Dollars; less than that is what sums of fractions differ by."""


@dataclass(slots=True)
class Spending:
    """What one group of sessions spent.

    Attributes:
        sessions: Sessions with an answer in this group.
        answers: Assistant messages, copies left out.
        copies: Assistant messages that are copies of counted ones.
        spent: Tokens by bucket: input, output, reasoning, cache_read, cache_write.
        cost_usd: What sources said it cost, copies counted once; 0 where none says.
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

    An answer that several messages hold is counted once, for the one that had it first; see
    ``store.queries.shared_answers``.

    Args:
        db: The store.
        by: What to group by; days are local, by the time of the answer.
        session_ids: Only these sessions; copies of others' messages count nothing then too.
    """
    groups: dict[str, Spending] = {}
    members: dict[str, set[str]] = {}
    bills: dict[str, _Bill] = {}
    shared = shared_answers(db, session_ids)
    for message_id, session_id, group, at, said, *values in _answers(db, by, session_ids):
        name = day_of(number(at)) if by == "day" else str(group or "")
        entry = groups.setdefault(name, Spending(name))
        members.setdefault(name, set()).add(session_id)
        bill = bills.setdefault(session_id, _Bill())
        bill.told += said
        usage = shared.usage.get(message_id, _AS_IT_IS)
        if usage is None:
            entry.copies += 1
            continue
        if usage is not _AS_IT_IS:
            said, values = usage.cost or 0.0, list(usage.tokens)
        entry.answers += 1
        entry.cost_usd += said
        for key, value in zip(KEYS, values, strict=True):
            entry.spent[key] += value
        bill.groups[name] = bill.groups.get(name, 0) + sum(values)
    for name, entry in groups.items():
        entry.sessions = len(members[name])
    if by != "day":
        _add_untold(db, groups, bills, shared)
    return sorted(groups.values(), key=lambda entry: (-entry.total, entry.group))


@dataclass(slots=True)
class _Bill:
    """What a session's answers say that they cost, and the tokens that groups have of it."""

    told: float = 0.0
    groups: dict[str, int] = field(default_factory=dict)


def _answers(
    db: Database, by: Grouping, session_ids: Sequence[str] | None
) -> Iterator[tuple[str, str, str | None, int, float, int, int, int, int, int]]:
    form = db.form
    columns: dict[Grouping, str] = {
        "all": "''", "day": "''", "agent": "s.agent", "workspace": "s.workspace_root",
        "source": form.source_kind("s"), "session": "s.id",
        "model": f"coalesce({form.fact('m', 'model.model_id')}, CASE WHEN json_valid(s.model_json)"
        " THEN json_extract(s.model_json, '$.model_id') END)",
    }  # fmt: skip
    said = form.fact("m", "cost_usd")
    sums = ", ".join(bucket_sql("m", key) for key in KEYS)
    only = "" if session_ids is None else f" AND s.id IN ({','.join('?' * len(session_ids))})"
    cursor = db.connection.execute(
        f"SELECT m.id, s.id, {columns[by]}, m.created_at,"
        f" CASE WHEN typeof({said}) IN ('integer', 'real') THEN {said} ELSE 0.0 END, {sums}"
        " FROM chat_sessions s JOIN chat_messages m ON m.session_id = s.id"
        f" WHERE m.role = 'assistant'{only}",
        tuple(session_ids or ()),
    )
    while rows := cursor.fetchmany(1000):
        yield from rows


def _add_untold(
    db: Database, groups: dict[str, Spending], bills: dict[str, _Bill], shared: SharedAnswers
) -> None:
    """Add what a session cost beyond what its answers tell, to where most of it was spent."""
    for session_id, bill in bills.items():
        if not bill.groups:
            continue
        row = db.connection.execute(
            "SELECT cost_usd, metadata_json FROM chat_sessions WHERE id = $1", {"1": session_id}
        ).fetchone()
        rest = (amount(row[0]) or _total_of(session_id, row[1], shared)) - bill.told
        if rest > _LEAST_COST:
            groups[max(bill.groups, key=lambda name: bill.groups[name])].cost_usd += rest


def _total_of(session_id: str, metadata_json: str, shared: SharedAnswers) -> float:
    """Return what a session itself added to the running totals that its source keeps."""
    own = decoded(metadata_json).get("backscroll")
    cost = own.get("cost") if isinstance(own, dict) else None
    if not isinstance(cost, dict):
        return 0.0
    totals = cost.get("totals")
    if not isinstance(totals, dict):
        return amount(cost.get("usd"))
    return sum(
        max(0.0, amount(dollars) - shared.begun_at.get((session_id, counter), 0.0))
        for counter, dollars in totals.items()
    )


def context_tokens(db: Database, session_id: str) -> int | None:
    """Return how many tokens are in a session's context now; None where nothing tells.

    What the newest visible answer was given and gave itself; after a compaction its summary.
    """
    text = last_usage(db, session_id)
    return None if text is None else context_size(decoded(text))
