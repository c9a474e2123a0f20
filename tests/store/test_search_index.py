"""The search index equals its store, whatever was written, forgotten, killed or replaced."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import zstandard

from store.engine import sidecar_keeper
from store.engine.database import Database, in_transaction
from store.search.index import __main__ as keeping
from store.search.index import blocks, building, sidecar
from store.search.index.building import Indexer
from store.search.index.checking import check
from store.search.index.forgetting import forget as forget_in_index
from store.search.index.reading import Candidate, Index, IndexUnusable, open_index
from store.sync.forget import forget
from store.system.stopping import Stop
from store.verbs.fork import fork
from store.verbs.marks import rename
from store.verbs.rewind import rewind
from store.verbs.shelf import archive
from store.verbs.undo import undo
from tests.store import making
from tests.store.recording import VECTORS, record
from tests.store.talks import Talk, make_store

FORMS = ["own", "contract", "grida"]
HELD_S = 60


def bring_up(indexer: Indexer) -> None:
    """Index all that is known of."""
    let_rest_pass(indexer)
    while indexer.step() or not indexer.idle:
        let_rest_pass(indexer)
    while indexer.step():
        pass


def let_rest_pass(indexer: Indexer) -> None:
    """Have nothing wait for its time."""
    indexer.look()
    indexer.resume()


def index_of(path: Path) -> Index:
    found = open_index(path)
    assert found is not None
    return found


def build(path: Path) -> Index:
    """Index a store completely."""
    indexer = Indexer(path)
    bring_up(indexer)
    indexer.close()
    return index_of(path)


def found(index: Index, *texts: str, before: int | None = None) -> list[str]:
    """Return the candidates: message ids, and the sessions of titles."""
    candidates = list(index.candidates(texts, before=before))
    times = [each.created_at for each in candidates]
    assert times == sorted(times, reverse=True)
    return [each.message_id or each.session_id for each in candidates]


@pytest.fixture(params=FORMS)
def talk(request: pytest.FixtureRequest, tmp_path: Path) -> Talk:
    return Talk(make_store(tmp_path / "store.db", request.param))


def saying(*texts: str) -> list[dict[str, Any]]:
    return [{"type": "text", "text": text} for text in texts]


def add_many(talk: Talk, session: str, *texts: str) -> list[str]:
    """Add messages in one transaction."""
    talk.db.connection.execute("BEGIN")
    added = [talk.message(session, text=text) for text in texts]
    talk.db.connection.execute("COMMIT")
    return added


# What is found


def test_words_are_found_inside_identifiers_and_paths_and_without_case_and_accents(
    talk: Talk,
) -> None:
    session = talk.session("About the naïve parser")
    one = talk.message(session, text="class RetryLoop in src/net/retry_loop.py")
    other = talk.message(session, text="Ein Café in MÜNCHEN")
    index = build(talk.db.path)
    for text in ("retryloop", "retry-loop", "tryLo", "net/retry", "LOOP.py", "RetryLoop in src"):
        assert found(index, text) == [one], text
    for text in ("cafe", "CAFÉ", "munchen", "café in"):
        assert found(index, text) == [other], text
    assert found(index, "naive") == [session]
    assert found(index, "absent") == []


def test_texts_of_one_and_two_characters_are_found_anywhere(talk: Talk) -> None:
    session = talk.session("")
    chinese = talk.message(session, text="搜索会话历史")
    last = talk.message(session, text="x 令牌")
    index = build(talk.db.path)
    assert found(index, "会话") == found(index, "索") == found(index, "史") == [chinese]
    assert found(index, "令牌") == found(index, "牌") == found(index, "x") == [last]
    assert found(index, "牌令") == []


def test_all_texts_are_in_the_message_in_any_of_its_parts(talk: Talk) -> None:
    session = talk.session("")
    both = talk.message(session, parts=saying("alpha", "beta"))
    talk.message(session, text="alpha")
    talk.message(session, text="beta")
    index = build(talk.db.path)
    assert found(index, "alpha", "beta") == found(index, "beta", "be", "alpha") == [both]


def test_a_long_message_is_found_by_texts_of_far_parts_and_says_where_they_are(talk: Talk) -> None:
    session = talk.session("")
    filler = " ".join(f"filler{number}" for number in range(2_500))
    parts = saying(*(f"{filler} begin" if n == 0 else filler for n in range(6)), "the end")
    message = talk.message(session, parts=parts)
    index = build(talk.db.path)
    assert found(index, "begin", "the end") == [message]
    (candidate,) = index.candidates(["the end"])
    assert all(first <= 6 <= last for first, last in candidate.parts[-1:])
    assert not any(first <= 0 <= last for first, last in candidate.parts)
    (whole,) = index.candidates(["begin", "the end"])
    inside = [n for n in range(7) if any(first <= n <= last for first, last in whole.parts)]
    assert {0, 6} <= set(inside)
    assert check(talk.db.path) == []


@pytest.mark.one_in(3)
def test_a_single_line_of_a_megabyte_and_odd_characters_are_indexed(talk: Talk) -> None:
    session = talk.session("")
    long = talk.message(session, text=". x" * 200_000 + "needle" + "y, " * 200_000)
    odd = talk.message(session, text="nul\0byte 𠀀𠀁 \x1b[31mred\x1b[0m")
    index = build(talk.db.path)
    assert found(index, "xneedley") == [long]
    assert found(index, "𠀀") == found(index, "𠀀𠀁") == found(index, "nul\0byte") == [odd]
    assert check(talk.db.path) == []


def test_without_texts_all_are_candidates_and_pages_go_on_before_a_time(talk: Talk) -> None:
    session = talk.session("")
    messages = add_many(talk, session, *(f"word {number}" for number in range(300)))
    index = build(talk.db.path)
    assert found(index) == messages[::-1]
    assert found(index, "--") == messages[::-1]
    (middle,) = (each for each in index.candidates([]) if each.message_id == messages[130])
    assert found(index, "word", before=middle.created_at) == messages[130::-1]
    assert index.count(["word"]) == 300


def test_side_files_are_searched(tmp_path: Path) -> None:
    talk = Talk(make_store(tmp_path / "store.db", "own"))
    session = talk.session("")
    call = {
        "type": "tool-Bash", "toolCallId": "t", "state": "output-available", "input": {},
        "output": "cut", "resultProviderMetadata": {"backscroll": {"attachment": "out.txt"}},
    }  # fmt: skip
    message = talk.message(session, "assistant", parts=[call])
    index = build(talk.db.path)
    assert found(index, "whole output") == []
    talk.db.connection.execute(
        "INSERT INTO attachments VALUES (?, 'out.txt', 'text/plain', 16, ?)",
        (session, zstandard.compress(b"the whole output")),
    )
    talk.db.connection.execute(
        "INSERT INTO changes(session_id, message_id, changed_at) VALUES (?, ?, 0)",
        (session, message),
    )
    index = build(talk.db.path)
    assert found(index, "whole output") == [message]


# What is written


def test_what_verbs_write_is_followed(talk: Talk) -> None:
    db = talk.db
    session = talk.session("First title")
    messages = [talk.message(session, text=f"message {number}") for number in range(5)]
    indexer = Indexer(db.path)
    bring_up(indexer)
    minter, now = talk.ids, talk.now + 1
    in_transaction(db, rename, session, "Second title", now=now)
    made = in_transaction(db, fork, session, messages[2], ids=minter, now=now)
    in_transaction(db, rewind, session, messages[1], now=now)
    in_transaction(db, archive, [session], now=now)
    bring_up(indexer)
    assert check(db.path) == []
    index = index_of(db.path)
    assert session in found(index, "Second title")
    assert messages[4] in found(index, "message 4")
    assert len(found(index, "message 1")) == 2
    del made
    for _ in range(4):
        in_transaction(db, undo, now=now)
    bring_up(indexer)
    assert check(db.path) == []
    assert found(index, "First title") and not found(index, "Second title")
    indexer.close()


@pytest.mark.parametrize("name", ["text", *sorted(VECTORS)[:6]])
def test_recorded_streams_are_followed(tmp_path: Path, name: str) -> None:
    db = make_store(tmp_path / "store.db", "own")
    indexer = Indexer(db.path)
    bring_up(indexer)
    vector = VECTORS.get(name)
    chunks = vector["chunks"] if vector else [
        {"type": "start"}, {"type": "text-start", "id": "1"},
        *({"type": "text-delta", "id": "1", "delta": f"word{n} "} for n in range(40)),
        {"type": "text-end", "id": "1"}, {"type": "finish"},
    ]  # fmt: skip
    for end in range(1, len(chunks) + 1, 7):
        try:
            record(db, chunks[:end])
        except Exception:
            break
        bring_up(indexer)
    bring_up(indexer)
    assert check(db.path) == []
    indexer.close()


@pytest.mark.one_in(3)
def test_a_message_that_grows_many_times_leaves_few_blocks(talk: Talk) -> None:
    session = talk.session("")
    others = add_many(talk, session, *(f"other {number}" for number in range(30)))
    message = talk.message(session, text="grows")
    indexer = Indexer(talk.db.path)
    bring_up(indexer)
    for number in range(60):
        grow(talk.db, message, f"grows word{number}")
        note(talk.db, session, message)
        if number % 3 == 0:
            other = others[number // 3]
            grow(talk.db, other, f"changed {number}")
            note(talk.db, session, other)
        bring_up(indexer)
    (blocks,) = indexer.file.execute("SELECT count(*) FROM block").fetchone()
    assert blocks < 12
    assert check(talk.db.path) == []
    assert found(index_of(talk.db.path), "word59") == [message]
    assert found(index_of(talk.db.path), "word58") == []
    indexer.close()


def grow(db: Database, message: str, text: str) -> None:
    """Rewrite a message as a host does: no time of its moves."""
    db.connection.execute(
        "UPDATE chat_parts SET data_json = ? WHERE message_id = ?",
        (json.dumps({"type": "text", "text": text}), message),
    )


def note(db: Database, session: str, message: str | None) -> None:
    if db.form.name == "own":
        db.connection.execute(
            "INSERT INTO changes(session_id, message_id, changed_at) VALUES (?, ?, 0)",
            (session, message),
        )


def test_old_rows_that_change_without_a_log_are_found_by_a_later_walk(talk: Talk) -> None:
    session = talk.session("")
    first = talk.message(session, text="the oldest message")
    second = talk.message(session, text="to be deleted")
    for number in range(60):
        talk.message(talk.session("") if number % 2 else session, text=f"later {number}")
    indexer = Indexer(talk.db.path)
    bring_up(indexer)
    host = sqlite3.connect(talk.db.path)
    host.execute("PRAGMA foreign_keys = ON")
    host.execute("UPDATE chat_parts SET data_json = replace(data_json, 'oldest', 'eldest')")
    host.execute("DELETE FROM chat_messages WHERE id = ?", (second,))
    host.commit()
    host.close()
    bring_up(indexer)
    assert check(talk.db.path) == []
    assert found(index_of(talk.db.path), "the eldest") == [first]
    assert found(index_of(talk.db.path), "deleted") == []
    indexer.close()


def test_a_part_whose_type_alone_changes_is_indexed_again(talk: Talk) -> None:
    session = talk.session("")
    message = talk.message(session, parts=[{"type": "text", "output": "printed words"}])
    indexer = Indexer(talk.db.path)
    bring_up(indexer)
    assert found(index_of(talk.db.path), "printed") == []
    talk.db.connection.execute("UPDATE chat_parts SET type = 'tool-Bash'")
    note(talk.db, session, message)
    bring_up(indexer)
    assert found(index_of(talk.db.path), "printed") == [message]
    indexer.close()
    assert check(talk.db.path) == []


def test_changed_messages_are_named_until_they_are_indexed(talk: Talk) -> None:
    session = talk.session("")
    talk.message(session, text="one")
    indexer = Indexer(talk.db.path)
    bring_up(indexer)
    index = index_of(talk.db.path)
    assert index.changed(talk.db) == []
    new = talk.message(session, text="two")
    note(talk.db, session, new)
    assert index.changed(talk.db) == [new]
    bring_up(indexer)
    assert index.changed(talk.db) == []
    indexer.close()


# Forgetting


def leaks(folder: Path, word: str) -> list[str]:
    return [path.name for path in folder.glob("*.search*")
            if word.encode() in path.read_bytes() or word.lower().encode() in path.read_bytes()]


def test_what_is_forgotten_is_out_of_the_index_in_the_same_call(tmp_path: Path) -> None:
    talk = Talk(make_store(tmp_path / "store.db", "own"))
    kept, gone = talk.session("Kept"), talk.session("Secretwordtitle")
    stays = [talk.message(kept, text=f"common words {number}") for number in range(20)]
    goes = [talk.message(gone, text=f"common words Жщъsecret {number}") for number in range(20)]
    indexer = Indexer(talk.db.path)
    bring_up(indexer)
    # An earlier version of a message is in a block of its own.
    grow(talk.db, goes[0], "common words edited")
    note(talk.db, gone, goes[0])
    indexer.look()
    indexer.step()
    index = index_of(talk.db.path)
    assert len(found(index, "жщъsecret")) == 19
    forget(talk.db, [gone])
    assert found(index, "жщъsecret") == found(index, "secretwordtitle") == []
    assert found(index, "common words") == stays[::-1]
    assert check(talk.db.path) == []
    names = dict(indexer.file.execute("SELECT hex(term), 1 FROM posting").fetchall())
    assert "жщъ".encode().hex().upper() not in names
    index.close()
    indexer.close()
    assert leaks(tmp_path, "жщъ") == leaks(tmp_path, gone) == []
    assert leaks(tmp_path, kept) == [sidecar.index_path(talk.db.path).name]


def test_what_was_edited_away_is_in_no_byte_of_the_index(talk: Talk) -> None:
    session = talk.session("")
    # Six bytes a term: three bytes stand in the ids or in packed numbers by chance.
    edited = talk.message(session, text="the password is жщъэю")
    add_many(talk, session, *(f"message {number}" for number in range(40)))
    indexer = Indexer(talk.db.path)
    bring_up(indexer)
    path = sidecar.index_path(talk.db.path)

    def left() -> list[str]:
        files = [each for each in path.parent.iterdir() if each.name.startswith(path.name)]
        return [each.name for each in files for term in ("жщъ", "щъэ", "ъэю")
                if term.encode() in each.read_bytes()]  # fmt: skip

    assert left()
    grow(talk.db, edited, "the password is secret")
    note(talk.db, session, edited)
    bring_up(indexer)
    assert not left()
    assert found(index_of(talk.db.path), "password is secret") == [edited]
    indexer.close()
    assert check(talk.db.path) == []


def test_what_is_forgotten_while_it_is_indexed_is_not_added_again(tmp_path: Path) -> None:
    talk = Talk(make_store(tmp_path / "store.db", "own"))
    sessions = [talk.session(f"Session {number}") for number in range(3)]
    for session in sessions:
        for number in range(5):
            talk.message(session, text=f"words {number}")
    calls = 0

    def stopped() -> bool:
        nonlocal calls
        calls += 1
        if calls == 9:
            forget(talk.db, [sessions[1]])
        return False

    indexer = Indexer(talk.db.path, stopped=stopped)
    bring_up(indexer)
    assert calls > 9
    assert check(talk.db.path) == []
    assert found(index_of(talk.db.path), "Session 1") == []
    indexer.close()


@pytest.mark.parametrize("state", ["missing", "other format", "damaged"])
def test_forgetting_with_an_unusable_index_leaves_nothing_of_it(
    tmp_path: Path, state: str
) -> None:
    talk = Talk(make_store(tmp_path / "store.db", "own"))
    session = talk.session("")
    talk.message(session, text="words")
    build(talk.db.path).close()
    path = sidecar.index_path(talk.db.path)
    if state == "missing":
        sidecar.remove_files(path)
    elif state == "damaged":
        path.write_bytes(b"no database" * 1000)
    else:
        with sqlite3.connect(path) as index:
            index.execute("UPDATE about SET value = 'old' WHERE name = 'format'")
        index.close()
    forget(talk.db, [session])
    assert not path.exists()
    build(talk.db.path).close()
    assert check(talk.db.path) == []


# Files that go, come and break


def test_a_host_file_has_its_index_in_the_data_folder(tmp_path: Path) -> None:
    talk = Talk(make_host(tmp_path))
    before = making.listing(talk.db.path.parent)
    path = sidecar.index_path(talk.db.path)
    build(talk.db.path).close()
    assert path.parent.parent == Path(os.environ["XDG_DATA_HOME"]) / "backscroll"
    assert path.stat().st_mode & 0o777 == 0o600
    after = making.listing(talk.db.path.parent)
    assert {name for name in after if not name.endswith(("-wal", "-shm"))} == {
        name for name in before if not name.endswith(("-wal", "-shm"))}  # fmt: skip
    assert after["store.db"] == before["store.db"]


def make_host(folder: Path) -> Database:
    (folder / "host").mkdir()
    db = make_store(folder / "host" / "store.db", "contract")
    talk = Talk(db)
    talk.message(talk.session("Title"), text="words")
    return db


def test_a_store_that_cannot_be_written_is_indexed(tmp_path: Path) -> None:
    db = make_host(tmp_path)
    db.close()
    db.path.chmod(0o400)
    db.path.parent.chmod(0o500)
    try:
        assert len(found(build(db.path), "words")) == 1
        assert check(db.path) == []
    finally:
        db.path.parent.chmod(0o700)


def test_an_index_that_is_deleted_is_made_again(talk: Talk) -> None:
    message = talk.message(talk.session(""), text="words")
    index = build(talk.db.path)
    sidecar.remove_files(sidecar.index_path(talk.db.path))
    assert found(index, "words") == []
    assert not index.coverage().whole
    assert open_index(talk.db.path) is None
    build(talk.db.path).close()
    assert found(index, "words") == [message]
    assert index.coverage().whole


def test_an_indexer_notices_that_its_file_was_deleted(talk: Talk) -> None:
    talk.message(talk.session(""), text="words")
    indexer = Indexer(talk.db.path)
    bring_up(indexer)
    sidecar.remove_files(sidecar.index_path(talk.db.path))
    with pytest.raises(FileNotFoundError):
        indexer.look()
    indexer.close()


def test_a_store_that_is_replaced_is_indexed_anew(talk: Talk, tmp_path: Path) -> None:
    talk.message(talk.session("Old"), text="old words")
    other = Talk(make_store(tmp_path / "other.db", "contract"))
    new = other.message(other.session("New"), text="new words")
    other.db.close()
    talk.db.close()
    indexer = Indexer(talk.db.path)
    bring_up(indexer)
    index = index_of(talk.db.path)
    was = sidecar.index_path(talk.db.path)
    for ending in ("-wal", "-shm", ""):
        talk.db.path.with_name(talk.db.path.name + ending).unlink(missing_ok=True)
    shutil.copyfile(tmp_path / "other.db", talk.db.path)
    assert not index.coverage().whole
    bring_up(indexer)
    indexer.close()
    if sidecar.index_path(talk.db.path) == was:
        assert found(index, "words") == [new]
    index = build(talk.db.path)
    assert found(index, "words") == [new]
    assert check(talk.db.path) == []


def test_a_half_made_index_goes_on_and_says_how_far_it_is(
    talk: Talk, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("store.search.index.building.FIRST_DOCUMENTS", 10)
    session = talk.session("")
    messages = add_many(talk, session, *(f"word {number}" for number in range(40)))
    indexer = Indexer(talk.db.path)
    indexer.step()
    indexer.close()
    index = index_of(talk.db.path)
    covered = index.coverage()
    assert not covered.whole and covered.total == 40
    newest = found(index, "word")
    assert newest == messages[: -len(newest) - 1 : -1] and len(newest) == 10
    assert [each.created_at for each in index.candidates([])][-1] == covered.since
    build(talk.db.path).close()
    assert index.coverage().whole
    assert check(talk.db.path) == []


# Processes


def start(store: Path, *options: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "store.search.index", "--json", *options, str(store)],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip


def until(true: Callable[[], bool]) -> None:
    ends = time.monotonic() + HELD_S
    while not true():
        assert time.monotonic() < ends
        time.sleep(0.02)


def is_equal(store: Path) -> bool:
    try:
        return check(store) == []
    except Exception:
        return False


@pytest.mark.one_in(3)
def test_the_process_follows_and_ends_with_its_parent(talk: Talk) -> None:
    session = talk.session("")
    talk.message(session, text="first")
    process = start(talk.db.path, "--until-stdin-closes")
    until(lambda: is_equal(talk.db.path))
    new = talk.message(session, text="second message")
    note(talk.db, session, new)
    until(lambda: found(index_of(talk.db.path), "second") == [new])
    assert process.stdin is not None
    process.stdin.close()
    assert process.wait(HELD_S) == 0


@pytest.mark.one_in(3)
def test_a_second_process_waits_and_goes_on_after_a_kill(talk: Talk) -> None:
    session = talk.session("")
    add_many(talk, session, *(f"word {number}" for number in range(200)))
    first = start(talk.db.path)
    until(lambda: sidecar.index_path(talk.db.path).exists())
    second = start(talk.db.path)
    assert second.stdout is not None
    assert json.loads(second.stdout.readline()) == {"event": "standby"}
    first.send_signal(signal.SIGKILL)
    first.wait(HELD_S)
    until(lambda: is_equal(talk.db.path))
    new = talk.message(session, text="after the kill")
    note(talk.db, session, new)
    until(lambda: is_equal(talk.db.path))
    second.send_signal(signal.SIGTERM)
    assert second.wait(HELD_S) == 0


def test_an_index_is_whole_after_kills_at_any_moment(tmp_path: Path) -> None:
    talk = Talk(make_store(tmp_path / "store.db", "own"))
    session = talk.session("")
    texts = (f"word {number} " + f"more {number * 7919} " * 20 for number in range(3_000))
    add_many(talk, session, *texts)
    for delay in (0.3, 0.5, 0.7):
        process = start(talk.db.path)
        time.sleep(delay)
        process.kill()
        process.wait(HELD_S)
    done = start(talk.db.path, "--once")
    assert done.wait(HELD_S) == 0
    assert check(talk.db.path) == []


def test_two_indexers_without_a_lock_make_one_index(talk: Talk) -> None:
    session = talk.session("")
    add_many(talk, session, *(f"word {number}" for number in range(30)))
    indexers = [Indexer(talk.db.path) for _ in range(2)]
    for number in range(12):
        new = talk.message(session, text=f"later {number}")
        note(talk.db, session, new)
        for indexer in indexers:
            let_rest_pass(indexer)
            indexer.step()
    for indexer in indexers:
        bring_up(indexer)
    assert check(talk.db.path) == []
    for indexer in indexers:
        indexer.close()


@pytest.mark.one_in(3)
def test_a_damaged_index_is_made_again_by_the_process(talk: Talk) -> None:
    session = talk.session("")
    add_many(talk, session, *(f"word {number * 7919}" for number in range(300)))
    build(talk.db.path).close()
    path = sidecar.index_path(talk.db.path)
    size = path.stat().st_size
    with path.open("r+b") as file:
        for place in range(8192, size, 4096):
            file.seek(place)
            file.write(os.urandom(2048))
    talk.message(session, text="new")
    note(talk.db, session, None)
    process = start(talk.db.path)
    until(lambda: is_equal(talk.db.path))
    process.kill()
    process.wait(HELD_S)


@pytest.mark.parametrize("damage", ["empty", "version", "table"])
def test_damage_that_an_open_indexer_does_not_meet_is_mended(
    talk: Talk, monkeypatch: pytest.MonkeyPatch, damage: str
) -> None:
    monkeypatch.setattr(sidecar_keeper, "CHECKED_EVERY_S", 0.0)
    talk.message(talk.session(""), text="word")
    path, stop = sidecar.index_path(talk.db.path), Stop()
    keeper = keeping.keeper(talk.db.path, stop, keeping.Teller(as_json=True))
    until(lambda: keeper.work() is not None and is_equal(talk.db.path))
    if damage == "empty":
        os.truncate(path, 0)
    else:
        other = sqlite3.connect(path)
        other.execute("DROP TABLE posting" if damage == "table" else
                      "UPDATE about SET value = '0' WHERE name = 'format'")
        other.commit()
        other.close()
    until(lambda: keeper.work() is not None and is_equal(talk.db.path))
    keeper.drop()


def test_a_search_has_a_damaged_index_made_again(talk: Talk) -> None:
    add_many(talk, talk.session(""), *(f"word {number * 7919}" for number in range(300)))
    index = build(talk.db.path)
    path = sidecar.index_path(talk.db.path)
    with path.open("r+b") as file:
        for place in range(8192, path.stat().st_size, 4096):
            file.seek(place)
            file.write(os.urandom(4096))
    with pytest.raises(IndexUnusable):
        list(index.candidates(["word"]))
    assert not path.exists()
    index.close()
    assert check(talk.db.path) != []
    build(talk.db.path).close()
    assert check(talk.db.path) == []


def test_the_bitmaps_of_all_blocks_are_counted_once_for_each_state_of_the_file(
    talk: Talk, monkeypatch: pytest.MonkeyPatch
) -> None:
    session = talk.session("")
    statements: list[str] = []

    def opened(path: Path, open_file: Any = sidecar.open_for_reading) -> Any:
        connection = open_file(path)
        connection.set_trace_callback(statements.append)
        return connection

    monkeypatch.setattr(sidecar, "open_for_reading", opened)
    talk.message(session, text="words")
    index = build(talk.db.path)
    for messages in (1, 2):
        for _ in range(3):
            covered = index.coverage()
            assert covered.whole and covered.messages == messages
            assert len(found(index, "words")) == messages and found(index, "absent") == []
        assert sum("FROM block ORDER" in each for each in statements) == 1
        added = talk.message(session, text="more words")
        if talk.db.form.name == "own":
            talk.db.connection.execute(
                "INSERT INTO changes(session_id, message_id, changed_at) VALUES (?, ?, 0)",
                (session, added))
        build(talk.db.path).close()
        statements.clear()


def test_full_blocks_are_not_read_for_a_text_that_they_lack(
    talk: Talk, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(blocks, "FULL", 2)
    monkeypatch.setattr(building, "CAPACITY", 2)
    session = talk.session("")
    messages = add_many(talk, session, *(f"words {'even' if n % 2 else 'odd'}" for n in range(39)))
    messages.append(*add_many(talk, session, "words zanzibar"))
    index = build(talk.db.path)
    statements: list[str] = []
    assert index._connection is not None
    index._connection.set_trace_callback(statements.append)

    def lists_read() -> int:
        read = sum("FROM posting" in each for each in statements)
        statements.clear()
        return read

    assert found(index, "absent") == [] and lists_read() <= 1
    assert found(index, "zanzibar") == messages[-1:] and lists_read() <= 2
    assert found(index, "words", "zanzibar") == messages[-1:] and lists_read() <= 4
    assert sorted(found(index, "odd")) == sorted(messages[:-1:2])
    first = next(index.candidates(["words"]))
    assert first.message_id == messages[-1]
    assert check(talk.db.path) == []
    index.close()


def test_an_indexer_goes_on_once_a_full_disk_has_room(talk: Talk) -> None:
    session = talk.session("")
    add_many(talk, session, *(f"word {number * 7919} {number * 104729}" for number in range(300)))
    indexer = Indexer(talk.db.path)
    indexer.file.execute("PRAGMA max_page_count = 20").fetchall()
    with pytest.raises(sqlite3.OperationalError, match="full"):
        bring_up(indexer)
    assert not index_of(talk.db.path).coverage().whole
    indexer.file.execute("PRAGMA max_page_count = 1000000").fetchall()
    bring_up(indexer)
    new = talk.message(session, text="later words")
    note(talk.db, session, new)
    indexer.file.execute("PRAGMA max_page_count = 1").fetchall()
    with contextlib.suppress(sqlite3.OperationalError):
        bring_up(indexer)
    indexer.file.execute("PRAGMA max_page_count = 1000000").fetchall()
    bring_up(indexer)
    assert check(talk.db.path) == []
    indexer.close()


def test_a_reader_of_a_store_does_not_hold_its_log(tmp_path: Path) -> None:
    """A host can empty its ``-wal`` between any two messages."""
    db = make_host(tmp_path)
    talk = Talk(db)
    session = talk.session("")
    add_many(talk, session, *(f"word {number}" for number in range(50)))
    host = sqlite3.connect(db.path)
    host.execute("PRAGMA journal_mode = WAL")
    host.execute("PRAGMA busy_timeout = 0")
    busy = []

    def stopped() -> bool:
        host.execute("UPDATE chat_sessions SET updated_at = updated_at + 1")
        host.commit()
        busy.append(host.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()[0])
        return len(busy) > 40

    indexer = Indexer(db.path, stopped=stopped)
    indexer.step()
    assert set(busy) == {0} and len(busy) > 40
    indexer.close()
    host.close()


def test_a_search_leaves_the_index_that_is_removed_from_under_it(talk: Talk) -> None:
    session = talk.session("")
    add_many(talk, session, *(f"word {number}" for number in range(100)))
    index = build(talk.db.path)
    candidates = index.candidates(["word"])
    first: Candidate = next(candidates)
    forget_in_index(talk.db.path, [session])
    assert len([first, *candidates]) == 100
    assert found(index, "word") == []
