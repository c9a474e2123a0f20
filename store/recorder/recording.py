"""What a recorder does, without waiting: the same for ``Recorder`` and the command line."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from store.activity.judgement import activity_of, stored_activity
from store.errors import NotFound, Refused
from store.queries import sessions
from store.recorder import lookup, queue, writing
from store.recorder.answers import Answers
from store.recorder.json_text import dump, storable
from store.recorder.message import RecordedMessage
from store.recorder.models import model_of
from store.recorder.part_list import Chunk, ProtocolError
from store.recorder.partial_json import MISSING
from store.recorder.policy import TURN_ENDS
from store.recorder.procedures import Operation, Procedure
from store.recorder.reducer import REFUSED, UNKNOWN, MessageState, is_known

TITLE_LENGTH = 80
_TOUCHES = frozenset(("finish-step", "finish", "abort", "error"))
_DELTAS = {"text-delta": "delta", "reasoning-delta": "delta", "tool-input-delta": "inputTextDelta"}
_SMALL = 256
_MOST_HELD = 64
"""Odd chunks that wait for the message they come before."""
_BY_CALL = frozenset((
    "tool-output-available", "tool-output-error", "tool-output-denied", "tool-approval-request",
))


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
        activity = activity_of(row, now=now)
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
        """Store a whole UIMessage at once.

        A user's message that comes while an answer streams waits behind it, as if given to
        ``queue``; it is fired when the next answer begins.

        Args:
            given: ``{id?, role, parts, metadata?}``.

        Returns:
            The id of its row.

        Raises:
            Refused: The session has a message of this id already, or it is no message.
        """
        parts, metadata = given.get("parts"), given.get("metadata")
        if not isinstance(given.get("role"), str) or not isinstance(parts, list):
            raise Refused("a message is an object with a role and parts")
        if not all(isinstance(part, dict) and isinstance(part.get("type"), str)
                   for part in parts):
            raise Refused("a part of a message is an object with a type")
        queued = isinstance(metadata, dict) and _is_time(metadata.get("queued_at"))
        waits = given["role"] == "user" and self._streams and not queued
        if waits:
            metadata = (metadata if isinstance(metadata, dict) else {}) | {
                "queued_at": self._clock()}
        if not (waits or queued or self._streams):
            yield from self.end_turn()
        message_id = yield from self._store_whole(given | {"metadata": metadata}, waits or queued)
        if waits:
            self._fire_next.append(message_id)
        return message_id

    def queue(self, message: dict[str, Any]) -> Procedure[str]:
        """Store a user's message that waits behind the running turn, at once.

        Args:
            message: ``{id?, role, parts, metadata?}``; ``metadata.queued_at`` is now where
                it says nothing.

        Returns:
            The id of its row.

        Raises:
            Refused: The session has a message of this id already, or it is no message.
        """
        held = message.get("metadata")
        metadata = {"queued_at": self._clock()} | (held if isinstance(held, dict) else {})
        return (yield from self.add_message(message | {"metadata": metadata}))

    def fire(self, message_id: str | None = None) -> Procedure[str]:
        """Make a queued message the last one of the transcript, at once.

        Args:
            message_id: The row's id or the id that the host gave it; None for the one that
                has waited longest.

        Returns:
            The id of its row.

        Raises:
            NotFound: The session has no such message.
            Refused: The message does not wait.
        """
        yield from self._end_finished()
        found = yield Operation(
            partial(queue.find, session_id=self.session_id, name=message_id))
        work = partial(queue.fire, session_id=self.session_id, message_id=found,
                       at=max(self._clock(), self._newest_at + 1))
        self._newest_at = yield Operation(work, writes=True)
        self._fire_next = [each for each in self._fire_next if each != found]
        return str(found)

    def _fire_waiting(self) -> Procedure[None]:
        """Fire the messages that came during the answer before this one."""
        while self._fire_next:
            try:
                yield from self.fire(self._fire_next[0])
            except (NotFound, Refused):
                # Someone else has fired, cancelled or removed it meanwhile.
                del self._fire_next[0]

    def cancel(self, message_id: str | None = None) -> Procedure[str]:
        """Take a queued message out of the queue, at once; its row stays, hidden.

        Args:
            message_id: As for ``fire``.

        Returns:
            The id of its row.

        Raises:
            NotFound: The session has no such message.
            Refused: The message does not wait.
        """
        found = yield Operation(
            partial(queue.find, session_id=self.session_id, name=message_id))
        work = partial(queue.cancel, session_id=self.session_id, message_id=found,
                       at=self._clock())
        yield Operation(work, writes=True)
        self._fire_next = [each for each in self._fire_next if each != found]
        return str(found)

    @property
    def _streams(self) -> bool:
        """Whether an answer is being recorded that has not ended."""
        return self.message is not None and not self.message.finished

    def _end_finished(self) -> Procedure[None]:
        """Close the message where its stream has ended."""
        if not self._streams:
            yield from self.end_turn()

    def _store_whole(self, given: dict[str, Any], queued: bool) -> Procedure[str]:
        """Write a message that no chunk built; the one that streams stays what it is."""
        name = given.get("id") or None
        if name is not None and not isinstance(name, str):
            raise Refused("the id of a message is a text")
        if name is not None:
            work = partial(lookup.by_name, session_id=self.session_id, name=name)
            if (yield Operation(work)) is not None:
                raise Refused(f"message {name} is in session {self.session_id} already")
        message = self._new_message(name)
        message.role = storable(given["role"])
        message.state.sdk_id = name
        message.state.metadata = MISSING if given["metadata"] is None else given["metadata"]
        for part in given["parts"]:
            message.state.add_given(part)
        said = message.role == "user" and not queued
        if message.role == "assistant" and isinstance(given["metadata"], dict):
            message.report_usage(given["metadata"].get("usage"))
        self._take_model(given["metadata"])
        held, waiting, activity = self.message, self.waiting, self._activity
        self.message, self._touch = message, True
        if said:
            self._set_activity("running")
        try:
            yield from self.save(title=_title_of(given["parts"]) if said else None)
        except BaseException:
            self._set_activity(activity)
            raise
        finally:
            self.message, self.waiting = held, waiting
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
        if not self.needs_store(chunk):
            return self.absorb(chunk, size)
        if self._is_late(chunk) and (yield from self._deliver_late(chunk)):
            return False
        first = self._begins_message(chunk)
        if first and not (yield from self._begin(chunk)):
            return self._absorb_early(chunk)
        return self.absorb(chunk, size) or (first and self.policy.save_on == "chunk")

    def needs_store(self, chunk: Chunk) -> bool:
        """Say whether the store has to be asked which message a chunk belongs to."""
        return self._begins_message(chunk) or self._is_late(chunk)

    def _begins_message(self, chunk: Chunk) -> bool:
        """Say whether a chunk is the first of a message."""
        message, kind = self.message, chunk["type"]
        if kind == "start":
            name = chunk.get("messageId")
            if name is not None and not isinstance(name, str):
                return False
            if message is None:
                return True
            if not message.started and not message.finished:
                return False  # data may come before the start of its message
            if name is None:
                return message.finished and bool(self._fire_next)
            other = name not in (message.id, message.state.sdk_id)
            return other and (message.finished or bool(self._fire_next))
        return message is None and is_known(kind) and not chunk.get("transient")

    def _is_late(self, chunk: Chunk) -> bool:
        """Say whether a chunk is about a call that the message which streams does not have."""
        message, kind = self.message, chunk["type"]
        if message is None or not kind.startswith("tool-"):
            return False
        if kind in _BY_CALL:
            call_id = chunk.get("toolCallId")
            return isinstance(call_id, str) and not message.state.has_call(call_id)
        if kind == "tool-approval-response":
            approval_id = chunk.get("approvalId")
            return isinstance(approval_id, str) and not message.state.has_approval(approval_id)
        return False

    def _deliver_late(self, chunk: Chunk) -> Procedure[bool]:
        """Write what a chunk says of a call of an earlier message, at once.

        Returns:
            Whether an earlier message has the call.
        """
        found = yield from self._find(chunk)
        if found is None or (self.message is not None and found == self.message.id):
            return False
        stored = yield Operation(partial(lookup.load, message_id=found))
        message = self._resumed(stored)
        try:
            message.state.apply(chunk)
        except ProtocolError as error:
            message.state.keep_odd(chunk, REFUSED, str(error))
            self._report_odd(str(error))
        held, waiting = self.message, self.waiting
        self.message, self._touch = message, True
        try:
            yield from self.save()
        finally:
            self.message, self.waiting = held, waiting
        return True

    def growth(self) -> Callable[[Chunk], bool]:
        """Return the quick way for deltas, good until another call takes a chunk.

        It takes a delta that brings nothing but text for an open block, whose size the
        caller adds to ``waiting``, and returns False for any other, which ``receive`` takes.
        """
        return _refuse if self.message is None else self.message.state.grow

    def grow(self, chunk: Chunk, size: int = 0) -> bool:
        """Take a chunk the quick way, as ``growth`` does, and count its size."""
        message = self.message
        if message is None or not message.state.grow(chunk):
            return False
        self.waiting += size or len(chunk[_DELTAS[chunk["type"]]])
        return True

    def absorb(self, chunk: Chunk, size: int = 0) -> bool:
        """Take a chunk of the message that is being recorded; as ``receive`` otherwise."""
        message = self.message
        kind: str = chunk["type"]
        if message is None:
            return self._absorb_early(chunk)
        try:
            known = self._apply(message, chunk)
        except ProtocolError as error:
            return self._keep_odd(message, chunk, REFUSED, str(error), size)
        if not known:
            if chunk.get("transient"):
                return False
            return self._keep_odd(message, chunk, UNKNOWN, f"chunk of unknown type {kind}", size)
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

    def _take_model(self, metadata: object) -> None:
        """Take the model that a message's metadata names, for the session."""
        model = model_of(metadata)
        if model is not None and model != self._model:
            self._model, self._model_moved = model, True

    def _note(self, message: RecordedMessage, chunk: Chunk, kind: str) -> None:
        """Keep what a chunk means for the message, the session and its activity."""
        message.observe(chunk, self._clock())
        self._touch = self._touch or kind in _TOUCHES
        if message.unrolled:
            self._touch = True
        metadata = chunk.get("messageMetadata")
        self._take_model(metadata)
        if kind in TURN_ENDS:
            self._set_activity(self._settled(message))
        elif kind == "error":
            self._set_activity("error")
        elif kind.startswith("tool-"):
            waits = message.waits_for == "waiting-approval"
            self._set_activity("waiting-approval" if waits else "running")
        elif kind in ("start", "start-step"):
            self._set_activity("running")

    def _apply(self, message: RecordedMessage, chunk: Chunk) -> bool:
        """Apply a chunk; the text of a delta whose block never began is kept in a new block."""
        try:
            return message.state.apply(chunk)
        except ProtocolError as error:
            if not message.state.begin_missing_block(chunk):
                raise
            self._report_odd(str(error))
            return message.state.apply(chunk)

    def _keep_odd(
        self, message: RecordedMessage, chunk: Chunk, name: str, reason: str, size: int
    ) -> bool:
        """Keep a chunk that the SDK refuses or ignores, and go on."""
        message.state.keep_odd(chunk, name, reason)
        if name == UNKNOWN:
            self._unknown(chunk["type"])
        else:
            self._report_odd(reason)
        self.waiting += size or _size_of(chunk)
        return self.waiting >= self.full

    def _report_odd(self, reason: str) -> None:
        """Report why a chunk is odd, once for a run of chunks with the same fault."""
        if reason != self._reported:
            self._reported = reason
            self._problem(reason)

    def _absorb_early(self, chunk: Chunk) -> bool:
        """Hold an odd chunk that comes before any message, for the next one."""
        kind = chunk["type"]
        if chunk.get("transient"):
            return False
        if is_known(kind):
            self._report_odd(f"{kind} chunk that fits no message")
            self._held.append((chunk, REFUSED))
        else:
            self._unknown(kind)
            self._held.append((chunk, UNKNOWN))
        del self._held[:-_MOST_HELD]
        return False

    def end_turn(self) -> Procedure[None]:
        """Save what waits and close the message; what comes next is another stream's."""
        if self.message is None and self._held:
            self.message = self._new_message(None)
            self._give_held(self.message)
        yield from super().end_turn()

    def _give_held(self, message: RecordedMessage) -> None:
        """Give a message the odd chunks that came before it."""
        for chunk, name in self._held:
            message.state.keep_odd(chunk, name, f"{chunk['type']} chunk before any message")
        self._held = []

    def _begin(self, chunk: Chunk) -> Procedure[bool]:
        """Begin or go on with the message that a chunk belongs to.

        Returns:
            False for a chunk that fits no message, which the next one keeps.
        """
        if self.message is not None:
            yield from self.end_turn()
        yield from self._fire_waiting()
        broken_off = yield from self._broken_off(chunk)
        found = broken_off or (yield from self._find(chunk))
        if found is None and not self._may_begin(chunk):
            return False
        if found is None:
            name = chunk.get("messageId") if chunk["type"] == "start" else None
            self.message = self._new_message(name)
        else:
            stored = yield Operation(partial(lookup.load, message_id=found))
            self.message = self._resumed(stored)
            self.message.reopen()
            if broken_off:
                self.message.go_on()
        self._give_held(self.message)
        self._touch = True
        self._set_activity("running")
        return True

    def _may_begin(self, chunk: Chunk) -> bool:
        """Say whether a new message can begin with a chunk, or whether it fits none."""
        if chunk["type"] == "start":
            return True
        state = MessageState(str, self._clock, self._sdk)
        try:
            state.apply(chunk)
        except ProtocolError:
            return state.begin_missing_block(chunk)
        return True

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
            call_id = chunk.get("toolCallId")
            if not isinstance(call_id, str):
                return None
            work = partial(lookup.by_call, session_id=session_id, call_id=call_id)
        elif kind == "tool-approval-response":
            approval_id = chunk.get("approvalId")
            if not isinstance(approval_id, str):
                return None
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


def _is_time(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


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
            line = storable(" ".join(lines[0].split()))
            return line if len(line) <= TITLE_LENGTH else line[: TITLE_LENGTH - 1] + "…"
    return None
