"""Counts one session: its answers, calls and turns by quarter of an hour.

A quarter hour is the largest span of which the days and hours of every time zone consist.
An answer that several messages hold is counted once; ``store.queries.shared_answers`` decides
by which of them. The calls of such a copy are not counted again either.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from store.conversation.outcomes import outcome_of, tool_name
from store.conversation.turns import starts_turn
from store.engine.database import Database
from store.engine.values import decoded, number, text
from store.prices.estimating import usage_details
from store.prices.table import REQUEST_SIZES
from store.queries.details import messages_of
from store.queries.running_totals import OwnCost, RunningTotals
from store.queries.shared_answers import SharedAnswers
from store.usage import MOST_SPENT, Spent, spent_of

QUARTER_MS = 900_000
LONGEST_PAUSE_MS = 600_000
"""A longer gap in a turn is a wait for the user, and no active time."""
LONGEST_TURNS = 5
"""Of each session so many turns are kept by name."""
MOST_TOKENS = 1 << 40
"""Of one answer and bucket; more is damage, and sums of it would overflow."""
_LEAST_COST = 1e-9
"""Dollars; less than that is what sums of fractions differ by."""
UNTOLD, TOLD, COVERED = 0, 1, 2
"""Of an answer's cost: unknown; in the answer itself; part of what the session tells."""


class Charge(NamedTuple):
    """What answers have in common that are priced alike.

    Attributes:
        told: ``UNTOLD``, ``TOLD`` or ``COVERED``.
        size: How many of ``REQUEST_SIZES`` the request's input exceeds.
        present: A bit for each kind of tokens that has a price and is not 0: input, output,
            cache read, cache written, and cache written for an hour. A price that is unknown
            does no harm where there are none.
    """

    model: str
    provider: str
    tier: str
    told: int
    size: int = 0
    present: int = 0


@dataclass(slots=True)
class SpentRow:
    """Answers of one session, quarter hour and charge.

    Attributes:
        tokens: The five buckets.
        cache_write_1h: Of the last of these, what is kept for an hour.
        usd: What was told.
    """

    answers: int = 0
    copies: int = 0
    tokens: list[int] = field(default_factory=lambda: [0, 0, 0, 0, 0])
    cache_write_1h: int = 0
    usd: float = 0.0


@dataclass(slots=True)
class CalledRow:
    """Calls of one session, quarter hour and tool; ``timed`` of them have a duration."""

    calls: int = 0
    failed: int = 0
    denied: int = 0
    timed: int = 0
    milliseconds: int = 0


@dataclass(slots=True)
class TurnedRow:
    """Turns that began in one quarter hour of a session."""

    turns: int = 0
    active_ms: int = 0


class LongTurn(NamedTuple):
    """One of the longest turns of a session."""

    milliseconds: int
    message_id: str
    at: int


@dataclass(slots=True)
class SessionFacts:
    """Everything that is counted of one session, by quarter hour since 1970.

    Attributes:
        called: By tool and by the model that called it.
        turned: By the model that answered first.
    """

    spent: defaultdict[tuple[int, Charge], SpentRow] = field(
        default_factory=lambda: defaultdict(SpentRow)
    )
    called: defaultdict[tuple[int, str, str], CalledRow] = field(
        default_factory=lambda: defaultdict(CalledRow)
    )
    turned: defaultdict[tuple[int, str], TurnedRow] = field(
        default_factory=lambda: defaultdict(TurnedRow)
    )
    longest: list[LongTurn] = field(default_factory=list)


class SessionInfo(NamedTuple):
    """What sessions are grouped by.

    Attributes:
        parent: The id of the session that it comes from; "" without one.
        cost_usd: The column of that name, the sum over the answers at least.
    """

    id: str
    agent: str
    source: str
    workspace: str
    branch: str
    parent: str
    title: str
    model: str
    provider: str
    updated_at: int
    cost_usd: float
    metadata: dict[str, Any]


@dataclass(frozen=True, slots=True)
class During:
    """A span of time that is not made of whole quarter hours, epoch ms, its end excluded."""

    start: int
    end: int

    def holds(self, at: int) -> bool:
        """Return whether a moment is in it."""
        return self.start <= at < self.end


def session_infos(db: Database, session_ids: Sequence[str] | None = None) -> Iterator[SessionInfo]:
    """Yield what sessions are grouped by.

    Args:
        db: The store.
        session_ids: Only these; None for all.
    """
    title = db.form.title("s")
    columns = (
        f"SELECT s.id, s.agent, s.workspace_root, s.parent_id, {title}, s.model_json,"
        " s.updated_at, s.cost_usd, s.metadata_json FROM chat_sessions s"
    )
    if session_ids is None:
        yield from map(_info, db.connection.execute(columns))
        return
    for session_id in session_ids:
        row = db.connection.execute(f"{columns} WHERE s.id = ?", (session_id,)).fetchone()
        if row is not None:
            yield _info(row)


def _info(row: tuple[Any, ...]) -> SessionInfo:
    session_id, agent, workspace, parent, title, model_json, updated_at, cost, metadata_json = row
    metadata, model = decoded(text(metadata_json)), decoded(text(model_json))
    source = metadata.get("source")
    return SessionInfo(
        text(session_id) or "", text(agent) or "",
        _word(source.get("kind")) if isinstance(source, dict) else "",
        text(workspace) or "", _word(metadata.get("git_branch")), text(parent) or "",
        text(title) or "", _word(model.get("model_id")), _word(model.get("provider_id")),
        number(updated_at), _dollars(cost) or 0.0, metadata,
    )  # fmt: skip


def _word(value: Any) -> str:
    """Return a name as the tables have it: two that differ in what no text can hold are one."""
    name = value if isinstance(value, str) else "" if value is None else str(value)
    return name.encode("utf-8", "replace").decode()


def count_session(
    db: Database, info: SessionInfo, shared: SharedAnswers, during: During | None = None
) -> SessionFacts:
    """Return what is counted of one session.

    Args:
        db: The store.
        info: The session.
        shared: How the answers are counted that several messages hold.
        during: Only what happened in this span.
    """
    counting = _Counting(info, shared, during, _covered_until(db, info))
    for message_id, role, _, at, metadata in messages_of(db, info.id):
        counting.message(message_id, role, at, metadata)
    counting.calls(_parts(db, info.id))
    counting.finish()
    return counting.facts


def _covered_until(db: Database, info: SessionInfo) -> int:
    """Return until when a subagent's answers are in the totals that its starter's source notes.

    Such a total is of all requests of a program, so a subagent's cost would be counted twice.
    Returns -1 where nothing is noted.
    """
    seen: set[str] = set()
    until = -1
    while _is_subagent(info.metadata) and info.parent and info.parent not in seen:
        seen.add(info.parent)
        above = next(session_infos(db, [info.parent]), None)
        if above is None:
            break
        info = above
        if _cost(info).get("totals"):
            (last,) = db.connection.execute(
                "SELECT max(m.created_at) FROM chat_messages m WHERE m.session_id = ? AND"
                " m.role = 'assistant' AND"
                f" {db.sql.amount('m.metadata_json', 'backscroll.cost_so_far.usd')} > 0",
                (info.id,),
            ).fetchone()
            until = max(until, number(last) if last is not None else -1)
    return until


def _is_subagent(metadata: Mapping[str, Any]) -> bool:
    lineage = metadata.get("lineage")
    return isinstance(lineage, dict) and lineage.get("kind") == "subagent"


def covered_subagents(db: Database, session_ids: Iterable[str]) -> set[str]:
    """Return the subagents whose cost may be in the totals that sessions' source notes.

    Args:
        db: The store.
        session_ids: The sessions that changed.
    """
    waiting = [
        info.id for session_id in session_ids for info in session_infos(db, [session_id])
        if _cost(info).get("totals")
    ]  # fmt: skip
    found: set[str] = set()
    while waiting:
        below = {
            text(row[0]) or "" for session_id in waiting for row in db.connection.execute(
                "SELECT s.id FROM chat_sessions s WHERE s.parent_id = ?"
                f" AND {db.form.fact('s', 'lineage.kind')} = 'subagent'", (session_id,),
            )
        }  # fmt: skip
        waiting = sorted(below - found)
        found |= below
    return found


def _parts(db: Database, session_id: str) -> Iterable[tuple[Any, ...]]:
    return db.connection.execute(
        "SELECT message_id, type, created_at, updated_at, CASE WHEN type = 'dynamic-tool' OR"
        " substr(type, 1, 5) = 'tool-' THEN data_json END FROM chat_parts WHERE session_id = ?",
        (session_id,),
    )


@dataclass(slots=True)
class _Turn:
    message_id: str
    at: int
    copied: bool
    model: str | None = None
    moments: list[int] = field(default_factory=list)


class _Counting:
    """Counts a session, message by message."""

    def __init__(
        self, info: SessionInfo, shared: SharedAnswers, during: During | None, covered_until: int
    ) -> None:
        self.facts = SessionFacts()
        self._info, self._shared, self._during = info, shared, during
        self._turns: list[_Turn] = []
        self._messages: dict[str, tuple[int, _Turn | None, str | None]] = {}
        self._told = 0.0
        self._notes = RunningTotals()
        self._waiting: list[tuple[int, Charge, Spent, int]] = []
        self._tokens: defaultdict[tuple[int, str, str], int] = defaultdict(int)
        self._covered_until = covered_until
        self._last: tuple[int, str, str] | None = None

    def message(self, message_id: str, role: str, at: int, metadata: Mapping[str, Any]) -> None:
        """Count a message."""
        queued = isinstance(metadata.get("queued_at"), int | float)
        if starts_turn(role, metadata):
            self._turns.append(_Turn(message_id, at, "inherited_from" in metadata))
        turn = self._turns[-1] if self._turns and not queued else None
        if turn is not None:
            turn.moments.append(at)
        model, provider = self._model_of(metadata)
        is_copy = self._shared.usage.get(message_id, message_id) is None
        self._messages[message_id] = at, turn, None if is_copy else model
        if role == "assistant":
            if turn is not None and turn.model is None:
                turn.model = model
                turn.copied |= is_copy
            self._answer(message_id, at, metadata, model, provider)

    def _answer(
        self, message_id: str, at: int, metadata: Mapping[str, Any], model: str, provider: str
    ) -> None:
        self._notes.take(at, model, metadata)
        # Agents write 0 where they know no price, or where a plan pays.
        said = _dollars(metadata.get("cost_usd")) or None
        self._told += said or 0.0
        spent = spent_of(metadata)
        spent.cost = said
        if message_id in self._shared.usage:
            shared = self._shared.usage[message_id]
            if shared is None:
                charge = Charge(model, provider, "", TOLD)
                if self._wanted(at):
                    self.facts.spent[_quarter(at), charge].copies += 1
                self._last = _quarter(at), model, provider
                return
            spent = shared
        spent = Spent.of(
            [max(-MOST_TOKENS, min(each, MOST_TOKENS)) for each in spent.tokens],
            _dollars(spent.cost) or None,
        )
        own = metadata.get("backscroll")
        if said is not None and isinstance(own, dict) and own.get("cost_of"):
            self._covered_until = max(self._covered_until, at)
        tier, written = _details(metadata, spent)
        charge = Charge(
            model, provider, tier, TOLD if spent.cost else UNTOLD,
            sum(spent.input + spent.cache_read + spent.cache_write > size
                for size in REQUEST_SIZES),
            _present(spent, written),
        )  # fmt: skip
        self._tokens[_quarter(at), model, provider] += spent.total
        self._last = _quarter(at), model, provider
        self._waiting.append((at, charge, spent, written))

    def _model_of(self, metadata: Mapping[str, Any]) -> tuple[str, str]:
        model = metadata.get("model")
        named = _word(model.get("model_id")) if isinstance(model, dict) else ""
        if not named:
            return self._info.model, self._info.provider
        assert isinstance(model, dict)
        return named, _word(model.get("provider_id")) or (
            self._info.provider if named == self._info.model else ""
        )

    def _wanted(self, at: int) -> bool:
        return self._during is None or self._during.holds(at)

    def calls(self, parts: Iterable[tuple[Any, ...]]) -> None:
        """Count the parts."""
        for message_id, kind, created, updated, data_json in parts:
            at, turn, model = self._messages.get(message_id, (0, None, None))
            times = number(created), number(updated)
            if turn is not None:
                turn.moments.append(times[1])
            if data_json is None or model is None or not self._wanted(at):
                continue
            data = {**decoded(text(data_json)), "type": text(kind)}
            found = outcome_of(data, times)
            row = self.facts.called[_quarter(at), _word(tool_name(data)), model]
            row.calls += 1
            row.failed += found.status == "failed"
            row.denied += found.status == "denied"
            if found.milliseconds is not None:
                row.timed += 1
                row.milliseconds += int(found.milliseconds)

    def finish(self) -> None:
        """Count what only the whole session tells: covered answers, its own cost, its turns."""
        rest = (self._info.cost_usd or _total_of(self._info, self._shared)) - self._told
        notes = self._notes.costs(
            self._info.id, self._shared.begun_at, self._shared.begun_models
        )
        if rest > _LEAST_COST:
            self._covered_until = max(
                self._covered_until, max((at for at, _, _ in notes), default=2**62)
            )
        for at, charge, spent, written in self._waiting:
            if not self._wanted(at):
                continue
            if charge.told == UNTOLD and at <= self._covered_until:
                charge = charge._replace(told=COVERED)
            row = self.facts.spent[_quarter(at), charge]
            row.answers += 1
            row.tokens = [one + other for one, other in zip(row.tokens, spent.tokens, strict=True)]
            row.cache_write_1h += written
            row.usd += spent.cost or 0.0
        if rest > _LEAST_COST:
            self._add_rest(rest, notes)
        self._finish_turns()

    def _add_rest(self, rest: float, notes: list[OwnCost]) -> None:
        """Add what the session cost beyond what its answers tell."""
        whole = sum(usd for _, _, usd in notes)
        if whole > _LEAST_COST:
            providers = {model: provider for _, model, provider in self._tokens}
            for at, model, usd in notes:
                if self._wanted(at):
                    charge = Charge(model, providers.get(model, self._info.provider), "", TOLD)
                    self.facts.spent[_quarter(at), charge].usd += rest * usd / whole
            return
        quarter, model, provider = self._most_spent()
        if self._wanted(quarter * QUARTER_MS):
            self.facts.spent[quarter, Charge(model, provider, "", TOLD)].usd += rest

    def _most_spent(self) -> tuple[int, str, str]:
        """Return the quarter hour and model that most was spent in: model first, then day."""
        if not self._tokens:
            return self._last or (
                _quarter(self._info.updated_at), self._info.model, self._info.provider
            )
        models: defaultdict[tuple[str, str], int] = defaultdict(int)
        for (_, model, provider), tokens in self._tokens.items():
            models[model, provider] += tokens
        most = max(sorted(models), key=lambda name: models[name])
        days: defaultdict[int, int] = defaultdict(int)
        for (quarter, *named), tokens in self._tokens.items():
            if tuple(named) == most:
                days[quarter // 96] += tokens
        day = max(sorted(days), key=lambda each: days[each])
        return max(
            (key for key in sorted(self._tokens) if key[1:] == most and key[0] // 96 == day),
            key=lambda key: self._tokens[key],
        )

    def _finish_turns(self) -> None:
        found = []
        for turn in self._turns:
            if turn.copied or not self._wanted(turn.at):
                continue
            moments = sorted(turn.moments)
            model = self._info.model if turn.model is None else turn.model
            row = self.facts.turned[_quarter(turn.at), model]
            row.turns += 1
            row.active_ms += sum(
                gap for one, other in zip(moments, moments[1:], strict=False)
                if (gap := other - one) <= LONGEST_PAUSE_MS
            )
            took = min(max(0, moments[-1] - turn.at), 1 << 62)
            found.append(LongTurn(took, turn.message_id, turn.at))
        self.facts.longest = sorted(found, reverse=True)[:LONGEST_TURNS]


def _present(spent: Spent, written: int) -> int:
    priced = (spent.input, spent.output + spent.reasoning, spent.cache_read,
              spent.cache_write - written, written)  # fmt: skip
    return sum(1 << bit for bit, value in enumerate(priced) if value)


def _quarter(at: int) -> int:
    return at // QUARTER_MS


def _dollars(value: Any) -> float | None:
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return float(value) if is_number and abs(value) < MOST_SPENT else None


def _details(metadata: Mapping[str, Any], spent: Spent) -> tuple[str, int]:
    """Return the tier of an answer, and how much of the cache that it wrote lasts an hour."""
    tier, written = usage_details(metadata)
    return _word(tier), min(written, spent.cache_write)


def _cost(info: SessionInfo) -> dict[str, Any]:
    own = info.metadata.get("backscroll")
    cost = own.get("cost") if isinstance(own, dict) else None
    return cost if isinstance(cost, dict) else {}


def _total_of(info: SessionInfo, shared: SharedAnswers) -> float:
    """Return what a session itself added to the running totals that its source keeps."""
    cost = _cost(info)
    totals = cost.get("totals")
    if not isinstance(totals, dict):
        return _dollars(cost.get("usd")) or 0.0
    return sum(
        max(0.0, (_dollars(dollars) or 0.0) - shared.begun_at.get((info.id, counter), 0.0))
        for counter, dollars in totals.items()
    )
