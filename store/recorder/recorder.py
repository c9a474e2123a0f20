"""The recorder for Python hosts: chunks in, rows in a store.

Open one with ``Recorder.open``, give it the user's message with ``user_message``, then
each chunk of the answer with ``feed``, and close it.
"""

from __future__ import annotations

import threading
from asyncio import get_running_loop
from collections.abc import AsyncIterable, Callable
from time import monotonic
from types import TracebackType
from typing import Any, Self
from weakref import WeakValueDictionary

from store.engine.async_database import AsyncDatabase
from store.errors import Invalid, NotFound, Refused
from store.queries import sessions
from store.recorder.odd_chunks import no_report
from store.recorder.part_list import Chunk, SdkVersion
from store.recorder.partial_json import MISSING
from store.recorder.policy import SavePolicy
from store.recorder.recording import Recording, user_message
from store.recorder.saving import Saver
from store.system.paths import real_path

MOST_WAITING = 16 << 20
"""Bytes of chunks that may wait while another program holds the store."""

_RECORDERS: WeakValueDictionary[tuple[str, str], Recorder] = WeakValueDictionary()
"""The open recorders of this process, by file and session; one that nobody holds is gone."""
_CLAIMING = threading.Lock()


def _key(store: AsyncDatabase, session_id: str) -> tuple[str, str]:
    return str(real_path(store.path)), session_id


def is_recorded(store: AsyncDatabase, session_id: str) -> bool:
    """Return whether a recorder of this process is open for a session.

    Args:
        store: The store.
        session_id: The session's id.
    """
    return _key(store, session_id) in _RECORDERS


class Recorder:
    """Records the UI message streams of one session into a store.

    Calls of several tasks are taken one after the other. While another program holds the
    store, chunks wait, and writing is tried again later. Meanwhile ``flush``, ``finish`` and
    ``close`` raise the reason; so does ``feed`` once too much waits, or for too long. Nothing is
    lost: make the same call again.

    It is used in one event loop at a time, and goes on in another one where the first has ended
    or no call is at work in it; else a call raises ``Refused``. Threads with a loop each may share
    a store, whichever ends first; a recorder is used by one of them at a time.
    """

    def __init__(self, store: AsyncDatabase, recording: Recording) -> None:
        """Use ``open``."""
        self._store, self._recording = store, recording
        self._saver = Saver(store, recording)
        self._claimed: tuple[str, str] | None = None

    @classmethod
    async def open(
        cls,
        store: AsyncDatabase,
        *,
        session: str | None = None,
        agent: str = "unknown",
        workspace: str | None = None,
        policy: SavePolicy | None = None,
        sdk: SdkVersion = 6,
        problem: Callable[[str], None] = no_report,
        unknown: Callable[[str], None] = no_report,
    ) -> Self:
        """Make a session and record into it, or go on with one.

        Args:
            store: The store; it stays open when the recorder closes.
            session: The id, source id or beginning of one; None makes a new session.
            agent: Who runs in a new session.
            workspace: The folder of a new session.
            policy: When what was recorded is saved.
            sdk: The AI SDK version whose reducer is followed where 6 and 7 disagree.
            problem: Called with one line for each chunk that the SDK's reader would refuse;
                the chunk is kept as a data part.
            unknown: Called with the type of each chunk that the SDK's reader would ignore;
                kept likewise.

        Raises:
            NotFound: No session has this name.
            Refused: The store is read only, or this session has a recorder already, here or in
                another process.
        """
        recording = Recording(
            policy=policy, sdk=sdk, clock=store.clock, ids=store.ids,
            problem=problem, unknown=unknown,
        )
        recorder = cls(store, recording)
        if session is not None:
            session = (await store.read(sessions.resolve, session)).id
            recorder._claim(session)
        try:
            await recorder._saver.run(recording.start(session, agent=agent, workspace=workspace))
        except BaseException:
            recorder._release()
            raise
        if session is None:
            recorder._claim(recording.session_id)
        return recorder

    def _claim(self, session_id: str) -> None:
        """Take a session for this recorder.

        Raises:
            Refused: Another recorder of this process has it.
        """
        key = _key(self._store, session_id)
        with _CLAIMING:
            if key in _RECORDERS:
                raise Refused(
                    f"session {session_id} is being recorded by this process already; use that"
                    " recorder, or close it first")
            _RECORDERS[key] = self
            self._claimed = key

    def _release(self) -> None:
        with _CLAIMING:
            if self._claimed is not None and _RECORDERS.get(self._claimed) is self:
                del _RECORDERS[self._claimed]

    @property
    def session_id(self) -> str:
        """The id of the session."""
        return self._recording.session_id

    @property
    def message_id(self) -> str | None:
        """The id of the row that chunks go to now, None between two messages."""
        message = self._recording.message
        return None if message is None else message.id

    @property
    def message(self) -> dict[str, Any] | None:
        """The UIMessage as the SDK would have it now, None between two messages.

        Its parts are the caller's: they stay as they are, whatever comes.
        """
        with self._saver.guard:
            message = self._recording.message
            return None if message is None else message.state.message()

    def generate_message_id(self) -> str:
        """Return an id for the SDK's ``generateMessageId``; the row will have the same."""
        return self._recording.generate_message_id()

    async def user_message(
        self, content: str | list[dict[str, Any]], *, metadata: dict[str, Any] | None = None
    ) -> str:
        """Store what the user said; it is on disk before this returns.

        While an answer streams, the message waits behind it and is fired when the next
        answer begins.

        Args:
            content: The text, or UIMessage parts.
            metadata: ``UIMessage.metadata``; ``origin`` is ``human`` where it says nothing.

        Returns:
            The id of the message's row.
        """
        return await self.add_message(user_message(content, metadata))

    async def queue(
        self, content: str | list[dict[str, Any]], *, metadata: dict[str, Any] | None = None
    ) -> str:
        """Store a user's message that waits behind the running turn.

        ``user_message`` during an answer does the same, and fires it with the next answer.

        Args:
            content: The text, or UIMessage parts.
            metadata: ``UIMessage.metadata``.

        Returns:
            The id of the message's row, for ``fire`` and ``cancel``.
        """
        return await self._saver.call(
            lambda: self._saver.run(self._recording.queue(user_message(content, metadata))))

    async def fire(self, message_id: str | None = None) -> str:
        """Make a queued message the last one of the transcript: its turn has come.

        Args:
            message_id: The row's id or the host's own; None for the one that has waited
                longest.

        Returns:
            The id of its row.

        Raises:
            NotFound: The session has no such message.
            Refused: The message does not wait.
        """
        _require_texts_or_none(message_id=message_id)
        return await self._saver.call(lambda: self._saver.run(self._recording.fire(message_id)))

    async def cancel(self, message_id: str | None = None) -> str:
        """Take a queued message out of the queue; its row stays, hidden.

        Args:
            message_id: As for ``fire``.

        Returns:
            The id of its row.

        Raises:
            NotFound: The session has no such message.
            Refused: The message does not wait.
        """
        _require_texts_or_none(message_id=message_id)
        return await self._saver.call(lambda: self._saver.run(self._recording.cancel(message_id)))

    async def abort(self, reason: str | None = None) -> None:
        """End the answer that is being recorded, as an ``abort`` chunk does.

        Texts end as far as they came, open calls as interrupted. Nothing happens between
        two messages.
        """
        _require_texts_or_none(reason=reason)
        chunk: Chunk = {"type": "abort"} if reason is None else {"type": "abort", "reason": reason}

        async def work() -> None:
            if self._recording.message is not None:
                self._recording.absorb(chunk)
                await self._saver.save_now(self._recording.end_turn())

        await self._saver.call(work)

    async def add_message(self, message: dict[str, Any]) -> str:
        """Store a whole UIMessage (``{id?, role, parts, metadata?}``) as it is.

        Returns:
            The id of its row.

        Raises:
            Refused: The session has a message of this id already, or it is no message.
        """
        return await self._saver.call(lambda: self._saver.run(self._recording.add_message(message)))

    async def feed(self, chunk: Chunk, *, size: int = 0) -> None:
        """Take one UI message chunk.

        Args:
            chunk: ``{"type": ..., ...}``.
            size: Its bytes on the wire, where known.

        Raises:
            Invalid: It is no chunk.
            Refused: The recorder is closed; or another program holds the store, and as much
                waits as may: this chunk was not taken, and can be fed again.
            NotFound: The session was deleted. What waits is kept, in case that is undone.
        """
        # What each chunk takes is here in one piece: calls are a third of it.
        recording, saver = self._recording, self._saver
        if saver.loop is not get_running_loop():
            saver.enter()
        if saver.backoff.tries and (
            recording.waiting >= MOST_WAITING or saver.backoff.is_hopeless
        ):
            await saver.call(saver.save_or_refuse)
        free, now, taken = not saver.calls, False, False
        with saver.guard:
            grown = recording.grow(chunk) if free else None
            if grown is not None:
                recording.waiting += size or grown
                now, taken = recording.waiting >= recording.full, True
            elif not isinstance(chunk, dict) or not isinstance(chunk.get("type"), str):
                raise Invalid("a chunk must be an object with a type")
            elif free and not recording.needs_store(chunk):
                now, taken = recording.absorb(chunk, size), True
        if not taken:
            await saver.call(lambda: self._receive(chunk, size))
        if now and not saver.backoff.tries:
            await saver.save_at_once()
        elif not saver.is_late and (saver.due.at is None or monotonic() >= saver.due.at):
            saver.save_soon()

    async def _receive(self, chunk: Chunk, size: int) -> None:
        if await self._saver.run(self._recording.receive(chunk, size)):
            await self._saver.save_or_wait()

    async def feed_all(self, chunks: AsyncIterable[Chunk]) -> None:
        """Take a whole stream.

        Raises:
            Invalid: It is no asynchronous iterator.
        """
        if not isinstance(chunks, AsyncIterable):
            raise Invalid(
                "feed_all takes an asynchronous iterator of chunks,"
                f" not {type(chunks).__name__}; feed takes one chunk")
        async for chunk in chunks:
            await self.feed(chunk)

    async def report_step_usage(self, usage: dict[str, Any]) -> bool:
        """Count a step's usage that the stream does not carry (the SDK's ``onStepFinish``).

        Args:
            usage: The contract's five buckets, or the SDK's ``LanguageModelUsage``.

        Returns:
            Whether it was counted.
        """
        async def work() -> bool:
            counted = self._recording.report_step_usage(usage)
            if counted:
                await self._saver.save_or_wait()
            return counted

        return await self._saver.call(work)

    async def respond_approval(
        self, message_id: str, approval_id: str, approved: bool, reason: str | None = None
    ) -> bool:
        """Record the user's answer to a request for approval; see ``Recording``.

        Args:
            message_id: The message's id.
            approval_id: The approval's id.
            approved: The answer.
            reason: What the user said to it; None for nothing.

        Raises:
            NotFound: The session has no such message.
        """
        _require_texts(message_id=message_id, approval_id=approval_id)
        _require_texts_or_none(reason=reason)
        return await self._saver.call(lambda: self._saver.run(
            self._recording.respond_approval(message_id, approval_id, approved, reason)))

    async def set_tool_output(
        self, message_id: str, tool_call_id: str, output: object = MISSING,
        error_text: str | None = None,
    ) -> bool:
        """Record the outcome that the client gave a tool call; see ``Recording``.

        Args:
            message_id: The message's id.
            tool_call_id: The tool call's id.
            output: What the call gave.
            error_text: Why it failed; given, the state is ``output-error``.

        Raises:
            NotFound: The session has no such message.
        """
        _require_texts(message_id=message_id, tool_call_id=tool_call_id)
        _require_texts_or_none(error_text=error_text)
        return await self._saver.call(lambda: self._saver.run(
            self._recording.set_tool_output(message_id, tool_call_id, output, error_text)))

    async def flush(self) -> None:
        """Save what waits, whatever the policy says.

        Raises:
            NotFound: The session was deleted. What waits is kept, in case that is undone.
            Refused: Another program holds the store.
        """
        await self._saver.flush()

    async def finish(self) -> None:
        """Save what waits and end the message; the next chunk begins another stream."""
        await self._saver.call(lambda: self._saver.save_now(self._recording.end_turn()))

    async def close(self) -> None:
        """Save what waits and say that nobody records any more; twice does no harm.

        Raises:
            NotFound: The session was deleted, and what waited is lost; it is closed all the same.
            Refused: Another program holds the store; it is not closed.
        """
        async def work() -> None:
            if self._saver.closed:
                return
            try:
                await self._saver.save_now(self._recording.close())
            except NotFound:
                self._end()
                raise
            self._end()

        await self._saver.call(work)

    def _end(self) -> None:
        self._saver.end()
        self._release()

    async def __aenter__(self) -> Self:
        """Return the recorder."""
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Close the recorder."""
        await self.close()


def _require_texts(**values: object) -> None:
    """Raise unless each value is a text.

    Raises:
        Invalid: One is something else; the message names it.
    """
    for name, value in values.items():
        if not isinstance(value, str):
            raise Invalid(f"{name} must be a text, not {type(value).__name__}")


def _require_texts_or_none(**values: object) -> None:
    """Raise unless each value is a text or None.

    Raises:
        Invalid: One is something else; the message names it.
    """
    _require_texts(**{name: value for name, value in values.items() if value is not None})
