"""Lines of the results: the heading of a session, and a hit in one or two lines."""

from __future__ import annotations

import re
import time
from collections.abc import Sequence

from store.conversation.calls import Call
from store.queries.listing import ListRow
from store.search.hits import Excerpt, Hit, SessionHits
from store.text import figures
from tui.kit.glyphs import glyphs
from tui.kit.lines import Line, Run, cut, slice_runs, width_of
from tui.kit.masked import shown
from tui.kit.paint import HIT
from tui.kit.text import cells, clean, column_offset, fit_path, one_line
from tui.kit.wrap import wrap_runs
from tui.words.calls import describe
from tui.words.messages import clock_time, same_day
from tui.words.sessions import age, folder, model_name, short_kind

HEADING_LINES = 2
NARROW = 64
"""Below this width agent and model of a session are in the second line of its heading."""
_LEAST_EXCERPT = 16
_SPACES = re.compile(r"\s+")
_NAMES = {"prompt": "You", "text": "Assistant", "reasoning": "Thinking", "title": "Title"}
_BARS = {
    "prompt": "user", "text": "assistant", "reasoning": "reasoning", "title": "muted",
    "input": "tool", "output": "tool",
}


def bar_of(hit: Hit) -> str:
    """Return the role of a hit's accent bar."""
    return "error" if hit.failed else _BARS[hit.where]


def speaker(hit: Hit) -> Run:
    """Return who said what matches, with its ink; for parts that are no tool calls."""
    kind = str(hit.data.get("type") or "")
    if hit.where == "text" and hit.role != "assistant":
        return ("Context" if hit.role == "user" else "System", "muted bold")
    if kind.startswith("data-"):
        return one_line(kind[5:], 24).capitalize(), "muted bold"
    return _NAMES.get(hit.where, "Output"), f"{_BARS[hit.where]} bold"


def call_of(hit: Hit, row: ListRow) -> Call:
    """Return the tool call of a hit, ready to be drawn."""
    return describe(dict(hit.data), row.workspace, hit.times)


# A session


def heading_lines(found: SessionHits, width: int, now: int) -> list[Line]:
    """Return title and facts of a session, and its folder and branch below.

    Args:
        found: The session and its hits.
        width: Cells of a line.
        now: Epoch ms.
    """
    row, marks = found.row, glyphs()
    tail: list[Run] = []
    if row.star:
        tail.append((f" {marks.star}", "tool"))
    if row.lineage == "fork":
        tail.append((f"  {marks.fork} fork", "fork"))
    elif row.lineage == "subagent":
        tail.append((f"  {marks.subagent} subagent", "fork"))
    if row.archived_at is not None:
        tail.append(("  archived", "muted"))
    count = figures.count_of(len(found.hits) + found.more, "hit")
    when = age(row.updated_at, now)
    source = one_line(row.source or row.agent, 40)
    origin = f" {marks.dot} ".join(filter(None, (short_kind(source), model_name(row.model))))
    narrow = width < NARROW
    facts = (count, when) if narrow else (count, origin, when)
    right: list[Run] = [("  ".join(facts), "faint")]
    room = width - width_of(right) - width_of(tail) - 2
    first = Line([*_title_runs(found, max(8, room)), *tail], right)
    places = [folder(row.workspace) if row.workspace else "", one_line(row.branch or "", 80)]
    if narrow:
        places.append(origin)
    below = f" {marks.dot} ".join(filter(None, places)) or "no folder"
    return [first, Line([("  ", "text"), (_fitted(below, places, width - 2), "faint")], lead=2)]


def _title_runs(found: SessionHits, room: int) -> list[Run]:
    """Return a session's title in some cells, the matches marked where it is a hit."""
    hit = next((hit for hit in found.hits if hit.where == "title"), None)
    if hit is not None and hit.excerpt.marks:
        return excerpt_runs(hit.excerpt, room, "text bold")
    title = one_line(shown(found.row.title) or "", 400)
    return list(cut([(title or "untitled", "text bold" if title else "muted bold italic")], room))


def _fitted(words: str, places: Sequence[str], room: int) -> str:
    """Return folder and what follows; the folder gives way from its left."""
    over = cells(words) - room
    if over <= 0 or not places[0]:
        return words
    kept = max(8, cells(places[0]) - over)
    return words.replace(places[0], fit_path(places[0], kept), 1)


# A hit


def hit_lines(hit: Hit, row: ListRow, width: int) -> list[Line]:
    """Return what matches, in its context, in one or two lines.

    Args:
        hit: The hit.
        row: Its session.
        width: Cells of a line.
    """
    when: Run = (_when(hit, row), "faint")
    if hit.tool is not None:
        return _call_lines(call_of(hit, row), hit, width, when)
    name = speaker(hit)
    lead: list[Run] = [name, ("  ", "text")]
    room = max(_LEAST_EXCERPT, width - width_of([when]) - 2)
    runs = excerpt_runs(hit.excerpt, 2 * room - width_of(lead) - 8)
    lines = wrap_runs(runs, room, lead, [("  ", "text")])
    lines[0].right = [when]
    if len(lines) > 2:
        lines = lines[:2]
        lines[1].runs = [*cut(lines[1].runs, room - 1), (glyphs().more, "faint")]
    return lines


def _when(hit: Hit, row: ListRow) -> str:
    """Return the time of a hit, or its day where that is not the day of the session's age."""
    if same_day(hit.created_at, row.updated_at):
        return clock_time(hit.created_at)
    day = time.localtime(hit.created_at / 1000)
    return f"{day.tm_mday} {time.strftime('%b', day)}"


def _call_lines(call: Call, hit: Hit, width: int, when: Run) -> list[Line]:
    ink = {"failed": "error", "denied": "error", "interrupted": "error"}.get(call.status, "faint")
    mark = glyphs().failed if ink == "error" else ""
    word = " ".join(filter(None, (mark, call.word)))
    right: list[Run] = [(f"{word} ", ink)] if word else []
    right.append(when)
    lead: list[Run] = [(call.name, "tool bold"), ("  ", "text")]
    room = max(8, width - width_of(lead) - width_of(right) - 2)
    what = _telling(call, hit, room)
    first = Line([*lead, *what], right)
    seen = hit.where == "input" and any(run[1] == HIT for run in what)
    if seen or not hit.excerpt.marks:
        return [first]
    runs = excerpt_runs(hit.excerpt, max(_LEAST_EXCERPT, width - 2))
    return [first, Line([("  ", "text"), *runs], lead=2)]


def _telling(call: Call, hit: Hit, room: int) -> list[Run]:
    """Return what a call did, with the matches marked where the excerpt is a part of it."""
    whole = call.what
    texts = [hit.excerpt.text[start:end] for start, end in hit.excerpt.marks]
    spans: list[tuple[int, int]] = []
    if hit.where == "input" and hit.excerpt.text.strip() in whole:
        at = 0
        for text in texts:
            found = whole.find(text, at)
            if found >= 0:
                spans.append((found, found + len(text)))
                at = found + len(text)
    if not spans:
        return list(cut([(whole, "muted")], room))
    return _around(_inked(whole, spans, "muted"), spans[0], room, before=False, after=False)


def excerpt_runs(excerpt: Excerpt, room: int, ink: str = "muted") -> list[Run]:
    """Return the text around a match in some cells, the matches marked.

    Args:
        excerpt: The text, raw.
        room: Cells.
        ink: What is drawn around the matches.
    """
    pieces: list[Run] = []
    at = 0
    for start, end in (*excerpt.marks, (len(excerpt.text), len(excerpt.text))):
        pieces += [(_plain(excerpt.text[at:start]), ink), (_plain(excerpt.text[start:end]), HIT)]
        at = end
    if pieces:
        pieces[0] = pieces[0][0].lstrip(), ink
    runs = [(text, look) for text, look in pieces if text]
    first, at = (0, 0), 0
    for text, look in runs:
        if look == HIT:
            first = at, at + len(text)
            break
        at += len(text)
    return _around(
        runs, first, room, before=excerpt.cut_before, after=excerpt.cut_after)


def _plain(text: str) -> str:
    """Return a piece of text for a line, its spaces at both ends kept."""
    return _SPACES.sub(" ", clean(text))


def _inked(text: str, spans: Sequence[tuple[int, int]], ink: str) -> list[Run]:
    runs: list[Run] = []
    at = 0
    for start, end in spans:
        runs += [(text[at:start], ink), (text[start:end], HIT)]
        at = end
    runs.append((text[at:], ink))
    return [run for run in runs if run[0]]


def _around(
    runs: list[Run], mark: tuple[int, int], room: int, *, before: bool, after: bool
) -> list[Run]:
    """Return runs in some cells, cut at their left where the match would not be seen.

    Args:
        runs: A line.
        mark: Which characters match.
        room: Cells.
        before: Whether something comes before the runs.
        after: Whether something follows.
    """
    more = glyphs().more
    text = "".join([piece for piece, _ink in runs])
    left = cells(text[: mark[0]])
    seen = left + cells(text[mark[0]: mark[1]])
    if seen > room - 2:
        drop = column_offset(text, max(0, left - max(4, room // 3)))
        space = text.find(" ", drop, mark[0])
        drop = space + 1 if 0 <= space < drop + 12 else drop
        runs = slice_runs(runs, drop, len(text))
        before = before or drop > 0
    if before:
        runs = [(more, "faint"), *runs]
    if after and width_of(runs) < room:
        runs = [*runs, (more, "faint")]
    return list(cut(runs, room))
