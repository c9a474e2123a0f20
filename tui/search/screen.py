"""The search screen: a query, facets, what it found by session, and the transcript at a hit."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING

from textual import events, on
from textual.app import ComposeResult
from textual.containers import Horizontal
from textual.timer import Timer
from textual.widget import Widget
from textual.widgets import Input

from store.language.fields import FIELDS
from store.language.query import without
from store.text.figures import count_of
from tui.keys.declaration import AnyCommand
from tui.keys.footer import BottomLine, show_keys
from tui.keys.jump import jump_in
from tui.keys.names import key_label, key_name
from tui.kit.blocks import Fixed
from tui.kit.glyphs import glyphs
from tui.kit.line_bar import LineBar
from tui.kit.line_view import LineView
from tui.kit.lines import Line, Link, Run
from tui.kit.scrollbar import ThinScrollBar, set_lines
from tui.query.line import QueryInput, QueryNotes
from tui.query.values import StoreValues
from tui.search.chips import FacetChips
from tui.search.facets import MORE, RECENT, SAVED, Facet, chips, column, facets_of
from tui.search.hits_view import HitsView
from tui.search.model import SearchModel
from tui.search.preview import Preview
from tui.search.results import Entry
from tui.search.words import count_runs, nothing_lines, start_lines
from tui.stacked import StackedScreen
from tui.state.layout import THREE_PANES, TWO_PANES
from tui.verbs.doing import asking

if TYPE_CHECKING:
    from tui.search.tour import Tour

PREVIEW_AFTER_S = 0.08
"""The selection rests this long before its transcript is shown beside it."""
FACETS_WIDTH = 30
COUNTS_BESIDE = 120
"""From this width of the screen the counts are in the line of the query."""
RECENT_SHOWN = 5


class FacetsView(LineView):
    """The column of facets; the cursor goes from value to value."""

    def move_by(self, lines: int) -> None:
        """Go some values down, or up where it is negative."""
        height = self.stack.height(self.cells)
        step, number, left = (1 if lines > 0 else -1), self.cursor, abs(lines)
        while left and 0 <= number + step < height:
            number += step
            left -= self.line_at(number).link is not None
        if self.line_at(number).link is not None:
            self.move_to(number)

    def on_mount(self) -> None:
        """Draw a thin scroll bar."""
        super().on_mount()
        self.vertical_scrollbar.renderer = ThinScrollBar  # type: ignore[misc]

    def lay_out(self) -> None:
        """Measure the values anew and keep the cursor on a line."""
        height = self.stack.height(self.cells)
        self.cursor = max(0, min(self.cursor, height - 1))
        set_lines(self, height)
        self.refresh()
        self.post_message(self.CursorMoved())

    def to_value(self) -> None:
        """Put the cursor on a value, where it is on none."""
        if self.line.link is None:
            self.move_by(1)

    def change(self, build: Callable[[int], Sequence[Line]]) -> None:
        """Show other values; the cursor stays on its value where that is still there."""
        link = self.line.link
        self.show([Fixed(build)], stay=True)
        if link is None or self.line.link == link:
            return
        places = range(self.stack.height(self.cells))
        found = next((n for n in places if self.line_at(n).link == link), None)
        if found is not None:
            self.move_to(found)
        else:
            self.to_value()


class SearchScreen(StackedScreen):
    """Shows a search; the model goes on without it."""

    SCOPE = "search"
    AUTO_FOCUS = "#search-query"
    DEFAULT_CSS = f"""
    SearchScreen #search-line {{ height: 1; background: $panel; }}
    SearchScreen #search-mark {{ width: 3; }}
    SearchScreen #search-query {{ background: $panel; }}
    SearchScreen.middle QueryNotes.of-word > _Completions,
    SearchScreen.wide QueryNotes.of-word > _Completions {{ max-width: {FACETS_WIDTH}; }}
    SearchScreen #search-below {{ height: 1; display: none; }}
    SearchScreen #search-facets {{ width: {FACETS_WIDTH}; background: $background;
        display: none; overflow-y: scroll; }}
    SearchScreen #search-body {{ height: 1fr; }}
    SearchScreen.middle #search-facets, SearchScreen.wide #search-facets {{ display: block; }}
    SearchScreen.wide Preview {{ display: block; }}
    SearchScreen.narrow FacetChips {{ display: block; }}
    SearchScreen.below #search-below {{ display: block; }}
    SearchScreen.below #search-counts {{ display: none; }}
    """

    def __init__(
        self, model: SearchModel, tour: Tour, text: str | None = None, *, back: bool = False
    ) -> None:
        """Take the search.

        Args:
            model: What was searched for last, and what was found.
            tour: Opens hits in the transcript.
            text: What to search for; None for what was searched for last.
            back: Whether it is shown again after a hit was opened: the focus is where it was.
        """
        self.facets = FacetsView(id="search-facets", ground="background")
        super().__init__(self.facets)
        self.model, self._tour, self._text = model, tour, text
        self._to_hits = back and model.opened_in_hits
        self.hits = HitsView(model.results)
        self.chips = FacetChips()
        self.preview = Preview()
        self.notes = QueryNotes()
        self._values = StoreValues(model.library)
        self.query_line = QueryInput(
            self.notes, id="search-query", placeholder="search everything",
            known=lambda: self._values.known, history=lambda: model.keeper.kept.recent,
            hits_below=True,
            words={"accept": "open at the hit", "leave": "back", "next": "to the hits"},
        )
        self._groups: list[tuple[str, list[Facet]]] = []
        self._opened: set[str] = set()
        self._opens_first = False
        self._preview_due: Timer | None = None
        self._unfiltered: tuple[str, bool] | None = None

    def compose(self) -> ComposeResult:
        """Compose title, query, counts, the three columns and the keys."""
        yield LineBar(id="stacked-title", ground="raised")
        with Horizontal(id="search-line"):
            yield LineBar(id="search-mark", ground="raised")
            yield self.query_line
            yield LineBar(id="search-counts", ground="raised")
        yield LineBar(id="search-below", ground="background")
        yield self.notes
        yield self.chips
        with Horizontal(id="search-body"):
            yield self.facets
            yield self.hits
            yield self.preview
        yield BottomLine()

    def on_mount(self) -> None:
        """Show what was found last, and search for something else where that is wanted."""
        self.query_one("#search-mark", LineBar).show(Line([("S", "user bold")]))
        self.model.changed = self._changed
        if self._text is not None:
            self.query_line.value = self._text
            self.model.ask(self._text)
        else:
            self.query_line.value = self.model.text
            self.query_line.action_select_all()
        if self._to_hits and self.model.results.hits:
            self.set_focus(self.hits)
        self.run_worker(self._values.read(), exit_on_error=False)
        self._changed(False)
        self.call_after_refresh(self.hits.reveal)
        self._preview_soon()

    def on_unmount(self) -> None:
        """Let the search go on without a screen."""
        if self.model.changed == self._changed:
            self.model.detach()

    def on_resize(self, event: events.Resize) -> None:
        """Choose the columns for the width."""
        width = event.size.width
        self.set_class(width >= THREE_PANES, "wide")
        self.set_class(TWO_PANES <= width < THREE_PANES, "middle")
        self.set_class(width < TWO_PANES, "narrow")
        self.set_class(width < COUNTS_BESIDE, "below")
        self.query_one("#search-counts").styles.width = self._counts_width(width)
        self.preview.styles.width = min(84, max(48, int((width - FACETS_WIDTH) * 0.4)))
        self.call_after_refresh(self._resized)

    def store_changed(self) -> None:
        """Search again; what is selected stays selected."""
        self.model.store_changed()

    def _resized(self) -> None:
        if self.has_parts:
            self._show_counts()
            self._show_facets()
            self._show_nothing()
            self._preview_soon()

    # What is shown

    def _changed(self, fresh: bool) -> None:
        """Show what has changed of the search.

        Args:
            fresh: Whether the results are those of another query.
        """
        if not self.has_parts:
            return
        opens = fresh and self._opens_first
        if fresh or self.model.failure:
            self._opens_first = False
        if opens and self.is_current and self.query_line.has_focus and self._open_hit():
            return
        if fresh:
            self.hits.start()
            self._unfiltered = None
        elif self._drawn != self.model.results.version:
            self.hits.changed(self._before)
        self._drawn = self.model.results.version
        self._before = self.model.results.entry
        self._show_counts()
        self._show_facets()
        self._show_nothing()
        self._show_place()
        show_keys(self)
        if fresh or self._previewed != (self.model.results.selected, self.model.results.hit):
            self._preview_soon()

    _before: Entry | None = None
    _drawn = -1
    _shown_facets: object = None
    _previewed: object = None

    def _show_counts(self) -> None:
        model, width = self.model, self.size.width
        total = model.counts.all_sessions
        facts: list[Run] = [(count_of(total, "session"), "muted")] if total else []
        if running := self.host.running_sessions:
            facts.append((f"  {glyphs().running} {running} running", "ok"))
        self.query_one("#stacked-title", LineBar).show(Line(
            [("backscroll", "text bold"), ("  search", "text")], facts))
        order = "best first" if model.order == "best" else "newest first"
        below = width - len(order) - 4
        room = below if width < COUNTS_BESIDE else self._counts_width(width) - 5
        runs = count_runs(
            model.counts, model.coverage, room, counting=model.counting,
        ) if model.has_query and not model.failure else []
        self.query_one("#search-counts", LineBar).show(Line([], runs))
        self.query_one("#search-below", LineBar).show(Line(runs, [(order, "faint")]))

    def show_running(self, running: int) -> None:
        """Show how many sessions run."""
        if self.has_parts:
            self._show_counts()

    @staticmethod
    def _counts_width(width: int) -> int:
        """Return the cells of the counts beside the query."""
        return min(80, width // 2)

    def _show_facets(self) -> None:
        model = self.model
        kept, now = model.keeper.kept, self.host.library.clock()
        shown = (model.facets, model.days, model.query.filters, kept, frozenset(self._opened),
                 model.text in kept.saved.values(), model.has_query, self.size.width)
        if shown == self._shown_facets:
            return
        self._shown_facets = shown
        self._groups = facets_of(model.facets, model.query, model.days)
        self.facets.change(partial(
            column, self._groups, now=now, opened=self._opened, saved=kept.saved,
            recent=() if model.has_query else kept.recent[:RECENT_SHOWN], text=model.text,
        ))
        self.chips.show(chips(self._groups, now))

    def _show_nothing(self) -> None:
        model, width = self.model, self.hits.cells
        if model.results.height:
            return
        if not model.has_query and not model.failure:
            fields = [(field.name, field.help) for field in FIELDS.values()]
            self.hits.tell(start_lines(width, fields))
            return
        known = self._unfiltered
        self.hits.tell(nothing_lines(
            model.query, model.counts, model.coverage, width, running=model.running,
            unfiltered=known[1] if known and known[0] == model.text else None,
            failure=model.failure, reset=self._key_of("search.reset"),
        ))
        both = model.query.terms and model.query.filters
        if both and not model.running and not model.failure and (
            known is None or known[0] != model.text
        ):
            self.run_worker(self._look_without_filters(), group="unfiltered", exclusive=True,
                            exit_on_error=False)

    async def _look_without_filters(self) -> None:
        text = self.model.text
        found = await self.model.finds_without_filters()
        if text == self.model.text:
            self._unfiltered = text, found
            self._show_nothing()

    def _key_of(self, command_id: str) -> str:
        table = self.host.commands
        keys = table.keys_of(table.by_id[command_id])
        return key_label(key_name(keys[0])) if keys else ""

    def _show_place(self) -> None:
        self.preview.place(self._tour.words_of(self.model.results.hit))

    # The preview

    def _preview_soon(self) -> None:
        if self._preview_due is not None:
            self._preview_due.stop()
        self._preview_due = self.set_timer(PREVIEW_AFTER_S, self._show_preview)

    def _show_preview(self) -> None:
        self._preview_due = None
        self._previewed = self.model.results.selected, self.model.results.hit
        if not self.has_class("wide"):
            return
        hit = self.model.results.hit
        if hit is None:
            self.preview.clear()
        else:
            self.run_worker(  # Its overloads hide the result type of a function.
                partial(self._read_preview, hit), group="preview",  # type: ignore[arg-type]
                exclusive=True, exit_on_error=False,
            )

    async def _read_preview(self, hit: object) -> None:
        store = await self.host.library.ready()
        chosen = self.model.results.hit
        if chosen is not None and chosen is hit:
            await self.preview.show(store, chosen, self.model.marks)

    @on(Preview.Opened)
    def _preview_clicked(self, event: Preview.Opened) -> None:
        event.stop()
        self._open_hit()

    # The query

    @on(Input.Changed)
    def _typed(self, event: Input.Changed) -> None:
        event.stop()
        self._opens_first = False
        self.model.ask(event.value)

    @on(QueryInput.Stepped)
    def _stepped(self, event: QueryInput.Stepped) -> None:
        event.stop()
        if event.step > 0:
            self.set_focus(self.hits)

    @on(QueryInput.Left)
    def _left(self, event: QueryInput.Left) -> None:
        event.stop()
        self.close()

    @on(Input.Submitted)
    def _submitted(self, event: Input.Submitted) -> None:
        event.stop()
        self.model.ask(event.value)
        # What is shown may be the hits of the query before, where a store answers slowly.
        self._opens_first = self.model.is_awaited
        if not self._opens_first:
            self._open_hit()

    def ask(self, text: str) -> None:
        """Search for something else."""
        self.query_line.value = text
        self.query_line.cursor_position = len(text)
        self.model.ask(text)

    def edit(self, *, fresh: bool = False) -> None:
        """Put the cursor into the query.

        Args:
            fresh: Select it whole, so that what is typed replaces it.
        """
        self.set_focus(self.query_line)
        if fresh:
            self.query_line.action_select_all()
        else:
            self.query_line.cursor_position = len(self.query_line.value)

    def without_filters(self) -> None:
        """Take all filters out of the query."""
        query = self.model.query
        self.ask(without(query, [each.span for each in query.filters]))

    def sort(self) -> None:
        """Search in the other order."""
        self.model.sort()
        order = "The best hits first" if self.model.order == "best" else "The newest hits first"
        self.host.notify(order, timeout=2, markup=False)

    # Focus

    def footer_label(self, command: AnyCommand) -> str | None:
        """Return a command's words in the footer; None where it does nothing now."""
        if command.id == ("search.open" if self.in_facets else "search.narrow"):
            return None
        if command.id == "search.next-pane" and not self.hits.has_focus:
            return "query" if self.in_facets else None  # The query's line shows ↓ for the hits.
        return super().footer_label(command)

    @property
    def in_facets(self) -> bool:
        """Whether the keys act on the facets."""
        return self.facets.has_focus or self.chips.has_focus

    @property
    def has_facets(self) -> bool:
        """Whether there is anything to narrow the search by."""
        kept = self.model.keeper.kept
        return bool(self._groups or (not self.has_class("narrow") and (kept.saved or kept.recent)))

    def focus_beside(self, by: int) -> None:
        """Go to the query, the hits and the facets in turn."""
        places: list[Widget] = [self.query_line, self.hits]
        if self.has_facets:
            places.append(self.chips if self.has_class("narrow") else self.facets)
        now = next((at for at, widget in enumerate(places) if widget.has_focus), 0)
        self._focus(places[(now + by) % len(places)])

    def _focus(self, widget: Widget) -> None:
        if widget is self.query_line:
            self.edit()
        elif widget is self.hits:
            self.set_focus(self.hits)
        elif widget is self.chips:
            self.set_focus(self.chips)
        else:
            self.set_focus(self.facets)
            self.facets.to_value()

    def sideways(self, by: int) -> None:
        """Go to what is at the left or right."""
        if self.chips.has_focus:
            self.chips.move(by)
        elif by < 0 and self.hits.has_focus and self.has_facets and not self.has_class("narrow"):
            self._focus(self.facets)
        elif by > 0 and self.facets.has_focus:
            self.set_focus(self.hits)

    # Moving

    def jump(self) -> None:
        """Let a hit or a facet on the screen be chosen by its letters."""
        if self.in_facets:
            jump_in(self, self.facets, self.facets.move_to)
        else:
            jump_in(self, self.hits, self.hits.jump_to)

    def move(self, by: int) -> None:
        """Go some hits or values down, or up where it is negative; from the query to the hits."""
        if self.facets.has_focus:
            self.facets.move_by(by)
        elif self.hits.has_focus:
            self.hits.move(by)
        elif by > 0:
            self.set_focus(self.hits)
        elif self.chips.has_focus:
            self.edit()

    def move_page(self, by: int) -> None:
        """Go a page down or up."""
        if self.facets.has_focus:
            self.facets.move_by(by * self.facets.page)
        else:
            self.hits.move_page(by)

    def top(self) -> None:
        """Go to the first hit or value."""
        (self.facets.move_by if self.facets.has_focus else self.hits.move)(-1_000_000)

    def end(self) -> None:
        """Go to the last hit or value that is known."""
        (self.facets.move_by if self.facets.has_focus else self.hits.move)(1_000_000)

    def step(self, by: int) -> None:
        """Go to the next or previous hit, whatever has the focus."""
        self._go(partial(self.hits.move, by), by, "hit")

    def move_session(self, by: int) -> None:
        """Go to the first hit of another session."""
        self._go(partial(self.hits.move_session, by), by, "session")

    def _go(self, move: Callable[[], None], by: int, what: str) -> None:
        before = self.model.results.entry
        move()
        if self.model.results.entry == before:
            self.notify(f"This is the {'last' if by > 0 else 'first'} {what}",
                        timeout=2, markup=False)

    @on(HitsView.Moved)
    def _moved(self, event: HitsView.Moved) -> None:
        event.stop()
        self._before = self.model.results.entry
        self._show_place()
        self._preview_soon()

    @on(HitsView.EndNear)
    def _end_near(self, event: HitsView.EndNear) -> None:
        event.stop()
        self.model.want_more()

    # Narrowing

    async def narrow(self) -> None:
        """Narrow the search by the value under the cursor; in the hits, page down."""
        if not self.in_facets:
            self.move_page(1)
            return
        link = self.chips.link if self.chips.has_focus else self.facets.line.link
        if link is not None:
            self._choose(link)

    def _choose(self, link: Link) -> None:
        if link.kind == MORE:
            self._opened ^= {link.target}
            self._show_facets()
        elif link.kind == SAVED:
            self.ask(self.model.keeper.kept.saved.get(link.target, ""))
        elif link.kind == RECENT:
            self.ask(link.target)
        else:
            self.ask(self.model.toggle(link.kind, link.target))

    def on_line_view_activated(self, event: LineView.Activated) -> None:
        """Narrow the search by the value that was clicked."""
        event.stop()
        if event.line.link is not None:
            self._choose(event.line.link)

    @on(FacetChips.Chosen)
    def _chip_chosen(self, event: FacetChips.Chosen) -> None:
        event.stop()
        self._choose(event.link)

    # Hits

    async def open(self) -> None:
        """Open the transcript at the hit; in the facets, narrow the search."""
        if self.in_facets:
            await self.narrow()
            return
        entry = self.model.results.entry
        if entry is not None and entry.kind == "more":
            await self.toggle_session()
        else:
            self._open_hit()

    @on(HitsView.Opened)
    async def _hit_clicked(self, event: HitsView.Opened) -> None:
        event.stop()
        await self.open()

    def _open_hit(self) -> bool:
        """Open the selected hit; return whether there is one."""
        hit = self.model.results.hit
        if hit is None:
            return False
        self.model.remember()
        self.model.opened_in_hits = not self.query_line.has_focus
        self.dismiss()
        self._tour.show(hit)
        return True

    async def toggle_session(self) -> None:
        """Show all hits of the selected session, or only the first ones again."""
        found = self.model.results.session
        if found is None:
            return
        before, height = self.model.results.entry, self.model.results.height
        if found.row.id not in self.model.results.opened:
            await self.model.open_session(found.row.id)
        self.model.results.open(found.row.id)
        if self.model.results.height == height:
            self.notify("All hits of this session are shown already", timeout=2, markup=False)
        self.hits.changed(before)
        self._before = self.model.results.entry
        self.hits.reveal()
        self._preview_soon()

    async def copy(self) -> None:
        """Copy what is selected with the mouse, else the line of the hit."""
        from tui.kit import clipboard

        selected = self.get_selected_text()
        hit = self.model.results.hit
        if selected:
            await clipboard.copy(self.host, selected, "the selected text")
        elif hit is not None:
            await clipboard.copy(self.host, hit.excerpt.text, "the line of the hit")

    async def show_details(self) -> None:
        """Show the details of the session of the hit."""
        from tui.details.screen import DetailsScreen

        found = self.model.results.session
        if found is not None:
            self.app.push_screen(DetailsScreen(await self.host.library.ready(), found.row.id))

    # Saved searches

    async def save(self) -> None:
        """Save the search by a name; one that is saved is removed after a question."""
        from tui.search.saving import forget_search, save_search

        kept = self.model.keeper.kept
        text = self.model.text.strip()
        name = next((name for name, query in kept.saved.items() if query == text), None)
        work = save_search(self.host, self.model.keeper, text) if name is None else (
            forget_search(self.host, self.model.keeper, name))
        await asking(self, work)
        self._show_facets()

    async def choose_saved(self) -> None:
        """Choose a saved search, or one that was used before."""
        await asking(self, self._take_chosen())

    async def _take_chosen(self) -> None:
        from tui.search.saving import choose_search

        text = await choose_search(self.host, self.model.keeper)
        if text is not None:
            self.ask(text)

    def close(self) -> None:
        """Go back to the main screen; the search stays as it is."""
        if self.model.results.hits:
            self.model.remember()
        self.dismiss()
