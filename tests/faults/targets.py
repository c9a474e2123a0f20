"""What is killed, and what must hold then: one class a kind of work.

``work`` runs in a process of its own, which is killed at any moment; it acknowledges what it has
done through ``ack``, as the program does to its user. ``check`` looks at what is left.
"""

from __future__ import annotations

import contextlib
import json
import os
import random
import shutil
import sqlite3
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any, ClassVar

from store.copying.copying import Copied as CopiedSessions
from store.copying.copying import copy_sessions
from store.copying.rows import parents_first
from store.engine import schema
from store.engine.database import Database, in_transaction, migration_backup, open_database
from store.errors import BackscrollError, Refused
from store.events.log import switch_off, switch_on
from store.events.rebuilding import differing, rebuild
from store.events.trimming import Bounds, trim
from store.exports.bulk import export_all
from store.exports.files import Prepared, prepare
from store.exports.registry import FORMATS
from store.ids import IdMinter
from store.recorder.policy import SavePolicy
from store.recorder.procedures import drive
from store.recorder.recording import Recording
from store.search.index.__main__ import main as build_index
from store.stats.__main__ import main as count_all
from store.sync.engine import Sync
from store.sync.settings import Settings
from store.system.clock import Clock
from store.upkeep.backup import back_up
from store.upkeep.compacting import checkpoint, vacuum
from store.upkeep.doctor import examine_file
from store.upkeep.pruning import Wish, prune
from store.upkeep.restoring import check_backup, restore_backup
from store.verbs.fork import fork
from store.verbs.marks import rename, star, tag
from store.verbs.rewind import rewind
from store.verbs.shelf import archive
from store.verbs.undo import redo, undo
from tests.sources.samples import SAMPLES

Ack = Callable[[object], None]
TABLES = ("chat_sessions", "chat_messages", "chat_parts")
NOW = 1_790_000_000_000


class Target:
    """A kind of work.

    Attributes:
        left: Checks of the doctor that may find something, which ``doctor --fix`` must mend.
    """

    left: ClassVar[set[str]] = set()

    def __init__(self, folder: Path, pristine: Path, rng: random.Random, clock: Clock) -> None:
        """Prepare a round.

        Args:
            folder: An empty folder for the library and all else.
            pristine: A library to copy.
            rng: Decides what is done.
            clock: The present, which may jump.
        """
        self.folder, self.rng, self.clock = folder, rng, clock
        self.library, self.pristine = folder / "library.db", pristine
        self.make()

    def make(self) -> None:
        """Make what the work begins with."""
        shutil.copyfile(self.pristine, self.library)
        self.library.chmod(0o600)

    def work(self, ack: Ack) -> None:
        """Do it; acknowledge what is done."""
        raise NotImplementedError

    def check(self, acks: list[Any]) -> None:
        """Fail unless all that was acknowledged is there."""

    def is_well(self) -> None:
        """Fail unless the doctor finds nothing, but what a kill leaves and ``--fix`` mends."""
        found = [one for one in examine_file(self.library).findings if not one.is_note]
        wrong = [f"{one.check}: {one.words}" for one in found if one.check not in self.left]
        assert not wrong, wrong
        if found:
            done = examine_file(self.library, fix=True)
            assert done.is_well, [one.words for one in done.findings if not one.mended]

    @contextlib.contextmanager
    def opened(self, *, write: bool = False) -> Iterator[Database]:
        """Open the library."""
        with contextlib.closing(open_database(self.library, write=write)) as database:
            yield database

    def rows(self, path: Path | None = None) -> list[list[tuple[Any, ...]]]:
        """Return the rows of the three tables, in the order of their ids."""
        with contextlib.closing(sqlite3.connect(path or self.library)) as connection:
            return [connection.execute(f"SELECT * FROM {table} ORDER BY id").fetchall()
                    for table in TABLES]


class Verbs(Target):
    """Rename, star, tag, archive, rewind, fork, undo and redo."""

    def work(self, ack: Ack) -> None:
        """Change random sessions; acknowledge each title and fork."""
        with self.opened(write=True) as database:
            read = database.connection.execute
            kinds = ["rename", "star", "tag", "archive", "fork", "rewind"]
            if self.rng.random() < 0.5:
                kinds += ["undo", "redo"]
            for number in range(60):
                (session,) = self.rng.choice(read("SELECT id FROM chat_sessions").fetchall())
                verb = self.rng.choice(kinds)
                with contextlib.suppress(Refused):
                    made = self._do(database, verb, session, number)
                    ack([verb, session, made])

    def _do(self, database: Database, verb: str, session: str, number: int) -> object:
        def do(change: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
            return in_transaction(database, change, *args, now=self.clock(), **kwargs)

        if verb in ("undo", "redo"):
            return bool(in_transaction(database, undo if verb == "undo" else redo,
                                       now=self.clock()))
        if verb == "rename":
            return do(rename, session, f"Title {number}")
        if verb == "star":
            return do(star, session)
        if verb == "tag":
            return do(tag, session, add=[f"tag-{number}"])
        if verb == "archive":
            return len(do(archive, [session]))
        messages = database.connection.execute(
            "SELECT id FROM chat_messages WHERE session_id = ? ORDER BY created_at, id", (session,)
        ).fetchall()
        if not messages:
            return None
        (message,) = self.rng.choice(messages)
        if verb == "rewind":
            do(rewind, session, message)
            return None
        return str(do(fork, session, message, ids=IdMinter(self.clock)).session_id)

    def check(self, acks: list[Any]) -> None:
        """The last change of each session is there, unless an undo or a kill came after it."""
        undone = {verb for verb, *_ in acks} & {"undo", "redo"}
        with contextlib.closing(sqlite3.connect(self.library)) as connection:
            logged = connection.execute("SELECT count(*) FROM verb_log").fetchone()[0]
            with contextlib.closing(sqlite3.connect(self.pristine)) as before:
                logged -= before.execute("SELECT count(*) FROM verb_log").fetchone()[0]
            done = [verb for verb, *_ in acks if verb not in ("undo", "redo")]
            assert logged in (len(done), len(done) + 1), (logged, len(done))
            for verb, session, made in acks:
                if verb == "fork" and made and not undone:
                    assert connection.execute(
                        "SELECT 1 FROM chat_sessions WHERE id = ?", (made,)).fetchone(), session
            titles = {session: made for verb, session, made in acks if verb == "rename"}
            for session, title in titles.items() if not undone else ():
                found = connection.execute(
                    "SELECT json_extract(metadata_json, '$.user.title') FROM chat_sessions"
                    " WHERE id = ?", (session,)).fetchone()[0]
                newer = found.startswith("Title ") and int(found[6:]) >= int(str(title)[6:])
                assert newer, (found, title)


class Recorded(Target):
    """A recorder that saves at each chunk."""

    left: ClassVar[set[str]] = {"running sessions"}

    def work(self, ack: Ack) -> None:
        """Record a long answer; acknowledge how many words are saved."""
        with self.opened(write=True) as database:
            recording = Recording(policy=SavePolicy(save_buffer_ms=0), clock=self.clock)
            drive(database, recording.start(None, agent="faults"))
            ack(recording.session_id)
            chunks: list[dict[str, Any]] = [
                {"type": "start"}, {"type": "start-step"}, {"type": "text-start", "id": "t"},
                *({"type": "text-delta", "id": "t", "delta": f"{number} "} for number in
                  range(150)),
                {"type": "text-end", "id": "t"}, {"type": "finish-step"}, {"type": "finish"},
            ]
            for chunk in chunks:
                drive(database, recording.receive(chunk))
                drive(database, recording.save(exact=True))
                if chunk["type"] == "text-delta":
                    ack(int(chunk["delta"]))

    def check(self, acks: list[Any]) -> None:
        """Every word that was acknowledged is there, in order."""
        if len(acks) < 2:
            return
        with contextlib.closing(sqlite3.connect(self.library)) as connection:
            ((text,),) = connection.execute(
                "SELECT json_extract(data_json, '$.text') FROM chat_parts WHERE session_id = ?"
                " AND type = 'text'", (acks[0],)).fetchall()
        words = [int(word) for word in text.split()]
        assert words == list(range(len(words))) and len(words) > acks[-1], (words[-3:], acks[-1])


class Synced(Target):
    """A sync of agents' files, which goes on after a kill."""

    KINDS = ("claude-code", "codex", "pi", "gemini")
    settings: ClassVar[Settings] = Settings(helpers=0)

    def make(self) -> None:
        """Begin without a library."""

    def work(self, ack: Ack) -> None:
        """Read everything; acknowledge the end."""
        with contextlib.closing(open_database(self.library, create=True)) as database:
            targets = [one.target() for one in SAMPLES if one.kind in self.KINDS]
            Sync(database, self.settings, clock=self.clock).run(targets)
        ack("synced")

    def check(self, acks: list[Any]) -> None:
        """Another sync makes what an undisturbed one makes."""
        if not self.library.exists():
            assert not acks
            return
        self.is_well()
        self.work(lambda _: None)
        whole = Synced(self.folder / "whole", self.pristine, self.rng, self.clock)
        whole.folder.mkdir(mode=0o700)
        whole.work(lambda _: None)
        assert self.rows() == whole.rows()


class Listed(Synced):
    """A sync that lists all sessions before it reads them, and may be killed in between."""

    settings = Settings(helpers=0, outline_bytes=0)


class Migrated(Target):
    """A migration of an older library."""

    def make(self) -> None:
        """Make a library of an older version, from the rows of the other one."""
        self.version = self.rng.randrange(1, schema.CURRENT_VERSION)
        with contextlib.closing(sqlite3.connect(self.library, isolation_level=None)) as older:
            older.execute("PRAGMA journal_mode = WAL").fetchall()
            for step in schema.MIGRATIONS[: self.version]:
                for statement in schema.statements(step):
                    older.execute(statement)
            older.execute(f"PRAGMA application_id = {schema.APPLICATION_ID}")
            older.execute(f"PRAGMA user_version = {self.version}")
            older.execute("ATTACH ? AS other", (str(self.pristine),))
            for table in TABLES:
                older.execute(f"INSERT INTO {table} SELECT * FROM other.{table}")
            older.execute("DETACH other")
        self.library.chmod(0o600)

    def work(self, ack: Ack) -> None:
        """Open it, which migrates it."""
        with self.opened(write=True):
            ack("migrated")

    def check(self, acks: list[Any]) -> None:
        """It is migrated now, and a backup has the version that it had."""
        with self.opened(write=True) as database:
            assert database.form.version == schema.CURRENT_VERSION
        kept = migration_backup(self.library, self.version)
        assert self.rows() == self.rows(kept) == self.rows(self.pristine)

    left: ClassVar[set[str]] = {"left files"}


class Vacuumed(Target):
    """A vacuum and checkpoints."""

    def work(self, ack: Ack) -> None:
        """Make empty pages, and give them back."""
        with self.opened(write=True) as database:
            for number in range(4):
                database.connection.execute("CREATE TABLE filler AS SELECT randomblob(300000) AS b")
                database.connection.execute("DROP TABLE filler")
                vacuum(database)
                checkpoint(database)
                ack(number)

    def check(self, acks: list[Any]) -> None:
        """No row has changed."""
        assert self.rows() == self.rows(self.pristine)


class BackedUp(Target):
    """Backups, while another process writes."""

    def work(self, ack: Ack) -> None:
        """Write backups beside the library; acknowledge each."""
        writer = os.fork()
        if writer == 0:
            with contextlib.suppress(BaseException), self.opened(write=True) as database:
                for number in range(1_000_000):
                    if os.getppid() == 1:
                        break
                    database.connection.execute(
                        "INSERT OR REPLACE INTO system_prompts VALUES (?, ?)",
                        (str(number % 50), "x" * 500))
            os._exit(0)
        try:
            with self.opened() as database:
                for number in range(5):
                    made = back_up(database, self.folder / f"backup-{number}.db")
                    ack([made.path.name, dict(made.rows)])
        finally:
            os.kill(writer, 9)
            os.waitpid(writer, 0)

    def check(self, acks: list[Any]) -> None:
        """Each backup that has its name is whole."""
        names = {one.name for one in self.folder.glob("backup-*.db")}
        assert names >= {name for name, _ in acks}
        for name in names:
            made = check_backup(self.folder / name)
            assert made.rows == dict(acks).get(name, made.rows)


class Restored(Target):
    """Backups that are put in the library's place, one after the other."""

    left: ClassVar[set[str]] = {"left files"}

    def make(self) -> None:
        """Make two different backups, without opening the library in this process."""
        super().make()
        for name in ("one", "two"):
            backup = self.folder / f"{name}.db"
            shutil.copyfile(self.pristine, backup)
            with contextlib.closing(sqlite3.connect(backup, isolation_level=None)) as connection:
                connection.execute("UPDATE chat_sessions SET agent = ?", (name,))
                connection.execute("PRAGMA journal_mode = DELETE").fetchall()

    def work(self, ack: Ack) -> None:
        """Restore them in turn; acknowledge each."""
        for number in range(4):
            name = ("one", "two")[number % 2]
            at = NOW + 1000 * number
            restore_backup(self.folder / f"{name}.db", self.library, clock=partial(int, at))
            ack(name)

    def check(self, acks: list[Any]) -> None:
        """The library is the last one that was acknowledged, or the next one, and no mixture."""
        following = ("one", "two")[len(acks) % 2]
        last = self.folder / f"{acks[-1]}.db" if acks else self.pristine
        assert self.rows() in (self.rows(last), self.rows(self.folder / f"{following}.db"))


class Pruned(Target):
    """Sessions that are removed for good."""

    def work(self, ack: Ack) -> None:
        """Remove the oldest, a few at a time; acknowledge those that are gone."""
        with self.opened(write=True) as database:
            for keep in range(20, 4, -2):
                for session in prune(database, Wish(keep_newest=keep), clock=self.clock):
                    ack(session)

    def check(self, acks: list[Any]) -> None:
        """They are gone, with all of their rows."""
        with contextlib.closing(sqlite3.connect(self.library)) as connection:
            for session in acks:
                for table, column in (("chat_sessions", "id"), ("chat_messages", "session_id"),
                                      ("chat_parts", "session_id")):
                    assert not connection.execute(
                        f"SELECT 1 FROM {table} WHERE {column} = ?", (session,)).fetchone()


class Indexed(Target):
    """The search index and the statistics."""

    def make(self) -> None:
        """Keep few sessions, as all that is indexed is compared."""
        super().make()
        with self.opened(write=True) as database:
            prune(database, Wish(keep_newest=4), clock=lambda: NOW)

    def work(self, ack: Ack) -> None:
        """Make both."""
        build_index([str(self.library), "--once"])
        count_all([str(self.library), "--once"])
        ack("made")

    def check(self, acks: list[Any]) -> None:
        """What is left is no worse than nothing, and is finished by the next process."""
        self.is_well()
        self.work(lambda _: None)


class Exported(Target):
    """An export of everything, which goes on after a kill."""

    def work(self, ack: Ack) -> None:
        """Write every session; acknowledge the end."""
        with self.opened() as database:
            def prepared(session_id: str, export_id: str) -> Prepared:
                return prepare(database, session_id, FORMATS["json"], export_id=export_id)

            done = export_all(database, FORMATS["json"], self.folder / "out", prepared)
            if done.failed:
                raise OSError(f"{len(done.failed)} sessions could not be written")
        ack("exported")

    def check(self, acks: list[Any]) -> None:
        """Each file is whole, and the next run writes the rest."""
        for path in (self.folder / "out").glob("*.json"):
            json.loads(path.read_text())
        self.work(lambda _: None)
        sessions = len(self.rows()[0])
        assert len(list((self.folder / "out").glob("*.json"))) == sessions


class Copied(Target):
    """A copy of every session to another store, which the same call goes on with."""

    def make(self) -> None:
        """Begin without the other store."""

    def work(self, ack: Ack) -> None:
        """Copy everything; acknowledge each session."""
        self._copy(lambda done: ack(done.copied + done.unchanged))

    def _copy(self, on_progress: Callable[[CopiedSessions], None]) -> CopiedSessions:
        with (
            contextlib.closing(open_database(self.pristine, write=False)) as source,
            contextlib.closing(open_database(self.library, create=True)) as target,
        ):
            return copy_sessions(
                source, target, parents_first(source), on_progress=on_progress, clock=self.clock)

    def check(self, acks: list[Any]) -> None:
        """What was acknowledged is there and whole, and another copy brings the rest."""
        if self.library.exists():
            whole = [set(rows) for rows in self.rows(self.pristine)]
            there = [set(rows) for rows in self.rows()]
            assert all(one <= other for one, other in zip(there, whole, strict=True))
            assert len(there[0]) >= max(acks, default=0), (len(there[0]), acks[-1])
        else:
            assert not any(acks)
        found = self._copy(lambda done: None)
        assert found.is_whole, (found.failed, found.different)
        assert self.rows() == self.rows(self.pristine)


class Logged(Verbs):
    """Verbs and a recording with the event log on, of which a store can be made afterwards."""

    def make(self) -> None:
        """Keep few sessions, as all of them are compared, and begin the log."""
        super().make()
        with self.opened(write=True) as database:
            prune(database, Wish(keep_newest=4), clock=lambda: NOW)
            switch_on(database, clock=lambda: NOW)

    def work(self, ack: Ack) -> None:
        """Cut old events between the verbs, and record."""
        with self.opened(write=True) as database:
            recording = Recording(policy=SavePolicy(save_buffer_ms=0), clock=self.clock)
            drive(database, recording.start(None, agent="faults"))
            for number in range(40):
                for chunk in ({"type": "text-start", "id": f"t{number}"},
                              {"type": "text-delta", "id": f"t{number}", "delta": "word " * 30}):
                    drive(database, recording.receive(chunk))
                    drive(database, recording.save(exact=True))
            trim(database, Bounds(bytes=1), clock=self.clock)
        super().work(ack)

    left: ClassVar[set[str]] = {"running sessions"}

    def check(self, acks: list[Any]) -> None:
        """The log makes the store that is there."""
        with self.opened() as database:
            made = rebuild(database, self.folder / "made.db")
            assert made.differing == []
        assert self.rows() == self.rows(made.path)


class Switched(Target):
    """The event log, switched on and off, and cut."""

    left: ClassVar[set[str]] = {"event log"}

    def make(self) -> None:
        """Keep few sessions, as all of them are compared."""
        super().make()
        with self.opened(write=True) as database:
            prune(database, Wish(keep_newest=6), clock=lambda: NOW)

    def work(self, ack: Ack) -> None:
        """Switch it on and off; acknowledge when it is on."""
        with self.opened(write=True) as database:
            for number in range(6):
                switch_on(database, clock=self.clock)
                ack(number)
                trim(database, Bounds(bytes=1), clock=self.clock)
                switch_off(database, drop=number % 2 == 0, clock=self.clock)
            switch_on(database, clock=self.clock)

    def check(self, acks: list[Any]) -> None:
        """Switching it on again completes it, and no row has changed."""
        before = self.rows()
        with self.opened(write=True) as database:
            switch_on(database)
            assert differing(database) == []
        assert self.rows() == before


class Rebuilt(Target):
    """Stores that are made of an event log."""

    def make(self) -> None:
        """Keep few sessions, and begin the log."""
        super().make()
        with self.opened(write=True) as database:
            prune(database, Wish(keep_newest=6), clock=lambda: NOW)
            switch_on(database, clock=lambda: NOW)

    def work(self, ack: Ack) -> None:
        """Make some; acknowledge each."""
        with self.opened() as database:
            for number in range(4):
                ack(rebuild(database, self.folder / f"made-{number}.db").path.name)

    def check(self, acks: list[Any]) -> None:
        """Each that has its name is whole, and the next one leaves nothing else."""
        made = {path.name for path in self.folder.glob("made-*.db")}
        assert made >= set(acks)
        for name in made:
            assert self.rows(self.folder / name) == self.rows()
        for left in self.folder.glob(".made-*"):
            os.utime(left, (0, 0))  # What was written in the last seconds is left alone.
        with self.opened() as database:
            for number in range(4):
                (self.folder / f"made-{number}.db").unlink(missing_ok=True)
                rebuild(database, self.folder / f"made-{number}.db")
        assert not [path.name for path in self.folder.iterdir() if "partial" in path.name]


TARGETS: dict[str, type[Target]] = {
    "verbs": Verbs, "recorder": Recorded, "sync": Synced, "listing": Listed, "migration": Migrated,
    "copy": Copied, "vacuum": Vacuumed, "backup": BackedUp, "restore": Restored, "prune": Pruned,
    "index": Indexed, "export": Exported, "events": Logged, "log": Switched, "rebuild": Rebuilt,
}  # fmt: skip
EXPECTED_WHEN_FULL = (BackscrollError, sqlite3.OperationalError, OSError)
"""What work may end with on a full disk."""
