from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from textual.pilot import Pilot

from store.config import Settings
from store.queries.details import Turn
from store.store import Store
from store.text.figures import moment
from store.usage import Spent
from tests.tui.inspected import Talk, make_long, make_store
from tests.tui.workers import workers_done
from tui.details.chart import Chart
from tui.details.columns import cell_of, columns, horizontal
from tui.details.measures import MEASURES
from tui.details.screen import DetailsScreen
from tui.details.table import TurnTable, turn_line
from tui.dialogs.help import HelpScreen
from tui.dialogs.palette import entries_of
from tui.keys import registry
from tui.keys.clashes import clashes
from tui.keys.dispatch import CommandApp
from tui.keys.table import CommandTable
from tui.kit.tabs import Tabs
from tui.kit.theme import OWN_THEMES
from tui.messages import SessionOpened
from tui.state.limits import NO_LIMITS


class DetailsApp(CommandApp):
    def __init__(self) -> None:
        super().__init__()
        self.opened: list[SessionOpened] = []
        self.opened_parts: list[str | None] = []
        self.changed: dict[str, list[str]] = {}
        for theme in OWN_THEMES:
            self.register_theme(theme)
        self.theme = "backscroll-dark"
        self.settings = Settings()
        self.library = SimpleNamespace(limits=NO_LIMITS, no_change=None)

    @property
    def commands(self) -> CommandTable:
        return CommandTable(registry.COMMANDS, self.changed)

    def open_session(
        self, session_id: str, message_id: str | None = None, part_id: str | None = None
    ) -> None:
        self.opened.append(SessionOpened(session_id, message_id))
        self.opened_parts.append(part_id)

    @property
    def lines(self) -> list[str]:
        strips = self.screen._compositor.render_strips()
        return [strip.text.rstrip() for strip in strips]


@asynccontextmanager
async def details_of(
    talk: Talk, size: tuple[int, int] = (120, 40)
) -> AsyncIterator[tuple[DetailsApp, DetailsScreen, Pilot[None]]]:
    store = await Store.open(talk.db.path)
    app = DetailsApp()
    try:
        async with app.run_test(size=size) as pilot:
            screen = DetailsScreen(store, talk.session_id)
            await app.push_screen(screen)
            await workers_done(app)
            await pilot.pause()
            yield app, screen, pilot
    finally:
        await store.close()


@pytest.fixture
def talk(tmp_path: Path) -> Talk:
    return make_store(tmp_path / "store.db")


async def test_what_is_read_after_it_was_left_is_dropped(
    talk: Talk, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = await Store.open(talk.db.path)
    app, problems = DetailsApp(), list[tuple[object, ...]]()
    screen = DetailsScreen(store, talk.session_id)
    read_now = store.read

    async def read(*asked: Any, **more: Any) -> Any:
        found = await read_now(*asked, **more)
        while screen.query(Tabs):
            await asyncio.sleep(0)
        return found

    monkeypatch.setattr(
        DetailsApp, "report", lambda app, *told: problems.append(told), raising=False)
    monkeypatch.setattr(store, "read", read)
    async with app.run_test() as pilot:
        await app.push_screen(screen)
        await app.pop_screen()
        await workers_done(app)
        await pilot.pause()
    await store.close()
    assert not screen.query(Tabs) and problems == []


@pytest.mark.parametrize("size", [(200, 60), (120, 40), (80, 24)])
@pytest.mark.one_in(3)
async def test_turns_with_their_figures_fit_every_size(talk: Talk, size: tuple[int, int]) -> None:
    async with details_of(talk, size) as (app, _, _):
        lines = app.lines
    assert lines[0].strip().startswith("Inspected")
    assert lines[1].strip() == "claude-code · sonnet high · /home/x/api · main"
    rows = [line for line in lines if "Find out why" in line or "Second prompt" in line]
    assert len(rows) == 2
    assert "4.2 s" in rows[0] and "$0.250" in rows[0]
    assert any(line.strip().startswith("tokens  ■") and "at most 200" in line for line in lines)
    assert any("turn 1" in line and "read 120" in line for line in lines)
    assert ("Permissions  1 rule" in "\n".join(lines)) == (size[0] >= 200)


def test_the_first_turn_of_a_day_has_date_and_time_at_every_width() -> None:
    day = 86_400_000
    at = 1_795_000_000_000
    turns = [Turn(n + 1, f"m{n}", at + ms, at + ms) for n, ms in enumerate((0, 60_000, day))]
    for width in (60, 78, 118, 198):
        table = TurnTable("s", turns, MEASURES[0])
        shown = [table.line(number, width).text[7:18] for number in range(3)]
        assert shown == [moment(at)[5:16], moment(at + 60_000)[11:16].rjust(11),
                         moment(at + day)[5:16]]


async def test_enter_on_a_turn_goes_there(talk: Talk) -> None:
    async with details_of(talk) as (app, screen, pilot):
        await pilot.press("j", "enter")
        await pilot.pause()
        assert app.screen is not screen
        (event,) = app.opened
        assert (event.session_id, event.message_id) == ("ses_inspected", "msg_inspected_00005")


async def test_tabs_show_facts_prompts_and_tools(talk: Talk) -> None:
    async with details_of(talk, (120, 60)) as (app, screen, pilot):
        await pilot.press("ctrl+right")
        shown = "\n".join(app.lines)
        for told in ("anthropic/sonnet high", "/tmp/abc.jsonl", "allow", "git *", "1.0k tokens"):
            assert told in shown
        await pilot.press("ctrl+right")
        shown = "\n".join(app.lines)
        assert "You are calm." in shown and "2 answers" in shown
        assert "Only its digest is recorded." in shown
        await pilot.press("ctrl+right")
        shown = "\n".join(app.lines)
        assert "Called  1 call" in shown and "Bash" in shown
        await pilot.press("ctrl+right", "ctrl+right", "ctrl+right")
        assert screen.tab == "Turns"


async def test_many_turns_share_columns_and_a_click_goes_to_one(tmp_path: Path) -> None:
    talk = make_long(tmp_path / "long.db", 500)
    async with details_of(talk, (80, 24)) as (app, screen, pilot):
        chart = screen.query_one(Chart)
        laid = chart.columns
        assert laid.per == 7 and len(laid.amounts) == 72
        assert any("7 turns a bar" in line for line in app.lines)
        await pilot.click("Chart", offset=(1 + 10, 2))
        await pilot.pause()
        assert any("turn 71" in line for line in app.lines)
        await pilot.press("G")
        await pilot.pause()
        assert any("Prompt 500" in line for line in app.lines)
        assert chart.selected == 499


async def test_m_changes_what_the_bars_stand_for(talk: Talk) -> None:
    async with details_of(talk) as (app, _, pilot):
        await pilot.press("m", "m")
        await pilot.pause()
        assert any(line.strip().startswith("duration") for line in app.lines)


async def test_a_session_that_is_gone_is_said_and_escape_leaves(talk: Talk) -> None:
    talk.session_id = "ses_gone"
    async with details_of(talk) as (app, screen, pilot):
        assert "ses_gone is no longer in the store" in "\n".join(app.lines)
        await pilot.press("escape")
        await pilot.pause()
        assert app.screen is not screen


async def test_keys_are_commands_with_help_and_reasons(talk: Talk) -> None:
    async with details_of(talk) as (app, screen, pilot):
        assert "enter open" in app.lines[-1] and app.lines[-1].endswith("? keys")
        await pilot.press("]", "m")
        await pilot.pause()
        assert [note.message for note in app._notifications] == ["Only the Turns tab has a chart"]
        found = {entry.title: entry for entry in entries_of(app.commands, [screen])}
        assert found["Details: Measure"].refused == "Only the Turns tab has a chart"
        assert found["Details: Close"].help == "Close the details"
        assert found["Details: Back"].keys == ("esc",)
        assert found["Details: Close"].keys == ("q", "d")
        await pilot.press("question_mark")
        await pilot.pause()
        assert app.screen.query_one("#dialog-title") and isinstance(app.screen, HelpScreen)
        await pilot.press("escape")
        await pilot.pause()
        assert app.screen_stack[-1] is screen


async def test_keys_of_the_config_work_there(talk: Talk) -> None:
    async with details_of(talk) as (app, screen, pilot):
        app.changed = {"details.next-tab": ["x"]}
        await pilot.press("x")
        assert screen.tab == "Session"
        await pilot.press("]")
        assert screen.tab == "Session"
    found = [each.reason for each in clashes({"details.measure": ["y"]})]
    assert found == ["y is details.measure now; details.copy, which had it, has no key left"]


def turns_of(*totals: int) -> list[Turn]:
    return [
        Turn(number, f"m{number}", 0, 0, spent=Spent(input=total))
        for number, total in enumerate(totals, 1)
    ]


def test_columns_hold_all_turns_in_any_width() -> None:
    for count in (1, 5, 79, 80, 81, 1_000):
        for width in (1, 10, 80):
            laid = columns(turns_of(*([3] * count)), width, MEASURES[0])
            assert len(laid.amounts) * laid.step <= max(width, 1) + laid.gap
            assert sum(sum(n for n, _ in stack) for stack in laid.amounts) == 3 * count
            assert laid.column_of(count - 1) == len(laid.amounts) - 1


def test_cells_stack_colours_by_eighths() -> None:
    stack = ((4.0, "tool"), (2.0, "user"))
    assert [cell_of(stack, 8.0, row, 1) for row in range(1)] == [(4, "tool", "user")]
    assert cell_of(stack, 8.0, 0, 2) == (8, "tool", None)
    assert cell_of(stack, 8.0, 1, 2) == (4, "user", None)
    assert cell_of(stack, 0.0, 0, 2) == (0, "rule", None)


def test_horizontal_bars_add_up() -> None:
    assert horizontal(((5.0, "a"), (5.0, "b")), 20.0, 8) == [(2, "a"), (2, "b")]
    assert horizontal(((0.001, "a"),), 20.0, 8) == [(1, "a")]
    assert horizontal(((0.0, "a"),), 20.0, 8) == []


def test_the_table_is_found_by_prompt_and_tool() -> None:
    turns = turns_of(1, 2)
    turns[1].prompt = "Fix the Worker"
    table = TurnTable("s", turns, MEASURES[0])
    assert table.find("worker", 80) == [1]


def test_the_table_shows_the_task_of_a_turn_and_its_star() -> None:
    turns = turns_of(1, 2)
    turns[1].task, turns[1].favorite = "task_17", True
    table = TurnTable("s", turns, MEASURES[0])
    assert table.find("task_17", 118) == [1]
    assert "★ task_17" in table.line(1, 118).text and "★" not in table.line(0, 118).text
    assert turn_line(turns[1], 118).right[-1][0].startswith("task task_17")


async def test_a_family_has_its_total_and_shares(talk: Talk) -> None:
    talk.db.connection.execute(
        "INSERT INTO chat_sessions(id, agent, model_json, metadata_json, parent_id, created_at,"
        " updated_at) VALUES ('ses_helper', 'build', '{}', ?, ?, 9, 9)",
        ('{"title": "A helper", "lineage": {"kind": "subagent"}}', talk.session_id),
    )
    talk.db.connection.execute(
        "INSERT INTO chat_messages VALUES ('msg_helper', 'ses_helper', 'assistant', ?, 9, 9)",
        ('{"usage": {"input": 500000000}, "cost_usd": 100000}',),
    )
    async with details_of(talk, (200, 60)) as (app, _, _pilot):
        (at,) = [place for place, line in enumerate(app.lines) if "Family" in line]
        assert "≈" not in app.lines[at] and "$100,0" in app.lines[at]
        assert any("itself" in line and "%" in line for line in app.lines[at:])
        assert any("subagent" in line and "A helper" in line for line in app.lines[at:])
