"""The second line of a session says what tells it from the others."""

from __future__ import annotations

from pathlib import Path

import pytest

from store.queries.list_options import GROUPS
from store.queries.listing import ListRow
from tests.tui.stores import Told, browser, put, settled
from tui.sessions.columns import COLUMNS
from tui.sessions.facts import FACTS, Variety, facts_of

ALL = frozenset(fact.field for fact in FACTS)


def row(**known: object) -> ListRow:
    return ListRow(**({  # type: ignore[arg-type]
        "rowid": 1, "id": "s", "title": "t", "agent": "build", "source": "claude-code",
        "model": "claude-sonnet-4-5-20250929", "workspace": "/w/api", "branch": "feature/backoff",
        "parent_id": None, "lineage": None, "tokens": 0, "cost": 0.0, "created_at": 0,
        "updated_at": 0, "archived_at": None, "star": False, "tags": (), "activity": None,
        "activity_from": None, "said": None, "messages": 0,
        "outline": False, "prompts_only": False} | known))


def test_a_cost_that_is_an_estimate_is_marked() -> None:
    (cost,) = [column for column in COLUMNS if column.field == "cost"]
    assert cost.text(row(cost=0.25, own_cost=(9.0, True))) == "$0.250"
    assert cost.text(row(own_cost=(0.123, True))) == "≈ $0.12"
    assert cost.text(row(own_cost=(0.123, False))) == "$0.123"
    assert [cost.text(row(own_cost=(usd, True))) for usd in (0.004, 12.4, 999.0)] == [
        "≈ <$.01", "≈ $12", "≈ $999"]
    assert cost.text(row()) == cost.text(row(own_cost=(0.0, False))) == ""


@pytest.mark.parametrize(
    ("room", "words"),
    [
        (60, "api · claude-code · sonnet-4.5 · feature/backoff"),
        (42, "api · claude · sonnet-4.5 · backoff"), (34, "api · claude · sonnet-4.5"),
        # What does not fit whole gives its room to what does.
        (22, "api · claude · backoff"), (12, "api · claude"), (5, "api"), (2, "a…"), (0, ""),
    ],
)
def test_no_name_is_cut_where_a_shorter_one_fits(room: int, words: str) -> None:
    assert facts_of(row(), ALL, GROUPS["day"], room) == words


def test_the_heading_and_what_all_share_are_left_out() -> None:
    assert facts_of(row(), ALL, GROUPS["workspace"], 60).startswith("claude-code ·")
    assert "claude" not in facts_of(row(), ALL, GROUPS["source"], 60)
    assert facts_of(row(), {"model"}, GROUPS["day"], 60) == "sonnet-4.5"
    assert facts_of(row(), (), GROUPS["day"], 60) == ""
    assert facts_of(row(lineage="subagent"), ALL, GROUPS["day"], 60) == "subagent · sonnet-4.5"
    variety = Variety()
    variety.add([row(), row(branch=None, model="claude-sonnet-4-5-20250929")])
    assert variety.differing == frozenset()
    variety.add([row(source="codex", branch="main")])
    assert variety.differing == {"source"}
    variety.add([row(branch="docs")])
    assert variety.differing == {"source", "branch"}


async def test_the_list_shows_what_differs_in_it(tmp_path: Path) -> None:
    told = [Told("ses_a", "One", "/w/api"), Told("ses_b", "Two", "/w/api", branch="main"),
            Told("ses_c", "Three", "/w/web", source="codex", model="gpt-5.2")]
    app = browser(put(tmp_path / "s.db", told))
    async with app.run_test(size=(160, 40)) as pilot:
        pane = await settled(app, pilot)

        def second(session_id: str) -> str:
            view = pane.view
            entry = next(n for n, rowid in enumerate(view.model.rowids)
                         if view.rows[rowid].id == session_id)
            line = view.model.top(entry, view.row_height) + 1
            return view.render_line(line).text[3:].partition("0 turns")[0].strip()

        assert second("ses_a") == "claude-code · sonnet-4.5"
        assert second("ses_c") == "codex · gpt-5.2"
        await pilot.press("slash", *"api", "enter")
        await settled(app, pilot)
        assert second("ses_a") == second("ses_b") == ""
        await pilot.press("escape")
        await settled(app, pilot)
        assert second("ses_a") == "claude-code · sonnet-4.5"
