"""What answers cost by the running totals that a source notes after them.

A source may keep one counter of dollars, for all requests of a session, and note it from time
to time (``metadata_json.backscroll.cost_so_far`` of the answer before). A fork continues its
parent's counter. So a session's costs are the differences between the notes of a counter,
from what the counter had when the session began.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from store.engine.values import amount

_LEAST_COST = 1e-9
"""Dollars; less than that is what sums of fractions differ by."""


@dataclass(frozen=True, slots=True)
class CostSoFar:
    """What a source noted after an answer.

    Attributes:
        counter: Which counter it is of.
        usd: The counter's total, dollars.
        models: What each model has of that; empty where the source does not tell.
    """

    counter: str
    usd: float
    models: dict[str, float] = field(default_factory=dict)


def cost_so_far(noted: object) -> CostSoFar | None:
    """Return what ``backscroll.cost_so_far`` of an answer says; None where that is nothing."""
    if not isinstance(noted, Mapping) or "usd" not in noted:
        return None
    models = noted.get("models")
    by_model = {
        str(model): amount(usd) for model, usd in models.items() if amount(usd) > 0
    } if isinstance(models, Mapping) else {}  # fmt: skip
    return CostSoFar(str(noted.get("counter")), amount(noted.get("usd")), by_model)


class OwnCost(NamedTuple):
    """Dollars that a session spent until an answer, since the note before.

    Attributes:
        at: When that answer began, epoch ms.
        model: The model that they were spent on.
    """

    at: int
    model: str
    usd: float


class RunningTotals:
    """Takes the notes of one session, in any order, and returns what it spent by them."""

    def __init__(self) -> None:
        """Start without a note."""
        self._notes: defaultdict[str, list[tuple[CostSoFar, int, str]]] = defaultdict(list)

    def __bool__(self) -> bool:
        """Return whether anything was noted."""
        return bool(self._notes)

    def take(self, at: int, model: str, metadata: Mapping[str, Any]) -> None:
        """Take what was noted after an answer, if anything was.

        Args:
            at: When the answer began, epoch ms.
            model: The answer's model.
            metadata: The answer's decoded ``metadata_json``.
        """
        own = metadata.get("backscroll")
        noted = cost_so_far(own.get("cost_so_far")) if isinstance(own, Mapping) else None
        if noted is not None:
            self._notes[noted.counter].append((noted, at, model))

    def costs(
        self,
        session_id: str,
        begun_at: Mapping[tuple[str, str], float],
        begun_models: Mapping[tuple[str, str], Mapping[str, float]],
    ) -> list[OwnCost]:
        """Return what the session spent, by time and model.

        Args:
            session_id: The session.
            begun_at: ``SharedAnswers.begun_at``: what counters had when it began.
            begun_models: ``SharedAnswers.begun_models``.
        """
        found: list[OwnCost] = []
        for counter, notes in self._notes.items():
            key = session_id, counter
            before = begun_at.get(key, 0.0)
            spent: Mapping[str, float] = begun_models.get(key, {})
            # A counter only grows, so its notes are in order by what they say.
            for noted, at, model in sorted(notes, key=lambda note: (note[0].usd, note[1])):
                if noted.usd - before > _LEAST_COST:
                    found += _shares(noted, noted.usd - before, spent, OwnCost(at, model, 0.0))
                    before, spent = noted.usd, noted.models
        return sorted(found)


def _shares(
    noted: CostSoFar, usd: float, before: Mapping[str, float], answer: OwnCost
) -> Iterator[OwnCost]:
    """Share out what was spent since a note among the models; the rest is the answer's."""
    grown = {
        model: more for model, total in noted.models.items()
        if (more := total - before.get(model, 0.0)) > _LEAST_COST
    }  # fmt: skip
    known = sum(grown.values())
    # Models that grew by more than the whole are told against notes without models.
    factor = usd / known if known > usd else 1.0
    for model, more in grown.items():
        yield answer._replace(model=model, usd=more * factor)
    rest = usd - known * factor
    if rest > _LEAST_COST:
        yield answer._replace(usd=rest)
