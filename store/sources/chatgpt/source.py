"""The ChatGPT source: which files are an export, and which of its objects are conversations.

Source: the page of chat exports. What says who the account belongs to is never opened.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import orjson

from store.sources.base.chat_exports import ChatExports, Conversation
from store.sources.base.drafts import SessionDraft
from store.sources.base.values import mapping, string, utc_ms
from store.sources.chatgpt.session import KIND, session_draft


class ChatgptSource(ChatExports):
    """Fulfils ``store.sources.base.protocol.Source``; reads conversations and their pictures."""

    kind = KIND
    label = "ChatGPT export"
    tells = ("thoughts", "files", "rewinds")
    live = False
    places = "name its zip or folder, or a folder with exports in `[sources.paths]`"

    def is_conversation(self, data: dict[str, Any]) -> bool:
        """Return whether an object is a conversation of ChatGPT."""
        return isinstance(data.get("mapping"), dict)

    def id_of(self, data: dict[str, Any]) -> str | None:
        """Return a conversation's id; either of its two names may be missing."""
        return string(data.get("conversation_id")) or string(data.get("id"))

    def updated(self, data: dict[str, Any]) -> int:
        """Return when a conversation was changed last, epoch ms."""
        return utc_ms(data.get("update_time")) or utc_ms(data.get("create_time")) or 0

    def from_records(self, records: Sequence[bytes]) -> dict[str, Any] | None:
        """Return the conversation that a session's records hold."""
        parsed = [mapping(orjson.loads(record)) for record in records]
        if not parsed:
            return None
        nodes = {node["id"]: node for node in parsed[1:] if string(node.get("id"))}
        return {**parsed[0], "mapping": nodes}

    def draft(self, conversation: Conversation) -> SessionDraft:
        """Return the session of a conversation."""
        return session_draft(conversation)
