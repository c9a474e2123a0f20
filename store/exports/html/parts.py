"""The parts of a message as HTML, in the words and the order of the transcript."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from store.conversation.calls import Call, describe, ended_in
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
from store.conversation.endings import ending_of
from store.conversation.readable import media_line, output_text, readable, strip_tags
from store.exports.html.images import Pictures, blocks_in
from store.exports.html.markup import link, linked, shown
from store.exports.html.prose import code, prose
from store.exports.reading import Row
from store.rows import is_tool_type
from store.text import figures
from store.text.diffs import DiffLine, tally
from store.text.neutral import neutral_line, without_colour
from store.text.stored_json import as_dict, as_list, readable_json

MOST_LINES = 1_000
"""Lines of one output that the page holds: the first and the last of them."""
MOST_CHARACTERS = 100_000
_FIRST_WORDS = 300
"""Characters of a folded text beside its fold; the style cuts them to one line."""
_SHELL_LANGUAGES = {"bash": "bash", "shell": "bash", "exec_command": "bash"}
_GLYPHS = {"ok": "✔", "running": "○", "pending": "○", "ended": "○", "waiting": "◐"}
_TODO = {"completed": ("✔", "done"), "in_progress": ("◐", "now"), "cancelled": ("✗", "dropped")}
_SIGNS = {"+": "add", "-": "del", " ": "same"}
_TAGS = re.compile(r"""</?[a-z][a-z_-]*(?: [a-z_-]+="[^"<>]*")*>""")

Children = Mapping[tuple[str, str], str]
"""Anchors of sessions in the page, by the parent's id and the tool call that started them."""


class Parts:
    """Writes the parts of one session."""

    def __init__(
        self, session_id: str, root: str | None, pictures: Pictures, children: Children
    ) -> None:
        """Prepare for a session.

        Args:
            session_id: Its id.
            root: Its workspace; paths below it are shown from there.
            pictures: Takes its pictures.
            children: The sessions in the page that other sessions started.
        """
        self._session_id, self._root = session_id, root
        self._pictures, self._children = pictures, children

    def html(self, row: Row, *, markdown: bool) -> Iterator[str]:
        """Yield a part.

        Args:
            row: The part.
            markdown: Whether its text is Markdown, as that of answers is.
        """
        data = row["data"]
        if not isinstance(data, dict):
            yield _part("error", _fold("damaged", _pre(str(data)), beside=str(data)))
            return
        kind = str(data.get("type", row["type"]))
        if kind == "text":
            yield _text(data, markdown)
        elif kind == "reasoning":
            yield _reasoning(data)
        elif kind == "step-start":
            return
        elif is_tool_type(kind):
            yield self._tool(data, (row["created_at"], row["updated_at"]))
        elif kind in ("file", "reasoning-file"):
            yield self._file(data)
        elif kind == "data-patch":
            yield self._patch(data)
        else:
            maker, words = _MAKERS.get(kind), words_of(kind, data)
            if maker is not None:
                yield maker(data)
            else:
                yield _unknown(kind, data) if words is None else _named(*words)

    def _tool(self, data: dict[str, Any], times: tuple[int, int]) -> str:
        call = describe(data, self._root, times)
        bad = call.status in ("failed", "denied", "interrupted")
        if call.status == "pending":
            call.milliseconds = None
        body = "".join((_input(call, data), _body(call), _result(call)))
        pictures = "".join(self._picture(block) for block in blocks_in(data.get("output")))
        summary = _summary(call)
        child = self._children.get((self._session_id, call.call_id))
        if child is not None:
            summary += f'<a class="child" href="#{child}">opens ↳</a>'
        opened = call.status == "failed" or call.kind in ("diff", "todo") or call.lead_lines >= 6
        reply = f'<div class="reply"><b>You</b> {linked(call.reply)}</div>' if call.reply else ""
        inner = f"<summary>{summary}</summary>{body}" if body else f"<summary>{summary}</summary>"
        is_open = " open" if opened and body else "" if body else ' class="empty"'
        return _part("error" if bad else "tool",
                     f"<details{is_open}>{inner}</details>{reply}{pictures}", "call")

    def _picture(self, block: Mapping[str, Any]) -> str:
        picture = self._pictures.take(block)
        words = shown(media_line(dict(block)))
        if picture is None:
            return f'<p class="file"><b>image</b> {words}, left out</p>'
        return (
            f'<figure><img src="{picture.address}" width="{picture.width}"'
            f' height="{picture.height}" alt="{words}" loading="lazy" decoding="async">'
            f"<figcaption>{words}</figcaption></figure>"
        )

    def _file(self, data: dict[str, Any]) -> str:
        if str(data.get("mediaType") or "").startswith("image"):
            return _part("user", self._picture(data))
        return _part("user", f'<p class="file"><b>file</b> {shown(media_line(data))}</p>')

    def _patch(self, data: Mapping[str, Any]) -> str:
        names, lines = patch_of(data, self._root)
        if not lines:
            return _named("files changed", names)
        plus, minus = tally(lines)
        head = (f'<b>patch</b> <span class="what">{shown(names)}</span>'
                f'<span class="ok">+{plus}</span> <span class="bad">-{minus}</span>')
        return _part("tool", f"<details open><summary>{head}</summary>"
                             f"{_first_of(_diff(lines), 12)}</details>", "call")


# Pieces


def _part(bar: str, inner: str, kind: str = "") -> str:
    return f'<div class="p {bar}{" " + kind if kind else ""}">{inner}</div>\n'


def _fold(name: str, inner: str, *, beside: str = "", facts: str = "", opened: bool = False) -> str:
    """Return a fold with a muted name, the first words of what it holds, and facts.

    Args:
        name: HTML-free text.
        inner: HTML.
        beside: Text whose beginning is shown while it is folded.
        facts: Text at the right.
        opened: Whether it is open at first.
    """
    words = neutral_line(_TAGS.sub(" ", beside[:4_000]), 4_000)[:_FIRST_WORDS]
    first = f'<span class="first">{shown(words)}</span>' if words else ""
    right = f'<span class="facts">{shown(facts)}</span>' if facts else ""
    return (f'<details{" open" if opened else ""}><summary><span class="name">{shown(name)}</span>'
            f"{first}{right}</summary>{inner}</details>")


def _rest(lines: Sequence[str], word: str) -> str:
    count = figures.count_of(len(lines), f"{word} line")
    joined = "\n".join(lines)
    return f'<details class="rest"><summary>… {count}</summary><pre>{joined}</pre></details>'


def _first_of(lines: Sequence[str], lead: int, *, from_end: bool = False) -> str:
    """Return lines of HTML with all but some of them folded.

    Args:
        lines: The lines.
        lead: How many are shown; 0 shows all.
        from_end: Whether the last ones are shown.
    """
    if not lead or len(lines) <= lead + 1:
        return "<pre>" + "\n".join(lines) + "</pre>"
    if from_end:
        return _rest(lines[:-lead], "earlier") + "<pre>" + "\n".join(lines[-lead:]) + "</pre>"
    return "<pre>" + "\n".join(lines[:lead]) + "</pre>" + _rest(lines[lead:], "more")


def _lines(text: str) -> list[str]:
    """Return the lines of a text as HTML; of a very long one the first and the last."""
    left_out = ""
    if len(text) > MOST_CHARACTERS:
        head, tail = text[: MOST_CHARACTERS * 3 // 4], text[-MOST_CHARACTERS // 4 :]
        left_out = f"{len(text) - len(head) - len(tail):,} characters"
        found = [*head.split("\n"), "", *tail.split("\n")]
        gap = head.count("\n") + 1
    else:
        found, gap = text.split("\n"), 0
    if len(found) > MOST_LINES:
        keep = MOST_LINES * 3 // 4
        left_out = left_out or f"{len(found) - MOST_LINES:,} lines"
        found, gap = [*found[:keep], "", *found[-(MOST_LINES - keep) :]], keep
    lines = [shown(line) for line in found]
    if left_out:
        lines[gap] = f'<span class="cut">… {left_out} left out</span>'
    return lines


def _pre(text: str, lead: int = 0, *, from_end: bool = False) -> str:
    return _first_of(_lines(text), lead, from_end=from_end)


def _diff(lines: Sequence[DiffLine]) -> list[str]:
    digits = max((len(str(line.number)) for line in lines if line.number is not None), default=0)
    made = []
    for line in lines[:MOST_LINES]:
        if line.sign == "@":
            made.append(f'<span class="gap">{" " * digits}… {shown(line.text)}</span>')
            continue
        number = "" if line.number is None else str(line.number)
        edge = f"{number:>{digits}} {line.sign}" if digits else line.sign
        made.append(f'<span class="{_SIGNS[line.sign]}"><i>{edge} </i>{shown(line.text)}</span>')
    if len(lines) > MOST_LINES:
        made.append(f'<span class="cut">… {len(lines) - MOST_LINES:,} lines left out</span>')
    return made


# Text, reasoning and calls


def _text(data: Mapping[str, Any], markdown: bool) -> str:
    text = str(data.get("text", ""))
    if not text.strip():
        return ""
    if markdown:
        return _part("assistant", f'<div class="prose">{prose(text)}</div>')
    return _part("user", f'<div class="prose plain">{linked(text.strip(chr(10)))}</div>')


def _reasoning(data: Mapping[str, Any]) -> str:
    text = str(data.get("text", "")).strip()
    took = as_dict(as_dict(data.get("providerMetadata")).get("backscroll")).get("duration_ms")
    name = "thought"
    if isinstance(took, int | float) and took > 500:
        name += f" for {figures.duration(took)}"
    if not text:
        return _part("reasoning", f'<p class="name">{name}, not recorded</p>')
    inner = f'<div class="prose">{prose(text)}</div>'
    return _part("reasoning", _fold(name, inner, beside=text.replace("**", "").lstrip("#* ")))


def _summary(call: Call) -> str:
    word = f" {shown(call.word)}" if call.word else ""
    took = ended_in(call) if call.status not in ("denied", "waiting") else ""
    size = call.size if call.status in ("ok", "ended") else ""
    facts = "".join(f"<span>{shown(fact)}</span>" for fact in (took, size) if fact)
    marks = "".join(f'<span class="{_MARKS.get(ink, "x")}">{shown(text)}</span> '
                    for text, ink in call.marks)
    return (
        f'<b>{shown(call.name)}</b> <span class="what">{shown(call.what)}</span>'
        f'<span class="marks">{marks}</span><span class="facts">'
        f'<span class="status {call.status}">{_GLYPHS.get(call.status, "✗")}{word}</span>{facts}'
        "</span>"
    )


_MARKS = {"ok": "ok", "error": "bad", "user": "f", "muted": "h"}


def _input(call: Call, data: Mapping[str, Any]) -> str:
    """Return what the call was given, where its line does not say all of it."""
    if call.kind in ("diff", "todo"):
        return ""
    given = data.get("input") if data.get("input") is not None else data.get("rawInput")
    arguments = as_dict(given)
    command = arguments.get("command", arguments.get("cmd"))
    if isinstance(command, str) and "\n" in command.strip():
        colour = code(command.strip()[:MOST_CHARACTERS], "bash")
        return f'<pre class="input">{colour}</pre>'
    if len(arguments) < 2 or isinstance(command, str):
        return ""
    return f'<div class="input">{_pre(readable(arguments), 12)}</div>'


def _body(call: Call) -> str:
    if not call.body:
        return ""
    if call.kind == "diff":
        return f'<div class="diff">{_first_of(_diff(call.body), call.lead_lines)}</div>'
    if call.kind == "todo":
        return _todo_list(call.body)
    if call.kind == "markdown":
        return f'<div class="prose">{prose(str(call.body))}</div>'
    failed = call.status == "failed"
    return f'<div class="output">{_pre(str(call.body), 8 if failed else 0, from_end=failed)}</div>'


def _result(call: Call) -> str:
    if not call.result or (call.kind in ("diff", "todo") and not call.result_matters):
        return ""
    failed = call.status == "failed"
    return f'<div class="output">{_pre(call.result, 4, from_end=failed)}</div>'


def _todo_list(items: Sequence[tuple[str, str]]) -> str:
    lines = []
    for state, text in items:
        glyph, name = _TODO.get(state, ("○", "open"))
        lines.append(f'<li class="{name}"><span>{glyph}</span> {shown(text)}</li>')
    return f'<ul class="todo">{"".join(lines)}</ul>'


# Data parts


def _named(name: str, text: str) -> str:
    if not text.strip():
        return _part("aside", f'<p class="name">{shown(name)}</p>')
    return _part("aside", _fold(name, _pre(text), beside=text))


def _unknown(kind: str, data: Mapping[str, Any]) -> str:
    text = readable_json({name: value for name, value in data.items() if name != "type"})
    facts = figures.count_of(text.count("\n") + 1, "line")
    return _part("aside", _fold(kind, _pre(text), beside="unknown part", facts=facts))


def _source(data: Mapping[str, Any]) -> str:
    address = str(data.get("url") or "")
    title = str(data.get("title") or data.get("filename") or address)
    beside = f' <span class="x">{shown(address)}</span>' if address != title else ""
    return _part("assistant", f'<p class="file"><b>source</b> {link(address, shown(title))}'
                              f"{beside}</p>")


def _error(data: Mapping[str, Any]) -> str:
    name, text = error_of("data-error", data)
    beside = f" {shown(neutral_line(name))}" if name else ""
    return _part("error", f'<p class="failed">✗ <b>error</b>{beside}</p>{_pre(text.strip())}')


def _retry(data: Mapping[str, Any]) -> str:
    attempt, reason, facts = retry_of(data)
    return _part("error", f'<p class="failed">✗ <b>retry</b> {shown(attempt)}'
                          f' <span class="h">{shown(neutral_line(reason))}</span>'
                          f'<span class="facts">{shown("  ".join(facts))}</span></p>')


def _compaction(data: Mapping[str, Any]) -> str:
    size, reason, summary = compaction_of(data)
    words = " ".join(filter(None, ("compacted", size, reason)))
    if not summary:
        return f'<p class="divider"><span>{shown(words)}</span></p>\n'
    inner = f'<div class="prose">{prose(summary)}</div>'
    return _part("reasoning", _fold(words, inner, beside=summary), "compaction")


def _event(data: Mapping[str, Any]) -> str:
    return _named(*event_of(str(data.get("type", "")), data))


def _steering(data: Mapping[str, Any]) -> str:
    pieces = ['<p class="head"><b>You</b> <span class="x">sent while it worked</span></p>']
    for part in as_list(data.get("parts")):
        given = as_dict(part)
        if given.get("type") == "text" and isinstance(given.get("text"), str):
            pieces.append(f'<div class="prose plain">{linked(given["text"].strip(chr(10)))}</div>')
        elif given:
            pieces.append(f'<p class="file">{shown(media_line(given))}</p>')
    return _part("user", "".join(pieces))


def _todo(data: Mapping[str, Any]) -> str:
    items = todo_of(data)
    if not items:
        return _event(data)
    done = sum(state == "completed" for state, _text in items)
    return _part("tool", f'<p class="head"><b>todo</b> {done} of {len(items)} done</p>'
                         f"{_todo_list(items)}")


def _plan(data: Mapping[str, Any]) -> str:
    content = as_dict(data.get("data"))
    text = content.get("plan") or content.get("text")
    if not isinstance(text, str):
        return _todo(data)
    return _part("tool", f'<p class="head"><b>plan</b></p><div class="prose">{prose(text)}</div>')


_MAKERS: dict[str, Callable[[Mapping[str, Any]], str]] = {
    "steering-message": _steering, "custom": lambda data: _named(*custom_of(data)),
    "source-url": _source,
    "source-document": _source, "data-error": _error, "data-retry": _retry,
    "data-compaction": _compaction, "data-event": _event, "data-todo": _todo, "data-plan": _plan,
}  # fmt: skip


def command(text: str, details: Mapping[str, Any]) -> str:
    """Return a slash command or shell line that a person typed, or what it printed.

    Args:
        text: The text of the part.
        details: Its message's metadata.
    """
    given, shell = as_dict(details.get("command")), details.get("shell")
    if given.get("name"):
        return _part("user", f'<p class="head"><b>{shown(neutral_line(str(given["name"])))}</b>'
                             f" {shown(neutral_line(str(given.get('args') or '')))}</p>")
    if isinstance(shell, str):
        return _part("user", f'<p class="head"><b>!</b> {shown(neutral_line(shell))}</p>')
    text = strip_tags(text)
    if text.count("\n") < 4 and len(text) < 400:
        return _part("user", _pre(text)) if text.strip() else ""
    return _part("user", _fold("printed", _pre(text), beside=text))


def aside(text: str, name: str, facts: str) -> str:
    """Return words that a program put in, folded.

    Args:
        text: The words.
        name: What they are.
        facts: What is shown at the right.
    """
    return _part("aside", _fold(name, _pre(without_colour(text)), beside=text, facts=facts))


def ending(metadata: Mapping[str, Any], last_kind: str) -> str:
    """Return how a message ended where it did not end well; else nothing.

    Args:
        metadata: The message's.
        last_kind: The type of its last part.
    """
    details = as_dict(metadata.get("backscroll"))
    made = ""
    error = details.get("error")
    if error and last_kind != "data-error":
        text = output_text(as_dict(error).get("message") or error)
        made += _part("error", f'<p class="failed">✗ {linked(text.strip())}</p>')
    ended = ending_of(metadata)
    if ended is not None:
        words = f"{ended.glyph} {shown(neutral_line(ended.words))}</p>"
        made += (_part("error", f'<p class="failed">{words}') if ended.stopped
                 else _part("aside", f"<p>{words}"))  # fmt: skip
    return made
