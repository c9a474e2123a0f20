"""The content of an answer to text, thoughts and tool calls, which have no records of their own.

Source: the gptme format page, section "Tool calls". A fenced block whose first word is a tool's
name was run only where a result follows; else it is code.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, NamedTuple

from store.sources.base.json_values import LineError, parse_json

TOOLS = frozenset({
    "append", "browser", "chats", "choice", "complete", "computer", "elicit", "form", "gh",
    "ipython", "lessons", "mcp", "morph", "patch", "patch_many", "python", "rag", "read",
    "restart", "save", "screenshot", "shell", "signal", "subagent", "tmux", "todo", "tts",
    "vision", "youtube",
})  # fmt: skip
_FENCE = re.compile(r"^(`{3,})([^\s`]*)([^\n`]*)\n", re.M)
_LINE = re.compile(r"^@([A-Za-z_][\w-]{0,63})\(([^()\n]{0,200})\): ?(?=[{\[])", re.M)
_XML = re.compile(r"<tool-use>\s*<([A-Za-z_][\w-]{0,63})((?:\s[^<>]*)?)>(.*?)</\1>\s*</tool-use>",
                  re.S)  # fmt: skip
_THOUGHT = re.compile(r"<(think|thinking)>(.*?)(?:</\1>|\Z)\n?", re.S)
_FILES = frozenset({"save", "append", "patch", "morph", "read"})
_COMMANDS = frozenset({"shell", "tmux", "gh"})


class Call(NamedTuple):
    """A tool call in an answer.

    Attributes:
        id: Its id; None where the format has none.
        start: Where it begins in the content; ``end`` is where it ends.
        stated: Whether it is a call in any case, and not perhaps code.
    """

    name: str
    id: str | None
    input: Any
    start: int
    end: int
    stated: bool


def thoughts_of(content: str) -> tuple[list[str], str]:
    """Return the thoughts in an answer, and the rest of it."""
    return [found[2].strip() for found in _THOUGHT.finditer(content)], _THOUGHT.sub("", content)


def calls_of(content: str) -> list[Call]:
    """Return the calls that an answer may hold, in order."""
    found = [*_fenced(content), *_lines(content), *_xml(content)]
    calls: list[Call] = []
    for call in sorted(found, key=lambda each: each.start):
        if not calls or call.start >= calls[-1].end:
            calls.append(call)
    return calls


def _fenced(content: str) -> Iterator[Call]:
    at = 0
    while opened := _FENCE.search(content, at):
        closed = re.compile(rf"^{opened[1]}`*[ \t]*$", re.M).search(content, opened.end())
        end = closed.end() if closed else len(content)
        body = content[opened.end() : closed.start() if closed else end]
        name = opened[2]
        if name in TOOLS:
            yield Call(name, None, _input(name, opened[3].strip(), body), opened.start(), end,
                       stated=False)  # fmt: skip
        at = max(end, opened.end())


def _lines(content: str) -> Iterator[Call]:
    for opened in _LINE.finditer(content):
        end = _end_of_json(content, opened.end())
        try:
            given = parse_json(content[opened.end() : end].encode("utf-8", "surrogatepass"))[0]
        except LineError:
            given = {"text": content[opened.end() : end]}
        yield Call(opened[1], opened[2] or None, given, opened.start(), end, stated=True)


def _end_of_json(content: str, start: int) -> int:
    """Return where a value ends that begins with a brace; the end where it is cut off."""
    depth, in_text, at = 0, False, start
    while at < len(content):
        mark = content[at]
        if in_text:
            at += mark == "\\"
            in_text = mark != '"'
        elif mark == '"':
            in_text = True
        elif mark in "{[":
            depth += 1
        elif mark in "}]":
            depth -= 1
            if not depth:
                return at + 1
        at += 1
    return len(content)


def _xml(content: str) -> Iterator[Call]:
    for found in _XML.finditer(content):
        words = re.search(r"args=(?:\"([^\"]*)\"|'([^']*)')", found[2])
        given = _input(found[1], (words[1] or words[2] or "") if words else "", found[3])
        yield Call(found[1], None, given, found.start(), found.end(), stated=True)


def _input(name: str, words: str, body: str) -> dict[str, Any]:
    body = body.removesuffix("\n")
    if name in _COMMANDS:
        return {"command": body}
    if name in _FILES:
        return {"path": words, ("patch" if name in ("patch", "morph") else "content"): body}
    return {"code": body, **({"args": words} if words else {})}
