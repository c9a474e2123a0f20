"""What an agent's file is made of: the messages to and from the model, one after the other."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from store.exports.reading import MessageReading
from store.exports.steps import (
    Part,
    Step,
    as_aside,
    compaction_summary,
    handed_over,
    is_aside,
    steps_of,
    with_file_texts,
)


@dataclass(frozen=True, slots=True)
class Turn:
    """A message to or from the model.

    Attributes:
        item: The message.
        parts: Its parts.
        summary: The summary that it is; None for any other message.
    """

    item: MessageReading
    parts: list[Part]
    summary: str | None = None

    @property
    def id(self) -> str:
        """The message's id."""
        return str(self.item.message["id"])

    @property
    def role(self) -> str:
        """``user`` or ``assistant``; a summary may have another one."""
        return str(self.item.message["role"])

    @property
    def begun(self) -> int:
        """When it was said, epoch ms."""
        return int(self.item.message["created_at"])

    @property
    def ended(self) -> int:
        """When it was complete, epoch ms."""
        return int(self.item.message["updated_at"])

    @property
    def metadata(self) -> dict[str, Any]:
        """Its metadata; empty where it has none."""
        return metadata_of(self.item)

    @property
    def is_aside(self) -> bool:
        """Whether a program told it to the model."""
        return is_aside(self.metadata, self.role)

    @property
    def is_prompt(self) -> bool:
        """Whether a person typed it."""
        human = self.metadata.get("origin", "human") == "human"
        return self.summary is None and self.role == "user" and human

    @property
    def told(self) -> list[Part]:
        """The texts and files of a user message, marked where a program told them."""
        parts = as_aside(self.parts) if self.is_aside else self.parts
        return [part for part in with_file_texts(parts) if _is_sent(part)]

    @property
    def steps(self) -> Iterator[Step]:
        """The steps of an answer."""
        return steps_of(self.parts)


def turns_of(messages: Iterable[MessageReading]) -> Iterator[Turn]:
    """Yield the messages that say something to or from the model, and summaries, in order."""
    for item in messages:
        parts = [part["data"] for part in item.parts if isinstance(part["data"], dict)]
        turn = Turn(item, parts, compaction_summary(parts))
        if turn.summary is not None:
            says = bool(turn.summary.strip())
        elif turn.role == "user":
            says = bool(turn.told)
        else:
            says = turn.role == "assistant" and any(turn.steps)
        if says:
            yield turn


def without_prompt(turns: Iterable[Turn]) -> tuple[list[Turn], str | None]:
    """Return the turns without an unanswered last prompt, and its text.

    The text is None, and the prompt is kept, where no command line can pass it.
    """
    found = list(turns)
    if not found or not found[-1].is_prompt:
        return found, None
    prompt = handed_over(found[-1].told)
    return (found, None) if prompt is None else (found[:-1], prompt)


def metadata_of(item: MessageReading) -> dict[str, Any]:
    """Return a message's metadata; empty where it has none."""
    metadata = item.message["metadata"]
    return metadata if isinstance(metadata, dict) else {}


def model_of(item: MessageReading, otherwise: str) -> str:
    """Return the model that wrote a message, else another one."""
    model = metadata_of(item).get("model")
    found = model.get("model_id") if isinstance(model, dict) else None
    return str(found or otherwise)


def iso(at: int) -> str:
    """Return epoch ms as ISO text of UTC with milliseconds, ending in ``Z``."""
    moment = datetime.fromtimestamp(at / 1000, UTC)
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _is_sent(part: Part) -> bool:
    if part.get("type") == "text":
        return isinstance(part.get("text"), str) and bool(part["text"].strip())
    return part.get("type") == "file"
