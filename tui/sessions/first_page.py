"""The first page of the session list, read on the plain connection."""

from __future__ import annotations

import sqlite3

from store.queries import activities, list_keys, listing
from store.queries.list_keys import ListKeys
from store.queries.list_options import GROUPS
from store.queries.listing import ListQuery, ListRow
from store.system.records import NamedTuple
from tui.sessions.model import ListModel, build_model
from tui.state.library import Library
from tui.state.view_state import ViewState

TYPE_CHECKING = False
if TYPE_CHECKING:
    from store.queries.summary import Totals

FIRST_PAGE = 64
FIRST_PAGE_S = 2.0
"""How long a server may take; where that is too short, the list is read behind the screen."""
READ_WHOLE_UP_TO = 3_000
"""Sessions up to which the whole list is read before the first paint."""


class FirstPage(NamedTuple):
    """What is drawn first.

    Attributes:
        query: The remembered view.
        keys: Of the first page, or of the whole list where that is short; empty where no
            index serves the view, or the server takes long.
        folds: The user's folds by rowid.
        model: The arrangement of the sessions.
        cursor: The entry of the selected session; None in an empty list.
        rows: By rowid, those around the cursor.
        version: The store's ``data_version`` before it was read.
        totals: Counts of the whole store, where the list is empty.
    """

    query: ListQuery
    keys: ListKeys
    folds: dict[int, bool]
    model: ListModel
    cursor: int | None
    rows: dict[int, ListRow]
    version: int
    totals: Totals | None = None


def read_first_page(
    library: Library, state: ViewState, *, seen: int | None = None
) -> FirstPage:
    """Read the page that the remembered selection is on, the first one without.

    Args:
        library: The store.
        state: What was remembered.
        seen: How many sessions the screen has room for; the rows of no others are read. None
            reads a page.

    Raises:
        sqlite3.Error: The store cannot be read.
    """
    version = library.database.data_version()
    query = ListQuery(state.sort, state.group, state.shelf, library.workspace, state.helpers)
    if not library.is_slow:
        try:
            with library.limited_s(FIRST_PAGE_S):
                return _read(library, state, query, version, seen)
        except sqlite3.OperationalError as error:
            if getattr(error, "sqlite_errorcode", None) != sqlite3.SQLITE_INTERRUPT:
                raise
            library.is_slow = True
    return FirstPage(query, ListKeys(), {}, ListModel(), None, {}, version)


def _read(
    library: Library, state: ViewState, query: ListQuery, version: int, seen: int | None
) -> FirstPage:
    database = library.database
    whole = listing.upper_bound(database) <= READ_WHOLE_UP_TO
    keys = None if whole else list_keys.first_keys(database, query, FIRST_PAGE)
    if keys is None and not whole:
        return FirstPage(query, ListKeys(), {}, ListModel(), None, {}, version)
    keys = keys or activities.keys(database, query, library.clock())
    by_id = listing.rowids_of(database, list(state.folds)) if state.folds else {}
    folds = {rowid: state.folds[name] for name, rowid in by_id.items()}
    model = build_model(keys, folds, headed=GROUPS[query.group].heading != "none")
    selected = listing.rowid_of(database, state.session_id) if state.session_id else None
    entry = model.find_shown(selected) if selected is not None else None
    cursor = entry if entry is not None else (0 if len(model) else None)
    near, end = (cursor or 0) // FIRST_PAGE * FIRST_PAGE, FIRST_PAGE
    if seen is not None:
        # The list is scrolled down as far as the selection needs.
        near = max(0, (cursor or 0) + 1 - seen)
        end = seen
    rowids = list(model.rowids[near:near + end])
    rows = activities.rows(database, rowids, (), library.clock())
    counted = None
    if not len(model):
        from store.queries.summary import totals  # Only for an empty list.

        counted = totals(database)
    return FirstPage(query, keys, folds, model, cursor, rows, version, counted)
