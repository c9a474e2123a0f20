"""Goose: ``sessions.db`` of all its schema versions, and the files of lines before it."""

from store.sources.goose.source import GooseSource

__all__ = ["GooseSource"]
