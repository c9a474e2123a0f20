"""A title that its user takes back is followed; one whose file went away stays."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from store.engine.database import open_database
from store.sources.registry import source
from store.sync.engine import Sync
from store.sync.settings import Settings
from store.sync.targets import Target
from tests.sources.claude_rows import File
from tests.sources.codex_lines import Lines, thread_id

PROMPT = "what is asked"
Change = Callable[[Path], Any]


def claude(root: Path, *notes: dict[str, Any]) -> None:
    file = File(session="s" * 8)
    file.user(PROMPT)
    file.assistant("it is", id="msg_1")
    file.note("ai-title", aiTitle="Made by a model")
    for note in notes:
        file.note("custom-title", **note)
    file.write(root / "projects" / "-work")


def claude_with_note(root: Path) -> None:
    claude(root, {"customTitle": "Mine"})


def claude_with_file(root: Path) -> None:
    claude(root)
    side = root / "projects" / "-work" / ("s" * 8)
    side.mkdir()
    (side / "custom-title.json").write_text('{"customTitle": "Mine", "by": "user"}')


def side_file(root: Path) -> Path:
    return next(root.rglob("custom-title.json"))


def sql(statement: str, *values: Any) -> Change:
    def change(root: Path) -> None:
        with sqlite3.connect(root / "state_5.sqlite") as database:
            database.execute(statement, values)
        database.close()

    return change


def codex(
    root: Path, name: str | None, *, indexed: str | None = None, title: str = PROMPT
) -> None:
    lines = Lines(thread_id(1))
    lines.turn(PROMPT, "it is", "r1")
    lines.write(root)
    sql("CREATE TABLE threads (id TEXT PRIMARY KEY, name TEXT, title TEXT)")(root)
    sql("INSERT INTO threads VALUES (?, ?, ?)", thread_id(1), name, title)(root)
    if indexed is not None:
        index(root, indexed)


def index(root: Path, *names: str) -> None:
    lines = [{"id": thread_id(1), "thread_name": name, "updated_at": ""} for name in names]
    text = "".join(json.dumps(line) + "\n" for line in lines)
    (root / "session_index.jsonl").write_text(text)


def grown(root: Path) -> None:
    """Let the session grow, so that it is read for more than its side files."""
    for path in root.rglob("*.jsonl"):
        if path.name != "session_index.jsonl":
            with path.open("a") as file:
                file.write('{"type": "unknown-note"}\n')


CASES: list[tuple[str, str, Change, Change, str]] = [
    ("a note that is empty", "claude-code", claude_with_note,
     lambda root: claude(root, {"customTitle": "Mine"}, {"customTitle": ""}), "Made by a model"),
    ("a note that says null", "claude-code", claude_with_note,
     lambda root: claude(root, {"customTitle": "Mine"}, {"customTitle": None}),
     "Made by a model"),
    ("another note", "claude-code", claude_with_note,
     lambda root: claude(root, {"customTitle": "Mine"}, {"customTitle": "Ours"}), "Ours"),
    ("a note that is gone", "claude-code", claude_with_note, claude, "Mine"),
    ("a side file that is empty", "claude-code", claude_with_file,
     lambda root: side_file(root).write_text('{"customTitle": ""}'), "Made by a model"),
    ("a side file that is gone", "claude-code", claude_with_file,
     lambda root: side_file(root).unlink(), "Mine"),
    ("a row without its name", "codex", lambda root: codex(root, "Mine"),
     sql("UPDATE threads SET name = NULL"), PROMPT),
    ("a row without its name and title", "codex", lambda root: codex(root, "Mine"),
     sql("UPDATE threads SET name = '', title = ''"), PROMPT),
    ("a row that is gone", "codex", lambda root: codex(root, "Mine"),
     sql("DELETE FROM threads"), "Mine"),
    ("a database that is gone", "codex", lambda root: codex(root, "Mine"),
     lambda root: (root / "state_5.sqlite").unlink(), "Mine"),
    ("a title of its own that is gone with its row", "codex",
     lambda root: codex(root, None, title="Ours"),
     sql("DELETE FROM threads"), "Ours"),
    ("an index that says no name last", "codex",
     lambda root: codex(root, None, indexed="Mine"),
     lambda root: index(root, "Mine", ""), PROMPT),
    ("an index without the thread", "codex", lambda root: codex(root, None, indexed="Mine"),
     index, PROMPT),
    ("an index that is gone", "codex", lambda root: codex(root, None, indexed="Mine"),
     lambda root: (root / "session_index.jsonl").unlink(), "Mine"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("kind", "make", "change", "title"),
    [pytest.param(*case[1:], id=f"{case[1]}: {case[0]}") for case in CASES],
)
@pytest.mark.parametrize("grows", [False, True], ids=["", "and grows"])
@pytest.mark.one_in(3)
def test_a_title_that_changes(
    tmp_path: Path, kind: str, make: Change, change: Change, title: str, grows: bool
) -> None:
    root = tmp_path / "root"
    root.mkdir()
    make(root)
    database = open_database(tmp_path / "store.db", create=True)

    def titles() -> list[str]:
        Sync(database, Settings(helpers=0)).run([Target(source(kind), root)])
        rows = database.connection.execute(
            "SELECT json_extract(metadata_json, '$.title') FROM chat_sessions"
        )
        return [row[0] for row in rows]

    assert titles() in (["Mine"], ["Ours"])
    change(root)
    if grows:
        grown(root)
    assert titles() == [title]
    assert titles() == [title]
    database.close()
