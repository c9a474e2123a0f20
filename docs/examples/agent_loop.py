"""An agent's loop: what the model streams is recorded as it comes, and read again.

    python docs/examples/agent_loop.py host.db
"""

import asyncio
import sys
from collections.abc import AsyncIterator
from typing import Any

from backscroll import Store, UIMessage


async def model(messages: list[UIMessage]) -> AsyncIterator[dict[str, Any]]:
    """Stand in for a model: the chunks of the AI SDK's UI message stream."""
    usage = {"inputTokens": 12 * len(messages), "outputTokens": 5}
    yield {"type": "start"}
    yield {"type": "start-step"}
    if messages[-1]["role"] == "user":
        yield {"type": "tool-input-available", "toolCallId": "call-1", "toolName": "add",
               "input": {"a": 2, "b": 3}}
    else:
        yield {"type": "text-start", "id": "t"}
        for word in ("The ", "sum ", "is ", "5."):
            yield {"type": "text-delta", "id": "t", "delta": word}
        yield {"type": "text-end", "id": "t"}
    yield {"type": "message-metadata", "messageMetadata": {"usage": usage}}
    yield {"type": "finish-step"}


async def main(path: str) -> None:
    async with Store.open(path, create=True) as store:
        session = await store.create_session("calculator", "anthropic/claude-sonnet-4-5")
        async with store.recorder(session) as recorder:
            await recorder.user_message("What is 2 + 3?")
            called = True
            while called:
                called = False
                async for chunk in model(await store.messages(session)):
                    await recorder.feed(chunk)
                    if chunk["type"] == "tool-input-available":
                        called = True
                        total = sum(chunk["input"].values())
                        await recorder.feed({
                            "type": "tool-output-available", "toolCallId": chunk["toolCallId"],
                            "output": total})
                await recorder.flush()
            await recorder.feed({"type": "finish", "finishReason": "stop"})

        for message in await store.messages(session):
            print(message["role"], [part["type"] for part in message["parts"]])
        print(await store.session(session))


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:] or ["host.db"]))
