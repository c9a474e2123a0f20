"""Files that a chat edited, from the snapshots of its editing session.

Source: the page on Copilot Chat in VS Code, section 6. Versions 1 and 2 have entries of each
stop, later ones a timeline of operations. The contents of files are not read.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from store.sources.base.uris import path_of_uri
from store.sources.base.values import mapping, string

_URIS = ("uri", "resource", "newUri")


def place_of(uri: object) -> str | None:
    """Return the path of a URI, as text or as VS Code's object; the URI where it is no file's."""
    if isinstance(uri, str):
        return path_of_uri(uri) or string(uri)
    given = mapping(uri)
    if given.get("scheme") not in (None, "file"):
        return string(given.get("external")) or string(given.get("path"))
    return (
        string(given.get("fsPath"))
        or string(given.get("path"))
        or (place_of(given["external"]) if isinstance(given.get("external"), str) else None)
    )


def edited_files(data: dict[str, Any]) -> dict[str, str | None]:
    """Return the files of an editing session, each with the last request that edited it."""
    found: dict[str, str | None] = {}
    for uri, request in _edits(data):
        path = place_of(uri)
        if path is not None:
            found[path] = request or found.get(path)
    return found


def _edits(data: dict[str, Any]) -> Iterator[tuple[object, str | None]]:
    for each in _listed(data.get("initialFileContents")):
        yield (each[0] if isinstance(each, list) and each else None), None
    for step in map(mapping, _listed(data.get("linearHistory"))):
        for stop in _listed(step.get("stops")):
            yield from _entries(stop, string(step.get("requestId")))
    for name in ("recentSnapshot", "pendingSnapshot"):
        yield from _entries(data.get(name), None)
    for operation in map(mapping, _listed(mapping(data.get("timeline")).get("operations"))):
        for name in _URIS:
            if operation.get(name) is not None:
                yield operation[name], string(operation.get("requestId"))


def _entries(snapshot: object, request: str | None) -> Iterator[tuple[object, str | None]]:
    for entry in map(mapping, _listed(mapping(snapshot).get("entries"))):
        if entry.get("originalHash") != entry.get("currentHash") or "currentHash" not in entry:
            told = string(mapping(entry.get("telemetryInfo")).get("requestId"))
            yield entry.get("resource"), told or request


def _listed(value: object) -> list[Any]:
    return value if isinstance(value, list) else []
