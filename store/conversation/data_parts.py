"""What data parts say, for screens and pages alike; texts are as the session has them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from store.conversation.calls import shortened, todo_items
from store.conversation.readable import readable
from store.text import figures
from store.text.diffs import DiffLine, from_patch, from_unified
from store.text.stored_json import as_dict

_WORDED = {
    "data-agent": ("agent", ("name", "agent", "description")),
    "data-question": ("question", ("question", "text", "message")),
    "data-result": ("result", ("result", "text", "summary")),
}
"""Names of parts by type, and the keys of their words, first found first."""


class Words(NamedTuple):
    """A part in words.

    Attributes:
        name: What it is; empty if an error has no name of its own.
        text: What it says.
    """

    name: str
    text: str


class Retry(NamedTuple):
    """A request that is tried again.

    Attributes:
        attempt: Such as ``try 2 of 3``.
        reason: Why; empty if unknown.
        facts: Status and delay, where known.
    """

    attempt: str
    reason: str
    facts: list[str]


class Compaction(NamedTuple):
    """A place where earlier messages were replaced by a summary.

    Attributes:
        size: Such as ``168k to 412 tokens``; empty if unknown.
        reason: ``by itself`` or ``on request``.
        summary: The summary; empty if it is not known.
    """

    size: str
    reason: str
    summary: str


def error_of(kind: str, data: Mapping[str, Any]) -> Words:
    """Return an error's name and message."""
    content = as_dict(data.get("data")) or data
    words = content.get("message") or content.get("error") or content.get("text")
    name = content.get("name") or content.get("status") or content.get("type")
    return Words(str(name) if name not in (None, kind) else "", readable(words or content))


def retry_of(data: Mapping[str, Any]) -> Retry:
    """Return which attempt a retry is, and why."""
    content = as_dict(data.get("data"))
    attempt = f"try {content.get('attempt', '?')}"
    if content.get("max_attempts"):
        attempt += f" of {content['max_attempts']}"
    facts = [f"status {content['status']}"] if content.get("status") else []
    delay = content.get("delay_ms")
    if isinstance(delay, int | float):
        facts.append(f"again after {figures.duration(delay)}")
    return Retry(attempt, str(content.get("message") or content.get("error") or ""), facts)


def compaction_of(data: Mapping[str, Any]) -> Compaction:
    """Return what a compaction did."""
    content = as_dict(data.get("data"))
    before = content.get("pre_tokens")
    after = content.get("post_tokens", content.get("summary_tokens"))
    sizes = [figures.tokens(before)] if isinstance(before, int) else []
    if isinstance(after, int) and after:
        sizes.append(f"to {figures.tokens(after)} tokens")
    summary = content.get("summary")
    return Compaction(
        " ".join(sizes), "by itself" if content.get("auto") else "on request",
        summary if isinstance(summary, str) and summary.strip() else "",
    )


def event_of(kind: str, data: Mapping[str, Any]) -> Words:
    """Return an event's name and details."""
    content = as_dict(data.get("data"))
    name = str(content.get("name") or content.get("type") or kind.removeprefix("data-"))
    rest = content.get(
        "details", {key: value for key, value in content.items() if key not in ("name", "type")}
    )
    return Words(name.replace("_", " "), readable(rest))


def custom_of(data: Mapping[str, Any]) -> Words:
    """Return a provider's own part (AI SDK 7's ``custom``) by its kind."""
    rest = {key: value for key, value in data.items() if key not in ("type", "kind")}
    return Words(str(data.get("kind") or "custom"), readable(rest))


def words_of(kind: str, data: Mapping[str, Any]) -> Words | None:
    """Return the words of an agent's, question's or result's part; None for other types."""
    if kind not in _WORDED:
        return None
    name, keys = _WORDED[kind]
    content = data.get("data")
    found = (as_dict(content).get(key) for key in keys)
    text = next((value for value in found if isinstance(value, str)), None)
    return Words(name, readable(content) if text is None else text)


def todo_of(data: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Return ``(state, text)`` of a check list; empty if the part has none."""
    content = data.get("data")
    bag = as_dict(content)
    return todo_items(
        content if isinstance(content, list)
        else bag.get("todos") or bag.get("items") or bag.get("plan")
    )


def patch_of(data: Mapping[str, Any], root: str | None) -> tuple[str, list[DiffLine]]:
    """Return which files a patch changed, and its lines; no lines if they are unknown.

    Args:
        data: The part.
        root: The session's workspace; paths below it are shown from there.
    """
    content = as_dict(data.get("data"))
    text = content.get("patch") or content.get("diff")
    hunks = content.get("structuredPatch") or content.get("hunks")
    lines = from_patch(hunks) if hunks else from_unified(text) if isinstance(text, str) else []
    files = content.get("files")
    named = files if isinstance(files, list) else [content.get("path") or ""]
    names = ", ".join(shortened(str(name), root) for name in named)
    return names if lines or names else readable(content), lines
