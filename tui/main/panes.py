"""The screen's panes: which are seen, how wide they are, which has the focus."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from rich.segment import Segment
from textual import events, on
from textual.app import ComposeResult
from textual.containers import Horizontal
from textual.screen import Screen
from textual.strip import Strip
from textual.timer import Timer
from textual.widget import Widget

from tui.keys.declaration import Scope
from tui.keys.footer import BottomLine, Hint
from tui.keys.pane import CommandPane
from tui.keys.registry import BY_ID, footer_commands, keys_of
from tui.kit.glyphs import glyphs
from tui.kit.text import fit, one_line
from tui.kit.theme import palette_of
from tui.main.bars import Headline, TopLine
from tui.main.layout import TWO_PANES, Arrangement, PaneName, arrange
from tui.main.splitter import Splitter
from tui.sessions.painter import blank, style
from tui.sessions.pane import SessionsPane
from tui.start.library import Library
from tui.start.state import ViewState

if TYPE_CHECKING:
    from tui.inspector.pane import InspectorPane
    from tui.transcript.transcript_pane import TranscriptPane

SCOPES: dict[PaneName, Scope] = {
    "sessions": "list", "transcript": "transcript", "inspector": "inspector",
}


class PaneSlot(Widget):
    """Keeps a pane's place until its module is loaded, after the first paint.

    Its two lines stand where the pane's header will: what is on its way, and that it is.
    """

    DEFAULT_CSS = "PaneSlot { height: 1fr; }"

    def __init__(self, name_of: Callable[[], str | None] | None, *, id: str) -> None:
        """Make a slot.

        Args:
            name_of: Returns what is on its way, None where nothing is; without it the slot is
                a panel that stays empty.
            id: The widget's id.
        """
        super().__init__(id=id)
        self._name_of = name_of

    def render_line(self, y: int) -> Strip:
        """Draw the name and that it is being opened."""
        palette, width = palette_of(self.app), self.size.width
        name = self._name_of() if self._name_of is not None and y < 2 else None
        if name is None:
            return blank(width, palette.background if self._name_of else palette.panel)
        ink = style(palette.faint if y else palette.text, palette.background, bold=not y)
        words = f" opening{glyphs().more}" if y else f" {name}"
        return Strip([Segment(fit(words, width), ink)]).adjust_cell_length(
            width, style(palette.text, palette.background))


class PanesScreen(CommandPane, Screen[None]):
    """Holds the panes: which are seen, how wide they are, which has the focus."""

    AUTO_FOCUS = ""
    DEFAULT_CSS = """
    PanesScreen { background: $background; layers: base overlay; }
    PanesScreen #panes { height: 1fr; }
    PanesScreen #panes > .overlay { layer: overlay; dock: right; }
    """

    def __init__(
        self, library: Library, state: ViewState, *, changed_keys: Mapping[str, list[str]],
        poll_ms: int,
    ) -> None:
        """Make the screen.

        Args:
            library: The store.
            state: What was remembered; kept up to date.
            changed_keys: Keys from the config, by command id.
            poll_ms: Between two looks at the store; 0 never looks.
        """
        super().__init__(id="main")
        self.library = library
        self.state = state
        self.changed_keys = changed_keys
        self.sessions = SessionsPane(library, state)
        self.transcript: TranscriptPane | None = None
        self.inspector: InspectorPane | None = None
        self._slots = (
            PaneSlot(self.sessions.selected_title, id="transcript-slot"),
            PaneSlot(None, id="inspector-slot"),
        )
        self.shown_session: str | None = None
        self._poll_ms = poll_ms
        self._preview: Timer | None = None

    def compose(self) -> ComposeResult:
        """Make lines, panes and borders."""
        yield TopLine()
        if self.library.headline:
            yield Headline(one_line(self.library.headline))
        with Horizontal(id="panes"):
            yield self.sessions
            yield Splitter("sessions")
            yield self._slots[0]
            yield Splitter("inspector")
            yield self._slots[1]
        yield BottomLine()

    @property
    def panes(self) -> dict[PaneName, Widget]:
        """The panes by name."""
        return {
            "sessions": self.sessions,
            "transcript": self.transcript or self._slots[0],
            "inspector": self.inspector or self._slots[1],
        }

    @property
    def arrangement(self) -> Arrangement:
        """How the panes stand now."""
        return arrange(self.state.layout, self.size.width)

    def apply_layout(self) -> None:
        """Show, hide and size the panes for this width of the screen."""
        arrangement = self.arrangement
        for name, pane in self.panes.items():
            pane.display = arrangement.shows(name)
            if pane.display:
                pane.styles.width = arrangement.widths[name] or "1fr"
        self.panes["inspector"].set_class(arrangement.overlay, "overlay")
        beside = arrangement.shows("transcript")
        for splitter in self.query(Splitter):
            shown = arrangement.shows(splitter.pane) and beside
            splitter.display = shown and not (arrangement.overlay and splitter.pane == "inspector")

    def on_resize(self) -> None:
        """Arrange the panes anew."""
        self.apply_layout()

    def focus_pane(self, name: PaneName) -> None:
        """Bring a pane into sight and give it the focus."""
        layout = self.state.layout
        self.state.layout = layout._replace(focused=name, hidden=layout.hidden - {name})
        self.apply_layout()
        target = self._focus_target(self.panes[name])
        self.set_focus(target)
        self._show_hints()

    def _focus_target(self, pane: Widget) -> Widget | None:
        if pane is self.sessions:
            return self.sessions.view
        wanted = getattr(pane, "focus_target", None)
        if isinstance(wanted, Widget):
            return wanted
        if pane.can_focus:
            return pane
        return next((w for w in pane.query("*") if w.can_focus), None)

    @property
    def focused_pane(self) -> PaneName:
        """The pane that has the focus."""
        for name, pane in self.panes.items():
            if pane.has_focus_within:
                return name
        return self.state.layout.focused

    def on_descendant_focus(self, event: events.DescendantFocus) -> None:
        """Follow a focus that the mouse moved."""
        name = self.focused_pane
        if name != self.state.layout.focused:
            self.state.layout = self.state.layout._replace(focused=name)
            if not self.arrangement.overlay:
                self.call_later(self.apply_layout)
        self.sessions.filter_open = self.sessions.filter_has_focus
        self._show_hints()

    def _show_hints(self) -> None:
        hints = [
            Hint(command.id, keys[0], command.label)
            for command in footer_commands(SCOPES[self.focused_pane])
            if (keys := keys_of(command, self.changed_keys))
        ]
        if self.sessions.filter_has_focus:
            hints = [Hint("list.open", "enter", "keep"), Hint("app.back", "escape", "clear")]
        elif self.size.width < TWO_PANES and self.focused_pane != "sessions":
            hints.insert(0, Hint("app.back", "escape", "back"))
        line = self.query_one(BottomLine)
        line.hints = tuple(hints)
        help_keys = keys_of(BY_ID["app.help"], self.changed_keys)
        line.last = Hint("app.help", help_keys[0], "keys") if help_keys else None

    @on(Splitter.Dragged)
    def _dragged(self, event: Splitter.Dragged) -> None:
        screen = self.size.width
        width = event.column if event.pane == "sessions" else screen - event.column - 1
        self.state.layout = self.state.layout.resized(event.pane, width, screen)
        self.apply_layout()
