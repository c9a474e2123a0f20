"""Sessions of Kimi Code: a folder a session, a file of lines for each of its agents."""

from store.sources.kimi.source import KimiSource

__all__ = ["KimiSource"]
