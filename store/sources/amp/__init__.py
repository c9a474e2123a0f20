"""Amp: threads that its command line kept in local files until spring 2026."""

from store.sources.amp.source import AmpSource

__all__ = ["AmpSource"]
