"""What of a recording waits to be written, and what goes into one transaction."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from store.ids import IdMinter
from store.recorder import writing
from store.recorder.batch import Batch, SessionWrite
from store.recorder.json_text import dump
from store.recorder.message import RecordedMessage
from store.recorder.part_list import Chunk, SdkVersion
from store.recorder.policy import SavePolicy
from store.recorder.procedures import Operation, Procedure
from store.system.clock import Clock, system_clock
from store.system.processes import Process, this_process

Problem = Callable[[str], None]


def nothing(_: str) -> None:
    """Take a problem and tell nobody."""


class Saving:
    """The state of a recording, and its way into the store.

    Attributes:
        session_id: The session's id.
        message: The message that chunks go to; None between two messages.
        waiting: Bytes that wait to be saved, about; 0 when nothing waits.
        full: How many may wait.
    """

    def __init__(
        self, *, policy: SavePolicy | None = None, sdk: SdkVersion = 6,
        clock: Clock = system_clock, ids: IdMinter | None = None, problem: Problem = nothing,
        unknown: Problem = nothing,
    ) -> None:
        """Set up a recording; ``Recording.start`` makes or finds its session.

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
        self.session_id = ""
        self.message: RecordedMessage | None = None
        self.waiting = 0
        self._sdk = sdk
        self._clock, self._ids = clock, ids or IdMinter(clock)
        self._problem, self._unknown = problem, unknown
        self._process: Process = this_process()
        self._reserved: set[str] = set()
        self._newest_at = 0
        self._activity, self._activity_moved = "idle", False
        self._touch = False
        self._held: list[tuple[Chunk, str]] = []
        self._fire_next: list[str] = []
        self._reported = ""
        self._model: object = None
        self._model_moved = False

    def report(self, reason: str) -> None:
        """Tell the host of a problem."""
        self._problem(reason)

    def end_turn(self) -> Procedure[None]:
        """Save what waits and close the message; what comes next is another stream's."""
        message = self.message
        if message is None:
            return
        if not message.finished and self._activity in ("running", "waiting-approval"):
            self._set_activity(self._settled(message))
        message.state.touch_streaming()
        yield from self.save(exact=True)
        self.message = None

    def close(self) -> Procedure[None]:
        """Save what waits and say that nobody records any more."""
        yield from self.end_turn()
        if self._activity == "running":
            self._set_activity("idle")
        if self._activity_moved:
            now = self._clock()
            batch = Batch(self.session_id, None, now, session=self._take_session())
            yield Operation(partial(writing.write, batch=batch), writes=True)

    def _settled(self, message: RecordedMessage) -> str:
        """Return the activity after a stream has ended, however it did."""
        if message.waits_for == "waiting-approval":
            return "waiting-approval"
        reason = message.own.get("finish_reason")
        if reason == "error" or (not reason and message.own.get("error")):
            return "error"
        if "aborted_at" in message.own or not message.finished:
            return "interrupted"
        return message.waits_for or "idle"

    def save(self, title: str | None = None, *, exact: bool = False) -> Procedure[None]:
        """Write everything that waits, in one transaction.

        Args:
            title: The title of the session, if it has none.
            exact: Parse a long tool input that still streams, however lately that was done.
        """
        message, batch = self.message, self.take_batch(title, exact=exact)
        if message is None or batch is None:
            return
        try:
            yield Operation(partial(writing.write, batch=batch), writes=True)
        except BaseException:
            self.put_back(message, batch)
            raise
        message.written(batch.parts)

    def take_batch(self, title: str | None = None, *, exact: bool = False) -> Batch | None:
        """Return what waits, as ``save`` writes it, and count it as written.

        ``RecordedMessage.written`` or ``put_back`` must follow.
        """
        message = self.message
        self.waiting = 0
        if message is None or not (message.is_stale or self._touch or self._activity_moved):
            return None
        now = self._clock()
        session = self._take_session(message, title)
        return Batch(
            self.session_id, message.id, now, message.take_message(),
            message.take_parts(None if exact else now), message.take_removed(), session,
        )

    def put_back(self, message: RecordedMessage, batch: Batch) -> None:
        """Note that a batch of this message was not written: all of it waits again."""
        session = batch.session
        used = session.used if session is not None else {}
        message.not_written(batch.message, batch.parts, batch.removed, used)
        self._touch = self._touch or session is not None
        self._activity_moved = self._activity_moved or bool(session and session.activity_json)
        self._model_moved = self._model_moved or bool(session and session.model_json)

    def _take_session(
        self, message: RecordedMessage | None = None, title: str | None = None
    ) -> SessionWrite | None:
        moved = self._touch or self._activity_moved or self._model_moved
        if not moved and title is None:
            return None
        session = SessionWrite(title=title)
        if message is not None and message.unrolled:
            session.used = message.take_used()
        if self._model_moved:
            session.model_json = dump(self._model)
        if self._activity_moved:
            session.activity_json = dump(self._activity_json())
        self._touch = self._activity_moved = self._model_moved = False
        return session

    def _set_activity(self, state: str) -> None:
        if state != self._activity:
            self._activity, self._activity_moved = state, True

    def _activity_json(self) -> dict[str, Any]:
        found: dict[str, Any] = {"state": self._activity, "from": "stored", "since": self._clock()}
        return found | self._process.as_json() if self._activity == "running" else found
