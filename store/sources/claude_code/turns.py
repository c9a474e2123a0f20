"""Which turn each row is of, and which rows of one answer were written again.

The id of an API message does not say enough: some gateways number the answers of each
session anew, or give all of them one id, and a conversation that was replayed has the same
answers on two branches.
"""

from __future__ import annotations

from dataclasses import dataclass

from store.sources.base.drafts import MessageDraft
from store.sources.claude_code.rows import Row, string
from store.sources.claude_code.usage import usage_of

_INPUT = ("input", "cache_read", "cache_write")


@dataclass(slots=True)
class Answer:
    """An API message that is being put together.

    Attributes:
        turn: The row that began its turn.
        above: The row that its first row is attached to.
    """

    message: MessageDraft
    turn: str
    above: str | None


class Turns:
    """Follows the rows of a thread in file order."""

    def __init__(self) -> None:
        """Start before the first row."""
        self._turns: dict[str, str] = {}
        self._again: set[str] = set()
        self._last = ""

    def take(self, row: Row) -> str:
        """Return the row that began a row's turn: the last prompt above it, else a root."""
        if _begins_turn(row):
            turn = row.uuid
        else:
            above = row.parent or string(row.data.get("logicalParentUuid"))
            turn = self._turns.get(above or "", self._last or row.uuid)
        self._turns[row.uuid] = self._last = turn
        return turn

    def goes_on(self, answer: Answer, row: Row) -> bool:
        """Return whether a row belongs to an answer that has the same message id.

        Rows of one answer are of one turn and one request. Where a row names no request, an
        answer ends when the model was given the result of a call of it, and so counts other
        input.
        """
        if self._turns[row.uuid] != answer.turn:
            return False
        known = answer.message.answer
        first, request = known and known.request, string(row.data.get("requestId"))
        if first is not None and request is not None:
            return first == request
        before, now = answer.message.metadata.get("usage"), usage_of(row.message)
        if not before or not now or not _was_answered(answer.message):
            return True
        counts = [[usage[key] for key in _INPUT] for usage in (before, now)]
        return counts[0] == counts[1] or not any(counts[0]) or not any(counts[1])

    def is_again(self, answer: Answer, row: Row) -> bool:
        """Return whether a row begins or continues an answer that was written once more.

        Call it once for each row of an answer but the first.
        """
        if row.parent is not None and (row.parent == answer.above or row.parent in self._again):
            self._again.add(row.uuid)
        return row.uuid in self._again


def _begins_turn(row: Row) -> bool:
    return row.type == "user" and not row.data.get("isMeta") and not row.has_result


def _was_answered(message: MessageDraft) -> bool:
    """Return whether a call of a message has its result."""
    return any((part.tool_state or "").startswith("output") for part in message.parts)
