"""Chunks that the SDK's reader would refuse or ignore: reported, and kept as parts."""

from __future__ import annotations

from collections.abc import Callable

from store.recorder.message import RecordedMessage
from store.recorder.part_list import Chunk
from store.recorder.reducer import REFUSED, UNKNOWN, is_known

Report = Callable[[str], None]
_MOST_HELD = 64
"""Odd chunks that wait for the message they come before."""


def no_report(_: str) -> None:
    """Take a report and pass it to nobody."""


class OddChunks:
    """Reports odd chunks, and holds those that come before any message.

    Attributes:
        report: Called with one line for each problem.
    """

    def __init__(self, report: Report, unknown: Report) -> None:
        """Set whom to report to.

        Args:
            report: Called with one line for each chunk that the SDK's reader would refuse.
            unknown: Called with the type of each chunk that the SDK's reader would ignore.
        """
        self.report, self._unknown = report, unknown
        self._held: list[tuple[Chunk, str]] = []
        self._reported = ""

    @property
    def are_held(self) -> bool:
        """Whether any wait for a message."""
        return bool(self._held)

    def refuse(self, reason: str) -> None:
        """Report why a chunk is odd, once for a run of chunks with the same fault."""
        if reason != self._reported:
            self._reported = reason
            self.report(reason)

    def keep(self, message: RecordedMessage, chunk: Chunk, name: str, reason: str) -> None:
        """Keep a chunk as a part of a message, and report it.

        Args:
            message: The message that it came in.
            chunk: The chunk.
            name: ``REFUSED`` or ``UNKNOWN``.
            reason: Why it makes no part of its own.
        """
        message.state.keep_odd(chunk, name, reason)
        if name == UNKNOWN:
            self._unknown(chunk["type"])
        else:
            self.refuse(reason)

    def hold(self, chunk: Chunk) -> None:
        """Hold a chunk that comes before any message, for the next one; report it."""
        kind = chunk["type"]
        if chunk.get("transient"):
            return
        if is_known(kind):
            self.refuse(f"{kind} chunk that fits no message")
            self._held.append((chunk, REFUSED))
        else:
            self._unknown(kind)
            self._held.append((chunk, UNKNOWN))
        del self._held[:-_MOST_HELD]

    def give_held(self, message: RecordedMessage) -> None:
        """Give a message the chunks that came before it."""
        for chunk, name in self._held:
            message.state.keep_odd(chunk, name, f"{chunk['type']} chunk before any message")
        self._held = []
