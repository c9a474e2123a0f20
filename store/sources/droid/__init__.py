"""Factory Droid: a file of JSON lines a session, its settings beside it."""

from store.sources.droid.source import DroidSource

__all__ = ["DroidSource"]
