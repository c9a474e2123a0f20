"""The programs of docs/examples and the code of docs/hosts.md run as they are printed."""

from __future__ import annotations

import ast
import asyncio
import contextlib
import inspect
import json
import os
import re
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from importlib import import_module
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from backscroll import Store

DOCS = Path(__file__).parents[1] / "docs"
PAGE = (DOCS / "hosts.md").read_text("utf-8")
BLOCKS = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)


def example(name: str) -> Any:
    spec = spec_from_file_location(f"example_{name}", DOCS / "examples" / f"{name}.py")
    assert spec is not None and spec.loader is not None
    module: ModuleType = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


async def kinds(store: Store, session: Any) -> list[list[str]]:
    messages = await store.messages(session)
    return [[part["type"] for part in one["parts"]] for one in messages]


async def test_an_agents_loop(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    await example("agent_loop").main(str(tmp_path / "host.db"))
    async with Store.open(tmp_path / "host.db") as store:
        (session,) = await store.sessions()
        assert await kinds(store, session) == [
            ["text"], ["step-start", "tool-add", "step-start", "text"]]
        parts = (await store.messages(session))[1]["parts"]
        assert (parts[1]["output"], parts[3]["text"]) == (5, "The sum is 5.")
        assert (session.usage.input, session.usage.output) == (36, 10)
        assert session.metadata["activity"]["state"] == "idle"
    assert session.id in capsys.readouterr().out


async def test_a_subagent(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    await example("subagent").main(str(tmp_path / "host.db"))
    async with Store.open(tmp_path / "host.db") as store:
        main, child = sorted(await store.sessions(), key=lambda one: one.agent)
        assert (main.agent, child.agent, child.parent_id) == ("main", "researcher", main.id)
        assert (await store.messages(main))[1]["parts"][0]["output"] == "It is in src/main.py."
    assert f"started by {main.id}" in capsys.readouterr().out


async def test_an_approval(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    await example("approval").main(str(tmp_path / "host.db"))
    assert capsys.readouterr().out.splitlines() == [
        "waiting-approval", "idle", "tool-bash output-available", "text done"]


async def test_a_server_streams_records_and_hydrates(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    httpx = import_module("httpx")
    monkeypatch.setenv("HOST_DB", str(tmp_path / "host.db"))
    app = example("fastapi_app").app
    prompt = {"id": "from-the-browser", "role": "user",
              "parts": [{"type": "text", "text": "hello"}]}
    async with app.router.lifespan_context(app), httpx.AsyncClient(
        transport=httpx.ASGITransport(app=app), base_url="http://host"
    ) as client:
        chat = (await client.post("/api/chats")).json()["id"]
        answer = await client.post(f"/api/chats/{chat}", json={"messages": [prompt]})
        assert answer.headers["x-vercel-ai-ui-message-stream"] == "v1"
        events = [line.removeprefix("data: ") for line in answer.text.split("\n\n") if line]
        assert events[-1] == "[DONE]"
        said = "".join(json.loads(one).get("delta", "") for one in events[:-1])
        assert said == "You said: hello"

        user, assistant = (await client.get(f"/api/chats/{chat}")).json()
        assert (user["id"], user["parts"]) == (prompt["id"], prompt["parts"])
        assert assistant["parts"][0]["text"] == "You said: hello"

        async with app.state.store.recorder(chat):
            busy = await client.post(f"/api/chats/{chat}", json={"messages": [prompt]})
        assert busy.status_code == 409 and "recorded" in busy.json()["error"]
        again = await client.post(f"/api/chats/{chat}", json={"messages": [prompt]})
        assert again.status_code == 409 and "already in session" in again.json()["error"]
        assert (await client.get("/api/chats/none")).status_code == 404
        fresh = prompt | {"id": "second"}
        assert (await client.post(f"/api/chats/{chat}", json={"messages": [fresh]})).is_success


SLOW = """
import asyncio, sys
sys.path.insert(0, {examples!r})
import fastapi_app

whole = fastapi_app.model

async def model(messages):
    async for chunk in whole(messages):
        await asyncio.sleep(0.05)
        yield chunk
    # A browser that leaves is noticed when something is sent.
    for _ in range(100 if messages[-1]["parts"][0]["text"] == "long" else 0):
        await asyncio.sleep(0.05)
        yield {{"type": "data-tick", "data": 1}}

fastapi_app.model = model
app = fastapi_app.app
"""


@pytest.mark.long
@pytest.mark.parametrize("engine", ["file", "server"])
def test_a_real_server_with_browsers_that_stay_leave_and_come_back(
    engine: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    httpx = import_module("httpx")
    store = str(tmp_path / "host.db") if engine == "file" else (
        request.getfixturevalue("postgres").database().url)
    (tmp_path / "slow.py").write_text(SLOW.format(examples=str(DOCS / "examples")))
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    environment = {**os.environ, "HOST_DB": store, "XDG_DATA_HOME": str(tmp_path / "data"),
                   "PYTHONPATH": str(DOCS.parent)}
    command = [sys.executable, "-m", "uvicorn", "slow:app", "--port", str(port)]

    @contextlib.contextmanager
    def running() -> Iterator[Any]:
        process = subprocess.Popen(command, cwd=tmp_path, env=environment)
        try:
            with httpx.Client(base_url=f"http://127.0.0.1:{port}", timeout=60) as client:
                for _ in range(600):
                    with contextlib.suppress(httpx.ConnectError):
                        client.get("/api/chats/none")
                        break
                    time.sleep(0.05)
                yield client
        finally:
            process.kill()
            process.wait()

    def sent(name: str, text: str) -> dict[str, Any]:
        return {"messages": [
            {"id": name, "role": "user", "parts": [{"type": "text", "text": text}]}]}

    with running() as client:
        chat = f"/api/chats/{client.post('/api/chats').json()['id']}"
        with client.stream("POST", chat, json=sent("m1", "hello")) as answer:
            lines = [line for line in answer.iter_lines() if line]
        assert lines[-1] == "data: [DONE]"
        with client.stream("POST", chat, json=sent("m2", "long")) as answer:
            for line in answer.iter_lines():
                if "data-tick" in line:
                    break
            shown = httpx.get(f"{client.base_url}{chat}").json()
            assert shown[-1]["parts"][0]["text"] == "You said: long"
        for _ in range(600):
            answer = client.post(chat, json=sent("m3", "and now?"))
            if answer.is_success:
                break
            assert "recorded" in answer.json()["error"]
            time.sleep(0.05)
        assert client.post(chat, json={"messages": []}).status_code == 422
        assert client.post(chat, json={"messages": [{"role": 5}]}).status_code == 400
        with client.stream("POST", chat, json=sent("m4", "long")) as answer:
            next(answer.iter_lines())
    with running() as client:  # It was killed in the middle.
        assert client.post(chat, json=sent("m5", "again")).is_success
        shown = client.get(chat).json()
    assert [one["id"] for one in shown if one["role"] == "user"] == [
        "m1", "m2", "m3", "m4", "m5"]
    assert shown[-1]["parts"][0]["text"] == "You said: again"


def test_the_ten_lines(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    exec(compile(BLOCKS[0], "hosts.md", "exec"), {"__name__": "__main__"})
    assert "'Done.'" in capsys.readouterr().out


@pytest.mark.parametrize("block", BLOCKS[1:], ids=range(1, len(BLOCKS)))
async def test_the_code_of_the_page(
    block: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    async with Store.open("host.db", create=True) as store:
        names: dict[str, Any] = {"store": store, "session": await store.create_session("a")}
        code = compile(block, "hosts.md", "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
        result = eval(code, names)
        if inspect.isawaitable(result):
            await result
        if "follow" in names:
            following = asyncio.create_task(names["follow"](store))
            await asyncio.sleep(0)
            await store.create_session("b")
            await store.close()
            await asyncio.wait_for(following, 60)


def test_the_page_names_what_the_store_and_the_recorder_have() -> None:
    from backscroll import Recorder

    for shown, kind in ((Store, "store"), (Recorder, "recorder")):
        public = {name for name, held in vars(shown).items()
                  if inspect.isroutine(getattr(shown, name)) and not name.startswith("_")
                  and not isinstance(held, property)}  # fmt: skip
        missing = {name for name in public if not re.search(rf"\b{name}\b", PAGE)}
        assert missing <= {"write", "open", "generate_message_id"}, kind
