"""Results that come before their calls; what joins them is the call's id alone."""

from __future__ import annotations

from store.sources.base.drafts import MessageDraft, PartDraft

_OF_THE_CALL = frozenset(["type", "toolCallId", "input", "callProviderMetadata"])


class EarlyResults:
    """Holds results without a call, each a tool part of its own, until their calls come."""

    def __init__(self) -> None:
        """Start without results."""
        self._held: dict[str, tuple[PartDraft, MessageDraft]] = {}

    def hold(self, call_id: str, part: PartDraft, holder: MessageDraft) -> None:
        """Remember a result that is without its call in a message.

        Args:
            call_id: The call's id.
            part: The result.
            holder: The message that holds it for now.
        """
        self._held[call_id] = (part, holder)

    def __contains__(self, call_id: object) -> bool:
        """Return whether a call's result came before it."""
        return call_id in self._held

    def join(
        self, call_id: str, call: PartDraft, owner: MessageDraft, messages: list[MessageDraft]
    ) -> MessageDraft | None:
        """Give a call the result that came before it.

        Args:
            call_id: The call's id.
            call: Its part, without a result.
            owner: The message that it is in.
            messages: All messages; one that held nothing but the result is taken out.

        Returns:
            The message that held the result; None where there was none.
        """
        found = self._held.pop(call_id, None)
        if found is None:
            return None
        part, holder = found
        call.data |= {key: value for key, value in part.data.items() if key not in _OF_THE_CALL}
        call.tool_state = part.tool_state
        call.updated_at = max(call.created_at, part.updated_at)
        call.records = tuple(dict.fromkeys((*call.records, *part.records)))
        owner.updated_at = max(owner.updated_at, call.updated_at)
        holder.parts = [each for each in holder.parts if each is not part]
        if holder is not owner and not holder.parts and "usage" not in holder.metadata:
            owner.records = tuple(dict.fromkeys((*owner.records, *holder.records)))
            messages[:] = [message for message in messages if message is not holder]
        return holder
