"""``BackscrollSession`` with the real package: what an agent's runner keeps and gets back."""

from __future__ import annotations

from collections.abc import Iterator
from importlib import import_module
from typing import Any

import pytest

from backscroll import Store
from store.adapters.openai_agents import BackscrollSession
from store.engine.database import Database
from store.events.log import switch_on
from store.events.rebuilding import differing

PROMPT = {"role": "user", "content": "What is the weather?"}
ANSWER: list[dict[str, Any]] = [
    {"type": "reasoning", "id": "rs", "summary": [{"type": "summary_text", "text": "Look it up"}]},
    {"type": "function_call", "call_id": "c1", "name": "weather", "arguments": '{"city":"Oslo"}'},
    {"type": "function_call", "call_id": "c2", "name": "weather", "arguments": '{"city":"Rome"}'},
    {"type": "function_call_output", "call_id": "c1", "output": "rain"},
    {"type": "function_call_output", "call_id": "c2", "output": "sun"},
    {"type": "message", "id": "m", "role": "assistant", "status": "completed",
     "content": [{"type": "output_text", "text": "Rain and sun.", "annotations": []}]},
]  # fmt: skip


@pytest.fixture
def agents() -> Any:
    """The package, which takes longer to import than all others."""
    return import_module("agents")


@pytest.fixture
def target(of_any_form: Database) -> Iterator[str]:
    """What names a store; the events of a library of ours are what its tables hold."""
    db = of_any_form
    if db.form.name == "own":
        switch_on(db)
    yield str(db.path) if db.server is None else db.server.dsn
    if db.form.name == "own":
        assert differing(db) == []
        assert db.connection.execute("SELECT count(*) > 9 FROM events").fetchone() == (1,)


async def test_items_come_back_as_they_were_added(target: str, agents: Any) -> None:
    async with Store.open(target) as store:
        session: Any = BackscrollSession("chat 1", store, model="openai/gpt-5")
        assert isinstance(session, agents.Session)
        assert await session.get_items() == [] and await session.pop_item() is None
        await session.add_items([])
        assert await store.sessions() == []
        await session.add_items([PROMPT])
        await session.add_items(ANSWER[:3])
        await session.add_items(ANSWER[3:])
        assert await session.get_items() == [PROMPT, *ANSWER]
        assert await session.get_items(2) == ANSWER[-2:]
        assert await session.get_items(0) == []
        settings = import_module("agents.memory.session_settings").SessionSettings(limit=1)
        again: Any = BackscrollSession("chat 1", store, session_settings=settings)
        assert await again.get_items() == ANSWER[-1:]

        user, assistant = await store.messages(session.id)
        assert user["parts"] == [{"type": "text", "text": "What is the weather?", "state": "done"}]
        kinds = [part["type"] for part in assistant["parts"]]
        assert kinds == ["reasoning", "tool-weather", "tool-weather", "text"]
        assert [part["output"] for part in assistant["parts"][1:3]] == ["rain", "sun"]
        (listed,) = await store.sessions()
        assert (listed.title, listed.agent) == ("What is the weather?", "openai-agents")
        assert listed.model["model_id"] == "gpt-5"


async def test_the_newest_items_are_taken_out(target: str) -> None:
    async with Store.open(target) as store:
        session: Any = BackscrollSession("chat", store)
        await session.add_items([PROMPT, *ANSWER])
        for item in reversed(ANSWER):
            assert await session.pop_item() == item
        assert await session.get_items() == [PROMPT]
        assert len(await store.messages(session.id)) == 1
        await session.add_items([ANSWER[-1], PROMPT])
        assert await session.pop_item() == PROMPT
        assert await session.get_items() == [PROMPT, ANSWER[-1]]


async def test_a_cleared_session_can_be_brought_back(target: str) -> None:
    async with Store.open(target) as store:
        session: Any = BackscrollSession("chat", store)
        await session.clear_session()
        await session.add_items([PROMPT, *ANSWER])
        await session.clear_session()
        assert await session.get_items() == []
        await session.add_items([PROMPT])
        assert await session.get_items() == [PROMPT]
        await store.undo()
        assert await session.get_items() == [PROMPT, *ANSWER, PROMPT]


def scripted(agents: Any) -> Any:
    """Return a model that calls a tool first, then answers."""
    responses: Any = import_module("openai.types.responses")

    class Scripted(agents.Model):  # type: ignore[misc]
        def __init__(self) -> None:
            self.seen: list[Any] = []

        async def get_response(self, *_: Any, input: Any, **__: Any) -> Any:
            self.seen.append(input)
            if len(self.seen) == 1:
                output = responses.ResponseFunctionToolCall(
                    call_id="c", name="shout", arguments='{"text":"hi"}', type="function_call")
            else:
                text = responses.ResponseOutputText(text="HI!", type="output_text", annotations=[])
                output = responses.ResponseOutputMessage(
                    id="m", role="assistant", status="completed", type="message", content=[text])
            return agents.ModelResponse(output=[output], usage=agents.Usage(), response_id=None)

        def stream_response(self, *_: Any, **__: Any) -> Any:
            raise NotImplementedError

    return Scripted()


def shout(text: str) -> str:
    """Return a text in capitals."""
    return text.upper()


async def test_a_run_of_an_agent_goes_on_from_what_is_stored(
    location: str, agents: Any
) -> None:
    agents.set_tracing_disabled(True)
    model = scripted(agents)
    agent = agents.Agent(name="A", model=model, tools=[agents.function_tool(shout)])
    async with Store.open(location) as store:
        session = BackscrollSession("chat", store)
        first = await agents.Runner.run(agent, "Say hi", session=session)
        assert first.final_output == "HI!"
        await agents.Runner.run(agent, "Again", session=BackscrollSession("chat", store))
        assert [one.get("role") or one["type"] for one in model.seen[-1]] == [
            "user", "function_call", "function_call_output", "assistant", "user"]
        messages = await store.messages(session.id)
        assert [one["role"] for one in messages] == ["user", "assistant"] * 2
        assert messages[1]["parts"][0]["output"] == "HI"
