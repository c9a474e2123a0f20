"""Cache of a session's prepared rows, so that a growing session is not prepared anew."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from store.sources.base.drafts import AttachmentDraft, MessageDraft
from store.sync.blocks import Attachment, pack_attachment
from store.sync.session_rows import MessageTuple, PartTuple, PreparedSession


@dataclass(slots=True)
class _Made:
    """The rows made from a message.

    Attributes:
        draft: A copy of the message that the rows were made from.
        place: The time and counter of its id.
    """

    draft: MessageDraft
    place: int
    row: MessageTuple
    parts: list[PartTuple]
    refs: tuple[str, str] | None

    def add_to(self, prepared: PreparedSession) -> None:
        """Append the message's rows."""
        if self.draft.inherited_from is not None:
            prepared.inherited[len(prepared.messages)] = self.draft.inherited_from
        prepared.message_names.append(self.draft.source_id)
        prepared.messages.append(self.row)
        prepared.parts.extend(self.parts)
        if self.refs is not None:
            prepared.refs.append(self.refs)


class Memory:
    """Rows and attachments that were last made from a session's drafts.

    A message is prepared again if its draft differs from the copy kept here: comparing
    costs a fraction of preparing, and needs no change notice from the source.
    """

    def __init__(self, *, keeps: bool = True) -> None:
        """Make an empty cache.

        Args:
            keeps: Whether to cache anything.
        """
        self.keeps = keeps
        self._messages: dict[str, _Made] = {}
        self._now: dict[str, _Made] = {}
        self._attachments: dict[str, tuple[AttachmentDraft, Attachment]] = {}

    def begin(self) -> None:
        """Start a pass over the session's messages."""
        self._now = {}

    def end(self) -> None:
        """End the pass and drop the messages that it did not include."""
        self._messages, self._now = self._now, {}

    def recall(self, message: MessageDraft, place: int) -> _Made | None:
        """Return the cached rows of a message; None if it changed."""
        made = self._messages.get(message.source_id)
        if made is None or made.place != place or made.draft != message:
            return None
        self._now[message.source_id] = made
        return made

    def keep(
        self, message: MessageDraft, place: int, prepared: PreparedSession, first_part: int
    ) -> None:
        """Cache the rows of the message that was appended last.

        Args:
            message: The draft that the rows were made from.
            place: The time and counter of its id.
            prepared: The session that has the rows at its end.
            first_part: Index of the message's first part in it.
        """
        has_refs = bool(prepared.refs) and prepared.refs[-1][0] == prepared.messages[-1][0]
        self._now[message.source_id] = _Made(
            _copy_of_message(message),
            place,
            prepared.messages[-1],
            prepared.parts[first_part:],
            prepared.refs[-1] if has_refs else None,
        )

    def packed(self, draft: AttachmentDraft) -> Attachment:
        """Return a side file compressed, from the cache if it is unchanged."""
        known = self._attachments.get(draft.name)
        if known is not None and known[0] == draft:
            return known[1]
        packed = pack_attachment(draft)
        if self.keeps:
            self._attachments[draft.name] = (draft, packed)
        return packed


def _copy_of_message(message: MessageDraft) -> MessageDraft:
    parts = [replace(part, data=_copy(part.data)) for part in message.parts]
    return replace(message, metadata=_copy(message.metadata), parts=parts)


def _copy(value: Any) -> Any:
    """Return a copy of nested dicts and lists; texts and numbers are shared."""
    if isinstance(value, dict):
        return {key: _copy(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_copy(item) for item in value]
    return value
