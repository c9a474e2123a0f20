"""Qwen Code: a tree of records a session, its subagents beside it; JSON documents before 0.5."""

from store.sources.qwen.source import QwenSource

__all__ = ["QwenSource"]
