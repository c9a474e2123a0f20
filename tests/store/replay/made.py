"""Parts of sessions with their times, without a store."""

from __future__ import annotations

from array import array
from collections.abc import Iterable
from dataclasses import dataclass, field

from store.queries.transcript import Outline
from store.replay.log import Writes
from store.replay.timeline import Timeline

START = 1_795_000_000_000


@dataclass
class Msg:
    """A message; each part is ``(type, state, begins, ends)``, ms after START."""

    at: int | None
    parts: list[tuple[str, str | None, int, int]] = field(default_factory=list)
    role: str = "assistant"
    hidden: int | None = None
    queued: int | None = None
    inherited: bool = False
    origin: str | None = None


def text(begins: int, ends: int | None = None) -> tuple[str, str | None, int, int]:
    return "text", None, begins, begins if ends is None else ends


def call(begins: int, ends: int, state: str = "output-available") -> tuple[str, str, int, int]:
    return "tool-Bash", state, begins, ends


def user(at: int | None, **more: object) -> Msg:
    return Msg(at, [text(at or 0)], role="user", **more)  # type: ignore[arg-type]


def ms(at: int) -> int:
    return START + at


def raw(messages: Iterable[Msg]) -> Timeline:
    """The timeline with everything added, not settled."""
    timeline = Timeline()
    for number, message in enumerate(messages):
        at = 0 if message.at is None else ms(message.at)
        for index, (kind, state, begins, ends) in enumerate(message.parts or [("", None, 0, 0)]):
            outline = Outline(
                f"m{number}", message.role, at, message.hidden and ms(message.hidden),
                message.queued and ms(message.queued), None, int(message.inherited),
                message.origin, index if message.parts else None, kind or None, 10, state)
            timed = message.at is not None
            timeline.add(outline, ms(begins) if timed else 0, ms(ends) if timed else 0)
    return timeline


def made(*messages: Msg) -> Timeline:
    return raw(messages).settle()


def writes(*times: int, is_own: bool = True) -> Writes:
    """Writes of a part by a log, ms after START; each event has its time as its number."""
    return Writes(array("q", map(ms, times)), array("q", times), is_own, False)


def there(timeline: Timeline, at: int) -> list[int]:
    """The parts that are there so many ms after START."""
    cut = timeline.cut(ms(at))
    return [*range(cut.until), *cut.beyond]
