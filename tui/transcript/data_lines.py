"""Everything that is neither text, reasoning nor a tool call: files, sources, data parts."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from store.conversation.data_parts import (
    compaction_of,
    custom_of,
    error_of,
    event_of,
    patch_of,
    retry_of,
    todo_of,
    words_of,
)
from store.conversation.readable import media_line
from store.text.diffs import tally
from store.text.figures import moment
from store.text.stored_json import as_dict, as_list, readable_json
from tui.kit import diff
from tui.kit.glyphs import glyphs
from tui.kit.lines import Line, Run, cut, indented, width_of
from tui.kit.markdown import layout
from tui.kit.text import clean, one_line, one_row
from tui.kit.wrap import plain_lines, wrap_runs
from tui.transcript.item import Item, Setting
from tui.transcript.prose import CAP_CHARACTERS, capped_lines
from tui.words.messages import clock_time, same_day

LATER_MS = 1_000
"""An event that is so much later than its message shows its own time."""
Laid = tuple[list[Line], str, bool]
"""Lines, role of the bar, whether something is folded away."""


def divider(runs: list[Run], width: int, fold: str | None = None) -> Line:
    """Return a line across the transcript with words in it.

    Args:
        runs: The words.
        width: Cells.
        fold: What a click on it opens.
    """
    dash = glyphs().dashed
    body = cut(runs, width - 8)
    rest = max(2, width - width_of(body) - 6)
    return Line(
        [(dash * 3 + " ", "faint"), *body, (" " + dash * rest, "faint")], fold=fold, bar="none"
    )


def data_lines(item: Item, setting: Setting) -> Laid:
    """Lay out a part by its type; an unknown one shows its name and its JSON."""
    maker = _MAKERS.get(item.type)
    return maker(item, setting) if maker is not None else _unknown(item, setting)


def _payload(item: Item) -> dict[str, Any]:
    return as_dict(item.data.get("data"))


def _opened(item: Item) -> bool:
    return item.level == "whole"


def _unknown(item: Item, setting: Setting) -> Laid:
    shown = {name: value for name, value in item.data.items() if name != "type"}
    text = readable_json(shown)
    lines = text.split("\n")
    opened = _opened(item) or len(lines) <= 5
    mark = glyphs().open if opened else glyphs().folded
    name: list[Run] = [(one_line(item.type), "muted bold"), ("  unknown part", "faint")]
    head = Line([(f"{mark} ", "faint"), *name],
                right=[(f"{len(lines)} lines", "faint")], fold="fold")
    if not opened:
        return [head], "faint", True
    body = plain_lines(text[: CAP_CHARACTERS * item.pages], setting.width - 2, "muted")
    return [head, *(indented(line, 2) for line in capped_lines(body, item.pages))], "faint", False


def _file(item: Item, setting: Setting) -> Laid:
    media = str(item.data.get("mediaType") or "")
    kind = "image" if media.startswith("image") else "file"
    words = clean(media_line(item.data))
    beside = as_dict(as_dict(item.data.get("resultProviderMetadata")).get("backscroll"))
    favorite = as_dict(beside.get("library_file")).get("is_favorite") is True
    star: list[Run] = [(f"{glyphs().star} ", "tool")] if favorite else []
    runs: list[Run] = [*star, (f"{kind} ", "user bold"), (words, "muted")]
    return [Line(cut(runs, setting.width))], "user", False


def _source(item: Item, setting: Setting) -> Laid:
    title = item.data.get("title") or item.data.get("filename") or ""
    runs: list[Run] = [("source ", "muted bold"), (one_line(str(title)), "text"),
                       ("  " + one_line(str(item.data.get("url") or "")), "faint")]
    return [Line(cut(runs, setting.width))], "assistant", False


def _error(item: Item, setting: Setting) -> Laid:
    name, text = error_of(item.type, item.data)
    head: list[Run] = [(f"{glyphs().failed} ", "error bold"), ("error", "error bold")]
    if name:
        head.append((f"  {one_line(name)}", "error"))
    lines = plain_lines(text[:CAP_CHARACTERS].strip(), setting.measure - 2, "error")
    return [Line(head), *(indented(line, 2) for line in lines)], "error", False


def _retry(item: Item, setting: Setting) -> Laid:
    attempt, reason, facts = retry_of(item.data)
    runs: list[Run] = [(f"{glyphs().failed} ", "error"), ("retry  ", "error bold"),
                       (one_row(attempt), "text"), (f"  {one_line(reason)}", "muted")]
    right: list[Run] = [(one_row("  ".join(facts)), "faint")]
    return [Line(cut(runs, setting.width - width_of(right) - 2), right=right)], "error", False


def _compaction(item: Item, setting: Setting) -> Laid:
    size, reason, summary = compaction_of(item.data)
    words: list[Run] = [("compacted", "reasoning bold")]
    if size:
        words.append((f"  {size}", "muted"))
    words.append((f"  {reason}", "faint"))
    opened = _opened(item)
    if summary:
        words.append((f"  o {'folds' if opened else 'shows'} the summary", "faint"))
    lines = [divider(words, setting.width, "fold")]
    if opened and summary:
        shown = summary[: CAP_CHARACTERS * item.pages]
        body = layout(shown, setting.measure, setting.width, "muted")
        lines += capped_lines(body, item.pages)
    return lines, "reasoning", bool(summary) and not opened


def _event(item: Item, setting: Setting) -> Laid:
    laid = _named(item, setting, *event_of(item.type, item.data))
    at = item.row.created_at if item.row is not None else 0
    if at - item.message.created_at >= LATER_MS:
        line = laid[0][0]
        same = same_day(at, item.message.created_at)
        line.right = [(clock_time(at) if same else moment(at)[:16], "faint")]
        line.runs = cut(line.runs, max(8, setting.width - width_of(line.right) - 2))
    return laid


def _named(item: Item, setting: Setting, name: str, text: str) -> Laid:
    """One muted line with a name and the start of the text; opens to all of it."""
    opened = _opened(item) and bool(text.strip())
    mark = glyphs().open if opened else glyphs().folded if text.strip() else glyphs().dot
    head: list[Run] = [(f"{mark} ", "faint"), (one_line(name), "muted")]
    if not opened:
        head += [("  ", "faint"), (one_line(text, 400), "faint")]
        return [Line(cut(head, setting.width), fold="fold")], "faint", bool(text.strip())
    body = plain_lines(text[: CAP_CHARACTERS * item.pages], setting.width - 2, "muted")
    lines = [Line(head, fold="fold")]
    lines += [indented(line, 2) for line in capped_lines(body, item.pages)]
    return lines, "faint", False


def _steering(item: Item, setting: Setting) -> Laid:
    """A prompt that was sent while the answer was written (AI SDK 7's ``steering-message``)."""
    head = Line([("You", "user bold"), ("  sent while it worked", "faint")])
    lines = [head]
    for part in as_list(item.data.get("parts")):
        given = as_dict(part)
        text = given.get("text")
        if given.get("type") == "text" and isinstance(text, str):
            shown = text[: CAP_CHARACTERS * item.pages].strip("\n")
            lines += plain_lines(shown, setting.measure, "text")
        elif given:
            lines.append(Line(cut([(clean(media_line(given)), "muted")], setting.width)))
    return capped_lines(lines, item.pages), "user", False


def _custom(item: Item, setting: Setting) -> Laid:
    return _named(item, setting, *custom_of(item.data))


def _worded(item: Item, setting: Setting) -> Laid:
    words = words_of(item.type, item.data)
    assert words is not None
    return _named(item, setting, *words)


def _todo(item: Item, setting: Setting) -> Laid:
    items = [(state, one_line(text)) for state, text in todo_of(item.data)]
    if not items:
        return _event(item, setting)
    marks = glyphs()
    looks = {"completed": (marks.done, "ok", "muted"),
             "in_progress": (marks.waiting, "tool", "text bold")}
    done = sum(state == "completed" for state, _text in items)
    lines = [Line([("todo ", "tool bold"), (f"{done} of {len(items)} done", "text")])]
    for state, text in items:
        mark, edge, ink = looks.get(state, (marks.idle, "faint", "text"))
        lines += wrap_runs([(text, ink)], setting.width, [(f"  {mark} ", edge)], [("    ", edge)])
    return lines, "tool", False


def _patch(item: Item, setting: Setting) -> Laid:
    names, lines = patch_of(item.data, setting.root)
    if not lines:
        return _named(item, setting, "files changed", names)
    plus, minus = tally(lines)
    head = Line([("patch ", "tool bold"), (one_line(names), "text"), (f"  +{plus}", "ok"),
                 (f" -{minus}", "error")], fold="fold")
    body = diff.layout(lines if _opened(item) else lines[:12], setting.width - 2)
    made = [head, *(indented(line, 2) for line in capped_lines(body, item.pages))]
    if not _opened(item) and len(lines) > 12:
        made.append(Line([(f"  {glyphs().more} {len(lines) - 12} more lines", "faint")],
                         fold="fold"))
    return made, "tool", not _opened(item)


def _plan(item: Item, setting: Setting) -> Laid:
    text = _payload(item).get("plan") or _payload(item).get("text")
    if not isinstance(text, str):
        return _todo(item, setting)
    lines = layout(text[: CAP_CHARACTERS * item.pages], setting.measure, setting.width)
    return [Line([("plan", "tool bold")]), *capped_lines(lines, item.pages)], "tool", False


_MAKERS: dict[str, Callable[[Item, Setting], Laid]] = {
    "steering-message": _steering, "custom": _custom,
    "file": _file, "reasoning-file": _file, "source-url": _source, "source-document": _source,
    "data-error": _error, "data-retry": _retry, "data-compaction": _compaction,
    "data-event": _event, "data-todo": _todo, "data-plan": _plan, "data-patch": _patch,
    "data-agent": _worded, "data-question": _worded, "data-result": _worded,
}
WORDED = frozenset(_MAKERS)
"""Types of parts that are shown in words; any other part is shown as JSON."""
