"""Subagents whose rows are in the session's own file (up to version 2.0.14)."""

from __future__ import annotations

from collections.abc import Sequence

from store.sources.claude_code.messages import Call, Thread
from store.sources.claude_code.rows import Row, mapping, text_of

SUBAGENT_TOOLS = ("Task", "Agent")


def split_sidechains(rows: Sequence[Row]) -> tuple[list[Row], dict[str, list[Row]]]:
    """Separate the main rows from inline sidechains.

    Returns:
        The main rows, and the rows of each sidechain by the uuid of its root.
    """
    main: list[Row] = []
    chains: dict[str, list[Row]] = {}
    root_of: dict[str, str] = {}
    previous = None
    for row in rows:
        if not row.data.get("isSidechain"):
            main.append(row)
            continue
        root = root_of.get(row.parent) if row.parent else row.uuid
        if root is None:
            root = previous or row.uuid
        root_of[row.uuid] = previous = root
        chains.setdefault(root, []).append(row)
    return main, chains


def calls_of_sidechains(chains: dict[str, list[Row]], thread: Thread) -> dict[str, Call]:
    """Match each sidechain to the call that started it, by the prompt's words.

    Returns:
        The call by the sidechain's root.
    """
    free = [call for call in thread.calls if call.part.type[len("tool-") :] in SUBAGENT_TOOLS]
    matched: dict[str, Call] = {}
    for root, rows in chains.items():
        words = text_of(rows[0].blocks).strip()
        for index, call in enumerate(free):
            prompt = mapping(call.part.data.get("input")).get("prompt")
            if isinstance(prompt, str) and prompt.strip() == words:
                matched[root] = call
                del free[index]
                break
    return matched
