"""Rows of the three tables as light objects; JSON columns stay text until they are shown."""

from __future__ import annotations

from dataclasses import dataclass

from store.usage import COLUMNS, Spent

UNKNOWN_MODEL = {"provider_id": "unknown", "model_id": "unknown"}
"""``model_json`` where a source does not say which model it was."""


def is_tool_type(part_type: str) -> bool:
    """Return whether parts of a type are tool calls: ``tool-<name>`` or ``dynamic-tool``."""
    return part_type.startswith("tool-") or part_type == "dynamic-tool"


@dataclass(slots=True)
class SessionRow:
    """One row of ``chat_sessions``.

    Attributes:
        title: The title column of Grida's form, else ``metadata_json.title``; None when unset.
        model_json: JSON ``{provider_id, model_id, variant?}``; None in Grida's form only.
        created_at: Epoch ms, as all times here.
    """

    id: str
    title: str | None
    agent: str
    workspace_root: str | None
    model_json: str | None
    parent_id: str | None
    parent_message_id: str | None
    permissions_json: str
    metadata_json: str
    prompt_tokens: int
    completion_tokens: int
    reasoning_tokens: int
    cache_read: int
    cache_write: int
    total_tokens: int
    cost_usd: float
    created_at: int
    updated_at: int
    archived_at: int | None

    @property
    def spent(self) -> Spent:
        """Its tokens by bucket, and its cost, None where that is 0."""
        return Spent.of((getattr(self, column) for column in COLUMNS), self.cost_usd or None)


@dataclass(slots=True)
class MessageRow:
    """One row of ``chat_messages``.

    Attributes:
        hidden_at: The hidden_at column of Grida's form, else ``metadata_json.hidden_at``.
    """

    id: str
    session_id: str
    role: str
    metadata_json: str
    hidden_at: int | None
    created_at: int
    updated_at: int


@dataclass(slots=True)
class PartRow:
    """One row of ``chat_parts``; ``data_json`` is an AI SDK UIMessagePart, verbatim."""

    id: str
    message_id: str
    session_id: str
    index: int
    type: str
    data_json: str
    tool_call_id: str | None
    tool_state: str | None
    created_at: int
    updated_at: int
