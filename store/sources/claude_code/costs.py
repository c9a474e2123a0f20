"""What a session's file says that it cost: running totals, noted from time to time.

A ``cost-state`` note holds the total of a counter that began at its ``startTime``. A fork
continues with its parent's counter, so totals of one counter are never added up: each answer
keeps the total that was noted after it, and what a fork began with is read from the answers
that it shares with its parent.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from store.sources.base.drafts import SessionDraft
from store.sources.claude_code.rows import mapping

_MOST_DOLLARS = 1e9
_MOST_MODELS = 64
_LONGEST_NAME = 256


@dataclass(frozen=True, slots=True)
class CostNote:
    """A ``cost-state`` note.

    Attributes:
        number: Its place among the file's records.
        counter: Which counter it is of; empty where it does not say.
        usd: The counter's total, dollars.
        models: What each model has of that, requests that no message shows included.
    """

    number: int
    counter: str
    usd: float
    models: dict[str, float] = field(default_factory=dict)


def cost_note(number: int, note: dict[str, Any]) -> CostNote | None:
    """Return what a ``cost-state`` note says; None without a total."""
    usd = _dollars(note.get("totalCostUSD"))
    if usd is None:
        return None
    started = note.get("startTime")
    models: dict[str, float] = {}
    for model, used in mapping(note.get("modelUsage")).items():
        cost = _dollars(mapping(used).get("costUSD"))
        if cost and len(model) <= _LONGEST_NAME and len(models) < _MOST_MODELS:
            models[model] = cost
    return CostNote(number, "" if started is None else str(started), usd, models)


def _dollars(value: object) -> float | None:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return float(value) if abs(value) < _MOST_DOLLARS else None


def add_costs(draft: SessionDraft, notes: list[CostNote]) -> None:
    """Add the totals to the session, and to the answers that they were noted after."""
    if not notes:
        return
    totals: dict[str, float] = {}
    for note in notes:
        totals[note.counter] = max(note.usd, totals.get(note.counter, 0.0))
    extra = draft.metadata.setdefault("backscroll", {})
    extra["cost"] = {"usd": sum(totals.values()), "from": "cost-state", "totals": totals}
    answers = [
        (message.parts[0].records[0], message)
        for message in draft.messages
        if message.role == "assistant" and message.parts and message.parts[0].records
    ]
    answers.sort(key=lambda answer: answer[0])
    place = 0
    for note in notes:
        while place < len(answers) and answers[place][0] < note.number:
            place += 1
        if place:
            own = answers[place - 1][1].metadata
            told: dict[str, Any] = {"usd": note.usd, "counter": note.counter}
            if note.models:
                told["models"] = note.models
            own["backscroll"] = {**mapping(own.get("backscroll")), "cost_so_far": told}
