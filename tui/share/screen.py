"""Shares a session: what goes out is chosen line by line, and seen below before it is written."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from threading import Event
from typing import Any, TypeVar

from store.errors import BackscrollError
from store.exports.registry import FORMATS
from store.sharing.masks import Masked
from store.text.figures import size
from tui.dialogs.choose import ChooseDialog, Option
from tui.dialogs.notes import paragraph
from tui.dialogs.save import PathDialog
from tui.kit import clipboard
from tui.kit.blocks import Block, Fixed, Text
from tui.kit.line_bar import LineBar
from tui.kit.lines import BLANK, Line, Link, Run
from tui.kit.text import one_line
from tui.share.outgoing import MESSAGES, MOST_SHOWN, OUTPUTS, Choices, Look, Outgoing
from tui.stacked import StackedScreen

T = TypeVar("T")
NAME_CELLS = 14


class ShareScreen(StackedScreen):
    """Choices above, a preview of what they make below."""

    SCOPE = "share"

    def __init__(self, outgoing: Outgoing, title: str) -> None:
        """Take the sessions that go out, and what they are called."""
        super().__init__()
        self._outgoing, self._title = outgoing, title
        several = len(outgoing.sessions) > 1
        self.choices = Choices(
            FORMATS["html" if several else "markdown"], emails=outgoing.masking.emails,
            home=outgoing.masking.home)
        self.seen: Look | None = None
        self._known: dict[str, Masked] = {}
        self._failure = ""
        self._stopped = Event()

    async def on_mount(self) -> None:
        """Show the choices, and look at what they make."""
        self._show(stay=False)
        self._look()

    def on_unmount(self) -> None:
        """Stop what is being made."""
        self._stopped.set()

    # What is shown

    def _show(self, *, stay: bool = True) -> None:
        self.query_one("#stacked-title", LineBar).show(
            Line((("Share  ", "text bold"), (self._title, "text")),
                 ((self._size_words(), "muted"),)))
        seen = self.seen
        preview = self._failure or (seen.text if seen is not None else "…")
        blocks: list[Block] = [
            Fixed(lambda _: [*self._lines(), BLANK, self._heading()]),
            Text(preview, words=True),
        ]
        self.view.show(blocks, stay=stay)

    def _heading(self) -> Line:
        words = "What goes out"
        if self.seen is not None and self.seen.is_cut:
            words = f"{words}: the first {MOST_SHOWN:,} characters"
        return Line(((words, "muted bold"),))

    def _size_words(self) -> str:
        return "" if self.seen is None else size(self.seen.size)

    def _lines(self) -> list[Line]:
        choices = self.choices
        rows = (
            ("format", "Format", choices.format.name, choices.format.help),
            ("messages", "Messages", MESSAGES[choices.messages], ""),
            ("images", "Images", "included" if choices.images else "left out", ""),
            ("outputs", "Tool outputs", OUTPUTS[choices.outputs], ""),
            ("secrets", "Secrets", "masked" if choices.secrets else "not masked",
             self._counted()),
            ("emails", "E-mails", "masked" if choices.emails else "kept", ""),
            ("home", "User names", "replaced in paths" if choices.home else "kept", ""),
        )
        lines = []
        for key, name, value, about in rows:
            look = "error" if key == "secrets" and not choices.secrets else "text"
            runs: list[Run] = [(name.ljust(NAME_CELLS), "muted"), (value, look)]
            if about:
                runs.append((f"  {about}", "faint"))
            lines.append(Line(runs, link=Link("choice", key)))
        return lines

    def _counted(self) -> str:
        if self.seen is None or not self.choices.secrets:
            return ""
        kinds = ", ".join(f"{kind} {count}" for kind, count in self.seen.counts.most_common())
        return kinds or "none found"

    # What is made

    def _look(self) -> None:
        """Make what goes out in a thread; what is made by older choices is stopped."""
        self._stopped.set()
        self._stopped = Event()
        self.run_worker(self._looked(self.choices, self._stopped), group="look",
                        exclusive=True, exit_on_error=False)

    async def _looked(self, choices: Choices, stopped: Event) -> None:
        try:
            seen = await asyncio.to_thread(self._outgoing.look, choices, stopped)
            failure = ""
        except BackscrollError as error:
            seen, failure = None, str(error)
        if stopped.is_set() or not self.is_mounted:
            return
        self.seen, self._failure = seen, failure
        self._show()

    def change(self, by: int) -> None:
        """Change the choice on the line by a step."""
        link = self.view.line.link
        if link is not None and link.kind == "choice":
            self._take(self._changed(link.target, by))

    def _take(self, choices: Choices) -> None:
        self.choices = choices
        self._show()
        self._look()

    def _changed(self, key: str, by: int) -> Choices:
        choices = self.choices
        if key == "format":
            formats = [each for each in FORMATS.values()
                       if each.several or len(self._outgoing.sessions) == 1]
            return replace(choices, format=_next(formats, choices.format, by))
        if key == "messages":
            ends = self._outgoing.message_id is not None and len(self._outgoing.sessions) == 1
            offered = [each for each in MESSAGES if ends or each not in ("from", "until")]
            return replace(choices, messages=_next(offered, choices.messages, by))
        if key == "outputs":
            return replace(choices, outputs=_next(list(OUTPUTS), choices.outputs, by))
        switched: dict[str, Any] = {key: not getattr(choices, key)}
        return replace(choices, **switched)

    async def on_line_view_activated(self, message: Any) -> None:
        """Change the choice that was clicked."""
        message.stop()
        self.change(1)

    # Masks

    def list_masks(self) -> None:
        """List what is masked; what is taken is let through, or masked again."""
        self.run_worker(self._list_masks(), group="verb", exit_on_error=False)

    async def _list_masks(self) -> None:
        counted: Counter[str] = Counter()
        for each in self.seen.masked if self.seen is not None else ():
            counted[each.value] += 1
            self._known.setdefault(each.value, each)
        # What was let through is no longer masked, but can be masked again.
        first = {value: each for value, each in self._known.items()
                 if value in counted or value in self.choices.let_through}
        if not first:
            self.host.notify("Nothing is masked")
            return
        start = 0
        while True:
            let_through = self.choices.let_through
            options = [
                Option(f"{each.mask}  {one_line(each.hint, 60)}", number,
                       "let through" if value in let_through else f"×{counted[value]}",
                       look="tool" if value in let_through else "text")
                for number, (value, each) in enumerate(first.items())
            ]
            taken = await self.host.push_screen_wait(ChooseDialog(
                "Masked", options, about=f"{len(options)} different", start=start,
                verb="look at it"))
            if taken is None:
                return
            start = int(taken)
            value = list(first)[start]
            context, _at = first[value].context
            chosen = await self.host.push_screen_wait(ChooseDialog(
                first[value].mask, [
                    Option("Keep it masked", False), Option("Let it through", True)],
                about=f"×{counted[value]}", start=int(value in let_through),
                notes=[paragraph(one_line(context, 400), "muted")], verb="take"))
            if chosen is not None:
                kept = let_through | {value} if chosen else let_through - {value}
                if kept != let_through:
                    self._take(replace(self.choices, let_through=kept))

    # Out

    async def copy(self) -> None:
        """Copy the text of the preview, once it is what the choices make."""
        seen = self.seen
        if seen is None or seen.choices != self.choices:
            self.host.notify(self._failure or "It is still being made; press y again")
        elif seen.is_cut:
            self.host.notify(f"{size(seen.size)} are too much to copy; w writes them to a file",
                             severity="warning")
        else:
            await clipboard.copy(self.app, seen.text, "what goes out")

    def write(self) -> None:
        """Ask for the file, and write it."""
        self.run_worker(self._write(), group="verb", exit_on_error=False)

    async def _write(self) -> None:
        written = await self.host.push_screen_wait(ShareTo(self._outgoing, self.choices))
        if written is not None and self.is_current:
            self.dismiss()


class ShareTo(PathDialog):
    """Writes what goes out to a file."""

    def __init__(self, outgoing: Outgoing, choices: Choices) -> None:
        """Take what is written."""
        super().__init__(f"Share as {choices.format.name}", "", Path.cwd())
        self._outgoing, self._choices = outgoing, choices

    def placed(self, path: Path) -> Path:
        """Return the path; in a folder the usual name of such a file."""
        return self._outgoing.file_in(path, self._choices) if path.is_dir() else path

    async def write(self, path: Path, *, overwrite: bool) -> str:
        """Write the file."""
        count = await asyncio.to_thread(
            self._outgoing.write, self._choices, path, replace=overwrite)
        return f"Shared {size(count)}"


def _next(values: Sequence[T], value: T, by: int) -> T:
    return values[(values.index(value) + by) % len(values)] if value in values else values[0]
