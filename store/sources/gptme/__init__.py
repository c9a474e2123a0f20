"""gptme: a folder a conversation, its branches and what was compacted away beside it."""

from store.sources.gptme.source import GptmeSource

__all__ = ["GptmeSource"]
