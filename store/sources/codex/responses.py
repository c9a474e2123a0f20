"""Messages of a thread, one for each response of the API, with its count of tokens.

Three orders of lines were seen. Today a response's items come as they are finished, its
count after them, then the outputs of its calls. Versions up to 0.5x write its words as
events, then its count, and its items once its tools have run, each call followed by its
output. The first versions write items alone.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, TypeGuard

from store.sources.base.drafts import ApiAnswer, MessageDraft, Role
from store.sources.base.values import mapping, number, plausible_ms, string
from store.sources.codex.lineage import Entry
from store.sources.codex.rollout import Line
from store.sources.codex.setting import Setting
from store.sources.codex.untold import Untold
from store.sources.codex.words import Words

# Source: the Codex format page, section 3.4. The API's ``input_tokens`` holds the cached
# ones, its ``output_tokens`` the reasoning. Versions up to 0.98 write only ``token_count``,
# and repeat it; where ``token_usage_record`` is written, that alone counts.
Usage = dict[str, int]


def usage_of(raw: dict[str, Any]) -> Usage:
    """Return an API response's usage."""
    given, cached = number(raw.get("input_tokens")), number(raw.get("cached_input_tokens"))
    written = number(raw.get("cache_write_input_tokens"))
    output, reasoning = number(raw.get("output_tokens")), number(raw.get("reasoning_output_tokens"))
    cached = min(cached, given)
    written = min(written, given - cached)
    reasoning = min(reasoning, output)
    return {
        "input": given - cached - written,
        "output": output - reasoning,
        "reasoning": reasoning,
        "cache_read": cached,
        "cache_write": written,
    }


_LIMITS = ("primary", "secondary")
_LONGEST_WINDOW = 366 * 24 * 60
"""Minutes."""


def limits_of(payload: dict[str, Any], at: int) -> list[dict[str, Any]]:
    """Return what a ``token_count`` says about the plan's windows; empty if it says nothing.

    Each has ``used_percent``, ``window_minutes`` and ``resets_at`` (epoch ms), and ``limit``
    and ``plan`` where they are named.

    Args:
        payload: The event.
        at: When it was written, epoch ms; older versions say in how many seconds a window ends.
    """
    said = mapping(payload.get("rate_limits"))
    names = {"limit": string(said.get("limit_id")), "plan": string(said.get("plan_type"))}
    names = {key: name[:100] for key, name in names.items() if name}
    found = []
    for key in _LIMITS:
        window = mapping(said.get(key))
        used, minutes = window.get("used_percent"), window.get("window_minutes")
        resets_at = _reset(window, at)
        is_known = type(minutes) is int and 0 < minutes <= _LONGEST_WINDOW
        if is_known and resets_at is not None and _is_finite(used):
            found.append({"used_percent": used, "window_minutes": minutes,
                          "resets_at": resets_at, **names})  # fmt: skip
    return found


def _reset(window: dict[str, Any], at: int) -> int | None:
    seconds, left = window.get("resets_at"), window.get("resets_in_seconds")
    if _is_finite(seconds):
        return plausible_ms(seconds * 1000)
    return plausible_ms(at + left * 1000) if _is_finite(left) else None


def _is_finite(value: Any) -> TypeGuard[float]:
    return type(value) in (int, float) and abs(value) < 2**53


@dataclass(slots=True)
class Counting:
    """Tells which of a thread's token lines count.

    Attributes:
        total: What the last visible ``token_count`` says about the whole thread.
        context: Tokens of the last request and its answer.
    """

    total: dict[str, Any] | None = None
    context: int | None = None
    _last: dict[str, Any] | None = None
    _has_records: bool = False
    _seen: set[tuple[str, str]] = field(default_factory=set)

    def take_record(self, payload: dict[str, Any]) -> Usage | None:
        """Return the usage of a ``token_usage_record``; None where it was counted before."""
        self._has_records = True
        thread, response = string(payload.get("thread_id")), string(payload.get("response_id"))
        if thread and response:
            if (thread, response) in self._seen:
                return None
            self._seen.add((thread, response))
        return usage_of(mapping(payload.get("usage")))

    def take_count(self, payload: dict[str, Any], *, hidden: bool) -> Usage | None:
        """Return the usage of a ``token_count``; None unless it is a response's only count."""
        info = mapping(payload.get("info"))
        total, last = info.get("total_token_usage"), mapping(info.get("last_token_usage"))
        if not isinstance(total, dict):
            return None
        moved, self._last = total != self._last, total
        self.total = self.total if hidden else total
        context = last.get("total_tokens")
        self.context = context if type(context) is int else self.context
        return usage_of(last) if moved and last and not self._has_records else None


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


@dataclass(slots=True)
class Responses(MessageList):
    """The messages, and the response that is being read.

    Attributes:
        setting: What a turn works with.
        counting: Tells which token lines count.
        words: What was reported and not repeated by an item.
        answered: Whether a call of the open response has its output.
        waiting: Calls of the open response without one.
        untold: User messages that a person may not have typed.
    """

    setting: Setting = field(default_factory=Setting)
    counting: Counting = field(default_factory=Counting)
    words: Words = field(default_factory=Words)
    answered: bool = False
    waiting: set[str] = field(default_factory=set)
    untold: Untold = field(default_factory=Untold)
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
            if human and not self.untold.holds(message):
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
        details = self.setting.usage_details()
        if details:
            message.metadata["usage_details"] = details
        response = string(entry.line.payload.get("response_id"))
        if response:
            message.metadata.setdefault("backscroll", {})["response_id"] = response
            message.answer = ApiAnswer(response, string(entry.line.payload.get("thread_id")))
        if early and message is self.opened and self.words.told(message):
            self._items_follow = True
        if not self._items_follow:
            self.close()

    def note_limits(self, entry: Entry) -> None:
        """Note on the answer before a ``token_count`` what that says about the plan's windows."""
        limits = limits_of(entry.line.payload, entry.line.at)
        message = self.opened or self.last_response()
        if limits and message is not None and not self._elsewhere(message):
            message.metadata["rate_limits"] = limits

    def _elsewhere(self, message: MessageDraft) -> bool:
        """Return whether a message is inherited or rewound otherwise than the lines now."""
        state = (message.inherited_from is not None, message.metadata.get("hidden_at"))
        return state != self.state
