"""From a part to its lines: the speaker, the content, and the dividers around it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from store.conversation.endings import ending_of
from store.conversation.readable import readable, strip_tags
from store.conversation.speakers import speaker_of
from store.rows import is_tool_type
from store.text.stored_json import as_dict
from tui.kit.blocks import Laid
from tui.kit.glyphs import glyphs
from tui.kit.lines import Line, Run, cut, width_of
from tui.kit.text import clean, one_line
from tui.kit.wrap import plain_lines, wrap_runs
from tui.transcript.data_lines import data_lines, divider
from tui.transcript.item import Item, Setting
from tui.transcript.prose import first_line, reasoning_lines, text_lines
from tui.transcript.skeleton import HIDDEN, INHERITED, QUEUED, SILENT
from tui.transcript.tool_lines import tool_lines
from tui.words.calls import describe
from tui.words.messages import clock_time, day, message_facts

CHECKPOINT = "checkpoint"
"""Marks a message or call before which its agent can go back."""
_BARS = {"user": "user", "assistant": "assistant", "system": "muted"}
_ASIDE = {"meta": "context", "notification": "notification"}


@dataclass(slots=True)
class PartBlock(Laid):
    """One part, laid out.

    Attributes:
        bar: Role of its accent bar.
        top: Lines at its top that are not its own: the gap, dividers.
        dimmed: Drawn a weight fainter (hidden or inherited).
        folded: Whether something of it is not shown.
    """

    bar: str = "none"
    top: int = 0
    dimmed: bool = False
    folded: bool = False


def lay_out(item: Item, setting: Setting) -> PartBlock:
    """Return the lines of a part."""
    block = PartBlock([], width=setting.width)
    block.dimmed = bool(item.around.flags & (HIDDEN | INHERITED))
    closed = item.around.hidden is not None and not item.around.opened
    if not closed:
        _content(item, setting, block)
    above = _above(item, setting)
    if item.around.gap and block.lines:
        block.lines.insert(0, Line([], bar="none"))
        block.top = 1
    if above:
        spaced = [line for divide in above for line in (Line([], bar="none"), divide)]
        block.top += len(spaced) - closed
        block.lines[:0] = spaced
    return block


def _above(item: Item, setting: Setting) -> list[Line]:
    """Return the dividers above a part."""
    lines: list[Line] = []
    if item.around.new_day:
        lines.append(divider([(day(item.message.created_at), "muted")], setting.width))
    if item.around.first_inherited:
        parent = setting.parent or "the parent session"
        words: list[Run] = [("from ", "fork"), (parent, "fork italic")]
        lines.append(divider(words, setting.width))
    if item.around.hidden is not None:
        count, at = item.around.hidden
        what = f"{count} message{'s' * (count != 1)} hidden by a rewind at {clock_time(at)}"
        key = "hides" if item.around.opened else "shows"
        lines.append(divider([(what, "muted italic"), (f"  H {key} them", "faint")], setting.width,
                             "hidden"))
    return lines


def _content(item: Item, setting: Setting, block: PartBlock) -> None:
    role = item.message.role
    block.bar = _BARS.get(role, "muted")
    origin = str(item.metadata.get("origin") or "")
    if item.around.flags & QUEUED:
        _queued(item, setting, block)
    elif item.row is None:
        _empty(item, setting, block)
    elif (damaged := item.damaged) is not None:
        block.lines, block.bar = _damaged(item, setting, damaged), "error"
    elif item.type == "text":
        _text(item, setting, block, role, origin)
    elif item.type == "reasoning":
        block.lines, block.folded = reasoning_lines(item, setting)
        block.bar = "reasoning"
        if item.around.heads:
            _facts(block.lines[0], item, setting)
    elif is_tool_type(item.type):
        _tool(item, setting, block)
    elif item.type not in SILENT:
        block.lines, block.bar, block.folded = data_lines(item, setting)
        if item.around.heads and role == "user":
            name = one_line(speaker_of(role, item.metadata))
            block.lines.insert(0, _head(item, setting, name, "user bold"))
    if item.around.last:
        block.lines += _ending(item, setting)


def _facts(line: Line, item: Item, setting: Setting) -> None:
    """Put a message's facts at the right of a line, cutting the line for them."""
    if not line.right:
        facts = message_facts(item.message.role, item.message.created_at, item.metadata)
        line.right = [(facts, "faint")]
        line.runs = cut(line.runs, max(8, setting.width - width_of(line.right) - 2))


def _head(item: Item, setting: Setting, name: str, ink: str) -> Line:
    line = Line([(name, ink)])
    note = as_dict(item.metadata.get("backscroll"))
    agent = item.metadata.get("agent")
    if isinstance(agent, str) and agent.strip() and agent != setting.agent:
        line.runs = [*line.runs, (f"  {one_line(agent, 40)}", "muted")]
    if note.get("sent_while_working"):
        line.runs = [*line.runs, ("  sent while it worked", "faint")]
    if note.get("favorite") is True:
        line.runs = [*line.runs, (f" {glyphs().star}", "tool")]
    label = setting.labels.get(item.message.id)
    if label:
        line.runs = [*line.runs, (f"  “{one_line(label)}”", "tool")]
    if isinstance(note.get("checkpoint"), dict):
        line.runs = [*line.runs, (f"  {CHECKPOINT}", "fork")]
    elif item.message.role == "user" and isinstance(item.metadata.get("snapshot_id"), str):
        line.runs = [*line.runs, ("  snapshot", "fork")]
    _facts(line, item, setting)
    return line


def _text(item: Item, setting: Setting, block: PartBlock, role: str, origin: str) -> None:
    details = {**item.metadata, **as_dict(item.metadata.get("backscroll"))}
    if role != "assistant" and origin in _ASIDE and not details.get("interrupt"):
        _aside(item, setting, block, _ASIDE[origin])
        return
    if details.get("interrupt"):
        text = one_line(str(item.data.get("text") or "")).strip("[]")
        block.lines = [Line([(f"{glyphs().failed} ", "error"), (text, "error")])]
        block.bar = "error"
        return
    if origin in ("command", "shell"):
        _command(item, setting, block, details)
        return
    lines = text_lines(item, setting, markdown=role == "assistant")
    if not lines and not item.around.heads:
        return
    if item.around.heads:
        name = one_line(speaker_of(role, item.metadata))
        block.lines = [_head(item, setting, name, f"{_BARS.get(role, 'muted')} bold"), *lines]
    else:
        block.lines = lines


def _damaged(item: Item, setting: Setting, text: str) -> list[Line]:
    """Say that a part's data cannot be shown, with the beginning of what is stored."""
    lead: list[Run] = [(f"{glyphs().failed} ", "error"), (one_line(item.type, 40), "error bold"),
                       ("  damaged  ", "error"), (one_line(text, 400), "faint")]
    return [Line(cut(lead, setting.width))]


def _aside(item: Item, setting: Setting, block: PartBlock, name: str) -> None:
    """Words that the program put in: one faint line, which opens."""
    text = str(item.data.get("text") or "")
    block.bar, opened = "faint", item.level == "whole"
    mark = glyphs().open if opened else glyphs().folded
    lead: list[Run] = [(f"{mark} ", "faint"), (name, "muted"), ("  ", "faint")]
    right: list[Run] = [(clock_time(item.message.created_at), "faint")]
    if opened:
        lines = text_lines(item, setting, markdown=False, ink="muted")
        block.lines = [Line(lead, right=right, fold="fold"), *lines]
        return
    line = first_line(text, setting.width - 8, lead, "faint")
    line.right = right
    block.lines, block.folded = [line], True


def _command(
    item: Item, setting: Setting, block: PartBlock, details: dict[str, Any]
) -> None:
    """A slash command or shell line that a person typed, or what it printed."""
    text = str(item.data.get("text") or "")
    command, shell = as_dict(details.get("command")), details.get("shell")
    right: list[Run] = [(clock_time(item.message.created_at), "faint")]
    if command.get("name"):
        runs: list[Run] = [(one_line(str(command["name"])), "user bold"),
                           (" " + one_line(str(command.get("args") or "")), "text")]
        block.lines = [Line(cut(runs, setting.width - 8), right=right)]
    elif isinstance(shell, str):
        block.lines = [Line(cut([("! ", "user bold"), (one_line(shell), "text")],
                                   setting.width - 8), right=right)]
    elif item.level == "whole" or (text.count("\n") < 4 and len(text) < 400):
        block.lines = plain_lines(strip_tags(text), setting.width, "muted")
    else:
        block.lines = [first_line(text, setting.width, [(f"{glyphs().folded} ", "faint")], "muted")]
        block.folded = True


def _queued(item: Item, setting: Setting, block: PartBlock) -> None:
    text = one_line(str(item.data.get("text") or ""))
    right: list[Run] = [(clock_time(item.message.created_at), "faint")]
    lead: list[Run] = [(" queued ", "muted reverse"), ("  ", "text")]
    room = max(4, setting.width - width_of(lead) - width_of(right) - 2)
    block.lines = [Line([*lead, *cut([(text, "text")], room)], right=right, bar="none")]


def _empty(item: Item, setting: Setting, block: PartBlock) -> None:
    name = one_line(speaker_of(item.message.role, item.metadata))
    line = _head(item, setting, name, f"{_BARS.get(item.message.role, 'muted')} bold")
    block.lines = [line, Line([("no content", "faint italic")])]


def _tool(item: Item, setting: Setting, block: PartBlock) -> None:
    assert item.row is not None
    times = (item.row.created_at, item.row.updated_at)
    call = describe(item.data, setting.root, times)
    beside = as_dict(item.data.get("resultProviderMetadata")).get("backscroll")
    if isinstance(as_dict(beside).get("restore_point"), str):
        call.marks.append((CHECKPOINT, "fork"))
    runs = setting.runs(item.row.updated_at, newest=item.around.newest)
    if call.status == "pending" and runs:
        call.status, call.word = "running", "running"
        call.milliseconds = max(0, setting.now - item.row.created_at)
    elif call.status == "pending":
        call.milliseconds = None
        if setting.waiting and item.around.newest:
            # The agent reports that it waits; its rows do not name the call.
            call.status = "waiting"
            call.word = (
                "waits for approval" if setting.waiting == "waiting-approval"
                else "waits for input")
    block.lines, block.folded = tool_lines(call, item, setting)
    block.bar = "error" if call.status in ("failed", "denied", "interrupted") else "tool"


def _ending(item: Item, setting: Setting) -> list[Line]:
    """Return how a message ended where it did not end well: an error, stopped, unknown."""
    details = as_dict(item.metadata.get("backscroll"))
    lines: list[Line] = []
    lead: list[Run] = [(f"{glyphs().failed} ", "error bold")]
    rest: list[Run] = [("  ", "error")]
    error = details.get("error")
    if error and item.type != "data-error":
        text = readable(as_dict(error).get("message") or error)
        for number, source in enumerate(clean(text).strip().split("\n")):
            lines += wrap_runs([(source, "error")], setting.measure, rest if number else lead, rest)
    for line in lines:
        line.bar = "error"
    ended = ending_of(item.metadata)
    if ended is not None:
        mark, ink = (glyphs().failed, "error") if ended.stopped else (glyphs().idle, "muted")
        said = wrap_runs([(clean(ended.words), ink)], setting.measure,
                         [(f"{mark} ", f"{ink} bold")], [("  ", ink)])  # fmt: skip
        for line in said:
            line.bar = ink
        lines += said
    return lines

