"""Hostile text is clean before a widget draws it, on every screen and in every dialog."""

from __future__ import annotations

import tempfile
from pathlib import Path

import pytest
from rich.cells import cell_len
from rich.segment import Segment
from textual.content import Content
from textual.strip import Strip
from textual.widgets import Static

from tests.hostile import ALL, NEVER, STEERING, controls, everything, hostile_store
from tests.tui.stores import browser, settled
from tests.tui.verbs_app import Running, drawn, running
from tui.kit.guard import Guard
from tui.kit.text_line import TextLine
from tui.live.notifying import sequence
from tui.stats import model as stats_model
from tui.stats import reading as stats_reading

LIST = (
    "s b V V V w w / a escape N escape # escape * U d down end escape 1 T j N escape # escape l "
    "escape escape 1 space Y escape 1 ? escape 1 C escape 1 G g"
)
TRANSCRIPT = (
    "G g J } { e . t t t i c c o / a enter n escape 2 : 1 enter B escape 2 m a ' escape 2 ; escape "
    "2 ctrl+o alt+i f escape 2 F escape 2 r escape 2 D tab o D escape 2 Y escape 2 y "
    "ctrl+p escape 2 z z C escape 2 ) ("
)
INSPECTOR = "O j ] O j w escape 3 ] O j ] O j ] / e enter n escape 3 p y Y escape 3 ? escape 3 G"
NAMES = {
    "?": "question_mark", "/": "slash", "#": "number_sign", "*": "asterisk", ":": "colon",
    ";": "semicolon", "$": "dollar_sign", "{": "left_curly_bracket", "}": "right_curly_bracket",
}


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return hostile_store(tmp_path_factory.mktemp("hostile") / f"s{STEERING['title']}.db")


async def walk(run: Running, keys: str) -> set[str]:
    """Press keys; return the screens that were seen. The guard has nothing to catch on them.

    Toasts are closed before escape, which would otherwise only close them.
    """
    seen = set()
    for key in keys.split():
        if key == "escape":
            run.app.close_toasts()
        await run.press(NAMES.get(key, key))
        seen.add(type(run.app.screen).__name__)
        assert run.app.guard.caught == [], (key, seen)
        shown = drawn(run.app.screen)
        assert not controls(shown) and not NEVER.search(shown), (key, seen)
    return seen


@pytest.mark.long
async def test_every_screen_is_clean_before_the_guard(
    store: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    async with running(store, size=(180, 60)) as run:
        await run.open(ALL)
        seen = await walk(run, "2 " + TRANSCRIPT)
        run.app.main.panes.focus("transcript")
        for _ in range(2):
            seen |= await walk(run, "2 . enter " + INSPECTOR[:20])
        seen |= await walk(run, "1 g " + LIST)
        seen |= await walk(run, "1 g enter 2 . . 3 " + INSPECTOR)
    assert seen >= {"MainScreen", "AskDialog", "ChooseDialog", "CompareScreen", "CopyAsScreen",
                    "DetailsScreen", "HelpScreen", "SaveScreen", "TreeScreen"}


@pytest.mark.long
async def test_files_and_commands_are_clean(store: Path) -> None:
    async with running(store, size=(180, 40)) as run:
        await run.open(ALL)
        seen = await walk(run, "2 d [ j end s / a enter escape [ j D j end escape s s end enter")
        assert seen >= {"DetailsScreen", "MainScreen"}


@pytest.mark.long
async def test_statistics_are_clean(store: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("TYPING_S", "RENEWED_EVERY_S", "RESTS"):
        monkeypatch.setattr(stats_model, name, 0)
    monkeypatch.setattr(stats_model, "COUNTS_S", 60)
    monkeypatch.setattr(stats_reading, "MOST_WINDOWS", 2)
    async with running(store, size=(110, 60)) as run:
        seen = await walk(run, "$ j l m c / a escape w enter escape G up enter")
        assert seen >= {"StatsScreen", "MainScreen", "ChooseDialog", "SaveScreen"}


async def test_what_a_widget_forgets_is_caught_by_the_guard(store: Path) -> None:
    async with running(store, size=(120, 30)) as run:
        words = everything().replace("\n", " ")
        await run.app.main.mount(Static(Content(f"\x1b]0;EVIL\x07 {words}"), id="raw"))
        run.app.main.query_one("#raw").border_title = Content("\x1b[2J")
        run.app.main.query_one("#raw").styles.border = ("round", "red")
        run.app.main.mount(TextLine(f"a\n\t{STEERING['clipboard']}b", placeholder="\x1b[1m"))
        await run.quiet()
        assert run.app.guard.caught
        assert run.app.main.query_one("TextLine:last-child", TextLine).value.startswith("a  ␛]52;")
        rows = drawn(run.app.screen)
        assert not controls(rows) and not NEVER.search(rows)


async def test_toasts_are_clean(store: Path) -> None:
    app = browser(store)
    async with app.run_test(size=(120, 30), notifications=True) as pilot:
        await settled(app, pilot)
        app.notify("\x1b[2Jtoast [/nope]", title="\x9b31m")
        await settled(app, pilot)
        rows = drawn(app.screen)
        assert app.guard.caught == [] and "␛[2Jtoast [/nope]" in rows and "\ufffd31m" in rows


def test_the_guard_keeps_the_width_of_a_row() -> None:
    texts = ["\x1b[31mred", "a\u200bb", "❤️ x", "👍🏽", "a\tb", "漢\ud800", "a\nb", "\u202ea"]
    strip = Strip([Segment(text) for text in texts])
    kept = Guard().guarded(strip)
    for old, new in zip(strip, kept, strict=True):
        assert cell_len(new.text) == cell_len(old.text), old
    assert kept.cell_length == strip.cell_length
    assert not controls(kept.text) and not NEVER.search(kept.text)
    assert Guard().guarded(Strip([Segment("─ plain"), Segment("漢")])).text == "─ plain漢"


@pytest.mark.parametrize("how", ["osc9", "osc777"])
@pytest.mark.parametrize("tmux", [True, False])
def test_a_notification_is_one_sequence(how: str, tmux: bool) -> None:
    told = sequence(how, everything() + "\n;x", tmux=tmux)
    if tmux:
        assert told.startswith("\x1bPtmux;\x1b\x1b]") and told.endswith("\x07\x1b\\")
        told = told[len("\x1bPtmux;\x1b") : -len("\x1b\\")]
    assert controls(told) == [told] and not NEVER.search(told)
