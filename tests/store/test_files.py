from __future__ import annotations

import os
import sqlite3
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest

from store.errors import Refused
from store.exports.registry import FORMATS, file_name
from store.system.files import plain_name, write_whole
from tests.cli.hostile import VALUES

UUID = "0b6f4f6e-0f4b-4c11-9d3b-0d6c3f6d1c11"


@pytest.mark.parametrize("value", VALUES)
@pytest.mark.parametrize("name", FORMATS)
def test_a_name_stays_in_its_folder(value: str, name: str, tmp_path: Path) -> None:
    made = file_name(FORMATS[name], UUID, {"id": value, "created_at": 1_790_000_000_000})
    # A session of Kimi Code, of Cline and of OpenHands is a folder with a file in it.
    *folders, file = made.split("/")
    assert len(folders) == {"kimi": 3, "cline": 1, "openhands": 1}.get(name, 0)
    place = tmp_path.joinpath(*folders)
    assert (tmp_path / made).parent == place and (tmp_path / made).resolve().parent == place
    for each in (*folders, file):
        assert each.isascii() and each.isprintable() and not each.startswith(("-", "."))
    place.mkdir(parents=True, exist_ok=True)
    write_whole(tmp_path / made, ["x"])
    assert [path.name for path in tmp_path.iterdir()] == [made.partition("/")[0]]
    assert [path.name for path in place.iterdir()] == [file]


def test_names() -> None:
    assert plain_name("../../../x") == "x"
    assert plain_name("ses_012AB") == "ses_012AB"
    assert plain_name("..") == plain_name("\x1b") == "session"
    assert len(plain_name("y" * 5000)) == 100


def test_it_is_whole_or_not_there(tmp_path: Path) -> None:
    def broken() -> Iterator[str]:
        yield "begun"
        raise Refused("no more")

    with pytest.raises(Refused, match="no more"):
        write_whole(tmp_path / "a", broken())
    assert [*tmp_path.iterdir()] == []
    assert write_whole(tmp_path / "a", ["ä", b"\xff"]) == 3
    assert stat.S_IMODE((tmp_path / "a").stat().st_mode) == 0o600
    with pytest.raises(Refused, match="exists already"):
        write_whole(tmp_path / "a", ["new"])
    assert (tmp_path / "a").read_bytes() == "ä".encode() + b"\xff"
    assert write_whole(tmp_path / "a", ["new"], replace=True) == 3
    assert [path.name for path in tmp_path.iterdir()] == ["a"]


@pytest.mark.parametrize("replace", [False, True])
def test_what_a_link_names_is_left_alone(tmp_path: Path, replace: bool) -> None:
    mine = tmp_path / "mine"
    mine.write_text("mine")
    for name, target in (("link", mine), ("dangling", tmp_path / "nowhere")):
        link = tmp_path / name
        link.symlink_to(target)
        with pytest.raises(Refused, match="is a link" if replace else "exists already"):
            write_whole(link, ["x"], replace=replace)
        assert link.is_symlink()
    assert mine.read_text() == "mine" and not (tmp_path / "nowhere").exists()


def test_only_a_plain_file_gives_way(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(Refused, match="not a regular file"):
        write_whole(tmp_path / "pipe", ["x"], replace=True)
    with pytest.raises(Refused, match="is a folder"):
        write_whole(tmp_path, ["x"], replace=True)
    with pytest.raises(Refused, match="cannot be written"):
        write_whole(tmp_path / "gone" / "x", ["x"])
    with pytest.raises(Refused, match="cannot be written"):
        write_whole(tmp_path / "a\0b", ["x"])


def test_a_store_is_never_replaced(tmp_path: Path) -> None:
    path = tmp_path / "library.db"
    connection = sqlite3.connect(path)
    connection.execute("CREATE TABLE t (a)")
    connection.close()
    before = path.read_bytes()
    with pytest.raises(Refused, match="is a database"):
        write_whole(path, ["words"], replace=True)
    assert path.read_bytes() == before
