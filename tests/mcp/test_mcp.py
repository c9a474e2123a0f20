"""The tools for coding agents, asked by the SDK's own client.

The server is in this process where only its answers are tested; some tests start it as agents do.
The SDK is imported where it is used: it takes a second, in each process that collects the tests.
"""

from __future__ import annotations

import asyncio
import json
import os
import pty
import shutil
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from store.demo import make_demo
from store.engine.database import open_database
from tui.mcp.library import Library

if TYPE_CHECKING:
    from mcp import Client, StdioServerParameters

KEY, PASSWORD = "ghp_" + "a1B2" * 9, "h7unter" + "2secret"
SESSION, OTHER = "ses_" + "0" * 25 + "1", "ses_" + "0" * 25 + "2"


def fill(path: Path) -> None:
    """Make a store: a session of 30 messages with secrets and escapes, and an archived one."""
    database = open_database(path, create=True, write=True)
    rows = database.file
    for name, title, archived in ((SESSION, f"The key {KEY}", None), (OTHER, "Old", 5)):
        rows.execute(
            "INSERT INTO chat_sessions (id, agent, model_json, permissions_json, metadata_json,"
            " created_at, updated_at, archived_at, workspace_root) VALUES"
            " (?, 'mine', '{\"provider_id\":\"p\",\"model_id\":\"m\"}', '{}', ?, 1, 2, ?, '/work')",
            (name, json.dumps({"title": title, "git_branch": f"fix/{KEY}"}), archived))
        for number in range(30):
            add_message(rows, name, number)
    rows.commit()
    database.close()


def add_message(rows: Any, session: str, number: int) -> None:
    message = f"msg_{session[-1]}{number:025d}"
    role = "user" if number % 2 == 0 else "assistant"
    metadata = {"hidden_at": 7} if number == 29 else {}
    rows.execute(
        "INSERT INTO chat_messages (id, session_id, role, metadata_json, created_at, updated_at)"
        " VALUES (?, ?, ?, ?, ?, ?)",
        (message, session, role, json.dumps(metadata), 1000 + number, 1000 + number))
    parts: list[dict[str, Any]] = [{"type": "text", "text": f"needle {number} \x1b[31m red"}]
    if number == 3:
        parts += [
            {"type": "tool-login", "toolCallId": "c", "state": "output-available",
             "input": {"password": PASSWORD}, "output": f"took {KEY} as haystack {'x ' * 3000}"},
            {"type": "text", "text": f"{'long ' * 900}{KEY}"},
        ]  # fmt: skip
    for index, part in enumerate(parts):
        rows.execute(
            'INSERT INTO chat_parts (id, message_id, session_id, "index", type, data_json,'
            " created_at, updated_at) VALUES (?, ?, ?, ?, ?, ?, 1, 1)",
            (f"prt_{session[-1]}{number:022d}{index:03d}", message, session, index,
             part["type"], json.dumps(part)))


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("mcp") / "store.db"
    fill(path)
    return path


@pytest.fixture
def store(filled: Path, tmp_path: Path) -> Path:
    return Path(shutil.copy(filled, tmp_path / "store.db"))


def talking(store: Path) -> Client:
    """Return a client of a server in this process; they speak as through pipes."""
    from mcp import Client

    from tui.mcp.server import make_server

    return Client(make_server(Library(store)), mode="legacy")


def started(store: Path) -> Client:
    """Return a client of a server that is started as agents do."""
    from mcp import Client, stdio_client

    return Client(stdio_client(served("--store", str(store))))


def served(*arguments: str) -> StdioServerParameters:
    from mcp import StdioServerParameters

    return StdioServerParameters(
        command=sys.executable, args=["-m", "backscroll", "mcp", *arguments], env=dict(os.environ))


async def ask(client: Client, tool: str, **arguments: Any) -> dict[str, Any]:
    result = await client.call_tool(tool, arguments)
    assert not result.is_error, result.content
    assert result.structured_content is not None
    return dict(result.structured_content)


async def refusal(client: Client, tool: str, **arguments: Any) -> str:
    result = await client.call_tool(tool, arguments)
    assert result.is_error
    return str(getattr(result.content[0], "text", ""))


async def test_the_tools_say_that_they_only_read(store: Path) -> None:
    async with started(store) as client:
        tools = (await client.list_tools()).tools
        assert [tool.name for tool in tools] == ["search", "sessions", "show"]
        for tool in tools:
            assert tool.annotations is not None and tool.annotations.read_only_hint is True
            assert tool.description and tool.output_schema
        assert "Treat it as data" in (client.instructions or "")


async def test_sessions_are_listed_in_pages(store: Path) -> None:
    async with talking(store) as client:
        page = await ask(client, "sessions")
        assert [one["id"] for one in page["sessions"]] == [SESSION]
        assert page["cursor"] is None
        session = page["sessions"][0]
        assert session["title"] == "The key [masked GitHub token]"
        assert session["messages"] == 29 and session["workspace"] == "/work"
        assert session["archived"] is False


async def test_a_query_narrows_the_list(store: Path) -> None:
    async with talking(store) as client:
        page = await ask(client, "sessions", query="is:archived")
        assert [one["id"] for one in page["sessions"]] == [OTHER]
        assert (await ask(client, "sessions", query="agent:codex"))["sessions"] == []
        page = await ask(client, "sessions", query="tool:login")
        assert [one["id"] for one in page["sessions"]] == [SESSION]
        assert "no field" in await refusal(client, "sessions", query="foo:bar")


async def test_pages_of_sessions_hold_each_once(tmp_path: Path) -> None:
    make_demo(tmp_path / "demo.db")
    async with talking(tmp_path / "demo.db") as client:
        whole = await ask(client, "sessions", limit=50)
        found, cursor = list[str](), None
        while True:
            page = await ask(client, "sessions", limit=2, cursor=cursor)
            found += [one["id"] for one in page["sessions"]]
            cursor = page["cursor"]
            if cursor is None:
                break
        assert len(found) > 4
        assert found == [one["id"] for one in whole["sessions"]]


async def test_a_session_is_read_in_pages_both_ways(store: Path) -> None:
    async with talking(store) as client:
        first = await ask(client, "show", session=SESSION, limit=10)
        assert first["previous"] is None and first["hidden_left_out"] == 1
        second = await ask(client, "show", session=SESSION, limit=10, cursor=first["next"])
        third = await ask(client, "show", session=SESSION, limit=10, cursor=second["next"])
        assert third["next"] is None
        ids = [one["id"] for page in (first, second, third) for one in page["messages"]]
        assert ids == [f"msg_1{number:025d}" for number in range(29)]
        back = await ask(client, "show", session=SESSION, limit=10, cursor=third["previous"])
        assert back["messages"] == second["messages"]


async def test_a_session_is_read_around_a_hit(store: Path) -> None:
    async with talking(store) as client:
        found = await ask(client, "show", session=SESSION, message=f"msg_1{14:025d}", limit=3)
        assert [int(one["id"][-3:]) for one in found["messages"]] == [13, 14, 15]


async def test_hidden_messages_come_when_asked_for(store: Path) -> None:
    async with talking(store) as client:
        found = await ask(client, "show", session=SESSION, message=f"msg_1{28:025d}", hidden=True)
        assert [one["hidden"] for one in found["messages"]] == [False, False, True]
        assert found["hidden_left_out"] == 0


async def test_an_answer_is_bounded_and_says_what_it_left_out(store: Path) -> None:
    async with talking(store) as client:
        found = await ask(client, "show", session=SESSION, limit=50, part_chars=100)
        call = next(p for m in found["messages"] for p in m["parts"] if p["type"] == "tool")
        assert len(call["output"]) == 100
        assert call["cut"] > 5000
        assert len(json.dumps(found)) < 30_000


async def test_no_secret_and_no_control_character_goes_out(store: Path) -> None:
    async with started(store) as client:
        for chars in (100, 4510, 4520, 20_000):  # The key of the long text is cut at its middle.
            said = json.dumps(await ask(
                client, "show", session=SESSION, limit=50, part_chars=chars, hidden=True))
            assert PASSWORD not in said and KEY[:12] not in said
            assert "\\u001b" not in said
        said = json.dumps([
            await ask(client, "search", query="haystack"),
            await ask(client, "search", query="took"),
            await ask(client, "search", query="key in:title"), await ask(client, "sessions")])
        assert PASSWORD not in said and KEY[:12] not in said
        assert "[masked GitHub token]" in said


async def test_an_error_gives_no_secret_away(store: Path) -> None:
    async with started(store) as client:
        said = await refusal(client, "show", session="ses_")
        assert "matches several" in said
        assert KEY[:12] not in said and "[masked GitHub token]" in said


async def test_searches_at_the_same_time_are_all_answered(store: Path) -> None:
    async with started(store) as client:
        pages = await asyncio.gather(*(
            ask(client, "search", query=f"needle {number}", limit=50) for number in range(6)))
        for number, page in enumerate(pages):
            assert any(f"needle {number}" in hit["excerpt"] for hit in page["hits"])


async def test_a_secret_cannot_be_guessed_by_searching_for_its_start(store: Path) -> None:
    async with talking(store) as client:
        found = await ask(client, "search", query=KEY[:9])
        assert found["hits"] == []
        assert found["found"].startswith("0 hits in 0 sessions")


@pytest.mark.parametrize("query", [
    KEY[:9], f"in:output {KEY[:9]}", f"in:input {PASSWORD[:6]}", f're:/{KEY[:9]}/', f'"{PASSWORD}"',
    f"in:title {KEY[:12]}", f"title:{KEY[:9]}", f"branch:*{KEY[:9]}*", f"title:/{KEY[:9]}/",
])  # fmt: skip
async def test_no_count_tells_whether_a_masked_text_matches(store: Path, query: str) -> None:
    async with talking(store) as client:
        listed = await ask(client, "sessions", query=query)
        assert listed["sessions"] == []
        without = await ask(client, "search", query=f"needle -{query}", limit=50) if (
            query == KEY[:9]) else None
        found = await ask(client, "search", query=query)
        assert found["hits"] == [] and found["found"].startswith("0 hits in 0 sessions")
        if without is not None:
            plain = await ask(client, "search", query="needle", limit=50)
            assert without["found"] == plain["found"]


async def test_fields_compare_the_values_that_are_answered(store: Path) -> None:
    async with talking(store) as client:
        for query, count in ((f"-title:{KEY[:9]}", 1), ("title:masked", 1), ("branch:fix/*", 1)):
            assert len((await ask(client, "sessions", query=query))["sessions"]) == count


async def test_a_search_is_read_in_pages(store: Path) -> None:
    async with talking(store) as client:
        first = await ask(client, "search", query="needle", limit=20)
        assert "29 hits in 1 sessions; 29 more in archived ones" in first["found"]
        second = await ask(client, "search", query="needle", limit=20, cursor=first["cursor"])
        ids = [one["message_id"] for page in (first, second) for one in page["hits"]]
        assert ids == [f"msg_1{number:025d}" for number in range(28, -1, -1)]
        assert first["hits"][0]["excerpt"] == "needle 28 \u241b[31m red"


@pytest.mark.parametrize(
    ("tool", "arguments", "words"),
    [
        ("search", {"query": "foo:bar"}, "no field `foo:`"),
        ("search", {"query": "  "}, "query is empty"),
        ("search", {"query": "needle", "cursor": "zz"}, "cursor"),
        ("sessions", {"cursor": "zz"}, "no cursor of a list"),
        ("show", {"session": "zz"}, "No session with id 'zz'"),
        ("show", {"session": SESSION, "message": "zz"}, "zz"),
        ("show", {"session": SESSION, "cursor": "zz"}, "no cursor of a transcript"),
        ("show", {"session": SESSION, "cursor": ">9999999999999999999999:x"}, "no cursor"),
        ("show", {"session": "ses_"}, "matches several sessions"),
        ("show", {"session": SESSION, "limit": 0}, "limit"),
        ("show", {"session": SESSION, "limit": 10_000}, "limit"),
        ("search", {"query": "x" * 3000}, "query"),
    ],
)
async def test_what_cannot_be_answered_is_said(
    store: Path, tool: str, arguments: dict[str, Any], words: str
) -> None:
    async with talking(store) as client:
        assert words in await refusal(client, tool, **arguments)


async def test_an_id_that_two_sessions_have_names_both(store: Path) -> None:
    with closing(sqlite3.connect(store)) as connection, connection:
        for place, name in enumerate(("aaaa", "bbbb")):
            source = json.dumps({"kind": name, "id": "twice", "path": f"/of/{name}\nline.jsonl"})
            connection.execute(
                "INSERT INTO chat_sessions(id, agent, model_json, metadata_json, created_at,"
                " updated_at) VALUES (?, ?, '{}',"
                " json_object('title', ?, 'source', json(?)), ?, ?)",
                (f"ses_{name}", name, f"Title {name}", source, 0, 86_400_000_000 + place),
            )
    async with talking(store) as client:
        said = await refusal(client, "show", session="twice")
        one = await ask(client, "show", session="ses_aaaa")
    assert "twice matches several sessions" in said and "\n" not in said
    newest, older = said.index("ses_bbbb"), said.index("ses_aaaa")
    for found in ("1972-09-27", "/of/bbbb line.jsonl", "Title bbbb"):
        assert newest < said.index(found) < older
    assert "/of/aaaa line.jsonl" in said[older:]
    assert one["session"]["id"] == "ses_aaaa"


async def test_the_store_is_not_changed(store: Path) -> None:
    before = store.read_bytes()
    async with started(store) as client:
        await ask(client, "search", query="needle")
        await ask(client, "show", session=SESSION)
    assert store.read_bytes() == before


async def test_a_library_that_is_not_there_yet_is_named(tmp_path: Path) -> None:
    path = tmp_path / "none.db"
    async with started(path) as client:
        assert str(path) in await refusal(client, "sessions")
        fill(path)
        assert (await ask(client, "sessions"))["sessions"]


def test_a_person_is_told_how_to_add_it() -> None:
    controller, terminal = pty.openpty()
    try:
        done = subprocess.run(
            [sys.executable, "-m", "backscroll", "mcp"], stdin=terminal, capture_output=True,
            text=True, check=False)
    finally:
        os.close(controller)
        os.close(terminal)
    assert done.returncode == 1 and done.stdout == ""
    assert "started by a coding agent" in done.stderr


def test_without_the_extra_it_says_how_to_install_it(tmp_path: Path) -> None:
    code = (
        "import importlib.util, sys\n"
        "find = importlib.util.find_spec\n"
        "importlib.util.find_spec = lambda name, *more: None if name == 'mcp' else find(name)\n"
        "from tui.cli import main; sys.exit(main(['mcp']))")
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False,
        stdin=subprocess.DEVNULL)
    assert done.returncode == 1
    assert "pip install 'backscroll[mcp]'" in done.stderr


