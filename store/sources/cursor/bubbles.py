"""The messages of a chat in Cursor's editor, from its bubbles.

Source: the Cursor format page, section 2. An answer is many bubbles: a thought, a text, each call
with its result. Words or a thought after a call are the model's next answer.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from store.sources.base.databases import decoded
from store.sources.base.drafts import MessageDraft, PartDraft
from store.sources.base.plain_parts import data_part, reasoning_part, text_part
from store.sources.base.uris import path_of_uri
from store.sources.base.values import EARLIEST_MS, epoch_ms, mapping, number, string
from store.sources.cursor.calls import Contents, is_call, part_of

PROVIDER = "cursor"
_USER, _SUMMARY = 1, 22
_AUTO = "default"
"""Names no model: Cursor chooses one."""
_ENDS = ("clientRpcSendTime", "clientSettleTime", "clientEndTime")


def model_of(name: object) -> dict[str, Any] | None:
    """Return a model by its name; None where Cursor chose it."""
    model = string(name)
    return {"provider_id": PROVIDER, "model_id": model} if model and model != _AUTO else None


def time_of(bubble: dict[str, Any]) -> int | None:
    """Return when a bubble was made, epoch ms.

    Where it does not say so, by its timing, whose start may be a duration.
    """
    at = epoch_ms(bubble.get("createdAt"))
    if at is not None:
        return at
    timing = mapping(bubble.get("timingInfo"))
    start = timing.get("clientStartTime")
    if not isinstance(start, int | float) or isinstance(start, bool):
        return None
    if start >= EARLIEST_MS:
        return epoch_ms(start)
    end = next((timing[key] for key in _ENDS if epoch_ms(timing.get(key)) is not None), None)
    return epoch_ms(end - start) if isinstance(end, int | float) and start >= 0 else None


def words_of(bubble: dict[str, Any]) -> str:
    """Return a bubble's text; where it is empty, that of its rich text."""
    text = bubble.get("text")
    if isinstance(text, str) and text:
        return text
    rich = mapping(decoded(bubble.get("richText")))
    return "\n".join(map(_line, _children(mapping(rich.get("root")))))


def _children(node: dict[str, Any]) -> list[dict[str, Any]]:
    given = node.get("children")
    return [mapping(each) for each in given] if isinstance(given, list) else []


def _line(node: dict[str, Any]) -> str:
    if node.get("type") == "linebreak":
        return "\n"
    text = node.get("text")
    own = text if isinstance(text, str) else ""
    return own + "".join(map(_line, _children(node)))


class Messages:
    """The messages of one chat, as its bubbles are taken in order.

    Attributes:
        found: The drafts.
        by_bubble: The message that each bubble is in.
        nameless: Bubbles with data of a call that is none.
        marks: Marks of compactions.
    """

    def __init__(self, created: int, contents: Contents) -> None:
        """Start without bubbles.

        Args:
            created: When the chat was begun, epoch ms.
            contents: Gives the texts that edits refer to.
        """
        self.found: list[MessageDraft] = []
        self.by_bubble: dict[str, MessageDraft] = {}
        self.nameless = self.marks = 0
        self._at, self._contents = created, contents
        self._answer: MessageDraft | None = None
        self._called = False

    def take(self, name: str, bubble: dict[str, Any], record: int) -> None:
        """Take the next bubble.

        Args:
            name: Its id.
            bubble: What it says.
            record: The number of its record.
        """
        at = self._at = time_of(bubble) or self._at
        if bubble.get("type") == _USER:
            self._answer = None
            parts = [*prompt_parts(bubble, at, record)]
            prompt = MessageDraft(name, "user", at, at, {"origin": "human"}, parts,
                                  records=() if parts else (record,))  # fmt: skip
            self.found.append(prompt)
            self.by_bubble[name] = prompt
        elif bubble.get("capabilityType") == _SUMMARY:
            self.marks += 1
            self.add_summary(name, "", at, record)
        else:
            self._take_answer(name, bubble, at, record)

    def add_summary(self, name: str, text: str, at: int, record: int) -> MessageDraft:
        """Add the line of a compaction.

        Args:
            name: The message's id.
            text: The summary; empty where Cursor's server has it.
            at: Epoch ms.
            record: The number of its record.
        """
        self._answer = None
        body = {"summary": text, "tail_start_id": None, "auto": bool(text)}
        draft = MessageDraft(name, "system", at, at, {"compaction": True},
                             [data_part("compaction", body, at, record)])  # fmt: skip
        self.found.append(draft)
        self.by_bubble[name] = draft
        return draft

    def _take_answer(self, name: str, bubble: dict[str, Any], at: int, record: int) -> None:
        parts = answer_parts(name, bubble, at, record, self._contents)
        former = mapping(bubble.get("toolFormerData"))
        self.nameless += bool(former) and not is_call(former)
        usage = _usage(bubble)
        if not parts and usage is None:
            return
        called = any(part.tool_call_id is not None for part in parts)
        if self._answer is None or (parts and self._called and not called):
            self._answer = MessageDraft(name, "assistant", at, at)
            self.found.append(self._answer)
            self._called = False
        answer = self._answer
        self._called = self._called or called
        answer.parts += parts
        if not parts:
            answer.records = (*answer.records, record)
        answer.updated_at = max(answer.updated_at, at)
        self.by_bubble[name] = answer
        model = model_of(mapping(bubble.get("modelInfo")).get("modelName"))
        if model is not None:
            answer.metadata["model"] = model
        if usage is not None:
            before = answer.metadata.get("usage", {})
            answer.metadata["usage"] = {key: before.get(key, 0) + count
                                        for key, count in usage.items()}  # fmt: skip


def answer_parts(
    name: str, bubble: dict[str, Any], at: int, record: int, contents: Contents
) -> list[PartDraft]:
    """Return what a bubble of an answer holds: a thought, a text, a call.

    Args:
        name: The bubble's id.
        bubble: What it says.
        at: When it was made, epoch ms.
        record: The number of its record.
        contents: Gives the texts that edits refer to.
    """
    parts: list[PartDraft] = []
    given = bubble.get("thinking")
    thinking = {"text": given} if isinstance(given, str) else mapping(given)
    if string(thinking.get("text")) or string(thinking.get("signature")):
        kept = {"signature": thinking["signature"]} if string(thinking.get("signature")) else {}
        thought = reasoning_part(thinking.get("text"), at, record, PROVIDER, kept)
        took = number(bubble.get("thinkingDurationMs"))
        if took > 0:
            told = thought.data.get("providerMetadata", {})
            thought.data["providerMetadata"] = {**told, "backscroll": {"duration_ms": took}}
        parts.append(thought)
    text = bubble.get("text")
    if isinstance(text, str) and text:
        parts.append(text_part(text, at, record))
    former = mapping(bubble.get("toolFormerData"))
    if is_call(former):
        parts.append(part_of(former, name, at, record, contents))
    error = mapping(bubble.get("errorDetails"))
    if error:
        message = string(error.get("message")) or string(error.get("title")) or "failed"
        parts.append(data_part("error", {"message": message}, at, record))
    return parts


def prompt_parts(bubble: dict[str, Any], at: int, record: int) -> Iterator[PartDraft]:
    """Yield what a person said and attached.

    Args:
        bubble: The bubble.
        at: When it was sent, epoch ms.
        record: The number of its record.
    """
    text = words_of(bubble)
    if text:
        yield text_part(text, at, record)
    context = mapping(bubble.get("context"))
    seen: set[str] = set()
    for given in (bubble.get("images"), context.get("selectedImages")):
        for nth, image in enumerate(map(mapping, given if isinstance(given, list) else ())):
            name = string(image.get("uuid")) or string(image.get("path")) or str(nth)
            if name not in seen:
                seen.add(name)
                yield _image(image, at, record)
    files = context.get("fileSelections")
    for item in map(mapping, files if isinstance(files, list) else ()):
        path = place_of(item.get("uri"))
        if path is not None:
            details = {"name": path.rpartition("/")[2], "content": path}
            yield data_part("event", {"name": "context", "details": details}, at, record)


def _image(image: dict[str, Any], at: int, record: int) -> PartDraft:
    body, path = image.get("data"), string(image.get("path"))
    media = string(image.get("mimeType")) or "image/png"
    if isinstance(body, str) and body:
        url = body if body.startswith("data:") else f"data:{media};base64,{body}"
    else:
        url = f"file://{path}" if path else ""
    file = {"type": "file", "mediaType": media, "url": url}
    return PartDraft("file", file, at, at, records=(record,))


def place_of(uri: object) -> str | None:
    """Return the path of a file's URI, as text or as an object; else the URI itself."""
    if isinstance(uri, str):
        return path_of_uri(uri) or string(uri)
    given = mapping(uri)
    if given.get("scheme") in (None, "file"):
        return string(given.get("fsPath")) or string(given.get("path"))
    return string(given.get("external")) or string(given.get("path"))


def _usage(bubble: dict[str, Any]) -> dict[str, int] | None:
    """Return what is counted on a bubble: mostly on the last one of a turn."""
    count = mapping(bubble.get("tokenCount"))
    given, said = number(count.get("inputTokens")), number(count.get("outputTokens"))
    if given <= 0 and said <= 0:
        return None
    return {"input": max(0, given), "output": max(0, said), "reasoning": 0, "cache_read": 0,
            "cache_write": 0}  # fmt: skip
