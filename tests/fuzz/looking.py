"""Looks at everything in a store, as the commands and the browser's queries do."""

from __future__ import annotations

import io
import re
from collections.abc import Callable

from store.engine.database import Database
from store.errors import BackscrollError
from store.exports.reading import read_session
from store.exports.registry import FORMATS, writer
from store.queries import (
    context_usage,
    details,
    lineage,
    listing,
    originals,
    sessions,
    transcript,
)
from store.queries.summaries import summaries_of
from store.stats.statistics import context_tokens
from store.system.clock import system_clock
from tests.store.counted import counted_by
from tui.cli.output import Printer
from tui.cli.transcript_text import TranscriptText

OUR_FAULT = re.compile(
    r"(?:Type|Key|Attribute|Index|Name|Recursion|Unicode\w*|Overflow|Assertion|Memory|Zstd)Error"
)
"""What a problem says when a value came where our code did not expect it."""
EVERYTHING = sessions.SessionFilter(archived="include")


def look_at_all(database: Database) -> int:
    """Read every session in every way; return how many there are.

    Raises:
        Exception: Anything but a refusal, which is an answer.
    """
    found = sessions.page(database, EVERYTHING)
    list(summaries_of(database, found, now=system_clock()))
    numbers = listing.rowids_of(database, [row.id for row in found])
    listing.rows_of(database, list(numbers.values()))
    lineage.families(database)
    counted_by(database, "day")
    for row in found:
        _look_at(database, row.id, row.workspace_root)
    return len(found)


def _look_at(database: Database, session_id: str, workspace: str | None) -> None:
    refusable(lambda: details.overview(database, session_id))
    refusable(lambda: details.timeline(database, session_id))
    refusable(lambda: lineage.family(database, session_id))
    refusable(lambda: context_tokens(database, session_id))
    refusable(lambda: transcript.extent(database, session_id))
    refusable(lambda: transcript.last_usage(database, session_id))
    reading = read_session(database, session_id, "hidden")
    ids = [str(item.message["id"]) for item in reading.messages]
    refusable(lambda: context_usage.add_page(database, context_usage.ContextUsage(), ids))
    text = TranscriptText(Printer(io.StringIO()), workspace, full=True)
    for item in reading.messages:
        list(text.message(item))
        for part in item.parts[:3]:
            originals.records_of_part(database, str(part["id"]))
    for name, format in FORMATS.items():
        view = "all" if format.whole else "context"
        refusable(lambda name=name, view=view: sum(  # type: ignore[misc]
            len(piece) for piece in writer(name)(read_session(database, session_id, view))
        ))


def refusable(work: Callable[[], object]) -> None:
    """Run something that may say no, with a reason."""
    try:
        work()
    except BackscrollError as error:
        assert not OUR_FAULT.search(str(error)), str(error)
