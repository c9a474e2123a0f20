"""Which sessions changed files and folders belong to."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

from store.sources.base.growing import stamp_of
from store.sources.base.protocol import Problem
from store.sources.claude_code.agents import AGENT, ROWS
from store.sources.claude_code.discovery import Discovery, holds_sessions


def touched_sessions(
    discovery: Discovery, root: Path, paths: Iterable[str], problems: list[Problem]
) -> dict[str, set[str] | None] | None:
    """Sort changed paths by project folder.

    Args:
        discovery: Knows which session an agent's file belongs to.
        root: A config folder, or its ``projects``.
        paths: Absolute, as the root is named.
        problems: Takes agents' files that cannot be read.

    Returns:
        The ids of the sessions by project folder, None for all of a folder's; None where
        the root is a file or itself a project, and so has to be listed whole.
    """
    below = os.path.join(root, "projects")
    top = below if os.path.isdir(below) else str(root)
    if root.is_file() or str(root).endswith(ROWS) or holds_sessions(top):
        return None
    found: dict[str, set[str] | None] = {}
    for path in paths:
        if not path.startswith(top + os.sep):
            continue
        project, *rest = path[len(top) + 1 :].split(os.sep)
        folder = os.path.join(top, project)
        if not rest:
            found[folder] = None
        elif (ids := found.setdefault(folder, set())) is not None:
            ids.update(_session_of(discovery, path, rest, problems))
    return {folder: ids for folder, ids in found.items() if ids is None or ids}


def _session_of(
    discovery: Discovery, path: str, rest: list[str], problems: list[Problem]
) -> set[str]:
    name = rest[0]
    if len(rest) > 1 or "." not in name:
        return {name}
    if not name.endswith(ROWS):
        return set()
    if not name.startswith(AGENT):
        return {name.removesuffix(ROWS)}
    try:
        stamp = stamp_of(path, os.stat(path))
    except OSError:
        return set()  # it went away; what was read of it stays
    return {discovery.owner(stamp, problems)}
