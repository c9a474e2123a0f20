"""Files at each point of a session: from copies, results and edits made again."""

from __future__ import annotations

import hashlib
import json
import os
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from store.engine.database import Database, open_database
from store.engine.values import decoded
from store.files.disk import Present, present, standing
from store.files.history import (
    Content,
    at_message,
    checkpoints,
    points_of,
    session_files,
)
from store.sync.engine import Sync
from store.sync.settings import Settings
from tests.sources.samples import SAMPLES
from tests.store.files.test_effects import beside, call
from tests.tui.inspected import Talk, text

A = "/home/x/api/a.py"
B = "/home/x/api/b.py"


@pytest.fixture
def talk(db: Database) -> Talk:
    return Talk(db)


def edit(old: str, new: str, path: str = A, **more: Any) -> dict[str, Any]:
    return call("Edit", {"file_path": path, "old_string": old, "new_string": new}, **more)


def write(content: str, path: str = A) -> dict[str, Any]:
    return call("Write", {"file_path": path, "content": content})


def states(talk: Talk, key: str = A) -> list[tuple[str, str, bytes | None]]:
    of = session_files(talk.db, talk.session_id)
    return [(point.kind, point.content.origin, point.content.body)
            for point in points_of(talk.db, of, key)]


def source(talk: Talk, kind: str, path: Path) -> None:
    talk.db.connection.execute(
        "UPDATE chat_sessions SET metadata_json = ?",
        (json.dumps({"source": {"kind": kind, "id": "s", "path": str(path)}}),),
    )


def test_edits_are_made_again_on_what_was_written(talk: Talk) -> None:
    talk.message("user", text("One"))
    first = talk.message("assistant", write("a\nb\n"), edit("a", "1"))
    talk.message("user", text("Two"))
    talk.message("assistant", edit("b", "2"), edit("c", "3", state="output-error", output=None))
    assert states(talk) == [
        ("found", "unknown", None), ("write", "written", b"a\nb\n"),
        ("edit", "replayed", b"1\nb\n"), ("edit", "replayed", b"1\n2\n"),
    ]  # fmt: skip
    of = session_files(talk.db, talk.session_id)
    points = points_of(talk.db, of, A)
    assert points[-1].content.edits == 2
    then = at_message(of, points, first)
    assert then is not None and then.content.body == b"1\nb\n"


def test_an_edit_that_does_not_fit_makes_the_rest_unknown(talk: Talk) -> None:
    talk.message("user", text("One"))
    talk.message("assistant", write("a"), edit("x", "1"), edit("1", "2"), write("new"))
    assert [(kind, origin) for kind, origin, _ in states(talk)] == [
        ("found", "unknown"), ("write", "written"), ("edit", "unknown"), ("edit", "unknown"),
        ("write", "written"),
    ]  # fmt: skip


def test_the_text_before_the_next_call_says_what_an_edit_made(talk: Talk) -> None:
    talk.message("user", text("One"))
    talk.message("assistant", edit("a", "b"), edit("b", "c", **beside(originalFile="b!")))
    assert states(talk) == [
        ("found", "unknown", None), ("edit", "recorded", b"b!"), ("edit", "replayed", b"c!"),
    ]  # fmt: skip


def test_a_change_by_something_else_is_a_point(talk: Talk) -> None:
    talk.message("user", text("One"))
    talk.message("assistant", write("a"), edit("z", "c", **beside(originalFile="z")))
    assert states(talk)[1:] == [
        ("write", "written", b"a"), ("seen", "recorded", b"z"), ("edit", "replayed", b"c"),
    ]  # fmt: skip


def test_a_reading_without_the_last_newline_is_no_change(talk: Talk) -> None:
    read = call("Read", {"file_path": A}, output="1\ta\n2\tb")
    talk.message("user", text("One"))
    talk.message("assistant", write("a\r\nb"), read, edit("a", "1"))
    assert [(kind, body) for kind, _, body in states(talk)] == [
        ("found", None), ("write", b"a\r\nb"), ("edit", b"1\r\nb"),
    ]  # fmt: skip


def test_a_reading_is_what_the_first_edit_is_made_in(talk: Talk) -> None:
    read = call("Read", {"file_path": A}, output="a\nb\n")
    talk.message("user", text("One"))
    talk.message("assistant", read, edit("a", "1"))
    assert [origin for _, origin, _ in states(talk)] == ["unknown", "unknown"]
    source(talk, "droid", Path("/nowhere"))
    assert states(talk) == [("found", "read", b"a\nb\n"), ("edit", "replayed", b"1\nb\n")]


def test_a_moved_file_keeps_its_content(talk: Talk) -> None:
    talk.message("user", text("One"))
    talk.message("assistant", write("a"), call("move_file", {"source": A, "destination": B}),
                 edit("a", "b", B), call("delete_file", {"path": B}))
    assert states(talk)[-1] == ("move", "missing", None)
    assert states(talk, B)[1:] == [
        ("move", "written", b"a"), ("edit", "replayed", b"b"), ("delete", "missing", None),
    ]  # fmt: skip


def test_files_that_are_moved_in_a_circle_end(talk: Talk) -> None:
    talk.message("user", text("One"))
    talk.message("assistant", call("move_file", {"source": A, "destination": B}),
                 call("move_file", {"source": B, "destination": A}))
    assert [kind for kind, *_ in states(talk)] == ["found", "move", "move"]


def test_the_copies_of_claude_code_come_first(talk: Talk, tmp_path: Path) -> None:
    talk.message("user", text("One"))
    talk.message("assistant", edit("a", "b", took=10))
    at = talk.at
    name = hashlib.sha256(A.encode()).hexdigest()[:16]
    kept = tmp_path / "file-history" / "s"
    kept.mkdir(parents=True)
    for number, content in ((1, b"a\xff"), (2, b"edited by hand")):
        (kept / f"{name}@v{number}").write_bytes(content)
        os.utime(kept / f"{name}@v{number}", (at / 1000 + number - 1,) * 2)
    source(talk, "claude-code", tmp_path / "projects" / "-home" / "s.jsonl")
    assert states(talk) == [
        ("found", "copy", b"a\xff"), ("edit", "replayed", b"b\xff"),
        ("seen", "copy", b"edited by hand"),
    ]  # fmt: skip


@pytest.mark.parametrize("name", ["../../secret", "/etc/passwd", "0" * 16 + "@v1/../x", 7])
def test_a_note_cannot_name_another_file(talk: Talk, tmp_path: Path, name: object) -> None:
    talk.message("user", text("One"))
    talk.message("assistant", edit("a", "b"))
    log = tmp_path / "projects" / "-home" / "s.jsonl"
    log.parent.mkdir(parents=True)
    (tmp_path / "secret").write_text("a secret")
    log.write_text(json.dumps({"type": "file-history-delta", "trackingPath": "a.py",
                               "backup": {"backupFileName": name}}) + "\n")
    source(talk, "claude-code", log)
    assert all(body is None for _, _, body in states(talk))


def add_object(folder: Path, kind: str, body: bytes) -> str:
    whole = b"%s %d\0" % (kind.encode(), len(body)) + body
    name = hashlib.sha1(whole, usedforsecurity=False).hexdigest()
    path = folder / "objects" / name[:2] / name[2:]
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(zlib.compress(whole))
    return name


def add_tree(folder: Path, content: bytes) -> str:
    blob = add_object(folder, "blob", content)
    return add_object(folder, "tree", b"100644 a.py\0" + bytes.fromhex(blob))


def test_the_snapshots_of_opencode(talk: Talk, tmp_path: Path) -> None:
    folder = tmp_path / "snapshot" / "project" / "hash"
    first, second = add_tree(folder, b"a"), add_tree(folder, b"c")
    talk.message("user", text("One"))
    talk.message("assistant", edit("nothing that fits", "b"), snapshot_id=first)
    talk.message("assistant", text("Done"), snapshot_id=second)
    source(talk, "opencode", tmp_path / "opencode.db")
    assert states(talk) == [("found", "copy", b"a"), ("edit", "copy", b"c")]
    last = talk.message("assistant", edit("nothing", "x"), snapshot_id=second)
    third = add_tree(folder, b"d")
    talk.records(last, json.dumps({"data": {"type": "step-finish", "snapshot": third}}))
    assert states(talk)[2:] == [("edit", "copy", b"d")]


def test_the_checkpoints_of_gemini(talk: Talk, tmp_path: Path) -> None:
    folder = tmp_path / "history" / "api" / ".git"
    tree = add_tree(folder, b"a")
    commit = add_object(folder, "commit", f"tree {tree}\nauthor x\n\nwords".encode())
    point = tmp_path / "tmp" / "api" / "checkpoints" / "p.json"
    point.parent.mkdir(parents=True)
    point.write_text(json.dumps({"commitHash": commit}))
    edited = edit("a", "b")
    edited["resultProviderMetadata"] = {"backscroll": {"restore_point": "p.json"}}
    talk.message("user", text("One"))
    message = talk.message("assistant", edited)
    source(talk, "gemini", tmp_path / "tmp" / "api" / "chats" / "s.jsonl")
    assert states(talk) == [("found", "copy", b"a"), ("edit", "replayed", b"b")]
    of = session_files(talk.db, talk.session_id)
    (one,) = checkpoints(talk.db, of.places)
    assert (one.name, one.message_id, one.turn) == ("p.json", message, 1)


@pytest.fixture(scope="module")
def samples(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Database]:
    folder = tmp_path_factory.mktemp("samples")
    database = open_database(folder / "library.db", create=True)
    for sample in SAMPLES:
        if sample.kind in ("claude-code", "kimi", "y-agent", "opencode"):
            Sync(database, Settings(helpers=0)).run([sample.copied(folder)])
    yield database
    database.close()


@pytest.mark.parametrize(("kind", "expected"), [
    # Compared by hand with the agents' files.
    ("claude-code", [("found", "copy"), ("edit", "replayed"), ("seen", "copy"), ("edit", "copy")]),
    ("kimi", [("found", "copy"), ("edit", "copy")]),
    ("opencode", [("found", "recorded"), ("edit", "recorded")]),
])  # fmt: skip
def test_samples_of_agents(
    samples: Database, kind: str, expected: list[tuple[str, str]]
) -> None:
    found = []
    rows = samples.connection.execute("SELECT id, metadata_json FROM chat_sessions").fetchall()
    for session_id, metadata in rows:
        if decoded(metadata)["source"]["kind"] == kind:
            of = session_files(samples, session_id)
            found += [[(point.kind, point.content.origin) for point in points_of(
                samples, of, key)] for key in of.files]
    assert expected in found


def test_the_checkpoints_of_y_agent(samples: Database) -> None:
    rows = samples.connection.execute("SELECT id FROM chat_sessions").fetchall()
    named = {one.kept_by for (session_id,) in rows for one in checkpoints(
        samples, session_files(samples, session_id).places)}
    assert named == {"y-agent"}


def test_how_a_content_is_to_the_disk(tmp_path: Path) -> None:
    path = tmp_path / "a"
    content = Content("written", b"a")
    assert standing(content, present(str(path))) == "gone"
    path.write_bytes(b"a")
    assert standing(content, present(str(path))) == "same"
    path.write_bytes(b"b")
    assert standing(content, present(str(path))) == "changed"
    assert standing(Content("missing"), present(str(path))) == "there"
    assert standing(Content("unknown"), present(str(path))) == "unknown"
    assert standing(content, present("relative/a")) == "unknown"
    assert present(str(tmp_path)) == Present("other")
    os.mkfifo(tmp_path / "pipe")
    assert present(str(tmp_path / "pipe")).state == "other"


def test_a_saved_conversation_of_gemini_is_a_checkpoint_behind_its_message(talk: Talk) -> None:
    talk.message("user", text("One"), source={"id": "u"})
    answer = talk.message("assistant", text("Two"), source={"id": "g"})
    saved = [{"tag": "before", "message_source_id": "g"}, {"tag": 7, "message_source_id": "u"},
             {"tag": "lost", "message_source_id": "none"}, {"tag": "unplaced"}, "odd"]
    talk.db.connection.execute(
        "UPDATE chat_sessions SET metadata_json = ? WHERE id = ?",
        (json.dumps({"backscroll": {"checkpoints": saved}}), talk.session_id))
    (found,) = checkpoints(talk.db, session_files(talk.db, talk.session_id).places)
    assert (found.name, found.kept_by, found.message_id, found.after) == (
        "before", "Gemini", answer, True)
