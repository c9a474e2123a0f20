"""Formats a session as lines of text: speakers, texts and tool calls.

Calls and parts are described in the same words as in the browser's transcript.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from store.conversation.calls import Call, ended_in
from store.conversation.endings import ending_of
from store.conversation.gone_marks import NO_LONGER, is_gone
from store.conversation.readable import media_line, readable, strip_tags
from store.conversation.speakers import speaker_of
from store.exports.reading import MessageReading, Row
from store.rows import MessageRow, PartRow, is_tool_type
from store.system.streams import Painted, joined
from store.text.diffs import DiffLine
from store.text.exact_json import encode
from store.text.stored_json import as_dict
from tui.cli.output import Printer, local_time
from tui.kit.text import one_line
from tui.transcript.data_lines import WORDED, data_lines
from tui.transcript.item import Item, Setting
from tui.words.calls import describe
from tui.words.messages import tokens_out

OUTPUT_LINES = 8
REASONING_LINES = 3
LINE_LENGTH = 400
_ASIDES = {"meta": "Context"}
_MARKS = {
    "ok": ("✔", "ok"), "failed": ("✗", "error"), "denied": ("✗", "error"),
    "interrupted": ("✗", "error"), "waiting": ("◐", "tool"),
}  # fmt: skip
_TODO_MARKS = {"completed": "✔", "in_progress": "●", "cancelled": "✗"}


class TranscriptText:
    """Formats messages.

    Attributes:
        workspace: The session's folder; it is removed from paths below it.
        full: Whether to print outputs, reasoning and long lines in full.
    """

    def __init__(
        self, printer: Printer, workspace: str | None = None, *, full: bool = False
    ) -> None:
        """Format with a printer's colours.

        Args:
            printer: Paints the lines.
            workspace: The session's folder; it is removed from paths below it.
            full: Whether to print outputs, reasoning and long lines in full.
        """
        self.printer = printer
        self.workspace = workspace
        self.full = full

    def message(self, item: MessageReading, *, queued: bool = False) -> Iterator[Painted]:
        """Yield the lines of one message."""
        row, paint = item.message, self.printer.paint
        metadata = as_dict(row["metadata"])
        role = str(row["role"])
        style = role if role in ("user", "assistant") else "tool"
        yield paint("")
        yield joined([
            paint("▌ ", style),
            paint(_speaker(role, metadata), style, "bold"),
            paint("".join(f"  {fact}" for fact in _facts(row, metadata, queued)), "faint"),
        ])
        for part in item.parts:
            yield from self.part(part, metadata)
        yield from self._ending(item, metadata)

    def part(self, row: Row, metadata: Mapping[str, Any]) -> Iterator[Painted]:
        """Yield the lines of one part of a message with the given metadata."""
        data = row["data"]
        kind = str(row["type"])
        if not isinstance(data, dict):
            yield from self._indented(str(data), OUTPUT_LINES)
        elif kind == "text":
            text = _said(str(data.get("text", "")), metadata)
            if text.strip():
                yield from self.printer.lines(text)
        elif kind == "reasoning":
            yield from self._reasoning(str(data.get("text", "")))
        elif is_tool_type(kind):
            yield from self._tool({**data, "type": kind}, _times(row))
        elif kind != "step-start":
            yield from self._other(row, kind, data)

    def _ending(self, item: MessageReading, metadata: Mapping[str, Any]) -> Iterator[Painted]:
        """Yield lines for a message's error, interruption or unknown reason to end."""
        details = as_dict(metadata.get("backscroll"))
        error = details.get("error")
        if error and not any(part["type"] == "data-error" for part in item.parts[-1:]):
            text = readable(as_dict(error).get("message") or error).strip()
            yield from self.printer.lines(f"  ✗ {text}", "error")
        ended = ending_of(metadata)
        if ended is not None:
            words = f"  {ended.glyph} {self._cut(ended.words)}"
            yield self.printer.paint(words, "error" if ended.stopped else "faint")

    def _reasoning(self, text: str) -> Iterator[Painted]:
        lines = self._shortened(text.strip().split("\n"), REASONING_LINES)
        if text.strip():
            yield self.printer.paint(f"  ▸ thought  {next(lines)}", "reasoning", "italic")
            for line in lines:
                yield self.printer.paint(f"      {line}", "reasoning", "italic")

    def _tool(self, data: dict[str, Any], times: tuple[int, int]) -> Iterator[Painted]:
        paint = self.printer.paint
        call = describe(data, self.workspace, times)
        mark, style = _MARKS.get(call.status, ("○", "tool"))
        took = "" if call.status in ("denied", "waiting", "pending") else ended_in(call)
        size = call.size if call.status == "ok" else ""
        state = ", ".join(fact for fact in (call.word or "ok", took) if fact)
        marks = "".join(f"  {text}" if number == 0 else f" {text}"
                        for number, (text, _ink) in enumerate(call.marks))
        yield joined([
            paint("  ▸ ", "tool"),
            paint(call.name, "tool", "bold"),
            paint(f" {self._cut(call.what)}" if call.what else ""),
            paint(marks, "faint"),
            paint(f"  {mark} {state}", style),
            paint(f"  {size}" if size else "", "faint"),
        ])
        yield from self._body(call)

    def _body(self, call: Call) -> Iterator[Painted]:
        """Yield the lines of a call's result: a person's reply first, fixed text last."""
        for number, line in enumerate(call.reply.split("\n") if call.reply else ()):
            yield joined([
                self.printer.paint("          " if number else "      You ", "user", "bold"),
                self.printer.paint(self._cut(line)),
            ])
        if call.kind == "todo":
            for state, text in call.body:
                yield self.printer.paint(f"      {_TODO_MARKS.get(state, '○')} {text}")
        elif call.kind == "diff":
            yield from self._diff(list(_diff_lines(call.body)))
        else:
            text = str(call.body).strip("\n")
            yield from self._indented(text, OUTPUT_LINES, from_end=call.from_end)
        if call.result and (self.full or call.result_matters):
            yield from self._indented(call.result, OUTPUT_LINES, from_end=call.from_end)
        elif call.result and (call.reply or call.kind == "markdown"):
            yield self.printer.paint(f"      {self._cut(one_line(call.result))}", "faint")

    def _diff(self, lines: list[str]) -> Iterator[Painted]:
        styles = {"+": ("added",), "-": ("removed",), "@": ("faint",)}
        for line in self._shortened(lines, 3 * OUTPUT_LINES):
            yield self.printer.paint(f"      {line}", *styles.get(line[:1], ()))

    def _other(self, row: Row, kind: str, data: dict[str, Any]) -> Iterator[Painted]:
        paint = self.printer.paint
        content = data.get("data")
        if kind == "data-compaction" and isinstance(content, Mapping):
            yield paint("  ── compacted ──", "rule")
            yield from self._indented(str(content.get("summary", "")).strip(), OUTPUT_LINES)
        elif kind in ("file", "reasoning-file"):
            yield paint(f"  ▸ {media_line(data)}", "tool")
        elif kind in WORDED:
            style = "error" if kind in ("data-error", "data-retry") else "tool"
            yield from (paint(f"  {line}", style) for line in self._worded(row, kind, data))
        else:
            value = content if content is not None else dict(data)
            yield paint(f"  ▸ {kind.removeprefix('data-')} {self._cut(encode(value))}", "tool")

    def _worded(self, row: Row, kind: str, data: dict[str, Any]) -> Iterator[str]:
        """Yield the transcript's lines for a part; long texts in full only with ``full``."""
        message_id, session_id = str(row["message_id"]), str(row["session_id"])
        part = PartRow(str(row["id"]), message_id, session_id, 0, kind, "", None, None, 0, 0)
        message = MessageRow(message_id, session_id, "", "{}", None, 0, 0)
        item = Item(part, message, data, {}, level="whole" if self.full else None)
        width = 1_000_000 if self.full else LINE_LENGTH
        for line in data_lines(item, Setting(width, width, self.workspace))[0]:
            yield "  ".join(filter(None, (line.text, "".join(text for text, _ in line.right))))

    def _indented(self, text: str, limit: int, *, from_end: bool = False) -> Iterator[Painted]:
        """Yield indented lines of a text, shortened; the last ones if ``from_end``."""
        lines = text.split("\n") if text else []
        if from_end and not self.full and len(lines) > limit + 1:
            yield self.printer.paint(f"      … {len(lines) - limit} earlier lines", "faint")
            lines = lines[-limit:]
        for line in self._shortened(lines, limit):
            yield self.printer.paint(f"      {line}", "faint")

    def _shortened(self, lines: list[str], limit: int) -> Iterator[str]:
        """Yield the first lines, and the number of further ones."""
        shown = lines if self.full or len(lines) <= limit + 1 else lines[:limit]
        yield from (self._cut(line) for line in shown)
        if len(shown) < len(lines):
            yield f"… {len(lines) - len(shown)} more lines"

    def _cut(self, line: str) -> str:
        if self.full or len(line) <= LINE_LENGTH:
            return line
        return f"{line[:LINE_LENGTH]} … {len(line) - LINE_LENGTH:,} more characters"


def _speaker(role: str, metadata: Mapping[str, Any]) -> str:
    origin = metadata.get("origin")
    if role == "user" and isinstance(origin, str) and origin != "human":
        return _ASIDES.get(origin, origin.capitalize())
    return speaker_of(role, metadata)


def _said(text: str, metadata: Mapping[str, Any]) -> str:
    """Return a text, without its tags if it is not a person's prompt."""
    if metadata.get("origin") in (None, "human"):
        return text.strip("\n")
    details = {**metadata, **as_dict(metadata.get("backscroll"))}
    command = as_dict(details.get("command"))
    if command.get("name"):
        return f"{command['name']} {command.get('args') or ''}".rstrip()
    shell = details.get("shell")
    return f"! {shell}" if isinstance(shell, str) else strip_tags(text)


def _facts(row: Row, metadata: dict[str, Any], queued: bool) -> Iterator[str]:
    yield "queued" if queued else local_time(row["created_at"], "%Y-%m-%d %H:%M:%S")
    model, wrote = metadata.get("model"), tokens_out(metadata)
    if row["role"] == "assistant" and isinstance(model, Mapping):
        yield str(model.get("model_id", ""))
    if wrote:
        yield wrote
    if row.get("hidden_at") or metadata.get("hidden_at"):
        yield "hidden"
    if metadata.get("inherited_from"):
        yield "from the parent"
    if is_gone(metadata):
        yield NO_LONGER


def _times(row: Row) -> tuple[int, int]:
    """Return when a part was created and last written; zeros if a host stored no times."""
    made, written = row["created_at"], row["updated_at"]
    return (made, written) if isinstance(made, int) and isinstance(written, int) else (0, 0)


def _diff_lines(lines: list[DiffLine]) -> Iterator[str]:
    """Yield the lines of a diff; each hunk starts with the number of its first line."""
    begins = True
    for line in lines:
        if line.sign == "@":
            begins = True
            if line.text:
                yield f"@@ {line.text} @@"
            continue
        if begins and line.number is not None:
            yield f"@@ line {line.number} @@"
        begins = False
        yield f"{line.sign}{line.text}"
