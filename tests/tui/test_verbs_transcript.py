from __future__ import annotations

import asyncio
import json
import threading
from pathlib import Path

import pytest

from store.engine.database import Database, open_database
from store.queries import sessions
from tests.store.making import contract, grida
from tests.tui.seeded import SESSION, START, Said, long_talk, make_store, message_id, text, tool
from tests.tui.stores import NOW
from tests.tui.verbs_app import Running, drawn, query, running, written

USAGE = {"usage": {"input": 100, "output": 50, "reasoning": 0, "cache_read": 850, "cache_write": 0}}


def talk() -> list[Said]:
    said: list[Said] = []
    for n in range(4):
        said.append(Said("user", [text(f"Prompt {n}")]))
        said.append(Said("assistant", [
            text(f"Answer {n}"), tool("Read", {"file_path": "a.py"}, "x", call=f"r{n}"),
        ], dict(USAGE)))
    return said


def visible(path: Path, session_id: str) -> list[str]:
    return [row[0] for row in query(
        path, "SELECT id FROM chat_messages WHERE session_id = ? AND"
        " json_extract(metadata_json, '$.hidden_at') IS NULL ORDER BY created_at, id", session_id)]


def forks(path: Path) -> list[tuple[str, str, str | None]]:
    return query(
        path, "SELECT id, parent_message_id, json_extract(metadata_json,"
        " '$.backscroll.draft_prompt') FROM chat_sessions WHERE parent_id IS NOT NULL")


async def at(run: Running, number: int) -> None:
    await run.open(SESSION, message_id(number))
    assert run.transcript.shown.message_id == message_id(number)


async def test_fork_shows_what_it_copies_and_opens_the_fork(tmp_path: Path) -> None:
    path = make_store(tmp_path / "s.db", talk())
    async with running(path) as run:
        await at(run, 3)
        await run.press("f")
        shown = run.dialog()
        assert "A session (2)" in shown
        assert "4 messages, 6 parts, 2 tool calls" in shown
        await run.press("escape")
        assert forks(path) == []
        await run.press("f", "enter")
        ((made, parent_message, draft),) = forks(path)
        assert (parent_message, draft) == (message_id(3), None)
        assert run.app.main.opener.shown == made
        assert run.transcript.session is not None and run.transcript.session.id == made
        assert run.sessions.selected_id == made
        assert run.last == "Forked “A session (2)” · U undoes"
        await run.press("U")
        assert forks(path) == []
        assert run.app.main.opener.shown == SESSION
        await run.press("ctrl+r")
        assert run.app.main.opener.shown == made


async def test_undo_says_why_it_keeps_a_fork_and_goes_on_before_it(tmp_path: Path) -> None:
    path = make_store(tmp_path / "s.db", talk())
    async with running(path) as run:
        await at(run, 3)
        await run.press("B", *"here", "enter", "f", "enter")
        ((made, _, _),) = forks(path)
        other = open_database(path)
        other.connection.execute(
            "INSERT INTO chat_messages(id, session_id, role, metadata_json, created_at,"
            " updated_at) VALUES ('msg_more', ?, 'user', '{}', ?, ?)", (made, NOW, NOW))
        other.close()
        await run.press("U")
        assert run.last == (
            "Not undone: forked “A session (2)”: the fork has grown since it was made, so it stays;"
            " it can be archived instead · U undoes the change before it"
        )
        assert forks(path) and run.app.main.opener.shown == made
        await run.press("U")
        assert run.last == "Undone: labelled “here” · ctrl+r redoes"
        assert forks(path)


async def test_a_fork_that_is_undone_while_it_is_opened_is_not_called_gone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, undone, get = make_store(tmp_path / "s.db", talk()), threading.Event(), sessions.get

    def get_late(db: Database, session_id: str) -> object:
        assert session_id == SESSION or undone.wait(60)
        return get(db, session_id)

    async with running(path) as run:
        await at(run, 3)
        await run.press("f", "enter")
        await run.press("U")
        show = run.app.show_written

        async def show_late() -> None:
            undone.set()
            await run.app.main.opener.opened()
            await show()

        await run.press("ctrl+r")
        ((made, _, _),) = forks(path)
        await run.open(SESSION)
        monkeypatch.setattr(sessions, "get", get_late)
        monkeypatch.setattr(run.app, "show_written", show_late)
        run.app.open_session(made)
        await run.press("U")
        assert run.last.startswith("Undone: forked") and forks(path) == []
        assert not [words for words in run.told if "no longer" in words]
        assert run.app.main.opener.shown == SESSION
        assert run.transcript.session is not None and run.transcript.session.id == SESSION


async def test_fork_before_hands_the_text_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = make_store(tmp_path / "s.db", talk())
    async with running(path) as run:
        await at(run, 5)
        await run.press("F")
        assert "Prompt 2" in run.dialog()
        assert "4 messages" in run.dialog()
        monkeypatch.setattr("tui.kit.editing.edit_text", lambda app, given: given + " now")
        await run.press("ctrl+e")
        assert "Prompt 2 now" in run.dialog()
        await run.press("enter")
        ((made, parent_message, draft),) = forks(path)
        assert (parent_message, draft) == (message_id(3), "Prompt 2 now")
        assert run.app.clipboard == "Prompt 2 now" or "Prompt 2 now" in "".join(run.told)
        assert "C continues with the text" in "".join(run.told)
        assert run.app.main.opener.shown == made
        await run.open(SESSION, message_id(0))
        await run.press("F")
        assert run.last.startswith("Nothing comes before the first message")


async def test_rewind_previews_hides_and_restores(tmp_path: Path) -> None:
    path = make_store(tmp_path / "s.db", talk())
    async with running(path) as run:
        await at(run, 3)
        await run.press("r")
        shown = run.dialog()
        assert "files are not changed" in shown
        assert "4 messages, 2 tool calls, 2.0k tokens" in shown
        assert "6 messages, 3 tool calls, 3.0k tokens" in shown
        await run.press("escape")
        assert len(visible(path, SESSION)) == 8
        await run.press("r", "enter")
        assert visible(path, SESSION) == [message_id(n) for n in range(4)]
        assert run.last == "Hidden: 4 messages, files were not changed · U undoes"
        await run.press("x")
        assert run.last == "Restored 4 messages · U undoes"
        assert len(visible(path, SESSION)) == 8
        await run.press("x")
        assert run.last == "Nothing is hidden in this session"
        await run.press("r", "enter", "U")
        assert run.last.startswith("Undone: ")
        assert not any(each.startswith("Another program") for each in run.told)


SHOWN_AGAIN = "Another program shows 4 rewound messages again · ctrl+r hides them again"


async def test_a_rewind_that_a_hosts_write_undoes_is_told_and_done_again(tmp_path: Path) -> None:
    path = make_store(tmp_path / "s.db", talk())
    async with written(path) as database:
        database.connection.execute("PRAGMA application_id = 0")

    async def written_anew(run: Running) -> None:
        # A host that writes all messages of a session at each step.
        async with written(path) as database:
            database.connection.execute(
                "UPDATE chat_messages SET metadata_json = json_remove(metadata_json,"
                " '$.hidden_at')")
            database.connection.execute("UPDATE chat_sessions SET updated_at = updated_at + 1")
        run.app.main.watcher.poller.poll(file=True)
        await run.quiet()

    async def told_of_it(run: Running, times: int) -> None:
        # Changes that follow one another closely are looked at together, a little later.
        async with asyncio.timeout(120):
            while sum(each == SHOWN_AGAIN for each in run.told) < times:
                await asyncio.sleep(0.01)
                await run.quiet()

    async with running(path) as run:
        await at(run, 3)
        await run.press("r", "enter")
        kept = [message_id(n) for n in range(4)]
        assert visible(path, SESSION) == kept
        await written_anew(run)
        await told_of_it(run, 1)
        assert run.last == SHOWN_AGAIN
        told = len(run.told)
        await written_anew(run)
        assert len(run.told) == told
        await run.press("ctrl+r")
        assert run.last.startswith("Hid 4 messages again")
        assert visible(path, SESSION) == kept
        await written_anew(run)
        await told_of_it(run, 2)
        await run.press("U")
        await written_anew(run)
        assert run.last.startswith("Undone: ")


async def test_the_latest_turn_alone_is_rewound_from_the_end(tmp_path: Path) -> None:
    path = make_store(tmp_path / "s.db", talk())
    async with running(path) as run:
        await at(run, 7)
        await run.press("r")
        assert "nothing comes after it" in run.dialog()
        assert "Hide the latest turn" in run.dialog()
        await run.press("enter")
        assert visible(path, SESSION) == [message_id(n) for n in range(6)]
        await at(run, 5)
        await run.press("r", "enter")
        assert visible(path, SESSION) == [message_id(n) for n in range(4)]
        await run.press("x")
        assert "the newest first" in run.dialog()
        await run.press("j", "enter")
        assert visible(path, SESSION) == [message_id(n) for n in (0, 1, 2, 3, 6, 7)]


async def test_nothing_after_is_refused(tmp_path: Path) -> None:
    path = make_store(tmp_path / "s.db", [Said("user", [text("Only this")])])
    async with running(path) as run:
        await at(run, 0)
        await run.press("r")
        assert run.last == "Nothing comes after this message, so there is nothing to hide"


@pytest.mark.parametrize("key", ["f", "r"])
async def test_a_running_session_is_refused(key: str, tmp_path: Path) -> None:
    said = [*talk(), Said("assistant", [
        tool("Bash", {"command": "make"}, state="input-available", call="b")], at=NOW + 20_000)]
    path = make_store(tmp_path / "s.db", said)
    async with running(path) as run:
        await at(run, 1)
        await run.press(key)
        assert run.last == (
            "The session is running (Bash has no result yet); try again when it is idle")
        assert run.app.screen is run.app.main


@pytest.mark.parametrize("key", ["f", "r", "B"])
@pytest.mark.one_in(3)
async def test_a_hidden_message_is_refused(key: str, tmp_path: Path) -> None:
    said = talk()
    said[6].metadata["hidden_at"] = said[7].metadata["hidden_at"] = START + 99_000
    path = make_store(tmp_path / "s.db", said)
    async with running(path) as run:
        await at(run, 6)
        await run.press(key)
        if key == "B":
            await run.press("x", "enter")
        assert run.last == (
            "This message is hidden by a rewind; restore it first")


@pytest.mark.parametrize("key", ["f", "r"])
async def test_a_message_of_another_session_is_refused(key: str, tmp_path: Path) -> None:
    path = make_store(tmp_path / "s.db", talk())
    async with running(path) as run:
        await at(run, 7)
        other = open_database(path)
        other.connection.execute(
            "INSERT INTO chat_sessions(id, agent, model_json, metadata_json, created_at,"
            " updated_at) VALUES ('ses_other', 'x', '{}', '{}', 1, 1)")
        other.connection.execute(
            "UPDATE chat_messages SET session_id = 'ses_other' WHERE id = ?", (message_id(7),))
        other.close()
        await run.press(key)
        assert run.last == (
            f"Message {message_id(7)} belongs to session ses_other, not to {SESSION}")


@pytest.mark.parametrize("key", ["f", "F", "r", "x", "B"])
@pytest.mark.one_in(3)
async def test_a_store_that_is_read_only_says_so(key: str, tmp_path: Path) -> None:
    path = make_store(tmp_path / "s.db", talk())
    database = open_database(path)
    database.connection.execute("PRAGMA user_version = 999")
    database.close()
    async with running(path) as run:
        await at(run, 3)
        await run.press(key)
        assert "newer" in run.last
        assert run.app.screen is run.app.main


async def test_labels_are_set_listed_jumped_to_and_taken_off(tmp_path: Path) -> None:
    path = make_store(tmp_path / "s.db", talk())
    async with running(path) as run:
        await at(run, 2)
        await run.press("apostrophe")
        assert run.last == (
            "No marks, and no labels in this session · m sets a mark · B a label")
        await run.press("B", *"here", "enter")
        assert run.last == "Labelled “here” · U undoes"
        assert "You  “here”" in drawn(run.app.screen)
        await at(run, 6)
        await run.press("B", *"end", "enter")
        await at(run, 0)
        await run.press("apostrophe")
        assert "here" in run.dialog() and "turn 2" in run.dialog() and "turn 4" in run.dialog()
        await run.press("down", "enter")
        assert run.transcript.shown.message_id == message_id(6)
        await run.press("B", "ctrl+u", "enter")
        assert run.last == "Removed label “end” · U undoes"
        assert "“end”" not in drawn(run.app.screen).replace(run.last, "")


@pytest.mark.parametrize("form", ["contract", "grida"])
async def test_the_same_keys_on_a_host_file(form: str, tmp_path: Path) -> None:
    path = tmp_path / "host.db"
    if form == "grida":
        grida(path)
        database = open_database(path)
        (session_id,) = database.connection.execute(
            "SELECT session_id FROM chat_messages GROUP BY session_id"
            " ORDER BY count(*) DESC").fetchone()
        database.close()
    else:
        source = make_store(tmp_path / "s.db", talk())
        contract(path)
        database = open_database(path)
        database.connection.execute("ATTACH ? AS other", (str(source),))
        for table in ("chat_sessions", "chat_messages", "chat_parts"):
            database.connection.execute(f"INSERT INTO {table} SELECT * FROM other.{table}")
        database.close()
        session_id = SESSION
    tables = query(path, "SELECT name FROM sqlite_master ORDER BY 1")
    before = query(path, "SELECT count(*) FROM chat_sessions")
    async with running(path) as run:
        await run.open(session_id)
        await run.press("g", "f")
        assert "Fork here" in run.dialog()
        await run.press("enter")
        assert run.last.startswith("Forked")
        await run.press("U")
        assert query(path, "SELECT count(*) FROM chat_sessions") == before
        await run.open(session_id)
        await run.press("g", "r", "enter")
        assert run.last.startswith("Hidden: ")
        await run.press("x")
        assert run.last.startswith("Restored ")
        await run.press("1", "a")
        assert run.last.startswith("Archived ")
        await run.press("U", "U", "U")
    assert query(path, "SELECT name FROM sqlite_master ORDER BY 1") == tables


async def test_long_sessions_are_forked_where_the_cursor_is(tmp_path: Path) -> None:
    path = make_store(tmp_path / "s.db", long_talk(300))
    async with running(path) as run:
        await at(run, 401)
        await run.press("f", "enter")
        ((made, parent_message, _draft),) = forks(path)
        assert parent_message == message_id(401)
        assert len(visible(path, made)) == 402
        (kept,) = query(path, "SELECT metadata_json FROM chat_sessions WHERE id = ?", made)
        assert json.loads(kept[0])["lineage"] == {"kind": "fork"}
