"""Every session of a store in a folder."""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from store.engine.database import Database, open_database
from store.exports.bulk import LIST, Bulk, export_all
from store.exports.files import Prepared, prepare
from store.exports.registry import FORMATS

NAMES = ("ses_1", "../../etc/passwd", "a/b", "a-b", "A-B", ".hidden", "x" * 300, "\u202eevil", "..")


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Database]:
    with contextlib.closing(open_database(tmp_path / "library.db", create=True)) as database:
        for at, name in enumerate(NAMES):
            database.connection.execute(
                "INSERT INTO chat_sessions(id, agent, model_json, metadata_json, created_at,"
                " updated_at) VALUES (?, 'a', '{}', ?, 1, ?)",
                (name, json.dumps({"title": f"../{name}"}), at))
            database.connection.execute(
                "INSERT INTO chat_messages(id, session_id, role, created_at, updated_at)"
                " VALUES (?, ?, 'user', 1, 1)", (f"m{at}", name))
            database.connection.execute(
                'INSERT INTO chat_parts(id, message_id, session_id, "index", type, data_json,'
                " created_at, updated_at) VALUES (?, ?, ?, 0, 'text', ?, 1, 1)",
                (f"p{at}", f"m{at}", name, json.dumps({"type": "text", "text": f"hello {at}"})))
        yield database


def exported(db: Database, folder: Path, to: str = "json", **options: object) -> Bulk:
    def prepared(session_id: str, export_id: str) -> Prepared:
        return prepare(db, session_id, FORMATS[to], export_id=export_id)

    return export_all(db, FORMATS[to], folder, prepared, **options)  # type: ignore[arg-type]


def files(folder: Path) -> set[str]:
    return {str(one.relative_to(folder)) for one in folder.rglob("*") if one.is_file()} - {LIST}


@pytest.mark.parametrize("to", FORMATS)
def test_each_session_has_its_file_in_the_folder(store: Database, tmp_path: Path, to: str) -> None:
    folder = tmp_path / "out" / "all"
    outside = files(tmp_path)
    done = exported(store, folder, to)
    assert done.written + len(done.failed) == len(NAMES)
    inside = files(folder)
    assert len({name.casefold() for name in inside}) == len(inside) >= done.written
    assert {name for name in files(tmp_path) - outside
            if not name.startswith(("out/all/", "library.db"))} == set()
    again = exported(store, folder, to)
    assert again.written == 0 and again.unchanged == done.written


def test_only_what_changed_is_written_again(store: Database, tmp_path: Path) -> None:
    folder = tmp_path / "out"
    exported(store, folder)
    store.connection.execute("UPDATE chat_parts SET updated_at = 9 WHERE id = 'p0'")
    assert exported(store, folder, dry_run=True).written == 1
    assert exported(store, folder).written == 1
    assert exported(store, folder, settings="other").written == len(NAMES)
    (folder / "ses_1.json").unlink()
    assert exported(store, folder, settings="other").written == 1


def test_it_goes_on_after_a_kill(store: Database, tmp_path: Path) -> None:
    folder = tmp_path / "out"

    class Killed(BaseException):
        pass

    def kill(done: int, total: int) -> None:
        if done == 4:
            raise Killed

    with pytest.raises(Killed):
        exported(store, folder, telling=kill)
    listed = folder / LIST
    lines = listed.read_bytes()
    listed.write_bytes(lines[: lines.rstrip().rfind(b"\n") + 9])  # killed in the middle of a line
    assert len(files(folder)) == 4
    done = exported(store, folder)
    assert not done.failed and done.unchanged == 3 and done.written == len(NAMES) - 3
    assert len(files(folder)) == len(NAMES)


def test_a_file_of_somebody_else_stays(store: Database, tmp_path: Path) -> None:
    folder = tmp_path / "out"
    folder.mkdir()
    (folder / "ses_1.json").write_text("mine")
    elsewhere = tmp_path / "elsewhere"
    elsewhere.write_text("far")
    exported(store, tmp_path / "other")
    (name,) = (one for one in files(tmp_path / "other") if one.startswith("etc-passwd"))
    os.symlink(elsewhere, folder / name)
    done = exported(store, folder)
    assert (folder / "ses_1.json").read_text() == "mine" and elsewhere.read_text() == "far"
    assert set(done.failed) == {"ses_1", "../../etc/passwd"} and done.written == len(NAMES) - 2
    assert set(exported(store, folder).failed) == {"ses_1", "../../etc/passwd"}


def test_a_list_that_lies_reaches_nothing_outside(store: Database, tmp_path: Path) -> None:
    folder, outside = tmp_path / "out", tmp_path / "mine.json"
    folder.mkdir()
    outside.write_text("mine")
    entry = {"session": "ses_1", "file": "../mine.json", "stamp": "x", "settings": "json"}
    (folder / LIST).write_text(json.dumps(entry) + "\n[1]\nnull\n\x00\n")
    assert exported(store, folder).written == len(NAMES)
    assert outside.read_text() == "mine"
