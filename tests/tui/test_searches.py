from __future__ import annotations

from pathlib import Path

import pytest

from tui.state.searches import LONGEST, MOST_RECENT, KeptSearches, SearchKeeper, searches_path
from tui.state.view_state import state_path


def test_searches_come_back_in_the_order_they_were_used(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "searches.json"
    keeper = SearchKeeper(path)
    for text in ("one", "two ", "one", "", "  ", "x" * (LONGEST + 1)):
        keeper.used(text)
    assert SearchKeeper(path).kept.recent == keeper.kept.recent == ("one", "two")
    assert path.stat().st_mode & 0o777 == 0o600
    assert [found.name for found in path.parent.iterdir()] == ["searches.json"]


def test_the_history_has_an_end(tmp_path: Path) -> None:
    keeper = SearchKeeper(tmp_path / "s.json")
    for number in range(MOST_RECENT + 5):
        keeper.used(str(number))
    assert len(keeper.kept.recent) == MOST_RECENT
    assert keeper.kept.recent[0] == str(MOST_RECENT + 4)


def test_saved_searches_have_names_of_any_text(tmp_path: Path) -> None:
    path = tmp_path / "s.json"
    keeper = SearchKeeper(path)
    keeper.save("failing \x1b[31mpushes", 'push is:error "a b"')
    keeper.save("漢字", "漢字")
    keeper.save("漢字", "again")
    assert dict(SearchKeeper(path).kept.saved) == {
        "failing \x1b[31mpushes": 'push is:error "a b"', "漢字": "again"}
    keeper.forget("漢字")
    keeper.forget("never there")
    assert list(SearchKeeper(path).kept.saved) == ["failing \x1b[31mpushes"]


def test_what_another_window_kept_stays(tmp_path: Path) -> None:
    path = tmp_path / "s.json"
    one, two = SearchKeeper(path), SearchKeeper(path)
    one.save("a", "1")
    two.save("b", "2")
    two.used("text")
    assert SearchKeeper(path).kept == KeptSearches(("text",), {"a": "1", "b": "2"})


@pytest.mark.parametrize(
    "text", ["", "[", "[]", "3", '{"recent": 1, "saved": []}', '{"recent": [1], "saved": {"a": 2}}']
)
def test_a_damaged_file_keeps_nothing(text: str, tmp_path: Path) -> None:
    path = tmp_path / "s.json"
    path.write_text(text)
    assert SearchKeeper(path).kept == KeptSearches((), {})


def test_each_store_has_its_own_file_beside_its_view(tmp_path: Path) -> None:
    one, other = searches_path(tmp_path / "a.db"), searches_path(tmp_path / "b.db")
    assert one != other and one.parent == state_path(tmp_path / "a.db").parent
    assert one.name.startswith("searches-")
