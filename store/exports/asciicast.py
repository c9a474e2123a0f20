"""``--to asciicast``: a session as a recording of a terminal, in asciicast v2.

Prompts are typed, answers and calls appear at their times, and waits are shortened. All text of
the session is neutral: the only escape sequences are the colours that are set here.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from store.conversation.speakers import speaker_of
from store.exports.reading import MessageReading, Playing, Row, SessionReading
from store.exports.tool_line import (
    has_failed,
    reply_and_output,
    tool_extras,
    tool_name,
    tool_state,
    tool_subject,
)
from store.exports.typed import milliseconds, typed
from store.rows import is_tool_type
from store.text.exact_json import encode
from store.text.figures import duration
from store.text.neutral import neutral, neutral_line

THEME = {
    "fg": "#d5d9e0",
    "bg": "#14161b",
    "palette": (
        "#232834:#f7768e:#9ece6a:#e0af68:#7aa2f7:#a8a1e6:#73daca:#d5d9e0:"
        "#7b8597:#f7768e:#9ece6a:#e0af68:#7aa2f7:#bb9af7:#73daca:#d5d9e0"
    ),
}
"""The browser's dark theme, as the 16 colours of a terminal."""
_ROLES = {
    "user": "1;34", "assistant": "36", "tool": "33", "reasoning": "35", "ok": "32", "error": "31",
    "faint": "90", "text": "",
}  # fmt: skip
OUTPUT_LINES = 8
"""Of a tool's output; how many more there are is said."""
LONGEST_LINE = 400
"""Characters of a line of output."""
TYPED_S = 2.0
"""The most that typing a prompt takes."""
KEY_S, LINE_S = 0.04, 0.05
"""Seconds for a typed character, and for a line of an answer."""
WRITTEN_S = 3.0
"""The most that writing an answer takes."""
LATER_S = 60
"""A wait before a prompt from which its length is shown."""


def write_asciicast(reading: SessionReading) -> Iterator[str]:
    """Yield the recording line by line: the header, then the events in the order of time."""
    reading = typed(reading, damaged=True)
    cast = _Cast(reading.session, reading.playing)
    yield cast.header()
    for item in reading.messages:
        if item.is_said:
            cast.message(item)
            yield from cast.taken()
    if reading.queued_left_out:
        cast.line(f"{reading.queued_left_out}.", "faint")
    if reading.hidden_left_out:
        cast.line(f"{reading.hidden_left_out} hidden messages are omitted.", "faint")
    yield from cast.taken()


class _Cast:
    """Writes a recording.

    Attributes:
        played: Seconds into the recording, of the newest event.
        at: Epoch seconds at which the newest event happened.
    """

    def __init__(self, session: Row, playing: Playing) -> None:
        self.session = session
        self.playing = playing
        self.workspace = session["workspace_root"]
        self.played = 0.0
        self.at: float | None = None
        self._lines: list[str] = []

    def header(self) -> str:
        """Return the first line of the file."""
        metadata = self.session["metadata"]
        user = metadata.get("user")
        title = user.get("title") if isinstance(user, dict) else None
        title = title or metadata.get("title") or self.session["id"]
        return _json({
            "version": 2, "width": self.playing.columns, "height": self.playing.rows,
            "timestamp": self.session["created_at"] // 1000,
            "idle_time_limit": self.playing.longest_wait, "title": neutral_line(str(title)),
            "env": {"TERM": "xterm-256color"}, "theme": THEME,
        })  # fmt: skip

    def taken(self) -> list[str]:
        """Return the lines that were written since the last call."""
        lines, self._lines = self._lines, []
        return lines

    def message(self, item: MessageReading) -> None:
        """Write a message with its parts."""
        row = item.message
        metadata = row["metadata"] if isinstance(row["metadata"], dict) else {}
        at = milliseconds(row["created_at"]) / 1000
        role = "user" if row["role"] == "user" else "assistant"
        if role == "user":
            self._later(at)
        self._wait(at)
        who = neutral_line(speaker_of(row["role"], metadata))
        hidden = " (hidden)" if row.get("hidden_at") or metadata.get("hidden_at") else ""
        self.line("", "text")
        self.line(f"{who}{hidden}", role)
        for part in item.parts:
            self._part(part, role)

    def line(self, text: str, role: str) -> None:
        """Write text that ends its line.

        Args:
            text: Text of any origin.
            role: Its colour, a key of ``_ROLES``.
        """
        self._event(f"{_coloured(neutral(text), role)}\r\n")

    def _part(self, row: Row, role: str) -> None:
        data = row["data"]
        self._wait(milliseconds(row.get("created_at")) / 1000)
        if not isinstance(data, dict):
            self._written(str(data), "faint")
            return
        kind = str(data.get("type", row["type"]))
        if kind == "text":
            text = str(data.get("text", "")).strip()
            if role == "user":
                self._typed(text)
            else:
                self._written(text, "text")
        elif kind == "reasoning":
            self._written(str(data.get("text", "")).strip(), "reasoning")
        elif is_tool_type(kind):
            self._call(data)
        elif kind != "step-start":
            self._other(kind, data)

    def _call(self, data: Mapping[str, Any]) -> None:
        subject = neutral_line(tool_subject(data, self.workspace))
        self._event(f"{_coloured(neutral_line(tool_name(data)), 'tool')} {subject}\r\n")
        took = tool_extras(data).get("duration_ms")
        if isinstance(took, int | float) and self.at is not None:
            self._wait(self.at + milliseconds(took) / 1000)
        words, output = reply_and_output(data)
        if words:
            self._typed(words)
        lines = [line[:LONGEST_LINE] for line in output.split("\n")] if output else []
        for line in lines[:OUTPUT_LINES]:
            self.line(f"  {line}", "faint")
        more = len(lines) - OUTPUT_LINES
        if more > 0:
            self.line(f"  {more:,} more lines", "faint")
        ended = "ok" if data.get("state") == "output-available" else "faint"
        self.line(f"  {tool_state(data)}", "error" if has_failed(data) else ended)

    def _other(self, kind: str, data: Mapping[str, Any]) -> None:
        content = data.get("data")
        if kind == "data-compaction" and isinstance(content, dict):
            self.line("The conversation was compacted here. Its summary:", "faint")
            self._written(str(content.get("summary", "")), "text")
        elif kind == "steering-message":
            for part in data.get("parts") or ():
                if isinstance(part, dict) and isinstance(part.get("text"), str):
                    self._typed(part["text"].strip())
        elif kind in ("file", "reasoning-file"):
            name = data.get("filename") or "file"
            self.line(neutral_line(f"{name}, {data.get('mediaType', 'unknown type')}"), "faint")
        else:
            text = encode(content if content is not None else dict(data))
            self.line(neutral_line(f"{kind} {text}", LONGEST_LINE), "faint")

    def _typed(self, text: str) -> None:
        """Write a prompt as if it were typed."""
        self._event(_coloured("❯ ", "user"))
        shown = neutral(text)
        size = max(1, round(len(shown) * KEY_S / TYPED_S))
        for at in range(0, len(shown), size):
            self.played += min(KEY_S, TYPED_S * size / len(shown))
            self._event(_coloured(shown[at : at + size], "user"))
        self._event("\r\n")

    def _written(self, text: str, role: str) -> None:
        """Write an answer or a thought, line by line."""
        lines = text.split("\n") if text else []
        for line in lines:
            self.played += min(LINE_S, WRITTEN_S / len(lines))
            self.line(line, role)

    def _later(self, at: float) -> None:
        """Say how long nothing happened before a prompt, if that was long."""
        if self.at is not None and at - self.at >= LATER_S:
            self.line(f"{duration(round((at - self.at) * 1000))} later", "faint")

    def _wait(self, until: float) -> None:
        """Let the time pass until something happened, shortened."""
        if not until:
            return
        if self.at is not None and until > self.at:
            self.played += min(until - self.at, self.playing.longest_wait)
        self.at = max(until, self.at or 0.0)

    def _event(self, text: str) -> None:
        self._lines.append(_json([round(self.played, 3), "o", text]))


def _coloured(shown: str, role: str) -> str:
    """Return neutral text in a colour, with the ends of lines that a terminal wants."""
    shown = shown.replace("\n", "\r\n")
    return f"\x1b[{_ROLES[role]}m{shown}\x1b[0m" if shown and role != "text" else shown


def _json(value: object) -> str:
    return f"{json.dumps(value)}\n"
