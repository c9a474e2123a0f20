"""Hits made by hand, and a searcher that gives them, for the tests of the search screen."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Callable, Mapping
from pathlib import Path
from typing import Any, ClassVar

import pytest

from store.language.query import Query
from store.queries.listing import ListRow
from store.search.hits import (
    Counts,
    Coverage,
    Excerpt,
    Facets,
    Hit,
    Order,
    Page,
    SessionHits,
    Update,
)
from store.search.text import Where
from tests.tui.seeded import START
from tui.search import model as model_module

NOW = START + 3_600_000


def row(session_id: str = "ses_a", title: str | None = "Retry loop", **more: Any) -> ListRow:
    values: dict[str, Any] = {
        "rowid": 1, "agent": "claude-code", "source": "claude-code",
        "model": "claude-sonnet-4-5", "workspace": "/srv/api", "branch": "main",
        "parent_id": None, "lineage": None, "tokens": 0, "cost": 0.0, "created_at": START,
        "updated_at": START, "archived_at": None, "star": False, "tags": (), "activity": None,
        "activity_from": None, "said": None, "messages": 2, "outline": False,
        "prompts_only": False, **more,
    }
    return ListRow(id=session_id, title=title, **values)


def excerpt(text: str, needle: str = "retry", **more: Any) -> Excerpt:
    marks = tuple(found.span() for found in re.finditer(re.escape(needle), text, re.IGNORECASE))
    return Excerpt(text, marks, **more)


def hit(
    text: str, *, session: str = "ses_a", message: str | None = "msg_1", index: int = 0,
    where: Where = "text", role: str = "assistant", needle: str = "retry",
    data: Mapping[str, Any] | None = None, at: int = START, **more: Any,
) -> Hit:
    data = {"type": "reasoning" if where == "reasoning" else "text"} if data is None else data
    kind = str(data.get("type") or "")
    tool = kind[5:] if kind.startswith("tool-") else None
    found = excerpt(text, needle, **more)
    return Hit(
        session, message, f"prt_{session}_{message}_{index}" if message else None, index, at,
        (at, at + 500), where, role, tool, data.get("state"),
        data.get("state") == "output-error", data, found, len(found.marks),
    )


def bash(command: str, output: str, *, failed: bool = False) -> dict[str, Any]:
    return {
        "type": "tool-Bash", "toolCallId": "c", "input": {"command": command},
        "state": "output-error" if failed else "output-available",
        "errorText" if failed else "output": f"Exit code 1\n{output}" if failed else output,
    }


def update(
    sessions: list[SessionHits], *, counts: Counts | None = None, facets: Facets | None = None,
    coverage: Coverage | None = None, cursor: str | None = None, ready: bool = True,
    done: bool = True,
) -> Update:
    hits = sum(len(found.hits) + found.more for found in sessions)
    return Update(
        Page(sessions, cursor), counts or Counts(hits, len(sessions), all_sessions=7, whole=done),
        facets or {}, coverage or Coverage(10, 10, True), ready, done,
    )


Answer = Callable[[Query, Mapping[str, Any]], list[Update]]


class MadeSearcher:
    """Gives what a test has made; each update after the first when the test lets it."""

    answer: ClassVar[Answer]
    asked: ClassVar[list[tuple[str, dict[str, Any]]]]
    gate: ClassVar[asyncio.Semaphore | None]

    @classmethod
    async def open(cls, path: Path) -> MadeSearcher:
        return cls()

    async def search(
        self, query: Query, *, order: Order = "newest", **more: Any
    ) -> AsyncIterator[Update]:
        type(self).asked.append((query.text, {"order": order, **more}))
        for number, one in enumerate(type(self).answer(query, more)):
            if number and (gate := type(self).gate) is not None:
                await gate.acquire()
            yield one

    async def close(self) -> None:
        return


def made(monkeypatch: pytest.MonkeyPatch, answer: Answer) -> type[MadeSearcher]:
    """Have the search screen find what a function returns."""
    MadeSearcher.answer = staticmethod(answer)
    MadeSearcher.asked, MadeSearcher.gate = [], None
    monkeypatch.setattr(model_module, "Searcher", MadeSearcher)
    monkeypatch.setattr(model_module, "TYPING_S", 0)
    return MadeSearcher
