"""What the user answers between two streams: approvals, and outcomes of tool calls."""

from __future__ import annotations

from functools import partial

from store.errors import NotFound
from store.recorder import lookup
from store.recorder.message import RecordedMessage
from store.recorder.partial_json import MISSING
from store.recorder.procedures import Operation, Procedure
from store.recorder.reducer import MessageState
from store.recorder.saving import Saving


class Answers(Saving):
    """A recording that takes the user's answers."""

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
            raise NotFound(f"no message {message_id} in session {self.session_id}")
        stored = yield Operation(partial(lookup.load, message_id=found))
        return self._resumed(stored)

    def _answered(self, message: RecordedMessage, changed: bool) -> Procedure[None]:
        if not changed:
            return
        held, self.message = self.message, message
        if held is not message or message.finished:
            message.note(continues=True)
            self._set_activity(message.waits_for or "idle")
        self._touch = True
        try:
            yield from self.save()
        finally:
            self.message = held

    def report_step_usage(self, usage: object) -> bool:
        """Take a step's usage from the host, for streams whose metadata bring none.

        Returns:
            Whether it was a usage and a message is there to count it for.
        """
        known = self.message is not None and self.message.report_usage(usage)
        self._touch = self._touch or known
        return known

    def _resumed(self, stored: lookup.StoredMessage) -> RecordedMessage:
        state = MessageState(lambda: self._ids.mint("prt"), self._clock, self._sdk)
        message = RecordedMessage(stored.id, stored.created_at, state)
        message.resume(stored)
        return message
