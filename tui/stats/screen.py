"""The statistics screen: figures, a plot over time, tables; a query and a range narrow them."""

from __future__ import annotations

from functools import partial

from textual import events, on
from textual.app import ComposeResult
from textual.containers import Horizontal
from textual.message import Message
from textual.widgets import Input

from tui.host import WayBack
from tui.keys.declaration import AnyCommand
from tui.keys.footer import BottomLine, show_keys
from tui.kit.glyphs import glyphs
from tui.kit.line_bar import LineBar
from tui.kit.lines import Line, Run, width_of
from tui.kit.paint import MARGIN
from tui.kit.plots import is_ascii
from tui.query.line import QueryInput, QueryNotes
from tui.query.values import StoreValues
from tui.stacked import StackedScreen
from tui.stats.model import StatsModel
from tui.stats.page import Shown, StatsPage, Target, page_of
from tui.stats.ranges import LABELS, RANGES, RangeName, range_words
from tui.stats.view import Key, StatsView
from tui.verbs.doing import asking

NARROW = 60
"""Below this width only the chosen range is shown beside the query."""
LOW, HIGH = 30, 46
"""Below and from this height of the screen the plot has fewer and more rows."""


class RangesBar(LineBar):
    """The ranges, of which a click chooses one."""

    class Chosen(Message):
        """A range was clicked."""

        def __init__(self, name: RangeName) -> None:
            """Make the message."""
            super().__init__()
            self.name = name

    def __init__(self) -> None:
        """Make it empty."""
        super().__init__(id="stats-ranges", ground="panel")
        self._places: list[tuple[int, int, RangeName]] = []

    def show_range(self, chosen: RangeName) -> None:
        """Mark a range."""
        runs: list[Run] = []
        self._places = []
        narrow = self.app.size.width < NARROW
        for name in (chosen,) if narrow else RANGES:
            start = width_of(runs)
            runs.append((f" {LABELS[name]} ", "text bold on:focus" if name == chosen else "faint"))
            self._places.append((start, width_of(runs), name))
        self.styles.width = width_of(runs) + 2 * MARGIN
        self.show(Line(runs))

    def on_click(self, event: events.Click) -> None:
        """Choose the range under the mouse."""
        for start, end, name in self._places:
            if start <= event.x - MARGIN < end:
                self.post_message(self.Chosen(name))


class StatsScreen(StackedScreen):
    """Shows the statistics; the model stays when it is closed."""

    SCOPE = "stats"
    AUTO_FOCUS = "#stats-view"
    view: StatsView
    DEFAULT_CSS = """
    StatsScreen #stats-line { height: 1; background: $surface; }
    StatsScreen #stats-mark { width: 3; }
    StatsScreen #stats-query { background: $surface; }
    StatsScreen #stats-told { width: 1fr; }
    """

    def __init__(self, model: StatsModel) -> None:
        """Take the statistics."""
        super().__init__(StatsView(self._page))
        self.model = model
        self.notes = QueryNotes()
        self._values = StoreValues(model.library)
        self.query_line = QueryInput(
            self.notes, id="stats-query", placeholder="type to narrow: agent: workspace: model:",
            known=lambda: self._values.known, hits_below=True,
            words={"accept": "use", "leave": "to the plot", "next": "to the plot"},
        )

    def compose(self) -> ComposeResult:
        """Compose title, query and ranges, the page, what is selected, and the keys."""
        yield LineBar(id="stacked-title", ground="raised")
        with Horizontal(id="stats-line"):
            yield LineBar(id="stats-mark", ground="panel")
            yield self.query_line
            yield RangesBar()
        yield self.notes
        yield self.view
        yield LineBar(id="stats-told", ground="panel")
        yield BottomLine()

    def on_mount(self) -> None:
        """Show what was read last, and read it again."""
        self.query_one("#stats-mark", LineBar).show(Line([("/", "user bold")]))
        model = self.model
        self.query_line.value = model.text
        self.view.selected = model.selected
        model.changed = self._changed
        self.run_worker(self._values.read(), exit_on_error=False)
        self._changed()
        self.call_after_refresh(self._come_back)
        model.read(again=model.fresh)

    def _come_back(self) -> None:
        self.view.scroll_to(y=self.model.scrolled, animate=False, force=True, immediate=True)

    def on_unmount(self) -> None:
        """Remember the place; nothing is drawn any more."""
        self.model.selected = self.view.selected
        self.model.scrolled = self.view.scroll_offset.y
        self.model.detach()

    def store_changed(self) -> None:
        """Read it again; what is selected stays selected."""
        self.model.store_changed()

    def show_running(self, running: int) -> None:
        """Show how many sessions run."""
        if self.has_parts:
            self._show_title()

    def on_resize(self, event: events.Resize) -> None:
        """Fit the plot to the height."""
        self.call_after_refresh(self._changed)

    # What is shown

    @property
    def page(self) -> StatsPage:
        """The page that is shown."""
        page = self.view.page_now
        assert isinstance(page, StatsPage) or not page.lines
        return page if isinstance(page, StatsPage) else StatsPage()

    def _page(self, width: int, selected: Key | None) -> StatsPage:
        model = self.model
        height = self.size.height
        rows = 6 if height < LOW else 8 if height < HIGH else 12
        return page_of(Shown(
            model.board, model.measure, model.text, model.calendar.zone, rows,
            model.library.clock(), model.year, self.app.no_color or is_ascii(), model.unfolded,
        ), width, selected)

    def _changed(self) -> None:
        if not self.has_parts:
            return
        self.view.renew()
        if self.view.selected is None:
            self._select_newest()
        self._show_title()
        self.query_one(RangesBar).show_range(self.model.range.name)
        self._show_told()
        show_keys(self)

    def _select_newest(self) -> None:
        """Select the last bar, or the last day of the calendar."""
        bars = [spot for spot in self.page.spots if spot.column < 0]
        newest = max(bars, key=lambda spot: (spot.left, spot.top), default=None)
        if newest is not None:
            self.view.select(newest.key)

    def toggle_calendar(self) -> None:
        """Show a year as a calendar in place of the plot, or the plot again."""
        self.view.selected = None
        self.model.toggle_calendar()

    def _show_title(self) -> None:
        model = self.model
        board, zone = model.board, model.calendar.zone
        between = model.range.between(model.library.clock(), zone)
        left: list[Run] = [("backscroll  ", "text bold"), ("statistics", "text"),
                           (f"  {range_words(between, zone)}", "muted")]
        right: list[Run] = []
        if running := self.host.running_sessions:
            right.append((f"{glyphs().running} {running} running  ", "ok"))
        if board.why:
            right.append((f"{board.why}  ", "tool"))
        coverage = board.coverage
        if coverage is not None and not coverage.whole:
            right.append((f"counted {coverage.counted:,} of {coverage.total:,} sessions  ", "tool"))
        elif model.running and not model.fresh:
            right.append((f"counting{glyphs().more}  ", "muted"))
        date = model.prices.date if model.prices is not None else ""
        prices: Run = (f"prices of {date}", "muted")
        if date:
            right.append(prices)
        room = self.size.width - 4
        if width_of(left) + width_of(right) > room:
            left = left[:2]
        if width_of(left) + width_of(right) > room and right and right[-1] == prices:
            right.pop()
        if width_of(left) + width_of(right) > room:
            left = left[1:]
        self.query_one("#stacked-title", LineBar).show(Line(left, right))

    def _show_told(self) -> None:
        target = self.target
        runs: list[Run] = list(target.words) if target is not None else []
        self.query_one("#stats-told", LineBar).show(Line(runs))

    # What is selected

    @property
    def target(self) -> Target | None:
        """What the selected bar or row leads to; None where nothing is selected."""
        selected = self.view.selected
        return self.page.targets.get(selected) if selected is not None else None

    @on(StatsView.Moved)
    def _moved(self, event: StatsView.Moved) -> None:
        event.stop()
        self.model.selected = self.view.selected
        self._show_told()
        show_keys(self)

    @on(StatsView.Opened)
    def _clicked(self, event: StatsView.Opened) -> None:
        event.stop()
        self.open()

    def footer_label(self, command: AnyCommand) -> str | None:
        """Return a command's words in the footer."""
        label = super().footer_label(command)
        target = self.target
        if command.id != "stats.open" or label is None or target is None:
            return label
        return {"sessions": "its sessions", "session": "open", "fold": "fold"}[target.kind]

    def open(self) -> None:
        """Show the sessions of the bar or row in the list, or open its session."""
        target, selected, model = self.target, self.view.selected, self.model
        if target is None or selected is None:
            return
        if target.kind == "fold":
            model.toggle_rows(selected[0])
            return
        app, host = self.app, self.host
        back = WayBack("statistics", host.open_stats)
        while isinstance(app.screen, StackedScreen):  # The search may be below this one.
            app.pop_screen()
        if target.kind == "session":
            host.open_session(target.session_id, target.message_id, back=back)
        else:
            sessions = partial(model.sessions_of, target.counted, model.query)
            host.show_in_list(target.query, sessions, back)

    async def copy(self) -> None:
        """Copy what is selected with the mouse, else what the bar or row comes to."""
        from tui.kit import clipboard

        selected, target = self.get_selected_text(), self.target
        if selected:
            await clipboard.copy(self.host, selected, "the selected text")
        elif target is not None:
            text = "".join(text for text, _ink in target.words)
            await clipboard.copy(self.host, text, "the line")

    # What is asked for

    @on(Input.Changed)
    def _typed(self, event: Input.Changed) -> None:
        event.stop()
        self.model.ask(event.value)

    @on(Input.Submitted)
    @on(QueryInput.Left)
    def _left(self, event: Message) -> None:
        event.stop()
        self.set_focus(self.view)

    @on(QueryInput.Stepped)
    def _stepped(self, event: QueryInput.Stepped) -> None:
        event.stop()
        if event.step > 0:
            self.set_focus(self.view)

    def edit(self) -> None:
        """Put the cursor into the query."""
        self.set_focus(self.query_line)
        self.query_line.cursor_position = len(self.query_line.value)

    def clear(self) -> None:
        """Take the query away."""
        self.query_line.value = ""
        self.model.ask("")

    @on(RangesBar.Chosen)
    async def _range_clicked(self, event: RangesBar.Chosen) -> None:
        event.stop()
        await self.choose_range(event.name)

    async def choose_range(self, name: RangeName) -> None:
        """Show another range; a custom one is asked for."""
        if name == "custom":
            await asking(self, self._ask_range())
        else:
            self.model.choose_named(name)

    async def _ask_range(self) -> None:
        from tui.stats.asking import ask_range

        chosen = await ask_range(self.host, self.model)
        if chosen is not None:
            self.model.choose_range(chosen)

    def step_range(self, by: int) -> None:
        """Show the next shorter (-1) or longer (1) range."""
        names = RANGES[:-1]
        now = self.model.range.name
        at = names.index(now) + by if now in names else 2
        if 0 <= at < len(names):
            self.model.choose_named(names[at])

    def move(self, by: int) -> None:
        """Show the time before or after."""
        why = self.model.move(by)
        if why:
            self.notify(why, timeout=2, markup=False)

    def next_bucket(self) -> None:
        """Show the plot by hour, day, week or month."""
        before = self.model.board.bucket
        if self.model.next_bucket() == before:
            self.notify("Other bars would be too many for this range", timeout=2, markup=False)

    async def save(self) -> None:
        """Save the figures as CSV."""
        from tui.stats.asking import save_figures

        await asking(self, save_figures(self.host, self.model))

    def step_back(self) -> None:
        """Leave the calendar, or close."""
        if self.model.in_calendar:
            self.toggle_calendar()
        else:
            self.close()
