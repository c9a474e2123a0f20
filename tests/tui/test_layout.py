from __future__ import annotations

from pathlib import Path

import pytest

from tests.tui.stores import browser, put, settled, some
from tui.state.layout import LayoutState, PaneName, arrange


@pytest.mark.parametrize(
    ("screen", "focused", "widths", "overlay"),
    [
        (200, "sessions", {"sessions": 44, "transcript": 0, "inspector": 48}, False),
        (150, "sessions", {"sessions": 44, "transcript": 0, "inspector": 42}, False),
        (149, "sessions", {"sessions": 36, "transcript": 0}, False),
        (120, "inspector", {"sessions": 36, "transcript": 0, "inspector": 60}, True),
        (99, "sessions", {"sessions": 0}, False),
        (80, "inspector", {"inspector": 0}, False),
    ],
)
def test_by_width(
    screen: int, focused: PaneName, widths: dict[PaneName, int], overlay: bool
) -> None:
    arrangement = arrange(LayoutState(focused=focused), screen)
    assert arrangement.widths == widths
    assert arrangement.overlay is overlay


def test_hidden_and_zoomed() -> None:
    hidden = LayoutState(hidden=frozenset({"inspector"}), focused="transcript")
    assert set(arrange(hidden, 200).widths) == {"sessions", "transcript"}
    assert arrange(LayoutState(zoomed=True, focused="transcript"), 200).widths == {"transcript": 0}


def test_widths_stay_sensible() -> None:
    state = LayoutState().resized("sessions", 1, 200)
    assert state.sessions_width == 24
    assert LayoutState().resized("sessions", 900, 200).sessions_width == 160
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
        for keys, width in ((">", 48), ("<<", 40), ("z", 200)):
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
