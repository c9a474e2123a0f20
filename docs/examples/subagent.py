"""A subagent has a session of its own, which names the call that started it.

    python docs/examples/subagent.py host.db
"""

import asyncio
import sys
from collections.abc import AsyncIterator
from typing import Any

from backscroll import Session, Store


async def answer(text: str) -> AsyncIterator[dict[str, Any]]:
    """Stand in for a model that answers with a text."""
    yield {"type": "start"}
    yield {"type": "text-start", "id": "t"}
    yield {"type": "text-delta", "id": "t", "delta": text}
    yield {"type": "text-end", "id": "t"}
    yield {"type": "finish"}


async def subagent(store: Store, parent: Session, call: str, task: str) -> str:
    session = await store.create_session("researcher", parent=parent, tool_call=call)
    async with store.recorder(session) as recorder:
        await recorder.user_message(task)
        await recorder.feed_all(answer("It is in src/main.py."))
    last = (await store.messages(session))[-1]
    text: str = last["parts"][-1]["text"]
    return text


async def main(path: str) -> None:
    async with Store.open(path, create=True) as store:
        session = await store.create_session("main", "anthropic/claude-sonnet-4-5")
        async with store.recorder(session) as recorder:
            await recorder.user_message("Where is the entry point?")
            await recorder.feed({"type": "start"})
            await recorder.feed({
                "type": "tool-input-available", "toolCallId": "call-1", "toolName": "task",
                "input": {"prompt": "Find the entry point"}})
            found = await subagent(store, session, "call-1", "Find the entry point")
            await recorder.feed({
                "type": "tool-output-available", "toolCallId": "call-1", "output": found})
            await recorder.feed({"type": "finish"})

        for one in await store.sessions():
            print(one.agent, "started by" if one.parent_id else "", one.parent_id or "")


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:] or ["host.db"]))
