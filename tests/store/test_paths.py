"""Paths that others chose neither hang nor end the program."""

from __future__ import annotations

import ast
import os
import zlib
from pathlib import Path

import pytest

from store.system.locations import file_number
from store.system.paths import expanded, open_regular, read_regular, real_path, resolved

ROOT = Path(__file__).parents[2]
OWN = {
    "store/system/paths.py", "store/system/processes.py", "store/activity/attendance.py",
    "store/system/silent.py", "store/system/holders.py",
    "store/system/streams.py",  # They read /proc.
    "store/system/children.py",  # Where this program lies.
    "store/copying/sharing.py",  # The system's own id of the machine.
    "store/imports/reading.py",  # A file that is named on the command line may be a pipe.
    "store/engine/access.py",  # It looks at the file's type first, and keeps its descriptor.
    "tui/start/problems.py", "tui/kit/editing.py",
    # Files that we wrote ourselves.
    "tui/documents.py", "store/demo/__init__.py", "store/exports/html/page.py",
    "tui/serve/web.py",
}  # fmt: skip
"""Modules that open or look up no path that others chose."""
OF_OTHER_THINGS = ("links.resolve", "sessions.resolve", "os.path.expanduser")
BYPASSES = {"resolve", "realpath", "expanduser", "read_bytes", "read_text"}


def test_what_cannot_be_followed_stays_as_it_is(tmp_path: Path) -> None:
    ring = tmp_path / "ring"
    ring.symlink_to("ring")
    assert real_path(ring) == ring
    assert resolved("/a\0b/../c") == "/c"
    assert expanded("~no such user/x") == Path("~no such user/x")
    assert expanded("~/x") == Path.home() / "x"
    assert expanded("/a\0b") == Path("/a\ufffdb")


def test_only_regular_files_are_opened(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    for name in (tmp_path / "pipe", tmp_path, "/dev/zero"):
        with pytest.raises(OSError, match="not a regular file"):
            open_regular(name)
    assert read_regular(os.devnull) == b""
    (tmp_path / "file").write_bytes(b"abc")
    assert read_regular(tmp_path / "file") == b"abc"
    with pytest.raises(OSError, match="larger"):
        read_regular(tmp_path / "file", 2)


@pytest.mark.parametrize("path", ["", "/home/ann/library.db", "/tmp/\udcff 漢/b.db"])
def test_the_number_of_a_store_is_a_crc(path: str) -> None:
    assert file_number(path) == f"{zlib.crc32(os.fsencode(path)):08x}"


def test_no_module_goes_round() -> None:
    found = [
        f"{path.relative_to(ROOT)}:{node.lineno} {node.func.attr}"
        for folder in ("store", "tui") for path in (ROOT / folder).rglob("*.py")
        if path.relative_to(ROOT).as_posix() not in OWN
        and any(f".{name}" in path.read_text() for name in BYPASSES)
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)
        and node.func.attr in BYPASSES
        and ast.unparse(node.func) not in OF_OTHER_THINGS
    ]
    assert found == [], (
        "use store.system.paths, or name the module in OWN if nobody else chose the path")
