"""Full disks, folders that cannot be written, streams that are closed: each works or says why."""

from __future__ import annotations

import os
import resource
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from store.engine.database import open_database
from tests.tui.seeded import Said, make_store, text
from tests.tui.terminals import on_a_terminal

SESSION = f"ses_{0:026d}"
TUI = [sys.executable, "-m", "tui"]


def made(path: Path, sessions: int = 3) -> Path:
    for number in range(sessions):
        title = {"metadata_json": f'{{"title":"Session {number}"}}'}
        make_store(path, [Said("user", [text("hello")])], session_id=f"ses_{number:026d}",
                   session=title)
    return path


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    given = {**os.environ, "HOME": str(tmp_path / "home")}
    given["PYTHONPATH"] = os.pathsep.join(sys.path)
    return given


def run(environment: dict[str, str], *arguments: Any, **more: Any) -> tuple[int, str, str]:
    done = subprocess.run(
        [*TUI, *map(str, arguments)], env=environment, capture_output=True, text=True,
        check=False, **more,
    )  # fmt: skip
    assert "Traceback" not in done.stderr
    return done.returncode, done.stdout, done.stderr


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    """A disk of 900 kB; only root can make one."""
    folder = tmp_path / "disk"
    folder.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", "size=900k", "tmpfs", str(folder)]
    try:
        made = subprocess.run(command, capture_output=True, check=False).returncode == 0
    except FileNotFoundError:
        made = False
    if not made:
        pytest.skip("a small disk cannot be mounted here")
    try:
        yield folder
    finally:
        subprocess.run(["umount", "--lazy", str(folder)], check=True)


def fill(folder: Path) -> None:
    with (folder / "rest").open("wb", buffering=0) as rest:
        while True:
            try:
                rest.write(bytes(4096))
            except OSError:
                return


def test_a_store_on_a_full_disk_opens_for_reading(disk: Path, environment: dict[str, str]) -> None:
    store = made(disk / "s.db")
    assert not store.with_name("s.db-wal").exists()
    fill(disk)
    code, out, err = run(environment, "sessions", "--store", store)
    assert (code, out.count("Session"), err) == (0, 3, "")
    for command in (["rename", SESSION, "x"], ["star", SESSION], ["record"]):
        code, _, err = run(environment, *command, "--store", store, stdin=subprocess.DEVNULL)
        assert code == 1 and f"the disk of {store} is full" in err, err
        assert "check its disk" not in err
    code, _, err = run(environment, "export", SESSION, "--to", "json", "--store", store,
                       "--out", disk / "x.json")
    assert code == 1 and "No space left on device" in err
    code, _, err = run(environment, "sync", "--store", disk / "new.db")
    assert code == 1 and "No space left on device" in err
    (disk / "rest").unlink()
    assert run(environment, "rename", SESSION, "x", "--store", store)[0] == 0


def test_a_write_that_fills_the_disk_is_named_so(disk: Path, environment: dict[str, str]) -> None:
    store = made(disk / "s.db", 1)
    rows = disk.parent / "rows.jsonl"
    exported = run(environment, "export", SESSION, "--to", "jsonl", "--store", store)[1]
    for old, new in ((SESSION, f"ses_{9:026d}"), ("msg_00", "msg_09"), ("prt_00", "prt_09"),
                     ('"Session 0"', f'"{"x" * 900_000}"')):
        exported = exported.replace(old, new)
    rows.write_text(exported)
    code, _, err = run(environment, "import", rows, "--store", store)
    assert code == 1 and f"the disk of {store} is full" in err, err
    assert run(environment, "sessions", "--store", store)[1].count("ses_") == 1


def test_files_that_may_not_grow_leave_a_store_readable(
    tmp_path: Path, environment: dict[str, str]
) -> None:
    store = made(tmp_path / "s.db")

    def no_growth() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))

    code, out, err = run(environment, "sessions", "--store", store, preexec_fn=no_growth)
    assert (code, out.count("Session"), err) == (0, 3, "")
    code, _, err = run(environment, "rename", SESSION, "x", "--store", store, preexec_fn=no_growth)
    assert code == 1 and "SQLite cannot create its files beside" in err, err
    database = open_database(store)
    assert database.read_only is None
    database.close()


@pytest.mark.parametrize("closed", ["0", "01", "1", "12", "2", "012"])
@pytest.mark.one_in(2)
def test_closed_streams(tmp_path: Path, environment: dict[str, str], closed: str) -> None:
    store = made(tmp_path / "s.db")

    def close() -> None:
        for descriptor in map(int, closed):
            os.close(descriptor)

    for command in (["sessions"], ["show", SESSION], ["rename", SESSION, closed], ["--version"]):
        code, out, err = run(environment, *command, "--store", store, preexec_fn=close)
        assert (code, err) == (0, "") and bool(out) == ("1" not in closed)
    assert run(environment, "--store", store, preexec_fn=close)[0] == 2
    assert open_database(store, write=False).form.name == "own"


@pytest.mark.parametrize("command", [["--help"], ["sessions", "--help"], ["sessions"], ["nope"],
                                     ["sessions", "--nope"], ["show", "nope"]], ids=" ".join)
@pytest.mark.one_in(3)
def test_a_reader_that_has_enough_is_no_failure(
    tmp_path: Path, environment: dict[str, str], command: list[str]
) -> None:
    store = made(tmp_path / "s.db", 40)
    reader, writer = os.pipe()
    os.close(reader)
    done = subprocess.run([*TUI, *command, "--store", str(store)], env=environment, stdout=writer,
                          stderr=subprocess.PIPE, check=False)
    os.close(writer)
    assert b"Traceback" not in done.stderr and b"Broken pipe" not in done.stderr
    assert b"Exception" not in done.stderr and done.returncode in (0, 1, 2)


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a device that is full")
@pytest.mark.parametrize("command", [["--help"], ["sessions"], ["show", SESSION], ["--version"]])
def test_output_that_cannot_be_written(
    tmp_path: Path, environment: dict[str, str], command: list[str]
) -> None:
    store = made(tmp_path / "s.db")
    environment.pop("PYTHONUNBUFFERED", None)
    with open("/dev/full", "wb") as full:
        done = subprocess.run([*TUI, *command, "--store", str(store)], env=environment, stdout=full,
                              stderr=subprocess.PIPE, text=True, check=False)
    assert done.stderr == "backscroll: standard output: No space left on device\n"
    assert done.returncode == 1


def test_the_browser_in_a_home_that_cannot_be_written(
    tmp_path: Path, environment: dict[str, str]
) -> None:
    store = made(tmp_path / "s.db")
    # A file in the place of the home folder refuses also root, whom permissions do not bind.
    environment["HOME"] = str(tmp_path / "file")
    (tmp_path / "file").write_text("")
    environment["TMPDIR"] = str(tmp_path)
    for arguments in (["--store", str(store)], ["--demo"]):
        with on_a_terminal([*TUI, *arguments], environment) as terminal:
            terminal.wait_for(b" keys")
            terminal.send(b"\x11")
            assert terminal.exit_code() == 0
        assert b"Traceback" not in terminal.received
    (scratch,) = tmp_path.glob("backscroll-*")
    assert scratch.stat().st_mode & 0o777 == 0o700
    assert run(environment, "sessions", "--store", store)[0] == 0
    for command in (["sync"], ["sessions"], ["record"]):
        code, _, err = run(environment, *command, stdin=subprocess.DEVNULL)
        assert "this should not happen" not in err
        assert code == 0 or (str(tmp_path / "file") in err and "--store" in err), err
