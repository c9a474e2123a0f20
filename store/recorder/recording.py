"""What a recorder does, without waiting: the same for ``Recorder`` and the command line."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from store.activity import activity_of, stored_activity
from store.errors import Refused
from store.queries import sessions
from store.recorder import lookup, writing
from store.recorder.answers import Answers
from store.recorder.json_text import dump
from store.recorder.message import RecordedMessage
from store.recorder.part_list import Chunk, ProtocolError
from store.recorder.partial_json import MISSING
from store.recorder.policy import TURN_ENDS
from store.recorder.procedures import Operation, Procedure
from store.recorder.reducer import MessageState, is_known

TITLE_LENGTH = 80
_TOUCHES = frozenset(("finish-step", "finish", "abort", "error"))
_DELTAS = {"text-delta": "delta", "reasoning-delta": "delta", "tool-input-delta": "inputTextDelta"}
_SMALL = 256


class Recording(Answers):
    """One session that is being recorded.

    Attributes:
        session_id: The session's id.
        message: The message that chunks go to; None between two messages.
        waiting: Bytes that wait to be saved, about; 0 when nothing waits.
    """

    def start(
        self, session: str | None = None, *, agent: str = "unknown", workspace: str | None = None
    ) -> Procedure[str]:
        """Make a session, or go on with one.

        Args:
            session: Its id, source id, or an unambiguous beginning; None makes one.
            agent: Who runs in a new session.
            workspace: The folder of a new session.

        Returns:
            The session's id.

        Raises:
            NotFound: No session has this name.
            Refused: Another process records this session now.
        """
        if session is not None:
            yield from self._continue(session)
            return self.session_id
        self.session_id = self._ids.mint("ses")
        new = writing.NewSession(
            self.session_id, agent, workspace, dump({"activity": self._activity_json()}),
            self._clock(),
        )
        yield Operation(partial(writing.insert_session, session=new), writes=True)
        return self.session_id

    def _continue(self, name: str) -> Procedure[None]:
        row = yield Operation(partial(sessions.resolve, name=name))
        self.session_id = row.id
        now = self._clock()
        stored = stored_activity(row.metadata_json) or {}
        activity = activity_of(row, now=now, stored=stored)
        busy = activity.state == "running" and activity.from_ == "stored"
        if busy and stored.get("pid") not in (None, self._process.pid):
            raise Refused(f"session {row.id} is being recorded by process {stored['pid']}")
        # A process that died left "running" behind: whatever comes next is news.
        self._activity = "" if stored.get("state") == "running" else str(stored.get("state", ""))
        if activity.state == "interrupted":
            work = partial(writing.mark_interrupted, session_id=row.id, at=now)
            yield Operation(work, writes=True)
        self._newest_at = yield Operation(
            partial(writing.newest_message_at, session_id=row.id)
        )

    def generate_message_id(self) -> str:
        """Return an id to give to the SDK (``generateMessageId``); the row will have it too."""
        minted = self._ids.mint("msg")
        self._reserved.add(minted)
        return minted

    def add_message(self, given: dict[str, Any]) -> Procedure[str]:
        """Store a whole UIMessage, the user's before its answer, at once.

        Returns:
            The id of its row.

        Raises:
            Refused: The session has a message of this id already.
        """
        if not all(isinstance(part, dict) and isinstance(part.get("type"), str)
                   for part in given["parts"]):
            raise Refused("a part of a message is an object with a type")
        yield from self.end_turn()
        name = given.get("id") or None
        if name is not None:
            work = partial(lookup.by_name, session_id=self.session_id, name=name)
            if (yield Operation(work)) is not None:
                raise Refused(f"message {name} is in session {self.session_id} already")
        message = self._new_message(name)
        message.role = str(given["role"])
        message.state.sdk_id = name
        message.state.metadata = given.get("metadata", MISSING)
        for part in given["parts"]:
            message.state.add_given(part)
        self.message, self._touch = message, True
        if message.role == "user":
            self._set_activity("running")
        title = _title_of(given["parts"]) if message.role == "user" else None
        yield from self.save(title=title)
        self.message = None
        return message.id

    def _new_message(self, name: str | None) -> RecordedMessage:
        row_id = name if name in self._reserved else None
        self._newest_at = max(self._clock(), self._newest_at + 1)
        state = MessageState(lambda: self._ids.mint("prt"), self._clock, self._sdk)
        return RecordedMessage(row_id or self._ids.mint("msg"), self._newest_at, state)

    def receive(self, chunk: Chunk, size: int = 0) -> Procedure[bool]:
        """Take one chunk.

        Args:
            chunk: A UI message chunk, ``{"type": ...}``.
            size: Its bytes on the wire, where known.

        Returns:
            Whether it must be saved at once; else ``waiting`` says whether something waits.
        """
        first = self.begins_message(chunk)
        if first:
            yield from self._begin(chunk)
        return self.absorb(chunk, size) or (first and self.policy.save_on == "chunk")

    def begins_message(self, chunk: Chunk) -> bool:
        """Say whether a chunk needs a message to be found or made first."""
        message = self.message
        if message is None:
            return is_known(chunk["type"]) and not chunk.get("transient")
        # A stream that broke the protocol is over for the SDK; the next start is another one.
        return message.failed is not None and chunk["type"] == "start"

    def growth(self) -> Callable[[Chunk], bool]:
        """Return the quick way for deltas, good until another call takes a chunk.

        It takes a delta that brings nothing but text for an open block, whose size the
        caller adds to ``waiting``, and returns False for any other, which ``receive`` takes.
        """
        message = self.message
        return _refuse if message is None or message.failed is not None else message.state.grow

    def grow(self, chunk: Chunk, size: int = 0) -> bool:
        """Take a chunk the quick way, as ``growth`` does, and count its size."""
        message = self.message
        if message is None or message.failed is not None or not message.state.grow(chunk):
            return False
        self.waiting += size or len(chunk[_DELTAS[chunk["type"]]])
        return True

    def absorb(self, chunk: Chunk, size: int = 0) -> bool:
        """Take a chunk of the message that is being recorded; as ``receive`` otherwise."""
        message = self.message
        kind: str = chunk["type"]
        if message is None or message.failed is not None:
            if not is_known(kind):
                self._unknown(kind)
            return False
        try:
            known = message.state.apply(chunk)
        except ProtocolError as error:
            return self._refused(message, str(error))
        if not known:
            self._unknown(kind)
            return False
        delta = _DELTAS.get(kind)
        if delta is not None:
            self.waiting += size or len(chunk[delta])
            return self.waiting >= self.full
        self._note(message, chunk, kind)
        self.waiting += size or _size_of(chunk)
        if kind in self._saves_now or self.waiting >= self.full:
            return True
        moved = kind == "tool-output-available" and message.state.changed_state
        return moved and self.policy.save_on == "chunk"

    def _note(self, message: RecordedMessage, chunk: Chunk, kind: str) -> None:
        """Keep what a chunk means for the message, the session and its activity."""
        message.observe(chunk, self._clock())
        self._touch = self._touch or kind in _TOUCHES
        if message.unrolled:
            self._touch = True
        metadata = chunk.get("messageMetadata")
        if isinstance(metadata, dict) and isinstance(metadata.get("model"), dict):
            self._set_model(metadata["model"])
        if kind in TURN_ENDS:
            self._set_activity(self._settled(message))
        elif kind == "error":
            self._set_activity("error")
        elif kind.startswith("tool-"):
            waits = message.waits_for == "waiting-approval"
            self._set_activity("waiting-approval" if waits else "running")
        elif kind in ("start", "start-step"):
            self._set_activity("running")

    def _refused(self, message: RecordedMessage, reason: str) -> bool:
        self._problem(reason)
        if not self._keep_going:
            message.failed = reason
            message.note(protocol_error=reason)
            self._touch = True
            self._set_activity("error")
        return not self._keep_going

    def _begin(self, chunk: Chunk) -> Procedure[None]:
        yield from self.end_turn()
        broken_off = yield from self._broken_off(chunk)
        found = broken_off or (yield from self._find(chunk))
        if found is None:
            name = chunk.get("messageId") if chunk["type"] == "start" else None
            self.message = self._new_message(name)
        else:
            stored = yield Operation(partial(lookup.load, message_id=found))
            self.message = self._resumed(stored)
            self.message.reopen()
            if broken_off:
                self.message.go_on()
        self._touch = True
        self._set_activity("running")

    def _broken_off(self, chunk: Chunk) -> Procedure[str | None]:
        """Find the message whose recording broke off, where a stream goes on from its middle."""
        if chunk["type"] == "start":
            return None
        found: str | None = yield Operation(
            partial(lookup.broken_off, session_id=self.session_id))
        return found

    def _find(self, chunk: Chunk) -> Procedure[str | None]:
        """Find the stored message that a stream's first chunk goes on with."""
        session_id, kind = self.session_id, chunk["type"]
        if kind == "start" and chunk.get("messageId") is not None:
            work = partial(
                lookup.last_by_name, session_id=session_id, name=chunk["messageId"])
        elif kind.startswith(("tool-output-", "tool-approval-request")):
            work = partial(lookup.by_call, session_id=session_id, call_id=chunk.get("toolCallId"))
        elif kind == "tool-approval-response":
            approval_id = chunk.get("approvalId")
            work = partial(lookup.by_approval, session_id=session_id, approval_id=approval_id)
        else:
            work = partial(lookup.answered_last, session_id=session_id)
        found: str | None = yield Operation(work)
        return found


def user_message(
    content: str | list[dict[str, Any]], metadata: dict[str, Any] | None = None
) -> dict[str, Any]:
    """Return a UIMessage of what a human said."""
    parts = [{"type": "text", "text": content}] if isinstance(content, str) else content
    return {"role": "user", "parts": parts, "metadata": {"origin": "human"} | (metadata or {})}


def _refuse(_: Chunk) -> bool:
    return False


def _size_of(chunk: Chunk) -> int:
    """Return about how many bytes a chunk holds, where the wire did not tell."""
    held = chunk.get("url") or chunk.get("data") or chunk.get("output") or ""
    return _SMALL + (len(held) if isinstance(held, str) else len(dump(held)))


def _title_of(parts: list[dict[str, Any]]) -> str | None:
    """Return the first line that a user wrote, cut to the length of a title."""
    for part in parts:
        text = part.get("text") if part.get("type") == "text" else None
        lines = text.strip().splitlines() if isinstance(text, str) else []
        if lines:
            line = " ".join(lines[0].split())
            return line if len(line) <= TITLE_LENGTH else line[: TITLE_LENGTH - 1] + "…"
    return None
