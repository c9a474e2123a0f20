"""Units that grow, read by what was appended: the store ends as one sync of the files has it."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from store.engine.database import Database, open_database
from store.sources.base.protocol import Follower, Unit
from store.sources.claude_code import ClaudeCodeSource
from store.sync import watch_readers
from store.sync.engine import Sync
from store.sync.settings import BULK_UNITS, Settings
from store.sync.targets import Target
from store.sync.watch_readers import Followers
from tests.store.sync_fakes import SIDE_TABLES, TABLES, dump
from tests.store.test_sync_live import LIVE, appends

RUNS = ("2.1.332-terminal", "2.1.332-print", "2.0.77-print")
ROW = (
    b'{"type":"user","uuid":"u","timestamp":"2026-01-01T00:00:00.000Z","message":'
    b'{"role":"user","content":"hi"}}\n'
)
EVERYTHING = (*TABLES, *SIDE_TABLES)


class Follow:
    """A library that follows a config folder, without a process."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.root = folder / "claude"
        self.projects = self.root / "projects"
        self.projects.mkdir(parents=True)
        self.database = open_database(folder / "live.db", create=True)
        self.followers = Followers()
        self.target = Target(ClaudeCodeSource(), self.root)

    def append(self, name: str, body: bytes) -> Path:
        path = self.projects / name
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("ab") as out:
            out.write(body)
        return path

    def sync(self) -> Sync:
        sync = Sync(self.database, Settings(helpers=0), reading=self.followers.reading)
        sync.run([self.target])
        return sync

    def at_once(self) -> dict[str, list[Any]]:
        path = self.folder / "once.db"
        path.unlink(missing_ok=True)
        other = open_database(path, create=True)
        target = Target(ClaudeCodeSource(), self.root)
        Sync(other, Settings(helpers=0)).run([target])
        rows = dump(other, EVERYTHING)
        other.close()
        return rows

    def title(self) -> str:
        (title,) = self.database.connection.execute(
            "SELECT json_extract(metadata_json, '$.title') FROM chat_sessions "
            "WHERE parent_id IS NULL"
        ).fetchone()
        return str(title)

    def close(self) -> None:
        self.database.close()

    @property
    def rows(self) -> dict[str, list[Any]]:
        return dump(self.database, EVERYTHING)


@pytest.fixture
def follow(tmp_path: Path) -> Any:
    made = Follow(tmp_path)
    yield made
    made.close()


@pytest.mark.parametrize("name", RUNS)
def test_every_append_leaves_what_a_sync_of_the_file_gives(name: str, follow: Follow) -> None:
    for number, (file, body) in enumerate(appends(name)):
        follow.append(file, body)
        follow.sync()
        if number % 5 == 0:
            assert follow.rows == follow.at_once()
    assert follow.rows == follow.at_once()
    assert follow.rows["chat_parts"]


@pytest.mark.long
@settings(
    max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(data=st.data())
def test_appends_cut_anywhere_come_to_the_same(
    data: st.DataObject, tmp_path_factory: pytest.TempPathFactory
) -> None:
    follow = Follow(tmp_path_factory.mktemp("cut"))
    name = data.draw(st.sampled_from(RUNS))
    pieces: list[tuple[str, bytes]] = []
    for file, body in appends(name):
        cuts = data.draw(st.lists(st.integers(0, len(body)), max_size=3).map(sorted))
        edges = [0, *cuts, len(body)]
        pieces += [(file, body[a:b]) for a, b in zip(edges, edges[1:], strict=False)]
    skipped = data.draw(st.sets(st.integers(0, len(pieces)), max_size=len(pieces)))
    for number, (file, body) in enumerate(pieces):
        follow.append(file, body)
        if number not in skipped:
            follow.sync()
    follow.sync()
    assert follow.rows == follow.at_once()
    assert follow.database.connection.execute("SELECT * FROM source_problems").fetchall() == []
    follow.close()
    shutil.rmtree(follow.folder)


@pytest.mark.long
@settings(max_examples=25, deadline=None)
@given(data=st.data())
def test_files_that_are_cut_rewritten_and_replaced_are_read_as_in_any_sync(
    data: st.DataObject, tmp_path_factory: pytest.TempPathFactory
) -> None:
    follow = Follow(tmp_path_factory.mktemp("rewritten"))
    events = appends(data.draw(st.sampled_from(RUNS)))
    plain = open_database(follow.folder / "plain.db", create=True)
    clock = 10**18
    for file, body in events:
        path = follow.append(file, body)
        what = data.draw(st.sampled_from(("grow", "grow", "cut", "replace", "again", "shift")))
        lines = path.read_bytes().splitlines(keepends=True)
        kept = data.draw(st.integers(0, len(lines)))
        if what == "cut":
            os.truncate(path, len(b"".join(lines[:kept])))
        elif what == "replace":
            new = path.with_suffix(".staged")
            new.write_bytes(b"".join(lines[kept:]))
            new.replace(path)
        elif what == "again":
            path.write_bytes(b"".join(lines))
        elif what == "shift":
            path.write_bytes(b"".join(lines[:kept]) + b"\n" + b"".join(lines[kept:]) + b"\n")
        # Two writes within one tick of the file system's clock would look like none.
        clock += 1_000_000
        os.utime(path, ns=(clock, clock))
        follow.sync()
        Sync(plain, Settings(helpers=0)).run([Target(ClaudeCodeSource(), follow.root)])
        assert follow.rows == dump(plain, EVERYTHING)
    plain.close()
    follow.close()
    shutil.rmtree(follow.folder)


def test_what_a_line_without_newline_turns_out_to_be(follow: Follow) -> None:
    file, body = "p/one.jsonl", ROW
    follow.append(file, body.rstrip(b"\n"))
    follow.sync()
    first = follow.rows
    assert first["chat_messages"] == follow.at_once()["chat_messages"] != []
    follow.append(file, b"\n")
    follow.sync()
    assert follow.rows["chat_messages"] == first["chat_messages"]
    os.truncate(follow.projects / file, len(body) - 1)
    follow.sync()
    follow.append(file, b" and more\n")
    follow.sync()
    (problem,) = follow.database.connection.execute("SELECT line, reason FROM source_problems")
    assert problem[0] == 1
    assert "no JSON" in problem[1]


def test_side_files_come_change_and_go(follow: Follow) -> None:
    for file, body in appends("2.1.332-terminal"):
        follow.append(file, body)
    session = next(path for path in follow.projects.glob("*/*.jsonl"))
    follow.sync()
    side = session.with_suffix("")
    steps = (
        ("custom-title.json", b'{"customTitle":"One"}'),
        ("custom-title.json", b'{"customTitle":"Two, longer"}'),
        ("custom-title.json", b"{torn"),
        ("custom-title.json", b'{"customTitle":"Three"}'),
        ("tool-results/a.txt", b"first"),
        ("tool-results/a.txt", b"first and second"),
        ("tool-results/b.txt", b"other"),
        ("subagents/agent-x1.meta.json", b'{"agentType":"Explore"}'),
    )  # fmt: skip
    for name, body in steps:
        (side / name).parent.mkdir(parents=True, exist_ok=True)
        (side / name).write_bytes(body)
        follow.sync()
        if body != b"{torn":
            assert follow.rows == follow.at_once()
        else:
            # A name that was given stays where its file cannot be read.
            assert follow.title() == "Two, longer"
    (side / "custom-title.json").unlink()
    follow.sync()
    assert follow.title() == "Three"


def test_a_subagent_that_comes_before_its_session(follow: Follow) -> None:
    home = LIVE.parent / "home" / ".claude" / "projects"
    agent = next(path for path in sorted(home.glob("*/*/subagents/*.jsonl")))
    main = agent.parent.parent.with_suffix(".jsonl")
    folder = agent.parent.parent.parent
    for path in (agent, main):
        name = str(path.relative_to(folder.parent))
        for line in path.read_bytes().splitlines(keepends=True):
            follow.append(name, line)
            follow.sync()
    meta = agent.with_name(agent.name.replace(".jsonl", ".meta.json"))
    shutil.copy(meta, follow.projects / meta.relative_to(folder.parent))
    follow.sync()
    live, once = follow.rows, follow.at_once()
    assert {table: live[table] for table in TABLES} == {table: once[table] for table in TABLES}
    assert sum(1 for row in live["chat_sessions"] if row[4] is not None) == 1


def test_what_the_user_set_stays_while_the_session_grows(follow: Follow) -> None:
    events = appends("2.1.332-terminal")
    for file, body in events[:-4]:
        follow.append(file, body)
        follow.sync()
    connection = follow.database.connection
    (first,) = connection.execute(
        "SELECT id FROM chat_messages ORDER BY created_at, id LIMIT 1"
    ).fetchone()
    connection.execute(
        "UPDATE chat_messages SET metadata_json = json_set(metadata_json, '$.hidden_at', 7, "
        "'$.backscroll.hidden_by', 'user') WHERE id = ?", (first,)
    )  # fmt: skip
    connection.execute(
        """UPDATE chat_sessions SET metadata_json = json_set(metadata_json, '$.user',
        json('{"title":"Mine"}'))"""
    )
    for file, body in events[-4:]:
        follow.append(file, body)
        follow.sync()
    found = connection.execute(
        "SELECT json_extract(m.metadata_json, '$.hidden_at'), "
        "json_extract(s.metadata_json, '$.user.title') "
        "FROM chat_messages m JOIN chat_sessions s ON s.id = m.session_id WHERE m.id = ?",
        (first,),
    ).fetchone()
    assert found == (7, "Mine")


def test_only_appended_bytes_are_read_and_only_new_rows_written(
    follow: Follow, monkeypatch: pytest.MonkeyPatch
) -> None:
    events = appends("2.1.332-terminal")
    for file, body in events[:-1]:
        follow.append(file, body)
    follow.sync()
    from store.sources.claude_code import transcript

    pushed: list[bytes] = []
    push = transcript.Transcript.push

    def noted(self: transcript.Transcript, chunk: bytes) -> None:
        pushed.append(chunk)
        push(self, chunk)

    monkeypatch.setattr(transcript.Transcript, "push", noted)
    follow.append(*events[-1])
    (before,) = follow.database.connection.execute("SELECT max(seq) FROM changes").fetchone()
    follow.sync()
    assert b"".join(pushed) == events[-1][1]
    changed = follow.database.connection.execute(
        "SELECT count(*) FROM changes WHERE seq > ?", (before,)
    ).fetchone()[0]
    (messages,) = follow.database.connection.execute(
        "SELECT count(*) FROM chat_messages"
    ).fetchone()
    assert 0 < changed < messages


def test_another_sync_in_between_costs_nothing_but_a_look_at_all(follow: Follow) -> None:
    events = appends("2.1.332-print")
    for number, (file, body) in enumerate(events):
        follow.append(file, body)
        if number % 2:
            source = Target(ClaudeCodeSource(), follow.root)
            other = open_database(follow.folder / "live.db")
            Sync(other, Settings(helpers=0)).run([source])
            other.close()
        else:
            follow.sync()
    follow.sync()
    assert follow.rows == follow.at_once()


def test_few_sessions_are_kept_and_none_for_long(
    follow: Follow, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = [0.0]
    follow.followers = Followers(lambda: now[0])
    monkeypatch.setattr(watch_readers, "FEW", 1)
    monkeypatch.setattr(watch_readers, "MANY", 2)
    for name in ("one", "two", "three"):
        follow.append(f"p/{name}.jsonl", ROW)
        follow.sync()
    assert len(follow.followers) == 2
    now[0] = watch_readers.IDLE_S
    follow.append("p/three.jsonl", ROW.replace(b'"u"', b'"v"'))
    follow.sync()
    now[0] += 1
    follow.followers.drop_idle()
    assert len(follow.followers) == 1
    assert follow.rows == follow.at_once()


class WholeReadings(ClaudeCodeSource):
    """Counts how many times a unit is read from its beginning."""

    count = 0

    def follower(self, root: Path, unit: Unit) -> Follower:
        self.count += 1
        return super().follower(root, unit)


def test_sessions_that_grow_at_the_same_time_are_read_by_their_ends(follow: Follow) -> None:
    source, sessions = WholeReadings(), 2 * BULK_UNITS
    follow.target = Target(source, follow.root)
    for number in range(6):
        for session in range(sessions):
            follow.append(f"p/{session}.jsonl", ROW.replace(b'"u"', b'"%d"' % number))
        follow.sync()
    assert source.count == 3 * sessions  # New, grown once, and from then on kept.
    assert len(follow.followers) == sessions
    assert follow.rows == follow.at_once()


def test_a_forgotten_session_does_not_come_back(follow: Follow) -> None:
    from store.sync.forget import forget

    events = appends("2.1.332-print")
    for file, body in events[:-2]:
        follow.append(file, body)
    follow.sync()
    database: Database = follow.database
    (session_id,) = database.connection.execute("SELECT id FROM chat_sessions").fetchone()
    forget(database, [session_id])
    for file, body in events[-2:]:
        follow.append(file, body)
        follow.sync()
    assert follow.rows["chat_sessions"] == []
