"""Files and commands of a session: those of each agent's sample, and marks of calls."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from store.engine.database import Database, open_database
from store.engine.values import decoded
from store.errors import NotFound
from store.queries.touches import (
    COMMAND_CHARACTERS,
    FileRow,
    Touches,
    command_text,
    diffs,
    places,
    read,
    touches,
)
from store.sync.engine import Sync
from store.sync.settings import Settings
from store.text.diffs import as_text
from tests.sources.samples import SAMPLES
from tests.tui.inspected import START, Talk, bash, text


@pytest.fixture(scope="module")
def samples(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Database]:
    folder = tmp_path_factory.mktemp("samples")
    database = open_database(folder / "library.db", create=True)
    for sample in SAMPLES:
        Sync(database, Settings(helpers=0)).run([sample.copied(folder)])
    yield database
    database.close()


def of_row(row: FileRow) -> tuple[str, int, int, int, tuple[int, int] | None, int]:
    lines = row.lines if row.lines_known else None
    failed = row.ended("failed", "denied")
    return row.shown, row.count("read"), row.count("edit"), row.count("write"), lines, failed


def of_session(found: Touches) -> tuple[list[Any], list[Any]]:
    commands = [(use.text.split("\n")[0], use.call.outcome.status, use.call.outcome.exit_code)
                for use in found.commands]
    return [of_row(row) for row in found.files.values()], commands


NO_LINES = (0, 0)
EXPECTED: dict[tuple[str, str], tuple[list[Any], list[Any]]] = {
    # Counted by hand from the agents' files.
    ("claude-code", "Check the assets folder, please."): (
        [("assets/logo.png", 1, 0, 0, NO_LINES, 0), ("assets/note.pdf", 1, 0, 0, NO_LINES, 0),
         ("assets/missing.svg", 0, 0, 0, NO_LINES, 1),
         ("assets/README.md", 0, 0, 1, (4, 0), 0)],
        [("ls assets | wc -l; exit 3", "failed", 3),
         ('for i in $(seq 1 4000); do echo "row $i of the asset report"; done', "ok", 0)],
    ),
    ("codex", "TOOLS please"): (
        [("made.py", 0, 0, 1, (1, 0), 0), ("p.png", 1, 0, 0, NO_LINES, 0)],
        [("ls -1", "ok", 0), ("echo bad >&2; exit 4", "failed", 4),
         ("apply_patch <<'EOF'", "ok", 0)],
    ),
    ("codex", "hello one"): (
        [], [("echo shelled", "ended", None), ("sleep 30", "interrupted", -1)],
    ),
    ("opencode", "Title for tools (fork #1)"): (
        [("a.txt", 1, 1, 0, (1, 1), 0), ("missing.txt", 0, 0, 0, NO_LINES, 1)],
        [("ls -1", "ok", 0), ("echo oops >&2; exit 3", "failed", 3)],
    ),
    ("gemini", "first [[hi]]"): (
        [("notes.txt", 0, 1, 1, (4, 1), 0)],
        [("echo one; echo err >&2", "ok", 0), ("echo two; exit 3", "denied", None),
         ("echo typed; exit 6", "ended", None), ("echo one; echo err >&2", "denied", None),
         ("echo two; exit 3", "denied", None)],
    ),
    ("copilot", "My copilot session"): (
        [("a.txt", 1, 1, 0, (1, 1), 0)],
        [("ls -1", "ok", 0), ("cat b.txt; exit 3", "failed", 3)],
    ),
    ("pi", "MOCK:pitools edit"): (
        [("a.txt", 1, 0, 0, NO_LINES, 1)], [("ls -1", "ok", 0), ("cat b.txt; exit 3", "failed", 3)],
    ),
    ("aider", "MOCK:aider change it"): ([("a.txt", 1, 1, 0, (1, 1), 0)], []),
    ("aider", "please [[ahi]]"): ([("hello.py", 0, 1, 0, (3, 0), 0)], []),
    ("y-agent", "Fix the bug"): ([("a.py", 0, 0, 1, None, 0)], [("pytest", "failed", None)]),
    ("lionagi", "Release notes 2.4.0 ✓"): ([("NOTES.md", 0, 0, 0, NO_LINES, 1)], []),
    ("copilot-chat", "Fix the ferry stops"): (
        # Its edit is in the turn's own list of what differs.
        [("stops.txt", 1, 0, 0, None, 0)],
        [("grep -c stop stops.txt", "failed", 1)],
    ),
    ("cursor", "Rate limit for the API"): (
        [("router.py", 1, 0, 0, NO_LINES, 0),
         ("limit.py", 0, 1, 0, (2, 0), 0)],
        [("pytest -q", "failed", 1), ("rm -rf build", "denied", None)],
    ),
    ("cursor", "Count the lines"): (
        [("b.txt", 0, 0, 0, NO_LINES, 1)],
        [("wc -l a.txt", "ok", None), ("wc -l b.txt; exit 3", "failed", 3)],
    ),
    ("viben", "Hello world"): ([("/tmp/test.txt", 1, 0, 0, NO_LINES, 0)], []),
}  # fmt: skip


@pytest.mark.parametrize(("kind", "title"), EXPECTED, ids=lambda value: str(value))
def test_each_agents_sample(samples: Database, kind: str, title: str) -> None:
    rows = samples.connection.execute("SELECT id, metadata_json FROM chat_sessions").fetchall()
    named = [
        touches(samples, session_id) for session_id, metadata in rows
        if decoded(metadata).get("title") == title
        and decoded(metadata)["source"]["kind"] == kind
    ]  # fmt: skip
    assert EXPECTED[kind, title] in [of_session(found) for found in named]


def test_the_hub_reads_edits_and_runs(samples: Database) -> None:
    rows = samples.connection.execute("SELECT id, metadata_json FROM chat_sessions").fetchall()
    found = [
        of_session(touches(samples, session_id)) for session_id, metadata in rows
        if decoded(metadata)["source"]["kind"] == "hub"
    ]  # fmt: skip
    file = "timetable/summer.csv"
    # Two files are in its list of what differs after a step, and no call changed them.
    assert (
        [(file, 1, 0, 0, None, 0), ("timetable/übersicht.md", 0, 0, 0, None, 0)],
        [("make check", "failed", 2)],
    ) in found
    assert ([(file, 0, 1, 0, (1, 1), 0)], [("make check", "pending", None)]) in found


@pytest.fixture
def talk(db: Database) -> Talk:
    return Talk(db)


def call(name: str, given: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"type": f"tool-{name}", "toolCallId": "c", "state": "output-available",
            "input": given, "output": "ok", **more}  # fmt: skip


def edit(path: str, old: str = "a", new: str = "b", **more: Any) -> dict[str, Any]:
    return call("Edit", {"file_path": path, "old_string": old, "new_string": new}, **more)


def test_one_file_under_two_spellings_is_one_row(talk: Talk) -> None:
    talk.message("user", text("One"))
    talk.message("assistant", edit("/home/x/api/src/a.py"), edit("./src/../src/a.py"),
                 edit("a.py"), edit("/etc/hosts"), cwd="/home/x/api/src")
    rows = list(touches(talk.db, talk.session_id).files.values())
    assert [(row.shown, len(row.uses)) for row in rows] == [
        ("src/a.py", 2), ("src/src/a.py", 1), ("/etc/hosts", 1),
    ]  # fmt: skip
    assert {use.path for use in rows[0].uses} == {"/home/x/api/src/a.py", "a.py"}


def test_calls_that_did_nothing_do_not_count(talk: Talk) -> None:
    talk.message("user", text("One"))
    talk.message(
        "assistant", edit("a"), edit("a", state="output-denied", output=None),
        edit("a", state="output-error", output=None, errorText="no"),
        edit("a", state="input-available", output=None),
    )  # fmt: skip
    (row,) = touches(talk.db, talk.session_id).files.values()
    assert (row.changes, row.lines, len(row.uses)) == (1, (1, 1), 4)
    assert (row.ended("denied"), row.ended("failed"), row.ended("pending")) == (1, 1, 1)


def test_hidden_and_copied_calls_are_marked(talk: Talk) -> None:
    talk.message("user", text("One"), inherited_from="m1")
    talk.message("assistant", edit("a"), bash("ls", ""), inherited_from="m2")
    talk.message("user", text("Two"), hidden_at=START)
    talk.message("assistant", edit("a"), bash("pwd", ""), hidden_at=START)
    talk.message("user", text("Queued"), queued_at=START)
    talk.message("user", text("Three"))
    talk.message("assistant", bash("id", "", 2))
    found = touches(talk.db, talk.session_id)
    (row,) = found.files.values()
    assert (row.changes, row.hidden, row.lines) == (1, 1, (1, 1))
    marks = [(use.text, use.call.place.turn, use.call.place.hidden, use.call.place.copied)
             for use in found.commands]
    assert marks == [("ls", 1, False, True), ("pwd", 1, True, False), ("id", 2, False, False)]


def test_a_listed_change_counts_where_no_call_made_it(talk: Talk) -> None:
    talk.message("user", text("One"))
    listed = {"type": "data-patch", "data": {"hash": "h", "files": [
        "/home/x/api/a", "/home/x/api/b", "/home/x/api/c", "/home/x/api/b"]}}
    refused = edit("c", state="output-denied", output=None)
    talk.message("assistant", edit("a"), bash("make format", ""), refused, listed)
    files = touches(talk.db, talk.session_id).files.values()
    counts = {row.shown: (row.count("edit"), row.count("change"), row.changes) for row in files}
    assert counts == {"a": (1, 0, 1), "c": (0, 1, 1), "b": (0, 1, 1)}


def test_all_edits_of_a_file_as_diffs_in_order(talk: Talk) -> None:
    talk.message("user", text("One"))
    patch = "*** Begin Patch\n*** Update File: b\n@@\n-1\n+2\n*** Update File: a\n@@\n-3\n+4\n+5\n"
    talk.message("assistant", call("Write", {"file_path": "a", "content": "x\ny\n"}),
                 call("Read", {"file_path": "a"}), edit("a", "x", "z"))
    talk.message("assistant", call("apply_patch", {"input": patch}))
    row = touches(talk.db, talk.session_id).files["/home/x/api/a"]
    assert [as_text(lines) for _use, lines in diffs(talk.db, row.uses)] == [
        "+x\n+y", "-x\n+z", "-3\n+4\n+5",
    ]  # fmt: skip
    assert [row.count(kind) for kind in ("read", "write", "edit")] == [1, 1, 2]
    assert row.lines == (5, 2)


def test_batches_from_the_end_give_what_one_read_gives(
    talk: Talk, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(30):
        talk.message("user", text(f"Turn {number}"))
        talk.message("assistant", edit(f"f{number % 4}"), bash(f"echo {number}", ""))
    whole = touches(talk.db, talk.session_id)
    monkeypatch.setattr("store.queries.touches.BATCH", 7)
    found = Touches(places(talk.db, talk.session_id))
    found.add(read(talk.db, found.places, *found.next_batch))
    assert [use.text for use in found.commands] == [f"echo {n}" for n in range(26, 30)]
    while not found.is_whole:
        found.add(read(talk.db, found.places, *found.next_batch))
    assert found.files == whole.files and found.commands == whole.commands
    assert len(found.commands) == 30 and found.files["/home/x/api/f0"].changes == 8


def test_a_long_command_is_cut_in_the_list_alone(talk: Talk) -> None:
    command = "echo " + "x" * 1_000_000
    typed = "y" * 5_000
    talk.message("user", text("!"), origin="shell", backscroll={"shell": typed})
    talk.message("assistant", bash(command, ""))
    found = touches(talk.db, talk.session_id)
    assert [(len(use.text), use.length, use.by) for use in found.commands] == [
        (COMMAND_CHARACTERS, 5_000, "user"), (COMMAND_CHARACTERS, 1_000_005, "agent"),
    ]  # fmt: skip
    assert [command_text(talk.db, use, found.places) for use in found.commands] == [typed, command]
    whole = touches(talk.db, talk.session_id, whole=True)
    assert [use.text for use in whole.commands] == [typed, command]


def test_values_of_any_kind(talk: Talk) -> None:
    talk.message("user", text("One"))
    talk.message(
        "assistant", call("Read", {"file_path": "a\nb\x1b]52;c;x\x07"}), call("Edit", {"x": [1]}),
        {"type": "tool-Edit", "input": 3}, {"type": "dynamic-tool", "toolName": 4, "input": "x"},
        call("apply_patch", {"input": "*** Begin Patch\n*** Update File: \n"}), cwd=["no"],
    )  # fmt: skip
    message = talk.message("assistant", text("x"))
    # What a server's columns do not take, a file's may hold.
    data, at = ("no json", "x") if talk.db.server is None else ("[]", 1)
    talk.db.connection.execute(
        "INSERT INTO chat_parts VALUES ('p', ?, ?, 9, 'tool-Bash', ?, NULL, NULL, ?, 1)",
        (message, talk.session_id, data, at),
    )
    found = touches(talk.db, talk.session_id)
    assert list(found.files) == ["/home/x/api/a\nb\x1b]52;c;x\x07"] and found.commands == []
    with pytest.raises(NotFound):
        touches(talk.db, "ses_none")
