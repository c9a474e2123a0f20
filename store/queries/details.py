"""What the details of a session show: its facts at once, its turns in one pass."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

from store.conversation.turns import starts_turn
from store.engine import prompts
from store.engine.database import Database
from store.engine.values import decoded, number, number_or_none, text
from store.errors import NotFound
from store.prices.estimating import priced
from store.prices.table import PriceTable
from store.queries import sessions
from store.queries.helpers import no_helpers
from store.queries.inspection import LinkedSession, linked
from store.queries.originals import record_count
from store.queries.running_totals import RunningTotals
from store.queries.shared_answers import shared_answers
from store.rows import SessionRow
from store.text.stored_json import as_dict, as_list
from store.usage import Spent

PROMPT_CHARACTERS = 200
"""How many characters of a prompt the timeline shows."""

_BATCH = 400
_FAILED_STATES = ("output-error", "output-denied")


@dataclass(slots=True)
class Overview:
    """The facts of a session that cost nothing to read.

    Attributes:
        metadata: The decoded ``metadata_json``.
        model: The decoded ``model_json``.
        parent: The session it comes from, with the message where it parts.
        children: How many sessions come from it, by kind of lineage.
        records: How many original records the store keeps of it.
    """

    row: SessionRow
    metadata: dict[str, Any]
    model: dict[str, Any]
    parent: LinkedSession | None
    children: dict[str, int]
    records: int


@dataclass(slots=True)
class Turn:
    """A prompt and what came of it; the first may have no prompt.

    Attributes:
        number: From 1, hidden ones not counted; a hidden turn has that of the turn before
            it, and 0 is what comes before the first prompt.
        message_id: Its first message.
        at: When it began, epoch ms.
        ended: When its last part changed, epoch ms.
        prompt: The start of its prompt, as it is.
        spent: The sum over its assistant messages.
        tools: How often each tool was called.
        failed: How many of the calls failed or were denied.
        models: The models that answered.
        hidden: Whether a rewind hid its prompt.
        copied: Whether it came with a fork from the parent.
        task: The task that it belongs to, where its agent has tasks.
        task_number: The number of that task in the session, 0 where the agent has none.
        favorite: Whether it is one of the agent's favourites.
    """

    number: int
    message_id: str
    at: int
    ended: int
    prompt: str = ""
    spent: Spent = field(default_factory=Spent)
    tools: Counter[str] = field(default_factory=Counter)
    failed: int = 0
    models: list[str] = field(default_factory=list)
    messages: int = 0
    hidden: bool = False
    copied: bool = False
    task: str = ""
    task_number: int = 0
    favorite: bool = False

    @property
    def milliseconds(self) -> int:
        """From the prompt to the last change of a part."""
        return max(0, self.ended - self.at)


class ToolCall(NamedTuple):
    """A part of a message; ``name`` is None where it is no tool call."""

    message_id: str
    name: str | None
    failed: bool
    updated_at: int


@dataclass(slots=True)
class Timeline:
    """All turns of a session, and what was counted on the way.

    Attributes:
        spent: What the session itself spent: hidden turns too, but no answer that another
            session counts (``store.queries.shared_answers``).
        noted: Dollars that the session itself added to the totals which its source notes; None
            where it notes none.
        models: Assistant messages by model, as ``provider/model`` and variant.
        prompts: Assistant messages by the digest of their system prompt.
        tools: Calls by tool.
        failed: Failed and denied calls by tool.
        turn_of: The turn of each message.
    """

    turns: list[Turn] = field(default_factory=list)
    spent: Spent = field(default_factory=Spent)
    noted: float | None = None
    models: Counter[str] = field(default_factory=Counter)
    prompts: Counter[str] = field(default_factory=Counter)
    tools: Counter[str] = field(default_factory=Counter)
    failed: Counter[str] = field(default_factory=Counter)
    turn_of: dict[str, Turn] = field(default_factory=dict)

    def count(self, calls: Iterable[ToolCall]) -> None:
        """Count tool calls in, and let each turn last until its last part changed."""
        for call in calls:
            turn = self.turn_of[call.message_id]
            turn.ended = max(turn.ended, call.updated_at)
            if call.name is None:
                continue
            turn.tools[call.name] += 1
            self.tools[call.name] += 1
            if call.failed:
                turn.failed += 1
                self.failed[call.name] += 1


def overview(db: Database, session_id: str) -> Overview:
    """Return the facts of a session.

    Raises:
        NotFound: The store has no such session.
    """
    row = sessions.get(db, session_id)
    if row is None:
        raise NotFound(f"the session {session_id} is no longer in the store")
    parent = linked(db, row.parent_id, row.parent_message_id) if row.parent_id else None
    kinds: Counter[str] = Counter()
    for (metadata_json,) in db.connection.execute(
        f"SELECT s.metadata_json FROM chat_sessions s WHERE s.parent_id = $1 AND {no_helpers(db)}",
        {"1": session_id},
    ):
        lineage = decoded(metadata_json).get("lineage")
        kind = lineage.get("kind") if isinstance(lineage, dict) else None
        kinds[str(kind or "unknown")] += 1
    return Overview(
        row, decoded(row.metadata_json), decoded(row.model_json), parent, dict(kinds),
        record_count(db, session_id),
    )


def model_name(model: Any) -> str | None:
    """Return a model reference as ``provider/model`` and variant; None when it is none."""
    if not isinstance(model, dict) or not model.get("model_id"):
        return None
    name = f"{model['provider_id']}/{model['model_id']}" if model.get("provider_id") else (
        str(model["model_id"])
    )
    return f"{name} {model['variant']}" if model.get("variant") else name


def timeline(db: Database, session_id: str, prices: PriceTable | None = None) -> Timeline:
    """Return the turns of a session; one pass over its messages.

    Queued messages belong to no turn, as they were not sent. The tool calls are counted
    in afterwards: ``Timeline.count(tool_calls(db, ids))``.

    Args:
        db: The store.
        session_id: The session's id.
        prices: Of models, for answers whose agent tells no cost; None estimates nothing.
    """
    found, totals, tasks = Timeline(), RunningTotals(), _task_numbers(db, session_id)
    shared = shared_answers(db, [session_id])
    for message_id, role, hidden_at, at, metadata in messages_of(db, session_id):
        if isinstance(metadata.get("queued_at"), int | float):
            continue
        begins = starts_turn(role, metadata)
        if begins or not found.turns:
            turns = found.turns[-1].number if found.turns else 0
            turns += begins and hidden_at is None
            found.turns.append(Turn(turns, message_id, at, at))
            found.turns[-1].hidden = hidden_at is not None
            found.turns[-1].copied = "inherited_from" in metadata
            own = as_dict(metadata.get("backscroll"))
            task = own.get("task_id")
            found.turns[-1].task = task if isinstance(task, str) else ""
            found.turns[-1].task_number = tasks.get(found.turns[-1].task, 0)
            found.turns[-1].favorite = own.get("favorite") is True
        turn = found.turn_of[message_id] = found.turns[-1]
        turn.messages += 1
        turn.ended = max(turn.ended, at)
        if role == "assistant":
            spent = priced(metadata, prices)
            turn.spent.add(spent)
            _count_answer(found, turn, metadata)
            found.spent.add(_counted(spent, shared.usage, message_id))
            totals.take(at, "", metadata)
    if totals:
        costs = totals.costs(session_id, shared.begun_at, shared.begun_models)
        found.noted = sum(cost.usd for cost in costs)
    _read_prompts(db, found.turns)
    return found


def _task_numbers(db: Database, session_id: str) -> dict[str, int]:
    """Return the numbers of the tasks that the agent keeps with a session, by their ids."""
    row = sessions.get(db, session_id)
    tasks = as_dict(decoded(row.metadata_json).get("backscroll") if row else {}).get("tasks")
    numbers: dict[str, int] = {}
    for task in map(as_dict, as_list(tasks)):
        name, place = task.get("id"), task.get("task_index")
        if isinstance(name, str):
            numbers[name] = place if isinstance(place, int) else 0
    return numbers


def messages_of(
    db: Database, session_id: str
) -> Iterator[tuple[str, str, int | None, int, dict[str, Any]]]:
    """Yield id, role, ``hidden_at``, ``created_at`` and metadata of each message, in order."""
    cursor = db.connection.execute(
        f"SELECT m.id, m.role, {db.form.hidden_at('m')}, m.created_at, m.metadata_json"
        " FROM chat_messages m WHERE m.session_id = $1 ORDER BY m.created_at, m.id",
        {"1": session_id},
    )
    for message_id, role, hidden_at, at, metadata_json in cursor:
        yield (
            message_id, text(role) or "", number_or_none(hidden_at), number(at),
            decoded(metadata_json),
        )


def _count_answer(found: Timeline, turn: Turn, metadata: dict[str, Any]) -> None:
    name = model_name(metadata.get("model"))
    if name is not None:
        found.models[name] += 1
        if name not in turn.models:
            turn.models.append(name)
    digest = metadata.get("system_prompt_digest")
    if isinstance(digest, str):
        found.prompts[digest] += 1


def _counted(spent: Spent, shared: Mapping[str, Spent | None], message_id: str) -> Spent:
    """Return what an answer counts with; nothing where another message counts it."""
    if message_id not in shared:
        return spent
    usage = shared[message_id]
    if usage is None:
        return Spent()
    cost = spent.cost if spent.cost is None else max(spent.cost, usage.cost or 0.0)
    return replace(usage, cost=cost, estimated=spent.estimated)


def tool_calls(db: Database, message_ids: Sequence[str]) -> list[ToolCall]:
    """Return the tool calls of some messages, and when each message's parts last changed.

    Reading a part's state walks over its data, so a long session is read in batches,
    between which other reads go.
    """
    found = []
    valid, named = db.sql.is_json("data_json"), db.sql.fact("data_json", "toolName")
    for start in range(0, len(message_ids), _BATCH):
        batch = message_ids[start : start + _BATCH]
        rows = db.connection.execute(
            f"SELECT message_id, CASE type WHEN 'dynamic-tool' THEN CASE WHEN {valid}"
            f" THEN 'tool-' || coalesce({named}, 'tool') END ELSE type END, tool_state, updated_at"
            f" FROM chat_parts WHERE message_id IN ({_marks(len(batch))})"
            ' ORDER BY message_id, "index"',
            _numbered(batch),
        )
        for message_id, column, state, updated_at in rows:
            kind = text(column) or ""
            name = kind[5:] if kind.startswith("tool-") else None
            found.append(ToolCall(message_id, name, state in _FAILED_STATES, number(updated_at)))
    return found


def _marks(count: int) -> str:
    return ", ".join(f"${place}" for place in range(1, count + 1))


def _numbered(values: Sequence[str]) -> dict[str, str]:
    return {str(place): value for place, value in enumerate(values, 1)}


def _read_prompts(db: Database, turns: list[Turn]) -> None:
    """Read how each turn's first message starts."""
    by_message = {turn.message_id: turn for turn in turns}
    ids = list(by_message)
    for start in range(0, len(ids), _BATCH):
        batch = ids[start : start + _BATCH]
        rows = db.connection.execute(
            f"SELECT message_id, substr({db.sql.fact('data_json', 'text')}, 1, {PROMPT_CHARACTERS})"
            f" FROM chat_parts WHERE message_id IN ({_marks(len(batch))}) AND type = 'text'"
            ' ORDER BY message_id, "index" DESC',
            _numbered(batch),
        )
        for message_id, prompt in rows:
            if prompt:
                by_message[message_id].prompt = str(prompt)


def system_prompts(db: Database, digests: list[str]) -> dict[str, str]:
    """Return the bodies of system prompts by digest, those that the store has."""
    found = {digest: prompts.get(db, digest) for digest in digests}
    return {digest: body for digest, body in found.items() if body is not None}
