"""The details of a session: its timeline, its facts, its system prompts, its tools."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from textual import events
from textual.app import ComposeResult
from textual.containers import Horizontal, Vertical

from store.errors import BackscrollError, NotFound
from store.queries import details, originals
from store.queries.details import Overview, Timeline
from store.text.stored_json import DamagedJson, loads
from tui.details.catalogue import prompt_blocks, tool_blocks
from tui.details.chart import Chart, chart_line
from tui.details.facts import fact_blocks, title_of
from tui.details.table import TurnTable, head_line, turn_line
from tui.keys.footer import BottomLine
from tui.kit import clipboard
from tui.kit.blocks import Block, Fixed
from tui.kit.line_bar import LineBar
from tui.kit.line_view import LineView
from tui.kit.lines import BLANK, Line
from tui.kit.tabs import Tabs
from tui.kit.text import one_line
from tui.stacked import StackedScreen

if TYPE_CHECKING:
    from store.store import Store

CATALOGUE = "tool-catalogue.json"
"""The attachment that holds a session's tool catalogue, where its source keeps one."""

BATCH = 2_000
"""Messages whose parts are counted in one read."""
TABS = ("Turns", "Session", "Prompt", "Tools")
FACTS_FROM = 150
"""From this width of the screen the facts are beside the turns."""

LEAST_FACTS = 8
"""From so many free rows below the turns the facts are there."""


class DetailsScreen(StackedScreen):
    """Shows one session; enter on a turn opens it in the transcript."""

    SCOPE = "details"
    AUTO_FOCUS = "#details-main"
    DEFAULT_CSS = """
    DetailsScreen Horizontal { height: 1fr; }
    DetailsScreen #details-left { width: 1fr; }
    DetailsScreen #details-main { height: 1fr; }
    DetailsScreen #details-facts { width: 48; display: none; }
    DetailsScreen.wide.turns #details-facts { display: block; }
    DetailsScreen Chart, DetailsScreen #details-turn, DetailsScreen #details-head,
    DetailsScreen #details-chart { display: none; }
    DetailsScreen.turns Chart, DetailsScreen.turns #details-turn,
    DetailsScreen.turns #details-head, DetailsScreen.turns #details-chart { display: block; }
    """

    def __init__(self, store: Store, session_id: str) -> None:
        """Take the session to show."""
        super().__init__(LineView(id="details-main", ground="background"))
        self._store, self._session_id = store, session_id
        self._overview: Overview | None = None
        self._timeline: Timeline | None = None
        self._prompts: dict[str, str] = {}
        self._catalogue: Any = None
        self.tab = TABS[0]

    def compose(self) -> ComposeResult:
        """Compose head, chart, table, facts and keys."""
        yield Tabs(TABS, ground="background")
        with Horizontal():
            with Vertical(id="details-left"):
                yield LineBar(id="details-chart", ground="background")
                yield Chart()
                yield LineBar(id="details-turn", ground="background")
                yield LineBar(id="details-head", ground="background")
                yield self.view
            facts = LineView(id="details-facts")
            facts.can_focus = False
            yield facts
        yield BottomLine()

    # Loading

    def on_mount(self) -> None:
        """Read the facts at once, the turns after them."""
        self.add_class("turns")
        self.show_hints()
        self.view.show([_told("reading the session…")])
        self.run_worker(self._load(), exit_on_error=False)

    async def _load(self) -> None:
        try:
            self._overview = await self._store.read(details.overview, self._session_id)
            self._show_head()
            self._timeline = await self._store.read(details.timeline, self._session_id)
            self.show_tab()
            await _count_tools(self._store, self._timeline)
            digests = list(self._timeline.prompts)
            self._prompts = await self._store.read(details.system_prompts, digests)
            self._catalogue = await _read_catalogue(self._store, self._session_id)
            self.show_tab(stay=True)
        except BackscrollError as error:
            self.view.show([_told(str(error))])
        except Exception as error:
            self.view.show([_told("the session could not be read")])
            self.host.report("The session could not be read", error)

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
        facts: list[Block] = fact_blocks(overview, self._timeline)
        self.query_one("#details-facts", LineView).show(facts)

    def show_tab(self, *, stay: bool = False) -> None:
        """Build the current tab again; ``stay`` keeps the cursor."""
        if not self.is_attached or self._overview is None:
            return
        self.set_class(self.tab == "Turns", "turns")
        self._show_head()
        timeline = self._timeline
        if timeline is None:
            self.view.show([_told("reading the turns…")])
        elif self.tab == "Turns":
            self._show_turns(timeline, stay)
        elif self.tab == "Session":
            self.view.show(fact_blocks(self._overview, timeline), stay=stay)
        elif self.tab == "Prompt":
            self.view.show(prompt_blocks(timeline, self._prompts), stay=stay)
        else:
            blocks = tool_blocks(self._overview, timeline, self._catalogue)
            self.view.show(blocks, stay=stay)

    def _show_turns(self, timeline: Timeline, stay: bool) -> None:
        chart = self.query_one(Chart)
        chart.show(timeline.turns)
        if not timeline.turns:
            self.view.show([_told("This session has no messages.")])
            return
        blocks: list[Block] = [TurnTable(self._session_id, timeline.turns, chart.measure)]
        room = self.view.size.height - len(timeline.turns)
        if self._overview is not None and room > LEAST_FACTS and not self.has_class("wide"):
            blocks += [Fixed(lambda _: [BLANK]), *fact_blocks(self._overview, timeline)]
        self.view.show(blocks, stay=stay)
        self.call_after_refresh(self._show_bars)

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
        self.call_after_refresh(self._show_bars)

    # Keys and mouse

    def on_line_view_cursor_moved(self, message: LineView.CursorMoved) -> None:
        """Show the turn under the cursor."""
        message.stop()
        if self.tab == "Turns":
            self._show_bars()

    def on_chart_chosen(self, message: Chart.Chosen) -> None:
        """Go to the turn of a column."""
        self.view.move_to(message.turn)

    def on_tabs_chosen(self, message: Tabs.Chosen) -> None:
        """Show the tab that was clicked."""
        self._choose(message.tab)

    def _choose(self, tab: str) -> None:
        self.tab = tab
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
        value = self.view.line.value
        return value.read() if value is not None else ""

    async def copy(self) -> None:
        """Copy the value on the line, or the prompt of the turn."""
        await clipboard.copy(self.host, self.text_to_copy())

    def follow(self) -> None:
        """Open what the line leads to, or fold."""
        link = self.view.line.link
        if link is None:
            self.fold()
        else:
            self.open_in_transcript(link.target, link.message_id)

    def on_line_view_activated(self, message: LineView.Activated) -> None:
        """A click on a turn selects it; one on a link follows it."""
        message.stop()
        link = message.line.link
        if link is not None and link.kind != "turn":
            self.open_in_transcript(link.target, link.message_id)


def _told(text: str) -> Fixed:
    return Fixed(lambda _: [Line(((text, "faint"),))])


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
