"""What of a session goes out: some of its messages, with or without images and outputs."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, Literal

from store.exports.reading import MessageReading, Row, SessionReading
from store.rows import is_tool_type

Outputs = Literal["all", "short", "none"]
SHORT_LINES, SHORT_CHARACTERS = 10, 2_000
LEFT_OUT = "[left out]"
_RESULTS = ("output", "rawOutput", "errorText", "result")


@dataclass(frozen=True, slots=True)
class Selection:
    """What is written of a session.

    Attributes:
        first: The message that it begins with; None for the first one.
        last: The message that it ends with; None for the last one.
        only: The messages that are written; None for all.
        images: Whether images and other files are written.
        outputs: How much of the outputs of tools.
    """

    first: str | None = None
    last: str | None = None
    only: frozenset[str] | None = None
    images: bool = True
    outputs: Outputs = "all"

    @property
    def changes_parts(self) -> bool:
        """Whether anything within messages is left out."""
        return not self.images or self.outputs != "all"


def selected(reading: SessionReading, selection: Selection) -> SessionReading:
    """Return a reading of what was selected.

    Args:
        reading: A session, none of whose messages has been read yet.
        selection: What of it.
    """
    messages = _of_range(reading.messages, selection)
    if not selection.changes_parts:
        return replace(reading, messages=messages)
    return replace(
        reading, originals=lambda record: None,
        messages=(_shortened(each, selection) for each in messages))


def _of_range(
    messages: Iterator[MessageReading], selection: Selection
) -> Iterator[MessageReading]:
    begun = selection.first is None
    for each in messages:
        name = each.message["id"]
        begun = begun or name == selection.first
        if begun and (selection.only is None or name in selection.only):
            yield each
        if name == selection.last:
            return


def _shortened(item: MessageReading, selection: Selection) -> MessageReading:
    parts = [
        part | {"data": data} for part in item.parts
        if (data := _part(part, selection)) is not None
    ]
    return MessageReading(item.message, parts)


def _part(row: Row, selection: Selection) -> Any:
    data = row["data"]
    if not isinstance(data, dict):
        return data
    kind = str(data.get("type", row["type"]))
    if kind in ("file", "reasoning-file"):
        return data if selection.images else None
    is_call = is_tool_type(kind)
    made = {
        key: _result(value, selection.outputs) if is_call and key in _RESULTS else value
        for key, value in data.items() if not (is_call and key == "resultProviderMetadata"
                                               and selection.outputs != "all")
    }
    return made if selection.images else _without_images(made)


def _result(value: Any, outputs: Outputs) -> Any:
    if outputs == "all" or value is None:
        return value
    if outputs == "none":
        return LEFT_OUT
    if isinstance(value, str):
        return _short(value)
    if isinstance(value, list):
        return [_result(one, outputs) for one in value]
    if isinstance(value, dict):
        return {key: one if key in ("type", "mediaType") else _result(one, outputs)
                for key, one in value.items()}
    return value


def _short(text: str) -> str:
    lines = text.split("\n")
    kept = "\n".join(lines[:SHORT_LINES])[:SHORT_CHARACTERS]
    more = len(lines) - kept.count("\n") - 1
    if more > 0:
        return f"{kept}\n… {more:,} more lines"
    return kept if len(kept) == len(text) else f"{kept}…"


def _without_images(value: Any) -> Any:
    """Return JSON with its images and files in base64 replaced."""
    if isinstance(value, str):
        return LEFT_OUT if value.startswith("data:") and ";base64," in value[:200] else value
    if isinstance(value, list):
        return [_without_images(one) for one in value]
    if isinstance(value, dict):
        packed = value.get("type") in ("image", "media", "image-data", "file-data", "base64")
        return {
            key: LEFT_OUT if packed and key in ("data", "base64") and isinstance(one, str)
            else _without_images(one) for key, one in value.items()
        }
    return value
