"""The Gemini CLI source: logs of version 0.61, and the older single objects."""

from __future__ import annotations

from store.sources.gemini.source import GeminiSource

__all__ = ["GeminiSource"]
