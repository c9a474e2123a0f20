"""A recording plays what a session says, in its order, its times and harmless."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pyte
import pytest

from store.engine.database import Database
from store.exports.asciicast import LONGEST_LINE, OUTPUT_LINES, THEME, TYPED_S, WRITTEN_S
from store.exports.files import prepare
from store.exports.reading import Playing
from store.exports.registry import FORMATS
from tests.hostile import ALL, NEVER, controls, hostile_store
from tests.tui.seeded import SESSION, START, Said, make_store, text, tool
from tui.kit.palette import Palette

COLOUR = re.compile(r"\x1b\[[0-9;]*m")
DAY = 86_400_000


def recorded(db: Database, session: str = SESSION, **playing: Any) -> tuple[dict[str, Any], Any]:
    """Return the header and the events of a recording."""
    made = prepare(db, session, FORMATS["asciicast"], playing=Playing(**playing))
    header, *events = (json.loads(line) for line in "".join(made.pieces()).splitlines())
    db.file.rollback()
    return header, events


def shown(events: Any) -> list[str]:
    """Return the lines that a recording shows, without colours."""
    whole = "".join(event[2] for event in events)
    return COLOUR.sub("", whole).split("\r\n")


@pytest.fixture
def store(tmp_path: Path, opened: Any) -> Database:
    long = "\n".join(f"line {number}" for number in range(OUTPUT_LINES + 3))
    database: Database = opened(make_store(tmp_path / "s.db", [
        Said("user", [text("Fix the\nlogin")]),
        Said("assistant", [
            {"type": "reasoning", "text": "Perhaps the token."}, text("I look."),
            tool("bash", {"command": "cat a.py"}, long, duration_ms=90_000),
            tool("bash", {"command": "false"}, "no", state="output-error", call="call_2"),
            text("Done: " + "y" * 50)]),
        Said("user", [text("thanks")], at=START + DAY),
    ]))  # fmt: skip
    return database


def test_it_says_what_the_session_says(store: Database) -> None:
    header, events = recorded(store, columns=90, rows=25, longest_wait=1.5)
    assert (header["version"], header["width"], header["height"]) == (2, 90, 25)
    assert (header["idle_time_limit"], header["title"]) == (1.5, "A session")
    assert header["timestamp"] == START // 1000
    assert shown(events) == [
        "", "You", "❯ Fix the", "login", "", "Assistant", "Perhaps the token.", "I look.",
        "bash cat a.py", *(f"  line {number}" for number in range(OUTPUT_LINES)),
        "  3 more lines", "  ok, 90.0 s", "bash false", "  no", "  failed", "Done: " + "y" * 50,
        "23h 58m later", "", "You", "❯ thanks", "",
    ]  # fmt: skip


def test_a_terminal_shows_it(store: Database) -> None:
    header, events = recorded(store, columns=40, rows=50)
    screen = pyte.Screen(header["width"], header["height"])
    stream = pyte.Stream(screen)
    for _at, _kind, data in events:
        stream.feed(data)
    rows = [
        line[at : at + 40] for line in shown(events) for at in range(0, max(1, len(line)), 40)
    ]
    assert [row.rstrip() for row in screen.display][: len(rows)] == [row.rstrip() for row in rows]
    assert screen.buffer[2][0].fg == "blue" and screen.buffer[5][0].fg == "cyan"
    failed = rows.index("  failed")
    assert screen.buffer[failed][2].fg == "red"


def test_times_go_on_and_waits_are_shortened(store: Database) -> None:
    _header, events = recorded(store, longest_wait=1.0)
    times = [event[0] for event in events]
    assert times == sorted(times) and times[0] == 0
    waits = [later - at for at, later in zip(times, times[1:], strict=False)]
    assert max(waits) <= 1.0 + 0.1
    text_at = {event[2]: event[0] for event in events}
    assert text_at["\x1b[32m  ok, 90.0 s\x1b[0m\r\n"] - text_at[
        "\x1b[33mbash\x1b[0m cat a.py\r\n"] == pytest.approx(1.0, abs=0.001)
    _header, events = recorded(store, longest_wait=10 * DAY)
    assert events[-1][0] > DAY / 1000


def test_long_texts_are_typed_and_written_in_bounded_time(tmp_path: Path, opened: Any) -> None:
    database = opened(make_store(tmp_path / "s.db", [
        Said("user", [text("x" * 50_000)]), Said("assistant", [text("y\n" * 50_000)]),
        Said("assistant", [tool("bash", {}, "z" * 100_000)]),
    ]))  # fmt: skip
    _header, events = recorded(database)
    assert TYPED_S <= events[-1][0] <= TYPED_S + WRITTEN_S + 3 * 2.0
    assert f"  {'z' * LONGEST_LINE}" in shown(events)


def test_hostile_text_never_becomes_an_escape(tmp_path: Path, opened: Any) -> None:
    header, events = recorded(opened(hostile_store(tmp_path / "s.db")), ALL)
    assert not controls(header["title"]) and not NEVER.search(header["title"])
    plain = "\n".join(shown(events))
    assert not controls(plain) and not NEVER.search(plain)


def test_secrets_are_masked(tmp_path: Path, opened: Any) -> None:
    secret = "ghp_" + "a1B2c3D4e5" * 3 + "f6G7h8"
    database = opened(make_store(tmp_path / "s.db", [Said("user", [text(f"use {secret} now")])]))
    assert secret not in "".join(shown(recorded(database)[1]))


def test_the_colours_are_those_of_the_dark_theme() -> None:
    own = Palette()
    roles = (own.raised, own.error, own.ok, own.tool, own.user, own.reasoning, own.assistant,
             own.text)  # fmt: skip
    bright = (own.faint, *roles[1:5], own.fork, *roles[6:])
    assert {"fg": own.text, "bg": own.background, "palette": ":".join(roles + bright)} == THEME
