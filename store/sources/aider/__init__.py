"""The aider source: the sessions of a repository's chat history."""

from __future__ import annotations

from store.sources.aider.source import AiderSource

__all__ = ["AiderSource"]
