"""opencode: ``opencode.db`` (both of its engines) and the JSON store of 1.1 and older; Kilo."""

from store.sources.opencode.source import KiloSource, OpencodeSource

__all__ = ["KiloSource", "OpencodeSource"]
