"""The Codex source: rollouts of today and of the legacy mode, compressed ones, archived ones.

``CodexSource`` fulfils ``store.sources.base.protocol.Source``.
"""

from __future__ import annotations

from store.sources.codex.reader import ThreadReader
from store.sources.codex.source import CodexSource

__all__ = ["CodexSource", "ThreadReader"]
