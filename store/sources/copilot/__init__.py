"""The Copilot CLI source: sessions of version 1.0, and the index beside them."""

from __future__ import annotations

from store.sources.copilot.source import CopilotSource

__all__ = ["CopilotSource"]
