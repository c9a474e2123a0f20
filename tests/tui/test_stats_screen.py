"""The statistics screen in the whole app, and its page without one."""

from __future__ import annotations

import csv
import io
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from store.stats.statistics import Coverage, Figures, Group, Span
from tests.hostile import CORPUS, NEVER, controls
from tests.tui.seeded import START, Said, make_store, text, tool
from tests.tui.verbs_app import Running, drawn, running
from tui.kit import glyphs as glyphs_module
from tui.kit.glyphs import ASCII
from tui.kit.lines import arrange, width_of
from tui.kit.theme import text_pairs
from tui.main.screen import MainScreen
from tui.stats import model as model_module
from tui.stats.measures import MEASURES, covers
from tui.stats.page import MORE, Shown, page_of
from tui.stats.ranges import Between, Slot
from tui.stats.reading import Board, Table, TimeBucket
from tui.stats.screen import RangesBar, StatsScreen
from tui.stats.view import highlighted
from tui.words.spending import figures_csv

ONE, TWO, THREE, FOUR = (f"ses_{letter * 26}" for letter in "abcd")
DAY = 86_400_000


@pytest.fixture(autouse=True)
def _no_rest(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("TYPING_S", "RENEWED_EVERY_S", "RESTS"):
        monkeypatch.setattr(model_module, name, 0)
    monkeypatch.setattr(model_module, "COUNTS_S", 60)


def said(at: int, *, cost: float | None, model: str, failed: bool = False) -> list[Said]:
    usage = {"input": 1_000, "output": 200, "reasoning": 0, "cache_read": 800, "cache_write": 0}
    metadata: dict[str, Any] = {
        "usage": usage, "model": {"provider_id": "anthropic", "model_id": model}}
    if cost is not None:
        metadata["cost_usd"] = cost
    state = "output-error" if failed else "output-available"
    return [
        Said("user", [text("Fix the upload")], at=at),
        Said("assistant", [text("Done."), tool("Bash", {"command": "make"}, "ok", state=state)],
             metadata, at=at + 60_000),
    ]


def session(title: str, at: int, agent: str, **more: Any) -> dict[str, Any]:
    return {"metadata_json": f'{{"title":"{title}","git_branch":"main"}}', "agent": agent,
            "created_at": at, "updated_at": at + 60_000, **more}


@pytest.fixture
def store(tmp_path: Path) -> Path:
    path = tmp_path / "s.db"
    at = START - 3_600_000
    make_store(path, said(at, cost=2.5, model="claude-opus-4-5"), session_id=ONE,
               session=session("Retry loop", at, "claude-code"))
    at = START - 2 * DAY
    make_store(path, said(at, cost=0.5, model="gpt-5.2-codex", failed=True), session_id=TWO,
               session=session("Upload", at, "codex", workspace_root="/srv/site",
                               archived_at=START))
    at = START - 40 * DAY
    make_store(path, said(at, cost=None, model="no-such-model"), session_id=THREE,
               session=session("Old", at, "opencode"))
    return path


@asynccontextmanager
async def statistics(
    path: Path, *keys: str, size: tuple[int, int] = (120, 40)
) -> AsyncIterator[tuple[Running, StatsScreen]]:
    async with running(path, size) as run:
        await run.press("dollar_sign")
        screen = run.app.screen
        assert isinstance(screen, StatsScreen)
        await run.press(*keys)
        yield run, screen


def told(screen: StatsScreen) -> str:
    """The line that says what is selected."""
    return "".join(run[0] for run in screen.target.words) if screen.target is not None else ""


@pytest.mark.parametrize("size", [(200, 60), (120, 40), (80, 24)])
@pytest.mark.one_in(2)
async def test_figures_come_first_and_all_tables_can_be_reached(
    store: Path, size: tuple[int, int]
) -> None:
    async with statistics(store, size=size) as (run, screen):
        shown = drawn(screen)
        assert "$3.00" in shown and "4.0k" in shown
        assert "Cost a day" in shown and "■ claude" in shown and "■ codex" in shown
        assert "2 sessions" in shown or "sessions in 2 agents" in shown
        assert "50 %" in shown and "prices of 20" in shown
        assert screen.model.board.done
        seen = ""
        for _ in range(12):
            seen += drawn(screen)
            await run.press("pagedown")
        for title in ("By model", "Tools", "By workspace", "By agent", "By branch",
                      "Busiest sessions", "Longest turns", "Cache share over time",
                      "Spent and in context"):
            assert title in seen
        await run.press("g")
        assert "Cost a day" in drawn(screen)


@pytest.mark.long
async def test_ranges_measures_and_bars_are_chosen_by_key(store: Path) -> None:
    async with statistics(store) as (run, screen):
        await run.press("5")
        assert "not known, 1 answer" in drawn(screen) and "2 of 3 answers" in drawn(screen)
        await run.press("1")
        assert "$2.50" in drawn(screen) and "Cost an hour" in drawn(screen)
        await run.press("m")
        assert "Tokens an hour" in drawn(screen)
        await run.press("m", "m", "m", "greater_than_sign")
        assert "Cost a day" in drawn(screen) and screen.model.range.name == "7d"
        await run.press("b")
        assert "Cost a week" in drawn(screen)
        await run.press("left_square_bracket")
        assert "Nothing was counted for" in drawn(screen)
        await run.press("right_square_bracket", "right_square_bracket")
        assert run.last == "This is the latest"


async def test_a_range_is_typed_and_clicked(store: Path) -> None:
    async with statistics(store, "6", *"soon", "enter") as (run, screen):
        assert "is no date" in drawn(run.app.screen)
        await run.press(*["backspace"] * 4, *"2026", "enter")
        assert "$3.00" in drawn(screen) and screen.model.range.start is not None
        await run.pilot.click(screen.query_one(RangesBar), offset=(3, 0))
        await run.quiet()
        assert screen.model.range.name == "today"


@pytest.mark.long
async def test_a_query_narrows_everything(store: Path) -> None:
    async with statistics(store, "slash") as (run, screen):
        await run.pilot.press(*"agent", "colon", *"codex")
        await run.press("enter")
        assert "$0.500" in drawn(screen) and "claude" not in drawn(screen)
        assert screen.focused is screen.view
        await run.press("backspace")
        assert "$3.00" in drawn(screen)


async def test_a_bar_opens_its_sessions_and_escape_comes_back(store: Path) -> None:
    async with statistics(store) as (run, screen):
        assert told(screen).startswith("Wed 18 Nov 2026") and "$2.50" in told(screen)
        await run.press("left", "left")
        chosen = screen.view.selected
        assert "$0.500" in told(screen)
        await run.press("enter")
        assert isinstance(run.app.screen, MainScreen)
        shown = drawn(run.app.screen)
        # It is archived; the list shows it all the same, and nothing that is of other days.
        assert "Upload" in shown and "1 of 3" in shown
        assert "to the statistics" in shown
        assert run.sessions.filter_text.startswith("after:2026-11-1")
        await run.press("escape")
        back = run.app.screen
        assert isinstance(back, StatsScreen) and back.view.selected == chosen
        await run.press("escape")
        assert isinstance(run.app.screen, MainScreen)
        assert run.sessions.filter_text == "" and run.sessions.list_query.shelf == "active"
        assert run.sessions.view.model.total == 2


async def test_a_row_of_a_session_opens_it(store: Path) -> None:
    async with statistics(store) as (run, screen):
        screen.view.select(("turn", next(
            name for table, name in screen.page.targets if table == "turn")))
        await run.press("enter")
        assert isinstance(run.app.screen, MainScreen) and run.app.shown_session in (ONE, TWO)
        run.app.close_toasts()  # One says that archived sessions are listed.
        await run.press("escape")
        assert isinstance(run.app.screen, StatsScreen)


async def test_sessions_are_seen_where_the_statistics_were_opened_above_a_search(
    store: Path
) -> None:
    async with running(store) as run:
        await run.press("S", "tab", "dollar_sign", "enter")
        assert isinstance(run.app.screen, MainScreen)
        assert run.sessions.filter_text.startswith("after:2026-11-18")


async def test_what_is_not_counted_yet_is_said(store: Path) -> None:
    async with statistics(store) as (run, screen):
        model = screen.model
        model.board = replace(model.board, coverage=Coverage(1_200, 3_000))
        model.changed()
        await run.pilot.pause()
        assert "counted 1,200 of 3,000 sessions" in drawn(screen)


async def test_the_mouse_selects_and_opens(store: Path) -> None:
    async with statistics(store) as (run, screen):
        spot = screen.page.by_key["model", "claude-opus-4-5"]
        place = (spot.left + 3, spot.top)
        await run.pilot.click(screen.view, offset=place)
        await run.quiet()
        assert screen.view.selected == spot.key and told(screen).startswith("opus-4.5")
        await run.pilot.click(screen.view, offset=place)
        await run.quiet()
        assert isinstance(run.app.screen, MainScreen)
        assert 'model:="claude-opus-4-5"' in run.sessions.filter_text.replace("'", '"') or (
            "model:=claude-opus-4-5" in run.sessions.filter_text)
        # The session itself has another model by now; its row counts it all the same.
        assert run.sessions.view.model.matched == 1 and "Retry loop" in drawn(run.app.screen)
        assert not run.sessions.filter.asks_for_parts
        run.sessions.filter.text += " "  # Typed on: the list looks itself, at all sessions.
        run.sessions.contents.filter_changed()
        await run.quiet()
        assert run.sessions.view.model.matched == 0


async def test_a_year_is_a_calendar(store: Path) -> None:
    async with statistics(store, "c") as (run, screen):
        shown = drawn(screen)
        assert "Mon" in shown and "from $0.500" in shown and "Nov" in shown
        assert told(screen).startswith("Wed 18 Nov 2026")
        await run.press("up", "up")
        assert told(screen).startswith("Mon 16 Nov 2026") and "$0.500" in told(screen)
        await run.press("left")
        assert told(screen).startswith("Mon 9 Nov 2026  nothing")
        await run.press(*["down"] * 7)
        assert screen.view.selected is not None and screen.view.selected[0] == "tool"
        await run.press("escape")
        assert "Cost a day" in drawn(screen) and "from $" not in drawn(screen)


async def test_what_is_written_is_counted_and_the_selection_stays(store: Path) -> None:
    async with statistics(store) as (run, screen):
        screen.view.select(("model", "gpt-5.2-codex"))
        at = START - 7_200_000
        make_store(store, said(at, cost=4.0, model="claude-haiku-4-5"), session_id=FOUR,
                   session=session("Newer", at, "claude-code"))
        await run.app.show_written()
        await run.quiet()
        assert "$7.00" in drawn(screen)
        assert screen.view.selected == ("model", "gpt-5.2-codex")
        assert told(screen).startswith("gpt-5.2-codex")


async def test_figures_are_saved_as_csv(store: Path, tmp_path: Path) -> None:
    path = tmp_path / "by-model.csv"
    async with statistics(store, "w", "down", "enter") as (run, _screen):
        field = run.app.screen.query_one("TextLine")
        field.value = str(path)  # type: ignore[attr-defined]
        await run.press("enter")
    rows = list(csv.DictReader(io.StringIO(path.read_text())))
    assert [(row["group"], row["cost_usd"], row["input"]) for row in rows] == [
        ("claude-opus-4-5", "2.5", "1000"), ("gpt-5.2-codex", "0.5", "1000")]


async def test_a_new_range_takes_the_place_of_an_older_read(store: Path) -> None:
    async with statistics(store) as (run, screen):
        for key in "15341":
            await run.pilot.press(key)
        await run.quiet()
        assert screen.model.range.name == "today" and "$2.50" in drawn(screen)
        assert screen.model.board.done and not screen.model.running


# The page alone


def made(**more: Any) -> Figures:
    return Figures(sessions=1, turns=1, answers=1, tokens=(10, 2, 0, 8, 0), **more)


def shown_page(names: list[str], **more: Any) -> Shown:
    """A page whose every group has one of the names."""
    groups = [
        Group(name, name, made(told_usd=number + 1.0, told_answers=1, calls=3, failed=1),
              {name: made(told_usd=number + 1.0, told_answers=1)}, f"agent:{number}")
        for number, name in enumerate(names)
    ]
    whole = Figures(sessions=len(names), answers=len(names), tokens=(10, 2, 0, 8, 0),
                    told_usd=9.0, told_answers=len(names), calls=9, failed=1)
    slots = [Slot(START + n * DAY, START + (n + 1) * DAY, str(n + 1), n == 0) for n in range(5)]
    buckets = [TimeBucket(slot, made(told_usd=1.0, told_answers=1),
                          {name: made(told_usd=1.0, told_answers=1) for name in names})
               for slot in slots]
    table = Table(groups)
    board = Board(
        Between(START, START + 5 * DAY), "day", whole, buckets,
        {"model": table, "tool": table, "workspace": table, "agent": table, "branch": table},
        sessions=groups, turns=[], contexts=[], coverage=Coverage(1, 1), done=True,
    )
    return Shown(board, MEASURES[0], "", None, 6, START, **more)


@pytest.mark.parametrize("width", [198, 118, 97, 78, 40])
def test_hostile_names_are_harmless_and_break_no_column(width: int) -> None:
    wide = ["日本語" * 30, "שלום עולם " * 9, "e\u0301" * 80, "🚀" * 40, ""]
    page = page_of(shown_page([*CORPUS.values(), *wide]), width, None)
    for line in page.lines:
        row = "".join(piece for piece, _ in arrange(line, width))
        assert not controls(row) and not NEVER.search(row), row
        assert width_of(line.runs) <= width, row
        assert width_of(arrange(line, width)) == width
    for key, target in page.targets.items():
        words = "".join(piece for piece, _ in target.words)
        assert not controls(words) and not NEVER.search(words), key


def test_rows_without_colour_or_unicode_still_tell_agents_apart(
    monkeypatch: pytest.MonkeyPatch
) -> None:
    names = ["claude-code", "codex", "opencode"]
    page = page_of(shown_page(names, textured=True), 118, None)
    heading = next(line.text for line in page.lines if line.text.startswith("Cost a day"))
    assert "█ opencode  ▓ codex  ▒ claude" in heading or "█ claude  ▓ codex  ▒" in heading
    assert any("▓▓" in line.text for line in page.lines)
    monkeypatch.setattr("tui.kit.plots.glyphs", lambda: ASCII)
    page = page_of(shown_page(names, textured=True), 118, None)
    assert any("==" in line.text for line in page.lines)
    glyphs_module.glyphs.cache_clear()


@pytest.mark.parametrize("selected", [None, ("time", str(START)), ("model", "codex")])
def test_text_is_drawn_in_pairs_that_the_themes_keep_readable(selected: Any) -> None:
    names = ["claude-code", "codex", "opencode", "gemini", "pi", "a", "b"]
    allowed = set(text_pairs())
    page = page_of(shown_page(names), 118, selected)
    spot = page.by_key.get(selected)
    for number, line in enumerate(page.lines):
        if spot is not None and spot.top <= number < spot.bottom and spot.marks:
            line = highlighted(line, spot.left, spot.right)
        for piece, ink in (*line.runs, *line.right):
            if not any(letter.isalnum() for letter in piece):
                continue
            role, *flags = ink.split()
            ground = next((flag[3:] for flag in flags if flag.startswith("on:")), "background")
            drawn_as = "muted" if role == "faint" and ground == "focus" else role
            assert (drawn_as, ground) in allowed, (piece, ink)


def test_a_table_is_unfolded() -> None:
    names = [f"agent-{n}" for n in range(12)]
    folded = page_of(shown_page(names), 118, None)
    whole = page_of(shown_page(names, unfolded=frozenset(["model"])), 118, None)

    def rows(page: Any) -> list[str]:
        return [name for table, name in page.targets if table == "model"]

    assert len(rows(folded)) == 7 and rows(folded)[-1] == MORE
    assert len(rows(whole)) == 13


def test_many_bars_are_merged() -> None:
    shown = shown_page(["codex"])
    slot = Slot(0, 0, "", False)
    many = [TimeBucket(slot._replace(start=START + n * DAY, end=START + (n + 1) * DAY), made(), {})
            for n in range(300)]
    board = Board(Between(START, START + 300 * DAY), "day", shown.board.whole, many, done=True)
    page = page_of(Shown(board, MEASURES[1], "", None, 6, START), 78, None)
    assert any("5 days a bar" in line.text for line in page.lines)
    assert sum(table == "time" for table, _ in page.targets) == 60


def test_a_cost_that_is_not_known_is_not_zero() -> None:
    one = Figures(answers=3, told_usd=0.6, told_answers=1, unknown_answers=2)
    assert covers(one) == "of 1 of 3 answers" and MEASURES[0].words(one) == "$0.600+"
    unknown = Figures(answers=2, unknown_answers=2)
    assert MEASURES[0].words(unknown) == "not known"
    rows = list(csv.reader(io.StringIO(figures_csv([("=cmd()", unknown), ("a", one)]))))
    assert rows[1][0] == "'=cmd()" and rows[1][rows[0].index("cost_usd")] == ""
    assert rows[2][rows[0].index("unknown_answers")] == "2"
    assert Span(1, 2).start == 1
