from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise, product
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.tui.stores import browser, put, settled, some
from tui.state.layout import (
    BORDER,
    LEAST_WIDTH,
    PANES,
    THREE_PANES,
    LayoutState,
    arrange,
)

if TYPE_CHECKING:
    from tui.state.layout import PaneName


@pytest.mark.parametrize(
    ("screen", "focused", "widths"),
    [
        (200, "sessions", {"sessions": 44, "transcript": 0, "inspector": 48}),
        (150, "sessions", {"sessions": 44, "transcript": 0, "inspector": 42}),
        (149, "sessions", {"sessions": 36, "transcript": 0}),
        (120, "inspector", {"transcript": 0, "inspector": 48}),
        (100, "inspector", {"transcript": 0, "inspector": 42}),
        (99, "sessions", {"sessions": 0}),
        (80, "inspector", {"inspector": 0}),
    ],
)
def test_by_width(screen: int, focused: PaneName, widths: dict[PaneName, int]) -> None:
    assert arrange(LayoutState().with_focus(focused), screen).widths == widths


def states() -> Iterator[LayoutState]:
    """Yield what a user can bring the layout to, with widths from another screen."""
    hidden: tuple[tuple[PaneName, ...], ...] = (
        (), ("sessions",), ("inspector",), ("sessions", "inspector"))
    for focused, gone, zoomed in product(PANES, hidden, (False, True)):
        for sessions, inspector in product((None, 24, 60, 160), (None, 28, 90, 160)):
            for before in PANES:
                state = LayoutState(sessions, inspector, zoomed=zoomed).with_focus(before)
                yield state._replace(hidden=frozenset(gone)).with_focus(focused)


def test_no_pane_is_narrower_than_its_least_width_on_any_screen() -> None:
    for state in states():
        for screen in range(60, 221):
            arrangement = arrange(state, screen)
            sides = sum(arrangement.widths[pane] + BORDER for pane in arrangement.sides)
            widths = {pane: width or screen - sides for pane, width in arrangement.widths.items()}
            assert state.focused in widths, (state, screen)
            assert all(width >= LEAST_WIDTH[pane] for pane, width in widths.items()), (
                state, screen, widths)
            assert sum(widths.values()) + BORDER * (len(widths) - 1) == screen
            assert len(widths) == 1 or "transcript" in widths
            if screen < THREE_PANES:
                assert len(widths) <= 2


def test_hidden_and_zoomed() -> None:
    hidden = LayoutState(hidden=frozenset({"inspector"}), focused="transcript")
    assert set(arrange(hidden, 200).widths) == {"sessions", "transcript"}
    assert arrange(LayoutState(zoomed=True, focused="transcript"), 200).widths == {"transcript": 0}


def test_widths_stay_sensible() -> None:
    state = LayoutState().resized("sessions", 1, 200)
    assert state.sessions_width == 24
    assert LayoutState().resized("sessions", 900, 200).sessions_width == 159
    assert LayoutState().resized("transcript", 50, 200) == LayoutState()
    crowded = LayoutState(sessions_width=100, inspector_width=60)
    assert "inspector" not in arrange(crowded, 160).widths


@pytest.mark.parametrize(
    ("size", "shown"),
    [
        ((200, 60), ["sessions", "transcript", "inspector"]),
        ((120, 40), ["sessions", "transcript"]),
        ((80, 24), ["sessions"]),
    ],
)
@pytest.mark.one_in(3)
async def test_on_the_screen(size: tuple[int, int], shown: list[str], tmp_path: Path) -> None:
    app = browser(put(tmp_path / "s.db", some(40)))
    async with app.run_test(size=size) as pilot:
        await settled(app, pilot)
        panes = app.main.panes.widgets
        assert [name for name, pane in panes.items() if pane.display] == shown
        right = max(panes[name].region.right for name in panes if panes[name].display)
        assert right == size[0]
        assert len(list(app.main.query("*"))) < 40


async def test_panes_resize_zoom_and_hide(tmp_path: Path) -> None:
    app = browser(put(tmp_path / "s.db", some(5)))
    async with app.run_test(size=(200, 50)) as pilot:
        pane = await settled(app, pilot)
        for keys, width in ((["f8"], 48), (["<", "<"], 40), (["z"], 200)):
            await pilot.press(*keys)
            await settled(app, pilot)
            assert pane.region.width == width
        await pilot.press("escape")
        await settled(app, pilot)
        assert pane.region.width == 40
        await pilot.mouse_down("#border-sessions")
        await pilot.hover("#transcript", offset=(20, 5))
        await settled(app, pilot)
        assert pane.region.width == 61
        await pilot.mouse_up("#border-sessions")
        await pilot.press("\\")
        await settled(app, pilot)
        assert not pane.display
        assert app.main.panes.focused == "transcript"
        await pilot.press("1")
        await settled(app, pilot)
        assert pane.display


async def test_esc_and_enter_go_between_on_a_narrow_screen(tmp_path: Path) -> None:
    app = browser(put(tmp_path / "s.db", some(5)))
    async with app.run_test(size=(80, 24)) as pilot:
        await settled(app, pilot)
        await pilot.press("enter")
        await settled(app, pilot)
        assert app.main.panes.focused == "transcript"
        assert not app.main.sessions.display
        await pilot.press("escape")
        await settled(app, pilot)
        assert app.main.sessions.has_focus_within


@pytest.mark.parametrize("width", [100, 120, 149])
@pytest.mark.one_in(3)
async def test_the_inspector_takes_the_room_of_the_list(width: int, tmp_path: Path) -> None:
    app = browser(put(tmp_path / "s.db", some(5)))
    async with app.run_test(size=(width, 40)) as pilot:
        pane = await settled(app, pilot)
        panes = app.main.panes

        def seen() -> list[str]:
            shown = [(name, each.region) for name, each in panes.widgets.items() if each.display]
            assert shown[0][1].x == 0 and shown[-1][1].right == width
            assert all(a.right + 1 == b.x for (_, a), (_, b) in pairwise(shown))
            assert all(each.width >= LEAST_WIDTH[name] for name, each in shown)
            return [name for name, _ in shown]

        assert seen() == ["sessions", "transcript"]
        for keys, wanted in (
            ("3", ["transcript", "inspector"]),
            # It stays beside the transcript, so that one can go through the parts.
            ("2", ["transcript", "inspector"]),
            ("<", ["transcript", "inspector"]), (["f8"] * 10, ["transcript", "inspector"]),
            ("1", ["sessions", "transcript"]), ("3", ["transcript", "inspector"]),
        ):
            await pilot.press(*keys)
            await settled(app, pilot)
            assert seen() == wanted, keys
        for key, wanted in (
            ("escape", ["sessions", "transcript"]), ("\\", ["transcript"]),
            ("\\", ["sessions", "transcript"]), ("3", ["transcript", "inspector"]),
            ("z", ["inspector"]), ("z", ["transcript", "inspector"]),
            ("\\", ["sessions", "transcript"]), ("1", ["sessions", "transcript"]),
        ):
            await pilot.press(key)
            await settled(app, pilot)
            assert seen() == wanted, key
        assert pane.has_focus_within


async def test_a_pane_alone_cannot_be_resized(tmp_path: Path) -> None:
    app = browser(put(tmp_path / "s.db", some(5)))
    async with app.run_test(size=(80, 24)) as pilot:
        await settled(app, pilot)
        layout = app.view_state.layout
        await pilot.press("f8", "<", "<")
        await settled(app, pilot)
        assert app.view_state.layout == layout
        assert [note.message for note in app._notifications] == [
            "There is no pane beside this one"]
        # The transcript that comes into sight shows what the list's cursor came to meanwhile.
        await pilot.press("j")
        await pilot.resize_terminal(120, 40)
        await settled(app, pilot)
        assert app.main.opener.shown == app.main.sessions.selected_id == f"ses_{3:026d}"
