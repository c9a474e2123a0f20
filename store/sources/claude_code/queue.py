"""Prompts typed while the agent works, as far as only notes and loose attachments keep them.

Source: the Claude Code format page, "Added later". A prompt is put into the queue
(``enqueue``) and leaves it in one of four ways: ``dequeue`` (a user row follows), ``popAll``
(the text goes back into the input), ``remove`` with the reason ``absorbed_mid_turn`` or none
(the running turn took it), or ``remove`` with another reason (it went elsewhere). What the
turn took has an attachment row as well in some versions, with a uuid or without one.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import orjson

from store.sources.base.drafts import MessageDraft
from store.sources.claude_code.blocks import plain_part
from store.sources.claude_code.origins import is_notification
from store.sources.claude_code.rows import Row, content_blocks, epoch_ms, mapping, string, text_of

_TAKEN_BY_TURN = (None, "", "absorbed_mid_turn")
"""Reasons of a ``remove`` whose prompt the running turn took in."""


@dataclass(slots=True)
class Waiting:
    """A prompt in the queue.

    Attributes:
        id: Follows from its words and its time.
        content: A text or content blocks.
        at: When it was typed, epoch ms.
        record: The number of its record.
        uuid: The program's own id of the command, where it names one.
    """

    id: str
    content: Any
    at: int
    record: int
    uuid: str | None

    @property
    def text(self) -> str:
        """Its words."""
        return text_of(content_blocks(self.content))


class PromptQueue:
    """Follows the queue through a file's notes and rows.

    Attributes:
        waiting: What still waits, in its order.
    """

    def __init__(self) -> None:
        """Start with an empty queue."""
        self.waiting: list[Waiting] = []
        self._taken: list[tuple[Waiting, Row]] = []
        self._sending: list[str] = []
        self._ids: set[str] = set()
        self._answer: str | None = None

    @property
    def is_busy(self) -> bool:
        """Whether later notes and rows may still say what became of a prompt."""
        return bool(self.waiting or self._taken or self._sending)

    def note(self, data: dict[str, Any], record: int, last: Row | None) -> Row | None:
        """Follow one ``queue-operation``.

        Args:
            data: The note.
            record: The number of its record.
            last: The row before it in the file.

        Returns:
            A row for the prompt, where the running turn took it in here.
        """
        operation, content = data.get("operation"), data.get("content")
        at = epoch_ms(data.get("timestamp")) or (last.at if last is not None else 0)
        uuid = string(data.get("commandUuid")) or string(data.get("source_uuid"))
        if operation == "enqueue":
            self.waiting.append(self._prompt(content, at, record, uuid))
        elif operation == "popAll":
            self.waiting.clear()
        elif operation in ("dequeue", "remove"):
            prompt = self._leave(content, uuid)
            if operation == "dequeue" and prompt is not None:
                self._sending.append(prompt.text.strip())
            if operation == "remove" and data.get("reason") in _TAKEN_BY_TURN:
                prompt = prompt or self._prompt(content, at, record, uuid)
                return self._take(prompt, at, record, last)
        return None

    def attachment(self, data: dict[str, Any], record: int, last: Row | None) -> Row | None:
        """Return the row of a ``queued_command`` attachment that has no uuid.

        Where a ``remove`` already made a row of the prompt, the new row carries that one's
        uuid in ``stands_for`` and takes its place.

        Args:
            data: The record.
            record: Its number.
            last: The row before it.
        """
        attachment = mapping(data.get("attachment"))
        if attachment.get("type") != "queued_command":
            return None
        content = attachment.get("prompt")
        at = epoch_ms(data.get("timestamp")) or (last.at if last is not None else 0)
        uuid = string(attachment.get("source_uuid"))
        earlier = self._sent(content, uuid)
        own = earlier[0].id if earlier else self._new_id(content, at)
        row = _row(own, data, at, record, last)
        if earlier:
            row.stands_for, row.records = earlier[0].id, (earlier[0].record,)
        return row

    def row(self, row: Row) -> None:
        """Follow a row of the file: what it says waits no longer, and is no second prompt."""
        if row.type == "assistant":
            if row.message_id != self._answer:
                self._answer = row.message_id
                self._taken.clear()
                self._sending.clear()
            return
        if not self.waiting and not self._taken:
            return
        if row.type == "attachment":
            attachment = mapping(row.data.get("attachment"))
            if attachment.get("type") != "queued_command":
                return
            content, uuid = attachment.get("prompt"), string(attachment.get("source_uuid"))
        elif row.type == "user" and not row.data.get("isMeta"):
            content, uuid = row.blocks, None
            if (words := text_of(row.blocks).strip()) in self._sending:
                self._sending.remove(words)
                return
        else:
            return
        earlier = self._sent(content, uuid)
        if earlier:
            row.stands_for = earlier[1].uuid if earlier[1] is not None else None
            row.records = (earlier[0].record,)

    def _take(self, prompt: Waiting, at: int, record: int, last: Row | None) -> Row | None:
        """Return the row of a prompt that the running turn took in."""
        if not content_blocks(prompt.content):
            return None
        mode = "task-notification" if is_notification(prompt.text) else "prompt"
        data = {
            "type": "attachment",
            "attachment": {
                "type": "queued_command", "prompt": prompt.content, "commandMode": mode,
            },
        }  # fmt: skip
        row = _row(prompt.id, data, at, record, last)
        if record != prompt.record:
            row.records = (prompt.record,)
        self._taken.append((prompt, row))
        return row

    def _leave(self, content: object, uuid: str | None) -> Waiting | None:
        """Take a prompt out of the queue: the one that is named, else the first."""
        if not self.waiting:
            return None
        place = self._place(content, uuid)
        if place is None:
            if string(content):
                return None
            place = 0
        return self.waiting.pop(place)

    def _place(self, content: object, uuid: str | None) -> int | None:
        for place, prompt in enumerate(self.waiting):
            if uuid is not None and prompt.uuid == uuid:
                return place
        words = text_of(content_blocks(content)).strip()
        for place, prompt in enumerate(self.waiting):
            if words and prompt.text.strip() == words:
                return place
        return None

    def _sent(self, content: object, uuid: str | None) -> tuple[Waiting, Row | None] | None:
        """Take out the prompt that was queued in these words, wherever it stands."""
        words = text_of(content_blocks(content)).strip()
        for place, (prompt, row) in enumerate(self._taken):
            named = uuid is not None and prompt.uuid == uuid
            if named or (words and prompt.text.strip() == words):
                del self._taken[place]
                return prompt, row
        place_waiting = self._place(content, uuid)
        return None if place_waiting is None else (self.waiting.pop(place_waiting), None)

    def _prompt(self, content: object, at: int, record: int, uuid: str | None) -> Waiting:
        return Waiting(self._new_id(content, at), content, at, record, uuid)

    def _new_id(self, content: object, at: int) -> str:
        digest = hashlib.sha256(orjson.dumps([at, content], default=str)).hexdigest()[:16]
        own, count = f"queued-{digest}", 1
        while own in self._ids:
            count += 1
            own = f"queued-{digest}-{count}"
        self._ids.add(own)
        return own


def _row(uuid: str, data: dict[str, Any], at: int, record: int, last: Row | None) -> Row:
    parent = last.uuid if last is not None else None
    return Row(record, uuid, parent, "attachment", at, data, {}, uuid, [], beside=True)


def waiting_messages(waiting: Sequence[Waiting]) -> list[MessageDraft]:
    """Return the prompts that still wait as queued messages; notifications are none."""
    found = []
    for prompt in waiting:
        blocks = content_blocks(prompt.content)
        if not blocks or is_notification(prompt.text):
            continue
        metadata: dict[str, Any] = {"origin": "human", "queued_at": prompt.at}
        parts = [plain_part(block, prompt.at, prompt.record) for block in blocks]
        found.append(MessageDraft(prompt.id, "user", prompt.at, prompt.at, metadata, parts))
    return found
