"""The order in which files arrive does not show, and what goes away is not lost.

For each sample of each source: every file in turn comes late, and every file in turn goes
away while all that is left is read anew.
"""

from __future__ import annotations

import json
import os
import random
import shutil
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from store.engine.database import Database, open_database
from store.queries.shared_answers import shared_answers
from store.sources.registry import source
from store.sync.engine import Sync
from store.sync.settings import Settings
from store.sync.targets import Target
from tests.sources.families import COPIES, FAMILIES
from tests.sources.samples import MORE, SAMPLES, Sample, path_of
from tests.store.sync_fakes import SIDE_TABLES, TABLES, dump

pytestmark = pytest.mark.long

ALL = (*TABLES, *SIDE_TABLES, "unit_facts", "unit_wants")
EVERY_FILE = bool(os.environ.get("BACKSCROLL_EVERY_FILE"))
MOST_FILES = 30
NOT_READ = {"README.md", "EXPECTED.json"}


class Place(NamedTuple):
    """A copy of a sample, and where its files go while they are away."""

    kind: str
    root: Path
    away: Path

    def files(self) -> list[Path]:
        """Its files; of very many some from all over, unless all are asked for."""
        top = self.root if self.root.is_dir() else self.root.parent
        found = [path for path in sorted(top.rglob("*")) if path.is_file()]
        found = [path for path in found if path.name not in NOT_READ]
        return found if EVERY_FILE else found[:: 1 + len(found) // MOST_FILES]

    def take(self, path: Path) -> Path:
        """Take a file away; returns where it is."""
        self.away.mkdir(exist_ok=True)
        return path.rename(self.away / path.name)


def title(param: Any) -> str:
    return param.name if isinstance(param, Sample) else f"{param[0]}: {param[1].__name__}"


@pytest.fixture(scope="module", params=[*SAMPLES, *MORE, *FAMILIES, *COPIES], ids=title)
def place(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Place:
    folder = tmp_path_factory.mktemp("sample")
    param = request.param
    if isinstance(param, Sample):
        return Place(param.kind, path_of(param.copied(folder)), folder / "away")
    return Place(param[0], param[1](folder / "root"), folder / "away")


@pytest.fixture
def databases(tmp_path: Path) -> Iterator[Any]:
    """Opens databases that are quick, and closes them."""
    opened: list[Database] = []

    def make(name: str) -> Database:
        database = open_database(tmp_path / f"{name}.db", create=True)
        database.connection.execute("PRAGMA synchronous = OFF")
        opened.append(database)
        return database

    yield make
    for database in opened:
        database.close()


def synced(database: Database, place: Place) -> Database:
    """Sync as a process of its own would."""
    target = Target(source(place.kind), place.root)
    Sync(database, Settings(helpers=0)).run([target])
    return database


def forget_stamps(database: Database) -> None:
    """Let every unit that is still there count as grown."""
    database.connection.execute(
        "UPDATE source_units SET stamp_json = json_set(stamp_json, '$[1]', json('[]'))"
    )


def differences(one: dict[str, list[Any]], other: dict[str, list[Any]]) -> dict[str, Any]:
    """The rows of each table that only one of two stores has."""
    found = {}
    for table in one:
        mine, theirs = Counter(map(repr, one[table])), Counter(map(repr, other[table]))
        if mine != theirs:
            found[table] = {"only late": sorted(mine - theirs), "only fresh": sorted(theirs - mine)}
    return found


def test_a_file_that_comes_late_makes_no_difference(place: Place, databases: Any) -> None:
    fresh = dump(synced(databases("fresh"), place), ALL)
    assert place.files() and fresh["chat_sessions"] and fresh["chat_messages"]
    wrong = {}
    for number, path in enumerate(place.files()):
        database = databases(str(number))
        away = place.take(path)
        synced(database, place)
        away.rename(path)
        synced(database, place)
        found = differences(dump(database, ALL), fresh)
        if found:
            wrong[str(path.relative_to(place.root.parent))] = found
    assert wrong == {}


FACTS = ("title", "parent", "lineage", "tokens", "spent")


def shown(database: Database) -> dict[str, Any]:
    """What a person sees of each session."""
    found: dict[str, Any] = {}
    connection = database.connection
    for session_id, title, lineage, parent, total in connection.execute(
        "SELECT id, json_extract(metadata_json, '$.title'), "
        "json_extract(metadata_json, '$.lineage.kind'), parent_id, total_tokens FROM chat_sessions"
    ):
        found[session_id] = {"title": title, "lineage": lineage, "parent": parent,
                             "tokens": total, "spent": 0, "rows": []}  # fmt: skip
    once = shared_answers(database).usage
    for session_id, message_id, role, metadata in connection.execute(
        "SELECT session_id, id, role, metadata_json FROM chat_messages"
    ):
        said = json.loads(metadata)
        usage = list((said.get("usage") or {}).values()) if role == "assistant" else []
        if message_id in once:
            own = once[message_id]
            usage = list(own.tokens) if own is not None else []
        found[session_id]["spent"] += sum(usage)
        parts = connection.execute(
            "SELECT data_json FROM chat_parts WHERE message_id = ?", (message_id,)
        ).fetchall()
        facts = (role, said.get("hidden_at") is not None, said.get("usage"),
                 said["source"].get("inherited_from"))  # fmt: skip
        found[session_id]["rows"] += [repr((*facts, part)) for (part,) in parts or [(None,)]]
    for session_id, name in connection.execute("SELECT session_id, name FROM attachments"):
        found[session_id]["rows"].append(name)
    return found


def spent(shown: dict[str, Any]) -> int:
    """What all sessions come to, each answer once."""
    return sum(session["spent"] for session in shown.values())


def missing(before: dict[str, Any], after: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for session_id, was in before.items():
        now = after.get(session_id)
        if now is None:
            found[session_id] = "is gone"
            continue
        had, has = Counter(was["rows"]), Counter(now["rows"])
        lost: dict[str, Any] = {"rows": sorted(had - has)} if had - has else {}
        if has - had:
            lost["more"] = sorted(has - had)
        lost |= {key: (was[key], now[key]) for key in FACTS if was[key] != now[key]}
        if lost:
            found[session_id] = lost
    return found


def missing_of(own: dict[str, Any], before: dict[str, Any], now: dict[str, Any]) -> dict[str, Any]:
    """What sessions miss that were read when all others were gone; and what all come to.

    A copy that is gone may be the one that counts an answer, so that their own sums say nothing.
    """
    counting = {name: facts | {"spent": own[name]["spent"]} for name, facts in now.items()
                if name in own}  # fmt: skip
    found = missing(own, counting)
    if spent(now) != spent(before):
        found["spent"] = {"all": (spent(before), spent(now))}
    return found


def differing(before: dict[str, Any], after: dict[str, Any]) -> dict[str, Any]:
    """What is missing, and the sessions that there were not."""
    new = dict.fromkeys(after.keys() - before.keys(), "is new")
    return missing(before, after) | new


@pytest.mark.parametrize("place", FAMILIES, ids=title, indirect=True)
def test_what_others_hold_comes_from_the_library(place: Place, databases: Any) -> None:
    """Each file in turn is read for the first time when all others were read, and are gone."""
    database = databases("whole")
    before, paths = shown(synced(database, place)), {
        session_id: path
        for session_id, path in database.connection.execute(
            "SELECT id, json_extract(metadata_json, '$.source.path') FROM chat_sessions"
        )
    }
    wrong, tried = {}, 0
    for number, path in enumerate(place.files()):
        own = {name: facts for name, facts in before.items() if paths[name] == str(path)}
        if not own:
            continue
        tried += 1
        database = databases(str(number))
        others = {place.take(other): other for other in place.files() if other == path}
        synced(database, place)
        for other in place.files():
            others[other.rename(place.away / f"{len(others)} {other.name}")] = other
        (place.away / path.name).rename(path)
        synced(database, place)
        for away, other in others.items():
            if away.exists():
                away.rename(other)
        found = missing_of(own, before, shown(database))
        if found:
            wrong[str(path.relative_to(place.root.parent))] = found
    assert wrong == {}
    assert tried > 1


def test_a_moved_home_keeps_its_sessions(place: Place, databases: Any) -> None:
    database, folder = databases("library"), place.away.parent
    before = shown(synced(database, place))
    within = place.root.relative_to(folder)
    top = folder / within.parts[0]
    moved = top.rename(folder / "elsewhere")
    try:
        root = moved.joinpath(*within.parts[1:])
        now = shown(synced(database, Place(place.kind, root, place.away)))
    finally:
        moved.rename(top)
    assert (missing(before, now), now.keys() ^ before.keys()) == ({}, set())
    assert spent(now) == spent(before)


COPIED = (" (1)", " (mira's conflicted copy 2026-11-20)")
"""What programs that copy and share folders put before the ending of a name."""


@pytest.mark.parametrize("place", [*SAMPLES, *FAMILIES], ids=title, indirect=True)
def test_a_copy_beside_a_file_adds_nothing(place: Place, databases: Any) -> None:
    before = shown(synced(databases("whole"), place))
    files = [path for path in place.files() if path.suffix in (".json", ".jsonl")]
    wrong = {}
    for number, path in enumerate(files[:: 1 + len(files) // 6]):
        copy = path.with_name(path.stem + COPIED[number % 2] + path.suffix)
        shutil.copy2(path, copy)
        now = shown(synced(databases(str(number)), place))
        copy.unlink()
        found = missing(before, now)
        # A copy of a side file is one more of these.
        found = {name: facts for name, facts in found.items() if facts != {"more": [copy.name]}}
        if now.keys() != before.keys() or spent(now) != spent(before) or found:
            wrong[str(copy.relative_to(place.root.parent))] = found or now.keys() ^ before.keys()
    assert wrong == {}


def test_nothing_is_lost_with_a_file(place: Place, databases: Any, tmp_path: Path) -> None:
    whole = synced(databases("whole"), place)
    before = shown(whole)
    whole.close()
    assert any(session["rows"] for session in before.values())
    wrong = {}
    for number, path in enumerate(place.files()):
        shutil.copy(tmp_path / "whole.db", tmp_path / f"{number}.db")
        database = databases(str(number))
        away = place.take(path)
        forget_stamps(database)
        synced(database, place)
        away.rename(path)
        found = differing(before, shown(database))
        if found:
            wrong[str(path.relative_to(place.root.parent))] = found
    assert wrong == {}
    assert os.listdir(place.away) == []


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("place", COPIES, ids=title, indirect=True)
def test_copies_of_a_session_come_in_any_order(place: Place, databases: Any, seed: int) -> None:
    """Which file is the session, and which ones are its copies, is a matter of their content."""
    chance, files = random.Random(seed), place.files()
    for path in files:
        os.utime(path, (1_000_000_000 + chance.randrange(1000),) * 2)
    fresh = dump(synced(databases("fresh"), place), ALL)
    late = databases("late")
    chance.shuffle(files)
    place.away.mkdir(exist_ok=True)
    away = [path.rename(place.away / str(number)) for number, path in enumerate(files)]
    for there, path in zip(away, files, strict=True):
        there.rename(path)
        synced(late, place)
    assert differences(dump(late, ALL), fresh) == {}


def test_a_file_that_comes_in_two_pieces_makes_no_difference(
    place: Place, databases: Any, tmp_path: Path
) -> None:
    """Of a folder that is being copied, a file may have its first half alone for a moment."""
    fresh = dump(synced(databases("fresh"), place), ALL)
    wrong = {}
    for number, path in enumerate(place.files()):
        database, text, times = databases(str(number)), path.read_bytes(), path.stat()
        if text.startswith(b"SQLite"):
            continue
        path.write_bytes(text[: len(text) // 2])
        synced(database, place)
        path.write_bytes(text)
        os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))
        synced(database, place)
        found = differences(dump(database, ALL), fresh)
        if found:
            wrong[str(path.relative_to(place.root.parent))] = found
    assert wrong == {}


def said_visibly(database: Database) -> set[tuple[Any, ...]]:
    """Texts and calls of visible messages, by session; of copies, by the session they are of."""
    rows = database.connection.execute(
        "SELECT coalesce(json_extract(s.metadata_json, '$.source.copy_of'), s.id), m.role,"
        " p.tool_call_id, json_extract(p.data_json, '$.text', '$.output', '$.errorText')"
        " FROM chat_parts p JOIN chat_messages m ON m.id = p.message_id"
        " JOIN chat_sessions s ON s.id = m.session_id"
        " WHERE json_extract(m.metadata_json, '$.hidden_at') IS NULL"
    )
    return set(rows)


def beginning(text: bytes) -> bytes:
    return text[: len(text) // 2]


def first_lines(text: bytes) -> bytes:
    lines = text.splitlines(keepends=True)
    return b"".join(lines[: len(lines) // 3])


@pytest.mark.parametrize("rewrite", [beginning, first_lines, lambda text: b""])
def test_nothing_visible_is_lost_with_a_part_of_a_file(
    place: Place, databases: Any, tmp_path: Path, rewrite: Callable[[bytes], bytes]
) -> None:
    """A file that is rewritten shorter says less than the library, which keeps it, in sight."""
    whole = synced(databases("whole"), place)
    before = said_visibly(whole)
    whole.close()
    wrong = {}
    for number, path in enumerate(place.files()):
        text = path.read_bytes()
        if text.startswith(b"SQLite"):
            continue
        shutil.copy(tmp_path / "whole.db", tmp_path / f"{number}.db")
        database, times = databases(str(number)), path.stat()
        path.write_bytes(rewrite(text))
        synced(database, place)
        path.write_bytes(text)
        os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))
        lost = before - said_visibly(database)
        if lost:
            wrong[str(path.relative_to(place.root.parent))] = sorted(lost, key=repr)
    assert wrong == {}
