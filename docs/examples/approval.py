"""A tool call waits for the user's approval, over the end of the program's turn.

    python docs/examples/approval.py host.db
"""

import asyncio
import sys

from backscroll import Store


async def ask(store: Store) -> str:
    """The agent wants to run a command; its turn ends with a request. Returns the session."""
    session = await store.create_session(
        "shell", permissions=[{"permission": "bash", "pattern": "rm *", "action": "ask"}])
    async with store.recorder(session) as recorder:
        await recorder.user_message("Remove the build folder")
        for chunk in (
            {"type": "start"},
            {"type": "tool-input-available", "toolCallId": "call-1", "toolName": "bash",
             "input": {"command": "rm -r build"}},
            {"type": "tool-approval-request", "toolCallId": "call-1", "approvalId": "ok-1"},
            {"type": "finish"},
        ):
            await recorder.feed(chunk)
    return session.id


async def approve(store: Store, session: str) -> None:
    """The user has answered, maybe a day later; the same message goes on."""
    waiting = (await store.messages(session))[-1]
    async with store.recorder(session) as recorder:
        await recorder.respond_approval(waiting["id"], "ok-1", True, "go ahead")
        for chunk in (
            {"type": "tool-output-available", "toolCallId": "call-1", "output": "removed"},
            {"type": "text-start", "id": "t"},
            {"type": "text-delta", "id": "t", "delta": "The folder is gone."},
            {"type": "text-end", "id": "t"},
            {"type": "finish"},
        ):
            await recorder.feed(chunk)


async def main(path: str) -> None:
    async with Store.open(path, create=True) as store:
        session = await ask(store)
        print((await store.session(session)).metadata["activity"]["state"])
        await approve(store, session)
        print((await store.session(session)).metadata["activity"]["state"])
        for part in (await store.messages(session))[-1]["parts"]:
            print(part["type"], part.get("state"))


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:] or ["host.db"]))
