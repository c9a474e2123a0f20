"""Files are saved below a folder and nowhere else."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from store.errors import Refused
from store.files.disk import Present, present, standing
from store.files.history import Content
from store.files.saving import Folder, safe_parts
from store.system.files import AlreadyThere


@pytest.mark.parametrize(("path", "parts"), [
    ("src/a.py", ("src", "a.py")), ("/etc/passwd", ("etc", "passwd")),
    ("../../x", ("x",)), ("a/../../b", ("a", "b")), ("..", ("file",)), ("", ("file",)),
    ("C:\\Users\\x\\a.txt", ("Users", "x", "a.txt")), ("~/.ssh/id", (".ssh", "id")),
    ("a\n\x1b[31mb", ("a\u240a\u241b[31mb",)), (". /.. /x", ("x",)), ("a\0b", ("a\u2400b",)),
])  # fmt: skip
def test_names_are_plain(path: str, parts: tuple[str, ...]) -> None:
    assert safe_parts(path) == parts


def test_long_names_are_cut() -> None:
    (name,) = safe_parts("ü" * 300)
    assert len(name.encode()) <= 200
    assert len(safe_parts("a/" * 5000)) <= 60


def test_two_files_never_have_one_name(tmp_path: Path) -> None:
    folder = Folder(tmp_path)
    assert folder.place("/a/x", "../x") == ("x",)
    assert folder.place("/b/x", "x") == ("x-2",)
    assert folder.place("/a/x", "../x") == ("x",)


def test_a_file_that_is_also_a_folder_is_saved_as_both(tmp_path: Path) -> None:
    folder = Folder(tmp_path)
    for path in ("a", "a/b", "a/b/c", "d/e", "d"):
        folder.write(folder.place(f"/{path}", path), path.encode())
    found = {str(each.relative_to(tmp_path)): each.read_text()
             for each in tmp_path.rglob("*") if each.is_file()}
    assert found == {"a": "a", "a-2/b": "a/b", "a-2/b-2/c": "a/b/c", "d/e": "d/e", "d-2": "d"}


@pytest.mark.parametrize("path", [
    "x" * 300, "x" * 199 + " y", "x" * 198, "C:D:", "../C:x", "C:C:", "\u65e5" * 80,
    "\ud800\udcff", " ",
    "a" * 200 + "/" + "b" * 300, "\n" * 300, "\x85\u202e", ".partial",
])  # fmt: skip
def test_files_of_any_names_are_saved_beside_each_other(tmp_path: Path, path: str) -> None:
    folder = Folder(tmp_path / "out")
    for key in ("/a", "/b", "/c"):
        saved = folder.write(folder.place(key, path), key.encode())
        assert saved.path.read_bytes() == key.encode()
        assert saved.path.resolve().is_relative_to(tmp_path / "out")
    found = [each for each in tmp_path.rglob("*") if each.is_file()]
    assert sorted(each.read_text() for each in found) == ["/a", "/b", "/c"]


def test_where_there_are_no_hard_links(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise PermissionError(errno.EPERM, "Operation not permitted")

    monkeypatch.setattr(os, "link", refuse)
    folder = Folder(tmp_path)
    assert folder.write(("a",), b"one").path.read_bytes() == b"one"
    with pytest.raises(AlreadyThere):
        folder.write(("a",), b"two")
    assert [path.name for path in tmp_path.iterdir()] == ["a"]
    assert (tmp_path / "a").read_bytes() == b"one"


def test_another_error_of_a_link_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "link", refuse)
    with pytest.raises(Refused, match="No space left"):
        Folder(tmp_path).write(("a",), b"one")
    assert list(tmp_path.iterdir()) == []


def test_a_file_that_is_there_stays(tmp_path: Path) -> None:
    folder = Folder(tmp_path / "out")
    folder.write(("a", "b"), b"one")
    with pytest.raises(AlreadyThere):
        folder.write(("a", "b"), b"two")
    assert (tmp_path / "out" / "a" / "b").read_bytes() == b"one"
    folder.write(("a", "b"), b"two", replace=True)
    assert (tmp_path / "out" / "a" / "b").read_bytes() == b"two"
    assert [path.name for path in (tmp_path / "out" / "a").iterdir()] == ["b"]


@pytest.mark.parametrize("replace", [False, True])
def test_links_are_not_followed(tmp_path: Path, replace: bool) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "kept").write_text("kept")
    out = tmp_path / "out"
    out.mkdir()
    (out / "link").symlink_to(outside)
    (out / "file").symlink_to(outside / "kept")
    for parts in (("link", "new"), ("file",)):
        with pytest.raises(Refused):
            Folder(out).write(parts, b"new", replace=replace)
    assert (outside / "kept").read_text() == "kept"
    assert [path.name for path in outside.iterdir()] == ["kept"]


def test_names_that_are_not_safe_are_refused(tmp_path: Path) -> None:
    for parts in (("..", "x"), ("a/b",), ("",)):
        with pytest.raises(Refused):
            Folder(tmp_path / "out").write(parts, b"x")


def test_databases_and_what_is_no_file_are_not_replaced(tmp_path: Path) -> None:
    (tmp_path / "store.db").write_bytes(b"SQLite format 3\0rows")
    (tmp_path / "folder").mkdir()
    os.mkfifo(tmp_path / "pipe")
    for name in ("store.db", "folder", "pipe"):
        with pytest.raises(Refused):
            Folder(tmp_path).write((name,), b"x", replace=True)


def test_a_file_that_has_more_than_its_size_says_is_not_read_whole(
    monkeypatch: pytest.MonkeyPatch
) -> None:
    endless = Path("/proc/self/maps")
    if not endless.is_file() or endless.stat().st_size:
        pytest.skip("no such file here")
    assert present(str(endless)).body
    monkeypatch.setattr("store.files.disk.MOST_BYTES", 9)
    now = present(str(endless))
    assert (now.state, now.body, now.digest) == ("file", None, "")


def test_a_file_that_is_too_large_to_read_differs_by_its_size() -> None:
    content = Content("copy", b"12345")
    assert standing(content, Present("file", 5)) == "unknown"
    assert standing(content, Present("file", 6)) == "changed"
    assert standing(content, Present("other", 5)) == "other"
    assert standing(Content("missing"), Present("other")) == "other"
    assert standing(Content("missing"), Present("file", 5)) == "there"
