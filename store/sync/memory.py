"""What was made of a session's drafts, so that one which grows is not made anew each time."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from store.sources.base.drafts import AttachmentDraft, MessageDraft
from store.sync.blocks import Attachment, pack_attachment
from store.sync.session_rows import MessageTuple, PartTuple, PreparedSession


@dataclass(slots=True)
class _Made:
    """What was made of a message.

    Attributes:
        draft: The message as it was, not shared with its source.
        place: The ticks and the counter of its id.
    """

    draft: MessageDraft
    place: int
    row: MessageTuple
    parts: list[PartTuple]
    refs: tuple[str, str] | None

    def add_to(self, prepared: PreparedSession) -> None:
        """Add it as the next message."""
        if self.draft.inherited_from is not None:
            prepared.inherited[len(prepared.messages)] = self.draft.inherited_from
        prepared.message_names.append(self.draft.source_id)
        prepared.messages.append(self.row)
        prepared.parts.extend(self.parts)
        if self.refs is not None:
            prepared.refs.append(self.refs)


class Memory:
    """What was made of a session's messages and side files the last time.

    A message is made again where its draft differs from a copy that was taken then:
    comparing costs a fraction of making, and needs no word from the source.
    """

    def __init__(self, *, keeps: bool = True) -> None:
        """Start with nothing.

        Args:
            keeps: Whether anything is remembered.
        """
        self._keeps = keeps
        self._messages: dict[str, _Made] = {}
        self._now: dict[str, _Made] = {}
        self._attachments: dict[str, tuple[AttachmentDraft, Attachment]] = {}

    def begin(self) -> None:
        """Start with the session's first message."""
        self._now = {}

    def end(self) -> None:
        """Forget the messages that were not there this time."""
        self._messages, self._now = self._now, {}

    def recall(self, message: MessageDraft, place: int) -> _Made | None:
        """Return what was made of a message, where it would come out the same."""
        made = self._messages.get(message.source_id)
        if made is None or made.place != place or made.draft != message:
            return None
        self._now[message.source_id] = made
        return made

    def keep(
        self, message: MessageDraft, place: int, prepared: PreparedSession, first_part: int
    ) -> None:
        """Remember the message that was added last."""
        if self._keeps:
            has_refs = bool(prepared.refs) and prepared.refs[-1][0] == prepared.messages[-1][0]
            self._now[message.source_id] = _Made(
                _copy_of_message(message),
                place,
                prepared.messages[-1],
                prepared.parts[first_part:],
                prepared.refs[-1] if has_refs else None,
            )

    def packed(self, draft: AttachmentDraft) -> Attachment:
        """Return a side file compressed."""
        known = self._attachments.get(draft.name)
        if known is not None and known[0] == draft:
            return known[1]
        packed = pack_attachment(draft)
        if self._keeps:
            self._attachments[draft.name] = (draft, packed)
        return packed


def _copy_of_message(message: MessageDraft) -> MessageDraft:
    parts = [replace(part, data=_copy(part.data)) for part in message.parts]
    return replace(message, metadata=_copy(message.metadata), parts=parts)


def _copy(value: Any) -> Any:
    """Copy what can be changed; texts and numbers are shared."""
    if isinstance(value, dict):
        return {key: _copy(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_copy(item) for item in value]
    return value
