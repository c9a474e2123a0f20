"""What the public ``Store`` takes and returns: sessions, messages, models, permission rules.

The dictionaries are JSON as the store keeps it, with the contract's and the AI SDK's names.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, NotRequired, TypedDict, cast

from store.engine.values import decoded
from store.errors import Invalid
from store.rows import UNKNOWN_MODEL, SessionRow
from store.text.stored_json import DamagedJson, loads
from store.usage import Spent

Action = Literal["allow", "deny", "ask"]


class UIMessage(TypedDict):
    """A message as the AI SDK's ``useChat`` takes it.

    Attributes:
        id: The id that the stream gave it, else the id of its row.
        role: ``user``, ``assistant`` or ``system``.
        metadata: What the host or the stream gave as metadata.
        parts: AI SDK ``UIMessagePart`` objects.
    """

    id: str
    role: str
    metadata: NotRequired[Any]
    parts: list[dict[str, Any]]


class Model(TypedDict):
    """A model, named as the contract does: ``{provider_id, model_id, variant?}``."""

    provider_id: str
    model_id: str
    variant: NotRequired[str]


class PermissionRule(TypedDict):
    """A rule of a session's permissions.

    Attributes:
        permission: A tool's name, a capability, or ``*``.
        pattern: A glob pattern for arguments, paths or hosts.
        action: ``allow``, ``deny`` or ``ask``.
        source: Where the rule comes from; ``session`` by default.
        added_at: Epoch ms.
    """

    permission: str
    pattern: str
    action: Action
    source: NotRequired[Literal["manifest", "session", "project"]]
    added_at: NotRequired[int]


@dataclass(frozen=True, slots=True)
class Session:
    """A session as it was when it was read.

    Attributes:
        id: Names it in every call of a store.
        agent: The agent that it was opened with.
        title: The user's title, else the host's, else the first prompt; None without any.
        workspace: The folder that it is about; None without one.
        parent_id: The session that it was forked from, or that started it; None without one.
        parent_message_id: The message of the parent after which it begins.
        usage: The tokens of its answers, and their cost where the host stores one.
        metadata: All of ``metadata_json``.
        created_at: Epoch ms, as the other times.
        archived_at: None where it is not archived.
    """

    id: str
    agent: str
    title: str | None
    model: Model
    workspace: str | None
    parent_id: str | None
    parent_message_id: str | None
    usage: Spent
    created_at: int
    updated_at: int
    archived_at: int | None
    permissions: list[PermissionRule] = field(default_factory=list)
    metadata: dict[str, Any] = field(default_factory=dict)

    def __str__(self) -> str:
        """Return its id."""
        return self.id

    @classmethod
    def of(cls, row: SessionRow) -> Session:
        """Return the session of a row."""
        metadata = decoded(row.metadata_json)
        users = metadata.get("user")
        given = users.get("title") if isinstance(users, dict) else None
        model = decoded(row.model_json)
        return cls(
            row.id, row.agent, given or row.title,
            cast(Model, UNKNOWN_MODEL | model),
            row.workspace_root, row.parent_id, row.parent_message_id, row.spent,
            row.created_at, row.updated_at, row.archived_at,
            _rules(row.permissions_json), metadata,
        )


def session_id_of(session: str | Session) -> str:
    """Return the id of a session, or the name that was given for one.

    Raises:
        Invalid: It is something else.
    """
    name = session if isinstance(session, str) else getattr(session, "id", None)
    if not isinstance(name, str):
        raise Invalid(f"a session is a Session or its id, not {type(session).__name__}")
    return text_of("session", name)


def text_of(what: str, value: object) -> str:
    """Return a text that SQLite takes: halves of surrogate pairs are replaced.

    Args:
        what: Names the value in the error.
        value: What the host gave.

    Raises:
        Invalid: It is no text.
    """
    if not isinstance(value, str):
        raise Invalid(f"{what} must be a text, not {type(value).__name__}")
    return value.encode("utf-8", "replace").decode()


def one_of(what: str, value: object, possible: Collection[str]) -> None:
    """Refuse a value that is not one of a few.

    Args:
        what: Names the value in the error.
        value: What the host gave.
        possible: What it may be.

    Raises:
        Invalid: It is something else.
    """
    if value not in possible:
        raise Invalid(f"{what} must be one of {', '.join(possible)}, not {value!r}")


def limit_of(value: object) -> int:
    """Return how many rows a host asked for.

    Raises:
        Invalid: It is no whole number.
    """
    if not isinstance(value, int) or isinstance(value, bool):
        raise Invalid(f"limit must be a whole number, not {value!r}")
    return min(value, 2**31)


def whole_number(what: str, value: object) -> int:
    """Return a whole number that is not negative.

    Args:
        what: The name of the argument.
        value: What was given.

    Raises:
        Invalid: It is something else.
    """
    if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value < 1 << 63:
        raise Invalid(f"{what} must be a whole number from 0 on")
    return value


def _rules(text: str) -> list[PermissionRule]:
    try:
        found = loads(text)
    except DamagedJson:
        return []
    rules = found if isinstance(found, list) else []
    return [cast(PermissionRule, rule) for rule in rules if isinstance(rule, dict)]


_ACTIONS = ("allow", "deny", "ask")
_SOURCES = ("manifest", "session", "project")
_RULE_KEYS = frozenset(PermissionRule.__annotations__)


def checked_rules(rules: Iterable[PermissionRule]) -> list[PermissionRule]:
    """Return permission rules as they are stored, ``source`` filled in.

    Raises:
        Invalid: One is not of the contract's shape; the message says which and why.
    """
    return [_checked_rule(number, rule) for number, rule in enumerate(rules)]


def _checked_rule(number: int, rule: PermissionRule) -> PermissionRule:
    where = f"permissions[{number}]"
    if not isinstance(rule, Mapping):
        raise Invalid(f"{where} is no object; give {{'permission', 'pattern', 'action'}}")
    if unknown := sorted(set(rule) - _RULE_KEYS):
        raise Invalid(f"{where} has the unknown key {unknown[0]!r}; use {', '.join(_RULE_KEYS)}")
    for key in ("permission", "pattern"):
        if not isinstance(rule.get(key), str) or not rule.get(key):
            raise Invalid(f"{where}.{key} must be a text, such as '*'")
    one_of(f"{where}.action", rule.get("action"), _ACTIONS)
    one_of(f"{where}.source", rule.get("source", "session"), _SOURCES)
    added_at = rule.get("added_at", 0)
    if not isinstance(added_at, int) or isinstance(added_at, bool):
        raise Invalid(f"{where}.added_at must be epoch milliseconds")
    return cast(PermissionRule, {"source": "session", **rule})
