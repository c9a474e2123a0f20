"""What the tools answer: bounded, with the secrets masked and control characters neutral."""

from __future__ import annotations

from typing import Any, Literal, TypeVar

from pydantic import BaseModel, Field

from store.sharing.masks import Masks
from store.text.neutral import neutral

_Answer = TypeVar("_Answer", bound=BaseModel)


class Session(BaseModel):
    """A session in a list."""

    id: str
    title: str | None
    agent: str
    model: str | None
    workspace: str | None
    branch: str | None
    created_at: str = Field(description="local time, ISO 8601")
    updated_at: str = Field(description="local time, ISO 8601")
    messages: int | None = Field(description="visible messages; null: not read yet")
    turns: int | None = Field(description="messages that a person sent; null: not read yet")
    activity: str
    parent_id: str | None = Field(description="the session that it is a fork or subagent of")
    archived: bool


class Sessions(BaseModel):
    """A page of sessions, newest first."""

    sessions: list[Session]
    cursor: str | None = Field(description="pass it on for the next page; null at the end")
    unsearched: str | None = Field(description="why not all was searched; null where all was")


class Hit(BaseModel):
    """A part of a message that matches, or a session's title."""

    session_id: str
    session_title: str | None
    agent: str
    workspace: str | None
    message_id: str | None = Field(description="pass it to show; null where the title matches")
    time: str
    role: str
    where: str = Field(description="prompt, text, reasoning, input, output or title")
    tool: str | None
    call: str | None = Field(description="what the tool was called with, in a line")
    failed: bool
    excerpt: str = Field(description="the text around the match")
    matches: int


class Hits(BaseModel):
    """A page of hits, newest first."""

    hits: list[Hit]
    found: str = Field(description="how much was found, and what part of the store was searched")
    cursor: str | None = Field(description="pass it on for the next page; null at the end")


class Part(BaseModel):
    """A part of a message."""

    type: Literal["text", "reasoning", "tool", "other"]
    text: str = Field(description="what was said; what a tool was called with")
    output: str | None = Field(None, description="what a tool returned")
    tool: str | None = None
    state: str | None = Field(None, description="how the call ended, where that is not plain")
    cut: int = Field(0, description="characters left out; ask again with a larger part_chars")


class Message(BaseModel):
    """A message of a session."""

    id: str
    role: str
    time: str
    hidden: bool = Field(description="rewound, so the agent no longer saw it")
    parts: list[Part]


class Transcript(BaseModel):
    """Some messages of a session, oldest first."""

    session: Session
    messages: list[Message]
    hidden_left_out: int
    previous: str | None = Field(description="pass it as cursor for the messages before these")
    next: str | None = Field(description="pass it as cursor for the messages after these")


def harmless(answer: _Answer, masks: Masks) -> _Answer:
    """Return an answer with its secrets masked and its texts without control characters."""
    masked: Any = masks.mask_json(answer.model_dump())
    return type(answer).model_validate(_neutral(masked))


def harmless_text(text: str, masks: Masks) -> str:
    """Return a text with its secrets masked and without control characters."""
    return neutral(masks.mask(text))


def _neutral(value: Any) -> Any:
    if isinstance(value, str):
        return neutral(value)
    if isinstance(value, list):
        return [_neutral(one) for one in value]
    if isinstance(value, dict):
        return {key: _neutral(one) for key, one in value.items()}
    return value
