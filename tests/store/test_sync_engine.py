from __future__ import annotations

import json
import os
import signal
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from store.engine.database import Database, in_transaction, open_database
from store.errors import NotFound, StoreError
from store.ids import derived_session_id
from store.sources.base.drafts import LineageDraft, SessionDraft
from store.sync import locking, writer
from store.sync.engine import Sync
from store.sync.forget import forget
from store.sync.problems import problems
from store.sync.progress import Progress
from store.sync.settings import Settings
from store.sync.targets import Target
from store.sync.writer import write_session
from tests.store.sync_fakes import (
    SIDE_TABLES,
    START,
    TABLES,
    LineSource,
    dump,
    line,
    message,
    run,
    session,
    write_lines,
)

ALL = (*TABLES, *SIDE_TABLES)


@pytest.fixture
def database(tmp_path: Path) -> Iterator[Database]:
    opened = open_database(tmp_path / "store.db", create=True)
    yield opened
    opened.close()


@pytest.fixture
def root(tmp_path: Path) -> Path:
    folder = tmp_path / "source"
    for number in range(6):
        write_lines(folder, f"s{number}", 5 + number, at=START + number)
    return folder


def titles(database: Database) -> list[str]:
    return [
        row[0].removeprefix("/").rsplit("/", 1)[-1]
        for row in database.connection.execute(
            "SELECT json_extract(metadata_json, '$.source.path') FROM chat_sessions ORDER BY 1"
        )
    ]


def test_reads_the_newest_first_and_then_nothing(database: Database, root: Path) -> None:
    source = LineSource()
    summary = run(database, root, source)
    assert source.read_units == [f"s{number}.lines" for number in (5, 4, 3, 2, 1, 0)]
    assert (summary.units, summary.read, summary.new, summary.updated) == (6, 6, 6, 0)
    before, total = dump(database, (*ALL, "source_units")), database.connection.total_changes
    again = run(database, root, source)
    assert (again.units, again.read, again.new, again.updated) == (6, 0, 0, 0)
    assert database.connection.total_changes == total
    assert dump(database, (*ALL, "source_units")) == before


def test_growth_in_small_appends_equals_one_reading(
    database: Database, root: Path, tmp_path: Path
) -> None:
    path = root / "s5.lines"
    for number in range(10, 14):
        whole = line(number).encode()
        with path.open("ab") as file:
            file.write(whole[:9])
        run(database, root)
        with path.open("ab") as file:
            file.write(whole[9:])
        summary = run(database, root)
        assert (summary.read, summary.updated) == (1, 1)
    other = open_database(tmp_path / "other.db", create=True)
    run(other, root)
    assert dump(other, ALL) == dump(database, ALL)
    other.close()


def test_a_replaced_or_shortened_file_is_read_again(database: Database, root: Path) -> None:
    run(database, root)
    write_lines(root, "s1", 2)
    new = root / "new"
    new.write_text(line(1, "other"))
    new.replace(root / "s2.lines")
    assert run(database, root, keep_deleted=False).updated == 2
    counts = dict(
        database.connection.execute(
            "SELECT session_id, count(*) FROM chat_messages GROUP BY session_id"
        )
    )
    assert counts[derived_session_id("fake", "s1")] == 2
    assert counts[derived_session_id("fake", "s2")] == 1


def test_a_session_outlives_its_file(database: Database, root: Path) -> None:
    run(database, root)
    (root / "s3.lines").unlink()
    assert run(database, root).units == 5
    assert "s3.lines" in titles(database)
    run(database, root, keep_deleted=False)
    assert "s3.lines" not in titles(database)
    assert len(titles(database)) == 5


def test_damage_costs_itself_and_is_cleared_when_it_is_mended(
    database: Database, root: Path
) -> None:
    with (root / "s1.lines").open("a") as file:
        file.write("BAD\n" + line(9))
    (root / "s2.lines").write_text("EXPLODE\n")
    (root / "folder.broken").touch()
    summary = run(database, root)
    assert (summary.new, summary.problems) == (5, 3)
    found = problems(database)
    assert [(one.unit, Path(one.path).name, one.line, one.reason) for one in found] == [
        ("", "folder.broken", 0, "is broken"),
        ("s1.lines", "s1.lines", 7, "is no JSON"),
        ("s2.lines", "s2.lines", 0, "cannot be read: RuntimeError: this file explodes"),
    ]  # fmt: skip
    rows = dump(database, ["source_problems"])
    assert run(database, root).read == 1
    assert dump(database, ["source_problems"]) == rows
    (root / "folder.broken").unlink()
    (root / "s2.lines").unlink()
    write_lines(root, "s1", 3)
    run(database, root)
    assert problems(database) == []


def test_a_session_whose_rows_are_refused_costs_only_itself(
    database: Database, root: Path, tmp_path: Path
) -> None:
    run(database, root)
    before = dump(database, TABLES)
    role = ["no", "role"]
    for name, at in (("first", START - 1), ("odd", START + 3), ("last", START + 9)):
        write_lines(root, name, 3, at=at, role=role)
    new = open_database(tmp_path / "new.db", create=True)
    summary = run(new, root)
    assert (summary.new, summary.problems) == (6, 3)
    assert dump(new, TABLES) == before
    found = problems(new)
    assert [Path(one.path).stem for one in found] == ["first", "last", "odd"]
    assert all(one.reason.startswith("cannot be written: ") for one in found)
    assert run(new, root).read == 0
    new.close()


def test_a_root_that_cannot_be_listed_is_a_problem(database: Database, root: Path) -> None:
    class Broken(LineSource):
        def units(self, root: Path, problems: list[object]) -> Iterator[object]:  # type: ignore[override]
            raise PermissionError(13, "Permission denied")

    run(database, root, Broken())
    assert [one.reason for one in problems(database, kind="fake")] == [
        "cannot be read: Permission denied"
    ]
    run(database, root)
    assert problems(database) == []


def test_a_renamed_root_takes_its_problems_along(database: Database, tmp_path: Path) -> None:
    old, new, other = tmp_path / "old", tmp_path / "new", tmp_path / "other"
    for folder in (old, other):
        with write_lines(folder, "some", 3).open("a") as file:
            file.write("BAD\n")
        (folder / "none.lines").write_text("")
        (folder / "odd.broken").write_text("")
        (folder / "exploding.lines").write_text("EXPLODE\n")
        run(database, folder)
    run(database, other)

    def found() -> list[str]:
        return sorted(f"{Path(one.path).relative_to(tmp_path)} {one.reason}"
                      for one in problems(database))  # fmt: skip

    before = found()
    assert len(before) == 6
    for source, target in ((old, new), (new, old)):
        source.rename(target)
        run(database, target)
        assert found() == sorted(one.replace("old/", f"{target.name}/") for one in before)


def test_excluded_workspaces_stay_out_until_they_are_not(database: Database, root: Path) -> None:
    write_lines(root, "secret", 3, workspace="/secret/place")
    source = LineSource()
    run(database, root, source, excludes=lambda workspace: workspace == "/secret/place")
    assert "secret.lines" not in titles(database)
    source.read_units.clear()
    run(database, root, source, excludes=lambda workspace: workspace == "/secret/place")
    assert source.read_units == []
    run(database, root, source)
    assert source.read_units == ["secret.lines"]
    assert "secret.lines" in titles(database)


def test_a_newer_mapping_reads_everything_again(database: Database, root: Path) -> None:
    run(database, root)
    source = LineSource()
    source.version = 2
    with (root / "s2.lines").open("a") as file:
        file.write(line(99))
    os.utime(root / "s2.lines", ns=(1, 1))
    assert run(database, root, source).read == 6
    assert source.read_units[0] == "s2.lines"  # what moved comes before what did not
    assert run(database, root, source).read == 0


def test_forgotten_sessions_stay_away(database: Database, root: Path) -> None:
    run(database, root)
    gone = derived_session_id("fake", "s2")
    database.connection.execute(
        "INSERT INTO verb_log(verb, session_id, summary, edits_json, state, logged_at) "
        "VALUES ('rename', ?, 'renamed', '[]', 'done', 1)", (gone,))  # fmt: skip
    assert forget(database, [gone]) == [gone]
    with (root / "s2.lines").open("a") as file:
        file.write(line(99))
    run(database, root)
    assert "s2.lines" not in titles(database)
    for table in ("chat_messages", "chat_parts", "original_records", "verb_log"):
        assert database.connection.execute(
            f"SELECT count(*) FROM {table} WHERE session_id = ?", (gone,)
        ).fetchone() == (0,)  # fmt: skip
    with pytest.raises(NotFound, match="no session ses_nothing"):
        forget(database, [derived_session_id("fake", "s1"), "ses_nothing"])
    assert "s1.lines" in titles(database)


def test_forgetting_takes_subagents_along_and_leaves_forks(database: Database) -> None:
    def write(draft: SessionDraft) -> None:
        in_transaction(database, write_session, "fake", draft)

    agent = session("agent", message("x"), lineage=LineageDraft("subagent", "main"))
    deeper = session("deeper", message("y"), lineage=LineageDraft("subagent", "agent"))
    copied = message("f1", system_prompt_digest="shared")
    copied.inherited_from = "m1"
    fork = session("fork", copied, lineage=LineageDraft("fork", "main", "m1"))
    main = session(
        "main",
        message("m1", system_prompt_digest="shared"),
        message("m2", system_prompt_digest="alone"),
        system_prompts={"shared": "Both have it.", "alone": "Only one has it."},
    )
    for draft in (main, agent, deeper, fork):
        write(draft)
    names = {name: derived_session_id("fake", name) for name in ("main", "agent", "deeper")}
    assert forget(database, [names["main"]]) == list(names.values())
    late = session("late", message("z"), lineage=LineageDraft("subagent", "main"))
    for draft in (main, agent, deeper, late):
        write(draft)
    (left,) = database.connection.execute(
        "SELECT id, parent_id, parent_message_id FROM chat_sessions"
    ).fetchall()
    assert left == (derived_session_id("fake", "fork"), None, None)
    (metadata,) = database.connection.execute("SELECT metadata_json FROM chat_messages").fetchone()
    assert "inherited_from" not in json.loads(metadata)
    assert database.connection.execute("SELECT digest FROM system_prompts").fetchall() == [
        ("shared",)
    ]  # fmt: skip
    total = database.connection.total_changes
    write(fork)
    assert database.connection.total_changes == total


def test_only_the_newest_changes_are_kept(
    database: Database, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(writer, "CHANGES_KEPT", 4)
    run(database, root)
    rows = database.connection.execute("SELECT seq FROM changes ORDER BY seq").fetchall()
    assert rows == [(3,), (4,), (5,), (6,)]


def test_progress_ends_at_the_total(database: Database, root: Path) -> None:
    seen: list[tuple[int, int, int, int]] = []

    def note(progress: Progress) -> None:
        seen.append((progress.files_done, progress.files_total, progress.bytes_done,
                     progress.bytes_total))  # fmt: skip

    sync = Sync(database, Settings(helpers=0), on_progress=note)
    sync.run([Target(LineSource(), root)])
    size = sum(path.stat().st_size for path in root.iterdir())
    assert seen[0] == (0, 6, 0, size)
    assert seen[-1] == (6, 6, size, size)


def test_a_stopped_sync_keeps_what_it_did_and_goes_on(database: Database, root: Path) -> None:
    source = LineSource()
    sync = Sync(database, Settings(helpers=0), stopped=lambda: len(source.read_units) >= 2)
    assert sync.run([Target(source, root)]).stopped
    assert titles(database) == ["s4.lines", "s5.lines"]
    assert run(database, root, source).new == 4


def test_another_sync_that_was_faster_is_not_undone(database: Database, root: Path) -> None:
    class Overtaken(LineSource):
        def read(self, root: Path, unit: object) -> object:  # type: ignore[override]
            reading = super().read(root, unit)  # type: ignore[arg-type]
            if len(self.read_units) == 1:
                with (root / "s5.lines").open("a") as file:
                    file.write(line(50))
                other = open_database(database.path)
                run(other, root, exclusive=False)
                other.close()
            return reading

    source = Overtaken()
    run(database, root, source)
    (count,) = database.connection.execute(
        "SELECT count(*) FROM chat_messages WHERE session_id = ?",
        (derived_session_id("fake", "s5"),),
    ).fetchone()
    assert count == 11
    assert source.read_units.count("s5.lines") == 2


def start(store: Path, root: Path, how: str) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [sys.executable, "-m", "tests.store.sync_fakes", str(store), str(root), how],
        cwd=Path(__file__).parents[2], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )  # fmt: skip


@pytest.mark.parametrize("how", ["exclusive", "shared"])
@pytest.mark.one_in(2)
def test_two_at_once_give_what_one_gives(tmp_path: Path, how: str) -> None:
    root = tmp_path / "source"
    for number in range(40):
        write_lines(root, f"s{number}", 60, at=START + number)
    together = [start(tmp_path / "both.db", root, how) for _ in range(2)]
    for process in together:
        _, errors = process.communicate()
        assert (process.returncode, errors) == (0, b"")
    assert start(tmp_path / "one.db", root, how).wait() == 0
    both, one = open_database(tmp_path / "both.db"), open_database(tmp_path / "one.db")
    assert dump(both, ALL) == dump(one, ALL)
    assert dump(both)["chat_messages"]
    both.close()
    one.close()


@pytest.mark.fault
@pytest.mark.long
def test_killed_anywhere_it_goes_on(tmp_path: Path) -> None:
    root = tmp_path / "source"
    for number in range(30):
        write_lines(root, f"s{number}", 200, at=START + number)
    assert start(tmp_path / "calm.db", root, "shared").wait() == 0
    calm = open_database(tmp_path / "calm.db")
    expected = dump(calm, ALL)
    calm.close()
    store = tmp_path / "killed.db"
    for kill_at in (1, 4, 9, 20):
        process = start(store, root, "exclusive")
        _kill_when(process, store, kill_at)
    assert start(store, root, "exclusive").wait() == 0
    killed = open_database(store)
    assert killed.connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)
    assert dump(killed, ALL) == expected
    killed.close()


def _kill_when(process: subprocess.Popen[bytes], store: Path, sessions: int) -> None:
    """Kill -9 once the file or its log has grown to about so many sessions."""
    log = store.with_name(store.name + "-wal")
    while process.poll() is None:
        size = sum(path.stat().st_size for path in (store, log) if path.exists())
        if size > sessions * 40_000:
            os.kill(process.pid, signal.SIGKILL)
            break
    process.communicate()


def test_a_locked_store_says_so(
    database: Database, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(locking, "LOCK_PATIENCE_S", 0.0)
    database.connection.execute("PRAGMA busy_timeout = 0")
    holder = sqlite3.connect(database.path, isolation_level=None)
    holder.execute("BEGIN IMMEDIATE")
    with pytest.raises(StoreError, match="is locked by another program"):
        run(database, root)
    holder.execute("ROLLBACK")
    holder.close()
    assert run(database, root).new == 6


def test_a_writer_that_lets_go_is_waited_for(database: Database, root: Path) -> None:
    holder = sqlite3.connect(database.path, isolation_level=None, check_same_thread=False)
    holder.execute("BEGIN IMMEDIATE")
    database.connection.execute("PRAGMA busy_timeout = 0")
    timer = threading.Timer(0.05, lambda: holder.execute("COMMIT"))
    timer.start()
    assert run(database, root).new == 6
    timer.join()
    holder.close()


def test_a_read_only_store_says_so(database: Database, root: Path) -> None:
    database.connection.execute("PRAGMA query_only = 1")
    with pytest.raises(StoreError, match="read only"):
        run(database, root)


def test_a_full_disk_says_so(database: Database, root: Path) -> None:
    (pages,) = database.connection.execute("PRAGMA page_count").fetchone()
    database.connection.execute(f"PRAGMA max_page_count = {pages + 1}")
    with pytest.raises(StoreError, match="the disk of .* is full"):
        run(database, root)
    database.connection.execute("PRAGMA max_page_count = 1000000")
    # What a slow machine had committed before is kept.
    run(database, root)
    assert database.connection.execute("SELECT count(*) FROM chat_sessions").fetchone() == (6,)
