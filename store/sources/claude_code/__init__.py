"""The Claude Code source: session files from version 0.2.126 on.

``ClaudeCodeSource`` fulfils ``store.sources.base.protocol.Source``.
"""

from __future__ import annotations

from store.sources.claude_code.reader import SessionReader
from store.sources.claude_code.source import ClaudeCodeSource

__all__ = ["ClaudeCodeSource", "SessionReader"]
