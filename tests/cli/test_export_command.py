from __future__ import annotations

import json
import shutil
import sqlite3
import stat
from pathlib import Path

import pytest

from store.engine.schema import CONTRACT_INDEXES, CONTRACT_TABLES
from store.exports.registry import FORMATS
from tests.cli.conftest import Run
from tui.cli import main


@pytest.mark.parametrize("to", ["json", "jsonl", "ui-messages", "markdown"])
def test_to_stdout_and_to_a_file_are_the_same(
    run: Run, demo: Path, tmp_path: Path, to: str
) -> None:
    result = run("export", "retry-loop", "--to", to)
    assert result.code == 0 and result.out
    file = tmp_path / "out"
    assert run("export", "retry-loop", "--to", to, "--out", file).code == 0
    assert file.read_text(encoding="utf-8") == result.out
    assert stat.S_IMODE(file.stat().st_mode) == 0o600


def test_a_dash_is_stdout_and_a_file_of_that_name_has_a_folder(
    run: Run, demo: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    plain = ("export", "weekly-review", "--to", "json")
    written = run(*plain)
    assert run(*plain, "--out", "-").out == run(*plain, "--out=-").out == written.out
    assert not Path("-").exists()
    assert run(*plain, "--out", "./-").code == run(*plain, "--out=-x.json").code == 0
    assert Path("-").read_text("utf-8") == Path("-x.json").read_text("utf-8") == written.out
    for other in (("export", "--all", "--to", "json", "--out", "-"), ("backup", "-"),
                  ("restore-backup", "-", "--yes"), ("rebuild", "-"), ("copy", "library", "-"),
                  ("files", "weekly-review", "--out", "-")):
        assert run(*other).code == 2, other
    taken = run("export", "--all", "--to", "json", "--out", "./-")
    assert taken.code == 1 and "is no folder; name another" in taken.err
    assert run("backup", "--", "-backup.db").code == 0 and Path("-backup.db").exists()
    assert run("restore-backup", "--dry-run", "--", "-backup.db").code == 0


def test_its_help_says_what_each_format_is(run: Run) -> None:
    words = " ".join(run("export", "--help").out.split())
    for format in FORMATS.values():
        assert f" {format.name} {format.help}" in words and format.details in words


def test_whole_formats_hold_hidden_rows_and_say_nothing(run: Run, demo: Path) -> None:
    for to in ("json", "jsonl"):
        result = run("export", "retry-loop", "--to", to)
        assert "far too much" in result.out and result.err == ""


def test_other_formats_leave_hidden_messages_out_and_say_so(run: Run, demo: Path) -> None:
    for to in ("ui-messages", "markdown"):
        result = run("export", "retry-loop", "--to", to)
        assert "far too much" not in result.out
        assert result.err == "4 hidden messages omitted. Use --hidden to include them.\n"
        result = run("export", "retry-loop", "--to", to, "--hidden")
        assert "far too much" in result.out and result.err == ""


def test_context_view_of_every_format(run: Run, demo: Path) -> None:
    for to in ("json", "jsonl", "ui-messages", "markdown"):
        out = run("export", "search-page", "--to", to, "--context").out
        assert "310 kB" not in out and "17 tests pass" in out


def test_never_overwrites_without_force(run: Run, demo: Path, tmp_path: Path) -> None:
    file = tmp_path / "notes.md"
    file.write_text("mine")
    result = run("export", "retry-loop", "--to", "markdown", "--out", file)
    assert result.code == 1
    assert result.err == f"backscroll: {file} exists already. Use --force to overwrite it.\n"
    assert file.read_text() == "mine"
    assert run("export", "retry-loop", "--to", "markdown", "--out", file, "--force").code == 0
    text = file.read_text(encoding="utf-8")
    assert text.startswith("---\n") and "\n---\n\n# Retry loop" in text
    assert [each.name for each in tmp_path.iterdir() if "partial" in each.name] == []


def test_into_a_folder(run: Run, demo: Path, tmp_path: Path) -> None:
    folder = tmp_path / "exports"
    folder.mkdir()
    run("export", "retry-loop", "--to", "jsonl", "--out", folder)
    (file,) = folder.iterdir()
    assert file.name.startswith("ses_") and file.suffix == ".jsonl"


@pytest.mark.parametrize("to", ["kimi", "cline", "openhands"])
def test_one_file_of_a_session_that_is_a_folder(
    run: Run, demo: Path, tmp_path: Path, to: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    shown = run("export", "retry-loop", "--to", to)
    written = run("export", "retry-loop", "--to", to, "--out", "made.json")
    assert shown.code == written.code == 0
    for each in (shown, written):
        assert "the session also needs" in each.err
    assert (tmp_path / "made.json").stat().st_size > 1000


def test_into_a_folder_that_is_missing(run: Run, demo: Path, tmp_path: Path) -> None:
    result = run("export", "retry-loop", "--to", "json", "--out", tmp_path / "no" / "file")
    reason = f"backscroll: {tmp_path}/no/file cannot be written: No such file or directory\n"
    assert (result.code, result.err) == (1, reason)


def test_round_trip_through_the_command_line(run: Run, demo: Path, tmp_path: Path) -> None:
    file, target = tmp_path / "one.jsonl", tmp_path / "target.db"
    before = run("export", "retry-loop", "--to", "jsonl", "--out", file)
    assert before.code == 0
    result = run("import", file, "--store", target, "--json")
    assert [item["outcome"] for item in result.json] == ["added"]
    again = run("export", "retry-loop", "--to", "jsonl", "--store", target)
    assert again.out == file.read_text(encoding="utf-8")
    document = json.loads(run("export", "retry-loop", "--to", "json", "--store", target).out)
    assert document["session"]["metadata"]["source"]["id"] == "retry-loop"


def test_an_unknown_format_is_wrong_usage(run: Run, demo: Path) -> None:
    assert run("export", "retry-loop", "--to", "pdf").code == 2
    assert run("export", "retry-loop").code == 2


PLACES = {
    "claude-code": ".claude/projects/-home-mira-code",
    "codex": ".codex/sessions/2026/09/21",
    "opencode": "",
    "gemini": ".gemini/tmp/project/chats",
    "pi": "pi/--home-mira-code--",
    "qwen": ".qwen/projects/-home-mira-code/chats",
    "continue": ".continue/sessions",
    "kimi": ".kimi-code/sessions/wd_code_0123456789ab",
    "cline": ".cline/data/sessions",
    "openhands": ".openhands/conversations",
}
"""Where a person puts what was exported for an agent."""


CLAUDE = Path(__file__).parent.parent / "data" / "claude-code" / "home" / ".claude"


@pytest.fixture(scope="module")
def synced(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A home folder whose library has the sample of Claude Code."""
    folder = tmp_path_factory.mktemp("synced")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HOME", str(folder))
        assert main(["sync", str(CLAUDE)]) == 0
    return folder


@pytest.mark.parametrize("to", [
    "claude-code", "codex", "opencode", "cline",
    *(pytest.param(name, marks=pytest.mark.long)
      for name in ("gemini", "pi", "qwen", "continue", "kimi", "openhands"))])
@pytest.mark.one_in(2)
def test_what_an_agent_was_given_is_counted_once_when_it_comes_back(
    synced: Path, run: Run, home: Path, tmp_path: Path, to: str
) -> None:
    shutil.copytree(synced, home, dirs_exist_ok=True)
    before = run("stats", "--json").json["spent"]["spent"]
    session = max(run("sessions", "--json").json, key=lambda one: one["total_tokens"])
    folder = tmp_path / PLACES[to]
    folder.mkdir(parents=True, exist_ok=True)
    out = folder if PLACES[to] else folder / "exported.json"
    assert run("export", session["id"], "--to", to, "--out", out).code == 0
    top = out if not PLACES[to] else tmp_path / PLACES[to].split("/")[0]
    assert run("sync", top).code == 0
    assert run("stats", "--json").json["spent"]["spent"] == before
    (made,) = [
        s for s in run("sessions", "--json").json
        if (s["source"] or {}).get("path", "").startswith(str(tmp_path))
    ]  # fmt: skip
    assert made["lineage"]["kind"] == "continuation"
    assert made["lineage"]["parent_id"] == session["id"]


def test_a_store_that_is_not_ours_is_left_as_it_is(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "sessions.db"
    shutil.copy(Path(__file__).parent.parent / "data" / "grida" / "sessions.db", path)
    before = path.read_bytes()
    (session, *_) = run("sessions", "--json", "--store", path).json
    assert run("export", session["id"], "--to", "pi", "--store", path).code == 0
    assert path.read_bytes() == before
    assert not [each for each in tmp_path.iterdir() if each.name not in ("home", "sessions.db")]


@pytest.mark.parametrize("to", ["json", "jsonl", "ui-messages", "markdown", *PLACES])
def test_an_id_of_a_host_never_leads_out_of_the_folder(
    run: Run, tmp_path: Path, to: str
) -> None:
    path = tmp_path / "host.db"
    host = sqlite3.connect(path)
    host.executescript(CONTRACT_TABLES + CONTRACT_INDEXES)
    times = (1_790_000_000_000,) * 2
    host.execute("INSERT INTO chat_sessions(id, agent, model_json, created_at, updated_at)"
                 " VALUES ('../../../x', 'x', '{}', ?, ?)", times)  # fmt: skip
    host.execute("INSERT INTO chat_messages(id, session_id, role, created_at, updated_at)"
                 " VALUES ('../m', '../../../x', 'assistant', ?, ?)", times)  # fmt: skip
    host.execute("INSERT INTO chat_parts VALUES ('../p', '../m', '../../../x', 0, 'text',"
                 """ '{"type":"text","text":"said"}', NULL, NULL, ?, ?)""", times)  # fmt: skip
    host.commit()
    host.close()
    folder = tmp_path / "a" / "b" / "out"
    folder.mkdir(parents=True)
    before = {*tmp_path.rglob("*")}
    done = run("export", "../../../x", "--to", to, "--out", folder, "--store", path)
    assert done.code == 0, done.err
    made = [one for one in {*tmp_path.rglob("*")} - before if one.parent != path.parent]
    assert made and all(folder in one.parents for one in made)
    files = [one for one in made if one.is_file()]
    # Some sessions are folders: of two files, and of OpenHands with a file for each event.
    whole = {"kimi": 2, "cline": 2, "openhands": 3}
    assert [one.parent for one in files] == [folder] or len(files) == whole[to]


@pytest.fixture
def secretive(run: Run, tmp_path: Path) -> tuple[str, str]:
    """A session that holds a key in a text, in a call's input, and below a key's name."""
    key, password = "ghp_" + "a1B2" * 9, "h7unter" + "2secret"
    ids = {name: f"{name}_" + "0" * 25 + "1" for name in ("ses", "msg", "prt")}
    times = {"created_at": 1, "updated_at": 1}
    part = {**times, "session_id": ids["ses"], "message_id": ids["msg"]}
    login = {"type": "tool-login", "toolCallId": "c", "state": "output-available",
             "input": {"password": password}, "output": key}  # fmt: skip
    rows = [
        ("session", {**times, "id": ids["ses"], "agent": "mine",
                     "metadata": {"title": f"the key {key}"}}),
        ("message", {**times, "id": ids["msg"], "role": "user", "session_id": ids["ses"]}),
        ("part", {**part, "id": ids["prt"], "index": 0, "type": "text",
                  "data": {"type": "text", "text": f"use {key} please"}}),
        ("part", {**part, "id": ids["prt"][:-1] + "2", "index": 1, "type": "tool-login",
                  "data": login}),
    ]  # fmt: skip
    lines = [{"type": kind, "data": row} for kind, row in rows]
    file = tmp_path / "in.jsonl"
    file.write_text("".join(json.dumps(line) + "\n" for line in lines))
    result = run("import", file)
    assert result.code == 0, result.err
    return key, password


def session_of(run: Run) -> str:
    return str(json.loads(run("sessions", "--json").out)[0]["id"])


def test_a_document_for_people_has_no_secrets(run: Run, secretive: tuple[str, str]) -> None:
    result = run("export", session_of(run), "--to", "markdown")
    assert not any(secret in result.out for secret in secretive)
    assert "the key [masked GitHub token]" in result.out
    assert "use [masked GitHub token] please" in result.out
    assert "[masked password or key]" in result.out
    assert "GitHub token 3" in result.err and "--no-mask writes them" in result.err


def test_secrets_stay_where_they_are_asked_for(run: Run, secretive: tuple[str, str]) -> None:
    for arguments in (["markdown", "--no-mask"], ["jsonl"], ["json"], ["ui-messages"]):
        result = run("export", session_of(run), "--to", *arguments)
        assert all(secret in result.out for secret in secretive)
        assert "masked" not in result.err


def test_any_format_can_be_masked(run: Run, secretive: tuple[str, str]) -> None:
    for to in ("jsonl", "json", "ui-messages"):
        result = run("export", session_of(run), "--to", to, "--mask")
        assert not any(secret in result.out for secret in secretive)
        assert "masked" in result.err


def test_every_session_to_a_folder(run: Run, demo: Path, tmp_path: Path) -> None:
    folder = tmp_path / "all"
    assert run("export", "--to", "json").code == 2
    assert run("export", "--all", "--to", "json").code == 2
    assert run("export", "weekly-review", "--to", "json", "--json").code == 2
    dry = run("export", "--all", "--to", "jsonl", "--out", folder, "--dry-run", "--json").json
    assert dry["written"] > 5 and not folder.exists()
    done = run("export", "--all", "--to", "jsonl", "--out", folder, "--json")
    assert done.code == 0 and done.json["written"] == dry["written"]
    assert len(list(folder.glob("*.jsonl"))) == dry["written"]
    again = run("export", "--all", "--to", "jsonl", "--out", folder)
    assert "0 sessions written" in again.err and again.code == 0
