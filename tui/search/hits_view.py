"""The widget that shows the results: sessions and hits, one of them selected."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from textual import events
from textual.message import Message
from textual.scroll_view import ScrollView
from textual.selection import Selection
from textual.strip import Strip

from tui.kit.glyphs import glyphs
from tui.kit.jumping import coded
from tui.kit.lines import BLANK, Line, Run, arrange, width_of
from tui.kit.paint import follow_theme, paint_of, strip_of
from tui.kit.scrollbar import ThinScrollBar, set_lines
from tui.kit.selection import selected_strip, selected_text
from tui.search.results import Entry, Key, Results

NEAR_THE_END = 20
"""So many lines before the last one more hits are asked for."""


class HitsView(ScrollView, can_focus=True):
    """Shows results; nothing moves under the selection while more arrive.

    Attributes:
        results: What is shown.
        words: Lines that are shown where nothing was found.
    """

    ALLOW_SELECT = True
    DEFAULT_CSS = """
    HitsView {
        width: 1fr; height: 1fr; background: $surface; overflow-x: hidden; overflow-y: scroll;
        scrollbar-size-vertical: 1;
    }
    """

    class Moved(Message):
        """Another entry is selected."""

    class Opened(Message):
        """The selected entry was clicked again."""

    class EndNear(Message):
        """The end of what is known is close."""

    def __init__(self, results: Results) -> None:
        """Take the results."""
        super().__init__(id="search-hits")
        self.results = results
        self.words: list[Line] = []
        self._codes: Mapping[Key, str] = {}
        self._pressed: tuple[int, int] | None = None

    @property
    def cells(self) -> int:
        """The cells that a line has."""
        return max(20, self.scrollable_content_region.width)

    @property
    def page(self) -> int:
        """The lines that page keys move by."""
        return max(1, self.scrollable_content_region.height - 2)

    def on_mount(self) -> None:
        """Draw a thin scroll bar, and repaint with the colours of a new theme."""
        self.vertical_scrollbar.renderer = ThinScrollBar  # type: ignore[misc]
        follow_theme(self, HitsView.refresh)

    # What is shown

    def changed(self, before: Entry | None) -> None:
        """Show results that have changed; the selected entry stays on its row.

        Args:
            before: The selected entry, as it was laid out before the change.
        """
        now, top = self.results.entry, self.scroll_offset.y
        if before is not None and now is not None:
            top = max(0, top + now.start - before.start)
        self._measure(top)
        if top != self.scroll_offset.y:
            self.scroll_to(y=top, animate=False, force=True, immediate=True)
        self.refresh()

    def start(self) -> None:
        """Show other results from their first line."""
        self._measure()
        self.scroll_to(y=0, animate=False, force=True, immediate=True)
        self.refresh()

    def tell(self, words: list[Line]) -> None:
        """Show lines in place of results, as long as there are none."""
        if words != self.words:
            self.words = words
            self._measure()
            self.refresh()

    def _measure(self, top: int = 0) -> None:
        """Give the list its height, and empty lines below where another top line needs them."""
        height = self.results.height or len(self.words)
        if self.results.height and top:
            height = max(height, top + self.scrollable_content_region.height)
        set_lines(self, height)

    def on_resize(self, event: events.Resize) -> None:
        """Lay out for the new width."""
        before = self.results.entry
        self.results.set_width(self.cells)
        self.changed(before)
        self.reveal()

    # The selection

    def move(self, by: int) -> None:
        """Select another entry by its distance."""
        self.results.move(by)
        self._moved(by)

    def move_session(self, by: int) -> None:
        """Select the first hit of another session."""
        self.results.move_session(by)
        self._moved(by)

    def move_page(self, by: int) -> None:
        """Select the entry a page further down or up."""
        self.results.move_lines(by * self.page)
        self._moved(by)

    def _moved(self, by: int) -> None:
        self._measure()
        self.reveal()
        self.refresh()
        self.post_message(self.Moved())
        entry = self.results.entry
        if by > 0 and entry is not None and entry.start > self.results.height - NEAR_THE_END:
            self.post_message(self.EndNear())

    def reveal(self) -> None:
        """Bring the selected entry onto the screen, with the heading above it where it fits."""
        entry = self.results.entry
        if entry is None:
            return
        top, height = self.scroll_offset.y, max(1, self.scrollable_content_region.height)
        first = self.results.top_of(entry)
        if first < top:
            self.scroll_to(y=max(0, first), animate=False, force=True, immediate=True)
        elif entry.start + entry.lines > top + height:
            bottom = entry.start + entry.lines - height
            self.scroll_to(y=bottom, animate=False, force=True, immediate=True)

    def watch_scroll_y(self, old_value: float, new_value: float) -> None:
        """Ask for more where the end comes into sight."""
        super().watch_scroll_y(old_value, new_value)
        bottom = new_value + self.scrollable_content_region.height
        if new_value > old_value and bottom > self.results.height - NEAR_THE_END:
            self.post_message(self.EndNear())

    # Jumping

    def jump_stops(self) -> list[Key]:
        """Return the keys of the entries that begin on the screen, from the top."""
        top, height = self.scroll_offset.y, self.scrollable_content_region.height
        entries = (self.results.entry_at(number)
                   for number in range(top, min(top + height, self.results.height)))
        return list(dict.fromkeys(
            self.results.key_at(entry) for entry in entries
            if entry is not None and entry.selectable and entry.start >= top))

    def show_codes(self, codes: Mapping[Key, str]) -> None:
        """Draw letters beside entries, by their keys."""
        self._codes = codes
        self.refresh()

    def jump_to(self, key: Key) -> None:
        """Select an entry."""
        self.results.select(key)
        self._moved(0)

    # Painting

    def render_line(self, y: int) -> Strip:
        """Paint one row: the mark of the selection, the bar of the hit, its words."""
        paint, width = paint_of(self.app), self.size.width
        number = y + self.scroll_offset.y
        if not self.results.height:
            line = self.words[number] if number < len(self.words) else BLANK
            return strip_of(Line([(" ", "blank"), *line.runs], line.right), width, paint)
        line, gutter = self._row(number)
        entry, chosen = self.results.entry_at(number), self.results.entry
        selected = entry is not None and entry == chosen
        mark = glyphs().thick_bar if selected else " "
        ground = ("focus" if self.has_focus else "raised") if selected else "panel"
        whole = Line([(mark, "user"), *gutter, *line.runs], line.right)
        strip = strip_of(whole, width, paint, ground=ground)
        selection = self.text_selection
        if selection is not None and (span := selection.get_span(number)) is not None:
            least = 1 + width_of(gutter)
            start, end = max(least, span[0]), span[1] if span[1] < 0 else max(least, span[1])
            strip = selected_strip(strip, start, end, paint)
        strip = strip.apply_offsets(0, number)
        if not self._codes or entry is None or entry.start != number or not entry.selectable:
            return strip
        code = self._codes.get(self.results.key_at(entry))
        return strip if code is None else coded(strip, code, paint)

    def _row(self, number: int) -> tuple[Line, list[Run]]:
        """Return a line of the results, and the bar of the hit that is drawn before it."""
        line, bar = self.results.line(number)
        entry = self.results.entry_at(number)
        gutter: list[Run] = [(" ", "blank"), (glyphs().bar, bar), (" ", "blank")] if bar else []
        if entry is not None and entry.kind == "more":
            gutter = [("   ", "blank")]
        right = [*line.right, (" ", "blank")] if line.right else []
        return Line(line.runs, right, soft=line.soft, lead=line.lead, tail=line.tail), gutter

    # Selecting text

    def get_selection(self, selection: Selection) -> tuple[str, str] | None:
        """Return the selected text, without the bars of the hits."""
        return selected_text(selection, self._rows_in(selection), margin=1), "\n"

    def _rows_in(self, selection: Selection) -> Iterator[tuple[int, Line, str]]:
        """Yield number, line and text of the rows that a selection may hold."""
        last = self.results.height - 1
        first = selection.start.y if selection.start else 0
        for number in range(first, (min(selection.end.y, last) if selection.end else last) + 1):
            line, gutter = self._row(number)
            pad = " " * width_of(gutter)
            row = Line([(pad, "blank"), *line.runs], line.right)
            text = "".join([piece for piece, _ink in arrange(row, self.size.width - 1)])
            line.lead += len(pad)
            yield number, line, text.rstrip()

    def selection_updated(self, selection: Selection | None) -> None:
        """Repaint what is selected."""
        self.refresh()

    def on_focus(self) -> None:
        """The selected entry is brighter while the keys act here."""
        self.refresh()

    def on_blur(self) -> None:
        """See ``on_focus``."""
        self.refresh()

    # Mouse

    def on_mouse_down(self, event: events.MouseDown) -> None:
        """Remember where a click began: text is selected where it ends elsewhere."""
        self._pressed = event.x, event.y

    def on_click(self, event: events.Click) -> None:
        """Select what is clicked; a click on what is selected opens it."""
        if self._pressed != (event.x, event.y):
            return
        entry = self.results.entry_at(event.y + self.scroll_offset.y)
        if entry is None or not entry.selectable:
            return
        key = self.results.key_at(entry)
        if key == self.results.selected:
            self.post_message(self.Opened())
            return
        self.results.selected = key
        self.refresh()
        self.post_message(self.Moved())
