"""Without original records (``keep_originals = false``) what was stored stays as well.

Each file of each family goes away, and a newer mapping reads all that is left anew.
"""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest

from store.engine.database import Database
from store.sources.registry import source
from store.sync.engine import Sync
from store.sync.settings import Settings
from store.sync.targets import Target
from tests.sources.families import FAMILIES
from tests.sources.test_arrival import Place, databases, differing, shown, title

__all__ = ["databases"]


def synced(database: Database, place: Place) -> Database:
    options = Settings(helpers=0, keep_originals=False)
    Sync(database, options).run([Target(source(place.kind), place.root)])
    return database


def of_an_older_mapping(database: Database) -> None:
    """Let every unit count as read by an older version of its source."""
    changed = database.connection.execute(
        "UPDATE source_units SET stamp_json = json_set(stamp_json, '$[0]', 0)"
    )
    assert changed.rowcount > 0


@pytest.mark.parametrize("family", FAMILIES, ids=title)
@pytest.mark.one_in(2)
def test_a_newer_mapping_loses_and_doubles_nothing(
    family: Any, tmp_path: Path, databases: Any
) -> None:
    place = Place(family[0], family[1](tmp_path / "root"), tmp_path / "away")
    whole = synced(databases("whole"), place)
    assert whole.connection.execute("SELECT count(*) FROM original_records").fetchone() == (0,)
    before = shown(whole)
    whole.close()
    wrong = {}
    for number, path in enumerate([None, *place.files()]):
        shutil.copy(tmp_path / "whole.db", tmp_path / f"{number}.db")
        database = databases(str(number))
        away = place.take(path) if path is not None else None
        of_an_older_mapping(database)
        synced(database, place)
        if away is not None and path is not None:
            away.rename(path)
        found = differing(before, shown(database))
        if found:
            wrong[str(path and path.name)] = found
    assert wrong == {}
