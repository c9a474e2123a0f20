"""Copies of sessions between stores of both engines, and a person's sessions in a team's store."""

from __future__ import annotations

import contextlib
import json
import random
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from store.copying import rows as rows_module
from store.copying.copying import copy_sessions
from store.copying.outgoing import masked, with_owner
from store.copying.rows import (
    TABLES,
    fitted,
    hash_of,
    is_listed_only,
    parents_first,
    read_rows,
    stored_stamps,
)
from store.copying.sharing import Person, Shared, share
from store.demo import make_demo
from store.engine import changes
from store.engine.database import Database, in_transaction, open_database
from store.engine.opening import open_target
from store.errors import Refused, StoreError
from store.queries.originals import records_of_session
from store.sharing.masks import Masking
from store.sync.blocks import cut_blocks, packed, unpacked
from store.sync.engine import Sync
from store.sync.settings import Settings
from store.verbs.marks import rename, star
from tests.sources.postgres_server import Server
from tests.sources.samples import SAMPLES
from tests.store import making
from tests.store.engines import new_server_store

NOW = 1_795_900_000_000
ENGINES = ("file", "server")
KEY = "sk-ant-api03-" + "a1B2" * 23 + "AA"
Make = Callable[[str], Database]


@pytest.fixture
def make(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Make]:
    """Return a function that opens a new store of an engine for writing."""
    with contextlib.ExitStack() as opened:
        def new(engine: str) -> Database:
            if engine == "server":
                postgres: Server = request.getfixturevalue("postgres")
                found = open_target(new_server_store(postgres), write=True)
            else:
                found = open_database(tmp_path / f"{len(list(tmp_path.iterdir()))}.db", create=True)
            opened.callback(found.close)
            return found

        yield new


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Database]:
    path = make_demo(tmp_path_factory.mktemp("demo") / "demo.db", lambda: NOW)
    with contextlib.closing(open_database(path, write=False)) as database:
        yield database


def rows_in(db: Database) -> dict[str, list[tuple[object, ...]]]:
    """Return all rows of sessions, in one order on both engines."""
    found = {
        table.name: db.connection.execute(f"SELECT {table.names} FROM {table.name}").fetchall()
        for table in TABLES
    }
    found["chat_sessions"] = [
        one.session for session_id in parents_first(db)
        if (one := read_rows(db, session_id)) is not None]
    found["system_prompts"] = db.connection.execute(
        "SELECT digest, body FROM system_prompts").fetchall()
    return {name: sorted(map(tuple, rows), key=repr) for name, rows in found.items()}


def with_talk(db: Database, session: str = "ses_a", texts: tuple[str, ...] = ("hello",)) -> None:
    making.add_session(db.connection, session, NOW)
    add_texts(db, session, texts)


def add_texts(db: Database, session: str, texts: tuple[str, ...], first: int = 0) -> None:
    for at, text in enumerate(texts, first):
        message = f"msg_{session}_{at}"
        making.add_message(
            db.connection, session, message, NOW + at, metadata={"source": {"id": str(at)}})
        making.add_part(db.connection, session, message, f"prt_{session}_{at}", 0, type="text",
                        data={"type": "text", "text": text})
    db.connection.execute(
        "INSERT INTO changes(session_id, changed_at) VALUES (?, ?)", (session, NOW))


def person(owner: str = "ada", library: str = "one", masking: Masking | None = None) -> Person:
    return Person(owner, library, masking)


def owners(db: Database) -> dict[str, str]:
    return {one: json.loads(text)["owner"] for one, text in db.connection.execute(
        "SELECT id, metadata_json FROM chat_sessions").fetchall()}


def texts_of(db: Database, session_id: str) -> list[str]:
    return [json.loads(text)["text"] for (text,) in db.connection.execute(
        "SELECT data_json FROM chat_parts WHERE session_id = ? ORDER BY created_at, id",
        (session_id,)).fetchall()]


@pytest.mark.parametrize("engine", ENGINES)
def test_a_copy_has_every_row_and_another_one_writes_nothing(
    demo: Database, make: Make, engine: str
) -> None:
    target = make(engine)
    ids = parents_first(demo)
    first = copy_sessions(demo, target, ids)
    assert (first.copied, first.unchanged, first.failed, first.different) == (len(ids), 0, {}, [])
    assert rows_in(target) == rows_in(demo)
    again = copy_sessions(demo, target, ids)
    assert (again.copied, again.unchanged) == (0, len(ids)) and again.hashes == first.hashes
    logged = target.connection.execute("SELECT session_id FROM changes").fetchall()
    assert first.is_whole and sorted(one for (one,) in logged) == sorted(ids)


def test_a_copy_from_a_server_is_the_file_again(demo: Database, make: Make) -> None:
    server, back = make("server"), make("file")
    ids = parents_first(demo)
    copy_sessions(demo, server, ids)
    assert copy_sessions(server, back, parents_first(server)).copied == len(ids)
    assert rows_in(back) == rows_in(demo)


@pytest.mark.parametrize("engine", ENGINES)
def test_a_server_hashes_its_rows_as_they_are_hashed_here(
    demo: Database, make: Make, engine: str
) -> None:
    target = make(engine)
    copy_sessions(demo, target, parents_first(demo))
    for session_id in parents_first(demo):
        here, there = read_rows(demo, session_id), stored_stamps(target, session_id)
        assert here is not None and there is not None
        assert here.stamps() == there and hash_of(here.stamps()) == hash_of(there)


@pytest.mark.parametrize("engine", ENGINES)
def test_a_stopped_copy_goes_on(demo: Database, make: Make, engine: str) -> None:
    target, seen = make(engine), list[int]()
    ids = parents_first(demo)
    stopped = copy_sessions(
        demo, target, ids, stopped=lambda: len(seen) > 3,
        on_progress=lambda done: seen.append(done.done))
    assert stopped.stopped and not stopped.is_whole and 0 < stopped.copied < len(ids)
    rest = copy_sessions(demo, target, ids)
    assert rest.unchanged == stopped.copied and rest.copied == len(ids) - stopped.copied
    assert rows_in(target) == rows_in(demo)


@pytest.mark.parametrize("engine", ENGINES)
def test_other_rows_are_left_unless_they_are_replaced(make: Make, engine: str) -> None:
    source, target = make("file"), make(engine)
    with_talk(source, texts=("one", "two", "three"))
    copy_sessions(source, target, ["ses_a"])
    source.connection.execute("DELETE FROM chat_messages WHERE id = 'msg_ses_a_1'")
    add_texts(source, "ses_a", ("four",), 3)
    found = copy_sessions(source, target, ["ses_a"])
    assert found.different == ["ses_a"] and texts_of(target, "ses_a") == ["one", "two", "three"]
    assert copy_sessions(source, target, ["ses_a"], replace=True).copied == 1
    assert texts_of(target, "ses_a") == ["one", "three", "four"]
    assert rows_in(source) == rows_in(target)


def test_what_cannot_be_stored_fails_alone(tmp_path: Path, make: Make) -> None:
    host = open_database(making.loose(tmp_path / "host.db"))
    for session, metadata in (("ses_a", "{no json"), ("ses_b", '{"title": "b"}')):
        making.add_session(host.connection, session, NOW, metadata_json=metadata)
    long = "".join(map(str, random.Random(1).choices(range(10**9), k=900)))
    making.add_session(host.connection, "ses_d", NOW, workspace_root=long)
    # An index takes no text of that length; a host's bytes and fractions are what they say.
    making.add_session(host.connection, "ses_e", NOW + 0.5, workspace_root=b"/w")
    target = make("server")
    found = copy_sessions(host, target, ["ses_a", "ses_d", "ses_e", "ses_b", "ses_c"])
    assert found.copied == 2 and set(found.failed) == {"ses_a", "ses_c", "ses_d"}
    assert "exceeds" in found.failed["ses_d"] and "\n" not in found.failed["ses_d"]
    assert target.connection.execute(
        "SELECT workspace_root, updated_at FROM chat_sessions WHERE id = 'ses_e'"
    ).fetchall() == [("/w", NOW)]
    host.close()


@pytest.mark.parametrize("engine", ENGINES)
def test_a_hosts_title_and_hidden_messages_come_along(
    tmp_path: Path, make: Make, engine: str
) -> None:
    host = open_database(making.grida(tmp_path / "grida.db"))
    target = make(engine)
    ids = parents_first(host)
    assert copy_sessions(host, target, ids).copied == len(ids)
    for one, title in host.connection.execute("SELECT id, title FROM chat_sessions").fetchall():
        (text,) = target.connection.execute(
            "SELECT metadata_json FROM chat_sessions WHERE id = ?", (one,)).fetchone()
        assert not title or json.loads(text)["title"] == title
    host.close()


def test_a_hosts_title_costs_no_other_metadata(tmp_path: Path, make: Make) -> None:
    host, target = open_database(making.grida(tmp_path / "grida.db")), make("file")
    chosen = parents_first(host)[0]
    host.connection.execute(
        "UPDATE chat_sessions SET title = 'T', metadata_json = ? WHERE id = ?",
        ('{"half": "\\ud800", "kept": 1}', chosen))
    assert copy_sessions(host, target, [chosen]).copied == 1
    (text,) = target.connection.execute("SELECT metadata_json FROM chat_sessions").fetchone()
    assert json.loads(text) == {"half": "\ufffd", "kept": 1, "title": "T"}
    host.close()


def test_nothing_is_copied_into_a_hosts_store(tmp_path: Path, make: Make) -> None:
    host = open_database(making.contract(tmp_path / "host.db"))
    with pytest.raises(Refused, match="another program"):
        copy_sessions(make("file"), host, [])
    host.close()


@pytest.mark.parametrize("engine", ENGINES)
def test_sessions_get_their_owner_and_the_second_run_reads_nothing(
    demo: Database, make: Make, engine: str
) -> None:
    target = make(engine)
    first = share(demo, target, person())
    assert first.new == first.total > 5 and not first.failed
    assert set(owners(target).values()) == {"ada"}
    assert share(demo, target, person()).total == 0


@pytest.mark.parametrize("engine", ENGINES)
def test_only_what_changed_is_brought_again(make: Make, engine: str) -> None:
    source, target = make("file"), make(engine)
    with_talk(source, "ses_a")
    with_talk(source, "ses_b")
    share(source, target, person())
    before = changes.newest(target)
    add_texts(source, "ses_b", ("more",), 1)
    found = share(source, target, person())
    assert (found.total, found.updated, found.new) == (1, 1, 0)
    assert texts_of(target, "ses_b") == ["hello", "more"]
    _, moved = changes.since(target, before)
    assert moved.sessions == {"ses_b": {"msg_ses_b_1"}}


@pytest.mark.parametrize("engine", ENGINES)
def test_two_people_with_the_same_session_keep_their_own(make: Make, engine: str) -> None:
    ada, grace, team = make("file"), make("file"), make(engine)
    with_talk(ada, texts=("hello", "from ada"))
    with_talk(grace, texts=("hello", "from grace"))
    making.add_session(grace.connection, "ses_child", NOW, parent_id="ses_a")
    share(ada, team, person("ada", "laptop"))
    share(grace, team, person("grace", "desk"))
    found = owners(team)
    (other,) = [one for one, owner in found.items() if owner == "grace" and one != "ses_child"]
    assert found == {"ses_a": "ada", other: "grace", "ses_child": "grace"}
    assert texts_of(team, "ses_a")[-1] == "from ada"
    assert texts_of(team, other)[-1] == "from grace"
    (parent,) = team.connection.execute(
        "SELECT parent_id FROM chat_sessions WHERE id = 'ses_child'").fetchone()
    assert parent == other
    # Both go on, and stay apart.
    add_texts(grace, "ses_a", ("grace again",), 2)
    add_texts(ada, "ses_a", ("ada again",), 2)
    share(grace, team, person("grace", "desk"))
    share(ada, team, person("ada", "laptop"))
    assert texts_of(team, "ses_a") == ["hello", "from ada", "ada again"]
    assert texts_of(team, other) == ["hello", "from grace", "grace again"]


@pytest.mark.parametrize("engine", ENGINES)
def test_a_name_that_is_set_later_is_that_of_the_same_sessions(make: Make, engine: str) -> None:
    mine, other, team = make("file"), make("file"), make(engine)
    with_talk(mine)
    with_talk(other)
    share(other, team, person("grace", "desk"))
    share(mine, team, person("root"))
    before = owners(team)
    assert sorted(before.values()) == ["grace", "root"]
    for name in ("ada", "root", "ada"):
        found = share(mine, team, person(name))
        assert (found.new, found.updated, found.failed) == (0, 1, {})
        assert owners(team) == {one: name if owner == "root" else owner
                                for one, owner in before.items()}
        assert share(mine, team, person(name)).total == 0
    assert share(other, team, person("grace", "desk")).total == 0


@pytest.mark.parametrize("engine", ENGINES)
def test_two_machines_of_a_person_keep_the_longer_session(make: Make, engine: str) -> None:
    laptop, desk, team = make("file"), make("file"), make(engine)
    with_talk(laptop, texts=("one", "two"))
    with_talk(desk, texts=("one",))
    share(laptop, team, person(library="laptop"))
    found = share(desk, team, person(library="desk"))
    assert list(found.skipped) == ["ses_a"] and texts_of(team, "ses_a") == ["one", "two"]
    add_texts(desk, "ses_a", ("two", "three"), 1)
    assert share(desk, team, person(library="desk")).updated == 1
    assert texts_of(team, "ses_a") == ["one", "two", "three"]
    assert len(owners(team)) == 1


@pytest.mark.parametrize("engine", ENGINES)
def test_two_machines_that_went_on_apart_lose_nothing(make: Make, engine: str) -> None:
    laptop, desk, team = make("file"), make("file"), make(engine)
    for one, home in ((laptop, "/home/ada"), (desk, "/Users/ada.l")):
        with_talk(one, texts=("one",))
        one.connection.execute("UPDATE chat_sessions SET workspace_root = ?", (f"{home}/api",))
    machines = [(laptop, person(library="laptop", masking=Masking(home=True))),
                (desk, person(library="desk", masking=Masking(home=True)))]
    for one, whose in machines:
        share(one, team, whose)
    assert len(owners(team)) == 1
    for (one, whose), tail in zip(machines, ("on the laptop", "at the desk"), strict=True):
        making.add_message(one.connection, "ses_a", f"msg_{whose.library}", NOW + 5)
        making.add_part(
            one.connection, "ses_a", f"msg_{whose.library}", f"prt_{whose.library}", 0,
            type="text", data={"type": "text", "text": f"{tail}, {KEY}"})
        one.connection.execute(
            "INSERT INTO changes(session_id, changed_at) VALUES ('ses_a', ?)", (NOW,))
    for _ in range(2):
        for one, whose in machines:
            share(one, team, whose)
        told = [text.partition(",")[0] for one in owners(team) for text in texts_of(team, one)]
        assert sorted(told) == ["at the desk", "on the laptop", "one", "one"]
        assert set(owners(team).values()) == {"ada"}
        assert sorted(len(texts_of(team, one)) for one in owners(team)) == [2, 2]
        assert KEY not in repr(rows_in(team)) and "/home/ada" not in repr(rows_in(team))
    assert [share(one, team, whose).total for one, whose in machines] == [0, 0]


@pytest.mark.parametrize("engine", ENGINES)
def test_an_older_copy_on_another_machine_takes_nothing_back(make: Make, engine: str) -> None:
    laptop, desk, team = make("file"), make("file"), make(engine)
    for one in (laptop, desk):
        with_talk(one, texts=("one",))
    making.add_part(laptop.connection, "ses_a", "msg_ses_a_0", "prt_more", 1, type="text",
                    data={"type": "text", "text": "the rest of it"})
    share(laptop, team, person(library="laptop"))
    assert list(share(desk, team, person(library="desk")).skipped) == ["ses_a"]
    laptop.connection.execute(
        "UPDATE chat_sessions SET updated_at = ?", (NOW + 9,))
    laptop.connection.execute("DELETE FROM chat_parts WHERE id = 'prt_ses_a_0'")
    laptop.connection.execute(
        "INSERT INTO changes(session_id, changed_at) VALUES ('ses_a', ?)", (NOW,))
    share(laptop, team, person(library="laptop"))
    desk.connection.execute("INSERT INTO changes(session_id, changed_at) VALUES ('ses_a', 1)")
    assert list(share(desk, team, person(library="desk")).skipped) == ["ses_a"]
    assert texts_of(team, "ses_a") == ["the rest of it"] and len(owners(team)) == 1


@pytest.mark.parametrize("engine", ENGINES)
def test_what_others_changed_there_stays(make: Make, engine: str) -> None:
    source, team = make("file"), make(engine)
    with_talk(source)
    share(source, team, person())
    in_transaction(team, rename, "ses_a", "Named by the team", now=NOW)
    add_texts(source, "ses_a", ("more",), 1)
    for _ in range(2):
        share(source, team, person())
        (text,) = team.connection.execute("SELECT metadata_json FROM chat_sessions").fetchone()
        assert json.loads(text)["user"]["title"] == "Named by the team"
    in_transaction(source, star, "ses_a", on=True, now=NOW)
    share(source, team, person())
    (text,) = team.connection.execute("SELECT metadata_json FROM chat_sessions").fetchone()
    assert json.loads(text)["user"] == {"title": "Named by the team", "star": True}
    assert texts_of(team, "ses_a") == ["hello", "more"]


@pytest.mark.parametrize("engine", ENGINES)
def test_no_secret_leaves_the_machine(make: Make, engine: str) -> None:
    source, team = make("file"), make(engine)
    with_talk(source, texts=(f"use {KEY} please",))
    source.connection.execute(
        "UPDATE chat_sessions SET metadata_json = ?",
        (json.dumps({"title": f"key {KEY}", "env": {"password": "hunter2hunter2"}}),))
    records = [b'{"env": "' + KEY.encode() + b'"}', f"plain {KEY}".encode(), b"\xff\x00", b"{}"]
    for block in cut_blocks(records, compress=True):
        source.connection.execute(
            "INSERT INTO original_records VALUES ('ses_a', ?, ?, ?, ?)",
            (block.first, block.count, block.checksum, block.compressed()))
    source.connection.execute(
        "INSERT INTO attachments VALUES ('ses_a', 'out.txt', 'text/plain', ?, ?)",
        (len(KEY), packed(KEY.encode())))
    source.connection.execute(
        "INSERT INTO attachments VALUES ('ses_a', ?, 'text/plain', 1, ?)",
        (f"{KEY}.txt", packed(b"x")))
    share(source, team, person(masking=Masking()))
    words = repr(rows_in(team))
    first, second, *others = records_of_session(team, "ses_a")
    assert others == records[2:] and KEY.encode() not in first + second
    assert first.startswith(b'{"env":"[masked ') and second.startswith(b"plain [masked ")
    files = dict(team.connection.execute("SELECT name, body FROM attachments").fetchall())
    assert sorted(files) == ["[masked API key].txt", "out.txt"]
    assert unpacked(1, files["out.txt"])[0].startswith(b"[masked ")
    assert KEY not in words and "hunter2" not in words and "[masked " in words
    # Masked in another way, all is brought again.
    found = share(source, team, person(masking=Masking(emails=True)))
    assert (found.total, found.unchanged) == (1, 1)
    assert share(source, team, person()).updated == 1 and KEY in repr(rows_in(team))


def test_a_server_that_ends_the_connection_loses_nothing(
    demo: Database, make: Make, postgres: Server
) -> None:
    url = new_server_store(postgres)

    def end(done: Shared) -> None:
        if done.done == 5:
            postgres.admin.execute(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = $1",
                url.partition("@/")[2].partition("?")[0])

    target = open_target(url, write=True)
    with pytest.raises(StoreError):
        share(demo, target, person(), on_progress=end)
    target.close()
    target = open_target(url, write=True)
    there = len(owners(target))
    rest = share(demo, target, person())
    assert there >= 5 and rest.unchanged == there and rest.is_whole
    whole = make("file")
    share(demo, whole, person())
    assert rows_in(target) == rows_in(whole)
    target.close()


@pytest.mark.long
@pytest.mark.parametrize("masking", [None, Masking(emails=True, home=True)])
def test_all_samples_on_a_server_are_those_of_the_file(
    make: Make, tmp_path: Path, masking: Masking | None
) -> None:
    source, server, file = make("file"), make("server"), make("file")
    for sample in SAMPLES:
        Sync(source, Settings(helpers=0)).run([sample.copied(tmp_path)])
    for target in (server, file):
        found: Shared = share(source, target, person(masking=masking))
        assert found.failed == {} and found.skipped == {} and found.new > 100
    assert rows_in(server) == rows_in(file)
    assert set(owners(server).values()) == {"ada"}
    for session_id in parents_first(source):
        here, there = read_rows(source, session_id), read_rows(server, session_id)
        assert here is not None
        if is_listed_only(here):
            assert there is None
            continue
        leaves = here if masking is None else masked(here, masking)
        assert there is not None
        assert there.stamps() == fitted(server, with_owner(leaves, "ada")).stamps()
    if masking is None:
        copied = make("server")
        assert copy_sessions(source, copied, parents_first(source)).is_whole
        assert rows_in(copied) == rows_in(source)
    assert share(source, server, person(masking=masking)).total == 0


@pytest.mark.parametrize("engine", ENGINES)
def test_a_session_that_grows_while_it_is_read_is_copied_as_it_was(
    make: Make, monkeypatch: pytest.MonkeyPatch, engine: str
) -> None:
    source, target = make(engine), make("file")
    with_talk(source, texts=("one",))
    place = str(source.server or source.path)
    read = rows_module._rows

    def read_while_it_grows(db: Database, table: rows_module.Table, session_id: str) -> Any:
        found = read(db, table, session_id)
        if db is source and table.name == "chat_messages":
            with contextlib.closing(open_target(place, write=True)) as other:
                add_texts(other, "ses_a", ("two",), first=1)
        return found

    with monkeypatch.context() as patched:
        patched.setattr(rows_module, "_rows", read_while_it_grows)
        assert copy_sessions(source, target, ["ses_a"]).failed == {}
    assert texts_of(target, "ses_a") == ["one"]
    assert not source.connection.in_transaction
    assert copy_sessions(source, target, ["ses_a"], replace=True).failed == {}
    assert texts_of(target, "ses_a") == ["one", "two"]
