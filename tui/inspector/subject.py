"""The part that the inspector is on, decoded once, with what was folded open in it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from store.conversation.calls import Call
from store.conversation.speakers import speaker_of
from store.engine.values import decoded
from store.queries.inspection import PartDetail
from store.rows import is_tool_type
from tui.kit.text import one_line
from tui.kit.tree import Node, open_at_first
from tui.words.calls import describe

_ROLE_INKS = {"user": "user", "assistant": "assistant", "system": "fork"}
_VERDICTS = {
    "ok": ("✔", "done", "ok"),
    "running": ("●", "running", "tool"),
    "waiting": ("◐", "waits for approval", "tool"),
    "failed": ("✗", "failed", "error"),
    "denied": ("✗", "denied", "error"),
    "interrupted": ("✗", "interrupted", "error"),
    "pending": ("○", "no result", "tool"),
    "ended": ("○", "ended", "tool"),
}
"""Glyph, word and ink of how a call ended."""


@dataclass(slots=True)
class Subject:
    """A part, ready to be shown.

    Attributes:
        data: The part's ``data_json``; empty when it is not a JSON object.
        metadata: The message's ``metadata_json``.
        opened: Names of the sections that are shown whole.
        loaded: Attachments that were loaded, by name.
        call: A tool call as the transcript describes it; None for other parts.
        roots: The trees that were shown, by their path, as they are folded.
    """

    detail: PartDetail
    data: dict[str, Any] = field(default_factory=dict)
    metadata: dict[str, Any] = field(default_factory=dict)
    opened: set[str] = field(default_factory=set)
    loaded: dict[str, bytes] = field(default_factory=dict)
    call: Call | None = None
    roots: dict[str, Node] = field(default_factory=dict)

    @classmethod
    def of(cls, detail: PartDetail, *, runs: bool = False) -> Subject:
        """Decode a part; of a call it must be said whether it runs."""
        data = decoded(detail.part.data_json)
        subject = cls(detail, data, decoded(detail.message.metadata_json))
        if subject.is_tool:
            times = (detail.part.created_at, detail.part.updated_at)
            subject.call = describe({"type": subject.type, **data}, None, times)
            if runs and subject.call.status == "pending":
                subject.call.status, subject.call.word = "running", "running"
        return subject

    def root(self, path: str, value: Any) -> Node:
        """Return the tree of a value, folded as it was when it was last shown."""
        root = self.roots.get(path)
        if root is None:
            root = self.roots[path] = Node(None, value, None)
            open_at_first(root)
        return root

    def renewed(self, detail: PartDetail, *, runs: bool = False) -> Subject:
        """Return the same part in a newer state: what was unfolded stays so."""
        ran = self.call is not None and self.call.status == "running"
        same = detail.part == self.detail.part and detail.message == self.detail.message
        if same and ran == runs:
            self.detail = detail
            return self
        fresh = Subject.of(detail, runs=runs)
        fresh.opened, fresh.loaded = self.opened, self.loaded
        return fresh

    @property
    def type(self) -> str:
        """The part's type column."""
        return self.detail.part.type

    @property
    def damaged(self) -> str | None:
        """The part's ``data_json`` where it is not a JSON object that can be shown; else None."""
        text = self.detail.part.data_json
        return text if not self.data and text.strip() not in ("", "{}") else None

    @property
    def is_tool(self) -> bool:
        """Whether the part is a tool call."""
        return is_tool_type(self.type)

    @property
    def role_ink(self) -> str:
        """The ink for who speaks."""
        if self.is_tool:
            return "error" if self.failed else "tool"
        if self.type == "reasoning":
            return "reasoning"
        if self.type == "data-error":
            return "error"
        if self.type.startswith("data-"):
            return "fork"
        return _ROLE_INKS.get(self.detail.message.role, "muted")

    @property
    def name(self) -> str:
        """The tool's name, who speaks, or what kind of part it is."""
        if self.call is not None:
            return self.call.name
        if self.type == "text":
            role = self.detail.message.role
            return one_line(speaker_of(role, self.metadata), 40)
        return one_line(self.type.removeprefix("data-"), 60).replace("-", " ").capitalize()

    @property
    def kind(self) -> str:
        """What the part is, in a word or two."""
        if self.is_tool:
            return "tool call"
        if self.type.startswith("data-"):
            return "data"
        return "text" if self.type == "text" else "part"

    @property
    def summary(self) -> str:
        """What the part did, or its text, in one line."""
        if self.call is not None:
            return one_line(self.call.what, 300)
        text = self.data.get("text") or self.data.get("filename") or self.data.get("url") or ""
        return one_line(str(text), 300)

    @property
    def extras(self) -> dict[str, Any]:
        """What we know of the call beside the SDK's own fields."""
        result = self.data.get("resultProviderMetadata")
        own = result.get("backscroll") if isinstance(result, dict) else None
        return own if isinstance(own, dict) else {}

    @property
    def state(self) -> str:
        """The state of a tool call or a streamed text; empty when it has none."""
        return str(self.detail.part.tool_state or self.data.get("state") or "")

    @property
    def failed(self) -> bool:
        """Whether the call went wrong: an error, a denial, an exit code that is not 0."""
        return self.call is not None and self.call.status in ("failed", "denied", "interrupted")

    @property
    def verdict(self) -> tuple[str, str] | None:
        """How the call ended, with its glyph, and the ink for it."""
        if self.call is None:
            return None
        glyph, word, ink = _VERDICTS[self.call.status]
        return f"{glyph} {one_line(self.call.word) or word}", ink

    @property
    def milliseconds(self) -> int | None:
        """How long the part took; None where it is not known."""
        if self.call is not None:
            return None if self.call.milliseconds is None else round(self.call.milliseconds)
        part = self.detail.part
        return part.updated_at - part.created_at if part.updated_at > part.created_at else None
