from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.conftest import Run


@pytest.fixture
def exported(run: Run, demo: Path, tmp_path: Path) -> Path:
    file = tmp_path / "exported.jsonl"
    run("export", "weekly-review", "--to", "jsonl", "--out", file)
    return file


def test_into_a_library_that_is_not_there_yet(
    run: Run, exported: Path, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("BACKSCROLL_STORE")
    result = run("import", exported)
    assert result.code == 0 and result.out.startswith("added     ses_")
    assert run("show", "weekly-review").out.startswith("Weekly review from the logs\n")
    assert (home / ".local/share/backscroll/library.db").stat().st_mode & 0o777 == 0o600


def test_twice_changes_nothing(run: Run, exported: Path, tmp_path: Path) -> None:
    target = tmp_path / "target.db"
    run("import", exported, "--store", target)
    result = run("import", exported, "--store", target)
    assert result.code == 0 and result.out.startswith("unchanged ses_")


def test_damage_is_named_and_ends_with_1(run: Run, exported: Path, tmp_path: Path) -> None:
    lines = exported.read_text(encoding="utf-8").splitlines(keepends=True)
    exported.write_text("".join([*lines[:2], "{torn\n", *lines[2:]]), encoding="utf-8")
    result = run("import", exported, "--store", tmp_path / "target.db")
    assert result.code == 1
    assert result.err.startswith(f"{exported}:3: no JSON")
    assert result.out.startswith("refused   ses_")
    assert run("sessions", "--json", "--store", tmp_path / "target.db").json == []


def test_a_file_that_is_missing(run: Run, demo: Path, tmp_path: Path) -> None:
    result = run("import", tmp_path / "missing")
    assert result.code == 1
    assert result.err == f"backscroll: {tmp_path / 'missing'} cannot be read: No such file or " \
        "directory\n"


def test_a_session_there_with_other_content(run: Run, exported: Path, demo: Path) -> None:
    text = exported.read_text(encoding="utf-8")
    exported.write_text(text.replace("37 commits", "38 commits"), encoding="utf-8")
    result = run("import", exported)
    assert result.code == 1 and "with other content" in result.err


def test_stdin_is_called_so(
    run: Run, tmp_path: Path, demo: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for content, reason in (
        (b"", "stdin is empty"),
        (
            b'{"a": 1}',
            "stdin has no session (stdin:1: neither a session, a message nor a part)",
        ),
        (b'{"session": {}}', "stdin is not a session export: KeyError('messages')"),
    ):
        (tmp_path / "piped").write_bytes(content)
        with (tmp_path / "piped").open() as piped:
            monkeypatch.setattr("sys.stdin", piped)
            result = run("import", "-")
        assert (result.code, result.err) == (1, f"backscroll: {reason}\n")
