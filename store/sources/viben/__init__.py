"""viben: sessions in ``.viben`` folders."""

from store.sources.viben.source import VibenSource

__all__ = ["VibenSource"]
