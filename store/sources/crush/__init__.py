"""Crush: a SQLite file for each project, found through its list of projects."""

from store.sources.crush.source import CrushSource

__all__ = ["CrushSource"]
