"""Messages of a thread, one for each response of the API, with its count of tokens.

Three orders of lines were seen. Today a response's items come as they are finished, its
count after them, then the outputs of its calls. Versions up to 0.5x write its words as
events, then its count, and its items once its tools have run, each call followed by its
output. The first versions write items alone.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from store.sources.base.drafts import ApiAnswer, MessageDraft
from store.sources.base.values import string
from store.sources.codex.lineage import Entry
from store.sources.codex.message_list import MessageList
from store.sources.codex.setting import Setting
from store.sources.codex.usage import Counting, Usage
from store.sources.codex.words import Words


@dataclass(slots=True)
class Responses(MessageList):
    """The messages, and the response that is being read.

    Attributes:
        setting: What a turn works with.
        counting: Tells which token lines count.
        words: What was reported and not repeated by an item.
        answered: Whether a call of the open response has its output.
        waiting: Calls of the open response without one.
        unsure: User messages that a person may not have typed.
    """

    setting: Setting = field(default_factory=Setting)
    counting: Counting = field(default_factory=Counting)
    words: Words = field(default_factory=Words)
    answered: bool = False
    waiting: set[str] = field(default_factory=set)
    unsure: list[MessageDraft] = field(default_factory=list)
    opened: MessageDraft | None = None
    _sampled: object = None
    _items_follow: bool = False

    def close(self) -> None:
        """Leave the open response; its items may still repeat its words."""
        self.opened = self._sampled = None
        self.waiting.clear()
        self.answered = self._items_follow = False

    def settle(self) -> None:
        """End a response for good; what it only told is what is left of it."""
        for owner, part in self.words.left():
            owner.parts.append(part)
        self.close()

    def response(self, entry: Entry) -> MessageDraft:
        """Return the message of the API response that an item belongs to."""
        line = entry.line
        sampled = line.extra.get("sampled_through_sequence")
        if self.opened is not None:
            if sampled is not None and self._sampled is not None:
                other = sampled != self._sampled
            else:
                other = self.answered and not self.waiting and not self._items_follow
            if other:
                self.close()
        if self.opened is None:
            self.opened = self.add(entry, "assistant", self.setting.described())
        self._sampled = sampled if sampled is not None else self._sampled
        self.opened.updated_at = max(self.opened.updated_at, line.at)
        return self.opened

    def tell(self, entry: Entry) -> bool:
        """Take an event that tells words of a response; return whether it is one."""
        part = self.words.part(entry.line, self.record(entry))
        if part is None or self.words.repeats(part):
            return False
        if self._items_follow:
            self.settle()
        self.words.take(self.response(entry), part)
        return True

    def last_response(self) -> MessageDraft | None:
        """Return the newest answer to the last prompt."""
        for message in reversed(self.messages):
            if message.role == "assistant":
                return message
            human = message.metadata.get("origin") == "human"
            if human and not any(message is unsure for unsure in self.unsure):
                return None
        return None

    def count(self, entry: Entry, usage: Usage | None, *, early: bool = False) -> None:
        """Give a response's usage to its message; one without items gets an empty message.

        Args:
            entry: The line that counts.
            usage: None where it counts nothing.
            early: Whether the response's items may follow its count.
        """
        if usage is None:
            return
        message = self.opened or self.last_response()
        if message is None or "usage" in message.metadata or self._elsewhere(message):
            self.settle()
            message = self.add(entry, "assistant", self.setting.described())
            if early:
                self.opened, self._items_follow = message, True
        message.metadata["usage"] = usage
        response = string(entry.line.payload.get("response_id"))
        if response:
            message.metadata.setdefault("backscroll", {})["response_id"] = response
            message.answer = ApiAnswer(response, string(entry.line.payload.get("thread_id")))
        if early and message is self.opened and self.words.told(message):
            self._items_follow = True
        if not self._items_follow:
            self.close()

    def _elsewhere(self, message: MessageDraft) -> bool:
        """Return whether a message is inherited or rewound otherwise than the lines now."""
        state = (message.inherited_from is not None, message.metadata.get("hidden_at"))
        return state != self.state
