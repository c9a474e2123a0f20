"""lionagi: sessions and their branches in ``state.db``."""

from store.sources.lionagi.source import LionagiSource

__all__ = ["LionagiSource"]
