"""opencode: ``opencode.db`` (both of its engines) and the JSON store of 1.1 and older."""

from store.sources.opencode.source import OpencodeSource

__all__ = ["OpencodeSource"]
