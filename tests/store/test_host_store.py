"""The public ``Store``: what a program that runs agents calls."""

from __future__ import annotations

import asyncio
import contextlib
import json
import threading
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from backscroll import (
    BackscrollError,
    Change,
    Invalid,
    NotFound,
    Refused,
    SavePolicy,
    Session,
    SessionFilter,
    Store,
    StoreError,
    UIMessage,
)
from store.engine.changes import Moved
from store.engine.database import Database, open_database
from store.engine.opening import open_target
from store.exports.reading import read_session
from store.exports.ui_messages import write_ui_messages
from store.watch import Position, look
from tests.sources.postgres_server import Server
from tests.store.engines import new_host_database
from tests.store.making import add_message, add_part, add_session, contract, grida, host_writes, own

FORMS = {"own": own, "contract": contract, "grida": grida}
RULE: Any = {"permission": "bash", "pattern": "git *", "action": "allow"}


@pytest.fixture
def target(of_each_form: Database) -> str:
    """What names an empty store of each form, in a file and on a server."""
    server = of_each_form.server
    return str(of_each_form.path) if server is None else server.dsn


@pytest.fixture
async def store(target: str) -> AsyncIterator[Store]:
    async with Store.open(target) as store:
        yield store


def answer(text: str, id: str | None = None) -> list[dict[str, Any]]:
    start = {"type": "start"} | ({"messageId": id} if id else {})
    return [start, {"type": "text-start", "id": "t"},
            {"type": "text-delta", "id": "t", "delta": text}, {"type": "text-end", "id": "t"},
            {"type": "finish"}]


async def talk(store: Store, session: Session, *turns: tuple[str, str]) -> None:
    async with store.recorder(session) as recorder:
        for prompt, text in turns:
            await recorder.user_message(prompt)
            for chunk in answer(text):
                await recorder.feed(chunk)


def texts(messages: list[UIMessage]) -> list[str]:
    return ["".join(part.get("text", "") for part in one["parts"]) for one in messages]


async def test_a_session_has_what_it_was_made_with(store: Store) -> None:
    made = await store.create_session(
        "my-agent", "anthropic/claude-sonnet-4-5", permissions=[RULE], metadata={"run": 7},
        workspace=Path("/work"), title="Nightly")
    assert made.id.startswith("ses_") and len(made.id) == 30 and str(made) == made.id
    assert made.model == {"provider_id": "anthropic", "model_id": "claude-sonnet-4-5"}
    assert made.permissions == [RULE | {"source": "session"}]
    assert (made.metadata["run"], made.workspace, made.title) == (7, "/work", "Nightly")
    assert await store.session(made.id) == made
    assert made in await store.sessions(SessionFilter(agent="my-agent"))
    assert [one.id for one in await store.sessions("agent:my-agent")] == [made.id]


async def test_a_subagents_session_names_its_parent_and_the_call(store: Store) -> None:
    parent = await store.create_session("main")
    async with store.recorder(parent) as recorder:
        await recorder.user_message("Look")
        await recorder.feed({"type": "start"})
        await recorder.feed({"type": "tool-input-available", "toolCallId": "c", "toolName": "task",
                             "input": {}})
        child = await store.create_session("sub", parent=parent, tool_call="c")
        message = recorder.message_id
        await recorder.feed({"type": "tool-output-available", "toolCallId": "c", "output": "ok"})
        await recorder.feed({"type": "finish"})
    assert (child.parent_id, child.parent_message_id) == (parent.id, message)
    assert child.metadata["lineage"] == {"kind": "subagent", "tool_call_id": "c"}


@pytest.mark.parametrize(("given", "named"), [
    ({"agent": ""}, "agent"), ({"agent": 3}, "agent"), ({"model": ""}, "model"),
    ({"model": {"x": 1}}, "model"), ({"permissions": [{"permission": "x"}]}, "pattern"),
    ({"permissions": ["x"]}, "permissions[0]"),
    ({"permissions": [RULE | {"action": "maybe"}]}, "action"),
    ({"permissions": [RULE | {"source": "x"}]}, "source"),
    ({"permissions": [RULE | {"added_at": "now"}]}, "added_at"),
    ({"permissions": [RULE | {"extra": 1}]}, "extra"),
    ({"metadata": [1]}, "metadata"), ({"metadata": {"x": object()}}, "metadata"),
    ({"tool_call": "c"}, "parent"), ({"parent": 7}, "session"), ({"workspace": 5}, "workspace"),
])  # fmt: skip
async def test_what_cannot_be_stored_is_refused(
    given: dict[str, Any], named: str, tmp_path: Path
) -> None:
    async with Store.open(own(tmp_path / "s.db")) as store:
        with pytest.raises(Invalid) as caught:
            await store.create_session(**({"agent": "a"} | given))
        assert named in str(caught.value)
        assert await store.sessions() == []
        with pytest.raises(NotFound):
            await store.create_session("a", parent="ses_x")


async def test_messages_are_those_of_the_export(store: Store) -> None:
    session = await store.create_session("a")
    await talk(store, session, ("One", "First."), ("Two", "Second."))
    found = await store.messages(session)
    assert texts(found) == ["One", "First.", "Two", "Second."]
    assert [one["role"] for one in found] == ["user", "assistant"] * 2
    database = open_database(store.path, write=False)
    exported = "".join(write_ui_messages(read_session(database, session.id, "display")))
    database.close()
    assert json.loads(exported) == found
    assert (await store.session(session)).title == "One"


async def test_a_fork_and_a_rewind_take_the_ids_of_messages(store: Store) -> None:
    session = await store.create_session("a")
    async with store.recorder(session) as recorder:
        await recorder.user_message("One")
        for chunk in answer("First.", "given-by-the-sdk"):
            await recorder.feed(chunk)
        await recorder.user_message("Two")
    fork = await store.fork(session, "given-by-the-sdk")
    assert (fork.parent_id, texts(await store.messages(fork))) == (session.id, ["One", "First."])
    assert texts(await store.messages(await store.fork(session))) == ["One", "First.", "Two"]
    assert (await store.rewind(session.id, "given-by-the-sdk")).messages == 1
    assert texts(await store.messages(session)) == ["One", "First."]
    assert texts(await store.messages(session, view="hidden")) == ["One", "First.", "Two"]
    await store.restore(session)
    assert texts(await store.messages(session)) == ["One", "First.", "Two"]
    with pytest.raises(NotFound, match="nothing"):
        await store.rewind(session, "nothing")


async def test_verbs_are_undone_and_redone(store: Store) -> None:
    session = await store.create_session("a")
    await talk(store, session, ("One", "First."))
    assert await store.rename(session, " New\nname ") == "New name"
    assert (await store.session(session)).title == "New name"
    assert await store.archive(session) == [session.id]
    assert session.id not in [one.id for one in await store.sessions()]
    assert session.id in [one.id for one in await store.sessions("is:archived")]
    assert await store.unarchive(session) == [session.id]
    await store.undo()
    assert (await store.session(session)).archived_at is not None
    assert (await store.redo()).summary == "unarchived 1 session"
    assert (await store.session(session)).archived_at is None
    with pytest.raises(Refused):
        await store.redo()


async def test_a_deleted_session_comes_back_as_it_was(store: Store) -> None:
    session = await store.create_session("a")
    await talk(store, session, ("One", "First."))
    child = await store.create_session("sub", parent=session)
    await talk(store, child, ("Sub", "Done."))
    fork = await store.fork(session)
    before = [await store.session(one) for one in (session, child, fork)]
    said = [await store.messages(one) for one in before]

    assert await store.delete(session) == [session.id, child.id]
    for gone in (session, child):
        with pytest.raises(NotFound):
            await store.messages(gone)
    assert (await store.session(fork)).parent_id is None
    assert await store.messages(fork) == said[2]
    await store.rename(fork, "Alone")

    await store.undo()
    await store.undo()
    assert [await store.session(one) for one in (session, child)] == before[:2]
    assert (await store.session(fork)).parent_id == session.id
    assert [await store.messages(one) for one in before] == said
    await store.redo()
    with pytest.raises(NotFound):
        await store.session(session)
    await store.undo()
    assert await store.messages(session) == said[0]


async def test_only_the_newest_deletions_are_kept(
    location: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("store.verbs.delete.KEPT", 1)
    async with Store.open(location) as store:
        first, second = [await store.create_session("a") for _ in range(2)]
        await store.delete(first)
        await store.delete(second)
        assert (await store.undo()).kept is None
        assert "older" in str((await store.undo()).kept)
        assert [one.id for one in await store.sessions()] == [second.id]


async def test_a_session_that_is_recorded_or_read_from_files_is_not_deleted(
    db: Database, location: str
) -> None:
    add_session(db.connection, "ses_files", metadata={"source": {"kind": "codex"}})
    async with Store.open(location) as store:
        with pytest.raises(Refused, match="backscroll forget"):
            await store.delete("ses_files")
        session = await store.create_session("a")
        async with store.recorder(session):
            with pytest.raises(Refused, match="close its recorder"):
                await store.delete(session)
        assert await store.delete(session) == [session.id]


async def test_a_session_has_one_recorder(location: str) -> None:
    async with Store.open(location) as store, Store.open(location) as other:
        session = await store.create_session("a")
        opened = await asyncio.gather(
            *(each.recorder(session.id[:-1]) for each in (store, other, store)),
            return_exceptions=True)
        recorder, *refused = sorted(opened, key=lambda one: isinstance(one, Exception))
        assert not isinstance(recorder, BaseException)
        assert [type(one) for one in refused] == [Refused, Refused]
        assert "close it first" in str(refused[0])
        await recorder.close()
        with pytest.raises(Refused, match="closed"):
            await recorder.feed({"type": "start"})
        with pytest.raises(Refused, match="closed"):
            await recorder.user_message("x")
        async with other.recorder(session) as second:
            await second.user_message("x")
        unheld = await store.recorder(session)
        del unheld
        async with store.recorder(session):
            pass


async def test_queued_messages_fire_or_are_cancelled(store: Store) -> None:
    session = await store.create_session("a")
    async with store.recorder(session) as recorder:
        await recorder.user_message("One")
        await recorder.feed({"type": "start"})
        later, never = await recorder.queue("Later"), await recorder.queue("Never")
        await recorder.cancel(never)
        await recorder.abort("stopped")
        assert await recorder.fire() == later
        await recorder.finish()
    assert texts(await store.messages(session)) == ["One", "", "Later"]


# -- watching


async def seen(watch: AsyncIterator[Change], count: int) -> list[Change]:
    async with asyncio.timeout(60):
        return [await anext(watch) for _ in range(count)]


async def test_own_changes_and_those_of_others_are_watched(store: Store, target: str) -> None:
    everything = store.watch(every=0.005)
    session = await store.create_session("a")
    mine = store.watch(session, every=0.005)
    await mine.ready()
    (change,) = await seen(everything, 1)
    assert change == Change(session.id, None)
    writer = open_target(target, write=True)
    other = writer.connection
    other.execute("BEGIN")
    add_session(other, "ses_other", 9_000_000_000_000)
    add_message(other, session.id, "msg_x", 1)
    add_part(other, session.id, "msg_x", "prt_x", 0)
    if store.form.name == "own":
        other.execute("INSERT INTO changes(session_id, message_id, changed_at)"
                      " VALUES ('ses_other', NULL, 1), (?, 'msg_x', 1)", (session.id,))
    other.execute("COMMIT")
    written = frozenset({"msg_x"})
    found = await seen(everything, 2)
    assert {one.session_id for one in found} == {session.id, "ses_other"}
    assert await seen(mine, 1) == [Change(session.id, written)]
    other.execute("BEGIN")
    other.execute("UPDATE chat_parts SET data_json = '{\"type\":\"text\",\"text\":\"grown\"}'"
                  " WHERE id = 'prt_x'")
    if store.form.name == "own":
        other.execute("INSERT INTO changes(session_id, message_id, changed_at)"
                      " VALUES (?, 'msg_x', 1)", (session.id,))
    other.execute("COMMIT")
    assert await seen(mine, 1) == [Change(session.id, written)]
    writer.close()


async def test_a_write_that_nobody_logged_is_reported_without_a_session(tmp_path: Path) -> None:
    async with Store.open(own(tmp_path / "s.db")) as store:
        watch = store.watch(every=0.005)
        await asyncio.wait_for(watch.ready(), 60)
        other = host_writes(store.path)
        add_session(other, "ses_other")
        other.commit()
        other.close()
        assert await seen(watch, 1) == [Change(None)]


async def test_what_was_trimmed_is_reported_beside_what_is_known(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    watch, real = store.watch(every=0.005), look
    await asyncio.wait_for(watch.ready(), 60)

    def trimmed(db: Database, before: Position | None) -> tuple[Position, Moved]:
        position, moved = real(db, before)
        moved.vague = True
        return position, moved

    monkeypatch.setattr("store.watch.look", trimmed)
    session = await store.create_session("a")
    assert await seen(watch, 2) == [Change(None), Change(session.id, None)]


def test_rows_of_several_tables_of_a_server_are_told_apart(postgres: Server) -> None:
    with contextlib.closing(open_target(new_host_database(postgres), write=True)) as db:
        add_session(db.connection, "ses_1")
        db.connection.execute('CREATE TABLE "Late, ones" () INHERITS (chat_messages)')
        before, _ = look(db, None)
        db.connection.execute("BEGIN")
        add_message(db.connection, "ses_1", "msg_early", 1)
        # Each is the first row of its table, and so in the same place.
        db.connection.execute(
            'INSERT INTO "Late, ones" SELECT * FROM chat_messages WHERE id = \'msg_early\'')
        db.connection.execute("UPDATE \"Late, ones\" SET id = 'msg_late'")
        db.connection.execute("UPDATE ONLY chat_messages SET role = role")
        db.connection.execute("COMMIT")
        _, moved = look(db, before)
        assert (moved.vague, moved.sessions) == (False, {"ses_1": {"msg_early", "msg_late"}})


@pytest.mark.parametrize("how", ["partitions", "view", "too many"])
def test_partitions_of_a_server_are_watched_and_views_are_not(
    postgres: Server, monkeypatch: pytest.MonkeyPatch, how: str
) -> None:
    url = new_host_database(postgres)
    server = postgres.database_of(url)
    server.execute("ALTER TABLE chat_messages RENAME TO rows_of_messages")
    columns = "CREATE TABLE chat_messages (LIKE rows_of_messages)"
    server.execute(
        "CREATE VIEW chat_messages AS SELECT * FROM rows_of_messages" if how == "view" else
        f"{columns} PARTITION BY HASH (session_id);" + ";".join(
            f"CREATE TABLE part_{each} PARTITION OF chat_messages FOR VALUES WITH (MODULUS 2,"
            f" REMAINDER {each}) PARTITION BY LIST (role); CREATE TABLE part_{each}_user PARTITION"
            f" OF part_{each} DEFAULT" for each in range(2)))
    monkeypatch.setattr("store.watch.TABLES", 1 if how == "too many" else 2)
    with contextlib.closing(open_target(url, write=True)) as db:
        for each in range(4):
            add_session(db.connection, f"ses_{each}")
        before, _ = look(db, None)
        for each in range(4):
            add_message(db.connection, f"ses_{each}", f"msg_{each}", 1)
        now, moved = look(db, before)
        told = {f"ses_{each}": {f"msg_{each}"} for each in range(4)}
        assert moved.sessions == (told if how == "partitions" else {})
        assert moved.vague is (how != "partitions")
        db.connection.execute("UPDATE chat_messages SET role = 'system' WHERE id = 'msg_2'")
        _, moved = look(db, now)
        assert moved.sessions == ({"ses_2": {"msg_2"}} if how == "partitions" else {})


@pytest.mark.parametrize("isolation", [
    "read committed", pytest.param("repeatable read", marks=pytest.mark.long)])
async def test_a_partition_that_is_dropped_during_a_look_is_left_out(
    postgres: Server, isolation: str
) -> None:
    url = await asyncio.to_thread(new_host_database, postgres)
    await asyncio.to_thread(
        postgres.database_of(url).execute,
        "ALTER TABLE chat_parts RENAME TO old; CREATE TABLE chat_parts (LIKE old) PARTITION BY"
        " LIST (session_id); CREATE TABLE kept PARTITION OF chat_parts FOR VALUES IN ('ses_1');"
        " CREATE TABLE dropped PARTITION OF chat_parts FOR VALUES IN ('ses_0')")
    with (contextlib.closing(open_target(url, write=True)) as db,
          contextlib.closing(open_target(url, write=True)) as other):
        db.connection.execute(f"SET default_transaction_isolation = '{isolation}'")
        add_session(db.connection, "ses_1")
        add_message(db.connection, "ses_1", "msg_1", 1)
        add_part(db.connection, "ses_1", "msg_1", "prt_1", 0)
        before, _ = look(db, None)
        db.connection.execute("UPDATE chat_parts SET type = 'text'")
        other.connection.execute("BEGIN")
        other.connection.execute("DROP TABLE dropped")
        looking = asyncio.ensure_future(asyncio.to_thread(look, db, before))
        waits = "SELECT count(*) FROM pg_locks WHERE NOT granted AND relation IS NOT NULL"
        async with asyncio.timeout(60):
            while not other.connection.execute(waits).fetchone()[0]:
                await asyncio.sleep(0.01)
        other.connection.execute("COMMIT")
        _, moved = await looking
        assert moved.sessions == {"ses_1": {"msg_1"}}


async def test_a_watch_ends_with_its_store(location: str) -> None:
    store = await Store.open(location)

    async def follow() -> list[Change]:
        return [change async for change in store.watch(every=0.005)]

    following = asyncio.create_task(follow())
    await asyncio.sleep(0)
    await store.create_session("a")
    await store.close()
    assert len(await asyncio.wait_for(following, 60)) <= 1
    with pytest.raises(Invalid, match="every"):
        async with Store.open(location) as again:
            again.watch(every=0)


# -- searching


async def test_hits_name_sessions_and_messages(store: Store) -> None:
    session = await store.create_session("a")
    await talk(store, session, ("Find the needle", "A needle."), ("More", "needle again"))
    hits = await store.search("needle agent:a")
    assert {hit.session_id for hit in hits} == {session.id}
    assert [hit.where for hit in hits if hit.message_id][:1] == ["text"]
    first = await store.search("needle agent:a", limit=2)
    rest = await store.search("needle agent:a", cursor=first.cursor)
    assert [*first, *rest] == list(hits) and rest.cursor is None
    both = await asyncio.gather(store.search("needle agent:a"), store.search("again agent:a"))
    assert list(both[0]) == list(hits) and len(both[1]) == 1
    for query in ("", "   ", "size:>many"):
        with pytest.raises(Invalid):
            await store.search(query)
        if query.strip():
            with pytest.raises(Invalid):
                await store.sessions(query)


# -- opening


async def test_a_silent_server_and_unknown_urls_are_refused(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="localhost:1/db cannot be reached") as caught:
        await Store.open("postgresql://me:secret@localhost:1/db")
    assert "secret" not in str(caught.value)
    with pytest.raises(StoreError, match="mysql://"):
        await Store.open("mysql://host/db")
    path = tmp_path / "s.db"
    with pytest.raises(StoreError, match="create=True"):
        await Store.open(path)
    async with Store.open(f"sqlite:///{path}", create=True) as store:
        assert store.path == path


async def test_a_closed_store_says_so(tmp_path: Path) -> None:
    store = await Store.open(tmp_path / "s.db", create=True)
    await store.close()
    for call in (store.sessions, store.undo, lambda: store.search("x")):
        with pytest.raises(StoreError, match="closed; open it again"):
            await call()
    with pytest.raises(StoreError, match="closed"):
        store.watch()


async def test_what_is_not_there_is_an_error_of_ours(store: Store) -> None:
    calls = (store.session, store.messages, store.recorder, store.fork, store.restore,
             store.archive, store.unarchive, store.delete)
    for call in calls:
        with pytest.raises(NotFound, match="backscroll sessions"):
            await call("zz")
        with pytest.raises(BackscrollError):
            await call("")
        with pytest.raises(Invalid, match="int"):
            await call(3)  # type: ignore[arg-type]


@pytest.mark.parametrize("call", [
    lambda s, one: s.create_session("a", title=5), lambda s, one: s.rename(one, 5),
    lambda s, one: s.messages(one, view="x"), lambda s, one: s.rewind(one, 5),
    lambda s, one: s.rewind(one, None), lambda s, one: s.sessions(5),
    lambda s, one: s.sessions(limit="x"), lambda s, one: s.sessions(before="x"),
    lambda s, one: s.search(5), lambda s, one: s.search("x", order="z"),
    lambda s, one: s.search("x", limit=None), lambda s, one: s.recorder(one, policy="chunk"),
    lambda s, one: s.create_session("a", permissions="allow"),
    lambda s, one: Store.open(None),  # type: ignore[arg-type]
], ids=range(14))  # fmt: skip
async def test_a_value_of_another_type_is_named(call: Any, tmp_path: Path) -> None:
    async with Store.open(own(tmp_path / "s.db")) as store:
        session = await store.create_session("a", title="half \ud800", workspace="\udc80")
        assert (session.title, session.workspace) == ("half ?", "?")
        assert await store.rename(session, "\ud800 x") == "? x"
        with pytest.raises(Invalid):
            await call(store, session)
        for name in ("\ud800", "\0"):
            with pytest.raises(NotFound):
                await store.messages(name)
            with pytest.raises(NotFound):
                await store.rewind(session, name)


@pytest.mark.parametrize("given", [5, None, [5], {"a": 1}])
async def test_a_prompt_of_another_type_is_refused(given: Any, tmp_path: Path) -> None:
    async with Store.open(own(tmp_path / "s.db")) as store:
        session = await store.create_session("a")
        async with store.recorder(session) as recorder:
            with pytest.raises(Refused):
                await recorder.user_message(given)
            with pytest.raises(Invalid):
                await recorder.user_message("x", metadata=5)  # type: ignore[arg-type]
            for chunk in (given, {"type": 5}):
                with pytest.raises(Invalid):
                    await recorder.feed(chunk)
            await recorder.user_message("fine", metadata={"n": {(1, 2): {3}}})
        (message,) = await store.messages(session)
        assert message["metadata"]["n"] == {"(1, 2)": "{3}"}


@pytest.mark.parametrize("odd", [5, 1.5, True, b"x", [], {}, float("nan"), {"a": object()}])
async def test_what_is_no_text_is_refused_by_every_call_of_a_recorder(
    odd: Any, tmp_path: Path
) -> None:
    async with Store.open(tmp_path / "host.db", create=True) as store:
        session = await store.create_session("a")
        async with store.recorder(session) as recorder:
            for call in (
                recorder.fire(odd), recorder.cancel(odd), recorder.abort(odd),
                recorder.respond_approval(odd, "a", True), recorder.add_message(odd),
                recorder.respond_approval("m", odd, True), recorder.set_tool_output(odd, "c", 1),
                recorder.set_tool_output("m", odd, 1), recorder.set_tool_output("m", "c", 1, odd),
            ):
                with pytest.raises(BackscrollError):
                    await call
        given: Any
        for given in (None, odd):
            with pytest.raises(Invalid, match="a session is"):
                await store.recorder(given)
        given = odd or 5
        with pytest.raises(Invalid):
            await store.create_session("a", permissions=given)


async def test_values_without_a_meaning_are_refused_by_name(tmp_path: Path) -> None:
    odd: Any
    async with Store.open(tmp_path / "host.db", create=True) as store:
        session = await store.create_session("a")
        async with store.recorder(session) as recorder:
            for call in (
                recorder.respond_approval(None, "a", True),  # type: ignore[arg-type]
                recorder.respond_approval("m", None, True),  # type: ignore[arg-type]
                recorder.set_tool_output(None, "c", 1),  # type: ignore[arg-type]
                recorder.set_tool_output("m", None, 1),  # type: ignore[arg-type]
            ):
                with pytest.raises(Invalid, match="_id must be a text, not NoneType"):
                    await call
            for odd in (None, [{"type": "start"}], {"type": "start"}, "x", 5):
                with pytest.raises(Invalid, match="feed takes one chunk"):
                    await recorder.feed_all(odd)
        for odd in (None, "1", -1, 0, float("nan"), float("inf"), {}):
            with pytest.raises(Invalid, match="every"):
                store.watch(every=odd)
            with pytest.raises(Invalid, match="every"):
                await anext(store.events(every=odd))
    for odd in (None, "1", -1, float("nan"), {}):
        for name in ("save_buffer_ms", "save_buffer_size", "busy_buffer_ms"):
            with pytest.raises(Invalid, match=name):
                SavePolicy(**{name: odd})


@pytest.mark.filterwarnings("error::pytest.PytestUnhandledThreadExceptionWarning")
def test_a_loop_that_ends_while_it_reads_does_no_harm(tmp_path: Path) -> None:
    started, free = threading.Event(), threading.Event()

    def slow(db: Database) -> None:
        started.set()
        assert free.wait(60)

    async def leave() -> Store:
        store = await Store.open(tmp_path / "host.db", create=True)
        await store.create_session("a")
        for call in (store.read, store.write):
            started.clear()
            task = asyncio.ensure_future(call(slow))
            await asyncio.to_thread(started.wait, 60)
            task.cancel()
        return store

    async def come_back(store: Store) -> None:
        assert len(await store.sessions()) == 1
        await store.create_session("b")
        assert len(await store.sessions()) == 2
        await store.close()

    store = asyncio.run(leave())
    free.set()
    asyncio.run(asyncio.wait_for(come_back(store), 60))
