"""Sessions are listed before they are read, and reading them leaves nothing of that."""

from __future__ import annotations

import shutil
import sqlite3
from pathlib import Path
from typing import Any

import orjson
import pytest

from store.conversation.outline_marks import is_outline
from store.engine.database import Database, open_database
from store.sources.base.growing import HEAD_BYTES, TAIL_BYTES
from store.sources.base.protocol import OutlinedSource
from store.sources.registry import source
from store.sync import engine, outlines, pool, units
from store.sync.engine import Sync
from store.sync.locking import write_turn
from store.sync.session_rows import PreparedSession
from store.sync.settings import Settings
from store.sync.targets import Target
from store.sync.units import Excludes, Job
from store.sync.wanted import Wanted
from store.verbs import marks
from tests.bench import claude_corpus
from tests.sources.samples import FIRST, SAMPLES, Sample

LISTED = Settings(helpers=0, outline_bytes=0)
PLAIN = Settings(helpers=0)
TABLES = (
    "chat_sessions", "chat_messages", "chat_parts", "session_links", "record_refs",
    "original_records", "attachments", "system_prompts", "source_units", "unit_facts", "unit_wants",
)  # fmt: skip


def rows(database: Database) -> dict[str, set[tuple[object, ...]]]:
    """Return the rows of the tables, without when they were read."""
    found = {}
    for table in TABLES:
        try:
            cursor = database.connection.execute(f"SELECT * FROM {table}")
        except sqlite3.OperationalError:
            continue
        names = [column[0] for column in cursor.description]
        kept = [at for at, name in enumerate(names) if name != "synced_at"]
        found[table] = {tuple(row[at] for at in kept) for row in cursor}
    return found


def synced(path: Path, sample: Sample, settings: Settings) -> dict[str, Any]:
    database = open_database(path, create=True)
    Sync(database, settings, clock=lambda: 1).run([sample.target()])
    found = rows(database)
    left = database.connection.execute("SELECT count(*) FROM outlines").fetchone()
    database.close()
    assert left == (0,)
    return found


@pytest.mark.parametrize("sample", SAMPLES, ids=lambda sample: sample.name)
@pytest.mark.one_in(3)
def test_listing_first_leaves_nothing_in_the_rows(sample: Sample, tmp_path: Path) -> None:
    listed = synced(tmp_path / "listed.db", sample, LISTED)
    plain = synced(tmp_path / "plain.db", sample, PLAIN)
    assert listed["chat_sessions"] == plain["chat_sessions"]
    assert listed == plain


class Stopping:
    """Stops a sync once the sessions of so many units are listed; of all without a number."""

    def __init__(self, units: int | None = None) -> None:
        self.units, self.listed = units, False

    def note(self, progress: Any) -> None:
        enough = progress.files_total if self.units is None else self.units
        self.listed = self.listed or progress.files_listed >= enough > 0


def listed_only(database: Database, sample: Sample, units: int | None = None) -> None:
    stopping = Stopping(units)
    sync = Sync(database, LISTED, on_progress=stopping.note, stopped=lambda: stopping.listed)
    sync.run([sample.target()])


@pytest.fixture
def library(tmp_path: Path) -> Database:
    return open_database(tmp_path / "library.db", create=True)


def sessions(database: Database) -> dict[str, dict[str, Any]]:
    import orjson

    found = database.connection.execute(
        "SELECT id, metadata_json, workspace_root, agent FROM chat_sessions"
    )
    return {
        row[0]: {**orjson.loads(row[1]), "workspace": row[2], "agent": row[3]} for row in found
    }


@pytest.mark.parametrize("kind", [
    "claude-code", "codex", "opencode", "pi", "qwen", "droid", "viben", "kilo", "gemini", "copilot",
    "vibe", "gptme", "kimi", "amp", "continue", "cline", "openhands",
])  # fmt: skip
def test_what_is_listed_has_title_time_and_folder(kind: str, library: Database) -> None:
    sample = FIRST[kind]
    listed_only(library, sample)
    listed = sessions(library)
    assert library.connection.execute("SELECT count(*) FROM chat_messages").fetchone() == (0,)
    assert listed and all(is_outline(one) for one in listed.values())
    times = library.connection.execute(
        "SELECT id, updated_at, created_at FROM chat_sessions ORDER BY id"
    ).fetchall()
    Sync(library, PLAIN).run([sample.target()])
    whole = sessions(library)
    assert listed.keys() <= whole.keys()
    for session_id, outline in listed.items():
        for name in ("title", "workspace", "agent"):
            assert outline.get(name) == whole[session_id].get(name), (session_id, name)
    assert not any(is_outline(one) for one in whole.values())
    after = {row[0]: row[1:] for row in library.connection.execute(
        "SELECT id, updated_at, CASE json_extract(metadata_json, '$.lineage.kind') WHEN 'fork'"
        " THEN NULL ELSE created_at END FROM chat_sessions"
    )}  # fmt: skip
    # The ends of a fork do not tell where its own messages begin.
    assert [(row[1], row[2] if after[row[0]][1] else None) for row in times] == [
        after[row[0]] for row in times
    ]


def lengthen(root: Path) -> int:
    """Repeat the last message of the JSON documents of a folder; return how many there are."""
    found = 0
    for path in root.rglob("*.json"):
        value = orjson.loads(path.read_bytes())
        lists = [value] if isinstance(value, list) else list(value.values())
        for one in lists:
            if isinstance(one, list) and len(one) > 1 and isinstance(one[-1], dict):
                one += [one[-1]] * (HEAD_BYTES // len(orjson.dumps(one[-1])))
                found += 1
        path.write_bytes(orjson.dumps(value))
    return found


@pytest.mark.parametrize("kind", ["gemini", "amp", "continue", "cline"])
def test_large_documents_are_listed_too(kind: str, library: Database, tmp_path: Path) -> None:
    target = FIRST[kind].target()
    root = tmp_path / "copied" / Path(str(target.root)).name
    shutil.copytree(str(target.root), root)
    assert lengthen(root)
    target = Target(target.source, root)
    stopping = Stopping()
    Sync(library, LISTED, on_progress=stopping.note, stopped=lambda: stopping.listed).run([target])
    listed = sessions(library)
    assert listed and all(is_outline(one) for one in listed.values())
    times = library.connection.execute("SELECT id, updated_at FROM chat_sessions").fetchall()
    Sync(library, PLAIN).run([target])
    whole = sessions(library)
    assert listed.keys() <= whole.keys()
    for session_id, outline in listed.items():
        for name in ("title", "workspace", "agent"):
            assert outline.get(name) == whole[session_id].get(name), (session_id, name)
    after = dict(library.connection.execute("SELECT id, updated_at FROM chat_sessions").fetchall())
    assert [after[row[0]] for row in times] == [row[1] for row in times]


def test_a_sync_that_was_stopped_lists_on_and_ends_as_a_whole_one(
    library: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sample = FIRST["claude-code"]
    monkeypatch.setattr(outlines, "WRITTEN_AT_ONCE", 2)
    listed_only(library, sample, 3)
    first = set(sessions(library))
    looked: list[str] = []
    outline = outlines.outlines_of

    def noted(job: Job, excludes: Excludes) -> list[PreparedSession]:
        looked.append(units.key_of(job.unit))
        return outline(job, excludes)

    monkeypatch.setattr(outlines, "outlines_of", noted)
    before = {
        row[0] for row in library.connection.execute("SELECT DISTINCT key FROM outlines")
    }
    assert first and len(before) in (3, 4)
    Sync(library, LISTED, clock=lambda: 1).run([sample.target()])
    assert before.isdisjoint(looked)
    assert rows(library)["chat_sessions"] == synced(
        tmp_path / "plain.db", sample, PLAIN
    )["chat_sessions"]


def test_an_outline_that_no_reading_completes_goes(library: Database) -> None:
    sample = FIRST["codex"]
    listed_only(library, sample)
    (some,) = library.connection.execute("SELECT id FROM chat_sessions LIMIT 1").fetchone(),
    library.connection.execute(
        "UPDATE chat_sessions SET id = 'ses_phantom' WHERE id = ?", some
    )
    library.connection.execute(
        "UPDATE outlines SET session_id = 'ses_phantom' WHERE session_id = ?", some
    )
    sync = Sync(library, PLAIN)
    sync.run([sample.target()])
    assert "ses_phantom" not in sessions(library) and "ses_phantom" in sync.changed
    assert some[0] in sessions(library)


def test_what_a_user_did_with_an_outline_stays(library: Database) -> None:
    sample = FIRST["claude-code"]
    listed_only(library, sample)
    session_id = next(iter(sessions(library)))
    rowid = library.connection.execute(
        "SELECT rowid FROM chat_sessions WHERE id = ?", (session_id,)
    ).fetchone()
    marks.rename(library, session_id, "Mine", now=5)
    marks.star(library, session_id, on=True, now=6)
    Sync(library, PLAIN).run([sample.target()])
    whole = sessions(library)[session_id]
    assert whole["user"] == {"title": "Mine", "star": True}
    assert library.connection.execute(
        "SELECT rowid FROM chat_sessions WHERE id = ?", (session_id,)
    ).fetchone() == rowid


def test_excluded_folders_and_forgotten_sessions_are_not_listed(library: Database) -> None:
    from store.sync.forget import forget

    sample = FIRST["codex"]
    Sync(library, PLAIN).run([sample.target()])
    session_id = next(iter(sessions(library)))
    forget(library, [session_id], clock=lambda: 1)
    library.connection.execute("DELETE FROM source_units")
    library.connection.execute("DELETE FROM chat_sessions")
    listed_only(library, sample)
    assert session_id not in sessions(library)
    settings = Settings(helpers=0, outline_bytes=0, excludes=lambda workspace: True)
    library.connection.execute("DELETE FROM chat_sessions")
    library.connection.execute("DELETE FROM outlines")
    Sync(library, settings).run([sample.target()])
    assert not sessions(library)


def read_order(database: Database) -> list[str]:
    """Return the sessions in the order in which their messages were written."""
    found = database.connection.execute(
        "SELECT session_id, min(rowid) AS first FROM chat_messages GROUP BY session_id"
        " ORDER BY first"
    )
    return [row[0] for row in found]


def test_a_session_that_is_opened_is_read_next(library: Database) -> None:
    sample = FIRST["codex"]
    listed_only(library, sample)
    asked = ["no such session"]
    (last,) = library.connection.execute(
        "SELECT session_id FROM outlines o JOIN chat_sessions s ON s.id = o.session_id"
        " WHERE s.parent_id IS NULL ORDER BY s.updated_at LIMIT 1"
    ).fetchone()
    asked.insert(0, last)
    Sync(library, PLAIN, wanted=lambda: asked.pop() if asked else None).run([sample.target()])
    order = read_order(library)
    assert last in order[:3] and not asked
    assert set(order) == set(sessions(library))


def test_a_session_that_is_opened_is_read_before_what_helpers_wait_with(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pool, "BULK_BYTES", 0)
    monkeypatch.setattr(pool, "ASSIGNED_BYTES", 1_000_000)
    claude_corpus.make(tmp_path / "tree", 60, 100)
    root = tmp_path / "tree"
    database = open_database(tmp_path / "library.db", create=True)
    target = Target(source("claude-code"), root)
    stopping = Stopping()
    few = Settings(helpers=2, outline_bytes=0)
    Sync(
        database, few, on_progress=stopping.note, stopped=lambda: stopping.listed
    ).run([target])
    (last,) = database.connection.execute(
        "SELECT id FROM chat_sessions ORDER BY updated_at LIMIT 1"
    ).fetchone()
    asked = [last]
    Sync(database, few, wanted=lambda: asked.pop() if asked else None).run([target])
    order = read_order(database)
    assert len(order) == 60 and order.index(last) < 40
    assert database.connection.execute("SELECT count(*) FROM outlines").fetchone() == (0,)
    database.close()


def test_the_newest_are_listed_before_helpers_start(
    library: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    found: list[int] = []

    def counted(self: Sync, jobs: list[Job]) -> None:
        found.append(len(sessions(library)))

    monkeypatch.setattr(Sync, "_pool_for", counted)
    monkeypatch.setattr(engine, "BULK_UNITS", 1)
    monkeypatch.setattr(outlines, "WRITTEN_AT_ONCE", 5)
    said: list[tuple[bool, int]] = []
    sync = Sync(library, LISTED, on_progress=lambda now: said.append((now.listing, now.files_done)))
    sync.run([FIRST["claude-code"].target()])
    assert 0 < found[0] < len(sessions(library))
    assert said[0] == (False, 0) and (True, 0) in said
    assert said[-1][0] is False and said[-1][1] > 0


def test_listing_goes_on_while_a_helper_writes(
    library: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(outlines, "WRITTEN_AT_ONCE", 1)
    target = FIRST["codex"].target()
    jobs = Sync(library, PLAIN).list_moved(target)
    listing = outlines.list_first(library, jobs, PLAIN.excludes, lambda: 1, lambda: False)
    with write_turn(library.path):
        assert next(listing) == 0 and not sessions(library)
    assert next(listing) == 2 and sessions(library)
    assert list(listing)[-1] == len(jobs)


def test_ids_are_taken_line_by_line_however_they_arrive() -> None:
    wanted = Wanted()
    for chunk in (b"ses_1\nses", b"_2", b"\n\n", b"x" * 300 + b"\n", b"\xff\n", b"rest"):
        wanted.heard(chunk)
    taken = []
    while (one := wanted.take()) is not None:
        taken.append(one)
    assert taken == ["ses_1", "ses_2", "\ufffd"]


def test_of_long_files_only_the_ends_are_read(tmp_path: Path) -> None:
    claude_corpus.make(tmp_path, 3, 100)
    claude = source("claude-code")
    assert isinstance(claude, OutlinedSource)
    for unit in claude.units(tmp_path, []):
        assert unit.size > 2 * (HEAD_BYTES + TAIL_BYTES)
        (outline,) = claude.outline(tmp_path, unit)
        (whole,) = claude.read(tmp_path, unit).sessions
        for name in ("source_id", "title", "workspace_root", "model", "created_at", "updated_at"):
            assert getattr(outline, name) == getattr(whole, name)
        assert len(outline.messages) < 10 < len(whole.messages)


def copied(sample: Sample, folder: Path) -> Target:
    """Return a target on a copy of a sample."""
    target = sample.target()
    assert isinstance(target.root, Path)
    root = folder / target.root.name
    shutil.copytree(target.root, root)
    return Target(target.source, root)


@pytest.mark.parametrize("kind", ["claude-code", "codex", "gemini", "pi"])
def test_nothing_is_left_of_files_that_go_between_listing_and_reading(
    kind: str, library: Database, tmp_path: Path
) -> None:
    target = copied(FIRST[kind], tmp_path)
    stopping = Stopping()
    Sync(
        library, LISTED, on_progress=stopping.note, stopped=lambda: stopping.listed
    ).run([target])
    assert isinstance(target.root, Path)
    for path in sorted(path for path in target.root.rglob("*") if path.is_file())[::2]:
        path.unlink()
    Sync(library, PLAIN, clock=lambda: 1).run([target])
    fresh = open_database(tmp_path / "fresh.db", create=True)
    Sync(fresh, PLAIN, clock=lambda: 1).run([target])
    assert rows(library) == rows(fresh)
    fresh.close()


def test_what_is_listed_stays_while_its_folder_cannot_be_listed(
    library: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sample = FIRST["codex"]
    listed_only(library, sample)
    session_id = next(iter(sessions(library)))
    marks.star(library, session_id, on=True, now=6)
    before = set(sessions(library))
    with monkeypatch.context() as patched:
        patched.setattr(engine, "why_unreadable", lambda root: "cannot be read: not now")
        Sync(library, PLAIN).run([sample.target()])
    assert set(sessions(library)) == before
    Sync(library, PLAIN).run([sample.target()])
    whole = sessions(library)
    assert whole[session_id]["user"] == {"star": True}
    assert not any(map(is_outline, whole.values())) and not outlines.are_left(library)
