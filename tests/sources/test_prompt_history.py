"""Prompts of sessions whose files are gone, from the agents' logs of typed lines."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from store.engine.database import Database, open_database
from store.ids import derived_session_id
from store.queries import sessions
from store.sources.base.drafts import SessionDraft
from store.sources.claude_code import ClaudeCodeSource
from store.sources.codex import CodexSource
from store.sync.engine import Sync
from store.sync.forget import forget
from store.sync.settings import Settings
from store.sync.targets import Target
from tests.sources import codex_lines
from tests.sources.claude_rows import SESSION, START, File
from tests.sources.grown import check_records, read_all

GONE = "99999999-9999-4999-8999-999999999999"


def claude_line(session: str | None, text: str, at: int = START, **more: Any) -> dict[str, Any]:
    line = {"display": text, "pastedContents": {}, "timestamp": at, "project": "/w"} | more
    return line | ({"sessionId": session} if session else {})


def write(path: Path, lines: list[dict[str, Any]], end: str = "\n") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes("".join(json.dumps(line) + end for line in lines).encode())
    return path


def claude_home(folder: Path, *lines: dict[str, Any], end: str = "\n") -> Path:
    file = File()
    file.user("in the file")
    file.assistant("yes", id="msg_1")
    file.write(folder / "projects" / "-w")
    write(folder / "history.jsonl", list(lines), end)
    return folder


def sync(db: Database, root: Path, source: Any = ClaudeCodeSource, **settings: Any) -> None:
    Sync(db, Settings(**settings)).run([Target(source(), root)])


def titles(db: Database) -> list[str]:
    found = sessions.page(db, sessions.SessionFilter())
    return sorted(str(json.loads(row.metadata_json).get("title")) for row in found)


def said(draft: SessionDraft) -> list[str]:
    return [m.parts[0].data["text"] for m in draft.messages if m.role == "user"]


@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_a_session_of_prompts_only(end: str, tmp_path: Path) -> None:
    root = claude_home(
        tmp_path,
        claude_line(SESSION, "in the file"),
        claude_line(GONE, "/model opus", START + 1),
        claude_line(GONE, "fix the login", START + 2),
        claude_line(GONE, "look at [Pasted text #1 +2 lines]", START + 3,
                    pastedContents={"1": {"id": 1, "type": "text", "content": "a\nb"}}),
        claude_line(GONE, "!ls -l", START + 4),
        claude_line(GONE, "/review it", START + 5),
        claude_line(None, "of an old version"),
        claude_line("88888888-8888-4888-8888-888888888888", "/exit"),
        end=end,
    )  # fmt: skip
    drafts, problems = read_all(ClaudeCodeSource(), root)
    (day,) = [name for name in drafts if name.startswith("prompts-")]
    assert problems == [] and set(drafts) == {SESSION, GONE, day}
    assert said(drafts[day]) == ["of an old version"]
    draft = drafts[GONE]
    check_records(draft)
    assert draft.partial and draft.metadata["backscroll"] == {"prompts_only": True}
    assert (draft.title, draft.workspace_root) == ("fix the login", "/w")
    assert said(draft) == [
        "/model opus", "fix the login", "look at a\nb", "!ls -l", "/review it"]
    assert [m.metadata.get("origin") for m in draft.messages] == [
        "command", "human", "human", "shell", "human", None]
    assert draft.messages[-1].parts[0].data["data"]["name"] == "prompts only"
    assert (draft.created_at, draft.updated_at) == (START + 1, START + 5)


def test_codex_has_such_a_log_too(tmp_path: Path) -> None:
    there, gone = codex_lines.thread_id(1), codex_lines.thread_id(2)
    lines = codex_lines.Lines(there)
    lines.turn("one", "re one", "r1")
    lines.write(tmp_path)
    write(tmp_path / "history.jsonl", [
        {"session_id": there, "ts": START // 1000, "text": "one"},
        {"session_id": gone.upper(), "ts": START // 1000 + 1, "text": "two"},
        {"session_id": gone, "ts": START // 1000 + 2, "text": "three"},
    ])  # fmt: skip
    drafts, problems = read_all(CodexSource(), tmp_path)
    assert problems == [] and set(drafts) == {there, gone}
    assert said(drafts[gone]) == ["two", "three"] and drafts[gone].partial
    assert drafts[gone].created_at == START // 1000 * 1000 + 1000


@pytest.fixture
def db(tmp_path: Path) -> Database:
    return open_database(tmp_path / "store.db", create=True)


@pytest.mark.parametrize("prompts_first", [True, False])
def test_a_fork_has_the_prompts_of_a_thread_whose_file_is_gone(
    prompts_first: bool, db: Database, tmp_path: Path
) -> None:
    gone, fork = codex_lines.thread_id(1), codex_lines.thread_id(2)
    parent = codex_lines.Lines(gone, None)
    parent.turn("one", "re one", "r1")
    lines = codex_lines.Lines(fork, None, START + 9_000_000, forked_from_id=gone)
    lines.lines += [{**line, "timestamp": codex_lines.iso(lines.at)} for line in parent.lines]
    lines.at += 60_000
    lines.turn("in the fork", "yes", "r2")
    typed = [{"session_id": gone, "ts": START // 1000, "text": "one"},
             {"session_id": fork, "ts": START // 1000 + 9060, "text": "in the fork"}]  # fmt: skip
    root = tmp_path / "codex"
    (root / "sessions").mkdir(parents=True)
    for is_log in (prompts_first, not prompts_first):
        if is_log:
            write(root / "history.jsonl", typed)
        else:
            lines.write(root)
        sync(db, root, CodexSource)
    assert titles(db) == ["in the fork"]
    later = {"session_id": gone, "ts": START // 1000 + 1, "text": "after the fork"}
    write(root / "history.jsonl", [*typed, later])
    sync(db, root, CodexSource)
    assert titles(db) == ["after the fork", "in the fork"]
    (path,) = (root / "sessions").rglob("*.jsonl")
    path.unlink()
    for _ in range(2):
        sync(db, root, CodexSource, keep_deleted=False)
        assert titles(db) == ["in the fork", "one"]


@pytest.mark.parametrize("keep_deleted", [True, False])
@pytest.mark.parametrize("later", [-1000, 10_000_000])
def test_the_file_takes_the_place_of_its_prompts(
    later: int, keep_deleted: bool, db: Database, tmp_path: Path
) -> None:
    root = claude_home(tmp_path / "c", claude_line(GONE, "what I typed", START + later))
    sync(db, root, keep_deleted=keep_deleted)
    assert titles(db) == ["in the file", "what I typed"]
    file = File(GONE)
    file.user("what I typed")
    file.assistant("an answer", id="msg_2")
    path = file.write(root / "projects" / "-w")
    for _ in range(2):
        sync(db, root, keep_deleted=keep_deleted)
        assert titles(db) == ["in the file", "what I typed"]
        (count,) = db.connection.execute(
            "SELECT count(*) FROM chat_messages m JOIN chat_sessions s ON s.id = m.session_id"
            " WHERE json_extract(s.metadata_json, '$.source.id') = ?", [GONE],
        ).fetchone()
        assert count == 2
    path.unlink()
    sync(db, root, keep_deleted=keep_deleted)
    (row,) = db.connection.execute(
        "SELECT json_extract(metadata_json, '$.backscroll.prompts_only') FROM chat_sessions"
        " WHERE json_extract(metadata_json, '$.source.id') = ?", [GONE],
    ).fetchall()
    assert row[0] == (None if keep_deleted else 1)


def test_a_line_that_is_added_concerns_its_session_alone(db: Database, tmp_path: Path) -> None:
    root = claude_home(tmp_path / "c", claude_line(GONE, "one"))
    sync(db, root)
    log = root / "history.jsonl"
    more = [claude_line(SESSION, "in the file"), claude_line(GONE, "two", START + 9)]
    for line, changed in zip(more, (0, 1), strict=True):
        with log.open("a") as out:
            out.write(json.dumps(line) + "\n")
        run = Sync(db)
        run.run([Target(ClaudeCodeSource(), root)])
        assert len(run.changed) == changed


def test_a_damaged_log_costs_its_damage(tmp_path: Path) -> None:
    root = claude_home(tmp_path)
    good = json.dumps(claude_line(GONE, "kept"))
    (root / "history.jsonl").write_text(f'{{"display": 5, "sessionId": "x"}}\noops\n{good}\n[1')
    drafts, problems = read_all(ClaudeCodeSource(), root)
    assert set(drafts) == {SESSION, GONE}
    assert [(problem.line, problem.path) for problem in problems] == [
        (2, str(root / "history.jsonl"))]


def test_one_project_or_file_asks_no_log(tmp_path: Path) -> None:
    root = claude_home(tmp_path, claude_line(GONE, "elsewhere"))
    project = root / "projects" / "-w"
    for place in (project, project / f"{SESSION}.jsonl"):
        drafts, _ = read_all(ClaudeCodeSource(), place)
        assert set(drafts) == {SESSION}


@pytest.mark.parametrize("more", [[], ["todos"]])
def test_a_home_that_holds_nothing_but_the_log(more: list[str], tmp_path: Path) -> None:
    claude, codex = tmp_path / ".claude", tmp_path / ".codex"
    write(claude / "history.jsonl", [claude_line(GONE, "asked long ago")])
    write(codex / "history.jsonl", [{"session_id": GONE, "ts": 1_795_000_000, "text": "to codex"}])
    for folder in (root / name for root in (claude, codex) for name in more):
        folder.mkdir()
    db = open_database(tmp_path / "store.db", create=True)
    for root, source in ((claude, ClaudeCodeSource), (codex, CodexSource)):
        assert source().recognise(root) == root
        sync(db, root, source)
    assert titles(db) == ["asked long ago", "to codex"]
    db.close()


def test_prompts_of_a_session_whose_file_is_empty(tmp_path: Path) -> None:
    root = claude_home(tmp_path / "home", claude_line(GONE, "asked long ago"))
    path = root / "projects" / "-w" / f"{GONE}.jsonl"
    path.touch()
    db = open_database(tmp_path / "store.db", create=True)
    sync(db, root)
    assert titles(db) == ["asked long ago", "in the file"]
    file = File(GONE)
    file.user("it came after all")
    file.write(path.parent)
    sync(db, root)
    assert titles(db) == ["in the file", "it came after all"]
    db.close()


DAY = 24 * 60 * 60 * 1000


def test_lines_that_name_no_session_are_listed_by_folder_and_day(tmp_path: Path) -> None:
    root = claude_home(
        tmp_path,
        claude_line(None, "one", START),
        claude_line(None, "two", START + 1),
        claude_line(None, "elsewhere", START + 2, project="/x"),
        claude_line(None, "the next day", START + DAY),
        claude_line(None, "/clear", START + 2 * DAY),
    )
    drafts, problems = read_all(ClaudeCodeSource(), root)
    assert problems == []
    days = {name: draft for name, draft in drafts.items() if name != SESSION}
    assert sorted(said(draft) for draft in days.values()) == [
        ["elsewhere"], ["one", "two"], ["the next day"]]
    for draft in days.values():
        check_records(draft)
        assert draft.partial and draft.metadata["backscroll"] == {"prompts_only": True}
    assert {draft.workspace_root for draft in days.values()} == {"/w", "/x"}


@pytest.mark.parametrize("keep_originals", [True, False])
def test_lines_of_a_session_that_is_there_are_not_listed(
    keep_originals: bool, db: Database, tmp_path: Path
) -> None:
    """Whether its file was there before, came later, or is gone again."""
    root = tmp_path / "c"
    lines = [claude_line(None, "my prompt", START), claude_line(None, "/review it", START + 9)]
    write(root / "history.jsonl", lines)
    (root / "projects").mkdir()
    sync(db, root, keep_originals=keep_originals)
    assert titles(db) == ["my prompt"]
    file = File(GONE)
    file.user("my prompt")
    file.user("<command-name>/review</command-name>\n<command-args>it</command-args>")
    file.assistant("yes", id="msg_1")
    path = file.write(root / "projects" / "-w")
    for _ in range(2):
        sync(db, root, keep_originals=keep_originals)
        assert titles(db) == ["my prompt"]
        (count,) = db.connection.execute("SELECT count(*) FROM chat_sessions").fetchone()
        assert count == 1
        if path.exists():
            path.unlink()
    write(root / "history.jsonl", [*lines, claude_line(None, "lost", START + 5)])
    sync(db, root, keep_originals=keep_originals)
    assert titles(db) == ["lost", "my prompt"]


@pytest.mark.parametrize(("typed", "more", "content"), [
    ("fix it", {"project": "/w/"}, "fix it"),
    ("look: [Pasted text #1 +2 lines] ok?", {"pastedContents": {"1": {"contentHash": "a1"}}},
     "look: a\nb\nc ok?"),
    ("[Image #1]what is it", {}, "[Image #1] what is it"),
    ("fix it", {}, [{"type": "text", "text": "<ide_opened_file>a.py</ide_opened_file>"},
                    {"type": "text", "text": "fix it"}]),
    ("fix it", {}, "<system-reminder>no</system-reminder>\nfix it"),
])  # fmt: skip
def test_a_line_is_the_prompt_of_a_session_though_it_is_written_otherwise(
    typed: str, more: dict[str, Any], content: Any, tmp_path: Path
) -> None:
    file = File()
    file.user(content)
    file.assistant("yes", id="msg_1")
    file.write(tmp_path / "projects" / "-w")
    other = claude_line(None, "look: [Pasted text #1 +2 lines] no?")
    write(tmp_path / "history.jsonl", [claude_line(None, typed, **more), other])
    drafts, _ = read_all(ClaudeCodeSource(), tmp_path)
    assert [said(drafts[name]) for name in drafts if name != SESSION] == [[other["display"]]]


def test_a_line_that_a_session_took_leaves_the_day(db: Database, tmp_path: Path) -> None:
    root = tmp_path / "c"
    lines = [claude_line(None, text, START + 10 * at)
             for at, text in enumerate(("lost", "kept", "lost"))]  # fmt: skip
    write(root / "history.jsonl", lines)
    (root / "projects").mkdir()
    sync(db, root)
    file = File(GONE)
    file.user("kept")
    file.write(root / "projects" / "-w")
    sync(db, root)
    rows = db.connection.execute(
        "SELECT json_extract(data_json, '$.text') FROM chat_parts WHERE type = 'text' ORDER BY 1"
    )
    assert [text for (text,) in rows] == ["kept", "lost", "lost"]


def test_prompts_of_a_session_whose_file_has_notes_only(db: Database, tmp_path: Path) -> None:
    root = claude_home(tmp_path / "home", claude_line(GONE, "asked long ago"))
    path = root / "projects" / "-w" / f"{GONE}.jsonl"
    note = {"type": "file-history-snapshot", "messageId": "x", "snapshot": {}}
    path.write_text(json.dumps(note) + "\n")
    sync(db, root)
    assert titles(db) == ["asked long ago", "in the file"]
    with (root / "history.jsonl").open("a") as out:
        out.write(json.dumps(claude_line(GONE, "and more", START + 5)) + "\n")
    sync(db, root)
    file = File(GONE)
    file.user("it came after all")
    text = file.write(tmp_path / "later").read_text()
    path.write_text(json.dumps(note) + "\n" + text)
    sync(db, root)
    assert titles(db) == ["in the file", "it came after all"]


def test_prompts_of_a_session_whose_file_was_emptied(db: Database, tmp_path: Path) -> None:
    root = claude_home(tmp_path / "home", claude_line(GONE, "asked long ago"))
    file = File(GONE)
    file.user("asked long ago")
    file.assistant("an answer", id="msg_2")
    path = file.write(root / "projects" / "-w")
    sync(db, root, keep_deleted=False)
    path.write_text('{"type": "file-history-snapshot", "messageId": "x", "snapshot": {}}\n')
    for _ in range(2):
        sync(db, root, keep_deleted=False)
        texts = db.connection.execute(
            "SELECT json_extract(data_json, '$.text') FROM chat_parts WHERE type = 'text'"
            " ORDER BY 1"
        ).fetchall()
        assert texts == [("asked long ago",), ("in the file",), ("yes",)]


def forget_session(db: Database, name: str) -> None:
    forget(db, [derived_session_id("claude-code", name)])


@pytest.mark.parametrize("names_it", [True, False])
def test_prompts_of_a_forgotten_session_do_not_come_back(
    names_it: bool, db: Database, tmp_path: Path
) -> None:
    """Neither with its file there nor without it, and whatever is typed later."""
    root = claude_home(
        tmp_path / "home",
        claude_line(GONE if names_it else None, "a secret", START),
        claude_line(None, "lost", START + 9),
    )
    file = File(GONE)
    file.user("a secret")
    file.assistant("yes", id="msg_2")
    path = file.write(root / "projects" / "-w")
    sync(db, root)
    forget_session(db, GONE)
    sync(db, root)
    path.unlink()
    sync(db, root)
    with (root / "history.jsonl").open("a") as out:
        out.write(json.dumps(claude_line(None, "later", START + 20)) + "\n")
    sync(db, root)
    assert titles(db) == ["in the file", "lost"]
    texts = db.connection.execute("SELECT group_concat(data_json) FROM chat_parts").fetchone()
    assert "later" in texts[0] and "a secret" not in texts[0]


COPIED = "77777777-9999-4999-8999-999999999999"


def test_a_prompt_in_an_old_file_that_grew_is_not_listed_again(tmp_path: Path) -> None:
    reader, later = ClaudeCodeSource(), START + 86_400_000
    old, file = claude_line(GONE, "start it", START), File(COPIED)
    file.user("something else")

    def listed(at: int, *lines: dict[str, Any]) -> list[str]:
        os.utime(file.write(tmp_path / "projects" / "-w"), (at // 1000 + 1,) * 2)
        write(tmp_path / "history.jsonl", [*lines])
        read = [reader.read(tmp_path, unit) for unit in reader.units(tmp_path, [])]
        return sorted(draft.source_id for one in read for draft in one.sessions)

    assert listed(START, old) == sorted([COPIED, GONE])
    file.at = later
    file.user("go on")
    taken = claude_line("88888888-9999-4999-8999-999999999999", "go on", later)
    assert listed(later, old, taken) == sorted([COPIED, GONE])


@pytest.mark.parametrize("there_first", [True, False])
def test_a_prompt_that_a_resumed_session_has_is_not_listed_again(
    there_first: bool, db: Database, tmp_path: Path
) -> None:
    root = claude_home(
        tmp_path / "home",
        claude_line(GONE, "start it", START),
        claude_line(GONE, "yes", START + 1000),
        claude_line(GONE, "said after that", START + 2000),
        claude_line(GONE, "yes", START + 200_000),
        claude_line(COPIED, "yes", START + 201_000),
    )
    if not there_first:
        sync(db, root)
    file = File(COPIED)
    file.user("start it")
    file.at = START + 1000
    file.user("yes")
    file.at = START + 201_000
    file.user("yes")
    path = file.write(root / "projects" / "-w")
    for _ in range(2):
        sync(db, root)
        rows = db.connection.execute(
            "SELECT json_extract(p.data_json, '$.text') FROM chat_parts p JOIN chat_sessions s"
            " ON s.id = p.session_id WHERE p.type = 'text'"
            " AND json_extract(s.metadata_json, '$.source.id') = ? ORDER BY p.created_at", [GONE],
        ).fetchall()
        assert rows == [("said after that",), ("yes",)]
    forget_session(db, COPIED)
    path.unlink()
    sync(db, root)
    assert titles(db) == ["in the file", "said after that"]


@pytest.mark.parametrize("keep_deleted", [True, False])
@pytest.mark.parametrize("named", [True, False])
def test_a_line_comes_back_with_the_file_that_had_it(
    keep_deleted: bool, named: bool, db: Database, tmp_path: Path
) -> None:
    root = claude_home(tmp_path / "home", claude_line(GONE if named else None, "start it", START))
    sync(db, root, keep_deleted=keep_deleted)
    file = File(COPIED)
    file.user("start it")
    file.user("go on")
    path = file.write(root / "projects" / "-w")
    sync(db, root, keep_deleted=keep_deleted)

    def told() -> list[str]:
        rows = db.connection.execute(
            "SELECT json_extract(data_json, '$.text') FROM chat_parts p JOIN chat_messages m"
            " ON m.id = p.message_id WHERE m.role = 'user' ORDER BY 1")
        return [text for (text,) in rows]

    assert told() == ["go on", "in the file", "start it"]
    path.unlink()
    sync(db, root, keep_deleted=keep_deleted)
    kept = ["go on"] if keep_deleted else []
    assert told() == [*kept, "in the file", "start it"]
    path = file.write(root / "projects" / "-w")
    sync(db, root, keep_deleted=keep_deleted)
    assert told() == ["go on", "in the file", "start it"]
