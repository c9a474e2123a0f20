"""The file of statistics: kept, read before it is whole, mended, and free of what is forgotten."""

from __future__ import annotations

import os
import shutil
import signal
import sqlite3
import stat
import subprocess
import sys
import time
from collections.abc import Callable
from datetime import UTC
from pathlib import Path
from types import SimpleNamespace

import pytest

from store.engine import sidecar_keeper
from store.engine.database import in_transaction, open_database
from store.language.query import parse
from store.stats import keeping, tables
from store.stats.__main__ import keeper, main
from store.stats.checking import check
from store.stats.facts import count_session
from store.stats.keeping import Counter
from store.stats.rollups import Coverage
from store.stats.statistics import ALWAYS, Answer, figures, open_rollups
from store.stats.tables import STATISTICS
from store.sync.forget import forget
from store.system.stopping import Stop
from store.verbs.fork import fork
from tests.store.talks import START, Talk, make_store

HELD_S = 60.0
"""Seconds after which a test gives up."""


def until(true: Callable[[], bool]) -> None:
    ends = time.monotonic() + HELD_S
    while not true():
        assert time.monotonic() < ends
        time.sleep(0.02)


def note(talk: Talk, session: str) -> None:
    talk.db.connection.execute(
        "INSERT INTO changes(session_id, message_id, changed_at) VALUES (?, NULL, 0)", (session,))


def answers(talk: Talk, count: int = 3, **columns: str) -> str:
    session = talk.session(**columns)
    for _ in range(count):
        talk.message(session, "assistant", usage={"input": 10})
    if talk.db.form.name == "own":
        note(talk, session)
    return session


def catch_up(counter: Counter) -> None:
    counter.look()
    counter.resume()
    while counter.step() or not counter.idle:
        counter.look()
        counter.resume()


def kept(store: Path) -> None:
    counter = Counter(store)
    catch_up(counter)
    counter.close()


def asked(talk: Talk, seconds: float | None = None) -> Answer:
    with open_rollups(talk.db, seconds=seconds) as stats:
        return figures(
            talk.db, stats, by=None, span=ALWAYS, query=parse("", now=START), zone=UTC)


def test_the_file_is_private_and_beside_the_library(own_talk: Talk) -> None:
    answers(own_talk)
    kept(own_talk.db.path)
    path = own_talk.db.path.with_name(own_talk.db.path.name + ".stats")
    assert STATISTICS.path(own_talk.db.path) == path
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert check(own_talk.db.path) == []


def test_a_hosts_file_has_its_statistics_elsewhere(tmp_path: Path) -> None:
    talk = Talk(make_store(tmp_path / "host.db", "contract"))
    answers(talk)
    before = sorted(path.name for path in tmp_path.glob("host*"))
    kept(talk.db.path)
    assert sorted(path.name for path in tmp_path.glob("host*")) == before
    assert check(talk.db.path) == []


def test_a_reader_counts_what_is_not_counted_yet(own_talk: Talk) -> None:
    talk = own_talk
    answers(talk)
    assert asked(talk).whole.total == 30
    kept(talk.db.path)
    second = answers(talk)
    assert asked(talk).whole.total == 60
    assert asked(talk).coverage == Coverage(2, 2)
    talk.db.connection.execute("DELETE FROM chat_sessions WHERE id = ?", (second,))
    note(talk, second)
    assert asked(talk).whole.total == 30


def test_a_reader_sees_one_state_of_the_file_while_it_is_kept(own_talk: Talk) -> None:
    talk = own_talk
    answers(talk)
    kept(talk.db.path)
    for model in ("one", "two"):
        session = answers(talk, 0)
        talk.message(session, "assistant", usage={"input": 10}, model={"model_id": model})
    with open_rollups(talk.db) as stats:
        kept(talk.db.path)
        for by in ("model", "session"):
            found = figures(talk.db, stats, by=by, span=ALWAYS, query=parse("", now=START),
                            zone=UTC)
            assert found.whole.total == 50 and len(found.groups) == 3
    assert asked(talk).whole.total == 50


def test_a_reader_without_time_says_what_is_missing(own_talk: Talk) -> None:
    answers(own_talk)
    kept(own_talk.db.path)
    answers(own_talk)
    answer = asked(own_talk, seconds=0.0)
    assert (answer.whole.total, answer.coverage) == (30, Coverage(1, 2))
    assert not answer.coverage.whole


def test_counting_goes_on_where_it_was_killed(
    own_talk: Talk, monkeypatch: pytest.MonkeyPatch
) -> None:
    talk = own_talk
    sessions = [answers(talk) for _ in range(6)]
    monkeypatch.setattr(keeping, "BUILD_S", 0.0)
    counter = Counter(talk.db.path)
    for _ in range(3):
        counter.step()
    assert 0 < counter.counted < 6
    first = counter.counted
    # What a killed process leaves: the committed part, and no word of the rest.
    del counter
    last = talk.message(sessions[0], "assistant")
    made = in_transaction(talk.db, fork, sessions[0], last, ids=talk.ids, now=talk.now + 100_000)
    note(talk, made.session_id)
    counter = Counter(talk.db.path)
    catch_up(counter)
    assert counter.counted <= 7 - first + 2
    counter.close()
    assert check(talk.db.path) == []


@pytest.mark.file
def test_a_killed_process_leaves_a_file_that_the_next_one_mends(own_talk: Talk) -> None:
    for _ in range(20):
        answers(own_talk)
    command = [sys.executable, "-m", "store.stats", str(own_talk.db.path)]
    process = subprocess.Popen(command)
    until(lambda: STATISTICS.path(own_talk.db.path).exists())
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    answers(own_talk)
    assert main([str(own_talk.db.path), "--once"]) == 0
    assert check(own_talk.db.path) == []


@pytest.mark.parametrize("damage", ["empty", "noise", "version", "table", "names"])
def test_damage_is_mended(
    own_talk: Talk, monkeypatch: pytest.MonkeyPatch, damage: str
) -> None:
    monkeypatch.setattr(sidecar_keeper, "CHECKED_EVERY_S", 0.0)
    talk = own_talk
    answers(talk)
    kept(talk.db.path)
    path = STATISTICS.path(talk.db.path)
    if damage == "empty":
        os.truncate(path, 0)
    elif damage == "noise":
        path.write_bytes(b"no database at all" * 1000)
    else:
        other = sqlite3.connect(path)
        other.execute("PRAGMA writable_schema = 1")
        other.execute({
            "table": "DROP TABLE spent",
            "version": "UPDATE about SET value = '0' WHERE name = 'format'",
            "names": "UPDATE sqlite_master SET name = CAST(x'74939293' AS TEXT), sql = 'CREATE'"
                     " WHERE name = 'spent'",
        }[damage])  # fmt: skip
        other.commit()
        other.close()
    assert asked(talk).whole.total == 30
    working = keeper(talk.db.path, Stop(), lambda message: None)
    until(lambda: working.work() is not None and is_equal(talk.db.path))
    working.drop()


def test_a_keeper_rests_in_proportion_to_its_work(
    own_talk: Talk, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = [0.0]
    took, more = iter((0.001, 0.5, 60.0, 0.5, 0.5)), iter((False, False, False, True, True))

    class Work:
        idle = True

        def look(self) -> None:
            now[0] += next(took)

        def step(self) -> bool:
            return next(more)

        def close(self) -> None:
            pass

    def keeper(*, once: bool) -> sidecar_keeper.Keeper[Work]:
        return sidecar_keeper.Keeper(
            STATISTICS, own_talk.db.path, Stop(), Work, progress=lambda work, done: None,
            trouble=lambda message: None, once=once, poll_s=1.0, rests=20, pauses=2)

    monkeypatch.setattr(sidecar_keeper, "time", SimpleNamespace(monotonic=lambda: now[0]))
    monkeypatch.setattr(sidecar_keeper, "CHECKED_EVERY_S", 1e9)
    working, at_once = keeper(once=False), keeper(once=True)
    assert [working.work() for _ in range(4)] == [1.0, 10.0, sidecar_keeper.LONGEST_REST_S, 1.0]
    assert at_once.work() == 0.0
    working.drop()
    at_once.drop()


def is_equal(store: Path) -> bool:
    try:
        return check(store) == []
    except Exception:
        return False


@pytest.mark.file
def test_another_store_at_the_same_place_is_counted_anew(own_talk: Talk, tmp_path: Path) -> None:
    answers(own_talk)
    kept(own_talk.db.path)
    path = own_talk.db.path
    own_talk.db.close()
    other = Talk(make_store(tmp_path / "other" / "store.db", "own"))
    answers(other, 7)
    other.db.connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
    other.db.close()
    for ending in ("-wal", "-shm"):
        path.with_name(path.name + ending).unlink(missing_ok=True)
    shutil.move(tmp_path / "other" / "store.db", path)
    talk = Talk(open_database(path))
    assert asked(talk).whole.total == 70
    kept(path)
    assert check(path) == []
    talk.db.close()


def test_nothing_of_a_forgotten_session_is_left(own_talk: Talk) -> None:
    talk = own_talk
    secret = answers(talk, workspace_root="/secret-folder", agent="secret-agent")
    talk.message(secret, "assistant", usage={"input": 1}, model={"model_id": "secret-model"})
    last = talk.call(secret, "secret-tool")
    made = in_transaction(talk.db, fork, secret, last, ids=talk.ids, now=talk.now + 100_000)
    talk.db.connection.execute(
        "UPDATE chat_sessions SET workspace_root = NULL, agent = 'x' WHERE id = ?",
        (made.session_id,))
    talk.db.connection.execute("DELETE FROM chat_messages WHERE session_id = ? AND id IN (SELECT"
                               " message_id FROM chat_parts WHERE type = 'tool-secret-tool')",
                               (made.session_id,))
    for session in (secret, made.session_id):
        note(talk, session)
    kept(talk.db.path)
    path = STATISTICS.path(talk.db.path)
    assert b"secret-tool" in path.read_bytes()
    forget(talk.db, [secret])
    for each in (path, path.with_name(path.name + "-wal")):
        content = each.read_bytes() if each.exists() else b""
        for word in (b"secret-tool", b"secret-agent", b"secret-folder", secret.encode()):
            assert word not in content
    # The copies that the fork holds count from now on.
    assert asked(talk).whole.total == 31
    kept(talk.db.path)
    assert check(talk.db.path) == []


def test_what_is_forgotten_while_it_is_counted_stays_out(
    own_talk: Talk, monkeypatch: pytest.MonkeyPatch
) -> None:
    talk = own_talk
    session = answers(talk)
    counter = Counter(talk.db.path)
    count = count_session

    def counted_and_forgotten(*arguments: object) -> object:
        monkeypatch.setattr("store.stats.keeping.count_session", count)
        found = count(*arguments)  # type: ignore[arg-type]
        forget(talk.db, [session])
        return found

    monkeypatch.setattr("store.stats.keeping.count_session", counted_and_forgotten)
    counter.step()
    assert tables.session_number(counter.file, session) is None
    catch_up(counter)
    counter.close()
    assert check(talk.db.path) == []


@pytest.mark.file
def test_a_writer_and_a_reader_never_wait(own_talk: Talk) -> None:
    talk = own_talk
    answers(talk)
    kept(talk.db.path)
    file = STATISTICS.open_for_writing(STATISTICS.path(talk.db.path))
    file.execute("BEGIN IMMEDIATE")
    talk.db.connection.execute("PRAGMA busy_timeout = 0")
    answers(talk)
    assert asked(talk).whole.total == 60
    file.execute("ROLLBACK")
    file.close()


@pytest.mark.file
def test_the_upkeep_keeps_both_files_until_its_parent_ends(own_talk: Talk) -> None:
    from store.search.index.checking import check as check_index

    answers(own_talk)
    process = subprocess.Popen(
        [sys.executable, "-m", "store.upkeep", "--until-stdin-closes", str(own_talk.db.path)],
        stdin=subprocess.PIPE,
    )
    until(lambda: is_equal(own_talk.db.path))
    answers(own_talk, 2)
    until(lambda: is_equal(own_talk.db.path))
    until(lambda: check_index(own_talk.db.path) == [])
    assert process.stdin is not None
    process.stdin.close()
    assert process.wait(HELD_S) == 0


def test_edits_in_a_hosts_file_are_found(tmp_path: Path) -> None:
    talk = Talk(make_store(tmp_path / "host.db", "contract"))
    session = answers(talk)
    counter = Counter(talk.db.path)
    catch_up(counter)
    # In place, and with no time of change.
    talk.db.connection.execute(
        "UPDATE chat_messages SET metadata_json = '{\"usage\":{\"input\":7}}' WHERE session_id = ?",
        (session,))
    catch_up(counter)
    counter.close()
    assert check(talk.db.path) == []
    assert asked(talk).whole.total == 21


@pytest.mark.file
def test_a_log_that_was_trimmed_hides_no_change(own_talk: Talk) -> None:
    talk = own_talk
    session = answers(talk)
    kept(talk.db.path)
    write = talk.db.connection.execute
    write("UPDATE chat_messages SET metadata_json = '{\"usage\":{\"input\":7}}'")
    note(talk, session)
    answers(talk)
    write("DELETE FROM changes WHERE seq < (SELECT max(seq) FROM changes)")
    write("DELETE FROM changes")
    assert asked(talk).whole.total == 51
    kept(talk.db.path)
    assert check(talk.db.path) == []
