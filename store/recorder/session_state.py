"""What a recording knows of its session's row, and what of that is not written yet."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from store.recorder.batch import SessionWrite
from store.recorder.json_text import dump
from store.recorder.message import RecordedMessage
from store.recorder.models import model_of
from store.system.clock import Clock
from store.system.processes import Process, this_process

if TYPE_CHECKING:
    from store.activity.states import ActivityState


class SessionState:
    """The session's activity and model, and whether its row is behind.

    Attributes:
        id: The session's id.
        process: Who records; its activity names it while the session runs.
        activity: What the session does; "" where nobody knows.
        is_stale: Whether anything but the activity and model makes the row stale.
    """

    def __init__(self, clock: Clock) -> None:
        """Start without a session.

        Args:
            clock: The present in epoch ms.
        """
        self.id = ""
        self.process: Process = this_process()
        self.activity: ActivityState | str = "idle"
        self.is_stale = False
        self._clock = clock
        self._activity_moved = False
        self._model: object = None
        self._model_moved = False

    @property
    def needs_write(self) -> bool:
        """Whether the row is stale enough to be written without a message's rows."""
        return self.is_stale or self._activity_moved

    @property
    def activity_moved(self) -> bool:
        """Whether the stored activity is another."""
        return self._activity_moved

    def set_activity(self, state: str) -> None:
        """Take what the session does now."""
        if state != self.activity:
            self.activity, self._activity_moved = state, True

    def take_model(self, metadata: object) -> None:
        """Take the model that a message's metadata names."""
        model = model_of(metadata)
        if model is not None and model != self._model:
            self._model, self._model_moved = model, True

    def activity_json(self) -> dict[str, Any]:
        """Return ``metadata_json.activity``."""
        found: dict[str, Any] = {"state": self.activity, "from": "stored", "since": self._clock()}
        return found | self.process.as_json() if self.activity == "running" else found

    def take_write(
        self, message: RecordedMessage | None = None, title: str | None = None
    ) -> SessionWrite | None:
        """Return what the row lacks, and count it as written; None where it lacks nothing.

        Args:
            message: The message whose usage is added to the rollups.
            title: The title of the session, if it has none.
        """
        if not (self.needs_write or self._model_moved) and title is None:
            return None
        write = SessionWrite(title=title)
        if message is not None and message.unrolled:
            write.used = message.take_used()
        if self._model_moved:
            write.model_json = dump(self._model)
        if self._activity_moved:
            write.activity_json = dump(self.activity_json())
        self.is_stale = self._activity_moved = self._model_moved = False
        return write

    def put_back(self, write: SessionWrite | None) -> None:
        """Note that a write failed: the row lacks all of it again."""
        if write is not None:
            self.is_stale = True
            self._activity_moved = self._activity_moved or write.activity_json is not None
            self._model_moved = self._model_moved or write.model_json is not None
