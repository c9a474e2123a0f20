"""The details of a session: timeline, facts, system prompts, tools, files, commands."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from textual import events
from textual.app import ComposeResult
from textual.containers import Horizontal, Vertical

from store.conversation.outline_marks import is_outline
from store.errors import BackscrollError, NotFound
from store.queries import details, originals
from store.queries.details import Overview, Timeline
from store.queries.touches import CommandUse, FileRow
from store.stats.families import Family
from store.text.stored_json import DamagedJson, loads
from tui.details.catalogue import prompt_blocks, tool_blocks
from tui.details.chart import Chart, chart_line
from tui.details.facts import fact_blocks, title_of
from tui.details.table import TurnTable, head_line, turn_line
from tui.details.touched import COMMANDS, FILES, TouchedLists
from tui.keys.declaration import AnyCommand
from tui.keys.find_bar import FindBar
from tui.keys.footer import BottomLine
from tui.kit import clipboard
from tui.kit.blocks import Block, Fixed
from tui.kit.line_bar import LineBar
from tui.kit.line_view import LineView
from tui.kit.lines import BLANK
from tui.kit.tabs import Tabs
from tui.kit.text import one_line
from tui.stacked import StackedScreen
from tui.state.prices import price_table
from tui.verbs.searching import search_everywhere
from tui.words.costs import read_family
from tui.words.searching import Wanted, text_query, value_query

if TYPE_CHECKING:
    from store.engine.database import Database
    from store.store import Store

CATALOGUE = "tool-catalogue.json"
"""The attachment that holds a session's tool catalogue, where its source keeps one."""

BATCH = 2_000
"""Messages whose parts are counted in one read."""
TABS = ("Turns", "Session", "Prompt", "Tools", FILES, COMMANDS)
LISTS = (FILES, COMMANDS)
FACTS_FROM = 150
"""From this width of the screen the facts are beside the turns."""

LEAST_FACTS = 8
"""From so many free rows below the turns the facts are there."""


class DetailsScreen(StackedScreen):
    """Shows one session; enter on a turn opens it in the transcript."""

    SCOPE = "details"
    AUTO_FOCUS = "#details-main"
    DEFAULT_CSS = """
    DetailsScreen > #details-body { height: 1fr; }
    DetailsScreen #details-left { width: 1fr; }
    DetailsScreen #details-main { height: 1fr; }
    DetailsScreen #details-facts { width: 48; display: none; }
    DetailsScreen.wide.turns #details-facts { display: block; }
    DetailsScreen Chart, DetailsScreen #details-turn, DetailsScreen #details-head,
    DetailsScreen #details-chart { display: none; }
    DetailsScreen.turns Chart, DetailsScreen.turns #details-turn,
    DetailsScreen.turns #details-head, DetailsScreen.turns #details-chart,
    DetailsScreen.listed #details-head { display: block; }
    DetailsScreen #details-edits { width: 5fr; display: none; }
    DetailsScreen.wide.preview #details-edits { display: block; }
    DetailsScreen.wide.preview #details-left { width: 6fr; }
    """

    def __init__(self, store: Store, session_id: str) -> None:
        """Take the session to show."""
        super().__init__(LineView(id="details-main", ground="background"))
        self._store, self._session_id = store, session_id
        self._overview: Overview | None = None
        self._timeline: Timeline | None = None
        self._prompts: dict[str, str] = {}
        self._catalogue: Any = None
        self._family: Family | None = None
        self.tab = TABS[0]
        self.lists = TouchedLists(store, session_id)
        self._reads_lists = False
        self._previewed: FileRow | None = None

    def compose(self) -> ComposeResult:
        """Compose head, chart, table, facts and keys."""
        yield Tabs(TABS, ground="background")
        with Horizontal(id="details-body"):
            with Vertical(id="details-left"):
                yield LineBar(id="details-chart", ground="background")
                yield Chart()
                yield LineBar(id="details-turn", ground="background")
                yield LineBar(id="details-head", ground="background")
                yield self.view
            facts = LineView(id="details-facts")
            facts.can_focus = False
            yield facts
            edits = LineView(id="details-edits")
            edits.can_focus = False
            yield edits
        yield FindBar("filter: words that a line holds")
        yield BottomLine()

    # Loading

    def on_mount(self) -> None:
        """Read the facts at once, the turns after them."""
        self.add_class("turns")
        self.tell("reading the session…")
        self.run_worker(self._load(), exit_on_error=False)

    async def _load(self) -> None:
        try:
            self._overview = await self._store.read(details.overview, self._session_id)
            self._show_head()
            self._timeline = await self._store.read(_timeline_of, self._session_id)
            self.show_tab()
            await _count_tools(self._store, self._timeline)
            digests = list(self._timeline.prompts)
            self._prompts = await self._store.read(details.system_prompts, digests)
            self._catalogue = await _read_catalogue(self._store, self._session_id)
            self.show_tab(stay=True)
            async for family in read_family(self.host, self._store, self._session_id):
                self._family = family
                self.show_tab(stay=True)
        except Exception as error:
            self.tell_unread("the session", error)

    # Showing

    def _show_head(self) -> None:
        overview = self._overview
        if overview is None:
            return
        row = overview.row
        model = details.model_name(overview.model) or ""
        names = (row.agent, model.rpartition("/")[2], row.workspace_root,
                 overview.metadata.get("git_branch"))
        summary = " · ".join(one_line(str(name)) for name in names if name)
        head = (title_of(overview), "text bold")
        self.query_one(Tabs).show(head, "", ((summary, "muted"),))
        facts: list[Block] = fact_blocks(overview, self._timeline, self._family)
        self.query_one("#details-facts", LineView).show(facts)

    def show_tab(self, *, stay: bool = False) -> None:
        """Build the current tab again; ``stay`` keeps the cursor."""
        if not self.is_attached or self._overview is None:
            return
        self.set_class(self.tab == "Turns", "turns")
        self.set_class(self.tab in LISTS and self.lists.diff is None, "listed")
        self.set_class(self.tab == FILES and self.lists.diff is None, "preview")
        self._show_head()
        if self.tab in LISTS:
            self._show_list(stay)
            return
        timeline = self._timeline
        if timeline is None:
            self.tell("reading the turns…")
        elif self.tab == "Turns":
            self._show_turns(timeline, stay)
        elif self.tab == "Session":
            self.view.show(fact_blocks(self._overview, timeline, self._family), stay=stay)
        elif self.tab == "Prompt":
            self.view.show(prompt_blocks(timeline, self._prompts), stay=stay)
        else:
            blocks = tool_blocks(self._overview, timeline, self._catalogue)
            self.view.show(blocks, stay=stay)

    def _show_turns(self, timeline: Timeline, stay: bool) -> None:
        chart = self.query_one(Chart)
        chart.show(timeline.turns)
        if not timeline.turns:
            unread = self._overview is not None and is_outline(self._overview.metadata)
            self.tell("The messages of this session are not read yet." if unread
                      else "This session has no messages.")
            return
        blocks: list[Block] = [TurnTable(self._session_id, timeline.turns, chart.measure)]
        room = self.view.size.height - len(timeline.turns)
        if self._overview is not None and room > LEAST_FACTS and not self.has_class("wide"):
            facts = fact_blocks(self._overview, timeline, self._family)
            blocks += [Fixed(lambda _: [BLANK]), *facts]
        self.view.show(blocks, stay=stay)
        self.call_after_refresh(self._show_bars)

    # Files and commands

    def _show_list(self, stay: bool) -> None:
        if not self._reads_lists:
            self._reads_lists = True
            self.run_worker(self._read_lists(), group="touched")
        at = self.lists.item_at(self.view.cursor) if stay and self.view.cursor else None
        self.view.show(self.lists.blocks(self.tab), stay=stay)
        if at is not None:
            # What was read since may be above the line of the cursor.
            self.view.move_to(self.lists.place_of(at))
        self._show_list_head()

    def _show_list_head(self) -> None:
        bar = self.query_one("#details-head", LineBar)
        bar.show(self.lists.head(self.tab, self.view.cells))

    async def _read_lists(self) -> None:
        try:
            await self.lists.read(lambda: self.show_tab(stay=True) if self.tab in LISTS else None)
            await self.renew_edits()
            await self.lists.compare_with_disk(
                lambda: self.show_tab(stay=True) if self.tab == FILES else None)
        except BackscrollError as error:
            self.tell(str(error))

    @property
    def _item(self) -> FileRow | CommandUse | None:
        """The file or command under the cursor."""
        if self.tab not in LISTS or self.lists.diff is not None:
            return None
        return self.lists.item_at(self.view.cursor)

    @property
    def has_file(self) -> bool:
        """Whether a file is under the cursor."""
        return isinstance(self._item, FileRow)

    @property
    def file_row(self) -> FileRow | None:
        """The file under the cursor, or the one whose edits fill the view."""
        if self.lists.diff is not None:
            return self.lists.diff[0]
        item = self._item
        return item if isinstance(item, FileRow) else None

    def show_file(self) -> None:
        """Show the file at each point of the session."""
        from tui.files.screen import FileScreen

        row, found = self.file_row, self.lists.found
        if row is not None:
            whole = found if found is not None and found.is_whole else None
            self.app.push_screen(FileScreen(
                self._store, self._session_id, row.key, found=whole, below=self))

    def _preview(self) -> None:
        """Show the edits of the file under the cursor beside the list."""
        row = self._item
        if isinstance(row, FileRow) and self.has_class("wide") and row is not self._previewed:
            self._previewed = row
            self.run_worker(self._show_edits(row), exclusive=True, group="preview")

    async def _show_edits(self, row: FileRow) -> None:
        edits = await self.lists.edits_of(row)
        self.query_one("#details-edits", LineView).show(self.lists.preview(row, edits))

    async def renew_edits(self) -> None:
        """Show the edits again that were read before the whole session was."""
        self._previewed = None
        self._preview()
        if self.lists.diff is not None:
            row = self.lists.diff[0]
            self.lists.diff = row, await self.lists.edits_of(row)
            self.show_tab(stay=True)

    async def show_edits(self) -> None:
        """Show all edits of the file under the cursor as one diff."""
        row = self._item
        if isinstance(row, FileRow):
            self.lists.diff = row, await self.lists.edits_of(row)
            self.show_tab()

    def next_order(self) -> None:
        """Sort the list in the next way; the cursor stays on its line's item."""
        self.lists.next_order(self.tab)
        self.show_tab(stay=True)

    def open_filter(self) -> None:
        """Let a filter be typed."""
        self.query_one(FindBar).open()

    def on_find_bar_changed(self, message: FindBar.Changed) -> None:
        """Filter the list as one types."""
        message.stop()
        self.lists.set_filter(self.tab, message.text)
        self.show_tab()

    def on_find_bar_accepted(self, message: FindBar.Accepted) -> None:
        """Go on in the filtered list."""
        message.stop()
        self.query_one(FindBar).remove_class("open")
        self.view.focus()

    def on_find_bar_closed(self, message: FindBar.Closed) -> None:
        """Show all again."""
        message.stop()
        self._end_filter()

    def _end_filter(self) -> None:
        self.query_one(FindBar).close()
        self.lists.set_filter(self.tab, "")
        self.view.focus()
        self.show_tab(stay=True)

    def footer_label(self, command: AnyCommand) -> str | None:
        """Return a command's words in the footer; escape closes where there is no step back."""
        label = super().footer_label(command)
        steps = self.lists.diff is not None or self.lists.filter_of(self.tab)
        return "close" if label == "back" and not steps else label

    def step_back(self) -> None:
        """Go back to the list from a file's edits, show all without the filter, or close."""
        if self.tab == FILES and self.lists.diff is not None:
            row, self.lists.diff = self.lists.diff[0], None
            self.show_tab()
            self.view.move_to(self.lists.place_of(row))
        elif self.lists.filter_of(self.tab):
            self._end_filter()
        else:
            self.close()

    def _show_bars(self) -> None:
        timeline = self._timeline
        if timeline is None or not timeline.turns or not self.is_attached:
            return
        chart = self.query_one(Chart)
        number = min(self.view.cursor, len(timeline.turns) - 1)
        chart.select(number)
        width = self.query_one("#details-chart", LineBar).size.width
        self.query_one("#details-chart", LineBar).show(chart_line(chart, width))
        width = self.view.cells
        turn = turn_line(timeline.turns[number], width)
        self.query_one("#details-turn", LineBar).show(turn)
        self.query_one("#details-head", LineBar).show(head_line(timeline.turns, width))

    def on_resize(self, event: events.Resize) -> None:
        """Fit the chart and the facts to the screen."""
        self.set_class(event.size.width >= FACTS_FROM, "wide")
        self.query_one(Chart).styles.height = max(4, min(13, event.size.height // 4))
        self.call_after_refresh(self._show_bars if self.tab == "Turns" else self._fit_list)

    def _fit_list(self) -> None:
        if self.tab in LISTS:
            self._show_list_head()
            self._preview()

    # Keys and mouse

    async def search_everywhere(self) -> None:
        """Search all sessions for the selected text, or the file or command on the line."""
        item, text = self._item, self.text_to_copy()
        query = text_query(text)
        if isinstance(item, FileRow):
            query = value_query("path", item.key)
        elif item is not None:
            query = value_query("command", item.text)
        await search_everywhere(self, [Wanted("line", text, query)] if query else [])

    def on_line_view_cursor_moved(self, message: LineView.CursorMoved) -> None:
        """Show the turn under the cursor."""
        message.stop()
        if self.tab == "Turns":
            self._show_bars()
        elif self.tab == FILES:
            self._preview()

    def on_chart_chosen(self, message: Chart.Chosen) -> None:
        """Go to the turn of a column."""
        self.view.move_to(message.turn)

    def on_tabs_chosen(self, message: Tabs.Chosen) -> None:
        """Show the tab that was clicked."""
        self._choose(message.tab)

    def _choose(self, tab: str) -> None:
        self.tab = tab
        bar = self.query_one(FindBar)
        bar.close()
        self.lists.diff = None
        self.query_one(Tabs).choose(tab)
        self.show_tab()

    def step_tab(self, by: int) -> None:
        """Show the next or previous tab."""
        self._choose(TABS[(TABS.index(self.tab) + by) % len(TABS)])

    def fold(self) -> None:
        """Fold or unfold what the line is in."""
        self.view.toggle_fold()

    def next_measure(self) -> None:
        """Show the next measure."""
        self.query_one(Chart).next_measure()
        self.show_tab(stay=True)

    def text_to_copy(self) -> str:
        """Return the value on the line, or the prompt of the turn; empty if there is none."""
        turns = self._timeline.turns if self._timeline is not None else []
        if self.tab == "Turns" and self.view.cursor < len(turns):
            return turns[self.view.cursor].prompt
        item = self._item
        if isinstance(item, CommandUse):
            return item.text
        value = self.view.line.value
        return value.read() if value is not None else ""

    async def copy(self) -> None:
        """Copy the value on the line, or the prompt of the turn."""
        item = self._item
        if isinstance(item, CommandUse):
            await clipboard.copy(self.host, await self.lists.command_of(item), "the command")
        else:
            name = "the path" if isinstance(item, FileRow) else ""
            await clipboard.copy(self.host, self.text_to_copy(), name)

    def follow(self) -> None:
        """Open what the line leads to, or fold."""
        link = self.view.line.link
        if link is None:
            self.fold()
        else:
            self.open_in_transcript(link.target, link.message_id, link.part_id)

    def on_line_view_activated(self, message: LineView.Activated) -> None:
        """A click on a turn or call selects it; one on another link follows it."""
        message.stop()
        link = message.line.link
        if link is not None and link.kind not in ("turn", "call"):
            self.open_in_transcript(link.target, link.message_id)


def _timeline_of(db: Database, session_id: str) -> Timeline:
    return details.timeline(db, session_id, price_table())


async def _count_tools(store: Store, timeline: Timeline) -> None:
    """Add the tool calls of all turns to a timeline."""
    ids = list(timeline.turn_of)
    for start in range(0, len(ids), BATCH):
        timeline.count(await store.read(details.tool_calls, ids[start : start + BATCH]))


async def _read_catalogue(store: Store, session_id: str) -> Any:
    """Return the tool catalogue that the source kept; None where there is none."""
    try:
        return loads(await store.read(originals.attachment, session_id, CATALOGUE))
    except (NotFound, DamagedJson):
        return None
