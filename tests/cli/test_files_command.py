"""``backscroll files``: lists, contents, differences, and saving."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from store.engine.database import open_database
from tests.cli.conftest import Run
from tests.store.files.test_effects import call
from tests.tui.inspected import Talk, text

HOSTILE = "/home/x/api/../../../\x1b[2Jevil\n.py"


@pytest.fixture
def store(tmp_path: Path) -> Path:
    path = tmp_path / "store.db"
    database = open_database(path, create=True)
    talk = Talk(database)
    talk.message("user", text("One"))
    for number, (file, body) in enumerate([("a.py", "one\n"), (HOSTILE, "bad\n")]):
        talk.message("assistant", call("Write", {"file_path": file, "content": body}),
                     call("Read", {"file_path": f"{number}.txt"}))
    talk.message("user", text("Two"))
    talk.message("assistant", call("Edit", {"file_path": "a.py", "old_string": "one",
                                            "new_string": "two"}))
    database.file.commit()
    database.close()
    return path


def test_lists_files_and_how_they_are_on_disk(run: Run, store: Path) -> None:
    result = run("--store", store, "files", "ses_inspected")
    assert "  a.py  written, 1 edit  replayed  not on disk" in result.out.splitlines()
    assert "\x1b" not in result.out and "evil" in result.out


def test_points_contents_and_differences_of_a_file(run: Run, store: Path) -> None:
    arguments = ("--store", store, "files", "ses_inspected", "--path", "a.py")
    lines = run(*arguments).out.splitlines()
    assert [line.split()[0] for line in lines[1:4]] == ["before", "written", "edited"]
    assert "replayed: 1 edit made again on the file as written in turn 1" in lines[3]
    found = json.loads(run(*arguments, "--json").out)["files"][0]
    assert (found["text"], found["disk"]["standing"]) == ("two\n", "gone")
    first = found["points"][1]["message_id"]
    result = run(*arguments, "--at", first)
    assert (result.out, result.err) == ("one\n", "the file as written in turn 1\n")
    result = run(*arguments, "--diff", "--since", first)
    assert result.out.splitlines()[1:] == ["     1 - one", "     1 + two"]
    assert "no diff: not known" in run(*arguments, "--diff").out


def test_saves_below_the_folder_and_never_over_a_file(
    run: Run, store: Path, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    arguments = ("--store", store, "files", "ses_inspected", "--out", out)
    assert run(*arguments).code == 0
    saved = sorted(path.relative_to(out).as_posix() for path in out.rglob("*") if path.is_file())
    assert len(saved) == 2 and "a.py" in saved
    assert all(character.isprintable() for name in saved for character in name)
    assert (out / "a.py").read_text() == "two\n"
    (out / "a.py").write_text("mine\n")
    result = run(*arguments)
    assert result.code == 1 and (out / "a.py").read_text() == "mine\n"
    assert "has changed since: 4 B, sha256" in result.err and "--force" in result.err
    assert run(*arguments, "--force").code == 0
    assert (out / "a.py").read_text() == "two\n"


def test_nothing_saved_is_a_failure(run: Run, store: Path, tmp_path: Path) -> None:
    arguments = ("--store", store, "files", "ses_inspected", "--path", "0.txt", "--out", tmp_path)
    result = run(*arguments)
    assert result.code == 1 and "Nothing was saved: no file has a known content" in result.err
    result = run(*arguments, "--json")
    assert result.code == 1 and "Nothing was saved" in result.err and json.loads(result.out)


@pytest.mark.parametrize("force", [(), ("--force",)])
@pytest.mark.parametrize("kind", ["folder", "link", "dead link", "link to a folder"])
def test_what_is_no_file_in_the_way_stays(
    run: Run, store: Path, tmp_path: Path, kind: str, force: tuple[str, ...]
) -> None:
    out, kept = tmp_path / "out", tmp_path / "kept"
    out.mkdir()
    kept.mkdir()
    (kept / "file").write_text("kept\n")
    if kind == "folder":
        (out / "a.py").mkdir()
    else:
        (out / "a.py").symlink_to(
            {"link": kept / "file", "dead link": kept / "new"}.get(kind, kept))
    result = run("--store", store, "files", "ses_inspected", "--out", out, *force)
    assert result.code == 1 and "--force" not in result.err and "--out" in result.err
    assert [path.name for path in kept.iterdir()] == ["file"]
    assert (kept / "file").read_text() == "kept\n"
    assert (out / "a.py").is_symlink() == (kind != "folder")


@pytest.mark.parametrize(("arguments", "code"), [
    (["--path", "nothing"], 1), (["--since", "x"], 2), (["--at", "nothing"], 1),
    (["--path", "txt", "--at", "msg_inspected_00001"], 1),
])  # fmt: skip
def test_refuses_with_a_way_out(run: Run, store: Path, arguments: list[str], code: int) -> None:
    result = run("--store", store, "files", "ses_inspected", *arguments)
    assert result.code == code and result.err
