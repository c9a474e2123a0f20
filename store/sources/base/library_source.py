"""What the sources have in common that look into the library."""

from __future__ import annotations

from store.sources.base.protocol import Library, NoLibrary, Source


class LibrarySource(Source):
    """A source that looks into the library for what its files no longer have."""

    _library: Library = NoLibrary()

    def use_library(self, library: Library) -> None:
        """Take the library to look into from now on."""
        self._library = library
