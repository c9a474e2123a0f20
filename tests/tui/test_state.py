from __future__ import annotations

import json
from pathlib import Path

import pytest

from store.config import load_config, quick_config
from tui.state.layout import LayoutState
from tui.state.view_state import MOST_PLACES, ViewState, load_state, save_state, state_path


def test_it_comes_back_as_it_was(tmp_path: Path) -> None:
    state = ViewState(
        LayoutState(40, None, frozenset({"inspector"}), True, "transcript"), "ses_1", "cost",
        "day", "all", {"ses_1": False}, {"ses_1": {"message": "msg_1"}},
    )
    path = tmp_path / "deep" / "view.json"
    save_state(path, state)
    assert load_state(path) == state
    assert path.stat().st_mode & 0o777 == 0o600
    assert [found.name for found in path.parent.iterdir()] == ["view.json"]


@pytest.mark.parametrize(
    "text",
    ["", "{", "[]", "null", '{"layout": 3, "folds": [], "places": 1, "session_id": 5, "sort": {}}',
     '{"layout": {"sessions_width": "9", "hidden": 4, "zoomed": "x", "focused": "moon"}}',
     '{"layout": {"sessions_width": true, "hidden": ["transcript", "sun"]}}', "\x00\xff"],
)
def test_damage_gives_defaults(text: str, tmp_path: Path) -> None:
    path = tmp_path / "view.json"
    path.write_bytes(text.encode("latin-1"))
    assert load_state(path) == ViewState()


def test_the_settings_hold_until_something_was_chosen(tmp_path: Path) -> None:
    path = tmp_path / "view.json"
    first = load_state(path, sort="cost", group="day")
    assert (first.sort, first.group) == ("cost", "day")
    save_state(path, ViewState(sort="tokens", group="none"))
    chosen = load_state(path, sort="cost", group="day")
    assert (chosen.sort, chosen.group) == ("tokens", "none")


def test_the_first_paint_knows_how_the_list_is_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "config.toml"
    monkeypatch.setattr("store.config.config_path", lambda: path)
    path.write_text('[ui]\ngroup = "day"\nsort = "sideways"\n')
    settings = quick_config()
    assert (settings.ui.group, settings.ui.sort) == ("day", "recent")


def test_keys_are_read_however_toml_lets_them_be_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "config.toml"
    monkeypatch.setattr("store.config.config_path", lambda: path)
    path.write_text('[keys]\nlist.open = "x"\n"list.details" = ["i"]\napp.zoom = ["w"]\n')
    expected = {"list.open": ["x"], "list.details": ["i"], "app.zoom": ["w"]}
    assert quick_config().keys == expected == load_config(path).keys


def test_part_of_it_survives_damage_of_another(tmp_path: Path) -> None:
    path = tmp_path / "view.json"
    path.write_text(json.dumps({"session_id": "ses_9", "folds": {"a": 1, "b": True}}))
    state = load_state(path)
    assert (state.session_id, state.folds) == ("ses_9", {"b": True})


def test_old_places_are_dropped() -> None:
    state = ViewState()
    for number in range(MOST_PLACES + 5):
        state.keep_place(str(number), number)
    assert len(state.places) == MOST_PLACES
    assert next(iter(state.places)) == "5"


def test_each_store_has_its_own(tmp_path: Path) -> None:
    assert state_path(tmp_path / "a.db") != state_path(tmp_path / "b.db")
