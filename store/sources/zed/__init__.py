"""Zed: the threads of its agent panel in ``threads.db``, of all versions."""

from store.sources.zed.source import ZedSource

__all__ = ["ZedSource"]
