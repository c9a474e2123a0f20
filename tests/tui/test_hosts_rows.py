"""Whatever a host has written into its rows is shown, and ends nothing."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from textual.pilot import Pilot

from store.system.locations import log_path
from tests.store.making import add_message, add_part, add_session, contract, loose
from tests.tui.stores import NOW, browser, settled
from tui.app import BackscrollApp
from tui.inspector.pane import InspectorPane

ODD_VALUES: list[Any] = ["text", "2026-11-28T10:00:00Z", b"\xff\x00", 1.5, -5, 10**18, 1e300]


def problems() -> str:
    return log_path().read_text() if log_path().exists() else ""


def drawn(app: BackscrollApp) -> str:
    strips = app.screen._compositor.render_strips()
    return "\n".join(strip.text.rstrip() for strip in strips)


async def walk(app: BackscrollApp, pilot: Pilot[None]) -> None:
    """Open the selected session, and look at each of its parts in every way there is."""
    await pilot.press("enter")
    await settled(app, pilot)
    for keys in ("g", "jJ.", "ttt", "mm", "HH", "cc", "G", "KK"):
        await pilot.press(*keys)
        await settled(app, pilot)
    await pilot.press("3")
    for _ in range(4):
        await pilot.press("G", "]")
        await settled(app, pilot)
    await pilot.press("1", "d")
    await settled(app, pilot)
    # Not escape: it closes the toasts first, where a key had nothing to do.
    await pilot.press("G", "q", "1")
    await settled(app, pilot)


def values(make: Callable[[Path], Path]) -> list[Any]:
    return ODD_VALUES if make is contract else [None, *ODD_VALUES]


def long(*values: object) -> list[Any]:
    """Return values whose tests are among the long ones."""
    return [pytest.param(value, marks=pytest.mark.long) for value in values]


@pytest.mark.parametrize("make", [loose, *long(contract)])
@pytest.mark.long
async def test_columns_of_other_types(make: Callable[[Path], Path], tmp_path: Path) -> None:
    path = make(tmp_path / "host.db")
    connection = sqlite3.connect(path)
    for number, value in enumerate(values(make)):
        session = add_session(
            connection, f"ses_{number}", value, updated_at=value, total_tokens=value,
            cost_usd=value, agent=value, workspace_root=value, parent_id=value,
            metadata={"title": f"title {number}"},
        )  # fmt: skip
        said_at = value or 0
        add_message(connection, session, f"early{number}", said_at, updated_at=value)
        add_part(connection, session, f"early{number}", f"first {number}", 0, created_at=value,
                 updated_at=value)  # fmt: skip
        add_message(connection, session, f"late{number}", said_at, role="assistant")
        add_part(connection, session, f"late{number}", f"second {number}", 0)
    connection.commit()
    app = browser(path)
    async with app.run_test(size=(160, 40)) as pilot:
        pane = await settled(app, pilot)
        assert sorted(row.title or "" for row in pane.view.rows.values()) == [
            f"title {number}" for number in range(len(values(make)))
        ]
        for _ in range(5):
            await pilot.press("b")
            await settled(app, pilot)
        for _ in values(make):
            await walk(app, pilot)
            place = str(pane.selected_id).removeprefix("ses_")
            assert f"first {place}" in drawn(app)
            assert f"second {place}" in drawn(app)
            await pilot.press("j")
            await settled(app, pilot)
    assert problems() == ""


@pytest.mark.parametrize("role", ["developer", "on:hit \x1b[31m", *long("tool", "", "text b")])
@pytest.mark.one_in(2)
async def test_unknown_roles_and_kinds(role: str, tmp_path: Path) -> None:
    path = contract(tmp_path / "host.db")
    connection = sqlite3.connect(path)
    session = add_session(connection, "ses_1", NOW, metadata={"title": "odd"})
    add_message(connection, session, "m1", NOW, role=role)
    for index, kind in enumerate(("text", "holo-gram", "", "data-new", "tool-", "step-start")):
        data = json.dumps({"type": kind, "text": f"said {index}"})
        add_part(connection, session, "m1", f"p{index}", index, type=kind, data_json=data)
    connection.commit()
    app = browser(path)
    async with app.run_test(size=(160, 40)) as pilot:
        await settled(app, pilot)
        await walk(app, pilot)
        assert "said 0" in drawn(app)
        assert "holo-gram" in drawn(app)
        assert app.main.query_one(InspectorPane).display
    assert problems() == ""


@pytest.mark.parametrize("marks", [
    {"tags": {"a": 1}, "labels": [1]}, *long(5, "x", [1], {"tags": 5})])
async def test_marks_of_another_shape(marks: object, tmp_path: Path) -> None:
    path = contract(tmp_path / "host.db")
    connection = sqlite3.connect(path)
    add_session(connection, "ses_1", NOW, metadata={"title": "odd", "user": marks})
    add_message(connection, "ses_1", "m1", NOW)
    add_part(connection, "ses_1", "m1", "p1", 0)
    connection.commit()
    app = browser(path)
    async with app.run_test(size=(160, 40)) as pilot:
        pane = await settled(app, pilot)
        await pilot.press("slash", "o", "d", "d")
        await settled(app, pilot)
        assert [row.title for row in pane.view.rows.values()] == ["odd"]
        assert len(pane.view.model) == 1
        await pilot.press("escape", "T")
        await settled(app, pilot)
        assert "odd" in drawn(app)
    assert problems() == ""


DEEP = '{"title": "deep", "usage": ' + "[" * 5000 + "]" * 5000 + "}"


@pytest.mark.parametrize(
    "metadata", ["", '{"hidden_at": "x"}', DEEP, *long("{", "[]", "null", '"x"')],
    ids=lambda text: text[:20],
)
@pytest.mark.one_in(3)
async def test_metadata_that_is_no_object(metadata: str, tmp_path: Path) -> None:
    path = contract(tmp_path / "host.db")
    connection = sqlite3.connect(path)
    session = add_session(connection, "ses_1", NOW, metadata_json=metadata)
    child = add_session(connection, "ses_2", NOW - 1, parent_id="ses_1", metadata_json=metadata)
    for number in range(3):
        for name in (session, child):
            add_message(connection, name, f"{name}{number}", NOW, metadata_json="{}")
            add_part(connection, name, f"{name}{number}", f"said {number} in {name}", 0)
    connection.execute("UPDATE chat_messages SET metadata_json = ? WHERE id LIKE '%1'", [metadata])
    connection.commit()
    app = browser(path)
    async with app.run_test(size=(160, 40)) as pilot:
        await settled(app, pilot)
        await walk(app, pilot)
        assert "said 0 in ses_1" in drawn(app)
        assert "said 2 in ses_1" in drawn(app)
    assert problems() == ""


@pytest.mark.parametrize("kind", ["text", "tool-sh", *long("reasoning", "data-x")])
@pytest.mark.one_in(2)
async def test_parts_that_are_damaged_are_shown_as_damaged(kind: str, tmp_path: Path) -> None:
    path = contract(tmp_path / "host.db")
    connection = sqlite3.connect(path)
    session = add_session(connection, "ses_1", NOW, metadata={"title": "odd"}, model_json=DEEP)
    add_message(connection, session, "m1", NOW, role="assistant")
    for index, text in enumerate((DEEP, "no json", "[1]", '{"type": ["x"], "text": {"a": 1}}')):
        add_part(connection, session, "m1", f"p{index}", index, type=kind, data_json=text)
    add_part(connection, session, "m1", "last", 9)
    connection.commit()
    app = browser(path)
    async with app.run_test(size=(160, 40)) as pilot:
        await settled(app, pilot)
        await walk(app, pilot)
        assert drawn(app).count("damaged") >= 3
        assert "last" in drawn(app)
    assert problems() == ""
