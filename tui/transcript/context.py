"""The context view: exactly what the model would be sent now, and its size by kind."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from store.queries import context_usage as queries
from store.queries import transcript
from store.queries.context import context_ids
from store.queries.context_usage import KINDS, ContextUsage, Kind
from store.queries.transcript import Keyset, Outline
from store.text import figures
from tui.kit.glyphs import glyphs
from tui.kit.key_hints import keyed
from tui.kit.lines import Line, Run, width_of
from tui.transcript.document import Document
from tui.transcript.finder import Finder
from tui.transcript.follower import Follower
from tui.transcript.headings import FactLines
from tui.transcript.heights import Heights
from tui.transcript.item import Setting
from tui.transcript.measures import estimates
from tui.transcript.placement import Placement
from tui.transcript.reader import PAGE_MESSAGES, SessionReader
from tui.transcript.shown import PaneServices, ShownSession
from tui.transcript.skeleton import Skeleton

if TYPE_CHECKING:
    from store.store import Store

CHARACTERS_PER_TOKEN = 4
"""Assumed where no model has counted the tokens."""
MESSAGES_AT_ONCE = 300
INKS: dict[Kind, str] = {
    "system": "muted", "summary": "fork", "user": "user", "assistant": "assistant",
    "reasoning": "reasoning", "tool input": "ok", "tool output": "tool",
}


class ContextReader(SessionReader):
    """Reads a session in the order and extent of its context."""

    in_display_order = False

    async def open(self, setting: Setting, around: str | None, *, at_end: bool) -> Document:
        """Return a complete document.

        Args:
            setting: The widths and modes of the layout.
            around: The message whose rows are loaded; None for the end.
            at_end: Which end the facts of the session are read with.
        """
        # For the session's activity and facts; its window is in another order.
        await super().open(setting, around, at_end=at_end)
        skeleton, heights = await self.skeleton(setting)
        fresh = Document(setting)
        fresh.use(skeleton, heights, complete=True)
        part = skeleton.locate(around) if around is not None else None
        last = len(skeleton) if part is None else part
        await self.have(fresh, range(last - 64, last + 64))
        return fresh

    async def skeleton(self, setting: Setting) -> tuple[Skeleton, Heights]:
        """Return the skeleton of the context with estimated heights."""
        ids = await self.store.read(context_ids, self.row.id)
        wanted, kept = set(ids), dict[str, list[Outline]]()
        after: Keyset | None = None
        while True:
            page = await self.store.read(
                transcript.outline_page, self.row.id, after, PAGE_MESSAGES)
            if not page:
                break
            for outline in page:
                if outline.message_id in wanted:
                    kept.setdefault(outline.message_id, []).append(outline)
            after = page[-1].created_at, page[-1].message_id
        skeleton = Skeleton()
        for message_id in ids:
            for outline in kept.get(message_id, ()):
                skeleton.add(outline)
        heights = await self.store.read(lambda _db: estimates(skeleton, setting))
        return skeleton, heights


async def read_context_usage(store: Store, session_id: str) -> ContextUsage:
    """Measure a session's context, in pages so that other reads go in between."""
    ids = await store.read(context_ids, session_id)
    usage = ContextUsage()
    for start in range(0, len(ids), MESSAGES_AT_ONCE):
        await store.read(queries.add_page, usage, ids[start:start + MESSAGES_AT_ONCE])
    await store.read(queries.add_system, usage)
    return usage


@dataclass(frozen=True, slots=True)
class Meter:
    """Tokens in the context, and the share of each kind.

    Attributes:
        counted: Whether a model counted them; else they follow from characters.
        rest: Whether the system's share is what the rest leaves over.
    """

    tokens: int
    counted: bool
    kinds: dict[Kind, int]
    rest: bool = False


def meter_of(usage: ContextUsage) -> Meter:
    """Return the tokens of each kind.

    Where a model has counted, what the kept texts do not explain is the system prompt and
    the tools' descriptions, unless the prompt is kept: then the kinds are scaled.
    """
    guessed = {kind: size / CHARACTERS_PER_TOKEN for kind, size in usage.characters.items()}
    known = sum(guessed.values())
    if usage.counted is None:
        return Meter(round(known), False, {kind: round(size) for kind, size in guessed.items()})
    total = usage.counted + usage.since / CHARACTERS_PER_TOKEN
    rest = not usage.characters["system"] and total > known
    if rest:
        guessed["system"] = total - known
    elif known:
        guessed = {kind: size * total / known for kind, size in guessed.items()}
    return Meter(round(total), True, {kind: round(guessed[kind]) for kind in KINDS}, rest)


def meter_lines(meter: Meter | None, messages: int, width: int) -> list[Line]:
    """Return the lines above the context view: how much it is, a bar, what is in it.

    Args:
        meter: The tokens; None while they are counted.
        messages: How many messages are in the context.
        width: Columns.
    """
    width = max(20, width - 2)
    title: list[Run] = [("Sent to the model now", "user bold")]
    right: list[Run] = [(keyed("transcript.context", "shows all"), "muted")]
    if meter is None or not meter.tokens:
        words = "counting" + glyphs().more if meter is None else "nothing"
        return [Line([*title, (f"  {words}", "faint")], right=right), Line([]), Line([])]
    about = "counted by it" if meter.counted else "guessed from characters"
    title += [(f"  {figures.tokens(meter.tokens)} tokens", "text bold"), (f", {about}", "muted"),
              (f"  {messages:,} message{'s' * (messages != 1)}", "faint")]
    kinds = [(kind, size) for kind in KINDS if (size := meter.kinds[kind])]
    return [Line(title, right=right), Line(_bar(kinds, width)), *_legend(meter, kinds, width)]


def _bar(kinds: list[tuple[Kind, int]], width: int) -> list[Run]:
    total = sum(size for _kind, size in kinds)
    runs: list[Run] = []
    seen, at = 0, 0
    full = "█" if glyphs().bar == "▎" else "#"
    for kind, size in kinds:
        seen += size
        edge = max(at + 1, round(width * seen / total))
        runs.append((full * max(0, min(edge, width) - at), INKS[kind]))
        at = min(edge, width)
    return runs


def _legend(meter: Meter, kinds: list[tuple[Kind, int]], width: int) -> list[Line]:
    total = sum(meter.kinds.values()) or 1
    entries: list[list[Run]] = []
    for kind, size in sorted(kinds, key=lambda item: -item[1]):
        name = "system, tools" if kind == "system" and meter.rest else kind
        entries.append([
            (f"{glyphs().thick_bar} ", INKS[kind]), (f"{name} ", "muted"),
            (f"{max(1, round(100 * size / total))}% ", "text"), (figures.tokens(size), "faint"),
        ])
    if meter.counted:
        entries.append([("shares by characters", "faint")])
    lines: list[Line] = [Line([])]
    for entry in entries:
        used = width_of(lines[-1].runs)
        if used and used + 3 + width_of(entry) > width:
            lines.append(Line([]))
            used = 0
        gap: list[Run] = [("   ", "text")] if used else []
        lines[-1].runs = [*lines[-1].runs, *gap, *entry]
    return [*lines, Line([])]


class ContextView:
    """Goes between all that happened and what the model would be sent now."""

    def __init__(
        self, shown: ShownSession, pane: PaneServices, *, placement: Placement, finder: Finder,
        follower: Follower,
    ) -> None:
        """Start outside the context view.

        Args:
            shown: The session.
            pane: Runs the measuring.
            placement: Takes the step to the selected message in the other view.
            finder: Ends the search, which belongs to one of the views.
            follower: Changes nothing while the view is replaced.
        """
        self._shown, self._pane, self._placement = shown, pane, placement
        self._finder, self._follower = finder, follower
        self.lines = FactLines(3, id="transcript-context")
        """What is in the context, above the transcript."""
        self.lines.display = False
        self._meter: Meter | None = None
        self._measured: tuple[str, int] | None = None

    @property
    def is_shown(self) -> bool:
        """Whether the context is shown, not all that happened."""
        reader = self._shown.reader
        return reader is not None and not reader.in_display_order

    async def toggle(self) -> None:
        """Show the context, or all that happened."""
        # What is written meanwhile is shown afterwards, in the view that is shown then.
        async with self._placement.in_order() as same, self._follower.changing:
            if same:
                await self._show_other()

    async def _show_other(self) -> None:
        shown, before = self._shown, self._shown.reader
        assert before is not None
        kind = SessionReader if self.is_shown else ContextReader
        reader = kind(before.store, before.row)
        chosen, at_end = shown.message_id, shown.view.at_end
        document = await reader.open(shown.setting(), chosen, at_end=False)
        document.folds = shown.document.folds
        if not document.complete:
            skeleton, heights = await reader.skeleton(document.setting)
            document.use(skeleton, heights, complete=True)
        if shown.reader is not before:
            return
        self._finder.end()
        before.left, shown.reader = True, reader
        shown.view.show(document)

        def step() -> None:
            part = shown.document.skeleton.locate(chosen)
            if at_end or part is None:
                shown.view.step_to_end()
            else:
                shown.view.step_to(part)

        await self._placement.arrive(step)
        self._pane.update_headings()

    def update(self, width: int) -> None:
        """Show what is in the context, in its view only.

        Args:
            width: Columns of the lines.
        """
        self.lines.display = self.is_shown
        if not self.is_shown:
            self._measured = None
            return
        messages = len(self._shown.document.skeleton.message_ids)
        state = (self._shown.session_id, messages)
        if state != self._measured:
            if self._measured is None or self._measured[0] != state[0]:
                self._meter = None
            self._measured = state
            self._pane.background(self._measure, group="context")
        lines = meter_lines(self._meter, messages, width)
        self.lines.styles.height = len(lines)
        self.lines.show(lines)

    async def _measure(self) -> None:
        reader = self._shown.reader
        if reader is None:
            return
        found = meter_of(await read_context_usage(reader.store, reader.row.id))
        if reader is self._shown.reader:
            self._meter = found
            self._pane.update_headings()
