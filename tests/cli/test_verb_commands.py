"""Each verb from the command line: what it prints, its exit codes, its refusals."""

from __future__ import annotations

import json
import os
import stat
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from store.errors import BackscrollError
from tests.cli.conftest import Run
from tests.exports.claude_checker import check
from tests.store.talks import Talk, make_store


@pytest.fixture(params=["own", "grida"])
def talk(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Talk]:
    database = make_store(tmp_path / "talk.db", request.param)
    yield Talk(database)
    database.close()


def sessions(run: Run, store: Path, archived: str = "include") -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = run(
        "sessions", "--store", store, "--json", "--archived", archived
    ).json
    return found


def test_fork_prints_the_new_id_alone_on_the_first_line(run: Run, talk: Talk) -> None:
    parent = talk.session("Fix it")
    talk.message(parent, "user", "one")
    last = talk.message(parent, "assistant", "answer")
    store = talk.db.path
    made = run("fork", "--store", store, parent, last)
    assert (made.code, made.err) == (0, "")
    (row,) = [row for row in sessions(run, store) if row["id"] == made.out.strip()]
    assert row["title"] == "Fix it (2)"
    assert row["lineage"] == {
        "kind": "fork", "parent_id": parent, "parent_message_id": last,
    }  # fmt: skip


def test_fork_before_hands_the_text_over(run: Run, talk: Talk) -> None:
    parent = talk.session()
    talk.message(parent, "user", "one")
    chosen = talk.message(parent, "user", "two\nlines")
    made = run("fork", "--store", talk.db.path, parent, chosen, "--before")
    new_id, *text = made.out.splitlines()
    assert new_id.startswith("ses_") and text == ["two", "lines"]
    value = run("fork", "--store", talk.db.path, parent, chosen, "--before", "--json").json
    assert value["prompt"] == "two\nlines"
    assert (value["messages"], value["title"]) == (1, "Talk (3)")


def test_rewind_preview_rewind_list_restore(run: Run, talk: Talk) -> None:
    session = talk.session()
    first = talk.message(session)
    talk.call(session, input=40, output=2)
    talk.now += 1
    talk.db.connection.execute("UPDATE chat_parts SET updated_at = 1")
    store = talk.db.path
    preview = run("rewind", "--store", store, session, first, "--preview", "--json").json
    assert preview == {"session_id": session, "messages": 1, "tool_calls": 1, "tokens": 42}
    done = run("rewind", "--store", store, session, first)
    assert done.out == "hidden: 1 message; files were not changed\n"
    (listed,) = run("restore", "--store", store, session, "--list", "--json").json
    assert listed["messages"] == 1
    restored = run("restore", "--store", store, session, "--batch", str(listed["hidden_at"]))
    assert restored.out == "restored: 1 message\n"
    again = run("restore", "--store", store, session)
    assert (again.code, again.err) == (1, "backscroll: nothing is hidden in this session\n")


def test_archive_undo_redo_unarchive(run: Run, talk: Talk) -> None:
    one, two = talk.session("one"), talk.session("two")
    for session in (one, two):
        talk.message(session)
    store = talk.db.path
    assert run("archive", "--store", store, one, two, "--json").json == {"archived": [one, two]}
    assert sessions(run, store, "exclude") == []
    assert run("undo", "--store", store).out == "undone: archived 2 sessions\n"
    assert len(sessions(run, store, "exclude")) == 2
    assert run("redo", "--store", store, "--json").json["summary"] == "archived 2 sessions"
    assert run("unarchive", "--store", store, one).code == 0
    refused = run("unarchive", "--store", store, one)
    assert (refused.code, refused.err) == (1, f"backscroll: {one} is already not archived\n")


def test_undo_goes_past_a_fork_that_has_grown(run: Run, talk: Talk) -> None:
    session = talk.session("one")
    message = talk.message(session)
    store = talk.db.path
    assert run("rename", "--store", store, session, "two").code == 0
    made = run("fork", "--store", store, session, message).out.split()[0]
    talk.message(made, "user", "more")
    kept = run("undo", "--store", store)
    assert (kept.code, kept.out) == (1, "")
    assert kept.err == (
        "backscroll: forked “two (2)”: the fork has grown since it was made, so it stays; it can"
        " be archived instead; undo again to undo the change before it\n"
    )
    assert run("undo", "--store", store).out == "undone: renamed to “two”\n"


def test_rename_star_tag(run: Run, talk: Talk) -> None:
    session = talk.session()
    talk.message(session)
    store = talk.db.path
    assert (
        run("rename", "--store", store, session, "A new\tname").out == "renamed to “A new name”\n"
    )
    assert sessions(run, store)[0]["title"] == "A new name"
    assert run("star", "--store", store, session, "--json").json["star"] is True
    assert run("tag", "--store", store, session, "a", "b", "--json").json["tags"] == ["a", "b"]
    assert run("tag", "--store", store, session, "--remove", "a").out == "tags: b\n"
    assert run("tag", "--store", store, session).code == 2
    assert sessions(run, store)[0]["metadata"]["user"] | {"title": None} == {
        "title": None, "star": True, "tags": ["b"],
    }  # fmt: skip


def test_tree_shows_the_family(run: Run, talk: Talk) -> None:
    root = talk.session("Root")
    message = talk.message(root)
    made = run("fork", "--store", talk.db.path, root, message).out.strip()
    nodes = run("tree", "--store", talk.db.path, made, "--json").json
    assert [(n["id"], n["kind"], n["depth"], n["fork_turn"]) for n in nodes] == [
        (root, "root", 0, None), (made, "fork", 1, 1),
    ]  # fmt: skip
    text = run("tree", "--store", talk.db.path, root).out.splitlines()
    assert text[0].startswith("Root  1 turn · 0  ses_") and text[0].endswith("← this one")
    assert text[1].startswith("└─ ↱ Root (2)  1 turn · 0 · at turn 1")
    assert run("tree", "--store", talk.db.path, "--json").json == nodes


@pytest.mark.parametrize("command", ["fork", "rewind"])
def test_refusals_of_fork_and_rewind(run: Run, talk: Talk, command: str) -> None:
    session, other = talk.session(), talk.session()
    first = talk.message(session)
    hidden = talk.message(session, hidden_at=5)
    foreign = talk.message(other)
    store = talk.db.path
    before = talk.dump()
    for message, words in (
        (hidden, "hidden by a rewind"),
        (foreign, f"belongs to session {other}"),
        ("msg_nothing", "msg_nothing"),
        ("msg_", "several"),
    ):
        refused = run(command, "--store", store, session, message)
        assert refused.code == 1 and words in refused.err and refused.out == ""
    unknown = run(command, "--store", store, "ses_nothing", first)
    assert unknown.code == 1 and "ses_nothing" in unknown.err
    ambiguous = run(command, "--store", store, "ses_", first)
    assert ambiguous.code == 1 and "several" in ambiguous.err
    assert talk.dump() == before


def test_a_running_session_is_refused(run: Run, talk: Talk) -> None:
    session = talk.session()
    first = talk.message(session)
    talk.call(session, state="input-available")
    talk.db.connection.execute(
        "UPDATE chat_parts SET updated_at = CAST(strftime('%s', 'now') AS INTEGER) * 1000"
    )
    for command in ("fork", "rewind"):
        refused = run(command, "--store", talk.db.path, session, first)
        assert refused.code == 1 and "the session is running" in refused.err


def test_a_store_that_is_read_only_is_refused(run: Run, talk: Talk) -> None:
    session = talk.session()
    first = talk.message(session)
    if talk.db.form.name == "own":
        talk.db.connection.execute("PRAGMA user_version = 99")
    else:
        talk.db.connection.execute("PRAGMA user_version = 4")
    for arguments in (
        ("fork", session, first), ("rewind", session, first), ("restore", session),
        ("archive", session), ("rename", session, "x"), ("star", session),
        ("tag", session, "x"), ("undo",), ("redo",),
    ):  # fmt: skip
        refused = run(arguments[0], "--store", talk.db.path, *arguments[1:])
        assert refused.code == 1 and "newer" in refused.err, refused


@pytest.fixture
def agent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, home: Path) -> Path:
    """A stand-in for claude on PATH that writes down how it was called."""
    folder = tmp_path / "bin"
    folder.mkdir()
    program = folder / "claude"
    program.write_text('#!/bin/sh\npwd > "$0.log"\nprintf "%s\\n" "$@" >> "$0.log"\nexit 7\n')
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    monkeypatch.setenv("PATH", f"{folder}{os.pathsep}{os.environ['PATH']}")
    return program


def test_resume_writes_a_file_and_starts_the_agent(
    run: Run, talk: Talk, agent: Path, tmp_path: Path, home: Path
) -> None:
    work = tmp_path / "work"
    work.mkdir()
    session = talk.session("Go on", workspace_root=str(work))
    talk.message(session, "user", "one")
    talk.message(session, "assistant", "done", usage={"input": 3})
    talk.message(session, "user", "and then?")
    done = run("resume", "--store", talk.db.path, session, "--yes")
    assert done.code == 7
    cwd, flag, name, *prompt = agent.with_suffix(".log").read_text().splitlines()
    assert (cwd, flag, prompt) == (str(work), "--resume", ["--", "and then?"])
    (file,) = (home / ".claude" / "projects").glob("*/*.jsonl")
    assert file.stem == name
    chain = check(file.read_text(), name)
    assert [line["message"]["role"] for line in chain] == ["user", "assistant"]


def test_resume_prints_the_command(run: Run, talk: Talk, home: Path) -> None:
    session = talk.session(workspace_root="/some/where else")
    talk.message(session, "user", "one")
    talk.message(session, "assistant", "done")
    value = run("resume", "--store", talk.db.path, session, "--json").json
    assert value["cwd"] == "/some/where else" and value["writes_file"] is True
    assert not Path(value["path"]).exists()
    printed = run("resume", "--store", talk.db.path, session, "--print")
    assert printed.out.startswith("cd '/some/where else' && claude --resume ")
    (file,) = (home / ".claude" / "projects").glob("*/*.jsonl")
    assert str(file) in printed.err


def test_resume_without_the_agent_offers_file_and_command(
    run: Run, talk: Talk, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    session = talk.session()
    talk.message(session, "user", "one")
    talk.message(session, "assistant", "done")
    refused = run("resume", "--store", talk.db.path, session)
    assert refused.code == 1
    assert "claude is not on PATH" in refused.err and ".jsonl" in refused.err


def test_export_names_the_file_by_its_uuid(run: Run, talk: Talk, tmp_path: Path) -> None:
    session = talk.session()
    talk.message(session, "user", "one")
    talk.message(session, "assistant", "done")
    talk.message(session, "user", "next")
    out = tmp_path / "out"
    out.mkdir()
    done = run("export", "--store", talk.db.path, session, "--to", "claude-code", "--out", out)
    assert done.code == 0 and "the file omits the last prompt; send it yourself: next" in done.err
    (file,) = out.iterdir()
    check(file.read_text(), file.stem)
    named = out / "0b6f4f6e-0f4b-4c11-9d3b-0d6c3f6d1c11.jsonl"
    run("export", "--store", talk.db.path, session, "--to", "claude-code", "--out", named)
    check(named.read_text(), named.stem)


def test_two_processes_take_turns(talk: Talk) -> None:
    """Twenty renames by two processes at once: every one is in the log."""
    session = talk.session()
    talk.message(session)
    script = (
        "import sys; from tui.cli import main\n"
        "for n in range(10):\n"
        "    code = main(['rename', '--store', sys.argv[1], sys.argv[2], f'{sys.argv[3]} {n}'])\n"
        "    assert code == 0\n"
    )
    running = [
        subprocess.Popen(
            [sys.executable, "-c", script, str(talk.db.path), session, name],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        )
        for name in ("left", "right")
    ]  # fmt: skip
    for process in running:
        _, errors = process.communicate(timeout=120)
        assert process.returncode == 0, errors
    undone = 0
    while True:
        try:
            from store.engine.database import in_transaction
            from store.verbs.undo import undo

            in_transaction(talk.db, undo, now=1)
            undone += 1
        except BackscrollError:
            break
    assert undone == 20
    row = talk.session_row(session)
    title = row.get("title") or json.loads(row["metadata_json"])["title"]
    assert title == "Talk"


def test_rules_of_a_session(run: Run, demo: Path) -> None:
    def rules(*arguments: str) -> list[tuple[str, str, str]]:
        found = run("permissions", "weekly-review", *arguments, "--json").json["rules"]
        return [(one["action"], one["permission"], one["pattern"]) for one in found]

    before = rules()
    changed = rules("--allow", "Bash", "git *", "--deny", "WebFetch")
    assert changed == [*before, ("allow", "Bash", "git *"), ("deny", "WebFetch", "*")]
    assert "allow Bash git *" in run("permissions", "weekly-review").out
    assert rules("--remove", "Bash", "git *") == [*before, ("deny", "WebFetch", "*")]
    assert run("undo").code == 0 and rules() == changed
    assert run("permissions", "weekly-review", "--remove", "Nope").code == 1
    assert run("permissions", "weekly-review", "--allow", "a", "b", "c").code == 2
