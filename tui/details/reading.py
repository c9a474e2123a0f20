"""Reads what the details show after the turns, in pieces between which others may read."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from store.errors import NotFound
from store.queries import details, originals
from store.queries.details import Timeline
from store.text.stored_json import DamagedJson, loads

if TYPE_CHECKING:
    from store.store import Store

CATALOGUE = "tool-catalogue.json"
"""The attachment that holds a session's tool catalogue, where its source keeps one."""

BATCH = 2_000
"""Messages whose parts are counted in one read."""


async def count_tools(store: Store, timeline: Timeline) -> None:
    """Count the tool calls of all turns in."""
    ids = list(timeline.turn_of)
    for start in range(0, len(ids), BATCH):
        timeline.count(await store.read(details.tool_calls, ids[start : start + BATCH]))


async def read_catalogue(store: Store, session_id: str) -> Any:
    """Return the tool catalogue that the source kept; None where there is none."""
    try:
        return loads(await store.read(originals.attachment, session_id, CATALOGUE))
    except (NotFound, DamagedJson):
        return None
