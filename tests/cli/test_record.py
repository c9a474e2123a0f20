"""``backscroll record``, as a command and as a process that is killed."""

from __future__ import annotations

import io
import json
import os
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from store.activity.judgement import activity_of
from store.engine.database import open_database
from store.queries import sessions
from store.system.clock import system_clock
from tests.cli.conftest import Run
from tests.store.recording import REFUSED, VECTORS, messages

ROOT = Path(__file__).parents[2]
PATIENCE_S = 120
VECTOR = VECTORS["tool-static-two-steps"]
Feed = Callable[..., Any]


def lines(chunks: list[Any]) -> bytes:
    return b"".join(json.dumps(chunk).encode() + b"\n" for chunk in chunks)


def events(chunks: list[Any]) -> bytes:
    return b"".join(b"data: " + json.dumps(c).encode() + b"\n\n" for c in chunks)


@pytest.fixture
def record(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Feed:
    """Run the command with bytes on stdin."""

    def call(stdin: bytes, *arguments: str) -> Any:
        piped = tmp_path / "stdin"
        piped.write_bytes(stdin)
        previous = signal.getsignal(signal.SIGTERM)
        try:
            with piped.open("rb") as raw:
                monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(raw))
                return run("record", "--store", tmp_path / "s.db", *arguments)
        finally:
            signal.signal(signal.SIGTERM, previous)

    return call


def kept(tmp_path: Path, session_id: str) -> list[dict[str, Any]]:
    db = open_database(tmp_path / "s.db", write=False)
    try:
        return messages(db, session_id)
    finally:
        db.close()


def state_of(tmp_path: Path, session_id: str) -> str:
    db = open_database(tmp_path / "s.db", write=False)
    try:
        row = sessions.get(db, session_id)
        assert row is not None
        return activity_of(row, now=system_clock()).state
    finally:
        db.close()


@pytest.mark.parametrize("wire", [lines, events])
def test_a_stream(wire: Callable[[list[Any]], bytes], record: Feed, tmp_path: Path) -> None:
    result = record(wire(VECTOR["chunks"]), "--user", "Weather?", "--agent", "bot")
    assert result.code == 0 and result.err == ""
    session_id = result.out.removesuffix("\n")
    assert session_id.startswith("ses_") and len(session_id) == 30
    user, answer = kept(tmp_path, session_id)
    assert user["parts"] == [{"type": "text", "text": "Weather?"}]
    assert answer == VECTOR["final"]


@pytest.mark.parametrize("name", sorted(VECTORS.keys() - {REFUSED}))
def test_every_stream_comes_back_from_an_export(name: str, record: Feed, run: Run,
                                                tmp_path: Path) -> None:
    vector = VECTORS[name]
    initial = [vector["initial"]] if "initial" in vector else []
    session_id = record(lines([*initial, *vector["chunks"]])).out.strip()
    exported = run("export", session_id, "--store", tmp_path / "s.db", "--to", "ui-messages")
    assert exported.json == [vector["final"]]


def test_bad_lines_are_named_and_passed_over(record: Feed, tmp_path: Path) -> None:
    wire = lines(VECTOR["chunks"][:5]) + b'{"type": oops\n[]\n{"type":"new-thing"}\n' + lines(
        VECTOR["chunks"][5:])
    result = record(wire, "--verbose")
    assert result.code == 0
    assert [line.split(": ")[1] for line in result.err.splitlines()] == [
        "line 6", "line 7", "line 8"]
    (message,) = kept(tmp_path, result.out.strip())
    odd = [part for part in message["parts"] if part["type"] == "data-event"]
    assert [part["data"]["chunks"] for part in odd] == [[{"type": "new-thing"}]]
    message["parts"].remove(odd[0])
    assert message == VECTOR["final"]


def test_a_session_goes_on(record: Feed, tmp_path: Path) -> None:
    session_id = record(lines(VECTOR["chunks"]), "--user", "One").out.strip()
    more = VECTORS["text-simple"]
    chunks = [{**chunk, "messageId": "other"} if chunk["type"] == "start" else chunk
              for chunk in more["chunks"]]
    result = record(lines(chunks), "--session", session_id[:20], "--user", "Two")
    assert result.out.strip() == session_id
    found = kept(tmp_path, session_id)
    assert [message["role"] for message in found] == ["user", "assistant"] * 2
    assert found[3]["parts"] == more["final"]["parts"]


def test_done_ends_a_message(record: Feed, tmp_path: Path) -> None:
    text = [{"type": "start"}, {"type": "text-start", "id": "0"},
            {"type": "text-end", "id": "0"}, {"type": "finish"}]
    wire = (events(text) + b"data: [DONE]\n\n") * 2
    assert len(kept(tmp_path, record(wire).out.strip())) == 2


def test_refusals(record: Feed, tmp_path: Path) -> None:
    assert record(b"").code == 0
    missing = record(b"", "--session", "ses_none")
    assert missing.code == 1 and "ses_none" in missing.err
    assert record(b"", "--save-on", "never").code == 2
    assert record(b"", "--save-buffer-ms", "-1").code == 2
    (tmp_path / "s.db").write_text("no database at all, and long enough to be sure of it")
    assert record(b"").code == 1


# -- a process of its own


def start(tmp_path: Path, *arguments: str) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", "tui", "record", "--store", str(tmp_path / "s.db")]
    return subprocess.Popen([*command, *arguments], stdin=subprocess.PIPE,
                            stdout=subprocess.PIPE, cwd=ROOT)


def wait_for(
    tmp_path: Path, session_id: str, message: dict[str, Any], state: str = "running"
) -> None:
    """Read until the store has the message; a store that never has it fails the test."""
    until = time.monotonic() + PATIENCE_S
    while time.monotonic() < until:
        if (kept(tmp_path, session_id)[-1:] == [message]
                and state_of(tmp_path, session_id) == state):
            return
    raise AssertionError((kept(tmp_path, session_id), state_of(tmp_path, session_id)))


@pytest.mark.parametrize("count", [1, 4, 7, 9, 15, len(VECTOR["chunks"])])
@pytest.mark.one_in(3)
def test_kill_9_at_a_chunk(count: int, tmp_path: Path) -> None:
    with start(tmp_path, "--user", "Weather?") as child:
        assert child.stdin is not None and child.stdout is not None
        session_id = child.stdout.readline().decode().strip()
        child.stdin.write(lines(VECTOR["chunks"][:count]))
        child.stdin.flush()
        running = count < len(VECTOR["chunks"])
        wait_for(tmp_path, session_id, VECTOR["snapshots"][count - 1],
                 "running" if running else "idle")
        os.kill(child.pid, signal.SIGKILL)
        child.wait()
    assert state_of(tmp_path, session_id) == ("interrupted" if running else "idle")
    connection = sqlite3.connect(tmp_path / "s.db")
    assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)
    assert connection.execute("PRAGMA foreign_key_check").fetchall() == []
    connection.close()
    other = [{"type": "start", "messageId": "msg-2"}, *VECTORS["text-simple"]["chunks"][1:]]
    with start(tmp_path, "--session", session_id) as child:
        out, _ = child.communicate(lines(other))
    assert (child.returncode, out.decode().strip()) == (0, session_id)
    found = kept(tmp_path, session_id)
    assert found[1] == VECTOR["snapshots"][count - 1]
    assert found[2]["parts"] == VECTORS["text-simple"]["final"]["parts"]
    assert state_of(tmp_path, session_id) == "idle"


def test_text_is_there_soon_though_nothing_follows_it(tmp_path: Path) -> None:
    told = VECTORS["text-simple"]
    with start(tmp_path) as child:
        assert child.stdin is not None and child.stdout is not None
        session_id = child.stdout.readline().decode().strip()
        for first, last in ((0, 4), (4, 5), (5, 7)):
            child.stdin.write(lines(told["chunks"][first:last]))
            child.stdin.flush()
            wait_for(tmp_path, session_id, told["snapshots"][last - 1])
        child.communicate()


def test_what_a_killed_run_left_open_is_stamped_by_the_next(record: Feed, tmp_path: Path) -> None:
    def endings() -> list[bool]:
        db = open_database(tmp_path / "s.db", write=False)
        rows = db.connection.execute("SELECT metadata_json FROM chat_messages WHERE role ="
                                     " 'assistant' ORDER BY created_at, id").fetchall()
        db.close()
        return ["interrupted_at" in json.loads(row[0]).get("backscroll", {}) for row in rows]

    with start(tmp_path) as child:
        assert child.stdin is not None and child.stdout is not None
        session_id = child.stdout.readline().decode().strip()
        child.stdin.write(lines(VECTOR["chunks"][:11]))
        child.stdin.flush()
        wait_for(tmp_path, session_id, VECTOR["snapshots"][10])
        child.kill()
    assert endings() == [False]
    other = [{"type": "start", "messageId": "msg-2"}, *VECTORS["text-simple"]["chunks"][1:]]
    assert record(lines(other), "--session", session_id).code == 0
    assert endings() == [True, False]


def test_a_stream_that_breaks_off_is_saved(tmp_path: Path) -> None:
    with start(tmp_path, "--save-on", "turn") as child:
        assert child.stdin is not None and child.stdout is not None
        session_id = child.stdout.readline().decode().strip()
        child.communicate(lines(VECTOR["chunks"][:9]))
    assert kept(tmp_path, session_id) == [VECTOR["snapshots"][8]]
    assert state_of(tmp_path, session_id) == "interrupted"


@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 143), (signal.SIGINT, 130)])
def test_a_process_that_is_asked_to_end_saves_first(
    number: signal.Signals, code: int, tmp_path: Path
) -> None:
    with start(tmp_path) as child:
        assert child.stdin is not None and child.stdout is not None
        session_id = child.stdout.readline().decode().strip()
        child.stdin.write(lines(VECTOR["chunks"][:9]))
        child.stdin.flush()
        wait_for(tmp_path, session_id, VECTOR["snapshots"][8])
        child.send_signal(number)
        assert child.wait() == code
    db = open_database(tmp_path / "s.db", write=False)
    row = sessions.get(db, session_id)
    db.close()
    assert row is not None
    assert json.loads(row.metadata_json)["activity"]["state"] == "interrupted"
