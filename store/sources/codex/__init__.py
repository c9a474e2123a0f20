"""The Codex source: rollouts of today and of the legacy mode, compressed ones, archived ones.

``CodexSource`` fulfils ``store.sources.base.protocol.Source``. A live follower keeps the
``ThreadReader`` that ``source.reader(root)`` gives: ``reader.rollout(path).push(bytes)`` for
what was appended, ``reader.restart(path)`` where a file was replaced or cut, then
``reader.build()`` for the draft as it stands.
"""

from __future__ import annotations

from store.sources.codex.reader import ThreadReader
from store.sources.codex.source import CodexSource

__all__ = ["CodexSource", "ThreadReader"]
