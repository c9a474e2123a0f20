"""What a recorder does, whatever runs its database work: ``Recorder`` or the command line.

``Recording`` decides which message a chunk belongs to and when it is saved. Its parts: the
message's reducer (``message``, ``reducer``), the session's row (``session_state``), odd
chunks (``odd_chunks``) and queued messages (``queue``).
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, partial
from typing import TYPE_CHECKING, Any, NamedTuple

from store.activity.judgement import activity_of, stored_activity
from store.engine.database import Database
from store.engine.transactions import OfSession, is_lost
from store.errors import Invalid, NotFound, Refused, no_message
from store.ids import IdMinter
from store.queries import sessions
from store.recorder import claims, lookup, writing
from store.recorder.batch import Batch, Reserved
from store.recorder.json_text import dump, storable
from store.recorder.large_json import LARGE, weight
from store.recorder.message import Messages, RecordedMessage
from store.recorder.odd_chunks import OddChunks, Report, no_report
from store.recorder.part_list import Chunk, ProtocolError, SdkVersion
from store.recorder.partial_json import MISSING
from store.recorder.policy import TURN_ENDS, SavePolicy
from store.recorder.procedures import Operation, Procedure, change_of
from store.recorder.queue import QueuedMessages
from store.recorder.reducer import REFUSED, UNKNOWN, is_known
from store.recorder.session_state import SessionState
from store.rows import SessionRow
from store.system.clock import Clock, system_clock

if TYPE_CHECKING:
    from store.engine.transactions import OneStatement

TITLE_LENGTH = 80
_TOUCHES = frozenset(("finish-step", "finish", "abort", "error"))
_DELTAS = {"text-delta": "delta", "reasoning-delta": "delta", "tool-input-delta": "inputTextDelta"}
_SMALL = 256
_BY_CALL = frozenset((
    "tool-output-available", "tool-output-error", "tool-output-denied", "tool-approval-request",
))


class Saving(NamedTuple):
    """A batch that is being written.

    Attributes:
        change: Writes it.
        waiting: How many bytes waited.
    """

    message: RecordedMessage
    batch: Batch
    change: OfSession
    waiting: int


class Recording:
    """One session that is being recorded.

    Attributes:
        policy: When what was recorded is saved.
        session: What is known of the session's row.
        waiting: Bytes that wait to be saved, about; 0 when nothing waits.
        full: How many may wait.
        grow: The quick way for deltas: takes one that brings nothing but text for an open
            block, whose size the caller adds to ``waiting``, and returns the length of the
            text; None for any other chunk, which ``receive`` takes.
    """

    def __init__(
        self, *, policy: SavePolicy | None = None, sdk: SdkVersion = 6,
        clock: Clock = system_clock, ids: IdMinter | None = None, problem: Report = no_report,
        unknown: Report = no_report,
    ) -> None:
        """Set up a recording; ``start`` makes or finds its session.

        Args:
            policy: When it is saved.
            sdk: The AI SDK version whose reducer is followed where 6 and 7 disagree.
            clock: The present in epoch ms.
            ids: Mints the ids of rows.
            problem: Called with one line for each chunk that the SDK's reader would refuse.
            unknown: Called with the type of each chunk that the SDK's reader would ignore.
        """
        self.policy = policy or SavePolicy()
        self._saves_now, self.full = self.policy.saves_now, self.policy.full
        self._clock, self._ids = clock, ids or IdMinter(clock)
        self.session = SessionState(clock)
        self._messages = Messages(self._ids, clock, sdk)
        self._odd = OddChunks(problem, unknown)
        self._queued = QueuedMessages(self.session, self._messages, clock)
        self.message = None
        self.waiting = 0
        self._is_claimed = False
        self._holder = claims.new_holder(self.session.process)
        self._unsure: tuple[RecordedMessage, Batch] | None = None
        self._reserved: Reserved | None = None

    @property
    def session_id(self) -> str:
        """The session's id."""
        return self.session.id

    @property
    def message(self) -> RecordedMessage | None:
        """The message that chunks go to; None between two messages."""
        return self._message

    @message.setter
    def message(self, message: RecordedMessage | None) -> None:
        self._message = message
        self.grow: Callable[[Chunk], int | None] = (
            _refuse if message is None else message.state.grow)

    def report(self, reason: str) -> None:
        """Report a problem to the host."""
        self._odd.report(reason)

    # -- the session

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
        self.session.id = self._ids.mint("ses")
        new = writing.NewSession(
            self.session_id, agent, workspace, dump({"activity": self.session.activity_json()}),
            self._clock(),
        )
        work = partial(_begin, session=new, holder=self._holder)
        self._is_claimed = yield change_of(self.session_id, work)
        return self.session_id

    def _continue(self, name: str) -> Procedure[None]:
        row, on_server = yield Operation(partial(_found, name=name))
        if on_server:
            self._is_claimed = yield change_of(
                row.id, partial(claims.claim, session_id=row.id, holder=self._holder))
        self.session.id = row.id
        now = self._clock()
        stored = stored_activity(row.metadata_json) or {}
        activity = activity_of(row, now=now)
        busy = activity.state == "running" and activity.from_ == "stored"
        if busy and stored.get("pid") not in (None, self.session.process.pid):
            raise Refused(f"session {row.id} is being recorded by process {stored['pid']}")
        # A process that died left "running" behind: whatever comes next is news.
        before = str(stored.get("state", ""))
        self.session.activity = "" if before == "running" else before
        if activity.state == "interrupted":
            work = partial(writing.mark_interrupted, session_id=row.id, at=now)
            yield change_of(row.id, work)
        self._messages.newest_at = yield Operation(
            partial(writing.newest_message_at, session_id=row.id)
        )

    def generate_message_id(self) -> str:
        """Return an id to give to the SDK (``generateMessageId``); the row will have it too."""
        return self._messages.reserve_id()

    # -- whole messages

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
        if not isinstance(given, dict):
            raise Invalid("a message must be an object with a role and parts")
        parts, metadata = given.get("parts"), given.get("metadata")
        if not isinstance(given.get("role"), str) or not isinstance(parts, list):
            raise Invalid("a message must be an object with a role and parts")
        if not all(isinstance(part, dict) and isinstance(part.get("type"), str)
                   for part in parts):
            raise Invalid("a part of a message must be an object with a type")
        queued = isinstance(metadata, dict) and _is_time(metadata.get("queued_at"))
        waits = given["role"] == "user" and self._streams and not queued
        if waits:
            metadata = (metadata if isinstance(metadata, dict) else {}) | {
                "queued_at": self._clock()}
        if not (waits or queued or self._streams):
            yield from self.end_turn()
        message_id = yield from self._store_whole(given | {"metadata": metadata}, waits or queued)
        if waits:
            self._queued.fire_with_next(message_id)
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
        return (yield from self._queued.fire(message_id))

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
        return (yield from self._queued.cancel(message_id))

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
            raise Invalid("the id of a message must be a text")
        if name is not None:
            work = partial(lookup.by_name, session_id=self.session_id, name=name)
            if (yield Operation(work)) is not None:
                raise Refused(f"message {name!r} is already in session {self.session_id}")
        message = self._messages.new(name)
        message.role = storable(given["role"])
        message.state.sdk_id = name
        message.state.metadata = MISSING if given["metadata"] is None else given["metadata"]
        for part in given["parts"]:
            message.state.add_given(part)
        said = message.role == "user" and not queued
        if message.role == "assistant" and isinstance(given["metadata"], dict):
            message.report_usage(given["metadata"].get("usage"))
        self.session.take_model(given["metadata"])
        self.session.is_stale = True
        activity = self.session.activity
        if said:
            self.session.set_activity("running")
        try:
            yield from self.save(message, title=title_of(given["parts"]) if said else None)
        except BaseException:
            self.session.set_activity(activity)
            raise
        return message.id

    # -- chunks

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
            self._odd.hold(chunk)
            return False
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
                return message.finished and self._queued.some_wait
            other = name not in (message.id, message.state.sdk_id)
            return other and (message.finished or self._queued.some_wait)
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
        message = self._messages.resumed(stored)
        try:
            message.state.apply(chunk)
        except ProtocolError as error:
            self._odd.keep(message, chunk, REFUSED, str(error))
        self.session.is_stale = True
        yield from self.save(message)
        return True

    def absorb(self, chunk: Chunk, size: int = 0) -> bool:
        """Take a chunk of the message that is being recorded; as ``receive`` otherwise."""
        message = self.message
        kind: str = chunk["type"]
        if message is None:
            self._odd.hold(chunk)
            return False
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

    def _note(self, message: RecordedMessage, chunk: Chunk, kind: str) -> None:
        """Keep what a chunk means for the message, the session and its activity."""
        session = self.session
        message.observe(chunk, self._clock())
        if kind in _TOUCHES or message.unrolled:
            session.is_stale = True
        session.take_model(chunk.get("messageMetadata"))
        if kind in TURN_ENDS:
            session.set_activity(message.activity_at_end)
        elif kind == "error":
            session.set_activity("error")
        elif kind.startswith("tool-"):
            waits = message.waits_for == "waiting-approval"
            session.set_activity("waiting-approval" if waits else "running")
        elif kind in ("start", "start-step"):
            session.set_activity("running")

    def _apply(self, message: RecordedMessage, chunk: Chunk) -> bool:
        """Apply a chunk; the text of a delta whose block never began is kept in a new block."""
        try:
            return message.state.apply(chunk)
        except ProtocolError as error:
            if not message.state.begin_missing_block(chunk):
                raise
            self._odd.refuse(str(error))
            return message.state.apply(chunk)

    def _keep_odd(
        self, message: RecordedMessage, chunk: Chunk, name: str, reason: str, size: int
    ) -> bool:
        """Keep a chunk that the SDK refuses or ignores, and go on."""
        self._odd.keep(message, chunk, name, reason)
        self.waiting += size or _size_of(chunk)
        return self.waiting >= self.full

    def _begin(self, chunk: Chunk) -> Procedure[bool]:
        """Begin or go on with the message that a chunk belongs to.

        Returns:
            False for a chunk that fits no message, which the next one keeps.
        """
        if self.message is not None:
            yield from self.end_turn()
        yield from self._queued.fire_waiting()
        broken_off = yield from self._broken_off(chunk)
        found = broken_off or (yield from self._find(chunk))
        if found is None and not self._messages.may_begin(chunk):
            return False
        if found is None:
            name = chunk.get("messageId") if chunk["type"] == "start" else None
            self.message = self._messages.new(name)
        else:
            stored = yield Operation(partial(lookup.load, message_id=found))
            self.message = self._messages.resumed(stored)
            self.message.reopen()
            if broken_off:
                self.message.go_on()
        self._odd.give_held(self.message)
        self.session.is_stale = True
        self.session.set_activity("running")
        return True

    def _broken_off(self, chunk: Chunk) -> Procedure[str | None]:
        """Find the interrupted message that a stream without a start continues."""
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

    # -- what the user answers between two streams

    def respond_approval(
        self, message_id: str, approval_id: str, approved: bool, reason: str | None = None
    ) -> Procedure[bool]:
        """Record the user's answer to a request for approval, at once.

        Args:
            message_id: The row's id, or the id that the stream gave the message.
            approval_id: The id of the request.
            approved: The answer.
            reason: What the user said to it.

        Returns:
            Whether a tool call waited for this answer.

        Raises:
            NotFound: The session has no such message.
        """
        message = yield from self._named(message_id)
        answered = message.state.respond_approval(approval_id, approved, reason)
        yield from self._answered(message, answered)
        return answered

    def set_tool_output(
        self, message_id: str, tool_call_id: str, output: object = MISSING,
        error_text: str | None = None,
    ) -> Procedure[bool]:
        """Record the outcome that the client gave a tool call, at once.

        Args:
            message_id: The row's id, or the id that the stream gave the message.
            tool_call_id: The call.
            output: What it gave.
            error_text: Why it failed; given, it makes the state ``output-error``.

        Returns:
            Whether the message has such a call.

        Raises:
            NotFound: The session has no such message.
        """
        message = yield from self._named(message_id)
        found = message.state.set_tool_output(tool_call_id, output, error_text)
        yield from self._answered(message, found)
        return found

    def _named(self, message_id: str) -> Procedure[RecordedMessage]:
        held = self.message
        if held is not None and message_id in (held.id, held.state.sdk_id):
            return held
        work = partial(lookup.by_name, session_id=self.session_id, name=message_id)
        found = yield Operation(work)
        if found is None:
            raise no_message(message_id, self.session_id)
        stored = yield Operation(partial(lookup.load, message_id=found))
        return self._messages.resumed(stored)

    def _answered(self, message: RecordedMessage, changed: bool) -> Procedure[None]:
        if not changed:
            return
        if message is not self.message or message.finished:
            message.note(continues=True)
            self.session.set_activity(message.waits_for or "idle")
        self.session.is_stale = True
        yield from self.save(message)

    def report_step_usage(self, usage: object) -> bool:
        """Take a step's usage from the host, for streams whose metadata bring none.

        Returns:
            Whether it was a usage and a message is there to count it for.
        """
        known = self.message is not None and self.message.report_usage(usage)
        self.session.is_stale = self.session.is_stale or known
        return known

    # -- saving

    def end_turn(self) -> Procedure[None]:
        """Save what waits and close the message; what comes next is another stream's."""
        if self.message is None and self._odd.are_held:
            self.message = self._messages.new(None)
            self._odd.give_held(self.message)
        message = self.message
        if message is None:
            return
        if not message.finished and self.session.activity in ("running", "waiting-approval"):
            self.session.set_activity(message.activity_at_end)
        message.state.touch_streaming()
        yield from self.save(exact=True)
        self.message = None

    def close(self) -> Procedure[None]:
        """Save what waits and note that nobody records any more."""
        try:
            yield from self._settle()
            yield from self.end_turn()
            if self.session.activity == "running":
                self.session.set_activity("idle")
            if self.session.activity_moved:
                batch = Batch(
                    self.session_id, None, self._clock(), session=self.session.take_write())
                yield change_of(self.session_id, self._write(batch))
        except NotFound:
            yield from self._leave_session()
            raise
        yield from self._leave_session()

    def _leave_session(self) -> Procedure[None]:
        """Let others record the session."""
        if self._is_claimed:
            work = partial(claims.release, session_id=self.session_id, holder=self._holder)
            yield change_of(self.session_id, work)

    def _write(self, batch: Batch) -> Callable[[Database], None]:
        """Return what writes a batch, as long as the session is this recorder's."""
        if self._is_claimed:
            return partial(_write_claimed, batch=batch, holder=self._holder)
        return partial(writing.write, batch=batch)

    def save(
        self, message: RecordedMessage | None = None, *, title: str | None = None,
        exact: bool = False,
    ) -> Procedure[None]:
        """Write everything of a message that waits, in one transaction.

        Args:
            message: The message; None takes the one that chunks go to.
            title: The title of the session, if it has none.
            exact: Parse a long tool input that still streams, however lately that was done.
        """
        yield from self._settle()
        saving = self._saving(message or self.message, title=title, exact=exact)
        if saving is None:
            return
        try:
            yield Operation(saving.change, writes=True)
        except BaseException as error:
            self.not_saved(saving, error)
            if self._unsure is None or not isinstance(error, Exception):
                raise
            if (yield from self._settle()):
                return
            if not saving.batch.is_sent:
                raise
            # The connection was lost before, which only its next use has shown.
            yield from self.save(message, title=title, exact=exact)
            return
        self.saved(saving)

    def begin_save(self, *, exact: bool = False) -> Saving | None:
        """Return what waits, to be written by the caller; None where ``save`` has to.

        ``saved`` or ``not_saved`` must follow.

        Args:
            exact: As for ``save``.
        """
        return None if self._unsure is not None else self._saving(self._message, exact=exact)

    def _saving(
        self, message: RecordedMessage | None, *, title: str | None = None, exact: bool = False
    ) -> Saving | None:
        waiting = self.waiting
        batch = self.take_batch(message, title=title, exact=exact)
        if message is None or batch is None:
            return None
        change = OfSession(batch.session_id, self._write(batch), self._at_once(batch))
        return Saving(message, batch, change, waiting)

    def saved(self, saving: Saving) -> None:
        """Note that a batch is written."""
        self._reserved = saving.batch.following
        saving.message.written(saving.batch.parts)

    def not_saved(self, saving: Saving, error: BaseException) -> None:
        """Note that writing a batch ended with an error: all of it waits again.

        Where that says nothing of the rows, the next ``save`` finds out first what became of
        them: a server whose connection was lost may have committed before, and so may a thread
        whose event loop has ended.

        Args:
            saving: The batch.
            error: The error.
        """
        batch = saving.batch
        is_lost_after = is_lost(error) and (batch.is_sent or batch.logged)
        if is_lost_after or not isinstance(error, Exception):
            self._unsure = saving.message, batch
        else:
            self.put_back(saving.message, batch)

    def _at_once(self, batch: Batch) -> Callable[[Database], OneStatement | None] | None:
        """Return what writes a batch by one statement, where the last one has reserved a number."""
        batch.reserved, self._reserved = self._reserved, None
        if batch.reserved is None:
            return None
        return partial(_write_at_once(), batch=batch, holder=self._holder)

    def _settle(self) -> Procedure[bool]:
        """Find out what became of a batch whose commit was not answered; return if it is there."""
        if self._unsure is None:
            return False
        message, batch = self._unsure
        written: bool = yield change_of(
            self.session_id, partial(writing.is_written, batch=batch))
        self._unsure = None
        if written:
            message.written(batch.parts)
        else:
            self.put_back(message, batch)
        return written

    def take_batch(
        self, message: RecordedMessage | None, *, title: str | None = None, exact: bool = False
    ) -> Batch | None:
        """Return what of a message waits, and count it as written; None if nothing does.

        ``RecordedMessage.written`` or ``put_back`` must follow.

        Args:
            message: The message.
            title: As for ``save``.
            exact: As for ``save``.
        """
        if message is self._message:
            self.waiting = 0
        if message is None or not (message.is_stale or self.session.needs_write):
            return None
        now = self._clock()
        # All or nothing: what a host gave may be no JSON.
        parts = message.take_parts(None if exact else now)
        try:
            row = message.take_message()
        except BaseException:
            message.not_written(None, parts, [], {})
            raise
        session = self.session.take_write(message, title)
        return Batch(
            self.session.id, message.id, now, row, parts, message.take_removed(), session)

    def put_back(self, message: RecordedMessage, batch: Batch) -> None:
        """Note that a batch of a message was not written: all of it waits again."""
        session = batch.session
        used = session.used if session is not None else {}
        message.not_written(batch.message, batch.parts, batch.removed, used)
        self.session.put_back(session)


def _begin(db: Database, session: writing.NewSession, holder: str) -> bool:
    writing.insert_session(db, session)
    return claims.claim(db, session.id, holder)


def _found(db: Database, name: str) -> tuple[SessionRow, bool]:
    return sessions.resolve(db, name), db.server is not None


@cache
def _write_at_once() -> Callable[..., OneStatement | None]:
    from store.recorder.at_once import write_at_once  # Only on a server.

    return write_at_once


def _write_claimed(db: Database, batch: Batch, holder: str) -> None:
    claims.claim(db, batch.session_id, holder)
    writing.write(db, batch)


def user_message(
    content: str | list[dict[str, Any]], metadata: dict[str, Any] | None = None
) -> dict[str, Any]:
    """Return a UIMessage of what a human said.

    Raises:
        Invalid: The metadata is no object.
    """
    if not isinstance(metadata, dict | None):
        raise Invalid("the metadata of a message must be an object")
    parts = [{"type": "text", "text": content}] if isinstance(content, str) else content
    return {"role": "user", "parts": parts, "metadata": {"origin": "human"} | (metadata or {})}


def _is_time(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _refuse(_: Chunk) -> None:
    return None


def _size_of(chunk: Chunk) -> int:
    """Return about how many bytes a chunk holds, where the wire did not tell."""
    held = chunk.get("url") or chunk.get("data") or chunk.get("output") or ""
    return _SMALL + weight(held, LARGE)


def title_of(parts: list[dict[str, Any]]) -> str | None:
    """Return the first line that a user wrote, cut to the length of a title."""
    for part in parts:
        text = part.get("text") if part.get("type") == "text" else None
        lines = text.strip().splitlines() if isinstance(text, str) else []
        if lines:
            line = storable(" ".join(lines[0].split()))
            return line if len(line) <= TITLE_LENGTH else line[: TITLE_LENGTH - 1] + "…"
    return None
