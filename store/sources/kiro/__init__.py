"""Kiro CLI and Amazon Q: four stores, two of them rows of a database, two of them files."""

from store.sources.kiro.source import KiroSource

__all__ = ["KiroSource"]
