"""The rooms of the house import one way; the picture of them in the documentation is true."""

from __future__ import annotations

import re

from tests.rooms import PICTURE, ROOT, circles, module_graph, picture, room_graph, room_of


def test_no_two_modules_import_each_other() -> None:
    assert circles(module_graph()) == []
    browser = {
        name: imported for name, imported in module_graph(types=True).items()
        if name.startswith("tui")
    }  # fmt: skip
    assert circles(browser) == []


def test_no_two_rooms_import_each_other() -> None:
    graph = room_graph()
    assert "tui.kit" in graph["tui.transcript"]
    assert circles(graph) == []


def test_only_the_start_imports_the_app() -> None:
    graph = module_graph(types=True)

    def importers(name: str) -> set[str]:
        return {room_of(one) for one, imported in graph.items() if name in imported}

    assert importers("tui.app") == {"tui.browser", "tui.screenshots"}
    assert importers("tui.main.screen") == {"tui.app", "tui.keys"}


def test_the_kit_imports_no_room_and_the_store_no_screen() -> None:
    graph = room_graph()
    assert {one for one in graph["tui.kit"] if one.startswith("tui.")} <= {"tui.host"}
    for room, imported in graph.items():
        assert room.startswith("tui.") or not any(one.startswith("tui") for one in imported)


def test_a_circle_is_found() -> None:
    assert circles({"a": {"b"}, "b": {"c"}, "c": {"a"}, "d": {"a"}}) == [["a", "b", "c"]]


def test_the_room_of_a_module() -> None:
    assert room_of("store.sync.engine") == "store.sync"
    assert room_of("store.sources.codex.facts") == "store.sources.<agent>"
    assert room_of("tui.sessions.commands.SESSION_COMMANDS") == "tui.keys"
    assert room_of("store.errors") == "store.errors"


def test_the_picture_shows_the_code() -> None:
    assert PICTURE.read_text("utf-8") == picture(), "run python -m tests.rooms"


def test_the_page_names_what_is_there() -> None:
    page = (ROOT / "docs" / "architecture.md").read_text("utf-8")
    named = set(re.findall(r"\b(?:store|tui|tests|docs)/[\w/.]*", page))
    named = {each.rstrip(".") for each in named} - {"store/sources/AGENT"}
    assert len(named) > 40
    assert [each for each in sorted(named) if not (ROOT / each).exists()] == []
    folders = {
        f"{path.parent.name}/{path.name}" for package in ("store", "tui")
        for path in (ROOT / package).iterdir() if (path / "__init__.py").exists()
    }  # fmt: skip
    assert folders - {each.rstrip("/") for each in named} == {"store/demo", "tui/screenshots"}
