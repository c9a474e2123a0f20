"""What holds in a library of the order of arrival holds in the store of a team on a server.

Each file of a sample in turn comes late, and each in turn goes away, and what changed is brought to
a server each time: it has the rows of the library, which has those of a fresh one
(``test_arrival``), and nothing is lost or counted twice there.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from store.copying.copying import copy_sessions
from store.copying.outgoing import with_owner
from store.copying.rows import fitted, is_listed_only, parents_first, read_rows
from store.copying.sharing import Person, share
from store.engine.database import Database, open_database
from store.engine.opening import open_target
from tests.sources import families
from tests.sources.postgres_server import Server
from tests.sources.samples import MORE, SAMPLES
from tests.sources.test_arrival import (
    Place,
    databases,
    differing,
    forget_stamps,
    place,
    shown,
    spent,
    synced,
    title,
)
from tests.store.engines import new_server_store

__all__ = ["databases", "place"]

ADA = Person("ada", "laptop", None)
QUICK = (
    ("claude-code", families.marked_forks), ("codex", families.codex_threads),
    ("claude-code", families.copied_files))
_REST = [one for one in (*SAMPLES, *MORE, *families.FAMILIES, *families.COPIES)
         if one not in QUICK]  # fmt: skip
_EVERY = [*QUICK, *(pytest.param(one, marks=pytest.mark.long) for one in _REST)]
_MOST_FILES = 5


@pytest.fixture
def team(postgres: Server) -> Iterator[Database]:
    with closing(open_target(new_server_store(postgres), write=True)) as database:
        yield database


def some(place: Place) -> list[Path]:
    """Its files; of many some from all over."""
    found = place.files()
    return found[:: 1 + len(found) // _MOST_FILES]


def bring(library: Database, team: Database) -> None:
    found = share(library, team, ADA)
    assert (found.failed, found.skipped) == ({}, {})


def rows_of(library: Database, team: Database) -> dict[str, Any]:
    """Return the rows that a library's sessions have on the server, by session."""
    found = {}
    for session_id in parents_first(library):
        rows = read_rows(library, session_id)
        if rows is not None and not is_listed_only(rows):
            found[session_id] = fitted(team, with_owner(rows, ADA.owner)).stamps()
    return found


def rows_in(team: Database) -> dict[str, Any]:
    rows = {session_id: read_rows(team, session_id) for session_id in parents_first(team)}
    return {session_id: one.stamps() for session_id, one in rows.items() if one is not None}


@pytest.mark.parametrize("place", _EVERY, ids=title, indirect=True)
@pytest.mark.one_in(3)
def test_a_file_that_comes_late_makes_no_difference(
    place: Place, databases: Any, postgres: Server
) -> None:
    wrong = {}
    for number, path in enumerate(some(place)):
        library = databases(str(number))
        away = place.take(path)
        with closing(open_target(new_server_store(postgres), write=True)) as team:
            bring(synced(library, place), team)
            away.rename(path)
            bring(synced(library, place), team)
            here, there = rows_of(library, team), rows_in(team)
        if here != there:
            wrong[str(path.relative_to(place.root.parent))] = {
                one: (here.get(one), there.get(one)) for one in here.keys() | there.keys()
                if here.get(one) != there.get(one)}
    assert wrong == {}


@pytest.mark.parametrize("place", _EVERY, ids=title, indirect=True)
def test_nothing_is_lost_with_a_file(
    place: Place, databases: Any, tmp_path: Path, team: Database
) -> None:
    library = synced(databases("library"), place)
    bring(library, team)
    before, wrong = shown(library), {}
    for path in some(place):
        away = place.take(path)
        forget_stamps(library)
        bring(synced(library, place), team)
        away.rename(path)
        assert rows_of(library, team) == rows_in(team)
    with closing(open_database(tmp_path / "back.db", create=True)) as back:
        copy_sessions(team, back, parents_first(team))
        now = shown(back)
        lost = differing(before, now)
        if lost or spent(before) != spent(now):
            wrong = lost or {"spent": (spent(before), spent(now))}
    assert wrong == {}
