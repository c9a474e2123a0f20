"""Sorts, groups and columns of the session list: one declaration each."""

from __future__ import annotations

from pathlib import Path

import pytest

from store.config import load_config
from store.queries.list_options import SORTS, Sort
from tests.tui.stores import Told, browser, put, settled
from tui.sessions import columns
from tui.sessions.columns import Column, shown_columns
from tui.sessions.header import ListOrder


async def test_a_sort_needs_nothing_but_its_declaration(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    titles = Sort("title", "by title", "title", "lower({title}), s.id DESC", "title",
                  ascending=True)
    monkeypatch.setitem(SORTS, "title", titles)
    told = [Told("ses_a", "pi"), Told("ses_b", "Aider"), Told("ses_c", "pi")]
    app = browser(put(tmp_path / "s.db", told), sort="title", group="none")
    async with app.run_test(size=(120, 40)) as pilot:
        pane = await settled(app, pilot)
        rows = [pane.view.rows[rowid].id for rowid in pane.view.model.rowids]
        assert rows == ["ses_b", "ses_c", "ses_a"]
        assert pane.query_one(ListOrder).render_line(0).text.split()[-3:] == ["by", "title", "↑"]


async def test_a_column_needs_nothing_but_its_declaration(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    branch = Column("branch", lambda row: row.branch or "", (10, 10))
    monkeypatch.setattr(columns, "COLUMNS", (*columns.COLUMNS, branch))
    app = browser(put(tmp_path / "s.db", [Told("ses_a", branch="fix/retry")]))
    async with app.run_test(size=(120, 40)) as pilot:
        pane = await settled(app, pilot)
        assert "fix/retry" in pane.view.render_line(3).text


@pytest.mark.parametrize(
    ("sort", "width", "lines", "names"),
    [
        ("recent", 40, 2, ["turns", "tokens"]), ("recent", 60, 2, ["turns", "tokens", "cost"]),
        ("cost", 40, 2, ["turns", "cost"]), ("cost", 60, 2, ["turns", "tokens", "cost"]),
        ("length", 40, 2, ["messages", "tokens"]),
        ("length", 60, 2, ["messages", "tokens", "cost"]),
        ("recent", 40, 1, ["tokens"]), ("cost", 40, 1, ["cost"]), ("length", 40, 1, ["messages"]),
        ("recent", 80, 1, ["turns", "tokens"]), ("cost", 80, 1, ["turns", "cost"]),
        ("length", 120, 1, ["messages", "tokens", "cost"]),
    ],
)
def test_a_list_always_shows_the_column_that_it_is_sorted_by(
    sort: str, width: int, lines: int, names: list[str]
) -> None:
    assert [each.field for each in shown_columns(width, lines, SORTS[sort])] == names


@pytest.mark.parametrize("sort", SORTS)
def test_the_config_takes_every_sort(sort: str, tmp_path: Path) -> None:
    file = tmp_path / "config.toml"
    file.write_text(f'[ui]\nsort = "{sort}"\n')
    config = load_config(file)
    assert (config.ui.sort, config.mistakes) == (sort, [])


def test_the_config_names_the_sorts_where_one_is_wrong(tmp_path: Path) -> None:
    file = tmp_path / "config.toml"
    file.write_text('[ui]\nsort = "size"\n')
    (mistake,) = load_config(file).mistakes
    assert all(repr(name) in mistake.reason for name in SORTS)
