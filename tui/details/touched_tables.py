"""The files and the commands of a session as lists: one line each, sorted and filtered."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from store.files.disk import Standing
from store.queries.touches import Call, CommandUse, FileRow
from store.text.figures import home_path, moment
from tui.files.reading import standing_run
from tui.kit.blocks import Block, Spot
from tui.kit.glyphs import glyphs
from tui.kit.lines import Line, Link, Run, Value, cut, set_width, width_of
from tui.kit.text import fit_path, one_line
from tui.words.touched import (
    changed_words,
    end_words,
    failed_words,
    line_words,
    mark_words,
    marked_words,
    read_words,
    took_words,
)

PATH_CHARACTERS = 1_000
"""Characters of the end of a path that are drawn."""
WIDE = 100
"""From this width times and the reads of changed files have columns of their own."""
LEAST_NAME = 16


class FileOrder(NamedTuple):
    """A way to sort the files."""

    name: str
    key: Callable[[FileRow], tuple[int, str]]


class CommandOrder(NamedTuple):
    """A way to sort the commands."""

    name: str
    key: Callable[[CommandUse], tuple[float, str]]


FILE_ORDERS = (
    FileOrder("last touch", lambda row: (-row.last.call.at, row.shown)),
    FileOrder("name", lambda row: (0, row.shown.casefold())),
)
COMMAND_ORDERS = (
    CommandOrder("newest", lambda use: (-use.call.at, "")),
    CommandOrder("duration", lambda use: (-(use.call.outcome.milliseconds or 0), "")),
    CommandOrder("name", lambda use: (0, use.text.casefold())),
)


def call_link(session_id: str, call: Call) -> Link:
    """Return the link to a call in the transcript."""
    return Link("call", session_id, call.place.message_id, call.part_id or None)


def _when(call: Call, width: int) -> Run:
    turn = f"turn {call.place.turn}".rjust(8)
    return (f"{turn}  {moment(call.at)[5:16]}" if width >= WIDE else turn), "faint"


class FileTable(Block):
    """A line for each file: its path, what was done to it, lines, the newest touch."""

    def __init__(
        self, session_id: str, rows: Sequence[FileRow], standings: Mapping[str, Standing],
    ) -> None:
        """Take the files.

        Args:
            session_id: Their session, for the links.
            rows: The files, sorted.
            standings: How those that were compared are to the disk, by path.
        """
        self._session_id, self.rows, self._standings = session_id, rows, standings
        self._longest = max((len(row.shown) for row in rows), default=0)
        self._longest_standing = max((width_of([standing_run(state)]) for state in set(
            standings.values()) if state != "unknown"), default=0)

    def height(self, width: int) -> int:
        """Return the number of files."""
        return len(self.rows)

    def line(self, number: int, width: int) -> Line:
        """Return the line of a file."""
        row = self.rows[number]
        changed, read = changed_words(row), read_words(row)
        plus, minus = line_words(row)
        failed, marks = failed_words(row), marked_words(row)
        right: list[Run] = [(f"{failed}  ", "error")] if failed else []
        right += [(f"{marks}  ", "fork")] if marks else []
        right += self._standing(row.key, width)
        right.append(_when(row.last.call, width))
        done: Run = changed or read, "text" if changed else "muted"
        middle: list[Run] = [*set_width([done], 16 if width >= WIDE else 12),
                             (plus.rjust(6), "ok"), (minus.rjust(6), "error")]
        if width >= WIDE:
            middle += set_width([(f"  {read}" if changed else "", "faint")], 12)
        room = max(LEAST_NAME, width - width_of(middle) - width_of(right) - 3)
        room = max(LEAST_NAME, min(room, self._longest + 2))
        path = fit_path(one_line(row.shown[-PATH_CHARACTERS:]), room)
        name: Run = path, "text bold" if changed else "muted"
        return Line(
            cut([*set_width([name], room), (" ", "text"), *middle], width), tuple(right),
            value=Value("path", lambda: row.key), link=call_link(self._session_id, _newest(row)),
        )

    def find(self, needle: str, width: int) -> list[Spot]:
        """Return the files whose path holds the needle."""
        return [at for at, row in enumerate(self.rows) if needle in row.shown.casefold()]

    def _standing(self, key: str, width: int) -> list[Run]:
        """Return how a file is to the disk; its glyph alone where there is little room."""
        if not self._longest_standing:
            return []
        state = self._standings.get(key, "unknown")
        run: Run = ("", "faint") if state == "unknown" else standing_run(state)
        if width >= WIDE:
            return [*set_width([run], self._longest_standing), ("  ", "text")]
        return [(f"{run[0][:1] or ' '}  ", run[1])]


def _newest(row: FileRow) -> Call:
    """Return the newest call that changed the file; of a file that was only read, that one."""
    changes = [use.call for use in row.uses if use.is_change]
    return changes[-1] if changes else row.last.call


class CommandTable(Block):
    """A line for each command: what ran, how it ended, how long it took, when."""

    def __init__(self, session_id: str, uses: Sequence[CommandUse], root: str) -> None:
        """Take the commands.

        Args:
            session_id: Their session, for the links.
            uses: The commands, sorted.
            root: The session's folder, which is not repeated on each line.
        """
        self._session_id, self.uses, self._root = session_id, uses, root

    def height(self, width: int) -> int:
        """Return the number of commands."""
        return len(self.uses)

    def line(self, number: int, width: int) -> Line:
        """Return the line of a command."""
        use = self.uses[number]
        call = use.call
        marks = mark_words(call)
        end, ink = _end(call)
        right: list[Run] = [(f"{marks}  ", "fork")] if marks else []
        if use.folder not in ("", self._root):
            right.append((f"in {fit_path(_folder(use.folder, self._root), 24)}  ", "faint"))
        right += [(end, ink), (took_words(call).rjust(8), "muted"), _when(call, width)]
        typed = use.by == "user"
        text = use.text.strip("\n")
        more = text.count("\n")
        runs: list[Run] = [("! " if typed else "$ ", "user" if typed else "tool"),
                           (one_line(text.split("\n", 1)[0]), "text")]
        if more:
            runs.append((f"  +{more} line{'s' * (more != 1)}", "faint"))
        room = max(LEAST_NAME, width - width_of(right) - 2)
        return Line(
            cut(runs, room), tuple(right), value=Value("command", lambda: use.text),
            link=call_link(self._session_id, call),
        )

    def find(self, needle: str, width: int) -> list[Spot]:
        """Return the commands that hold the needle."""
        return [at for at, use in enumerate(self.uses) if needle in use.text.casefold()]


def _end(call: Call) -> tuple[str, str]:
    """Return how a command ended, with its glyph, and its ink."""
    marks = glyphs()
    status = call.outcome.status
    glyph, ink = {
        "ok": (marks.done, "ok"), "ended": (marks.idle, "muted"), "pending": (marks.idle, "muted"),
        "waiting": (marks.waiting, "tool"), "running": (marks.running, "tool"),
    }.get(status, (marks.failed, "error"))
    return f"{glyph} {one_line(end_words(call), 24)}", ink


def _folder(folder: str, root: str) -> str:
    start = root.rstrip("/") + "/"
    below = root and folder.startswith(start)
    return one_line(folder[len(start):] if below else home_path(folder))


def file_text(row: FileRow) -> str:
    """Return what a filter looks for words in."""
    told = changed_words(row), read_words(row), failed_words(row), marked_words(row)
    return " ".join((row.shown, *told)).casefold()


def command_text(use: CommandUse) -> str:
    """Return what a filter looks for words in."""
    told = use.text, use.folder, end_words(use.call), mark_words(use.call)
    return " ".join(told).casefold()
