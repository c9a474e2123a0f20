"""The message that is being recorded: its reducer, its usage, and how it ended."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from store.ids import IdMinter
from store.recorder.batch import MessageWrite, PartWrite
from store.recorder.json_text import given_dump
from store.recorder.large_json import is_large
from store.recorder.lookup import StoredMessage
from store.recorder.part_list import Chunk, ProtocolError, SdkVersion
from store.recorder.partial_json import MISSING
from store.recorder.reading import OWN_KEY, own_of, sdk_metadata
from store.recorder.reducer import MessageState
from store.recorder.usage import Buckets, UsageSum, added, buckets_of
from store.system.clock import Clock

_ENDINGS = ("aborted_at", "abort_reason", "interrupted_at", "error", "protocol_error",
            "finish_reason", "continues")
_OWN_SUMS = ("usage", "usage_added", "stream_usage", "metadata", "empty_metadata",
             "sdk_message_id")


class RecordedMessage:
    """A message of the session that chunks go to.

    Attributes:
        own: Its keys under ``metadata_json.backscroll`` beyond usage and id.
        started: Whether ``start`` came, or the message was stored already.
        finished: Whether ``finish`` or ``abort`` came.
    """

    def __init__(self, row_id: str, created_at: int, state: MessageState) -> None:
        """Start a message that has no row yet.

        Args:
            row_id: The id for its row.
            created_at: Epoch ms.
            state: Its parts as far as they are received.
        """
        self.id = row_id
        self.role = "assistant"
        self.created_at = created_at
        self.state = state
        self.usage = UsageSum()
        self.own: dict[str, Any] = {}
        self.started = False
        self.finished = False
        self._rolled: Buckets = added({}, {})
        self._stored = False
        self._stale = True

    def resume(self, stored: StoredMessage) -> None:
        """Take up what is stored of it."""
        own = own_of(stored.metadata)
        self.role = stored.role
        self.usage = UsageSum(_stored_usage(stored.metadata, own))
        self._rolled = dict(self.usage.total)
        self.own = {key: value for key, value in own.items() if key not in _OWN_SUMS}
        self.state.sdk_id = own.get("sdk_message_id", stored.id)
        self.state.metadata = sdk_metadata(stored.metadata)
        after = 1 + max((part.index for part in stored.parts), default=-1)
        self.state.restore(stored.parts, max(after, int(own.get("next_index", 0))))
        self._stored, self._stale, self.started = True, False, True

    def reopen(self) -> None:
        """Forget how an earlier stream of it ended."""
        for key in _ENDINGS:
            if self.own.pop(key, None) is not None:
                self._stale = True

    def go_on(self) -> None:
        """Continue the stream where its recording was interrupted."""
        self.state.reopen_blocks()
        self.usage.go_on()

    def note(self, **facts: object) -> None:
        """Keep facts that no part holds."""
        self.own |= facts
        self._stale = True

    def observe(self, chunk: Chunk, at: int) -> None:
        """Keep what a chunk says beside the parts: usage, errors, how it ended."""
        kind = chunk["type"]
        metadata = chunk.get("messageMetadata")
        self.started = self.started or kind == "start"
        if kind == "start" and self.finished:
            self.finished = False
            self.reopen()
        elif kind == "start-step":
            self.usage.start_step()
        elif kind == "message-metadata" and isinstance(metadata, dict):
            self.usage.report(metadata.get("usage"))
        elif kind == "finish":
            if isinstance(metadata, dict):
                self.usage.report_total(metadata)
            self.note(finish_reason=chunk.get("finishReason"))
            self.finished = True
        elif kind == "error":
            self.note(error=chunk.get("errorText"))
        elif kind == "abort":
            reason = {"abort_reason": chunk["reason"]} if chunk.get("reason") else {}
            settled = {"settled": before} if (before := self.state.settle()) else {}
            self.note(aborted_at=at, **reason, **settled)
            self.finished = True
        elif kind == "reset-step":
            self.note(next_index=self.state.next_index)
        if metadata is not None or kind == "start":
            self._stale = True

    def report_usage(self, usage: object) -> bool:
        """Take a step's usage from the host; say whether it was one."""
        known = self.usage.report(usage)
        self._stale = self._stale or known
        return known

    @property
    def waits_for(self) -> str | None:
        """``waiting-approval`` or ``waiting-input`` where a tool call waits for the user."""
        found = None
        for part in self.state.parts:
            if not part.is_tool:
                continue
            state = part.shape.get("state")
            if state == "approval-requested":
                return "waiting-approval"
            if state == "input-available" and not part.shape.get("providerExecuted"):
                found = "waiting-input"
        return found

    @property
    def activity_at_end(self) -> str:
        """The session's activity after the stream has ended, however it did."""
        if self.waits_for == "waiting-approval":
            return "waiting-approval"
        reason = self.own.get("finish_reason")
        if reason == "error" or (not reason and self.own.get("error")):
            return "error"
        if "aborted_at" in self.own or not self.finished:
            return "interrupted"
        return self.waits_for or "idle"

    @property
    def is_stale(self) -> bool:
        """Whether any row is behind."""
        return bool(self._stale or self.state.changed or self.state.removed)

    @property
    def unrolled(self) -> bool:
        """Whether usage has come that the session's rollups do not hold."""
        return self.usage.total != self._rolled

    def metadata_json(self) -> str:
        """Return the row's ``metadata_json``."""
        given = self.state.metadata
        own = dict(self.own)
        held: dict[str, Any] = {}
        if isinstance(given, dict):
            held = {key: value for key, value in given.items() if key != OWN_KEY}
            if OWN_KEY in given:
                own["metadata"] = given
            elif not given:
                own["empty_metadata"] = True
        elif given is not MISSING:
            own["metadata"] = given
        if self.state.sdk_id is not None and self.state.sdk_id != self.id:
            own["sdk_message_id"] = self.state.sdk_id
        total = self.usage.total
        if any(total.values()) and held.get("usage") != total:
            if "usage" in held:
                own["stream_usage"] = held["usage"]
            else:
                own["usage_added"] = True
            held["usage"] = total
        return given_dump(held | {OWN_KEY: own} if own else held)

    # -- rows

    def take_message(self) -> MessageWrite | None:
        """Return the message's row where it is behind, and count it as written."""
        if not self._stale:
            return None
        write = MessageWrite(
            self.id, self.role, self.metadata_json(), self.created_at, not self._stored
        )
        self._stale = False
        return write

    def take_used(self) -> Buckets:
        """Return what the rollups lack, and count it as added."""
        used = added(self.usage.total, self._rolled, -1)
        self._rolled = dict(self.usage.total)
        return used

    def take_parts(self, now: int | None) -> list[PartWrite]:
        """Return the parts whose rows are behind, and count them as written.

        Args:
            now: Epoch ms, where a long input may be parsed later; None parses it now.
        """
        writes = []
        for part in self.state.changed:
            columns, data = part.columns, part.data_at(now)
            large = is_large(data)
            writes.append(PartWrite(
                # Chunks may come while a large part is written; they set keys of its own object.
                part, columns, None if large else given_dump(data), dict(data) if large else data,
                part.stored is None, part.stored != columns,
            ))
        for part in self.state.changed:
            part.dirty = False
        self.state.changed = []
        return writes

    def take_removed(self) -> list[str]:
        """Return the rows that are to go, and count them as gone."""
        removed, self.state.removed = self.state.removed, []
        return removed

    def written(self, parts: list[PartWrite]) -> None:
        """Note that a batch was committed."""
        self._stored = True
        for write in parts:
            write.part.stored = write.columns

    def not_written(
        self, message: MessageWrite | None, parts: list[PartWrite], removed: list[str],
        used: Buckets,
    ) -> None:
        """Note that a batch failed: everything in it is behind again.

        Args:
            message: The message's row, if it was in the batch.
            parts: Its parts in the batch.
            removed: Ids of its parts that were to be deleted.
            used: Tokens that were to be added to the rollups.
        """
        self._stale = self._stale or message is not None
        self._rolled = added(self._rolled, used, -1)
        self.state.removed = removed + self.state.removed
        gone = set(self.state.removed)
        for write in parts:
            if write.part.row_id not in gone:
                self.state.touch(write.part)


class Messages:
    """Makes the messages of a session: their ids, times and reducers.

    Attributes:
        newest_at: ``created_at`` of the newest message, epoch ms.
    """

    def __init__(self, ids: IdMinter, clock: Clock, sdk: SdkVersion) -> None:
        """Start for a session without messages.

        Args:
            ids: Mints the ids of rows.
            clock: The present in epoch ms.
            sdk: The AI SDK version whose reducer is followed where 6 and 7 disagree.
        """
        self.newest_at = 0
        self._ids, self._clock, self._sdk = ids, clock, sdk
        self._reserved: set[str] = set()

    def reserve_id(self) -> str:
        """Return an id that the row of the message with this name will have."""
        minted = self._ids.mint("msg")
        self._reserved.add(minted)
        return minted

    def new(self, name: str | None) -> RecordedMessage:
        """Return a message without a row; ``name`` is its id in the stream."""
        row_id = name if name in self._reserved else None
        self.newest_at = max(self._clock(), self.newest_at + 1)
        return RecordedMessage(row_id or self._ids.mint("msg"), self.newest_at, self._state())

    def resumed(self, stored: StoredMessage) -> RecordedMessage:
        """Return a message as it is stored, to go on with."""
        message = RecordedMessage(stored.id, stored.created_at, self._state())
        message.resume(stored)
        return message

    def may_begin(self, chunk: Chunk) -> bool:
        """Say whether a new message can begin with a chunk, or whether it fits none."""
        if chunk["type"] == "start":
            return True
        state = MessageState(str, self._clock, self._sdk)
        try:
            state.apply(chunk)
        except ProtocolError:
            return state.begin_missing_block(chunk)
        return True

    def _state(self) -> MessageState:
        return MessageState(lambda: self._ids.mint("prt"), self._clock, self._sdk)


def _stored_usage(metadata: Mapping[str, object], own: Mapping[str, object]) -> Buckets | None:
    """Return the sum over the steps that a stored message has.

    Rows of older versions keep it under ``backscroll.usage``, beside the stream's last one.
    """
    held = own.get("usage")
    return buckets_of(held if isinstance(held, dict) else metadata.get("usage"))
