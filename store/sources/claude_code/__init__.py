"""The Claude Code source: session files from version 0.2.126 on.

``ClaudeCodeSource`` fulfils ``store.sources.base.protocol.Source``. A live follower keeps the
``SessionReader`` that ``source.reader(unit)`` gives: ``reader.transcript(path).push(bytes)``
for what was appended to a ``.jsonl`` file, ``reader.restart(path).push(bytes)`` when it was
replaced or cut, ``reader.side.take(path)`` for any other file of the unit, then
``reader.build()`` for the drafts as they stand; only new rows are parsed and mapped.
"""

from __future__ import annotations

from store.sources.claude_code.reader import SessionReader
from store.sources.claude_code.source import ClaudeCodeSource

__all__ = ["ClaudeCodeSource", "SessionReader"]
