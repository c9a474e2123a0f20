"""User messages that no event told: a person's where nobody else asked for the answer.

A message that the program put in stands beside a prompt of its turn. One that was answered
without any is the prompt: its event was lost, or another program wrote the thread without events.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from store.sources.base.drafts import MessageDraft
from store.sources.base.values import mapping


@dataclass(slots=True)
class Untold:
    """The user messages of a thread whose origin is not known yet.

    Attributes:
        messages: Those that no event has told so far.
    """

    messages: list[MessageDraft] = field(default_factory=list)
    _events: dict[int, int] = field(default_factory=dict)
    _count: int = 0

    def take(self, message: MessageDraft) -> None:
        """Take a message that no event has told yet."""
        self.messages.append(message)
        self._events[id(message)] = self._count

    def event(self) -> None:
        """Note that the thread has events here."""
        self._count += 1

    def told(self, message: MessageDraft) -> None:
        """Drop a message that an event tells."""
        if self.messages and self.messages[-1] is message:
            self.messages.pop()

    def holds(self, message: MessageDraft) -> bool:
        """Return whether it is not known who said a message."""
        return any(message is one for one in self.messages)

    def answered(self, messages: Sequence[MessageDraft]) -> None:
        """Drop those that were answered as prompts, before the next prompt or at the end.

        Args:
            messages: All messages of the thread so far.
        """
        if not self.messages:
            return
        place, last = len(messages) - 1, self.messages[-1]
        found = False
        while place >= 0 and messages[place] is not last:
            found = found or messages[place].role == "assistant"
            place -= 1
        if place < 0 or not found:
            return
        turn = _turn(last)
        alone = self._events[id(last)] == self._count if turn is None else not any(
            _turn(one) == turn and _is_prompt(one) and not self.holds(one) for one in messages)
        if alone:
            self.messages.pop()


def _turn(message: MessageDraft) -> object:
    return mapping(message.metadata.get("backscroll")).get("turn_id")


def _is_prompt(message: MessageDraft) -> bool:
    return message.role == "user" and message.metadata.get("origin") == "human"
