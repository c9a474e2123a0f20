"""From the blocks of one session to its draft."""

from __future__ import annotations

import hashlib
import os
import re
from dataclasses import dataclass, field
from typing import Any

from store.sources.aider.blocks import Block, blocks_of
from store.sources.aider.regions import Region
from store.sources.base.drafts import LineageDraft, MessageDraft, PartDraft, SessionDraft
from store.sources.base.plain_parts import text_part
from store.sources.base.titles import first_prompt

KIND = "aider"
_COUNT = r"([\d.,]+)([kM]?)"
_TOKENS = re.compile(rf"^Tokens: {_COUNT} sent(.*?)(?:, {_COUNT} received)?\.(?:\s|$)", re.M)
_CACHED = re.compile(rf", {_COUNT} cache (hit|write)")
_COST = re.compile(r"Cost: \$([\d.]+) message")
_MODEL = re.compile(r"^(?:Main model|Model): (\S+)", re.M)
_VERSION = re.compile(r"^Aider v(\S+)", re.M)
_COMMIT = re.compile(r"^Commit ([0-9a-f]{7,40}) (.*)$", re.M)
_EDITED = re.compile(r"^Applied edit to (.+)$", re.M)
_FAILED = re.compile(r"^(?:litellm\.[\w.]*(?:Error|Exception|Timeout)|.*\bAPIError\b)", re.M)
_THOUGHT = re.compile(r"^<(thinking-content-[0-9a-f]{32})>\n(.*?)\n</\1>$", re.M | re.S)
_RESTORED = "Restored previous conversation history."
_INTERRUPTED = re.compile(r"^\^C", re.M)
_UNITS = {"": 1, "k": 1000, "M": 1_000_000}


def source_id(path: str, region: Region) -> str:
    """Return a session's id: its file and when it started."""
    place = hashlib.blake2b(path.encode("utf-8", "surrogateescape"), digest_size=4).hexdigest()
    return f"{place}-{region.name}"


@dataclass(slots=True)
class _Chat:
    """What a session's blocks add up to.

    Attributes:
        times: When each prompt was typed, those of this session, oldest first.
    """

    at: int
    times: list[tuple[int, str]]
    messages: list[MessageDraft] = field(default_factory=list)
    model: dict[str, Any] | None = None
    version: str | None = None
    restored: bool = False

    def take(self, block: Block, number: int) -> None:
        """Take the next block."""
        if block.kind == "user":
            self._prompt(block.text, number)
        elif block.kind == "tool":
            self._notice(block.text, number)
        elif block.kind == "assistant":
            self._answer(self._said(block.text, number), ())

    def _text(self, text: str, number: int) -> PartDraft:
        return text_part(text, self.at, number)

    def _said(self, text: str, number: int) -> list[PartDraft]:
        """Return an answer's parts: what was thought is between tags before the words."""
        parts: list[PartDraft] = []
        place = 0
        for thought in _THOUGHT.finditer(text):
            if before := text[place : thought.start()].strip():
                parts.append(self._text(before, number))
            data = {"type": "reasoning", "text": thought[2].strip(), "state": "done"}
            parts.append(PartDraft("reasoning", data, self.at, self.at, records=(number,)))
            place = thought.end()
        rest = text[place:].strip() if place else text
        return [*parts, self._text(rest, number)] if rest or not parts else parts

    def _add(self, role: str, metadata: dict[str, Any], parts: list[PartDraft]) -> MessageDraft:
        assert role in ("user", "assistant", "system")
        name = f"{len(self.messages)}-{role}"
        message = MessageDraft(name, role, self.at, self.at, metadata, parts)  # type: ignore[arg-type]
        self.messages.append(message)
        return message

    def _prompt(self, text: str, number: int) -> None:
        place = next((i for i, (_, words) in enumerate(self.times) if words == text.strip()), None)
        if place is not None:
            self.at = max(self.at, self.times[place][0])
            del self.times[: place + 1]
        metadata: dict[str, Any] = {"origin": "human"}
        if text.startswith("!"):
            metadata = {"origin": "shell", "backscroll": {"shell": text[1:].strip()}}
        elif re.match(r"/[a-z][\w-]*(\s|$)", text):
            name, _, given = text.partition(" ")
            command = {"name": name, "args": given.strip()}
            metadata = {"origin": "command", "backscroll": {"command": command}}
        self._add("user", metadata, [self._text(text, number)])

    def _answer(self, parts: list[PartDraft], records: tuple[int, ...]) -> MessageDraft:
        metadata: dict[str, Any] = {"model": self.model} if self.model else {}
        message = self._add("assistant", metadata, parts)
        message.records = records
        return message

    def _notice(self, text: str, number: int) -> None:
        model, version = _MODEL.search(text), _VERSION.search(text)
        if model:
            self.model = _model(model[1])
        if version:
            self.version = version[1]
        self.restored = self.restored or _RESTORED in text
        used = _TOKENS.search(text)
        if used:
            self._spend(text, used, number)
        if _INTERRUPTED.search(text) and self.messages:
            self.messages[-1].metadata.setdefault("backscroll", {})["aborted_at"] = self.at
        if _FAILED.search(text):
            part = self._data("error", {"message": text}, number)
        else:
            part = self._data("event", _event(text), number)
        self._add("system", {}, [part])

    def _data(self, kind: str, data: dict[str, Any], number: int) -> PartDraft:
        name = f"data-{kind}"
        whole = {"type": name, "data": data}
        return PartDraft(name, whole, self.at, self.at, records=(number,))

    def _spend(self, text: str, used: re.Match[str], number: int) -> None:
        """Give the counts to the answer before; to one without words where there is none."""
        last = next((m for m in reversed(self.messages) if m.role != "system"), None)
        if last is None or last.role != "assistant" or "usage" in last.metadata:
            last = self._answer([], (number,))
        told = _CACHED.findall(used[3])
        cached = {kind: _count(value, unit) for value, unit, kind in told}
        read, written = cached.get("hit", 0), cached.get("write", 0)
        last.metadata["usage"] = {
            "input": max(_count(used[1], used[2]) - read - written, 0),
            "output": _count(used[4], used[5]) if used[4] else 0,
            "reasoning": 0,
            "cache_read": read,
            "cache_write": written,
        }
        if used[2] or used[5] or any(unit for _, unit, _ in told):
            last.metadata.setdefault("backscroll", {})["usage_rounded"] = True
        cost = _COST.search(text, used.start())
        if cost:
            last.metadata["cost_usd"] = float(cost[1].rstrip("."))


def _count(value: str, unit: str) -> int:
    try:
        return round(float(value.replace(",", "").rstrip(".")) * _UNITS[unit])
    except ValueError:
        return 0


def _model(name: str) -> dict[str, Any]:
    provider, slash, model = name.partition("/")
    if slash:
        return {"provider_id": provider, "model_id": model}
    return {"provider_id": "unknown", "model_id": name}


def _event(text: str) -> dict[str, Any]:
    """Return what the program said, with the commit and the files that it names."""
    data: dict[str, Any] = {"name": "info", "details": text}
    files, commits = _EDITED.findall(text), _COMMIT.findall(text)
    if files:
        data["name"], data["files"] = "edited", files
    if commits:
        data["name"] = "committed"
        data["commits"] = [{"hash": name, "subject": subject} for name, subject in commits]
    return data


def _whole_lines(text: str) -> str:
    """Return a text without a last line that is not whole, where its rest says whose it is."""
    last = text.rpartition("\n")[2]
    return text.removesuffix(last) if last.startswith((">", "#")) else text


def session_draft(
    path: str,
    region: Region,
    body: bytes,
    typed: list[tuple[int, str]],
    before: Region | None,
) -> SessionDraft:
    """Return the draft of one session.

    Args:
        path: The history file; its folder is the session's.
        region: Where in the file it is.
        body: The bytes there.
        typed: The prompts that were typed in it, with their times.
        before: The session before it, which ``--restore-chat-history`` continues with.
    """
    chat = _Chat(region.started, list(typed))
    records: list[bytes] = []
    for number, block in enumerate(blocks_of(_whole_lines(body.decode("utf-8", "replace")))):
        records.append("\n".join(block.lines).encode())
        chat.take(block, number)
    draft = SessionDraft(
        source_id(path, region),
        path,
        KIND,
        created_at=region.started,
        updated_at=chat.at,
        workspace_root=os.path.dirname(path),
        model=chat.model,
        messages=chat.messages,
        records=records,
        names_count=True,
    )
    draft.title = first_prompt(chat.messages)
    draft.title_from = "first-prompt" if draft.title else None
    if chat.version:
        draft.metadata["version"] = chat.version
    if chat.restored and before is not None:
        draft.lineage = LineageDraft("continuation", source_id(path, before))
    if chat.messages and 0 not in chat.messages[0].records:
        chat.messages[0].records = (0, *chat.messages[0].records)
    return draft
