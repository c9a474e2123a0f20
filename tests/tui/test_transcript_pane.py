from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from textual import _wait
from textual.app import App, ComposeResult
from textual.message import Message
from textual.pilot import Pilot

from store.config import Settings
from store.engine.changes import Moved
from store.queries import transcript as queries
from store.queries.sessions import get
from store.store import Store
from tests.tui.seeded import SESSION, Said, long_talk, make_store, message_id, text, tool
from tests.tui.workers import workers_done
from tui.host import WayBack
from tui.keys.dispatch import CommandApp
from tui.keys.registry import COMMANDS
from tui.keys.table import CommandTable
from tui.kit.theme import OWN_THEMES
from tui.messages import InspectRequested, PartSelected, ProblemOccurred, SessionOpened
from tui.transcript.pane import TranscriptPane

NOW = 1_796_000_000_000


class Harness(CommandApp):
    ENABLE_COMMAND_PALETTE = False
    settings = Settings()

    @property
    def commands(self) -> CommandTable:
        return CommandTable(COMMANDS, {})

    def __init__(self, store: Store, opened: dict[str, Any]) -> None:
        super().__init__()
        self.store, self.opened = store, opened
        for theme in OWN_THEMES:
            self.register_theme(theme)
        self.theme = "backscroll-dark"
        self.posted: list[Message] = []
        self.way_back: WayBack | None = None

    def compose(self) -> ComposeResult:
        yield TranscriptPane(id="transcript")

    async def on_mount(self) -> None:
        row = await self.store.read(get, SESSION)
        assert row is not None
        pane = self.query_one(TranscriptPane)
        await pane.open_session(self.store, row, **self.opened)
        self.screen.set_focus(pane.view)

    def on_part_selected(self, event: PartSelected) -> None:
        self.posted.append(event)

    def on_inspect_requested(self, event: InspectRequested) -> None:
        self.posted.append(event)

    def on_session_opened(self, event: SessionOpened) -> None:
        self.posted.append(event)

    def open_session(
        self, session_id: str, message_id: str | None = None, *, back: WayBack | None = None
    ) -> None:
        self.way_back = back
        self.posted.append(SessionOpened(session_id, message_id))

    def on_problem_occurred(self, event: ProblemOccurred) -> None:
        raise event.error or AssertionError(event.summary)


Run = Callable[..., Any]


@pytest.fixture(autouse=True)
def quick_pilot(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_wait, "SLEEP_GRANULARITY", 0.001)
    monkeypatch.setattr(_wait, "SLEEP_IDLE", 0.0005)


@asynccontextmanager
async def running(
    tmp_path: Path, said: list[Said], size: tuple[int, int] = (100, 30), **opened: Any
) -> AsyncIterator[tuple[Pilot[None], TranscriptPane, Harness]]:
    path = make_store(tmp_path / "s.db", said)
    store = await Store.open(path, clock=lambda: NOW)
    app = Harness(store, opened)
    try:
        async with app.run_test(size=size) as pilot:
            await settled(app)
            yield pilot, app.query_one(TranscriptPane), app
    finally:
        await store.close()


async def settled(app: App[None]) -> None:
    """Wait until all that goes on behind the screen has ended."""
    for _ in range(3):
        await workers_done(app)
        await app._animator.wait_until_complete()
        pilot = Pilot(app)
        await pilot.pause()


def lines(pane: TranscriptPane) -> list[str]:
    document = pane.document
    found = []
    for row in pane.view.rows():
        block = document.block(row.part)
        assert block is not None
        found.append(block.lines[row.line].text.rstrip())
    return found


async def press(app: App[None], pilot: Pilot[None], *keys: str) -> None:
    await pilot.press(*keys)
    await settled(app)


async def test_it_opens_at_the_end_and_counts_the_rest(tmp_path: Path) -> None:
    async with running(tmp_path, long_talk(200)) as (_pilot, pane, app):
        assert pane.document.complete and len(pane.document) == 1000
        assert lines(pane)[-1] != "" and pane.cursor == 999
        last = [event for event in app.posted if isinstance(event, PartSelected)][-1]
        assert last.message_id == message_id(399)


async def test_paging_there_and_back_ends_on_the_same_lines(tmp_path: Path) -> None:
    async with running(tmp_path, long_talk(120)) as (pilot, pane, app):
        await press(app, pilot, "g", *["pagedown"] * 5)
        before = lines(pane)
        await press(app, pilot, *["pagedown"] * 10)
        assert lines(pane) != before
        await press(app, pilot, *["pageup"] * 10)
        assert lines(pane) == before


async def test_top_and_end(tmp_path: Path) -> None:
    async with running(tmp_path, long_talk(100)) as (pilot, pane, app):
        await press(app, pilot, "g")
        assert "Prompt 0: please look at case 0." in lines(pane)
        await press(app, pilot, "G")
        assert pane.view.at_end and len(lines(pane)) == pane.view.size.height


async def test_only_rows_near_the_screen_are_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    read: list[int] = []
    rows_of = queries.rows_of

    def counted(db: Any, spans: Any) -> Any:
        found = rows_of(db, spans)
        read.append(len(found[1]))
        return found

    monkeypatch.setattr(queries, "rows_of", counted)
    async with running(tmp_path, long_talk(600)) as (pilot, _pane, app):
        await press(app, pilot, "g", "G", "g", "pagedown", "G")
        assert 0 < sum(read) < 800


async def test_the_place_is_kept_when_the_rest_is_counted_and_on_resize(tmp_path: Path) -> None:
    said = long_talk(150)
    async with running(tmp_path, said, message_id=message_id(120)) as (pilot, pane, app):
        assert pane.document.skeleton.key(pane.cursor) == (message_id(120), 0)
        assert any("Prompt 60:" in line for line in lines(pane))
        top = pane.document.skeleton.key(pane.view.scroller.part)
        await pilot.resize_terminal(70, 24)
        while pane.view.size.width != 70:
            await pilot.pause()
        await settled(app)
        assert pane.document.skeleton.key(pane.view.scroller.part) == top
        assert all(len(line) <= 65 for line in lines(pane))


async def test_a_place_is_found_again(tmp_path: Path) -> None:
    said = long_talk(150)
    async with running(tmp_path, said) as (pilot, pane, app):
        await press(app, pilot, "g", *["pagedown"] * 9, "}", "o")
        place, shown, cursor = pane.place(), lines(pane), pane.cursor
        assert place is not None
    (tmp_path / "s.db").unlink()
    async with running(tmp_path, said, place=dict(place)) as (_pilot, pane, _app):
        assert lines(pane) == shown and pane.cursor == cursor


async def test_steps_from_part_to_part_of_a_kind(tmp_path: Path) -> None:
    async with running(tmp_path, long_talk(120)) as (pilot, pane, app):
        skeleton = pane.document.skeleton
        await press(app, pilot, "g")
        seen = []
        for key in ("J", "J", ".", "}", "}", ",", "]", "]", "[", "K"):
            await press(app, pilot, key)
            name, index = skeleton.key(pane.cursor)
            seen.append((int(name[6:]), index))
        assert seen == [(1, 0), (2, 0), (3, 0), (3, 2), (3, 3), (3, 2), (4, 0), (6, 0), (4, 0),
                        (3, 0)]


async def test_errors_are_found_and_their_end_is_told(tmp_path: Path) -> None:
    said = [Said("user", [text("go")])] + [
        Said("assistant", [tool("Bash", {"command": f"c{n}"}, "no", call=f"c{n}",
                                state="output-error" if n in (2, 7) else "output-available")])
        for n in range(12)
    ]
    async with running(tmp_path, said) as (pilot, pane, app):
        await press(app, pilot, "g", "e")
        assert pane.cursor == 3
        await press(app, pilot, "e")
        assert pane.cursor == 8
        await press(app, pilot, "e")
        assert pane.cursor == 8
        await press(app, pilot, "E")
        assert pane.cursor == 3


async def test_one_key_cycles_all_outputs_and_one_the_selected(tmp_path: Path) -> None:
    output = "\n".join(f"row {n}" for n in range(10))
    said = [Said("assistant", [tool("Bash", {"command": "a"}, output, call="a"),
                               tool("Bash", {"command": "b"}, output, call="b")])]
    async with running(tmp_path, said, size=(80, 40)) as (pilot, pane, app):
        def rows() -> list[int]:
            return [sum(f"row {n}" in line for line in lines(pane) for n in range(10))]

        assert rows() == [8]
        await press(app, pilot, "t")
        assert rows() == [20]
        await press(app, pilot, "t")
        assert rows() == [0]
        await press(app, pilot, "t", "g", "o")
        assert rows() == [14]
        await press(app, pilot, "o")
        assert rows() == [4]
        await press(app, pilot, "o")
        assert rows() == [8]


async def test_hidden_turns_are_a_line_that_opens(tmp_path: Path) -> None:
    said = [
        Said("user", [text("first")]),
        Said("user", [text("taken back")], {"hidden_at": NOW}),
        Said("assistant", [text("also gone")], {"hidden_at": NOW}),
        Said("user", [text("second")]),
        Said("user", [text("later")], {"queued_at": NOW}),
        Said("assistant", [text("answer")]),
    ]
    async with running(tmp_path, said) as (pilot, pane, app):
        shown = "\n".join(lines(pane))
        assert "2 messages hidden by a rewind" in shown and "taken back" not in shown
        assert shown.index("answer") < shown.index("later")
        assert len(pane.document.skeleton.turns) == 2
        await press(app, pilot, "H")
        assert "taken back" in "\n".join(lines(pane))
        await press(app, pilot, "H")
        assert "taken back" not in "\n".join(lines(pane))


async def search(app: App[None], pilot: Pilot[None], needle: str) -> None:
    await pilot.press("slash", *needle, "enter")
    await settled(app)


async def test_search_counts_opens_and_puts_back(tmp_path: Path) -> None:
    output = "\n".join(f"row {n}" for n in range(40)) + "\nthe needle\n" + "\n".join("abc")
    said = [
        Said("user", [text("find the Needle in " + "very " * 30 + "long words")]),
        Said("assistant", [{"type": "reasoning", "text": "a needle? " * 2},
                           tool("Bash", {"command": "cat x"}, output)]),
        Said("user", [text("nothing here")]),
    ]
    async with running(tmp_path, said) as (pilot, pane, app):
        await press(app, pilot, "g")
        await search(app, pilot, "needle")
        assert pane.shown.search is not None
        assert (pane.shown.search.total, pane.shown.search.number) == (4, 1)
        before = pane.document.height(2)
        numbers, parts = [], []
        for _ in range(4):
            await press(app, pilot, "n")
            numbers.append(pane.shown.search.number)
            parts.append(pane.cursor)
        assert numbers == [2, 3, 4, 1] and parts == [1, 1, 2, 0]
        assert pane.document.height(2) == before
        await press(app, pilot, "N")
        assert pane.shown.search.number == 4
        assert any("the needle" in line for line in lines(pane))
        assert pane.go_back() and pane.shown.search is None
        assert pane.document.height(2) == before


async def test_hits_are_found_across_soft_wraps_and_with_smart_case(tmp_path: Path) -> None:
    said = [Said("user", [text("x" * 60 + " alpha beta gamma Alpha " + "y" * 60)])]
    async with running(tmp_path, said, size=(80, 20)) as (pilot, pane, app):
        await search(app, pilot, "alpha beta")
        block = pane.document.block(0)
        assert block is not None and pane.view.pattern is not None
        hits = block.hits(pane.view.pattern)
        marked = "".join(
            block.lines[line].text[a:b] for line, spans in hits.spans.items() for a, b in spans)
        assert marked.replace(" ", "") == "alphabeta" and len(hits.spans) == 2
        await search(app, pilot, "Alpha")
        assert pane.shown.search is not None and pane.shown.search.total == 1


async def test_a_search_decodes_what_json_escapes(tmp_path: Path) -> None:
    said = [Said("user", [text('say "hi"\nto ünïcode')]), Said("user", [text("other")])]
    async with running(tmp_path, said) as (pilot, pane, app):
        for needle in ('"hi"', "ÜNÏ".lower()):
            pane.finder.start(needle)
            await settled(app)
            assert pane.shown.search is not None and pane.shown.search.total == 1, needle
        pane.finder.start("absent")
        await settled(app)
        assert pane.shown.search is not None
        assert pane.shown.search.done and pane.shown.search.total == 0


async def test_going_to_a_turn_a_part_and_a_time(tmp_path: Path) -> None:
    async with running(tmp_path, long_talk(60)) as (pilot, pane, app):
        skeleton = pane.document.skeleton
        await pane.finder.go_to("31")
        assert skeleton.key(pane.cursor) == (message_id(60), 0)
        await pane.finder.go_to("#5")
        assert pane.cursor == 4
        await pane.finder.go_to("50%")
        assert pane.cursor == 150
        before = pane.cursor
        await pane.finder.go_to("999")
        assert pane.cursor == before


LONG = [f"line {n}" for n in range(40)]
MANY = [text(f"Words {n}.") for n in range(150)]


@pytest.mark.parametrize(
    ("message", "index", "words"),
    [
        (1, 1, "line 39"), (1, 0, "Thought of it"), (3, 0, "taken back"), (4, 1, "gone 30"),
        (5, None, "Words 0."), (5, 149, "Words 149."), (0, 0, "go"),
    ],
)
@pytest.mark.one_in(3)
async def test_a_session_opens_at_a_part_that_is_folded_hidden_or_far(
    message: int, index: int | None, words: str, tmp_path: Path
) -> None:
    said = [
        Said("user", [text("go")]),
        Said("assistant", [{"type": "reasoning", "text": "Thought of it"},
                           tool("Read", {"file_path": "a.py"}, "\n".join(LONG), call="r")]),
        Said("user", [text("next")]),
        Said("user", [text("taken back")], {"hidden_at": NOW}),
        Said("assistant", [text("hidden"), tool("Read", {"file_path": "b.py"}, "\n".join(
            line.replace("line", "gone") for line in LONG), call="h")], {"hidden_at": NOW}),
        Said("assistant", MANY), *(Said("user", [text(f"more {n}")]) for n in range(300)),
    ]
    part = None if index is None else f"prt_{SESSION[-2:]}{message:018d}{index:06d}"
    at = message_id(message)
    async with running(
        tmp_path, said, size=(100, 60), message_id=at, part_id=part
    ) as (_pilot, pane, app):
        await settled(app)
        key = pane.document.skeleton.key(pane.cursor)
        assert key == (message_id(message), index or 0)
        shown = "\n".join(pane.view.render_line(y).text for y in range(pane.view.size.height))
        assert words in shown


async def test_a_part_that_is_gone_leaves_one_at_its_message(tmp_path: Path) -> None:
    at, gone = message_id(5), "prt_gone"
    async with running(tmp_path, long_talk(20), message_id=at, part_id=gone) as (_, pane, app):
        await settled(app)
        assert pane.document.skeleton.key(pane.cursor)[0] == message_id(5)


async def test_enter_opens_a_subagents_session_and_escape_comes_back(tmp_path: Path) -> None:
    child_id = "ses_000000000000000000000000bb"
    path = make_store(tmp_path / "s.db", [
        Said("user", [text("go")]),
        Said("assistant", [tool("Task", {"description": "look"}, "seen", call="t1")]),
    ])
    make_store(path, [Said("user", [text("look")])], session_id=child_id, session={
        "parent_id": SESSION,
        "metadata_json": '{"title":"look","lineage":{"kind":"subagent","tool_call_id":"t1"}}',
    })
    store = await Store.open(path, clock=lambda: NOW)
    app = Harness(store, {})
    try:
        async with app.run_test(size=(80, 20)) as pilot:
            await settled(app)
            pane = app.query_one(TranscriptPane)
            await press(app, pilot, "enter")
            assert app.posted[-1] == SessionOpened(child_id) or (
                isinstance(app.posted[-1], SessionOpened)
                and app.posted[-1].session_id == child_id)
            row = await store.read(get, child_id)
            assert row is not None
            assert app.way_back is not None
            await pane.open_session(store, row, back=app.way_back.title)
            await settled(app)
            assert pane.go_back()
            await settled(app)
            back = app.posted[-1]
            assert isinstance(back, SessionOpened) and back.session_id == SESSION
    finally:
        await store.close()


async def test_copying_gives_the_source_without_gutter_and_wraps(tmp_path: Path) -> None:
    from textual.geometry import Offset
    from textual.selection import Selection

    from tui.kit.selection import offset_y

    words = "one two three four five six seven eight nine ten eleven twelve " * 3
    said = [Said("user", [text(words.strip() + "\n\tcode line")])]
    async with running(tmp_path, said, size=(80, 20)) as (_pilot, pane, _app):
        block = pane.document.block(0)
        assert block is not None
        selection = Selection(Offset(0, offset_y(0, block.top + 1)),
                              Offset(999, offset_y(0, len(block.lines) - 1)))
        assert pane.view.get_selection(selection) == (words.strip() + "\n    code line", "\n")


async def test_clicks_select_fold_and_open(tmp_path: Path) -> None:
    output = "\n".join(f"row {n}" for n in range(10))
    said = [Said("user", [text("go")]),
            Said("assistant", [tool("Bash", {"command": "a"}, output)])]
    async with running(tmp_path, said, size=(80, 30)) as (pilot, pane, app):
        await press(app, pilot, "g")
        row = next(y for y, line in enumerate(lines(pane)) if "Bash" in line)
        await pilot.click(pane.view, offset=(10, row))
        await settled(app)
        assert pane.cursor == 1
        assert any("row 9" in line for line in lines(pane))
        row = next(y for y, line in enumerate(lines(pane)) if line == "go")
        await pilot.click(pane.view, offset=(5, row))
        await settled(app)
        assert pane.cursor == 0


async def test_what_another_program_writes_appears(tmp_path: Path) -> None:
    import sqlite3

    async with running(tmp_path, long_talk(3)) as (_pilot, pane, app):
        with sqlite3.connect(tmp_path / "s.db") as other:
            other.execute("INSERT INTO chat_messages VALUES (?,?,?,?,?,?)",
                          ("msg_new", SESSION, "user", "{}", NOW, NOW))
            other.execute(
                "INSERT INTO chat_parts VALUES (?,?,?,?,?,?,?,?,?,?)",
                ("prt_new", "msg_new", SESSION, 0, "text", '{"type":"text","text":"fresh"}',
                 None, None, NOW, NOW))
        other.close()
        await pane.follower.refresh(Moved(vague=True))
        await settled(app)
        assert "fresh" in lines(pane)


async def test_without_a_session_it_says_why(tmp_path: Path) -> None:
    async with running(tmp_path, long_talk(1)) as (pilot, pane, app):
        pane.show_nothing("No sessions yet")
        await press(app, pilot, "j", "G", "n", "o")
        assert pane.place() is None and not pane.shown.has_parts
