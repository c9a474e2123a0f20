"""The hub: its sessions, messages and parts in SQLite files."""

from store.sources.hub.source import HubSource

__all__ = ["HubSource"]
