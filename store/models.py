"""The JSON of the contract as pydantic models, for every boundary.

Keys that a model does not name are kept: ``model_dump(exclude_unset=True, by_alias=True)``
gives back what came in. The JSON columns of a store themselves stay verbatim text; these
models read them and make new ones.

Sources: the contract's "The three-table schema", "Permission rule shape" and "Metadata
conventions"; for ``tier``, ``queue_*``, ``compaction`` and ``ephemeral`` Grida's form.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal, TypeVar

import orjson
from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError

from store.text.stored_json import DamagedJson, loads


def _whole(value: object) -> object:
    """Let a float that is a whole number pass as that number; JSON of JavaScript has such."""
    return int(value) if isinstance(value, float) and value.is_integer() else value


EpochMs = Annotated[int, BeforeValidator(_whole)]
"""A time as epoch milliseconds."""
Tokens = Annotated[int, BeforeValidator(_whole)]
"""A count of tokens."""


class StoreModel(BaseModel):
    """What all JSON of a store has in common: unknown keys are kept."""

    model_config = ConfigDict(extra="allow", populate_by_name=True)

    def to_json(self) -> str:
        """Return compact JSON with the keys that were set, unknown ones included."""
        dumped = self.model_dump(mode="json", by_alias=True, exclude_unset=True)
        return orjson.dumps(dumped).decode()


class Usage(StoreModel):
    """Tokens of one message in five disjoint buckets.

    ``input`` excludes what came from the cache, ``output`` excludes the reasoning that
    the source reports; so ``total`` is their plain sum.
    """

    input: Tokens = 0
    output: Tokens = 0
    reasoning: Tokens = 0
    cache_read: Tokens = 0
    cache_write: Tokens = 0

    @property
    def total(self) -> int:
        """The sum of the five buckets."""
        return self.input + self.output + self.reasoning + self.cache_read + self.cache_write

    def __add__(self, other: Usage) -> Usage:
        """Return the sum, bucket by bucket."""
        return Usage(
            input=self.input + other.input,
            output=self.output + other.output,
            reasoning=self.reasoning + other.reasoning,
            cache_read=self.cache_read + other.cache_read,
            cache_write=self.cache_write + other.cache_write,
        )


class ModelRef(StoreModel):
    """Which model; Grida's form may give a ``tier`` in place of ``model_id``."""

    model_config = ConfigDict(extra="allow", populate_by_name=True, protected_namespaces=())

    provider_id: str
    model_id: str | None = None
    variant: str | None = None
    tier: str | None = None


UNKNOWN_MODEL_JSON = '{"provider_id":"unknown","model_id":"unknown"}'
"""``model_json`` where a source does not tell its model."""


class PermissionRule(StoreModel):
    """One session-scoped rule of ``permissions_json``; the four names are normative.

    Attributes:
        permission: A tool id, a capability, or ``*``.
        pattern: A glob that is matched against argv, paths or hosts.
        added_at: Epoch ms, for information.
    """

    permission: str
    pattern: str
    action: Literal["allow", "deny", "ask"]
    source: Literal["manifest", "session", "project"] = "session"
    added_at: EpochMs | None = None


class Trigger(StoreModel):
    """What fired a turn that no human started.

    Attributes:
        source: ``schedule``, ``webhook``, ``api``, ``self-schedule``, ``mcp-event`` or other.
        fired_at: Epoch ms.
    """

    source: str
    fired_at: EpochMs
    schedule_id: str | None = None
    delivery_id: str | None = None
    headers: dict[str, Any] | None = None
    auth_subject: Any = None


class MessageSource(StoreModel):
    """The id that a message had at its source."""

    id: str | None = None


class MessageMetadata(StoreModel):
    """``chat_messages.metadata_json``: the contract's keys, Grida's, and ours.

    Attributes:
        queued_at: Epoch ms; while it is a number the message waits and is no transcript yet.
        hidden_at: Epoch ms of the rewind that hid the message.
        origin: What a user row is: human, command, shell, meta or notification.
        source: The message's id at its source.
        inherited_from: The id of the original message, on copies in a fork.
        backscroll: What else we know (true times, errors, effort, branch).
    """

    usage: Usage | None = None
    model: ModelRef | None = None
    agent: str | None = None
    queued_at: EpochMs | None = None
    queue_enqueued_at: EpochMs | None = None
    queue_canceled_at: EpochMs | None = None
    snapshot_id: str | None = None
    trigger: Trigger | None = None
    system_prompt_digest: str | None = None
    hidden_at: EpochMs | None = None
    compaction: bool | None = None
    origin: str | None = None
    source: MessageSource | None = None
    inherited_from: str | None = None
    backscroll: dict[str, Any] | None = None


class SourceRef(StoreModel):
    """Where a session came from: the source's kind, its id there, the file it was read from."""

    kind: str
    id: str
    path: str | None = None


class Lineage(StoreModel):
    """How a session is related to ``parent_id``."""

    kind: Literal["fork", "subagent", "continuation", "unknown"] = "unknown"
    tool_call_id: str | None = None


class UserSettings(StoreModel):
    """What the user set; it wins over what a source says and survives every sync."""

    title: str | None = None
    star: bool | None = None
    tags: list[str] = Field(default_factory=list)
    labels: dict[str, str] = Field(default_factory=dict)


ActivityState = Literal[
    "idle", "running", "waiting-approval", "waiting-input", "queued", "retrying",
    "interrupted", "error", "ended", "unknown",
]  # fmt: skip


class Activity(StoreModel):
    """What a session does now, and whether its source stored that or we guessed it."""

    model_config = ConfigDict(extra="allow", populate_by_name=True)

    state: ActivityState = "unknown"
    from_: Literal["stored", "guessed"] = Field("guessed", alias="from")


class SessionMetadata(StoreModel):
    """``chat_sessions.metadata_json``: our keys, and Grida's ``ephemeral``."""

    title: str | None = None
    title_from: str | None = None
    source: SourceRef | None = None
    lineage: Lineage | None = None
    git_branch: str | None = None
    version: str | None = None
    ephemeral: bool | None = None
    user: UserSettings | None = None
    activity: Activity | None = None
    backscroll: dict[str, Any] | None = None

    @property
    def effective_title(self) -> str | None:
        """The title the user gave, else the source's."""
        return (self.user.title if self.user else None) or self.title


Model = TypeVar("Model", bound=StoreModel)


def read_json(model: type[Model], text: str | None) -> tuple[Model, list[str]]:
    """Read a JSON column that others may have written; nothing in it is an error.

    Args:
        model: What the column should hold.
        text: The column's value.

    Returns:
        The model without the keys whose values do not fit it, and one line for each such
        key (or one when the text is no JSON object at all).
    """
    try:
        decoded = loads(text or "{}")
    except DamagedJson as error:
        return model.model_construct(), [f"no JSON: {error}"]
    if not isinstance(decoded, dict):
        return model.model_construct(), [f"no JSON object but {type(decoded).__name__}"]
    try:
        return model.model_validate(decoded), []
    except ValidationError as error:
        problems = [f"{_dotted(item['loc'])}: {item['msg']}" for item in error.errors()]
        unfit = {item["loc"][0] for item in error.errors() if item["loc"]}
    fitting = {key: value for key, value in decoded.items() if key not in unfit}
    try:
        return model.model_validate(fitting), problems
    except ValidationError:
        return model.model_construct(**fitting), problems


def read_permissions(text: str | None) -> tuple[list[PermissionRule], list[str]]:
    """Read ``permissions_json``; a rule that does not fit is left out and named.

    Returns:
        The rules in their order, and one line for each that was left out.
    """
    try:
        decoded = loads(text or "[]")
    except DamagedJson as error:
        return [], [f"no JSON: {error}"]
    if not isinstance(decoded, list):
        return [], [f"no JSON array but {type(decoded).__name__}"]
    rules: list[PermissionRule] = []
    problems: list[str] = []
    for number, item in enumerate(decoded):
        try:
            rules.append(PermissionRule.model_validate(item))
        except ValidationError as error:
            problems += [f"rule {number}: {_dotted(e['loc'])}: {e['msg']}" for e in error.errors()]
    return rules, problems


def _dotted(location: tuple[int | str, ...]) -> str:
    return ".".join(str(step) for step in location) or "value"
