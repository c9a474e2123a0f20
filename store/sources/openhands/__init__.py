"""OpenHands CLI: conversations of one file an event."""

from store.sources.openhands.source import OpenHandsSource

__all__ = ["OpenHandsSource"]
