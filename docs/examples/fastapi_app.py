"""A web server for ``useChat``: it streams answers, records them, and hydrates a chat again.

    pip install fastapi uvicorn
    HOST_DB=host.db uvicorn --app-dir docs/examples fastapi_app:app
"""

import json
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Annotated, Any

from fastapi import FastAPI, Request
from fastapi.responses import JSONResponse, StreamingResponse
from pydantic import BaseModel, Field

from backscroll import BackscrollError, Invalid, NotFound, Recorder, Store, UIMessage


async def model(messages: list[UIMessage]) -> AsyncIterator[dict[str, Any]]:
    """Stand in for a model: the chunks of the AI SDK's UI message stream."""
    yield {"type": "start"}
    yield {"type": "text-start", "id": "t"}
    said = "".join(part.get("text", "") for part in messages[-1]["parts"])
    for word in ("You ", "said: ", said):
        yield {"type": "text-delta", "id": "t", "delta": word}
    yield {"type": "text-end", "id": "t"}
    yield {"type": "finish", "finishReason": "stop"}


class Sent(BaseModel):
    """What ``useChat`` sends, of which only the last message is new."""

    messages: Annotated[list[dict[str, Any]], Field(min_length=1)]


@asynccontextmanager
async def lifespan(app: FastAPI) -> AsyncIterator[None]:
    async with Store.open(os.environ.get("HOST_DB", "host.db"), create=True) as store:
        app.state.store = store
        yield


app = FastAPI(lifespan=lifespan)


@app.exception_handler(BackscrollError)
async def explain(request: Request, error: BackscrollError) -> JSONResponse:
    status = 404 if isinstance(error, NotFound) else 400 if isinstance(error, Invalid) else 409
    return JSONResponse({"error": str(error)}, status)


@app.post("/api/chats")
async def create(request: Request) -> dict[str, str]:
    session = await request.app.state.store.create_session("chat", "acme/parrot-1")
    return {"id": session.id}


@app.get("/api/chats/{chat}")
async def hydrate(request: Request, chat: str) -> list[Any]:
    messages: list[Any] = await request.app.state.store.messages(chat)
    return messages


@app.post("/api/chats/{chat}")
async def send(request: Request, chat: str, sent: Sent) -> StreamingResponse:
    store: Store = request.app.state.store
    # Refused here, before the answer begins, if the chat has a recorder already.
    recorder = await store.recorder(chat)
    try:
        # The whole UIMessage, with the id that the browser gave it.
        await recorder.add_message(sent.messages[-1])
        messages = await store.messages(chat)
    except BaseException:
        await recorder.close()
        raise
    return StreamingResponse(
        events(recorder, messages), media_type="text/event-stream",
        headers={"x-vercel-ai-ui-message-stream": "v1", "cache-control": "no-cache"})


async def events(recorder: Recorder, messages: list[UIMessage]) -> AsyncIterator[str]:
    """Send each chunk when it is recorded; a browser that leaves ends the answer."""
    async with recorder:
        try:
            async for chunk in model(messages):
                await recorder.feed(chunk)
                yield f"data: {json.dumps(chunk)}\n\n"
        except BaseException:
            await recorder.abort("the browser left, or the model failed")
            raise
    yield "data: [DONE]\n\n"
