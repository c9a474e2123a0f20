"""Mistral Vibe: a folder of snapshots and a journal a session, and the older folders of lines."""

from store.sources.vibe.source import VibeSource

__all__ = ["VibeSource"]
