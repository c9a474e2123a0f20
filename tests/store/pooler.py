"""A pgbouncer in transaction mode before the tests' server, as teams put one before theirs."""

from __future__ import annotations

import os
import pwd
import shutil
import subprocess
import tempfile
import time
from pathlib import Path
from typing import Any

from tests.sources.postgres_server import Server

_PORT = 6432


def program() -> str | None:
    """Return where pgbouncer is; None where it is not installed."""
    return shutil.which("pgbouncer") or shutil.which("pgbouncer", path="/usr/sbin")


class Pooler:
    """A running pgbouncer; each transaction may get another connection of the server."""

    def __init__(self, server: Server, **settings: object) -> None:
        """Start it.

        Args:
            server: The server behind it.
            settings: More of pgbouncer's settings.
        """
        found = program()
        assert found is not None
        self.folder = Path(tempfile.mkdtemp(prefix="bs-pool-", dir="/tmp"))
        user: dict[str, Any] = {}
        if os.getuid() == 0:
            nobody = pwd.getpwnam("nobody")
            os.chown(self.folder, nobody.pw_uid, nobody.pw_gid)
            user = {"user": nobody.pw_uid, "group": nobody.pw_gid, "extra_groups": []}
        given: dict[str, object] = {
            "listen_addr": "", "listen_port": _PORT, "unix_socket_dir": self.folder,
            "auth_type": "any", "pool_mode": "transaction", "default_pool_size": 4,
            "server_round_robin": 1, "server_reset_query_always": 1, **settings,
        }  # fmt: skip
        file = self.folder / "pgbouncer.ini"
        file.write_text(
            f"[databases]\n* = host={server.folder} user=postgres\n[pgbouncer]\n"
            + "".join(f"{name} = {value}\n" for name, value in given.items()))
        self._log = (self.folder / "log").open("wb")
        self._process = subprocess.Popen(
            [found, file], stdin=subprocess.DEVNULL, stdout=self._log, stderr=self._log,
            cwd=self.folder, **user)
        until = time.monotonic() + 30
        # Its socket is there a moment before it listens.
        while f"listening on unix:{self.folder}" not in (self.folder / "log").read_text():
            assert self._process.poll() is None, (self.folder / "log").read_text()
            assert time.monotonic() < until
            time.sleep(0.01)

    def url(self, url: str) -> str:
        """Return the URL of a database of the server by way of the pooler."""
        return f"{url.partition('?')[0]}?host={self.folder}&port={_PORT}"

    def closed(self) -> int:
        """Return how many connections it closed because they were idle."""
        return (self.folder / "log").read_text().count("(age=")

    def remove(self) -> None:
        """Stop it, and remove its folder."""
        self._process.terminate()
        self._process.wait()
        self._log.close()
        shutil.rmtree(self.folder)
