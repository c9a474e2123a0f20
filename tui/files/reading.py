"""Reads a file of a session at each of its points, and makes the lines that show it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from store.engine.database import Database
from store.errors import NotFound
from store.files.comparing import as_text, differences
from store.files.disk import Present, Standing, present, standing
from store.files.history import (
    Checkpoint,
    Content,
    Point,
    SessionFile,
    SessionFiles,
    at_message,
    checkpoints,
    points_of,
    session_files,
)
from store.queries.touches import FileRow, Touches
from store.text.diffs import DiffLine, tally
from store.text.figures import count_of, moment, size
from tui.kit.blocks import Block, Fixed, Spot
from tui.kit.diff import changes
from tui.kit.glyphs import glyphs
from tui.kit.lines import BLANK, Line, Link, Run, Value, cut, width_of
from tui.kit.masked import shown
from tui.kit.text import fit_path, one_line
from tui.words.files import (
    origin_words,
    point_words,
    since_words,
    source_words,
    standing_words,
)
from tui.words.touched import changed_words, read_words

Compared = Literal["change", "text", "disk"]
"""What is shown of a point: what it changed, its text, or how the disk differs from it."""
LONGEST_PATH = 1_000
"""Characters of the end of a path that are drawn."""
MOST_LINES = 20_000
"""Lines that are shown; laying out more would hold up the keys."""

_STANDING_INKS: dict[Standing, str] = {
    "same": "ok", "changed": "tool", "gone": "error", "there": "tool", "other": "tool",
    "unknown": "faint"}


@dataclass(frozen=True, slots=True)
class Asked:
    """Which file of a session is shown, and from which point.

    Attributes:
        key: The file; None for the first one that the call changed, or that any call did.
        part_id: The call to begin at.
        message_id: The message to begin at: the files as they were then.
        found: What the session touched, where that was read already.
    """

    session_id: str
    key: str | None = None
    part_id: str | None = None
    message_id: str | None = None
    found: Touches | None = None


@dataclass(frozen=True, slots=True)
class FileAtPoints:
    """A file of a session with all that is known of it.

    Attributes:
        key: Its path.
        shown: The path from the session's folder on.
        start: The number of the point to begin with.
        now: The file on disk.
        before: The message before each message.
        files: All files of the session: those that it changed first, the last touched first.
        touches: What the session touched.
    """

    session_id: str
    key: str
    shown: str
    points: list[Point]
    start: int
    now: Present
    checkpoints: list[Checkpoint]
    before: dict[str, str]
    files: list[FileRow]
    touches: Touches


def read_file(db: Database, asked: Asked) -> FileAtPoints:
    """Return a file at each of its points.

    Raises:
        NotFound: The call changed no file, or the session is gone.
    """
    session_id, key, part_id = asked.session_id, asked.key, asked.part_id
    of = session_files(db, session_id, asked.found)
    files = sorted((file.row for file in of.files.values()), key=lambda row: _order(of, row))
    if key is None and part_id is None:
        if not files:
            raise NotFound("no call of this session names a file")
        key = files[0].key
    elif key is None:
        key = _changed_by(of, part_id)
    file = of.files.get(key)
    if file is None:
        raise NotFound(f"the session touched no file {key}")
    points = points_of(db, of, key)
    if asked.message_id is not None:
        then = at_message(of, points, asked.message_id)
        return _at_points(db, of, file, points, then.number if then is not None else 0, files)
    start = max((point.number for point in points if point.use is not None
                 and point.use.call.part_id == part_id), default=len(points) - 1)
    return _at_points(db, of, file, points, max(0, start), files)


def _at_points(
    db: Database, of: SessionFiles, file: SessionFile, points: list[Point], start: int,
    files: list[FileRow],
) -> FileAtPoints:
    """Return a file at its points.

    Args:
        db: The store.
        of: The session's files.
        file: The file.
        points: Its points.
        start: The point to begin with.
        files: All files, in the order in which they are listed.
    """
    ids, key = [place.message_id for place in of.places.messages], file.row.key
    return FileAtPoints(
        of.places.session_id, key, file.row.shown, points, start, present(key),
        list(checkpoints(db, of.places)), dict(zip(ids[1:], ids, strict=False)), files,
        of.touches,
    )


def _order(of: SessionFiles, row: FileRow) -> tuple[bool, int, str]:
    last = max((use.call.at for use in row.uses), default=0)
    return not of.files[row.key].changed, -last, row.shown


def _changed_by(of: SessionFiles, part_id: str | None) -> str:
    for key, file in of.files.items():
        if any(use.call.part_id == part_id and use.is_change for use in file.row.uses):
            return key
    for key, file in of.files.items():
        if any(use.call.part_id == part_id for use in file.row.uses):
            return key
    raise NotFound("this call names no file")


def standings(
    db: Database, session_id: str, found: Touches, keys: Sequence[str]
) -> dict[str, Standing]:
    """Return how files on disk are to what the session left of them.

    Args:
        db: The store.
        session_id: The session.
        found: What the session touched.
        keys: The files.
    """
    of = session_files(db, session_id, found)
    made: dict[str, Standing] = {}
    for key in keys:
        points = points_of(db, of, key)
        if points:
            made[key] = standing(points[-1].content, present(key))
    return made


def standing_run(state: Standing) -> Run:
    """Return how a file is to the disk, with its glyph."""
    marks = glyphs()
    glyph = {"same": marks.done, "changed": marks.waiting, "gone": marks.failed,
             "there": marks.waiting, "other": marks.waiting}.get(state, marks.idle)
    return f"{glyph} {standing_words(state)}", _STANDING_INKS[state]


# Lines


class FileNames(Block):
    """A line for each file: its name, what was done to it, how it is to the disk."""

    def __init__(self, files: Sequence[FileRow], standings: Mapping[str, Standing]) -> None:
        """Take the files.

        Args:
            files: In the order of the lines.
            standings: How those that were compared are to the disk, by path.
        """
        self._files, self._standings = files, standings

    def height(self, width: int) -> int:
        """Return the number of files."""
        return len(self._files)

    def line(self, number: int, width: int) -> Line:
        """Return the line of a file; it leads to the file."""
        row = self._files[number]
        changed = changed_words(row)
        state = self._standings.get(row.key)
        right: list[Run] = [(changed or read_words(row), "muted" if changed else "faint")]
        if state is not None:
            words, ink = standing_run(state)
            right.append((f"  {words[:1]}", ink))
        path = fit_path(one_line(row.shown[-LONGEST_PATH:]), max(8, width - width_of(right) - 2))
        return Line(((path, "text" if changed else "muted"),), tuple(right),
                    value=Value("path", lambda: row.key), link=Link("file", row.key))

    def find(self, needle: str, width: int) -> list[Spot]:
        """Return the files whose path holds the needle."""
        return [at for at, row in enumerate(self._files) if needle in row.shown.casefold()]


def title_line(file: FileAtPoints, number: int, width: int) -> Line:
    """Return the line with the file and how it is to the disk.

    Args:
        file: The file.
        number: The point that is shown.
        width: Cells.
    """
    content = _content(file, number)
    right: list[Run] = [(f"{origin_words(content)}  ", "ok" if content.is_known else "error"),
                        standing_run(standing(content, file.now))]
    room = max(8, width - width_of(right) - 2)
    return Line(((fit_path(one_line(file.shown[-1_000:]), room), "text bold"),), tuple(right))


def point_line(
    file: FileAtPoints, number: int, compared: Compared, width: int, base: int | None = None
) -> Line:
    """Return the line with the point and a slider over all of them.

    Args:
        file: The file.
        number: The point that is shown.
        compared: What is shown of it.
        width: Cells.
        base: The point that it is compared with; None for the one before.
    """
    if not file.points:
        return Line((("no points", "faint"),))
    point = file.points[number]
    runs: list[Run] = [(f"{number + 1} of {len(file.points)}  ", "faint"),
                       (point_words(point), "text bold")]
    if point.turn:
        runs.append((f"  turn {point.turn}", "muted"))
    runs.append((f"  {moment(point.at)[5:16]}", "faint"))
    if point.use is not None and point.use.call.place.hidden:
        runs.append(("  hidden by a rewind", "fork"))
    words = {"change": "what it changed", "text": "whole text", "disk": "against the disk"}
    if base is not None and compared == "change":
        runs.append((f"  compared with {base + 1}", "fork"))
    elif width >= 70:
        runs.append((f"  {words[compared]}", "faint"))
    room = width - width_of(runs) - 6
    return Line(cut(runs, width), tuple(_slider(number, len(file.points), min(24, room), base)))


def _slider(number: int, count: int, cells: int, base: int | None) -> list[Run]:
    if cells < 5 or count < 2:
        return []
    marks = glyphs()
    at = round(number / (count - 1) * (cells - 1))
    drawn: list[Run] = [(marks.rule, "user" if cell < at else "rule") for cell in range(cells)]
    if base is not None:
        drawn[round(base / (count - 1) * (cells - 1))] = marks.label, "fork bold"
    drawn[at] = marks.running, "user bold"
    return [("< ", "faint"), *drawn, (" >", "faint")]


def _content(file: FileAtPoints, number: int) -> Content:
    return file.points[number].content if file.points else Content("unknown")


def file_blocks(
    file: FileAtPoints, number: int, compared: Compared, base: int | None = None
) -> list[Block]:
    """Return what is shown of a point.

    Args:
        file: The file.
        number: The point.
        compared: What is shown of it.
        base: The point that it is compared with; None for the one before.
    """
    if not file.points:
        return [_told("Nothing is known of this file."), *_checkpoint_blocks(file)]
    point = file.points[number]
    content = point.content
    blocks = [_told(_sentence(source_words(content)), "muted" if content.is_known else "error")]
    since = since_words(content, file.now, standing(content, file.now))
    if since:
        blocks.append(_told(since, "error"))
    blocks.append(Fixed(lambda _: [BLANK]))
    blocks += _body(file, number, compared, base)
    return [*blocks, Fixed(lambda _: [BLANK]), *_checkpoint_blocks(file)]


def _sentence(words: str) -> str:
    return f"{words[:1].upper()}{words[1:]}."


def _body(
    file: FileAtPoints, number: int, compared: Compared, base: int | None
) -> list[Block]:
    point = file.points[number]
    link = _link(file, point)
    if compared == "text":
        return _text(point.content, link)
    if compared == "disk":
        old, new = point.content, _on_disk(file.now)
    elif base is not None:
        if base == number:
            return [_told("You compare from here. Go to another point to see the difference.")]
        old, new = (_content(file, each) for each in sorted((base, number)))
    else:
        old, new = _content(file, max(0, number - 1)), point.content
        if number == 0:
            return _text(point.content, link)
    for content in (old, new):
        if not content.is_known:
            told = "" if content is point.content and base is None else _sentence(
                f"no difference can be shown: {content.source}")
            alone = compared == "change" and base is None and new.is_known
            known = _text(new, link) if alone else []
            return [*([_told(told)] if told else []), *known]
    before, after = shown(as_text(old.body)), shown(as_text(new.body))
    if before is None or after is None:
        same = old.body == new.body
        return [_told("It is no text, and the same." if same else "It is no text, and differs.")]
    lines = differences(before, after)
    if not lines:
        return [_told("There is no difference.")]
    return _lines(lines, link)


def _text(content: Content, link: Link | None) -> list[Block]:
    if content.body is None:
        return []
    text = shown(as_text(content.body))
    if text is None:
        return [_told(f"It is no text: {size(len(content.body))}.")]
    if not text:
        return [_told("The file is empty.")]
    rows = text.removesuffix("\n").split("\n")
    return _lines([DiffLine(" ", at, row) for at, row in enumerate(rows, 1)], link)


def _lines(lines: list[DiffLine], link: Link | None) -> list[Block]:
    value = Value("text", lambda: "\n".join(
        f"{line.sign if changed else ''}{line.text}" for line in lines))
    changed = any(tally(lines))
    blocks: list[Block] = [changes(lines[:MOST_LINES], value, None, None, link)]
    if len(lines) > MOST_LINES:
        blocks.append(_told(f"… {count_of(len(lines) - MOST_LINES, 'more line')}"))
    return blocks


def _link(file: FileAtPoints, point: Point) -> Link | None:
    if point.use is None:
        return None
    call = point.use.call
    return Link("call", file.session_id, call.place.message_id, call.part_id or None)


def _on_disk(now: Present) -> Content:
    if now.state == "missing":
        return Content("missing", source="not on disk")
    if now.body is None:
        return Content("unknown", source="the file on disk cannot be read")
    return Content("read", now.body, source="on disk")


def _checkpoint_blocks(file: FileAtPoints) -> list[Block]:
    """Return a line for each checkpoint of the session; enter goes there, a key forks there."""
    if not file.checkpoints:
        return []

    def build(width: int) -> list[Line]:
        made = [Line((("Checkpoints of the session", "muted bold"),))]
        for one in file.checkpoints:
            right: list[Run] = [(f"turn {one.turn}  {moment(one.at)[5:16]}", "faint")]
            runs: list[Run] = [(f"{glyphs().label} ", "fork"),
                               (f"{one.kept_by}  ", "muted"), (one_line(one.name, 200), "text")]
            kind = "saved" if one.after else "checkpoint"
            link = Link(kind, file.session_id, one.message_id, one.part_id or None)
            made.append(Line(cut(runs, width - width_of(right) - 2), tuple(right), link=link))
        return made

    return [Fixed(build)]


def _told(text: str, ink: str = "muted") -> Block:
    from tui.kit.blocks import Text, plain

    return Text(text, words=True, paint=plain(ink))
