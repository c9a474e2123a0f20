"""A session as lines for a person: who spoke, what was said, what each tool did."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from store.exports.encoding import encode
from store.exports.reading import MessageReading, Row
from store.exports.tool_line import (
    has_failed,
    tool_extras,
    tool_name,
    tool_output,
    tool_state,
    tool_subject,
)
from store.queries.inspection import spent_of
from tui import figures
from tui.cli.output import Printer, local_time

OUTPUT_LINES = 8
REASONING_LINES = 3
LINE_LENGTH = 400
_SPEAKERS = {"user": "You", "assistant": "Assistant", "system": "System"}
_STATE_MARKS = {
    "output-available": ("✔", "ok"), "output-error": ("✗", "error"),
    "output-denied": ("✗", "error"), "approval-requested": ("◐", "tool"),
}  # fmt: skip
_TODO_MARKS = {"completed": "✔", "in_progress": "●"}


class TranscriptText:
    """Draws messages.

    Attributes:
        workspace: The session's folder, which paths below it do not repeat.
        full: Whether outputs, reasoning and long lines are printed whole.
    """

    def __init__(
        self, printer: Printer, workspace: str | None = None, *, full: bool = False
    ) -> None:
        """Draw with a printer."""
        self.printer = printer
        self.workspace = workspace
        self.full = full

    def message(self, item: MessageReading, *, queued: bool = False) -> Iterator[str]:
        """Yield the lines of one message."""
        row, paint = item.message, self.printer.paint
        metadata = row["metadata"] if isinstance(row["metadata"], dict) else {}
        role = str(row["role"])
        style = role if role in ("user", "assistant") else "tool"
        yield ""
        yield "".join([
            paint("▌ ", style),
            paint(_speaker(role, metadata), style, "bold"),
            paint("".join(f"  {fact}" for fact in _facts(row, metadata, queued)), "faint"),
        ])
        for part in item.parts:
            yield from self.part(part)

    def part(self, row: Row) -> Iterator[str]:
        """Yield the lines of one part."""
        data = row["data"]
        kind = str(row["type"])
        if not isinstance(data, dict):
            yield from self._indented(str(data), OUTPUT_LINES)
        elif kind == "text":
            text = str(data.get("text", "")).strip("\n")
            if text.strip():
                yield from self.printer.paint(text).split("\n")
        elif kind == "reasoning":
            yield from self._reasoning(str(data.get("text", "")))
        elif kind.startswith("tool-") or kind == "dynamic-tool":
            yield from self._tool(data)
        elif kind != "step-start":
            yield from self._other(kind, data)

    def _reasoning(self, text: str) -> Iterator[str]:
        if text.strip():
            for line in self._shortened(text.strip().split("\n"), REASONING_LINES):
                yield self.printer.paint(f"  {line}", "reasoning", "italic")

    def _tool(self, data: Mapping[str, Any]) -> Iterator[str]:
        paint = self.printer.paint
        state = "output-error" if has_failed(data) else str(data.get("state"))
        mark, style = _STATE_MARKS.get(state, ("○", "tool"))
        yield "".join([
            paint("  ▸ ", "tool"),
            paint(tool_name(data), "tool", "bold"),
            paint(f" {self._cut(tool_subject(data, self.workspace))}"),
            paint(f"  {mark} {tool_state(data)}", style),
        ])
        patch = _patch(data)
        todos = _todos(data)
        if todos:
            yield from (paint(f"      {line}") for line in todos)
        elif patch and data.get("state") == "output-available":
            yield from self._diff(patch)
        else:
            is_error = data.get("state") == "output-error"
            text = tool_output(data).strip("\n")
            yield from self._indented(text, OUTPUT_LINES, from_end=is_error)

    def _diff(self, lines: list[str]) -> Iterator[str]:
        styles = {"+": ("added",), "-": ("removed",), "@": ("faint",)}
        for line in self._shortened(lines, 3 * OUTPUT_LINES):
            yield self.printer.paint(f"      {line}", *styles.get(line[:1], ()))

    def _other(self, kind: str, data: Mapping[str, Any]) -> Iterator[str]:
        paint = self.printer.paint
        content = data.get("data")
        if kind == "data-compaction" and isinstance(content, Mapping):
            yield paint("  ── compacted ──", "rule")
            yield from self._indented(str(content.get("summary", "")).strip(), OUTPUT_LINES)
        elif kind == "file":
            name, media = data.get("filename") or "file", data.get("mediaType", "unknown type")
            yield paint(f"  ▸ {name} ({media})", "tool")
        elif kind == "data-error" and isinstance(content, Mapping):
            yield paint(f"  ✗ {content.get('message', encode(dict(content)))}", "error")
        else:
            value = content if content is not None else dict(data)
            yield paint(f"  ▸ {kind.removeprefix('data-')} {self._cut(encode(value))}", "tool")

    def _indented(self, text: str, limit: int, *, from_end: bool = False) -> Iterator[str]:
        """Yield text below its call; of a failure the end tells most."""
        lines = text.split("\n") if text else []
        if from_end and not self.full and len(lines) > limit + 1:
            yield self.printer.paint(f"      … {len(lines) - limit} lines before", "faint")
            lines = lines[-limit:]
        for line in self._shortened(lines, limit):
            yield self.printer.paint(f"      {line}", "faint")

    def _shortened(self, lines: list[str], limit: int) -> Iterator[str]:
        """Yield the first lines, and how many there are more."""
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
        return origin.capitalize()
    return _SPEAKERS.get(role, role)


def _facts(row: Row, metadata: Mapping[str, Any], queued: bool) -> Iterator[str]:
    yield "queued" if queued else local_time(row["created_at"], "%Y-%m-%d %H:%M:%S")
    model, wrote = metadata.get("model"), spent_of(metadata).output
    if row["role"] == "assistant" and isinstance(model, Mapping):
        yield str(model.get("model_id", ""))
    if wrote:
        yield f"{figures.tokens(wrote)} out"
    if row.get("hidden_at") or metadata.get("hidden_at"):
        yield "hidden"
    if metadata.get("inherited_from"):
        yield "from the parent"


def _patch(data: Mapping[str, Any]) -> list[str]:
    """Return the lines of an edit as a unified diff, where the source gives one."""
    structured = tool_extras(data).get("structured")
    hunks = structured.get("structuredPatch") if isinstance(structured, Mapping) else None
    lines: list[str] = []
    for hunk in hunks if isinstance(hunks, list) else []:
        if isinstance(hunk, Mapping) and isinstance(hunk.get("lines"), list):
            lines.append(f"@@ line {hunk.get('newStart', '?')} @@")
            lines += [str(line) for line in hunk["lines"]]
    return lines


def _todos(data: Mapping[str, Any]) -> list[str]:
    """Return a list of things to do as check marks."""
    given = data.get("input")
    if not isinstance(given, Mapping):
        return []
    items = given.get("todos") or given.get("plan")
    if not isinstance(items, list) or not all(isinstance(item, Mapping) for item in items):
        return []
    return [
        f"{_TODO_MARKS.get(str(item.get('status')), '○')} {item.get('content') or item.get('step')}"
        for item in items
    ]
