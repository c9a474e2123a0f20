"""The recorder for Python hosts: chunks in, rows in a store.

Open one with ``Recorder.open``, give it the user's message with ``user_message``, then
each chunk of the answer with ``feed``, and close it.
"""

from __future__ import annotations

import asyncio
import contextlib
import threading
import time
from collections.abc import AsyncIterable, AsyncIterator, Callable, Coroutine, Generator
from types import TracebackType, coroutine
from typing import Any, Self, TypeVar
from weakref import WeakValueDictionary

from store.engine.async_database import AsyncDatabase
from store.engine.transactions import OfSession, is_lost
from store.errors import BackscrollError, Invalid, Refused
from store.queries import sessions
from store.recorder.backoff import AGAIN, Backoff
from store.recorder.odd_chunks import no_report
from store.recorder.part_list import Chunk, SdkVersion
from store.recorder.partial_json import MISSING
from store.recorder.policy import SavePolicy
from store.recorder.procedures import Procedure
from store.recorder.recording import Recording, Saving, delta_size, user_message
from store.system.paths import real_path

T = TypeVar("T")
MOST_WAITING = 16 << 20
"""Bytes of chunks that may wait while another program holds the store."""
_EARLY_S = 0.001
"""A chunk that comes so shortly before a save is due starts it."""


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
    """

    def __init__(self, store: AsyncDatabase, recording: Recording) -> None:
        """Use ``open``."""
        self._store = store
        self._recording = recording
        self._lock = asyncio.Lock()
        self._timer: asyncio.TimerHandle | None = None
        self._due = 0.0
        self._background: asyncio.Task[None] | None = None
        self._saving: Saving | None = None
        self._waiters: list[asyncio.Future[BaseException | None]] = []
        # The thread of the store takes what waits, too, unless a call is at work alone.
        self._guard = threading.RLock()
        self._is_alone = False
        self._in_line = 0  # Calls that have begun and not ended, with those that wait.
        self._is_late = False
        self._loop = asyncio.get_running_loop()
        self._in_background = False
        self._backoff = Backoff()
        self._tasks: set[asyncio.Task[Any]] = set()
        self._closed = False
        self._claimed: tuple[str, str] | None = None
        self._timer_s = None
        if recording.policy.save_on == "chunk":
            self._timer_s = recording.policy.save_buffer_ms / 1000

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
            await recorder._run(recording.start(session, agent=agent, workspace=workspace))
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
        with self._guard:
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
        return await self._alone(
            lambda: self._run(self._recording.queue(user_message(content, metadata))))

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
        return await self._alone(lambda: self._run(self._recording.fire(message_id)))

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
        return await self._alone(lambda: self._run(self._recording.cancel(message_id)))

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
                await self._save_now(self._recording.end_turn())

        await self._alone(work)

    async def add_message(self, message: dict[str, Any]) -> str:
        """Store a whole UIMessage (``{id?, role, parts, metadata?}``) as it is.

        Returns:
            The id of its row.

        Raises:
            Refused: The session has a message of this id already, or it is no message.
        """
        return await self._alone(lambda: self._run(self._recording.add_message(message)))

    async def feed(self, chunk: Chunk, *, size: int = 0) -> None:
        """Take one UI message chunk.

        Args:
            chunk: ``{"type": ..., ...}``.
            size: Its bytes on the wire, where known.

        Raises:
            Invalid: It is no chunk.
            Refused: The recorder is closed; or another program holds the store, and as much
                waits as may: this chunk was not taken, and can be fed again.
        """
        recording, backoff = self._recording, self._backoff
        if backoff.tries and (recording.waiting >= MOST_WAITING or backoff.is_hopeless):
            await self._alone(self._save_or_refuse)
        # Nothing to wait for where no call is at work, or only a save that has its rows already.
        free, now, taken = self._in_line == int(self._in_background), False, False
        with self._guard:
            if free and recording.grow(chunk):
                recording.waiting += size or delta_size(chunk)
                now, taken = recording.waiting >= recording.full, True
            elif not isinstance(chunk, dict) or not isinstance(chunk.get("type"), str):
                raise Invalid("a chunk must be an object with a type")
            elif free and not recording.needs_store(chunk):
                now, taken = recording.absorb(chunk, size), True
        if not taken:
            await self._alone(lambda: self._receive(chunk, size))
        if now and not backoff.tries:
            if not self._begin_save() or not await self._is_saved():
                await self._alone(self._save_or_wait)
        elif self._timer is None:
            if recording.waiting and not self._is_late:
                self._start_timer()
        elif time.monotonic() >= self._due:
            # The timer would wake the loop a moment later, for this alone.
            self._stop_timer()
            self._on_timer()

    async def _receive(self, chunk: Chunk, size: int) -> None:
        if await self._run(self._recording.receive(chunk, size)):
            await self._save_or_wait()

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
                await self._save_or_wait()
            return counted

        return await self._alone(work)

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
        return await self._alone(lambda: self._run(
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
        return await self._alone(lambda: self._run(
            self._recording.set_tool_output(message_id, tool_call_id, output, error_text)))

    async def flush(self) -> None:
        """Save what waits, whatever the policy says."""
        if not self._begin_save(exact=True) or not await self._is_saved(or_refuse=True):
            await self._alone(lambda: self._save_now(self._recording.save(exact=True)))

    async def finish(self) -> None:
        """Save what waits and end the message; the next chunk begins another stream."""
        await self._alone(lambda: self._save_now(self._recording.end_turn()))

    async def close(self) -> None:
        """Save what waits and say that nobody records any more; twice does no harm."""
        async def work() -> None:
            if not self._closed:
                await self._save_now(self._recording.close())
                self._closed = True
                self._release()

        await self._alone(work)

    async def __aenter__(self) -> Self:
        """Return the recorder."""
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Close the recorder."""
        await self.close()

    # -- saving

    def _begin_save(self, *, exact: bool = False) -> bool:
        """Begin to save what waits where nobody else saves, with no task and no lock.

        Args:
            exact: As for ``Recording.save``.

        Returns:
            False where nothing was begun, and the usual way has to.
        """
        with self._guard:
            if (self._saving or self._closed or self._backoff.tries or self._lock.locked()
                    or not self._store.can_begin):
                return False
            saving = self._saving = self._recording.begin_save(exact=exact)
        if saving is None:
            return False
        self._stop_timer()
        try:
            self._store.begin(saving.change, self._save_ended)
        except Exception as error:
            self._end_saving(error)
        # What could not even begin is for the usual way, which says why.
        return self._saving is not None

    def _late_change(self) -> OfSession | None:
        """Take what waits, on the thread that writes; None where the loop has to, or need not."""
        with self._guard:
            self._is_late = False
            if not self._recording.waiting or self._closed or self._backoff.tries:
                return None
            waiting = self._recording.waiting
            if self._saving is None and not self._is_alone:
                try:
                    self._saving = self._recording.begin_save()
                except Exception:
                    # A value of the host is no JSON, or the host is changing it: in the loop
                    # it fails again and the host sees why, or it can be saved.
                    self._recording.waiting = waiting
                if self._saving is not None:
                    return self._saving.change
        self._call(self._save_after_all)
        return None

    def _save_after_all(self) -> None:
        """Save what the thread could not take, as the loop was at it."""
        if self._timer is None:
            self._on_timer()

    def _late_ended(self, error: BaseException | None) -> None:
        """Take the end of a save, on the thread that writes."""
        with self._guard:
            if error is None and not self._waiters and self._saving is not None:
                self._recording.saved(self._saving)
                self._saving = None
                return
        if not self._call(lambda: self._save_ended(error)):
            self._end_saving(error)  # What is not saved waits for a call in another loop.

    def _call(self, work: Callable[[], object]) -> bool:
        """Call a function in the loop; return False where that has ended."""
        try:
            self._loop.call_soon_threadsafe(work)
        except RuntimeError:
            return False
        return True

    def _end_saving(
        self, error: BaseException | None
    ) -> list[asyncio.Future[BaseException | None]]:
        """Take the end of a save; return who waits for it."""
        with self._guard:
            saving, self._saving = self._saving, None
            waiters = [waiter for waiter in self._waiters if not waiter.done()]
            self._waiters = []
            assert saving is not None
            if error is None:
                self._recording.saved(saving)
            else:
                self._recording.not_saved(saving, error)
                self._recording.waiting += saving.waiting or 1
        return waiters

    def _save_ended(self, error: BaseException | None) -> None:
        waiters = self._end_saving(error)
        if isinstance(error, Refused) and not is_lost(error):
            self._try_again(error, self._recording.waiting)
        elif error is not None:
            if self._timer is None and not self._is_late:
                self._start_timer()
            if not waiters:
                self._save_behind()
        for waiter in waiters:
            waiter.set_result(error)

    async def _save_end(self) -> BaseException | None:
        """Wait for the end of the save that was begun; return its error."""
        loop = asyncio.get_running_loop()
        waiter = loop.create_future()
        with self._guard:
            if self._saving is None:
                return None
            self._loop = loop
            self._waiters.append(waiter)
        error: BaseException | None = await waiter
        return error

    async def _is_saved(self, *, or_refuse: bool = False) -> bool:
        """Wait for the end of the save that was begun.

        Args:
            or_refuse: Whether to raise what it was refused for, which is tried again later.

        Returns:
            False where it has to be tried again now.

        Raises:
            Refused: Another program holds the store.
        """
        error = await self._save_end()
        refused = isinstance(error, Refused) and not is_lost(error)
        if error is not None and refused and or_refuse:
            raise error
        return error is None or refused

    async def _save_or_wait(self) -> None:
        if self._is_put_off:
            return
        with contextlib.suppress(Refused):
            await self._save_now(self._recording.save())

    @property
    def _is_put_off(self) -> bool:
        """Whether the store was held at the last try, and the next one is due later."""
        return self._backoff.tries > 0 and self._timer is not None

    async def _save_or_refuse(self) -> None:
        """Save what waits.

        Raises:
            Refused: The store is held, and too much waits.
        """
        waiting = self._recording.waiting
        try:
            await self._save_now(self._recording.save())
        except Refused as error:
            raise Refused(
                f"{error}. {waiting:,} bytes of session {self.session_id} wait for it and are"
                " kept; this chunk was not taken: feed it again when the store is free") from error

    async def _save_now(self, saving: Procedure[None]) -> None:
        """Save at once; what is refused is kept, and tried again a little later.

        Raises:
            Refused: Another program holds the store.
        """
        self._stop_timer()
        waiting = self._recording.waiting
        try:
            await self._run(saving)
        except Refused as error:
            if not self._closed:
                self._try_again(error, waiting)
            raise
        if self._backoff.went_well():
            self._recording.report(AGAIN)

    def _try_again(self, error: Refused, waiting: int) -> None:
        """Keep the rows, which are written a little later, or by ``close``.

        Args:
            error: Why they cannot be written now.
            waiting: The bytes that could not.
        """
        self._recording.report(str(error))
        # Where the try failed before it took a batch, they are counted still.
        counted = self._recording.waiting
        self._recording.waiting = (counted if counted >= waiting else counted + waiting) or 1
        self._stop_timer()
        self._start_timer(self._backoff.failed())

    def _start_timer(self, after_s: float | None = None) -> None:
        seconds = self._timer_s if after_s is None else after_s
        if seconds is not None and after_s is None and not self._backoff.tries:
            self._is_late = True  # Before, as the thread may be quick.
            self._loop = asyncio.get_running_loop()
            if self._store.begin_later(self._late_change, self._late_ended, seconds):
                return
            self._is_late = False
        if seconds is not None:
            self._due = time.monotonic() + seconds - _EARLY_S
            self._timer = asyncio.get_running_loop().call_later(seconds, self._on_timer)

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _on_timer(self) -> None:
        self._timer = None
        if self._recording.waiting and not self._begin_save():
            self._save_behind()

    def _save_behind(self) -> None:
        """Save what waits after what has begun."""
        self._background = asyncio.create_task(self._save_in_background())

    async def _save_in_background(self) -> None:
        async with self._in_turn():
            if not self._recording.waiting or self._is_put_off:
                return
            self._in_background = True
            try:
                with contextlib.suppress(Refused):  # It was reported, and is tried again.
                    await self._save_now(self._recording.save())
            except BackscrollError as error:
                self._recording.report(str(error))
            finally:
                self._in_background = False

    @contextlib.asynccontextmanager
    async def _in_turn(self) -> AsyncIterator[None]:
        """Begin after what other tasks have begun, and keep the thread from taking what waits."""
        self._in_line += 1
        try:
            async with self._lock:
                with self._guard:
                    self._is_alone = True
                try:
                    await self._save_end()
                    yield
                finally:
                    self._is_alone = False
        finally:
            self._in_line -= 1

    async def _alone(self, work: Callable[[], Coroutine[Any, Any, T]]) -> T:
        """Do something after what other tasks began; a caller that is cancelled does not end it.

        What is being written then is written whole, and counted once.
        """
        async def locked() -> T:
            async with self._in_turn():
                return await work()

        doing = locked()
        while True:
            try:
                # By hand, as a task for it takes two more rounds of the loop.
                waited = doing.send(None)
            except StopIteration as end:
                done: T = end.value
                return done
            try:
                await asyncio.shield(waited)
            except asyncio.CancelledError:
                if not waited.cancelled():
                    task = asyncio.ensure_future(_rest(doing, waited))
                    self._tasks.add(task)
                    task.add_done_callback(self._ended)
                    raise
            except Exception:  # noqa: S110 - what waits for it gets it
                pass

    def _ended(self, task: asyncio.Task[Any]) -> None:
        self._tasks.discard(task)
        if not task.cancelled():
            task.exception()  # Nobody waits for it; what was not written was reported.

    async def _run(self, procedure: Procedure[T]) -> T:
        store = self._store
        if self._closed:
            raise Refused(
                f"the recorder of session {self.session_id} is closed; open another one with"
                " Store.recorder")
        try:
            operation = next(procedure)
            while True:
                run = store.write if operation.writes else store.read
                try:
                    result = await run(operation.work)
                except BaseException as error:
                    operation = procedure.throw(error)
                else:
                    operation = procedure.send(result)
        except StopIteration as stop:
            return stop.value  # type: ignore[no-any-return]


async def _rest(doing: Coroutine[Any, Any, T], waited: asyncio.Future[Any]) -> T:
    """Do the rest of what has begun.

    Args:
        doing: What has begun.
        waited: What it waits for now.
    """
    await asyncio.wait([waited])
    return await _resumed(doing)


@coroutine
def _resumed(doing: Coroutine[Any, Any, T]) -> Generator[Any, Any, T]:
    return (yield from doing.__await__())


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
