"""The pi source: sessions of version 3, and the older two."""

from __future__ import annotations

from store.sources.pi.source import PiSource

__all__ = ["PiSource"]
