"""The Claude.ai source: which files are an export, and which of its objects are conversations.

Source: the page of chat exports. The account's data and memories are never opened.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import orjson

from store.sources.base.chat_exports import ChatExports, Conversation
from store.sources.base.drafts import SessionDraft
from store.sources.base.values import mapping, string, utc_ms
from store.sources.claude_ai.session import KIND, session_draft, stored_version


class ClaudeAiSource(ChatExports):
    """Fulfils ``store.sources.base.protocol.Source``; reads conversations only."""

    kind = KIND
    label = "Claude.ai export"
    tells = ("thoughts", "rewinds")
    live = False
    places = "name its zip or folder, or a folder with exports in `[sources.paths]`"
    unread = "design_chats/"

    def is_conversation(self, data: dict[str, Any]) -> bool:
        """Return whether an object is a conversation of Claude.ai."""
        return isinstance(data.get("chat_messages"), list)

    def id_of(self, data: dict[str, Any]) -> str | None:
        """Return a conversation's id."""
        return string(data.get("uuid"))

    def updated(self, data: dict[str, Any]) -> int:
        """Return when a conversation was changed last, epoch ms."""
        return utc_ms(data.get("updated_at")) or utc_ms(data.get("created_at")) or 0

    def from_records(self, records: Sequence[bytes]) -> dict[str, Any] | None:
        """Return the conversation that a session's records hold."""
        parsed = [mapping(orjson.loads(record)) for record in records]
        return stored_version(parsed) if parsed else None

    def draft(self, conversation: Conversation) -> SessionDraft:
        """Return the session of a conversation."""
        return session_draft(conversation)
