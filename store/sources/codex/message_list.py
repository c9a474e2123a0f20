"""The list of messages that a thread's lines are made into."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from store.sources.base.drafts import ApiAnswer, MessageDraft, Role
from store.sources.base.values import string
from store.sources.codex.lineage import Entry
from store.sources.codex.rollout import Line


@dataclass(slots=True)
class MessageList:
    """Messages in display order, each with a name of its own and the records it is made of.

    Attributes:
        first_record: By path where a file's records begin among those of the session.
        answers: How many there were so far.
        messages: The drafts.
        quiet: Numbers of records that wait for the message that they go with.
        state: Whether the last line was inherited, and when it was rewound.
    """

    first_record: dict[str, int]
    answers: int = 0
    messages: list[MessageDraft] = field(default_factory=list)
    quiet: list[int] = field(default_factory=list)
    state: tuple[bool, int | None] = (False, None)
    _names: set[str] = field(default_factory=set)
    _parted: bool = False

    def part(self, state: tuple[bool, int | None]) -> None:
        """Begin lines that are inherited or rewound otherwise than those before."""
        self.flush_quiet()
        self.state, self._parted = state, True

    def record(self, entry: Entry) -> tuple[int, ...]:
        """Return the number of an entry's record in the session, where it is the session's."""
        first = self.first_record.get(entry.file.path)
        return () if first is None else (first + entry.line.number,)

    def keep(self, entry: Entry) -> None:
        """Keep a line as a record only: it goes with the message before."""
        self.quiet.extend(self.record(entry))

    def flush_quiet(self) -> None:
        """Give the records that wait to the last message."""
        if self.quiet and self.messages:
            last = self.messages[-1]
            last.records = (*last.records, *self.quiet)
            self.quiet.clear()

    def add(self, entry: Entry, role: Role, metadata: dict[str, Any]) -> MessageDraft:
        """Append a message that begins with this line.

        Args:
            entry: The line.
            role: Who says it.
            metadata: The message's metadata.
        """
        line = entry.line
        name = self._name(line)
        message = MessageDraft(name, role, line.at, line.at, metadata)
        if entry.inherited:
            message.inherited_from = name
        message.gone = entry.file.gone and not entry.inherited
        if role == "assistant":
            # Until its count of tokens names the response; older versions never do.
            self.answers += 1
            message.answer = ApiAnswer(f"{line.place[0]}:{self.answers}")
        if entry.hidden_at is not None:
            metadata["hidden_at"] = entry.hidden_at
        if not self._parted:
            self.flush_quiet()
        self.messages.append(message)
        self.flush_quiet()
        self._parted = False
        return message

    def _name(self, line: Line) -> str:
        """Return the item's own id; the place of a line that has none, or not for itself."""
        placed = f"{line.place[0]}:{line.place[1]}"
        name = string(line.payload.get("id")) or placed
        if name in self._names:
            name = f"{name}:{placed}"
        self._names.add(name)
        return name
