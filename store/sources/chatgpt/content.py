"""Content of ChatGPT's messages to AI SDK parts, and results to their calls.

Source: the page of chat exports, "ChatGPT".
"""

from __future__ import annotations

import mimetypes
import re
from base64 import b64encode
from typing import Any

import orjson

from store.sources.base.chat_exports import Conversation
from store.sources.base.drafts import PartDraft
from store.sources.base.plain_parts import data_part, settle_call, text_part
from store.sources.base.values import mapping, string

_CITED = re.compile(
    r"[ \t]*(?:\ue200[^\ue201]{0,2000}\ue201|[\ue200-\ue20f]+|【[^】\n]{0,80}†[^】\n]{0,80}】)"
)
"""Marks of citations: the newer ones in private-use characters, and the older ones."""
_SPOKEN = ("audio_asset_pointer", "real_time_user_audio_video_asset_pointer")
_PAGES = ("tether_quote", "sonic_webpage")
_SHORTEST = 5
"""Characters of the shortest beginning of a name by which a file is looked for."""
_TEXTS = ("text", "multimodal_text", "code", "execution_output")
_AGGREGATED = {
    "success": "ok", "failed_with_in_kernel_exception": "error", "cancelled": "interrupted",
}  # fmt: skip
"""What a run of Python ended with, in our words; the message's own status tells of delivery."""


class Reader:
    """Makes parts of content.

    Attributes:
        at: When the message was written, epoch ms.
        record: The number of its record.
    """

    def __init__(self, conversation: Conversation, at: int, record: int, files: int) -> None:
        """Begin a message.

        Args:
            conversation: Holds the files.
            at: When the message was written, epoch ms.
            record: The number of its record.
            files: The number of the first record of a file.
        """
        self._conversation, self.at, self.record = conversation, at, record
        self._files = files

    def parts(self, message: dict[str, Any]) -> list[PartDraft]:
        """Return the parts of a message."""
        content = mapping(message.get("content"))
        metadata = mapping(message.get("metadata"))
        kind = string(content.get("content_type")) or "content"
        if kind in ("text", "multimodal_text"):
            found = self._mixed(content)
        elif kind == "code":
            language = string(content.get("language")) or ""
            fence = "" if language in ("unknown", "json") else language
            text = string(content.get("text"))
            found = [self._text(f"```{fence}\n{text}\n```")] if text else []
        elif kind == "execution_output":
            text = string(content.get("text"))
            found = [self._text(text)] if text else []
        elif kind == "thoughts":
            found = self._thoughts(content)
        elif kind == "user_editable_context":
            said = (string(content.get(key)) for key in ("user_profile", "user_instructions"))
            found = [self._text("\n\n".join(filter(None, said)))]
        elif kind == "system_error":
            words = string(content.get("text")) or string(content.get("name")) or kind
            found = [data_part("error", {"message": words}, self.at, self.record)]
        else:
            found = [self.event(kind, content)]
        return found + self._cited(metadata) + self._uploads(metadata, content)

    def output(self, message: dict[str, Any]) -> Any:
        """Return what a tool said: a text, or a page; see ``pictures`` for its files."""
        content = mapping(message.get("content"))
        kind = content.get("content_type")
        if kind in _PAGES:
            keys = ("title", "url", "domain", "text", "snippet")
            return {key: content[key] for key in keys if string(content.get(key))}
        if kind == "tether_browsing_display":
            return string(content.get("result")) or string(content.get("summary")) or ""
        if kind in ("execution_output", "code", "system_error"):
            return string(content.get("text")) or string(content.get("name")) or ""
        if kind not in _TEXTS:
            return content
        return "".join(self._words(piece) for piece in _pieces(content))

    def pictures(self, message: dict[str, Any]) -> list[PartDraft]:
        """Return the files that a tool made, and what is neither a file nor words."""
        content = mapping(message.get("content"))
        mixed = content.get("content_type") == "multimodal_text"
        return [part for part in self._mixed(content) if part.type != "text"] if mixed else []

    def _words(self, piece: object) -> str:
        if isinstance(piece, str):
            return piece
        bag = mapping(piece)
        spoken = bag.get("content_type") in ("text", "audio_transcription")
        return string(bag.get("text")) or "" if spoken else ""

    def _mixed(self, content: dict[str, Any]) -> list[PartDraft]:
        """Return texts, spoken words and pictures; texts that follow each other are one."""
        found: list[PartDraft] = []
        words: list[str] = []

        def end() -> None:
            text = "".join(words)
            words.clear()
            if text:
                found.append(self._text(_CITED.sub("", text)))

        for piece in _pieces(content):
            bag = mapping(piece)
            kind = bag.get("content_type")
            if isinstance(piece, str) or kind in ("text", "audio_transcription"):
                words.append(self._words(piece))
            elif bag and kind not in _SPOKEN:
                end()
                found += self._pointed(bag)
            elif bag:
                end()
                pointer = mapping(bag.get("audio_asset_pointer")) or bag
                found.append(self._sound(pointer))
        end()
        return found

    def _text(self, text: str) -> PartDraft:
        return text_part(text, self.at, self.record)

    def event(self, name: str, details: Any) -> PartDraft:
        """Return a part that shows by name what has no kind of part of its own."""
        return data_part("event", {"name": name, "details": details}, self.at, self.record)

    def _pointed(self, bag: dict[str, Any]) -> list[PartDraft]:
        """Return a picture; where the export lacks its file, what is said of it."""
        pointer = string(bag.get("asset_pointer"))
        if pointer is None:
            return [self.event(str(bag.get("content_type") or "part"), bag)]
        return self._file(pointer, None, "picture, not in the export", bag)

    def _sound(self, bag: dict[str, Any]) -> PartDraft:
        kept = {key: bag[key] for key in ("asset_pointer", "format", "size_bytes") if key in bag}
        return self.event("sound", kept)

    def _file(
        self, pointer: str, media_type: str | None, lacking: str, bag: dict[str, Any]
    ) -> list[PartDraft]:
        """Return a file of the export.

        Args:
            pointer: Ends with how its name begins.
            media_type: Its type, where known.
            lacking: Names the event that stands for it where the export lacks it.
            bag: The details of that.
        """
        begin = pointer.rpartition("//")[2]
        found = self._conversation.file(begin) if len(begin) > _SHORTEST else None
        if found is None:
            had = len(begin) > _SHORTEST and self._conversation.had_file(begin)
            return [] if had else [self.event(lacking, bag)]
        name, body = found
        own = name.rpartition("/")[2]
        media_type = media_type or mimetypes.guess_type(own)[0] or "application/octet-stream"
        data = {
            "type": "file", "mediaType": media_type, "filename": own,
            "url": f"data:{media_type};base64,{b64encode(body).decode()}",
            "providerMetadata": {"chatgpt": {"pointer": pointer, "file": name}},
        }  # fmt: skip
        records = self.record, self._files + len(self._conversation.files) - 1
        return [PartDraft("file", data, self.at, self.at, records=records)]

    def _thoughts(self, content: dict[str, Any]) -> list[PartDraft]:
        given = content.get("thoughts")
        found = []
        for thought in map(mapping, given if isinstance(given, list) else ()):
            summary = string(thought.get("summary"))
            text = string(thought.get("content")) or summary or ""
            data: dict[str, Any] = {"type": "reasoning", "text": text, "state": "done"}
            if summary:
                data["providerMetadata"] = {"chatgpt": {"summary": summary}}
            found.append(
                PartDraft("reasoning", data, self.at, self.at, records=(self.record,)))
        return found

    def _cited(self, metadata: dict[str, Any]) -> list[PartDraft]:
        """Return the pages that a text cites, each once; the marks in it are taken out."""
        given = metadata.get("content_references")
        older = metadata.get("citations")
        pages: dict[str, str] = {}
        for each in map(mapping, given if isinstance(given, list) else ()):
            items = each.get("items")
            for item in map(mapping, items if isinstance(items, list) else [each]):
                if url := string(item.get("url")):
                    pages.setdefault(url, string(item.get("title")) or url)
        for each in map(mapping, older if isinstance(older, list) else ()):
            page = mapping(each.get("metadata"))
            if url := string(page.get("url")):
                pages.setdefault(url, string(page.get("title")) or url)
        return [
            PartDraft("source-url", {
                "type": "source-url", "sourceId": f"{nth}", "url": url, "title": title,
            }, self.at, self.at, records=(self.record,))
            for nth, (url, title) in enumerate(pages.items())
        ]  # fmt: skip

    def _uploads(self, metadata: dict[str, Any], content: dict[str, Any]) -> list[PartDraft]:
        given = metadata.get("attachments")
        shown = [str(mapping(piece).get("asset_pointer")) for piece in _pieces(content)]
        found: list[PartDraft] = []
        for each in map(mapping, given if isinstance(given, list) else ()):
            name = string(each.get("id")) or ""
            if name and any(pointer.endswith(name) for pointer in shown):
                continue
            media_type = string(each.get("mime_type"))
            found += self._file(name, media_type, "file", each)
        return found

    def call(self, name: str, message: dict[str, Any]) -> PartDraft:
        """Return the call that an assistant's message to a tool is.

        Args:
            name: The message's id, which is the call's too.
            message: The message.
        """
        content = mapping(message.get("content"))
        text = self.output(message)
        given = decoded_object(text) if isinstance(text, str) else {"content": text}
        if given is None:
            given = {"code" if content.get("content_type") == "code" else "text": text}
        kind = f"tool-{string(message.get('recipient')) or 'unknown'}"
        data = {"type": kind, "toolCallId": name, "state": "input-available", "input": given}
        return PartDraft(kind, data, self.at, self.at, name, "input-available", (self.record,))

    def lone_result(self, name: str, message: dict[str, Any]) -> PartDraft:
        """Return a call for a result that has none.

        Args:
            name: The message's id.
            message: The tool's message.
        """
        tool = string(mapping(message.get("author")).get("name")) or "unknown"
        data = {"type": f"tool-{tool}", "toolCallId": name, "state": "input-available",
                "input": {}}  # fmt: skip
        part = PartDraft(f"tool-{tool}", data, self.at, self.at, name, "input-available", ())
        self.settle(part, message)
        return part

    def settle(self, part: PartDraft, message: dict[str, Any]) -> None:
        """Put a tool's message into the part of its call.

        Args:
            part: The call's part.
            message: The tool's message.
        """
        said = mapping(mapping(message.get("metadata")).get("aggregate_result")).get("status")
        status = _AGGREGATED.get(str(said), "ok" if said is None else "error")
        if mapping(message.get("content")).get("content_type") == "system_error":
            status = "error"
        output = self.output(message)
        if status != "ok" and not isinstance(output, str):
            output = orjson.dumps(output).decode()
        settle_call(part, status, output, self.at, self.record)


def _pieces(content: dict[str, Any]) -> list[Any]:
    """Return what content is made of, in order; some has only one text."""
    given = content.get("parts")
    return given if isinstance(given, list) else [content.get("text")]


def decoded_object(text: str) -> dict[str, Any] | None:
    """Return the object that a text is as JSON; None for any other text."""
    if not text.startswith("{"):
        return None
    try:
        value = orjson.loads(text)
    except orjson.JSONDecodeError:
        return None
    return value if isinstance(value, dict) else None
