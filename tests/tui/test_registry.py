from __future__ import annotations

import string
from collections import Counter
from pathlib import Path

import pytest
from textual.binding import Binding

from tests.tui.stores import browser, put, settled, some
from tui.app import BackscrollApp
from tui.compare.screen import CompareScreen
from tui.details.screen import DetailsScreen
from tui.dialogs.frame import Dialog
from tui.exchange.screen import ExchangeScreen
from tui.files.screen import FileScreen
from tui.inspector.pane import InspectorPane
from tui.keys import registry
from tui.keys.declaration import GROUPS, AnyCommand, Scope
from tui.keys.layouts import TWINS, with_twins
from tui.keys.names import key_label, key_name
from tui.keys.pane import CommandOwner
from tui.keys.prompt import PromptLine
from tui.keys.table import CommandTable
from tui.kit.key_hints import DEFAULTS
from tui.main.screen import MainScreen
from tui.replay.screen import ReplayScreen
from tui.search.screen import SearchScreen
from tui.sessions.pane import SessionsPane
from tui.share.screen import ShareScreen
from tui.stats.screen import StatsScreen
from tui.transcript.pane import TranscriptPane
from tui.tree.screen import TreeScreen

OWNERS: dict[Scope, type[CommandOwner]] = {
    "app": BackscrollApp, "main": MainScreen, "list": SessionsPane, "transcript": TranscriptPane,
    "inspector": InspectorPane, "tree": TreeScreen, "compare": CompareScreen,
    "details": DetailsScreen, "search": SearchScreen, "stats": StatsScreen, "share": ShareScreen,
    "dialog": Dialog, "prompt": PromptLine, "file": FileScreen, "replay": ReplayScreen,
    "exchange": ExchangeScreen,
}


def test_ids_are_unique_and_name_their_scope() -> None:
    counted = Counter(command.id for command in registry.COMMANDS)
    assert [name for name, times in counted.items() if times > 1] == []
    for command in registry.COMMANDS:
        scope = "app" if command.scope == "main" else command.scope
        assert command.id.split(".")[0] == scope


@pytest.mark.parametrize("command", registry.COMMANDS, ids=lambda command: command.id)
def test_its_owner_does_it(command: AnyCommand) -> None:
    assert callable(command.run)
    assert command.scope == OWNERS[command.scope].SCOPE


@pytest.mark.parametrize("scope", list(OWNERS))
def test_no_key_means_two_things_in_a_scope(scope: Scope) -> None:
    keys = Counter(
        key_name(key) for command in registry.commands(scope) for key in with_twins(command.keys)
    )
    assert [key for key, times in keys.items() if times > 1] == []


SECOND_MEANINGS = {
    ("list.mark", "space"): "pages where nothing is marked, and toggles a mark in the list",
    ("prompt.complete", "tab"): "in a line it completes, as in every shell",
    ("details.next-tab", "tab"): "the details have tabs where the main screen has panes",
    ("details.previous-tab", "shift+tab"): "the details have tabs where the main screen has panes",
    ("details.close", "d"): "the key that opened a screen closes it",
    ("tree.close", "T"): "the key that opened a screen closes it",
    ("details.measure", "m"): "a place is marked by it; details have measures in place of places",
    ("stats.measure", "m"): "a place is marked by it; statistics have measures in place of places",
    ("stats.calendar", "c"): "a transcript has a context view, statistics have a calendar",
    ("stats.range-today", "1"): "digits choose a pane on the main screen, and a range here",
    ("stats.range-7d", "2"): "digits choose a pane on the main screen, and a range here",
    ("stats.range-30d", "3"): "digits choose a pane on the main screen, and a range here",
    ("stats.longer", ">"): "plays a session; a range is longer by it as it is shorter by <",
    ("replay.close", ">"): "the key that opened a screen closes it",
    ("replay.play", "space"): "pages in a view of lines, and plays in every player",
    ("replay.slower", "-"): "a file as it was elsewhere; here it goes with +",
    ("replay.waits", "w"): "saves to a file; a replay has nothing to save",
    **{("replay.tenth", key): "digits choose a pane on the main screen, and a tenth here"
       for key in "123456"},
    ("search.narrow", "space"): "pages in the hits, and takes the value in the facets",
}
"""Keys that mean something else in one scope, and why."""


def test_a_key_means_the_same_in_every_scope() -> None:
    meanings: dict[str, dict[str, list[str]]] = {}
    for command in registry.COMMANDS:
        for key in command.keys:
            if (command.id, key) not in SECOND_MEANINGS:
                found = meanings.setdefault(key, {}).setdefault(command.meaning, [])
                found.append(command.id)
    assert {key: found for key, found in meanings.items() if len(found) > 1} == {}
    declared = {(command.id, key) for command in registry.COMMANDS for key in command.keys}
    assert declared >= set(SECOND_MEANINGS)


def test_keys_of_terminals_keep_their_meaning() -> None:
    used = {key: c.id for c in registry.COMMANDS for key in c.keys}
    assert "ctrl+c" not in used
    assert "ctrl+z" not in used
    assert "ctrl+s" not in used
    assert used["ctrl+q"] == "app.quit"


def test_key_names_and_labels() -> None:
    assert key_name("?") == "question_mark"
    assert [key_label(k) for k in ("question_mark", "ctrl+down", "escape", "j", "slash", "+")] == [
        "?", "ctrl+↓", "esc", "j", "/", "+",
    ]


def test_key_names_are_those_of_textual() -> None:
    for character in string.punctuation.replace(",", "") + string.ascii_letters + "йύ«":
        (made,) = Binding.make_bindings([(character, "nothing")])
        assert key_name(character) == made.key
    assert key_name(",") == "comma"


def test_every_letter_has_twins_on_three_layouts() -> None:
    assert TWINS["j"] == ("о", "ξ")
    assert TWINS["s"] == ("ы", "і", "σ")
    assert TWINS["G"] == ("П", "Γ")
    assert set("abcdefghijklmnoprstuvwxyz") <= set(TWINS)


def test_table_names_each_command() -> None:
    table = registry.key_table()
    for command in registry.COMMANDS:
        assert f"`{command.id}`" in table
        assert command.help in table


def test_keymap_replaces_takes_away_and_ignores() -> None:
    changed = {"list.down": ["n", "?"], "list.up": [], "no.such": ["x"]}
    made = CommandTable(registry.COMMANDS, changed)
    for key in ("n", "question_mark", "т", "ν"):
        found = made.for_key("list", key)
        assert found is not None and found.id == "list.down"
    for command in (made.by_id["list.down"], made.by_id["list.up"]):
        assert all(made.for_key("list", key_name(key)) is None for key in command.keys)


@pytest.mark.parametrize("key", ["j", "о", "ξ", "down"])
async def test_a_letter_acts_by_position(key: str, tmp_path: Path) -> None:
    app = browser(put(tmp_path / "s.db", some(6)))
    async with app.run_test(size=(120, 40)) as pilot:
        await pilot.pause()
        assert app.main.sessions.view.cursor == 0
        await pilot.press(key)
        assert app.main.sessions.view.cursor == 1


async def test_a_key_of_the_config_replaces_the_own(tmp_path: Path) -> None:
    app = browser(put(tmp_path / "s.db", some(6)), keys={"list.down": ["x"], "list.up": []})
    async with app.run_test(size=(120, 40)) as pilot:
        await pilot.pause()
        await pilot.press("x", "ч")
        assert app.main.sessions.view.cursor == 2
        await pilot.press("j", "k", "up")
        assert app.main.sessions.view.cursor == 2


async def test_an_unavailable_command_says_why(tmp_path: Path) -> None:
    app = browser(put(tmp_path / "s.db", []))
    async with app.run_test(size=(120, 40)) as pilot:
        await pilot.pause()
        await pilot.press("enter")
        await pilot.pause()
        assert [note.message for note in app._notifications] == ["No session is selected"]


async def test_a_key_that_acts_elsewhere_says_where(tmp_path: Path) -> None:
    app = browser(put(tmp_path / "s.db", some(3)))
    said: list[str] = []
    async with app.run_test(size=(120, 40)) as pilot:
        await settled(app, pilot)
        app.notify = lambda words, **more: said.append(words)  # type: ignore[method-assign]
        await pilot.press("f", "W", "f11", "ctrl+p", "escape", "slash", "f", "escape", "T")
        await settled(app, pilot)
        assert isinstance(app.screen, TreeScreen)
        await pilot.press("s")
        await pilot.pause()
    assert [words for words in said if "does nothing here" in words] == [
        "f does nothing here; in the transcript it is “fork here”",
        "s does nothing here; in the session list it is “sort”",
    ]


@pytest.mark.parametrize("key", ["T", "d"])
async def test_every_screen_leads_to_the_search(key: str, tmp_path: Path) -> None:
    app = browser(put(tmp_path / "s.db", some(3)))
    async with app.run_test(size=(120, 40)) as pilot:
        await settled(app, pilot)
        await pilot.press(key)
        await settled(app, pilot)
        above = type(app.screen)
        assert above is not MainScreen
        await pilot.press("S")
        await settled(app, pilot)
        assert isinstance(app.screen, SearchScreen)
        await pilot.press("escape")
        await settled(app, pilot)
        assert isinstance(app.screen, above)


def test_hints_without_an_app_name_the_declared_keys() -> None:
    for command_id, key in DEFAULTS.items():
        assert key_label(key_name(registry.BY_ID[command_id].keys[0])) == key


def test_every_group_of_the_help_has_commands() -> None:
    assert {command.group for command in registry.COMMANDS} == set(GROUPS)


@pytest.mark.parametrize(
    "scope", ["tree", "compare", "details", "search", "stats", "replay", "dialog"])
def test_every_screen_is_closed_by_the_same_keys(scope: Scope) -> None:
    closing = [command for command in registry.commands(scope) if command.meaning == "close"]
    assert [key for command in closing for key in command.keys][:2] == ["escape", "q"]
    others = CommandTable(registry.COMMANDS, {})
    assert others.for_key("app", "ctrl+q") is others.by_id["app.quit"]
    assert others.for_key(scope, "ctrl+q") is None
    if scope != "dialog":
        helped = others.for_key(scope, "question_mark")
        assert helped is not None and helped.id == f"{scope}.help"
