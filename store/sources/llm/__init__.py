"""llm, the command: ``logs.db``, with threads of messages, and the responses of older versions."""

from store.sources.llm.source import LlmSource

__all__ = ["LlmSource"]
