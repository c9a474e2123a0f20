"""The lines of a conversation, of its branches and of its whole history, as messages.

Source: the gptme format page, sections "conversation.jsonl", "Usage" and "Branches". A line has no
id: role, time and content say which one it is. The order is that of the file.
"""

from __future__ import annotations

import base64
import hashlib
import mimetypes
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple

from store.sources.base.drafts import MessageDraft, PartDraft, Role
from store.sources.base.json_lines import Record
from store.sources.base.plain_parts import (
    call_part,
    data_part,
    reasoning_part,
    settle_call,
    text_part,
)
from store.sources.base.values import (
    iso_ms,
    mapping,
    named_model,
    number,
    plausible_ms,
    string,
)
from store.sources.gptme.content import Call, calls_of, thoughts_of

_AUTOMATIC = "<system>"
_QUIET = re.compile(r"<(?:budget:|system_warning)")
_COMMAND = re.compile(r"/([a-z][a-z_-]*)(?:[ \t]+(.*))?", re.S)
_INTERRUPTED = "^C Interrupted"
_DECLINED = "Declined by user"
_LONGEST_DENIAL = 200
_CODE = re.compile(r"^Return code: (-?\d{1,9})\s*$|\(code (-?\d{1,9})\)", re.M)
_BLOCK = re.compile(r"^(`{3,})[^\n]*\n.*?^\1`*[ \t]*$", re.M | re.S)
_LARGEST_FILE = 16 * 1024 * 1024

Ended = Literal["ok", "error", "denied"]


class Line(NamedTuple):
    """A line of any of a conversation's files.

    Attributes:
        key: Which message it is, the same in each file that has it.
        at: Epoch ms.
        record: The number of its record.
        hidden_at: When it was taken back, epoch ms; 0 for those that were not.
    """

    key: str
    data: dict[str, Any]
    at: int
    record: int
    hidden_at: int = 0

    @property
    def content(self) -> str:
        """Its text."""
        content = self.data.get("content")
        return content if isinstance(content, str) else ""

    @property
    def is_quiet(self) -> bool:
        """Whether it is a part of the prompt of the program, or a figure for the model."""
        return self.data.get("role") == "system" and (
            self.data.get("hide") is True or _QUIET.match(self.content) is not None)

    @property
    def is_command(self) -> bool:
        """Whether it is a command for the program, such as ``/undo 2``."""
        return self.data.get("role") == "user" and (
            _COMMAND.fullmatch(self.content.strip()) is not None)

    @property
    def is_result(self) -> bool:
        """Whether it may be the result of a tool."""
        return self.data.get("role") == "system" and not self.is_quiet and (
            self.data.get("ui_only") is not True)


def lines_of(records: Sequence[Record], zone: int | None, first: int = 0) -> list[Line]:
    """Return the lines of a file that are messages.

    Args:
        records: Its records.
        zone: The zone of their times, in seconds; None for that of this machine.
        first: What is added to the numbers of their records.
    """
    found: list[Line] = []
    at = 0
    for record in records:
        data = record.data
        if string(data.get("role")) is None:
            continue
        at = time_ms(data.get("timestamp"), zone) or at
        words = "\0".join(str(data.get(key)) for key in ("role", "timestamp", "content"))
        digest = hashlib.blake2b(words.encode("utf-8", "surrogatepass"), digest_size=8).hexdigest()
        found.append(Line(digest, data, at, first + record.number))
    return found


def time_ms(stamp: object, zone: int | None) -> int | None:
    """Return a local time as epoch ms; None where it is none.

    Args:
        stamp: The time, which names no zone.
        zone: Its zone, in seconds; None for that of this machine.
    """
    if not isinstance(stamp, str):
        return None
    if zone is None or stamp.endswith("Z") or re.search(r"[+-]\d\d:?\d\d\Z", stamp):
        return iso_ms(stamp)
    at = iso_ms(stamp, utc=True)
    return None if at is None else plausible_ms(at - zone * 1000)


@dataclass(slots=True)
class Talk:
    """The messages of lines.

    Attributes:
        found: The drafts, in order.
        stored: The copies of files, by the beginning of their names.
        numbers: The numbers of the records that say that they are there.
    """

    stored: Mapping[str, bytes]
    numbers: Mapping[str, int]
    found: list[MessageDraft] = field(default_factory=list)
    _names: set[str] = field(default_factory=set)

    def take(
        self, lines: Sequence[Line], forgotten: frozenset[str], summaries: frozenset[str]
    ) -> None:
        """Take the lines.

        Args:
            lines: In order.
            forgotten: The keys of those that the model does not get any more.
            summaries: The keys of those with which it goes on after a compaction.
        """
        place = 0
        while place < len(lines):
            line = lines[place]
            before = len(self.found)
            place += 1
            if line.key in summaries:
                self._compaction(line)
            elif line.data.get("role") == "assistant":
                results: list[Line] = []
                while (
                    place < len(lines) and lines[place].is_result
                    and lines[place].key not in summaries
                    and lines[place].hidden_at == line.hidden_at
                ):
                    results.append(lines[place])
                    place += 1
                self._answer(line, results)
            elif line.data.get("role") == "user":
                self._asked(line)
            else:
                self._told(line)
            for message in self.found[before:]:
                if line.hidden_at:
                    message.metadata["hidden_at"] = line.hidden_at
                if line.key in forgotten and message.role != "system":
                    message.metadata.setdefault("backscroll", {})["compacted_away"] = True

    def _compaction(self, line: Line) -> None:
        body = {"summary": line.content, "tail_start_id": None, "auto": False}
        part = data_part("compaction", body, line.at, line.record)
        self._add(line, "system", [part]).metadata["compaction"] = True

    def _add(self, line: Line, role: Role, parts: list[PartDraft]) -> MessageDraft:
        name, nth = line.key, 1
        while name in self._names:
            name, nth = f"{line.key}:{nth}", nth + 1
        self._names.add(name)
        draft = MessageDraft(name, role, line.at, line.at, {}, parts)
        if not parts:
            draft.records = (line.record,)
        self.found.append(draft)
        return draft

    def _told(self, line: Line) -> None:
        name = "system prompt" if line.is_quiet else "notice"
        event = {"name": name, "details": line.content}
        parts = [data_part("event", event, line.at, line.record)]
        self._add(line, "system", [*parts, *self._files(line)])

    def _asked(self, line: Line) -> None:
        text = text_part(line.content, line.at, line.record)
        asked = self._add(line, "user", [text, *self._files(line)])
        command = _COMMAND.fullmatch(line.content.strip())
        if line.content.startswith(_AUTOMATIC):
            asked.metadata["origin"] = "meta"
        elif command is not None:
            asked.metadata["origin"] = "command"
            asked.metadata["backscroll"] = {
                "command": {"name": f"/{command[1]}", "args": command[2] or ""}}
        else:
            asked.metadata["origin"] = "human"

    def _files(self, line: Line) -> list[PartDraft]:
        """Return the files of a message: of those with a copy the bytes of that time."""
        given, hashes = line.data.get("files"), mapping(line.data.get("file_hashes"))
        parts: list[PartDraft] = []
        for path in given if isinstance(given, list) else ():
            if not isinstance(path, str):
                continue
            name = re.split(r"[/\\]", path)[-1]
            media = mimetypes.guess_type(name)[0] or "application/octet-stream"
            digest = string(hashes.get(path)) or string(hashes.get(name))
            kept = {"providerMetadata": {"backscroll": {"path": path}}, "filename": name}
            if digest is None:
                url = path if "://" in path else f"file://{path}"
            else:
                event = {"name": "file", "details": {"path": path}}
                parts.append(data_part("event", event, line.at, line.record))
                body = self.stored.get(digest)
                if body is None or len(body) > _LARGEST_FILE:
                    continue
                url = f"data:{media};base64,{base64.b64encode(body).decode()}"
            data = {"type": "file", "mediaType": media, "url": url, **kept}
            record = line.record if digest is None else self.numbers[digest]
            parts.append(PartDraft("file", data, line.at, line.at, records=(record,)))
        return parts

    def _answer(self, line: Line, results: list[Line]) -> None:
        thoughts, content = thoughts_of(line.content)
        calls = _run(calls_of(content), results, mapping(line.data.get("metadata")))
        at, record = line.at, line.record
        parts = [reasoning_part(words, at, record) for words in thoughts if words]
        end = 0
        made: list[tuple[Call, PartDraft]] = []
        draft = self._add(line, "assistant", [])
        for nth, call in enumerate(calls):
            _put_text(parts, content[end : call.start], at, record)
            call_id = call.id or f"{draft.source_id}:{nth}"
            part = call_part(call.name, call_id, call.input, at, record)
            parts.append(part)
            made.append((call, part))
            end = call.end
        _put_text(parts, content[end:], at, record)
        draft.parts = parts
        _describe(draft, line)
        for result in _settled(made, results):
            self._told(result)
        draft.updated_at = max([at, *(part.updated_at for _, part in made)])


def _put_text(parts: list[PartDraft], text: str, at: int, record: int) -> None:
    if text.strip():
        parts.append(text_part(text.strip("\n"), at, record))


def _run(calls: list[Call], results: list[Line], metadata: dict[str, Any]) -> list[Call]:
    """Return the calls that were run; other fenced blocks are code."""
    timed = mapping(mapping(metadata.get("timings")).get("tool_ms_by_name"))
    free = sum(string(result.data.get("call_id")) is None for result in results)
    found: list[Call] = []
    for call in calls:
        if call.stated or call.name in timed or free > 0:
            found.append(call)
            free -= call.id is None
    return found


def _settled(made: list[tuple[Call, PartDraft]], results: list[Line]) -> list[Line]:
    """Put results into their calls, by id or in order; return those that are of none.

    Args:
        made: The calls of an answer, with their parts.
        results: The lines that follow it.
    """
    waiting = [part for call, part in made if call.id is None]
    texts: dict[int, list[Line]] = {}
    others: list[Line] = []
    for result in results:
        named = string(result.data.get("call_id"))
        owner = next((part for _, part in made if part.tool_call_id == named), None)
        if owner is None and named is None and waiting:
            owner = waiting[0]
            if len(waiting) > 1:
                waiting.pop(0)
        if owner is None and named is None and made and all(call.id for call, _ in made):
            owner = next((part for _, part in made if id(part) not in texts), None)
        if owner is None:
            others.append(result)
        else:
            texts.setdefault(id(owner), []).append(result)
    for _, part in made:
        if id(part) in texts:
            _settle(part, texts[id(part)])
    return others


def _settle(part: PartDraft, results: list[Line]) -> None:
    text = "\n".join(line.content for line in results)
    last = results[-1]
    plain = _BLOCK.sub("", text)
    codes = [int(one or other) for one, other in _CODE.findall(plain)]
    extra: dict[str, Any] = {"exit_code": codes[0]} if codes else {}
    ended: Ended = "error" if text.startswith("Error") or any(codes) else "ok"
    if _DECLINED in text[:_LONGEST_DENIAL]:
        ended = "denied"
    part.records = tuple(dict.fromkeys((*part.records, *(line.record for line in results))))
    settle_call(part, ended, text, last.at, last.record, extra)


def _describe(draft: MessageDraft, line: Line) -> None:
    """Add model, usage and cost of an answer, and whether it was interrupted."""
    metadata = mapping(line.data.get("metadata"))
    model = named_model(metadata.get("model") or metadata.get("resolved_model"))
    if model is not None:
        draft.metadata["model"] = model
    usage = mapping(metadata.get("usage"))
    output, thought = number(usage.get("output_tokens")), number(usage.get("reasoning_tokens"))
    thought = min(max(thought, 0), max(output, 0))
    used = {
        "input": number(usage.get("input_tokens")), "output": output - thought,
        "reasoning": thought, "cache_read": number(usage.get("cache_read_tokens")),
        "cache_write": number(usage.get("cache_creation_tokens")),
    }  # fmt: skip
    used = {key: max(0, value) for key, value in used.items()}
    if any(used.values()):
        draft.metadata["usage"] = used
    cost = metadata.get("cost")
    if isinstance(cost, int | float) and 0 < cost < 1e9:
        draft.metadata["cost_usd"] = float(cost)
    if line.content.rstrip().endswith(_INTERRUPTED):
        draft.metadata["backscroll"] = {"aborted_at": line.at, "finish_reason": "interrupted"}
