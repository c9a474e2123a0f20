"""The line that a query is typed into: completion, problems, history."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from textual.app import ComposeResult
from textual.widgets import Input

from store.language.completion import Known
from tui.keys.dispatch import CommandApp
from tui.keys.registry import COMMANDS
from tui.keys.table import CommandTable
from tui.query.line import QueryInput, QueryNotes

AGENTS = {"agent": [Known("claude-code", "40"), Known("codex", "2")],
          "workspace": [Known("~/my folder", "1")]}


class QueryApp(CommandApp):
    library: Any = SimpleNamespace(clock=lambda: 1_800_000_000_000)

    def __init__(self) -> None:
        super().__init__()
        self.submitted: list[str] = []

    @property
    def commands(self) -> CommandTable:
        return CommandTable(COMMANDS, {})

    def compose(self) -> ComposeResult:
        notes = QueryNotes()
        yield QueryInput(notes, id="line", known=lambda: AGENTS,
                         history=lambda: ["newest", "older agent:x"])
        yield notes

    @property
    def line(self) -> QueryInput:
        return self.query_one(QueryInput)

    @property
    def labels(self) -> list[str]:
        return [each.label for each in self.query_one(QueryNotes).offered]

    @property
    def problems(self) -> list[str]:
        return [each.message for each in self.query_one(QueryNotes).shown_problems]

    def on_input_submitted(self, event: Input.Submitted) -> None:
        self.submitted.append(event.value)


async def test_tab_takes_a_field_and_then_a_value() -> None:
    app = QueryApp()
    async with app.run_test() as pilot:
        await pilot.press(*"retry ag")
        assert app.labels == ["agent:"]
        await pilot.press("tab")
        assert (app.line.value, app.labels) == ("retry agent:", ["claude-code", "codex"])
        await pilot.press(*"co", "tab")
        assert (app.line.value, app.labels) == ("retry agent:codex ", [])
        await pilot.press("enter")
        assert app.submitted == ["retry agent:codex "]


async def test_down_chooses_and_enter_takes_what_was_chosen() -> None:
    app = QueryApp()
    async with app.run_test(size=(60, 12)) as pilot:
        await pilot.press(*"agent:", "down", "down")
        screen = "\n".join(
            "".join(segment.text for segment in strip)
            for strip in app.screen._compositor.render_strips()
        )
        assert "claude-code" in screen and "40" in screen
        await pilot.press("up", "down", "enter")
        assert (app.line.value, app.submitted) == ("agent:codex ", [])


async def test_escape_leaves_the_box_first_and_then_is_the_owners() -> None:
    app = QueryApp()
    async with app.run_test() as pilot:
        await pilot.press(*"agent:", "down", "escape")
        assert (app.labels, app.line.value) == ([], "agent:")


async def test_a_value_with_a_space_is_quoted() -> None:
    app = QueryApp()
    async with app.run_test() as pilot:
        await pilot.press(*"workspace:fol", "tab")
        assert app.line.value == 'workspace:"~/my folder" '


async def test_a_problem_is_shown_once_it_cannot_go_away_by_typing_on() -> None:
    app = QueryApp()
    async with app.run_test(size=(80, 10)) as pilot:
        await pilot.press(*"agnt:")
        assert app.problems == []
        await pilot.press("x")
        (message,) = app.problems
        assert "no field `agnt:`" in message and "`agent:`?" in message and "workspace" in message
        assert app.query_one(QueryNotes).size.height >= 2
        app.line.value = "cost:"
        await pilot.pause()
        assert app.problems == []
        await pilot.press("enter")
        assert app.problems == ["`cost:` needs a value, as in `cost:>0.5`"]
        app.line.value = ""
        await pilot.pause()
        assert (app.problems, app.query_one(QueryNotes).size.height) == ([], 0)


async def test_up_in_an_empty_line_goes_back_through_the_history() -> None:
    app = QueryApp()
    async with app.run_test() as pilot:
        await pilot.press("up")
        assert app.line.value == "newest"
        await pilot.press("up", "up", "up")
        assert (app.line.value, app.labels) == ("older agent:x", [])
        await pilot.press("down", "down")
        assert app.line.value == ""
        await pilot.press("down", "x", "up")
        assert app.line.value == "x"


@pytest.mark.parametrize("text", ["a" * 50_000, '"' * 999, "re:/(a+)+$/", "-" * 99, "is:," * 99])
async def test_hostile_text_can_be_typed(text: str) -> None:
    app = QueryApp()
    async with app.run_test() as pilot:
        app.line.value = text
        await pilot.pause()
        await pilot.press("home", "end", "tab", "x")
        assert app.line.value.endswith("x") or app.line.value
