"""A time that cannot be right moves no session, whatever its source and wherever it stands."""

from __future__ import annotations

import json
import os
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from store.sources.base.drafts import MessageDraft, PartDraft, SessionDraft
from store.sources.base.odd_times import DAY_MS
from store.sources.base.values import utc_ms
from store.sync.prepared import prepare
from store.sync.session_rows import PreparedSession
from tests.sources.odd_values import Place, places, put, value_at
from tests.sources.samples import SAMPLES, Sample, path_of

AT = 1_795_800_000_000
YEAR = 365 * DAY_MS
NEVER = (-62_135_596_800_000, 253_402_300_799_000, 0, -1, 10**20, float("nan"))
NEVER_ISO = ("0001-01-01T00:00:00Z", "9999-12-31T23:59:59.999Z", "1970-01-01T00:00:00Z")
WRONG = (AT + 36 * YEAR, AT - 20 * YEAR)


def talk(*times: int, created: int = 0, updated: int = 0) -> PreparedSession:
    messages = [
        MessageDraft(f"m{number}", "user", at, at, parts=[
            PartDraft("text", {"type": "text", "text": "x"}, at, at)])
        for number, at in enumerate(times)
    ]  # fmt: skip
    draft = SessionDraft("s", "/s", "a", created, updated, messages=messages)
    return prepare("hub", draft)


def spread(made: PreparedSession) -> tuple[int, int, int, int]:
    """When a session began and ended, and its rows."""
    rows = [(row[4], row[5]) for row in made.messages] + [(row[8], row[9]) for row in made.parts]
    return (made.created_at, made.updated_at, min(row[0] for row in rows),
            max(row[1] for row in rows))  # fmt: skip


@pytest.mark.parametrize("odd", [*NEVER[:-1], *WRONG])
@pytest.mark.parametrize("place", range(4))
def test_one_odd_message(place: int, odd: int) -> None:
    times = [AT, AT + 1000, AT + 2000, AT + 3000]
    changed = [*times[:place], odd, *times[place + 1 :]]
    for made in (talk(*changed), talk(*changed, created=changed[0], updated=max(changed))):
        assert all(AT <= at <= AT + 3000 for at in spread(made))
        assert made.created_at == made.messages[0][4]


@pytest.mark.parametrize("odd", [*NEVER[:-1], *WRONG])
def test_the_sessions_own_times(odd: int) -> None:
    for created, updated in ((odd, AT + 9), (AT, odd), (odd, odd)):
        made = talk(AT, AT + 1, AT + 9, created=created, updated=updated)
        assert (made.created_at, made.updated_at) == (AT, AT + 9)
    made = talk(AT, odd, created=AT, updated=AT + 9)
    assert all(AT <= at <= AT + 9 for at in spread(made))


def test_what_a_session_took_over_stays_older_than_it() -> None:
    made = talk(AT - 3 * YEAR, AT - 3 * YEAR + 1, AT, created=AT, updated=AT)
    assert [row[4] for row in made.messages] == [AT - 3 * YEAR, AT - 3 * YEAR + 1, AT]
    made = talk(AT - 3 * YEAR, created=AT, updated=AT + 1)
    assert made.messages[0][4] == AT - 3 * YEAR


def test_a_time_that_was_not_believed_is_kept_beside() -> None:
    made = talk(AT, WRONG[0], AT + 1)
    assert json.loads(made.messages[1][3])["backscroll"] == {"odd_created_at": WRONG[0]}


def test_a_session_that_tells_no_end_ends_with_its_last_message() -> None:
    made = talk(AT, AT + 5, created=AT)
    assert (made.created_at, made.updated_at) == (AT, AT + 5)


class Copy(NamedTuple):
    """A sample's own copy, with the places of its times, and how its sessions are whole."""

    sample: Sample
    root: Path
    times: list[tuple[Place, list[Any]]]
    whole: dict[str, PreparedSession]

    def read(self) -> dict[str, PreparedSession]:
        source = type(self.sample.target().source)()
        return {
            draft.source_id: prepare(source.kind, draft, keep_originals=False)
            for unit in source.units(self.root, [])
            for draft in source.read(self.root, unit).sessions
        }


def impossible(place: Place) -> list[Any]:
    """The times to put into a place that holds one; none where it holds something else."""
    value = value_at(place)
    if isinstance(value, str):
        return list(NEVER_ISO) if len(value) >= 19 and utc_ms(value) else []
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return []
    cell = place.table is not None and not place.steps
    given = NEVER[:4] if cell else NEVER
    if 1.7e12 < value < 1.9e12:
        return list(given)
    return [at if at != at else at // 1000 for at in given] if 1.7e9 < value < 1.9e9 else []


@pytest.fixture(scope="module", params=SAMPLES, ids=lambda sample: sample.name)
def copy(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Copy]:
    sample: Sample = request.param
    root = path_of(sample.copied(tmp_path_factory.mktemp("sample")))
    for path in root.parent.rglob("*.db"):
        still(path)
    found = [(place, values) for place in places(root if root.is_dir() else root.parent)
             if (values := impossible(place))]  # fmt: skip
    made = Copy(sample, root, found, {})
    yield made._replace(whole=made.read())


def still(path: Path) -> None:
    """Drop the triggers of a database that note when a row was changed."""
    database = sqlite3.connect(path)
    for (name,) in database.execute(
        "SELECT name FROM sqlite_master WHERE type = 'trigger' AND name LIKE '%updated_at%'"
    ).fetchall():
        database.execute(f"DROP TRIGGER {name}")
    database.commit()
    database.close()


@pytest.mark.long
def test_an_impossible_time_moves_no_session(copy: Copy) -> None:
    """Each kind of time in turn is each impossible one; the mtimes of files stay."""
    wrong = []
    for place, values in copy.times:
        body, status = place.file.read_bytes(), place.file.stat()
        for odd in values:
            try:
                if not put(place, odd):
                    continue
                os.utime(place.file, ns=(status.st_atime_ns, status.st_mtime_ns))
                now = copy.read()
            finally:
                place.file.write_bytes(body)
                os.utime(place.file, ns=(status.st_atime_ns, status.st_mtime_ns))
            wrong += [(place, odd, name) for name in copy.whole if not fits(copy, name, now)]
    assert wrong == []


def fits(copy: Copy, name: str, now: dict[str, PreparedSession]) -> bool:
    """Whether a session is where it was, but for the one moment that is not known any more."""
    if name not in now:
        return False
    before, after = copy.whole[name], now[name]
    if len({row[4] for row in before.messages}) < 2:
        # Nothing else tells when it was.
        return True
    moments = [at for row in before.messages for at in row[4:6]]
    first, last = min(before.created_at, *moments), max(before.updated_at, *moments)
    times = [after.created_at, after.updated_at, *(at for row in after.messages for at in row[4:6])]
    return all(first - DAY_MS <= at <= last + DAY_MS for at in times)
