"""Cursor: the chats of its editor, those of its command line, and the transcripts of both."""

from store.sources.cursor.source import CursorSource

__all__ = ["CursorSource"]
