"""The parts of the main screen, each without a screen."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

from tests.tui.stores import NOW, put, some
from tui.inspector.pane import NOTHING
from tui.keys.registry import COMMANDS
from tui.keys.table import CommandTable
from tui.live.polling import Health
from tui.live.summary import StoreCounter
from tui.main.inspecting import InspectorFeed
from tui.main.opener import SessionOpener
from tui.messages import PartSelected
from tui.state.library import Library
from tui.state.view_state import ViewState


class Stopped:
    """A timer that never runs."""

    stopped = False

    def stop(self) -> None:
        self.stopped = True


class Screen:
    """Keeps what it is asked to run."""

    is_attached = True

    def __init__(self) -> None:
        self.timers: list[tuple[Stopped, Callable[[], Any]]] = []
        self.work: list[Callable[[], Awaitable[None]]] = []
        self.posted: list[Any] = []

    def set_timer(self, delay: float, callback: Callable[[], Any]) -> Stopped:
        timer = Stopped()
        self.timers.append((timer, callback))
        return timer

    def call_later(self, callback: Callable[[], Any]) -> None:
        self.timers.append((Stopped(), callback))

    def run_worker(self, work: Callable[[], Awaitable[None]], **how: Any) -> None:
        self.work.append(work)

    def post_message(self, message: Any) -> None:
        self.posted.append(message)


class Transcript:
    """Notes what it is asked to open."""

    def __init__(self) -> None:
        self.opened: list[tuple[str, str | None, object]] = []
        self.session: Any = None

    async def open_session(
        self, store: object, row: Any, *, message_id: str | None, part_id: str | None,
        place: object, back: str,
    ) -> None:
        self.opened.append((row.id, message_id, place))
        self.session = row

    def place(self) -> str:
        return f"place {len(self.opened)}"


class Inspector:
    """Notes what it is asked to show."""

    display = True

    def __init__(self) -> None:
        self.shown: list[str] = []

    async def show_part(self, store: object, session: str, part: str, *, runs: bool) -> None:
        self.shown.append(part)

    def show_nothing(self, words: str = NOTHING) -> None:
        self.shown.append(words)


def library(tmp_path: Path) -> Library:
    return Library.open(put(tmp_path / "s.db", some(3)), "test", clock=lambda: NOW)


async def test_the_opener_keeps_places_and_opens_each_session_once(tmp_path: Path) -> None:
    screen, state, store = Screen(), ViewState(), library(tmp_path)
    opener = SessionOpener(screen, store, state)  # type: ignore[arg-type]
    names = [row[0] for row in store.database.connection.execute("SELECT id FROM chat_sessions")]
    opener.open(names[0])
    assert opener.shown is None and not screen.work  # The transcript is not loaded yet.
    transcript = Transcript()
    opener.transcript = transcript  # type: ignore[assignment]
    opener.preview(names[1])
    opener.open(names[0])
    assert screen.timers[0][0].stopped
    opener.open(names[0])
    await screen.work[0]()
    opener.open(names[1])
    await screen.work[1]()
    opener.open(names[0])
    await screen.work[2]()
    assert len(screen.work) == 3
    assert transcript.opened == [
        (names[0], None, None), (names[1], None, None), (names[0], None, "place 1"),
    ]
    opener.open("ses_gone")
    await screen.work[-1]()
    assert opener.shown is None
    assert "no longer in the store" in str(screen.posted[-1].error)
    opener.open("ses_gone")
    opener.open(names[2])
    await screen.work[-2]()
    assert opener.shown == names[2]
    await store.close()


async def test_the_feed_waits_for_the_selection_to_rest(tmp_path: Path) -> None:
    screen, store, inspector = Screen(), library(tmp_path), Inspector()
    feed = InspectorFeed(screen, store)  # type: ignore[arg-type]
    feed.inspector = inspector  # type: ignore[assignment]
    for part in ("a", "b", "c"):
        await feed.select(PartSelected("ses", "msg", part))
    assert inspector.shown == ["a"]
    assert [timer.stopped for timer, _ in screen.timers] == [True, False]
    await screen.timers[-1][1]()
    assert inspector.shown == ["a", "c"]
    inspector.display = False
    await feed.select(PartSelected("ses", "msg", "c"))
    assert inspector.shown == ["a", "c"]
    inspector.display = True
    feed.came_into_sight()
    await screen.timers[-1][1]()
    assert inspector.shown == ["a", "c", "c"]
    await feed.select(PartSelected("ses", "msg", "c"))
    assert inspector.shown == ["a", "c", "c", "c"]  # It has changed: shown without a pause.
    feed.clear()
    assert inspector.shown[-1] == "There is no part to show"
    await store.close()


async def test_the_counter_counts_when_its_worker_runs(tmp_path: Path) -> None:
    screen, store = Screen(), library(tmp_path)
    told: list[Any] = []
    counter = StoreCounter(
        screen, store, counted=told.append, busy=lambda: None)  # type: ignore[arg-type]
    assert counter.summary(Health()).sessions is None
    counter.count_soon()
    counter.count_soon()
    assert len(screen.work) == 1 and counter.is_due
    await screen.work[0]()
    assert len(told) == 1
    assert counter.summary(Health()).sessions == 3
    assert counter.summary(Health("busy", NOW - 5_000)).trouble.endswith("5 s ago")
    await store.close()


def test_the_table_gives_a_key_of_the_config_before_a_commands_own() -> None:
    table = CommandTable(COMMANDS, {"list.up": ["j"]})
    found = table.for_key("list", "j")
    assert found is not None and found.id == "list.up"
    ranks = {command.footer: command.id for command in table.of("tree") if command.footer}
    assert ranks[min(ranks)] == "tree.open"
    assert table.for_key("list", "no such key") is None


def test_a_hint_names_the_key_that_a_command_has_now() -> None:
    assert CommandTable(COMMANDS, {}).hint("app.undo", "undoes") == " · U undoes"
    assert CommandTable(COMMANDS, {"app.undo": ["ctrl+z"]}).hint("app.undo", "undoes") \
        == " · ctrl+z undoes"
    assert CommandTable(COMMANDS, {"app.undo": []}).hint("app.undo", "undoes") == ""
