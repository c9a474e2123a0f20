"""Paths in the URIs that programs write for files and folders."""

from __future__ import annotations

from urllib.parse import unquote, urlsplit

_FILE = "file:"


def path_of_uri(uri: object) -> str | None:
    """Return the path of a file URI; None for anything else. On Windows it is ``C:/work``."""
    if not isinstance(uri, str) or not uri.startswith(_FILE):
        return None
    try:
        path = unquote(urlsplit(uri).path)
    except ValueError:
        return None
    return (path[1:] if path[2:3] == ":" else path) or None
