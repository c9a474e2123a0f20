"""Claude.ai: the data export, as a zip or as the folder made of it."""

from store.sources.claude_ai.source import ClaudeAiSource

__all__ = ["ClaudeAiSource"]
