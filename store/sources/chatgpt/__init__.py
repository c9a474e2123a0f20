"""ChatGPT: the data export, as a zip or as the folder made of it."""

from store.sources.chatgpt.source import ChatgptSource

__all__ = ["ChatgptSource"]
