"""Continue: the sessions of its command line and of its extensions, in one folder."""

from store.sources.continue_dev.source import ContinueSource

__all__ = ["ContinueSource"]
