"""A tool call laid out: one line with what it did, its result below."""

from __future__ import annotations

import re

from store.conversation.calls import Call, ended_in
from store.queries.transcript import child_of
from store.text import figures
from tui.kit import diff
from tui.kit.glyphs import glyphs
from tui.kit.highlight import code_lines
from tui.kit.lines import Line, Run, cut, indented, width_of
from tui.kit.markdown import layout
from tui.kit.text import cells, clean, fit, fit_path
from tui.kit.wrap import plain_lines, wrap_runs
from tui.transcript.item import Item, Level, Setting
from tui.transcript.prose import (
    CAP_CHARACTERS,
    CAP_LINES,
    capped_lines,
    first_line,
    more_line,
)

_NUMBERED = re.compile(r"^\s*(\d+)(?:→|\t)(.*)$")
STATUS_INKS = {
    "running": "tool", "waiting": "tool bold", "ok": "faint", "failed": "error",
    "denied": "error bold", "interrupted": "error", "pending": "muted", "ended": "muted",
}
SPIN_MS = 200
RESULT_LINES = 4
"""Lines of an error that are shown below what a call was given."""
ROWS_OF_A_LINE = 3
"""How many rows a long line gets while outputs are short."""


def status_glyph(call: Call, now: int) -> str:
    """Return the glyph of how a call ended; that of one that runs turns as time goes."""
    marks = glyphs()
    return {
        "running": marks.spinner[now // SPIN_MS % len(marks.spinner)], "waiting": marks.waiting,
        "ok": marks.done, "pending": marks.idle, "ended": marks.idle,
    }.get(call.status, marks.failed)


def tool_lines(call: Call, item: Item, setting: Setting) -> tuple[list[Line], bool]:
    """Lay out a call; returns the lines and whether something is folded away.

    Args:
        call: What the part did.
        item: The part.
        setting: What holds for all parts.
    """
    level: Level = item.level or setting.tools
    child = child_of(setting.children, item.message.id, call.call_id)
    body = [
        *_reply(call, item, setting),
        *_body(call, item, setting, level),
        *_result(call, item, setting, level),
    ]
    opened = bool(body)
    lines = [_summary(call, setting, opened=opened, child=child is not None)]
    lines += [indented(line, 2) for line in body]
    return lines, bool(call.body or call.result) and level != "whole"


def _reply(call: Call, item: Item, setting: Setting) -> list[Line]:
    """Lay out a person's words in answer to the call; they show at every level."""
    if not call.reply:
        return []
    text = call.reply[: CAP_CHARACTERS * item.pages]
    lines: list[Line] = []
    for source in clean(text).split("\n"):
        lead: list[Run] = [("    " if lines else "You ", "user bold")]
        lines += wrap_runs([(source, "text")], min(setting.measure, setting.width - 2), lead,
                         [("    ", "user bold")])
    return capped_lines(lines, item.pages)


def _result(call: Call, item: Item, setting: Setting, level: Level) -> list[Line]:
    """Lay out the result beside the body: an error, or the fixed text around an answer."""
    if not call.result or level == "off":
        return []
    if level != "whole" and not call.result_matters:
        aside = call.reply or call.kind == "markdown"
        return [first_line(call.result, setting.width - 2, [], "faint")] if aside else []
    ink = "error" if call.status == "failed" else "faint"
    text = call.result[: CAP_CHARACTERS * item.pages]
    sources = clean(text).split("\n")
    if level == "whole":
        lines = plain_lines(text, setting.width - 2, ink)
        return capped_lines(lines, item.pages)
    lines = []
    for source in sources[-RESULT_LINES:]:
        lines += wrap_runs([(source, ink)], setting.width - 2, by_cells=True)[:ROWS_OF_A_LINE]
    left = len(sources) - RESULT_LINES
    return [_rest(left, above=True), *lines] if left > 0 else lines


def _summary(call: Call, setting: Setting, *, opened: bool, child: bool) -> Line:
    marks = glyphs()
    facts: list[Run] = []
    status = [status_glyph(call, setting.now), call.word, ended_in(call)]
    ink = STATUS_INKS[call.status]
    facts.append((" ".join(word for word in status[:2] if word), ink))
    if status[2] and call.status not in ("denied", "waiting"):
        facts.append(((" " if not call.word else "  ") + status[2], ink))
    if call.size and call.status in ("ok", "ended"):
        facts.append((f"  {call.size}", "faint"))
    if child:
        facts.append((f"  opens {marks.subagent}", "user"))
    mark = marks.open if opened else marks.folded
    head: list[Run] = [(f"{mark} ", "faint"), (call.name, "tool bold"), (" ", "text")]
    room = setting.width - width_of(head) - width_of(facts) - 2
    beside = [(f"{' ' if number else '  '}{text}", ink)
              for number, (text, ink) in enumerate(call.marks)]
    room_what = max(8, room - width_of(beside))
    shorten = fit_path if "/" in call.what and " " not in call.what else fit
    what = shorten(call.what, room_what)
    runs = cut([*head, (what, "text"), *beside], max(8, setting.width - width_of(facts) - 2))
    return Line(runs, right=facts, fold="child" if child else "fold")


def _body(call: Call, item: Item, setting: Setting, level: Level) -> list[Line]:
    if level == "off" or not call.body:
        return []
    whole = level == "whole"
    limit = CAP_LINES * item.pages if whole else call.lead_lines
    if limit == 0:
        return []
    width = setting.width - 2
    if call.kind == "diff":
        return _cut(diff.layout(call.body[: limit + 1], width), call.body, limit)
    if call.kind == "todo":
        return _cut(_todo_lines(call, width), call.body, limit)
    if call.kind == "markdown":
        measure = min(setting.measure, width)
        lines = layout(call.body[: CAP_CHARACTERS * item.pages], measure, width, "muted")
        return _cut(lines, lines, limit)
    return _text_body(call, item, width, whole=whole)


def _cut(lines: list[Line], source: list[object] | list[Line], limit: int) -> list[Line]:
    """Keep the first lines, with a line that counts the rest."""
    if len(lines) <= limit + 1 and len(source) <= limit + 1:
        return lines
    left = max(len(source), len(lines)) - limit
    return [*lines[:limit], _rest(left)]


def _rest(left: int, above: bool = False) -> Line:
    word = "earlier" if above else "more"
    return Line(
        [(f"{glyphs().more} {left:,} {word} line{'s' * (left != 1)}", "faint")], fold="fold"
    )


def _todo_lines(call: Call, width: int) -> list[Line]:
    marks = glyphs()
    looks = {
        "completed": (marks.done, "ok", "muted"),
        "in_progress": (marks.waiting, "tool", "text bold"),
        "cancelled": (marks.failed, "faint", "faint strike"),
    }
    lines: list[Line] = []
    for state, text in call.body:
        mark, edge, ink = looks.get(state, (marks.idle, "faint", "text"))
        lines += wrap_runs([(text, ink)], width, [(f"{mark} ", edge)], [("  ", edge)])
    return lines


def _text_body(call: Call, item: Item, width: int, *, whole: bool) -> list[Line]:
    text: str = call.body
    if whole:
        limit = CAP_CHARACTERS * item.pages
        lines = _output_lines(call, text[:limit].split("\n"), width)
        lines = capped_lines(lines, item.pages)
        if len(text) > limit and (not lines or lines[-1].fold != "more"):
            rest = text[limit:]
            left = f"{rest.count(chr(10)) + 1:,} more lines, {figures.size(len(rest))}"
            lines.append(more_line(left))
        return lines
    total = text.count("\n") + 1
    keep = call.lead_lines if total > call.lead_lines + 1 else total
    if call.from_end and total > keep:
        tail = text.rsplit("\n", keep)[1:]
        return [_rest(total - keep, above=True), *_short(call, tail, width)]
    head = text.split("\n", keep)[:keep]
    lines = _short(call, head, width)
    return [*lines, _rest(total - keep)] if total > keep else lines


def _short(call: Call, sources: list[str], width: int) -> list[Line]:
    """Lay out the lines of the short form, each in a few rows."""
    lines: list[Line] = []
    for source in sources:
        rows = _output_lines(call, [source[: width * ROWS_OF_A_LINE]], width)
        if len(rows) > ROWS_OF_A_LINE or len(source) > width * ROWS_OF_A_LINE:
            rows = rows[:ROWS_OF_A_LINE]
            shown = sum(len(row.text) + len(row.tail) for row in rows)
            left = f"{glyphs().more} {len(source) - shown:,} more characters"
            rows.append(Line([(left, "faint")], fold="fold"))
        lines += rows
    return lines


def _output_lines(call: Call, sources: list[str], width: int) -> list[Line]:
    ink = "muted"
    if call.kind == "code" and call.language:
        lines = []
        for runs in code_lines("\n".join(sources), call.language):
            lines += wrap_runs(runs, width, by_cells=True)
        return lines
    made: list[Line] = []
    for source in sources:
        text = clean(source)
        numbered = _NUMBERED.match(source) if call.kind == "code" else None
        if numbered:
            edge = f"{numbered[1]:>5}  "
            made += wrap_runs([(clean(numbered[2]), ink)], width, [(edge, "faint")],
                            [(" " * cells(edge), "faint")], by_cells=True)
        else:
            made += wrap_runs([(text, ink)], width, by_cells=True)
    return made
