"""What the engines of Kiro have in common: messages while they are taken, results, images.

Source: the Kiro format page. Results are joined to calls by id, never by place.
"""

from __future__ import annotations

import base64
import re
from typing import Any, Literal

from store.sources.base.drafts import MessageDraft, PartDraft, Role
from store.sources.base.early_results import EarlyResults
from store.sources.base.plain_parts import call_part, data_part, settle_call
from store.sources.base.values import epoch_ms, mapping, number, string

KIND = "kiro"
INTERRUPTED = (
    "Response was interrupted by the user",
    "Tool uses were interrupted, waiting for the next user prompt",
)
"""Words of the program itself that stand where an answer would."""
_EXIT = re.compile(r"(?:exit status: )?(-?\d{1,9})")
_FRACTION = re.compile(r"(\.\d{3})\d+")
_PURPOSE = "__tool_use_purpose"
_CREDIT = "credit"

Ended = Literal["ok", "error", "denied", "interrupted"]


class Talk:
    """The messages of a session, in order, and the calls that wait for results.

    Attributes:
        found: The drafts.
        at: The last time that a record told, epoch ms.
    """

    def __init__(self) -> None:
        """Start without messages."""
        self.found: list[MessageDraft] = []
        self.at = 0
        self._calls: dict[str, tuple[PartDraft, MessageDraft]] = {}
        self._early = EarlyResults()
        self._names: set[str] = set()
        self._last, self._since = "first", 0

    def add(
        self, name: str | None, role: Role, parts: list[PartDraft], record: int,
        metadata: dict[str, Any] | None = None,
    ) -> MessageDraft:
        """Add a message.

        Args:
            name: Its id; without one it is named by the message before it.
            role: Who said it.
            parts: Its parts.
            record: The number of its record.
            metadata: What else is known of it.
        """
        if name is None or name in self._names:
            self._since += 1
            name = f"{self._last}:{self._since}"
        else:
            self._last, self._since = name, 0
        self._names.add(name)
        draft = MessageDraft(name, role, self.at, self.at, metadata or {}, parts)
        if not parts:
            draft.records = (record,)
        self.found.append(draft)
        self.know(draft, parts)
        return draft

    def know(self, owner: MessageDraft, parts: list[PartDraft]) -> None:
        """Let results find the calls among a message's parts."""
        for part in parts:
            if part.tool_call_id is not None:
                self._calls[part.tool_call_id] = part, owner
                self._early.join(part.tool_call_id, part, owner, self.found)

    def notice(self, text: str, record: int) -> MessageDraft:
        """Add words of the program itself."""
        part = data_part("event", {"name": "notice", "details": text}, self.at, record)
        return self.add(None, "system", [part], record)

    def compaction(
        self, name: str | None, summary: object, record: int, *, auto: bool = False
    ) -> None:
        """Add a summary in whose place earlier messages are for the model.

        Args:
            name: The record's id.
            summary: The words.
            record: The number of the record.
            auto: Whether the program compacted by itself.
        """
        body = {"summary": string(summary) or "", "tail_start_id": None, "auto": auto}
        part = data_part("compaction", body, self.at, record)
        self.add(name, "system", [part], record, {"compaction": True})

    def settle(
        self, call_id: object, ended: Ended, output: Any, record: int,
        extra: dict[str, Any] | None = None,
    ) -> None:
        """Put a result into the part of its call; a second one is left out.

        Args:
            call_id: The call's id.
            ended: How it ended.
            output: What the tool gave: a text, or any JSON.
            record: The number of the result's record.
            extra: What else is known of the result.
        """
        known = self._calls.get(string(call_id) or "")
        if known is None:
            part = call_part(None, string(call_id) or f"{self._last}:result", None, self.at, record)
            owner = self.add(None, "assistant", [part], record)
            self._early.hold(part.tool_call_id or "", part, owner)
        else:
            part, owner = known
        text = output if isinstance(output, str) else ""
        if ended == "denied":
            output = text
        elif ended != "ok":
            output = text or (ended if output in (None, "") else str(output))
        settle_call(part, ended, output, self.at, record, extra)
        owner.updated_at = max(owner.updated_at, part.updated_at)

    def open_calls(self, owner: MessageDraft) -> list[PartDraft]:
        """Return the calls of a message that have no result."""
        return [part for part in owner.parts if part.tool_state == "input-available"]


def time_ms(stamp: object) -> int | None:
    """Return a time as epoch ms, of which what is smaller is cut off; None where it is none."""
    return epoch_ms(_FRACTION.sub(r"\1", stamp) if isinstance(stamp, str) else stamp)


def call_of(name: object, call_id: str, given: object, at: int, record: int) -> PartDraft:
    """Return a tool call; what the model says that it is for is apart from its input.

    Args:
        name: The tool's name.
        call_id: The call's id.
        given: Its input.
        at: Epoch ms.
        record: The number of its record.
    """
    if isinstance(given, dict) and _PURPOSE in given:
        part = call_part(name, call_id, {key: value for key, value in given.items()
                                         if key != _PURPOSE}, at, record)  # fmt: skip
        part.data["callProviderMetadata"] = {KIND: {"purpose": given[_PURPOSE]}}
        return part
    return call_part(name, call_id, given, at, record)


def output_of(blocks: list[tuple[str, Any]], at: int, record: int) -> tuple[Any, dict[str, Any]]:
    """Return a result's output, and its exit code where it is a command's.

    Args:
        blocks: Kind (``text``, ``json``, ``image``) and value of each.
        at: Epoch ms.
        record: The number of its record.
    """
    extra: dict[str, Any] = {}
    shown: list[Any] = []
    for kind, value in blocks:
        bag = mapping(value)
        if kind == "json" and "exit_status" in bag:
            code = _EXIT.fullmatch(str(bag["exit_status"]))
            extra |= {"exit_code": int(code[1])} if code else {}
            texts = (bag.get("stdout"), bag.get("stderr"))
            shown.append("\n".join(text for text in texts if isinstance(text, str) and text))
        elif kind == "image":
            shown.append(image_part(value, at, record).data)
        else:
            shown.append(value)
    if all(isinstance(each, str) for each in shown):
        return "\n".join(shown), extra
    if len(shown) == 1:
        return shown[0], extra
    return [{"type": "text", "text": one} if isinstance(one, str) else one for one in shown], extra


def image_part(image: object, at: int, record: int) -> PartDraft:
    """Return an image as a file part; what is none as it is.

    Args:
        image: ``{format, source}``, of which the source has the bytes as a list of numbers.
        at: Epoch ms.
        record: The number of its record.
    """
    given, source = mapping(image), mapping(mapping(image).get("source"))
    numbers = source.get("data", source.get("Bytes"))
    kind = (string(given.get("format")) or "png").lower()
    try:
        body = base64.b64encode(bytes(numbers)).decode() if isinstance(numbers, list) else None
    except (ValueError, TypeError):
        body = None
    if body is None:
        return data_part("event", {"name": "image", "details": image}, at, record)
    media = f"image/{'jpeg' if kind == 'jpg' else kind}"
    url = f"data:{media};base64,{body}"
    data = {"type": "file", "mediaType": media, "url": url}
    return PartDraft("file", data, at, at, records=(record,))


def credits_of(spent: object, amount: str) -> float:
    """Return the sum of credits in a list of what was spent.

    Args:
        spent: The list.
        amount: The name of the member that has the number.
    """
    each = map(mapping, spent if isinstance(spent, list) else ())
    found = (one.get(amount) for one in each if one.get("unit") == _CREDIT)
    return sum(float(one) for one in found if isinstance(one, int | float) and 0 <= one < 1e9)


def tokens_of(counts: dict[str, Any]) -> dict[str, int] | None:
    """Return the counts of a turn as our buckets; None where all are 0, which means unknown."""
    used = {
        "input": number(counts.get("input_token_count")),
        "output": number(counts.get("output_token_count")), "reasoning": 0,
        "cache_read": number(counts.get("cache_read_input_token_count")),
        "cache_write": number(counts.get("cache_write_input_token_count")),
    }  # fmt: skip
    used = {key: max(0, value) for key, value in used.items()}
    return used if any(used.values()) else None


def model_of(name: object) -> dict[str, Any] | None:
    """Return a model by its name; None without one."""
    model = string(name)
    return {"provider_id": "kiro", "model_id": model} if model is not None else None


def last_model(messages: list[MessageDraft], chosen: object) -> dict[str, Any] | None:
    """Return the model that answered last, else the one that is chosen."""
    found = [one.metadata["model"] for one in messages if "model" in one.metadata]
    return found[-1] if found else model_of(chosen)
