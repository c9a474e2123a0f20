"""The Call view: what the part did, its input and output, and what it cost."""

from __future__ import annotations

import re
from typing import Any

from store.conversation.gone_marks import NO_LONGER, is_gone
from store.conversation.replies import reply_in
from store.text.diffs import DiffLine, as_text
from store.text.figures import clock, count_of, duration, moment, size, tokens
from store.text.neutral import without_colour
from tui.inspector.subject import Subject
from tui.kit.blocks import (
    Block,
    Columns,
    Fixed,
    Painter,
    Text,
    plain,
    section,
)
from tui.kit.diff import changes
from tui.kit.lines import BLANK, Line, Link, Run, Value, cut, heading, middle_cut, pair
from tui.kit.markdown import prose
from tui.kit.masked import shown
from tui.kit.text import one_line
from tui.kit.tree import STRING_ROWS, Tree, as_json
from tui.kit.usage import bar_lines, cost_words, spent_lines

WIDE = 100
"""Cells from which input and output are side by side."""

LEFT_SHARE = 0.42
"""Share of the width that facts and input get beside the output."""

LEAST_OUTPUT = 8
"""Rows of an output that are shown however little room there is."""


TEXT_KEYS = ("text", "output", "content", "stdout", "result")
_RULER = re.compile(r"([=_\-*#~─═])\1{7,}")
_ERROR_LINE = re.compile(
    r"^(E\s{2,}|✗|\s*(error|fatal|traceback|failed|failure)\b)"
    r"|\b\w*(Error|Exception):|=+ (FAIL|ERR)|^_{4,}",
    re.IGNORECASE,
)
_PLACE = re.compile(r"^\S*[\w.-]+/[\w./-]+:\d+(:\d+)?\S*$")
LONGEST_SHRUNK = 1_000_000
"""Characters of an output beyond which rulers are left as they are."""


def call_blocks(subject: Subject, width: int, room: int) -> list[Block]:
    """Return the blocks of the Call view.

    Args:
        subject: The part.
        width: Cells; from ``WIDE`` on, input and output are side by side.
        room: Rows of the view: the output is cut so that what follows it is still seen.
    """
    facts = Fixed(lambda cells: facts_lines(subject, cells))
    spent = Fixed(lambda cells: [*turn_lines(subject, cells), *session_lines(subject, cells)])
    damaged = subject.damaged
    if damaged is not None or not subject.is_tool:
        body = _text_blocks(subject) if damaged is None else _damaged_blocks(damaged)
        return [facts, *body, Fixed(lambda _: [BLANK]), spent]
    given = _input_blocks(subject)
    if width >= WIDE:
        outputs = _output_blocks(subject, None, int((width - Columns.GAP) * (1 - LEFT_SHARE)))
        return [Columns([facts, *given, spent], outputs, LEFT_SHARE)]
    inner = max(1, width)
    used = sum(block.height(inner) for block in (facts, *given, spent)) + 3
    outputs = _output_blocks(subject, max(LEAST_OUTPUT, room - used), width)
    return [facts, *given, *outputs, spent]


def facts_lines(subject: Subject, width: int) -> list[Line]:
    """Return the aligned facts: state, duration, ids."""
    part, message = subject.detail.part, subject.detail.message
    lines = []
    if subject.state or subject.verdict:
        runs: list[Run] = [(one_line(subject.state, 60), "text")] if subject.state else []
        if subject.verdict:
            word, ink = subject.verdict
            runs += [("  " if runs else "", "text"), (word, ink)]
        lines.append(pair("state", runs, width))
    took = subject.milliseconds
    if took is not None:
        span = f"   {clock(part.created_at)} to {clock(part.created_at + took)}"
        lines.append(pair("duration", [(duration(took), "text"), (span, "faint")], width))
    else:
        lines.append(pair("time", [(moment(part.created_at), "text")], width))
    model = subject.metadata.get("model")
    if isinstance(model, dict) and not subject.is_tool:
        lines.append(pair("model", [(one_line(str(model.get("model_id"))), "text")], width))
    if part.tool_call_id:
        lines.append(_id_line("call", part.tool_call_id, "", width))
    place = f"#{subject.detail.position} of {subject.detail.parts}"
    lines.append(_id_line("part", part.id, place, width))
    if message.hidden_at is not None:
        hidden = [("hidden by a rewind ", "fork"), (moment(message.hidden_at), "faint")]
        lines.append(pair("message", hidden, width))
    if is_gone(subject.metadata, part.index):
        lines.append(pair("kept", [(NO_LONGER, "fork")], width))
    return [*lines, *_link_lines(subject, width), BLANK]


def _id_line(name: str, identity: str, after: str, width: int) -> Line:
    room = width - 10 - (len(after) + 2 if after else 0)
    runs: list[Run] = [(middle_cut(one_line(identity, 120), max(8, room)), "muted")]
    if after:
        runs.append((f"  {after}", "text"))
    return pair(name, runs, width, value=Value(f"{name} id", lambda: identity))


def _link_lines(subject: Subject, width: int) -> list[Line]:
    lines = []
    for child in subject.detail.children:
        title = one_line(shown(child.title) or "untitled")
        runs: list[Run] = [("↳ ", "fork"), (title, "user underline"), ("  enter opens", "faint")]
        link = Link("session", child.id, child.message_id)
        lines.append(pair("child", runs, width, link=link, value=_id_value(child.id)))
    return lines


def _id_value(identity: str) -> Value:
    return Value("session id", lambda: identity)


def _input_blocks(subject: Subject) -> list[Block]:
    given = subject.data.get("input", subject.data.get("rawInput"))
    if given is None:
        fact = "none yet" if subject.state == "input-streaming" else "none"
        return section("Input", [fact])
    value = Value("input", lambda: given if isinstance(given, str) else as_json(given), ".json")
    facts = [] if "input" in subject.data else ["as the model wrote it, no valid JSON"]
    body: Block
    if isinstance(given, str):
        body = Text(given, value=value, limit=STRING_ROWS, fold="input")
    else:
        rows = None if "input" in subject.opened else STRING_ROWS
        body = Tree(subject.root("$.input", given), name="$.input", rows=rows)
    return section("Input", facts, body, value=value)


def _output_blocks(subject: Subject, limit: int | None, width: int) -> list[Block]:
    blocks: list[Block] = []
    patch = _diff_lines(subject)
    if patch:
        blocks += _diff_section(patch, subject, limit)
    result = result_of(subject)
    if result is None:
        return [*blocks, *_no_output(subject)]
    said = _words_in(result, subject)
    if said:
        words = Value("reply", lambda: said)
        blocks += section("Your words", [], Text(said, value=words), value=words)
    name = "Error" if subject.data.get("errorText") is not None else (
        "Denied" if subject.state == "output-denied" else "Output"
    )
    text = output_text(result)
    if text is None:
        value = Value("output", lambda: as_json(result), ".json")
        rows = STRING_ROWS if limit is not None else None
        tree = Tree(subject.root("$.output", result), name="$.output", rows=rows)
        blocks += section(name, _tree_facts(result), tree, value=value)
    else:
        paint = plain("muted") if said else paint_output if subject.failed else plain()
        room = None if limit is None else max(LEAST_OUTPUT, limit - (6 if patch else 0))
        blocks += _text_section(name, text, subject, room, width, paint)
    return [*blocks, Fixed(lambda width: _media_lines(result, width)), *_attached(subject)]


def _words_in(result: object, subject: Subject) -> str:
    """Return a person's words in a call's result: a refusal, a comment, answers."""
    if subject.call is not None and subject.call.answers:
        return subject.call.answers
    if not isinstance(result, str):
        return ""
    return reply_in(result, succeeded=subject.state == "output-available").words


def _diff_lines(subject: Subject) -> list[DiffLine]:
    if subject.call is None or subject.call.kind != "diff":
        return []
    return list(subject.call.body)


def _diff_section(lines: list[DiffLine], subject: Subject, limit: int | None) -> list[Block]:
    value = Value("diff", lambda: as_text(lines), ".diff")
    plus, minus = subject.call.changed if subject.call is not None else (0, 0)
    body = changes(lines, value, "diff", None if "diff" in subject.opened else limit)
    return section("Diff", [f"+{plus} -{minus}"], body, value=value, fold="diff")


def _text_section(
    title: str, text: str, subject: Subject, limit: int | None, width: int, paint: Painter
) -> list[Block]:
    key = "output"
    value = Value(key, lambda: text)
    lines = text.count("\n") + (0 if text.endswith("\n") else 1) if text else 0
    facts = [count_of(lines, "line"), size(len(text.encode("utf-8", "surrogatepass")))]
    if subject.data.get("preliminary"):
        facts.append("not final")
    body = Text("empty", value=value, paint=plain("faint italic")) if not text.strip() else Text(
        shrink_rulers(without_colour(text), width), value=value, paint=paint,
        limit=None if key in subject.opened else limit, fold=key,
    )
    return section(title, facts, body, value=value, fold=key)


def _no_output(subject: Subject) -> list[Block]:
    if subject.state == "output-denied":
        why = "the call was denied"
    elif subject.call is not None and subject.call.status == "running":
        why = "none yet, the call runs"
    elif subject.state in ("input-available", "input-streaming", "approval-requested"):
        why = "no result yet, or it was stopped"
    else:
        why = "none"
    body = Text(why, paint=plain("faint italic"))
    return [*section("Output", [], body), *_attached(subject)]


def _tree_facts(result: object) -> list[str]:
    if isinstance(result, dict):
        return [count_of(len(result), "key")]
    return [count_of(len(result), "item")] if isinstance(result, list) else []


def _media_lines(result: object, width: int) -> list[Line]:
    lines = [
        Line(cut((("▪ ", "fork"), (one_line(media), "text"), (f"  {size(count)}", "faint")), width))
        for media, count in media_of(result)
    ]
    return [*lines, BLANK] if lines else []


def _attached(subject: Subject) -> list[Block]:
    def build(width: int) -> list[Line]:
        lines = []
        for name, (media, count) in subject.detail.attachments.items():
            if name in subject.loaded:
                runs: list[Run] = [("whole output, from ", "faint"), (one_line(name), "muted")]
                lines.append(Line(cut(runs, width)))
                continue
            runs = [
                ("↓ ", "user"), (one_line(name), "user underline"),
                (f"  {one_line(media)}  {size(count)}  enter loads it", "faint"),
            ]
            lines.append(Line(cut(runs, width), link=Link("attachment", name)))
        return [*lines, BLANK] if lines else []

    return [Fixed(build)]


def _damaged_blocks(text: str) -> list[Block]:
    """Show a part that is not a JSON object, or is nested too deep, as it is stored."""
    value = Value("damaged part", lambda: text)
    facts = ["damaged", count_of(len(text), "character")]
    top = Fixed(lambda width: [heading("Content", facts, width, value=value)])
    return [top, Text(text, value=value, limit=200, fold="damaged")]


def _text_blocks(subject: Subject) -> list[Block]:
    text = subject.data.get("text")
    if isinstance(text, str):
        lines = text.count("\n") + 1 if text else 0
        facts = [count_of(lines, "line"), count_of(len(text), "character")]
        value = Value("text", lambda: text, ".md")
        ink = "muted italic" if subject.type == "reasoning" else "text"
        title = "Thought" if subject.type == "reasoning" else "Text"
        top = Fixed(lambda width: [heading(title, facts, width, value=value)])
        return [top, prose(text, value, ink)]
    shown = {key: item for key, item in subject.data.items() if key != "type"}
    top = Fixed(lambda width: [heading("Content", [subject.type], width)])
    return [top, Tree(subject.root("$!", shown or None))]


# What was spent


def turn_lines(subject: Subject, width: int) -> list[Line]:
    """Return what the turn around the part spent."""
    turn = subject.detail.turn
    if turn is None or not turn.total:
        return []
    noun = count_of(subject.detail.turn_messages, "model call")
    lines = [heading("Turn", [noun], width), *spent_lines(turn, width), BLANK]
    return lines


def session_lines(subject: Subject, width: int) -> list[Line]:
    """Return the session's tokens as one bar a bucket."""
    spent = subject.detail.session
    if not spent.total:
        return []
    facts = [f"{tokens(spent.total)} tokens"]
    if cost := cost_words(spent):
        facts.append(cost)
    return [heading("Session", facts, width), *bar_lines(spent, width)]


# The output as text, and what is beside it


def paint_output(line: str) -> str:
    """Return the ink of a line of a failed program's output: what went wrong, and where."""
    if _ERROR_LINE.search(line):
        return "error"
    return "user" if _PLACE.match(line.strip()) else "text"


def shrink_rulers(text: str, width: int) -> str:
    """Shorten the rulers (``====``) of lines that are too wide, so that they need no second row.

    Args:
        text: A program's output.
        width: Cells of a line.
    """
    if len(text) > LONGEST_SHRUNK or not _RULER.search(text):
        return text
    return "\n".join(
        _shrunk(line, width) if len(line) > width else line for line in text.split("\n")
    )


def _shrunk(line: str, width: int) -> str:
    rulers = list(_RULER.finditer(line))
    excess = len(line) - width
    if not rulers:
        return line
    spare = sum(len(ruler[0]) - 3 for ruler in rulers)
    if spare < excess:
        return line
    out, at = [], 0
    for number, ruler in enumerate(rulers):
        take = min(len(ruler[0]) - 3, -(-excess // (len(rulers) - number)))
        excess -= take
        out += [line[at : ruler.start()], ruler[0][: len(ruler[0]) - take]]
        at = ruler.end()
    return "".join([*out, line[at:]])


def output_text(output: Any) -> str | None:
    """Return an output as the text that it mostly is; None when it is data.

    A list of content blocks gives the text of its text blocks; an object that holds just
    one text gives that.
    """
    if isinstance(output, str):
        return output
    if isinstance(output, list) and output:
        texts = [
            block["text"] for block in output
            if isinstance(block, dict) and isinstance(block.get("text"), str)
        ]
        return "\n".join(texts) if texts else None
    if isinstance(output, dict):
        texts = [output[key] for key in TEXT_KEYS if isinstance(output.get(key), str)]
        return texts[0] if len(texts) == 1 and len(output) == 1 else None
    return None


def media_of(output: Any) -> list[tuple[str, int]]:
    """Return the images and documents among an output's blocks: media type, bytes."""
    found = []
    for block in output if isinstance(output, list) else ():
        if not isinstance(block, dict) or block.get("type") in (None, "text"):
            continue
        source = block.get("source")
        source = source if isinstance(source, dict) else block
        data = source.get("data") or source.get("url") or ""
        media = source.get("media_type") or source.get("mediaType") or block["type"]
        found.append((str(media), len(data) * 3 // 4 if isinstance(data, str) else 0))
    return found


def result_of(subject: Subject) -> Any:
    """Return a call's output, its error text, or why it was denied.

    An attachment that was loaded wins.
    """
    name = subject.extras.get("attachment")
    if isinstance(name, str) and name in subject.loaded:
        return subject.loaded[name].decode("utf-8", "replace")
    if subject.data.get("errorText") is not None:
        return subject.data["errorText"]
    if subject.data.get("output") is not None:
        return subject.data["output"]
    approval = subject.data.get("approval")
    reason = approval.get("reason") if isinstance(approval, dict) else None
    return reason if isinstance(reason, str) and reason.strip() else None
