"""LangGraph: checkpoints of threads in a SQLite file of the program that was built with it."""

from store.sources.langgraph.source import LanggraphSource

__all__ = ["LanggraphSource"]
