"""``--to markdown``: a session as a document, readable as plain text and rendered."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any

from store.conversation.endings import ending_of
from store.conversation.speakers import speaker_of
from store.exports.facts import Facts, covered, facts_of
from store.exports.reading import MessageReading, Row, SessionReading
from store.exports.tool_line import reply_and_output, tool_name, tool_state, tool_subject
from store.exports.typed import typed
from store.rows import is_tool_type
from store.text.exact_json import encode
from store.text.neutral import neutral, neutral_line

OUTPUT_LINES = 400
"""Lines of an output that the document holds."""
UNFOLDED_LINES = 12
"""Outputs with more lines are folded, on GitHub and wherever ``<details>`` works."""
_BACKTICKS = re.compile("`+")
_FENCE = re.compile(r"^ {0,3}(`{3,}|~{3,})([^\n]*)$", re.M)


def write_markdown(reading: SessionReading) -> Iterator[str]:
    """Yield the document in pieces, message by message."""
    reading = typed(reading, damaged=True)
    yield from _head(facts_of(reading))
    for item in reading.messages:
        if item.is_said:
            yield from _message(item, reading.session["workspace_root"])
    if reading.queued_left_out:
        yield f"\n*{reading.queued_left_out}.*\n"
    if reading.hidden_left_out:
        yield f"\n*{reading.hidden_left_out} hidden messages are omitted.*\n"


def _head(facts: Facts) -> Iterator[str]:
    """Yield the front matter, whose texts are quoted, and the title."""
    title = neutral_line(facts.title)
    entries = (
        ("title", _quoted(title)), ("agent", _quoted(facts.agent)),
        ("model", _quoted(facts.model)), ("workspace", _quoted(facts.workspace)),
        ("branch", _quoted(facts.branch)), ("started", _moment(facts.started)),
        ("ended", _moment(facts.ended)), ("turns", str(facts.turns)),
        ("tokens", str(facts.spent.total or "")),
        ("cost_usd", "" if facts.spent.cost_usd is None else _dollars(facts.spent.cost_usd)),
        ("cost_is_estimate", "true" if facts.spent.is_estimate else ""),
        ("cost_covers", _quoted(covered(facts.spent))),
        ("session", _quoted(facts.session_id)),
    )  # fmt: skip
    lines = [f"{name}: {value}\n" for name, value in entries if value]
    yield f"---\n{''.join(lines)}---\n\n# {title}\n"


def _quoted(text: str) -> str:
    """Return text as a quoted scalar, which is JSON's and YAML's alike; nothing for no text."""
    line = neutral_line(text)
    return json.dumps(line, ensure_ascii=False) if line else ""


def _dollars(amount: float) -> str:
    return f"{amount:.6f}".rstrip("0").rstrip(".")


def _moment(milliseconds: int) -> str:
    return datetime.fromtimestamp(milliseconds / 1000).astimezone().isoformat(timespec="seconds")


def _message(item: MessageReading, workspace: str | None) -> Iterator[str]:
    row = item.message
    metadata = row["metadata"] if isinstance(row["metadata"], dict) else {}
    who = _line(speaker_of(row["role"], metadata))
    origin = metadata.get("origin")
    if row["role"] == "user" and isinstance(origin, str) and origin != "human":
        who = _line(origin).capitalize()
    mark = " (hidden)" if row.get("hidden_at") or metadata.get("hidden_at") else ""
    yield f"\n## {who} · {_time(row['created_at'])}{mark}\n"
    for part in item.parts:
        yield from _part(part, workspace)
    ended = ending_of(metadata)
    if ended is not None:
        yield f"\n*{ended.glyph} {_line(ended.words)}*\n"


def _part(row: Row, workspace: str | None) -> Iterator[str]:
    data = row["data"]
    if not isinstance(data, dict):
        yield _fenced(str(data))
        return
    kind = str(data.get("type", row["type"]))
    if kind == "text":
        yield f"\n{_closed(neutral(str(data.get('text', ''))).strip())}\n"
    elif kind == "reasoning":
        quoted = neutral(str(data.get("text", ""))).strip().replace("\n", "\n> ")
        if quoted:
            yield f"\n> *Reasoning:* {quoted}\n"
    elif kind == "step-start":
        return
    elif is_tool_type(kind):
        yield from _tool(data, workspace)
    else:
        yield from _other(kind, data)


def _tool(data: Mapping[str, Any], workspace: str | None) -> Iterator[str]:
    subject = _code(tool_subject(data, workspace))
    yield f"\n**{_line(tool_name(data))}** {subject} ({_line(tool_state(data))})\n"
    words, output = reply_and_output(data)
    if words:
        quoted = neutral(words).replace("\n", "\n> ")
        yield f"\n> **You:** {quoted}\n"
    if output:
        yield from _output(output.split("\n"))


def _output(lines: Sequence[str]) -> Iterator[str]:
    """Yield an output: folded where it is long, and cut where it is very long."""
    fenced = _fenced("\n".join(lines[:OUTPUT_LINES]))
    if len(lines) > OUTPUT_LINES:
        fenced += f"\n*{len(lines) - OUTPUT_LINES} more lines.*\n"
    if len(lines) <= UNFOLDED_LINES:
        yield fenced
    else:
        yield f"\n<details>\n<summary>{len(lines):,} lines</summary>\n{fenced}\n</details>\n"


def _other(kind: str, data: Mapping[str, Any]) -> Iterator[str]:
    content = data.get("data")
    if kind == "data-compaction" and isinstance(content, dict):
        yield "\n---\n\n*The conversation was compacted here. Its summary:*\n"
        yield f"\n{_closed(neutral(str(content.get('summary', ''))))}\n\n---\n"
    elif kind == "steering-message":
        yield "\n**You**, sent while it worked:\n"
        for part in data.get("parts") or ():
            if isinstance(part, dict) and isinstance(part.get("text"), str):
                quoted = neutral(part["text"]).strip().replace("\n", "\n> ")
                yield f"\n> {quoted}\n"
    elif kind in ("file", "reasoning-file"):
        name = data.get("filename") or "file"
        yield f"\n*{_line(name)}, {_line(data.get('mediaType', 'unknown type'))}*\n"
    elif kind == "data-event" and isinstance(content, dict) and _is_told(content):
        yield f"\n*{_line(content['name'])}*\n"
        yield _fenced(content["details"])
    else:
        yield f"\n**{_line(kind)}**\n"
        yield _fenced(encode(content if content is not None else dict(data)), "json")


def _is_told(event: Mapping[str, Any]) -> bool:
    """Return whether an event is a named text, such as an IDE's context for a prompt."""
    return event.keys() == {"name", "details"} and isinstance(event["details"], str)


def _time(milliseconds: Any) -> str:
    if not isinstance(milliseconds, int | float):
        return ""
    try:
        moment = datetime.fromtimestamp(milliseconds / 1000).astimezone()
    except (OverflowError, ValueError, OSError):
        return str(milliseconds)
    return moment.strftime("%Y-%m-%d %H:%M:%S")


def _line(value: Any) -> str:
    return " ".join(neutral(str(value)).split())


def _closed(text: str) -> str:
    """Return Markdown with the fence closed that it leaves open: it would hide what follows."""
    opened = ""
    for found in _FENCE.finditer(text):
        fence, words = found[1], found[2].strip()
        if not opened:
            opened = fence if fence[0] == "~" or "`" not in words else ""
        elif fence[0] == opened[0] and len(fence) >= len(opened) and not words:
            opened = ""
    return f"{text}\n{opened}" if opened else text


def _code(text: str) -> str:
    text = _line(text)
    if not text:
        return ""
    ticks = "`" * (_longest_run(text) + 1)
    space = " " if text.startswith("`") or text.endswith("`") else ""
    return f"{ticks}{space}{text}{space}{ticks}"


def _fenced(text: str, language: str = "") -> str:
    ticks = "`" * max(3, _longest_run(text) + 1)
    return f"\n{ticks}{language}\n{neutral(text)}\n{ticks}\n"


def _longest_run(text: str) -> int:
    return max((len(run) for run in _BACKTICKS.findall(text)), default=0)
