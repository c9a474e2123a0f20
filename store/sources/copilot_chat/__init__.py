"""Copilot Chat and other chats in VS Code and its forks: logs of changes, and flat documents."""

from store.sources.copilot_chat.source import CopilotChatSource

__all__ = ["CopilotChatSource"]
