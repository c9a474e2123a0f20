"""Stores with nothing but sessions, for the list's tests."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from textual.pilot import Pilot

from store.config import Settings, UiSettings
from store.engine.database import open_database
from tests.tui.workers import workers_done
from tui.app import BackscrollApp
from tui.sessions.pane import SessionsPane
from tui.state.library import Library
from tui.state.limits import NO_LIMITS, Limits

NOW = 1_795_000_000_000
MINUTE = 60_000


@dataclass
class Told:
    """A session to be stored; ``age`` is in minutes."""

    id: str
    title: str | None = None
    workspace: str | None = "/w/api"
    age: float = 1
    parent: str | None = None
    lineage: str = "fork"
    source: str = "claude-code"
    model: str = "claude-sonnet-4-5-20250929"
    tokens: int = 0
    cost: float = 0.0
    archived: bool = False
    activity: str | None = None
    branch: str | None = None


def put(path: Path, sessions: Iterable[Told]) -> Path:
    database = open_database(path, create=True)
    for told in sessions:
        metadata: dict[str, Any] = {"source": {"kind": told.source, "id": told.id, "path": "/x"}}
        if told.title is not None:
            metadata["title"] = told.title
        if told.parent:
            metadata["lineage"] = {"kind": told.lineage}
        if told.activity:
            metadata["activity"] = {"state": told.activity, "from": "stored"}
        if told.branch:
            metadata["git_branch"] = told.branch
        at = NOW - int(told.age * MINUTE)
        database.connection.execute(
            f"INSERT OR REPLACE INTO chat_sessions VALUES ({','.join('?' * 18)})",
            (
                told.id, told.source, told.workspace,
                json.dumps({"provider_id": "anthropic", "model_id": told.model}),
                told.parent, None, "[]", json.dumps(metadata), 0, 0, 0, 0, 0, told.tokens,
                told.cost, at - MINUTE, at, NOW if told.archived else None,
            ),
        )
    database.close()
    return path


def browser(
    path: Path, keys: dict[str, list[str]] | None = None, limits: Limits = NO_LIMITS, **ui: Any
) -> BackscrollApp:
    library = Library.open(path, "test", clock=lambda: NOW)
    library.limits = limits
    return BackscrollApp(library, Settings(keys=keys or {}, ui=UiSettings(**ui)), poll_ms=0)


def some(count: int) -> list[Told]:
    return [
        Told(f"ses_{n:026d}", f"Session {n}", f"/w/p{n % 3}", age=n + 1, tokens=(n * 37) % 101)
        for n in range(count)
    ]


async def settled(app: BackscrollApp, pilot: Pilot[None]) -> SessionsPane:
    await pilot.pause()
    await workers_done(app)
    await pilot.pause()
    await workers_done(app)
    await pilot.pause()
    return app.main.sessions
