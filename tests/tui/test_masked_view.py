"""The view with its secrets masked: every pane, the list, the search; and copies for sharing."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from store.config import MaskSettings, Settings
from tests.tui.seeded import SESSION, Said, make_store, message_id, text, tool
from tests.tui.stores import settled
from tests.tui.verbs_app import drawn, running
from tui.app import BackscrollApp
from tui.kit import clipboard
from tui.kit.masked import covered, is_view_masked, mask_view, shown
from tui.state.library import Library

KEY = "ghp_" + "a1B2" * 9
PASSWORD = "h7unter" + "2secret"


@pytest.fixture(autouse=True)
def _not_masked() -> Any:
    yield
    mask_view(None)


def secretive(path: Path) -> Path:
    return make_store(path, [
        Said("user", [text(f"use {KEY} here")]),
        Said("assistant", [
            {"type": "reasoning", "text": f"The key is {KEY}"},
            text(f"Set `DB_PASSWORD={PASSWORD}` then **{KEY}**"),
            tool("Bash", {"command": f"echo {KEY}", "password": PASSWORD}, f"out {KEY}\nmore"),
        ]),
    ], session={"metadata_json": json.dumps({"title": f"Key {KEY[:20]}{KEY[20:]}"})})  # fmt: skip


async def test_one_key_masks_the_view_and_shows_it_again(tmp_path: Path) -> None:
    async with running(secretive(tmp_path / "s.db"), size=(200, 50)) as run:
        await run.open(SESSION, message_id(1))
        before = drawn(run.app.screen)
        assert KEY[:12] in before and PASSWORD in before
        await run.press("I")
        for tab in range(4):
            masked = drawn(run.app.screen)
            assert KEY[4:12] not in masked and PASSWORD[:8] not in masked, (tab, masked)
            assert "[masked GitHub token]" in masked and "masked" in masked.splitlines()[0]
            await run.press("3", "right_square_bracket", "2", "t")
        await run.press("I")
        assert not is_view_masked()
        after = drawn(run.app.screen)
        assert KEY[:12] in after
        assert after.count("[masked") == 0


async def test_a_copy_stays_exact_and_one_for_sharing_is_masked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    copied: list[str] = []

    async def copy(_app: object, given: str, _name: str) -> None:
        copied.append(given)

    monkeypatch.setattr(clipboard, "copy", copy)
    async with running(secretive(tmp_path / "s.db")) as run:
        await run.open(SESSION, message_id(0))
        await run.press("2", "I", "y")
        assert copied == [f"use {KEY} here"]
        for key in "PMX":
            await run.press("Y", key)
        assert all(KEY[4:12] not in each for each in copied[1:])
        assert copied[1] == "use [masked GitHub token] here"
        assert "# Key [masked GitHub token]" in copied[3]
        assert "DB_PASSWORD=[masked password or key]" in copied[3]


async def test_the_search_shows_no_secret_of_a_masked_view(tmp_path: Path) -> None:
    async with running(secretive(tmp_path / "s.db")) as run:
        await run.press("I", "S", *"use", "enter")
        found = drawn(run.app.screen)
        assert "use [masked GitHub token] here" in found and KEY[4:12] not in found


async def test_a_setting_masks_the_view_from_the_start(tmp_path: Path) -> None:
    library = Library.open(secretive(tmp_path / "s.db"), "test")
    app = BackscrollApp(library, Settings(masks=MaskSettings(view=True)), poll_ms=0)
    async with app.run_test(size=(120, 40)) as pilot:
        await settled(app, pilot)
        assert KEY[4:12] not in drawn(app.screen) and "masked" in drawn(app.screen)


def test_nothing_is_changed_while_it_is_off() -> None:
    assert shown(KEY) == KEY and covered(KEY) == KEY


def test_a_row_that_was_forgotten_is_covered_in_the_same_width() -> None:
    from store.sharing.masks import Masking

    mask_view(Masking())
    row = f"│ 12 {KEY} │"
    assert covered(row) == f"│ 12 {'•' * len(KEY)} │"
