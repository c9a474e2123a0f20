"""The words in which the demo's sessions are written down: scenes, messages, parts.

A scene is plain data without times or ids; ``store.demo.rows`` plays it against a clock.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal


@dataclass(frozen=True, slots=True)
class Part:
    """One part of a message.

    Attributes:
        data: The UIMessagePart, without ``toolCallId`` and result metadata.
        seconds: How long it took; a tool call's result comes that much later.
        extras: What goes to ``resultProviderMetadata.backscroll`` of a tool part.
        call: A name for the call, where another scene refers to it.
    """

    data: dict[str, Any]
    seconds: float = 0.0
    extras: dict[str, Any] = field(default_factory=dict)
    call: str | None = None


@dataclass(frozen=True, slots=True)
class Message:
    """One message.

    Attributes:
        gap: Seconds since the end of the previous message.
        name: A name for the message, where a fork or a compaction refers to it.
        batch: The rewind that hid it; messages of one batch share one ``hidden_at``.
        queued: Waits behind the running turn.
        model: Another model than the scene's.
    """

    role: Literal["user", "assistant", "system"]
    parts: tuple[Part, ...]
    gap: float
    name: str | None = None
    batch: str | None = None
    queued: bool = False
    model: Mapping[str, str] | None = None
    metadata: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Scene:
    """One session.

    Attributes:
        ended: Seconds between its last change and now.
        parent: The key of the scene it comes from.
        at: The parent's message it starts from, by name.
        inherits: Whether it starts with a copy of the parent's visible messages up to ``at``.
        call: The name of the parent's tool call that started it.
        activity: The state and whether it was stored or guessed.
        price: Dollars for a million tokens: input, output, cache read, cache write.
        archived: Seconds between its archiving and now.
    """

    key: str
    title: str
    agent: str
    model: Mapping[str, str]
    workspace: str
    ended: float
    messages: Sequence[Message]
    branch: str = "main"
    title_from: str = "generated"
    parent: str | None = None
    at: str | None = None
    inherits: bool = False
    lineage: Literal["fork", "subagent", "continuation"] = "fork"
    call: str | None = None
    activity: tuple[str, str] = ("idle", "guessed")
    price: tuple[float, float, float, float] | None = None
    archived: float | None = None
    user: dict[str, Any] = field(default_factory=dict)
    permissions: tuple[dict[str, Any], ...] = ()
    system_prompt: str | None = None
    path: str = ""
    context: int = 14_000


def user(text: str, *more: Part, gap: float = 40, **facts: Any) -> Message:
    """Return a user's message; ``facts`` are further fields of ``Message``."""
    metadata = {"origin": "human", **facts.pop("metadata", {})}
    parts = (Part({"type": "text", "text": text}), *more)
    return Message("user", parts, gap, metadata=metadata, **facts)


def assistant(*parts: Part, gap: float = 3, **facts: Any) -> Message:
    """Return an assistant's message; ``facts`` are further fields of ``Message``."""
    return Message("assistant", parts, gap, **facts)


def say(text: str, *, streaming: bool = False) -> Part:
    """Return a text part."""
    data = {"type": "text", "text": text, "state": "streaming" if streaming else "done"}
    return Part(data, seconds=len(text) / 400)


def think(text: str, seconds: float) -> Part:
    """Return a reasoning part."""
    return Part({"type": "reasoning", "text": text, "state": "done"}, seconds)


def tool(
    name: str,
    arguments: dict[str, Any],
    output: Any,
    seconds: float = 0.1,
    *,
    call: str | None = None,
    **extras: Any,
) -> Part:
    """Return a tool call that came to its end.

    Args:
        name: The tool, as the agent calls it.
        arguments: Its input.
        output: Its output.
        seconds: How long it ran.
        call: A name for the call.
        extras: ``exit_code``, ``structured`` and the like.
    """
    data = {
        "type": f"tool-{name}", "state": "output-available", "input": arguments, "output": output,
    }
    return Part(data, seconds, {"status": "ok", **extras}, call)


def failed(
    name: str, arguments: dict[str, Any], error: str, seconds: float = 0.1, **extras: Any
) -> Part:
    """Return a tool call that failed; ``status`` tells errors from interruptions."""
    data = {
        "type": f"tool-{name}", "state": "output-error", "input": arguments, "errorText": error,
    }
    return Part(data, seconds, {"status": "error", **extras})


def denied(name: str, arguments: dict[str, Any], reason: str) -> Part:
    """Return a tool call that the user did not allow."""
    data = {
        "type": f"tool-{name}", "state": "output-denied", "input": arguments,
        "approval": {"id": "approval-1", "approved": False, "reason": reason},
    }
    return Part(data, 4.0, {"status": "denied"})


def pending(
    name: str, arguments: dict[str, Any], state: str = "input-available", **more: Any
) -> Part:
    """Return a tool call that has no result yet; ``more`` goes into the part."""
    return Part({"type": f"tool-{name}", "state": state, "input": arguments, **more})


def note(kind: str, **data: Any) -> Part:
    """Return a ``data-<kind>`` part."""
    return Part({"type": f"data-{kind}", "data": data})


def image(filename: str, media_type: str, url: str) -> Part:
    """Return a file part."""
    return Part({"type": "file", "mediaType": media_type, "filename": filename, "url": url})
