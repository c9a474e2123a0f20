"""y-agent: traces in the tables of the program's own schema, as its recorder writes them.

A trace is begun with a row that is updated when it ends; an observation is written once,
with its times; ids are drawn by chance, so that they tell no order.
"""

from __future__ import annotations

import shutil
import sqlite3
from pathlib import Path
from typing import Any

import pytest

from store.sources.base.protocol import FileStamp
from store.sources.y_agent import YAgentSource
from tests.sources import grown
from tests.sources.test_y_agent import PLAN

DATA = Path(__file__).parent.parent / "data" / "y-agent" / "data"
BEGIN = """INSERT INTO diag_traces(id, session_id, name, status, user_input, started_at)
    VALUES (?, ?, 'turn', 'active', 'q', ?)"""
END = """UPDATE diag_traces SET status = 'completed', completed_at = ?,
    total_input_tokens = 9, total_output_tokens = 4 WHERE id = ?"""
OBSERVE = """INSERT INTO diag_observations(id, trace_id, session_id, obs_type, name, status, model,
    input_tokens, output_tokens, sequence, error_message, started_at, completed_at)
    VALUES (?, ?, ?, 'generation', 'call', 'failed', 'm', 9, 4, ?, 'no answer',
    '2026-09-01T10:00:00.000000001+00:00', '2026-09-01T10:00:01.250+00:00')"""
SCHEMA = """
DROP TABLE IF EXISTS diag_scores; DROP TABLE IF EXISTS diag_observations;
DROP TABLE IF EXISTS diag_traces;
CREATE TABLE diag_traces(id TEXT PRIMARY KEY, session_id TEXT NOT NULL, name TEXT NOT NULL,
    status TEXT NOT NULL DEFAULT 'active', user_input TEXT, metadata TEXT DEFAULT 'null',
    tags TEXT DEFAULT '[]', replay_context TEXT, started_at TEXT, completed_at TEXT,
    total_input_tokens INTEGER DEFAULT 0, total_output_tokens INTEGER DEFAULT 0,
    total_cost_usd REAL DEFAULT 0.0, llm_duration_ms INTEGER DEFAULT 0,
    tool_duration_ms INTEGER DEFAULT 0);
CREATE TABLE diag_observations(id TEXT PRIMARY KEY, trace_id TEXT NOT NULL, parent_id TEXT,
    session_id TEXT, obs_type TEXT NOT NULL, name TEXT NOT NULL, status TEXT NOT NULL, model TEXT,
    input_tokens INTEGER DEFAULT 0, output_tokens INTEGER DEFAULT 0, cost_usd REAL DEFAULT 0.0,
    input TEXT DEFAULT 'null', output TEXT DEFAULT 'null', metadata TEXT DEFAULT 'null',
    sequence INTEGER DEFAULT 0, depth INTEGER DEFAULT 0, path TEXT DEFAULT '[]',
    error_message TEXT, started_at TEXT, completed_at TEXT);
CREATE TABLE diag_scores(id TEXT PRIMARY KEY, trace_id TEXT NOT NULL, observation_id TEXT,
    name TEXT NOT NULL, value REAL DEFAULT 0.0, data_type TEXT DEFAULT 'numeric',
    string_value TEXT, comment TEXT, source TEXT DEFAULT 'system', created_at TEXT);
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    copy = tmp_path / "data"
    shutil.copytree(DATA, copy)
    connection = sqlite3.connect(copy / "y-agent.db")
    connection.executescript(SCHEMA)
    connection.close()
    change(copy, BEGIN, "f-first", PLAN, "2026-09-01T10:00:00.000Z")
    change(copy, BEGIN, "a-second", PLAN, "2026-09-01T10:05:00.000Z")
    return copy


def change(folder: Path, sql: str, *values: Any) -> None:
    connection = sqlite3.connect(folder / "y-agent.db")
    with connection:
        connection.execute(sql, values)
    connection.close()


def stamps(folder: Path) -> dict[str, tuple[FileStamp, ...]]:
    return {unit.key: unit.stamps for unit in YAgentSource().units(folder, [])}


def traces(folder: Path) -> list[dict[str, Any]]:
    drafts, _ = grown.read_all(YAgentSource(), folder)
    return [
        trace for message in drafts[PLAN].messages
        for trace in (message.metadata.get("backscroll") or {}).get("traces", ())
    ]  # fmt: skip


def test_traces_stand_in_the_order_of_their_times(folder: Path) -> None:
    assert [trace["id"] for trace in traces(folder)] == ["f-first", "a-second"]


@pytest.mark.parametrize(
    ("sql", "values"),
    [
        (END, ("2026-09-01T10:00:02.000Z", "f-first")),
        (OBSERVE, ("o1", "f-first", None, 1)),
        (BEGIN, ("third", PLAN, "2026-09-01T10:06:00.000Z")),
    ],
)
def test_a_trace_that_moves_moves_its_session_alone(
    folder: Path, sql: str, values: tuple[Any, ...]
) -> None:
    before = stamps(folder)
    change(folder, sql, *values)
    after = stamps(folder)
    assert [key for key in after if after[key] != before[key]] == [
        key for key in after if key.endswith(PLAN)]  # fmt: skip


def test_what_was_asked_says_how_long_it_took_and_why_it_failed(folder: Path) -> None:
    change(folder, OBSERVE, "o1", "f-first", None, 1)
    assert traces(folder)[0]["observations"] == [
        {"obs_type": "generation", "name": "call", "model": "m", "status": "failed", "depth": 0,
         "input_tokens": 9, "output_tokens": 4, "cost_usd": 0.0, "error_message": "no answer",
         "duration_ms": 1250}
    ]  # fmt: skip
