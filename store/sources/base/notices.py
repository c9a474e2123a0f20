"""What programs and other agents told a session, as text with the point first.

They come as tagged blocks or JSON: notices of background tasks, messages of teammates,
injected context, reviews. Sources: the Claude Code and Codex format pages, and public
sessions that hold such messages.
"""

from __future__ import annotations

import html
import re
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

import orjson

from store.sources.base.drafts import PartDraft
from store.sources.base.requests import CONTEXT_TAGS
from store.sources.base.tagged_blocks import close_of
from store.sources.base.values import mapping, string

_BLOCK = re.compile(r"<([A-Za-z][\w-]*)((?:\s+[\w-]+=(?:\"[^\"]*\"|'[^']*'))*)\s*>")
_SPACE = re.compile(r"\s+")
_PREFACE = re.compile(
    r"\s*(?:[^<>\n]{1,200}:|# [^<>\n]{1,200}"
    r"|\[SYSTEM NOTIFICATION\b[^<>\n]{0,200}(?:\n[^<>\n]{0,400}){0,6})[ \t\r]*\n(?=\s{0,100}<)"
)
"""Such as ``Another Claude session sent a message:``, a heading, or the lines of a notice."""
_CONTEXT = re.compile(
    rf"{CONTEXT_TAGS}|hook_prompt|goal_context"
    r"|user_action|INSTRUCTIONS|turn_aborted|model_switch|collaboration_mode|skill"
    r"|skills_instructions|recommended_plugins"
)
_ATTRIBUTE = re.compile(r"([\w-]+)=(?:\"([^\"]*)\"|'([^']*)')")
_POINTS = (
    "summary", "message", "result", "results", "completed", "errored", "output", "event", "text",
    "content", "title", "subject", "description", "explanation", "overall_explanation", "reason",
    "failureReason", "body",
)
"""What says most, first found first; further ones follow it."""
_SAID_FIRST = ("summary",)
"""Attributes that hold the point of their block."""
_QUIET = ("color", "timestamp")
_MOST_BLOCKS = 200
_LONGEST_JSON = 1_000_000


def told(text: str) -> str:
    """Return a message of a program as text, its point first.

    Text that neither is JSON nor begins with tagged blocks (after a line that introduces
    them) stays as it is.
    """
    preface = _PREFACE.match(text)
    at = preface.end() if preface else 0
    lines: list[str] = []
    while len(lines) < _MOST_BLOCKS and (block := _BLOCK.match(text, _skip_space(text, at))):
        end = close_of(text, block[1], block.end())
        if end < 0:
            break
        lines.append(_block(block[2], text[block.end() : end]))
        at = end + len(block[1]) + len("</>")
    if not lines:
        found = _json(text)
        return text if found is None else "\n".join(_fields(found))
    rest = (text[at:].strip(), preface[0].strip() if preface else "")
    return "\n".join(filter(None, (*lines, *rest)))


def is_context(text: str) -> bool:
    """Return whether a text begins with a block that programs put into a session."""
    preface = _PREFACE.match(text)
    found = _BLOCK.match(text, _skip_space(text, preface.end() if preface else 0))
    return found is not None and _CONTEXT.fullmatch(found[1]) is not None


def _skip_space(text: str, at: int) -> int:
    found = _SPACE.match(text, at)
    return found.end() if found else at


def told_parts(parts: Sequence[PartDraft]) -> list[PartDraft]:
    """Return a message's parts with each text as ``told`` gives it."""
    return [
        replace(part, data={**part.data, "text": told(part.data["text"])})
        if part.type == "text" else part
        for part in parts
    ]


def review(text: str) -> str | None:
    """Return the findings of a code review as text; None for anything else."""
    found = _json(text)
    if not isinstance(found, dict) or not isinstance(found.get("findings"), list):
        return None
    if not found.keys() & {"overall_correctness", "overall_explanation"}:
        return None
    return review_text(found)


def review_text(found: dict[str, Any]) -> str:
    """Return a review's output as text: its verdict, then each finding."""
    verdict = (string(found.get("overall_explanation")), string(found.get("overall_correctness")))
    lines = [word for word in verdict if word]
    findings = found.get("findings")
    for finding in findings if isinstance(findings, list) else ():
        one = mapping(finding)
        place = _place(mapping(one.get("code_location")))
        head = string(one.get("title")) or "finding"
        lines += ["", f"- {head}{f' ({place})' if place else ''}"]
        body = string(one.get("body"))
        lines += [f"  {line}" for line in body.split("\n")] if body else []
    return "\n".join(lines)


def _place(location: dict[str, Any]) -> str:
    lines = mapping(location.get("line_range"))
    path = string(location.get("absolute_file_path")) or string(location.get("path")) or ""
    ends = [str(lines[key]) for key in ("start", "end") if type(lines.get(key)) is int]
    return ":".join(filter(None, (path, "-".join(dict.fromkeys(ends)))))


def _block(attributes: str, body: str) -> str:
    """Return one tagged block: what it says, then what else is known of it."""
    named = {
        found[1]: html.unescape(found[2] if found[2] is not None else found[3] or "")
        for found in _ATTRIBUTE.finditer(attributes)
    }
    inner = _children(body)
    data = None if inner else _json(body)
    if inner:
        said = _fields(inner)
    elif data is not None:
        said = _fields(_unescaped(data))
    else:
        said = [html.unescape(body).strip()]
    first = [named[key] for key in _SAID_FIRST if named.get(key)]
    rest = [
        f"{_words(key)}: {value}"
        for key, value in named.items()
        if value and key not in _QUIET and key not in _SAID_FIRST
    ]
    first = [line for line in first if line not in said[:1]]
    gap = [""] if rest and "" not in said else []
    return "\n".join((*first, *said, *gap, *rest)).strip()


def _unescaped(value: Any) -> Any:
    """Return JSON that was put into a tagged block with its texts as they were before."""
    if isinstance(value, str):
        return html.unescape(value)
    if isinstance(value, list):
        return [_unescaped(item) for item in value]
    if isinstance(value, dict):
        return {key: _unescaped(item) for key, item in value.items()}
    return value


def _children(body: str) -> dict[str, Any]:
    """Return the blocks that a body consists of, by name; none where it is text."""
    text = body.strip()
    found: dict[str, Any] = {}
    at = 0
    while block := _BLOCK.match(text, at):
        end = close_of(text, block[1], block.end())
        if end < 0 or len(found) >= _MOST_BLOCKS:
            return {}
        inside = text[block.end() : end]
        data = _json(inside)
        found[block[1]] = html.unescape(inside).strip() if data is None else _unescaped(data)
        at = end + len(block[1]) + len("</>")
        at += len(text[at:]) - len(text[at:].lstrip())
    if found and at < len(text):
        found[""] = html.unescape(text[at:]).strip()
    return found


def _json(text: str) -> dict[str, Any] | list[Any] | None:
    start = text.strip()
    if not start.startswith(("{", "[")) or len(start) > _LONGEST_JSON:
        return None
    try:
        found = orjson.loads(start)
    except orjson.JSONDecodeError:
        return None
    return found if isinstance(found, dict | list) else None


def _fields(value: object, depth: int = 0) -> list[str]:
    """Return a value as lines, what says most first."""
    if isinstance(value, list):
        return [line for item in value for line in _item(item, depth)]
    if not isinstance(value, dict):
        return [_plain(value)]
    if isinstance(value.get("findings"), list):
        return review_text(value).split("\n")
    points = [key for key in _POINTS if value.get(key)]
    lines = [line for key in points for line in _fields(value[key], depth + 1)]
    rest: list[str] = []
    for key, item in value.items():
        if key in points or item in (None, "", [], {}) or key in _QUIET:
            continue
        if not key or (key == "status" and isinstance(item, dict)):
            lines += _fields(item, depth + 1)
        elif isinstance(item, dict | list):
            rest += [f"{_words(key)}:", *(f"  {line}" for line in _fields(item, depth + 1))]
        else:
            rest.append(f"{_words(key)}: {_plain(item)}")
    return [*lines, *([""] if lines and rest and depth == 0 else []), *rest]


def _item(item: object, depth: int) -> Iterable[str]:
    first, *rest = _fields(item, depth + 1) or [""]
    return [f"- {first}", *(f"  {line}" for line in rest)]


def _plain(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _words(key: str) -> str:
    return key.replace("_", " ").replace("-", " ")
