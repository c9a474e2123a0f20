"""The replay on the screen: every key, growth, figures, hostile rows, read-only stores."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest

from store.engine.database import open_database
from store.events.log import switch_on
from store.replay.axis import Axis
from store.replay.log import LATEST
from store.replay.player import Player
from tests.hostile import ALL, NEVER, controls, hostile_store
from tests.store.making import add_message, add_part, add_session, contract, grida, loose
from tests.store.replay.made import made, ms, user
from tests.tui.replayed import WORDS, Replayed, replaying, timed_store
from tests.tui.seeded import SESSION, START, Said, long_talk, make_store, message_id, text, tool
from tests.tui.stores import browser, settled
from tests.tui.test_read_only import files
from tests.tui.verbs_app import drawn, running
from tui.kit import clipboard
from tui.kit.lines import width_of
from tui.main.screen import MainScreen
from tui.replay.bar import bar_cells, bar_line, elapsed_words, facts_line, time_words
from tui.replay.reading import Left
from tui.replay.screen import ReplayScreen
from tui.state.limits import BY_OPTION, Limits
from tui.transcript.heights import Heights


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return timed_store(tmp_path / "s.db")


# Where it begins, and where it leads


async def test_from_the_list_it_plays_from_the_start(path: Path) -> None:
    async with replaying(path, paused=False) as replay:
        assert replay.at == 0 and replay.player.playing
        assert "first prompt" in replay.shown and "twenty words" not in replay.shown
        assert replay.bar[1].split()[:2] == ["▸", "4x"]
        await replay.pass_by(1_000)
        assert replay.at > 4_000


async def test_from_a_message_and_from_the_end(path: Path) -> None:
    for keys, at in (("enter", 0), ("enter K", 600_000), ("enter g ]", 600_000)):
        async with replaying(path, keys=(*keys.split(), "greater_than_sign")) as replay:
            assert replay.at == at, keys


async def test_from_the_palette(path: Path) -> None:
    async with running(path) as run:
        await run.press("ctrl+p", *"replay", "enter")
        assert isinstance(run.app.screen, ReplayScreen)


async def test_enter_leaves_it_at_the_message(path: Path) -> None:
    async with replaying(path) as replay:
        await replay.press("right", "enter")
        assert isinstance(replay.run.app.screen, MainScreen)
        shown = replay.run.transcript.shown
        assert shown.session_id == SESSION and shown.message_id == message_id(1)
        assert replay.run.app.main.panes.focused == "transcript"


@pytest.mark.parametrize("key", ["escape", pytest.param("q", marks=pytest.mark.long),
                                 pytest.param("greater_than_sign", marks=pytest.mark.long)])
async def test_escape_leads_back_to_where_one_was(key: str, path: Path) -> None:
    async with replaying(path, keys=("enter", "g", "]", "greater_than_sign")) as replay:
        await replay.press("home", "right")
        replay.run.app.close_toasts()
        await replay.press(key)
        assert isinstance(replay.run.app.screen, MainScreen)
        assert replay.run.transcript.shown.message_id == message_id(2)


async def test_a_session_without_messages(tmp_path: Path) -> None:
    async with running(make_store(tmp_path / "s.db", [])) as run:
        await run.press("greater_than_sign")
        assert isinstance(run.app.screen, MainScreen)
        assert run.last == "This session has no messages to replay"


async def test_keys_wait_for_the_session(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with replaying(path) as replay:
        replay.screen.player = None
        await replay.press("space", "right", "5", "w", "plus")
        assert set(replay.run.told) == {"The session is still being read"}


# Keys


async def test_every_key_that_moves(path: Path) -> None:
    moves = (
        ("right", 5_000), ("l", 600_000), ("right", 610_000), ("left", 600_000), ("h", 5_000),
        ("]", 600_000), ("[", 0), ("shift+right", 600_000), ("shift+left", 0), ("end", 612_000),
        ("home", 0), ("G", 612_000), ("g", 0),
    )
    async with replaying(path) as replay:
        for key, at in moves:
            await replay.press(key)
            assert replay.at == at, key
        assert replay.run.told == []
        await replay.press("left")
        assert replay.run.last == "This is the first message"
        await replay.press("end", "]")
        assert replay.run.last == "This is the last turn"
        await replay.to(611_000)
        await replay.press("right")
        assert replay.at == 612_000


async def test_digits_go_to_tenths(path: Path) -> None:
    async with replaying(path) as replay:
        for digit in "0123456789":
            await replay.press(digit)
            assert replay.player.share == pytest.approx(int(digit) / 10, abs=0.001)
        await replay.press("w", "5")
        assert replay.at == 306_000


async def test_space_speed_and_waits(path: Path) -> None:
    async with replaying(path) as replay:
        assert "paused 4x" in replay.bar[1]
        await replay.pass_by(500)
        assert replay.at == 0
        await replay.press("space")
        await replay.pass_by(500)
        assert replay.at > 0
        await replay.press("space", "end", "space")
        assert replay.at == 0 and replay.player.playing
        await replay.press("space", *["+"] * 5)
        assert replay.player.speed == 60
        assert replay.run.last == "60x is the fastest"
        await replay.press(*["-"] * 7)
        assert replay.player.speed == 1
        assert replay.run.last == "1x is the slowest"
        await replay.press("w")
        assert "waits in full" in replay.bar[1]
        await replay.press("w")
        assert "waits skipped" in replay.bar[1]


async def test_toasts_are_above_the_bar(path: Path) -> None:
    app = browser(path)
    async with app.run_test(size=(80, 24), notifications=True) as pilot:
        await settled(app, pilot)
        await pilot.press("greater_than_sign", "space", *["+"] * 6)
        await settled(app, pilot)
        screen = app.screen
        assert isinstance(screen, ReplayScreen)
        toasts = [toast.region for toast in screen.query("Toast")]
        assert toasts and max(each.bottom for each in toasts) <= screen.bar.region.y


async def test_it_stops_at_the_end(path: Path) -> None:
    async with replaying(path, paused=False) as replay:
        await replay.press("9", *["+"] * 4)
        await replay.pass_by(1_000, 1_000)
        assert replay.at == 612_000 and not replay.player.playing
        assert "Second answer." in replay.shown


async def test_lines_and_parts(tmp_path: Path) -> None:
    path = make_store(tmp_path / "s.db", long_talk(12))
    async with replaying(path, size=(80, 24)) as replay:
        await replay.press("end")
        view = replay.screen.view
        bottom = view.position
        assert bottom.at_end
        for key in ("k", "up", "pageup", "shift+space"):
            before = view.position
            await replay.press(key)
            assert view.position[:2] < before[:2] and not view.at_end, key
        await replay.press("j", "down", *["pagedown"] * 4)
        assert view.position[:2] == bottom[:2] and view.at_end
        cursor = view.cursor
        await replay.press(",")
        assert view.cursor < cursor
        await replay.press(".")
        assert view.cursor == cursor


async def test_what_was_there_is_copied(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    copied: list[str] = []

    async def copy(_app: object, words: str, _name: str) -> None:
        copied.append(words)

    monkeypatch.setattr(clipboard, "copy", copy)
    async with replaying(path) as replay:
        await replay.to(10_000)
        await replay.press("y")
    assert copied == [WORDS[: len(WORDS) // 2]]


async def test_what_is_read_stays_while_it_plays(tmp_path: Path) -> None:
    path = make_store(tmp_path / "s.db", long_talk(12))
    async with replaying(path, size=(80, 24)) as replay:
        await replay.press("7", "space", "pageup", "space")
        assert not replay.player.playing and not replay.screen.view.at_end
        replay.player.playing = True
        lines, at = read(replay), replay.at
        await replay.pass_by(300)
        assert replay.at > at and read(replay) == lines


def read(replay: Replayed) -> list[str]:
    """The lines of the transcript, without its scroll bar."""
    return [line.rstrip(" ▐") for line in replay.shown.splitlines()[2:-3]]


async def test_folds(tmp_path: Path) -> None:
    path = make_store(tmp_path / "s.db", long_talk(3))
    async with replaying(path) as replay:
        await replay.press("end")
        assert "out 1 of 2" in replay.shown
        await replay.press("t", "t")
        assert "out 1 of 2" not in replay.shown
        await replay.press("i", "t")
        assert "Thinking about case 2. Thinking" in replay.shown
        await replay.press("o")
        await replay.press("home", "end")
        assert replay.screen.view.at_end


async def test_help_lists_the_keys(path: Path) -> None:
    async with replaying(path, size=(120, 60)) as replay:
        await replay.press("?")
        assert "Play or pause" in replay.run.dialog()


# What there is at a moment


async def test_text_grows_and_a_call_runs(path: Path) -> None:
    async with replaying(path) as replay:
        await replay.to(5_000)
        assert "twenty" not in replay.shown
        await replay.to(10_000)
        grown = replay.screen.document.item(1)
        assert grown is not None
        assert grown.data["text"] == WORDS[: len(WORDS) // 2]
        await replay.to(15_000)
        assert "make all" in replay.shown and "it is built" not in replay.shown
        await replay.to(74_999)
        assert "it is built" not in replay.shown and "That is done" not in replay.shown
        await replay.to(75_000)
        assert "it is built" in replay.shown
        await replay.to(20_000)
        assert "it is built" not in replay.shown
        await replay.to(612_000)
        assert "Second answer." in replay.shown


async def test_each_moment_looks_as_if_it_were_shown_first(tmp_path: Path) -> None:
    talk = long_talk(5)
    talk[3].metadata["hidden_at"] = START + 7_000
    talk[4].metadata["hidden_at"] = START + 7_000
    path = timed_store(tmp_path / "s.db", talk, {})
    async with replaying(path) as replay, replaying(path) as fresh:
        for at in (0, 4_200, 9_500, 6_100, 500, 8_900, 7_000, 6_999, 3_400, 9_499):
            await replay.to(at)
            document = fresh.screen.document
            fresh.screen.view.show(type(document)(document.recording, document.setting))
            await fresh.to(at)
            assert read(replay) == read(fresh), at


async def test_hidden_messages_are_seen_until_the_rewind(tmp_path: Path) -> None:
    talk = [
        Said("user", [text("one")]), Said("user", [text("two")], {"hidden_at": START + 9_000}),
        Said("user", [text("three")], at=START + 20_000),
    ]  # fmt: skip
    async with replaying(timed_store(tmp_path / "s.db", talk, {})) as replay:
        await replay.to(8_999)
        assert "two" in replay.shown and "hidden" not in replay.shown
        await replay.to(9_000)
        assert "two" not in replay.shown and "hidden" in replay.shown
        await replay.press("H")
        assert "two" in replay.shown
        await replay.press("H")
        await replay.to(20_000)
        assert "three" in replay.shown and "two" not in replay.shown
        await replay.to(1_000)
        assert "two" in replay.shown


async def test_queued_messages_and_a_fork(tmp_path: Path) -> None:
    talk = [
        Said("user", [text("from the parent")], {"inherited_from": "msg_x"}),
        Said("user", [text("own")], at=START + 50_000),
        Said("user", [text("later")], {"queued_at": START + 60_000}, at=START + 60_000),
        Said("assistant", [text("reply")], at=START + 70_000),
    ]  # fmt: skip
    async with replaying(timed_store(tmp_path / "s.db", talk, {})) as replay:
        assert replay.at == 50_000
        assert "from the parent" in replay.shown and "later" not in replay.shown
        await replay.press("right")
        assert replay.at == 60_000 and "later" in replay.shown
        await replay.press("right")
        assert replay.shown.index("reply") < replay.shown.index("later")


async def test_tokens_and_context_follow_the_time(path: Path) -> None:
    async with replaying(path) as replay:
        seen = []
        for at in (0, 79_999, 80_000, 611_999, 612_000):
            await replay.to(at)
            head = replay.shown.splitlines()[:2]
            seen.append((head[0].split("tokens")[0].split()[-1], "context 1.2k" in head[1]))
        assert seen == [("0", False), ("0", False), ("1.2k", True), ("1.2k", True), ("2.4k", True)]


async def test_the_inspector_follows_the_time(path: Path) -> None:
    async with replaying(path, size=(200, 50)) as replay:
        inspector = replay.screen.inspector
        assert inspector.display
        seen = []
        for at in (20_000, 75_000, 612_000):
            await replay.to(at)
            subject = inspector.subject
            assert subject is not None
            seen.append((subject.call and subject.call.status, subject.detail.session.total))
        assert seen == [("running", 0), ("ok", 0), (None, 2_400)]
        await replay.press("tab")
        assert inspector.has_focus_within
        for playing in (True, False):
            await replay.press("space")
            assert replay.player.playing is playing and inspector.has_focus_within
        await replay.press("escape")
        assert replay.screen.view.has_focus


async def test_the_inspector_shows_no_part_of_the_message_before(tmp_path: Path) -> None:
    path = make_store(tmp_path / "s.db", [Said("user", [text("hello")]), Said("assistant", [])])
    async with replaying(path, size=(200, 50)) as replay:
        inspector = replay.screen.inspector
        await replay.to(0)
        assert inspector.subject is not None
        await replay.press("end")
        assert inspector.subject is None
        assert "There is no part to show" in inspector.view.render_line(0).text


async def test_the_inspector_on_narrower_screens(path: Path) -> None:
    for size, beside in (((120, 40), True), ((80, 24), False)):
        async with replaying(path, size=size) as replay:
            assert not replay.screen.inspector.display
            await replay.press("tab")
            assert replay.screen.inspector.display
            assert replay.screen.view.display == beside
            await replay.press("tab")
            assert not replay.screen.inspector.display and replay.screen.view.has_focus


# The bar


async def test_a_click_and_a_drag_on_the_bar(path: Path) -> None:
    async with replaying(path) as replay:
        low, high = replay.screen.bar.map_columns or (0, 0)
        pilot = replay.run.pilot
        await pilot.mouse_down("#replay-bar", offset=(high - 1, 0))
        await replay.run.quiet()
        assert replay.at == 612_000
        await pilot.hover("#replay-bar", offset=(low, 0))
        await replay.run.quiet()
        assert replay.at == 0
        await pilot.mouse_up("#replay-bar", offset=(low, 0))
        await pilot.hover("#replay-bar", offset=(high - 1, 0))
        await replay.run.quiet()
        assert replay.at == 0
        await pilot.click("#replay-bar", offset=(low, 1))
        await replay.run.quiet()
        assert replay.at == 0


async def test_the_mouse_in_the_transcript(tmp_path: Path) -> None:
    async with replaying(make_store(tmp_path / "s.db", long_talk(12)), size=(80, 24)) as replay:
        await replay.press("end")
        view, pilot = replay.screen.view, replay.run.pilot
        await pilot._post_mouse_events([_wheel_up()], view, offset=(5, 5))
        await replay.run.quiet()
        assert not view.at_end
        await pilot.click(view, offset=(6, 2))
        await replay.run.quiet()
        assert view.cursor == view.rows()[2].part


def _wheel_up() -> type:
    from textual.events import MouseScrollUp

    return MouseScrollUp


@pytest.mark.parametrize("size", [(200, 60), (120, 40), (80, 24), (50, 16), (24, 12)])
@pytest.mark.one_in(3)
async def test_every_width_shows_the_bar(size: tuple[int, int], path: Path) -> None:
    async with replaying(path, size=size) as replay:
        await replay.press("5")
        assert all(len(line) <= size[0] for line in replay.shown.splitlines())
        assert "●" in replay.bar[0] and "4x" in replay.bar[1]
        assert replay.bar[1].rstrip().endswith("rows")


def test_cells_of_the_bar() -> None:
    timeline = made(user(0), user(1_000), user(301_000))
    player = Player(Axis(timeline.moments))
    player.seek(START + 1_000)
    drawn = "".join(mark for mark, _ink in bar_cells(player, timeline, 31))
    assert drawn[0] == "│" and drawn[-1] == "│" and drawn[10] == "●"
    assert set(drawn[11:-1]) == {"╌"} and set(drawn[1:9]) == {"─"}
    for width in range(1, 130):
        line, (low, high) = bar_line(player, timeline, width)
        assert high > low
        assert width < 20 or width_of(line.runs) == width


def test_the_bar_ends_with_the_year_9999() -> None:
    assert [time_words(LATEST + step, 120, days=True) for step in (0, 2)] == [
        "9999-12-31 23:59:59"] * 2


def test_facts_give_way_to_where_the_times_are_from() -> None:
    timeline = made(user(0), user(90_061_000))
    player = Player(Axis(timeline.moments))
    player.skip = False
    player.seek_share(1)
    assert facts_line(player, timeline, 120).whole_text == (
        "▌▌ paused 4x  1d 01:01:01 of 1d 01:01:01  turn 2 of 2  waits in full"
        "  from the times of the rows")
    assert facts_line(player, timeline, 40).whole_text.endswith("  rows")
    assert [elapsed_words(at) for at in (-5, 42_000, 3_733_000, 90_000_000)] == [
        "0:00", "0:42", "1:02:13", "1d 01:00:00"]


def test_the_heights_of_the_first_parts() -> None:
    whole = Heights(range(1, 90))
    for count in (0, 1, 7, 64, 89):
        first, made_anew = whole.first(count), Heights(range(1, count + 1))
        assert first.total == made_anew.total and len(first) == count
        assert [first.above(part) for part in range(count)] == [
            made_anew.above(part) for part in range(count)]
        first.append(9)
        assert first.find(first.total - 1) == (count, 8)


@pytest.mark.parametrize("count", [1, 40, 80])
def test_the_heights_of_many_parts_are_changed_at_once(count: int) -> None:
    heights = Heights(range(1, 90))
    heights.set_from(7, [3] * count)
    anew = Heights([*range(1, 8), *[3] * count, *range(8 + count, 90)])
    assert heights.total == anew.total
    assert [heights.above(part) for part in range(90)] == [anew.above(part) for part in range(90)]


def test_the_bar_says_what_is_still_to_come() -> None:
    timeline = made(user(0), user(1_000))
    player = Player(Axis(timeline.moments))
    player.growing = True
    player.seek_end()
    player.toggle()
    line, (low, high) = bar_line(player, timeline, 60, Left(500, 1_000))
    bar = line.whole_text.split(" ")[1]
    assert len(bar) == 2 * (high - low) and bar.count("·") == high - low
    assert facts_line(player, timeline, 80, Left(500, 1_000)).whole_text.endswith(
        "reading: 500 of 1,000 messages")
    assert not player.advance(500) and player.playing and player.at == ms(1_000)
    player.take(Axis(made(user(0), user(9_000)).moments), running=False)
    assert player.at == ms(9_000) and not player.playing


# A session that runs


RUNS = ("UPDATE chat_sessions SET metadata_json = ?",
        '{"title":"A session","activity":{"state":"running","from":"stored"}}')


def write(path: Path, sql: str, *values: object) -> None:
    database = open_database(path)
    database.connection.execute(sql, values)
    database.close()


async def test_a_session_that_runs_is_followed_at_its_end(path: Path) -> None:
    write(path, *RUNS)
    async with replaying(path, paused=False) as replay:
        assert replay.player.running and "now" in replay.bar[0]
        await replay.press("end")
        assert replay.player.live and "live" in replay.bar[1]
        await replay.pass_by(700_000, 5_000)
        assert replay.at == 705_000
        write(path,
              "UPDATE chat_parts SET data_json = ?, updated_at = ? WHERE message_id = ?",
              '{"type":"text","text":"It goes on."}', replay.now[0], message_id(3))
        replay.screen.store_changed()
        await replay.run.quiet()
        assert "It goes on." in replay.shown and replay.player.live
        await replay.press("home")
        assert not replay.player.live
        write(path, "UPDATE chat_sessions SET metadata_json = '{}'")
        replay.screen._renewed()
        replay.screen.look_whether_it_runs()
        await replay.run.quiet()
        assert replay.at == 0 and not replay.player.running


async def test_a_session_that_is_removed_is_followed_no_more(path: Path) -> None:
    write(path, *RUNS)
    async with replaying(path, paused=False) as replay:
        await replay.press("end")
        database = open_database(path)
        rows = [database.connection.execute(f"SELECT * FROM {table}").fetchall()
                for table in ("chat_sessions", "chat_messages", "chat_parts")]
        database.connection.execute("DELETE FROM chat_sessions")
        replay.screen._renewed()
        replay.screen.store_changed()
        await replay.run.quiet()
        assert replay.run.told == ["This session is no longer in the store"]
        assert not replay.player.running and not replay.player.live
        assert "Second answer." in replay.shown and "now" not in replay.bar[0]
        for table, found in zip(
                ("chat_sessions", "chat_messages", "chat_parts"), rows, strict=True):
            database.connection.executemany(
                f"INSERT OR IGNORE INTO {table} VALUES ({','.join('?' * len(found[0]))})", found)
        database.close()
        replay.screen._renewed()
        replay.screen.store_changed()
        await replay.run.quiet()
        assert replay.player.running and len(replay.run.told) == 1


# Odd stores


@pytest.fixture
def hostile(tmp_path: Path) -> Path:
    return hostile_store(tmp_path / "s.db")


async def test_hostile_text_is_clean(hostile: Path) -> None:
    async with running(hostile, size=(150, 24)) as run:
        await run.open(ALL)
        for key in ("2", "greater_than_sign", "space", "5", "t", "tab", "end"):
            await run.press(key)
            shown = drawn(run.app.screen)
            assert run.app.guard.caught == [], key
            assert not controls(shown) and not NEVER.search(shown), key
        assert isinstance(run.app.screen, ReplayScreen)


async def test_a_call_names_the_session_that_it_started(tmp_path: Path) -> None:
    talk = [Said("user", [text("go")]), Said("assistant", [
        tool("Task", {"description": "look"}, "done", call="c9")])]
    path = make_store(tmp_path / "s.db", talk)
    database = open_database(path)
    add_session(database.connection, "ses_b", START, parent_id=SESSION, metadata={
        "title": "The helper", "lineage": {"kind": "subagent", "tool_call_id": "c9"}})
    database.close()
    async with running(path) as run:
        run.app.open_replay(SESSION)
        await run.quiet()
        await run.press("end")
        lines = drawn(run.app.screen).splitlines()
        (row,) = [number for number, line in enumerate(lines) if "opens ↳" in line]
        await run.pilot.click("#replay-view", offset=(10, row - 2))
        await run.quiet()
        assert isinstance(run.app.screen, MainScreen)
        assert run.transcript.shown.session_id == "ses_b"


async def test_a_read_only_store_is_replayed_and_not_written(path: Path) -> None:
    before = files(path.parent)
    async with replaying(path, limits=Limits(BY_OPTION)) as replay:
        await replay.press("end", "home", "5", "space")
        await replay.pass_by(500)
        assert "first prompt" in replay.shown
    assert files(path.parent) == before


ODD_TIMES = ["2026-11-28T10:00:00Z", b"\xff\x00", 1.5, -5, 10**18, 1e300, 253_402_300_799_999]


@pytest.mark.parametrize("make", [pytest.param(contract, marks=pytest.mark.long), loose])
async def test_times_of_every_type_in_a_hosts_file(make: object, tmp_path: Path) -> None:
    path = make(tmp_path / "host.db")  # type: ignore[operator]
    connection = sqlite3.connect(path)
    add_session(connection, "ses_1", START, metadata={"title": "odd times"})
    for number, value in enumerate([START, *ODD_TIMES]):
        add_message(connection, "ses_1", f"m{number}", value, role="assistant")  # type: ignore[arg-type]
        add_part(connection, "ses_1", f"m{number}", f"said {number}", 0, created_at=value,
                 updated_at=value)  # fmt: skip
    connection.commit()
    before = path.read_bytes()
    async with replaying(path) as replay:
        for key in ("home", *["right"] * 9, "5", "w", "5", "left", "end"):
            await replay.press(key)
        assert all(f"said {n}" in replay.shown for n in range(len(ODD_TIMES) + 1))
    assert path.read_bytes() == before


async def test_a_file_of_another_form(tmp_path: Path) -> None:
    async with replaying(grida(tmp_path / "g.db")) as replay:
        await replay.press("end")
        assert replay.bar[1].endswith("from the times of the rows")


async def test_a_session_without_any_time(tmp_path: Path) -> None:
    path = loose(tmp_path / "host.db")
    connection = sqlite3.connect(path)
    add_session(connection, "ses_1", START, metadata={"title": "no times"})
    for number in range(3):
        add_message(connection, "ses_1", f"m{number}", None)  # type: ignore[arg-type]
        add_part(connection, "ses_1", f"m{number}", f"said {number}", 0)
    connection.commit()
    async with replaying(path) as replay:
        await replay.press("right")
        assert "said 1" in replay.shown and "said 2" not in replay.shown
        assert "without times" in replay.bar[1] and replay.bar[0].startswith(" 0:01 ")




# The event log


async def test_from_the_log_a_text_grows_as_it_was_written(path: Path) -> None:
    database = open_database(path)
    switch_on(database)

    def write(at: int, data: str, state: str | None, part: str) -> None:
        database.connection.execute(
            "UPDATE chat_parts SET data_json = ?, tool_state = ?, updated_at = ? WHERE id LIKE ?",
            (data, state, START + at, f"%{part}"))

    (last,) = database.connection.execute(
        "SELECT id FROM chat_parts WHERE message_id = ?", (message_id(3),)).fetchone()
    (tool_id,) = database.connection.execute(
        "SELECT id FROM chat_parts WHERE tool_call_id = 'c1'").fetchone()
    for at, words in ((611_000, "One"), (611_100, "One two"), (619_000, "One two three four")):
        write(at, f'{{"type":"text","text":"{words}"}}', None, last)
    for at, given, state in ((620_000, "ma", "input-streaming"), (621_000, "make", None)):
        write(at, f'{{"type":"tool-Bash","toolCallId":"c1","input":{{"command":"{given}"}},'
              f'"state":"{state or "output-available"}","output":"late"}}',
              state or "output-available", tool_id)
    database.connection.execute("UPDATE events SET at = coalesce(updated_at, created_at)"
                                " WHERE changed IS NOT NULL")
    database.close()
    async with replaying(path) as replay:
        assert "from the log, and" in replay.bar[1]
        seen = []
        for at in (610_999, 611_050, 611_100, 618_999, 619_000, 620_500, 621_000, 611_050):
            await replay.to(at)
            lines = [line.split("▎")[1].strip() for line in replay.shown.splitlines()
                     if "One" in line or "late" in line or "Bash" in line]
            seen.append((" ".join(lines[:-1]), lines[-1]))
        # The call was there before the log began; what it was then is in the log's snapshot.
        assert all("make all" in " ".join(lines) for lines in seen[:5])
        assert [text for _call, text in seen[1:5]] == [
            "One", "One two", "One two", "One two three four"]
        assert "One" not in seen[0][1] and seen[7][1] == "One"
        assert "Bash ma" in seen[5][0] and "late" in " ".join(seen[6])


async def test_far_jumps_in_a_session_of_many_parts(tmp_path: Path) -> None:
    path = make_store(tmp_path / "s.db", long_talk(70))
    async with replaying(path, size=(80, 24)) as replay:
        view, seen = replay.screen.view, []
        for key in ("end", "home", "end", "1", "9", "0", "8"):
            await replay.press(key)
            assert view.scroller.part < len(view.document), key
            assert view.cursor == view.document.last_shown(), key
            seen.append(len(view.document))
        assert seen[0] == seen[2] == 350 and seen[1] == seen[5] == 1


async def test_a_rewind_and_its_undoing_are_seen_from_the_log(path: Path) -> None:
    database = open_database(path)
    switch_on(database)
    for at, metadata in ((620_000, f'{{"hidden_at":{START + 620_000}}}'), (700_000, "{}")):
        database.connection.execute(
            "UPDATE chat_messages SET metadata_json = ?, updated_at = ? WHERE id = ?",
            (metadata, START + at, message_id(2)))
    database.connection.execute("UPDATE events SET at = coalesce(updated_at, created_at)"
                                " WHERE changed IS NOT NULL")
    database.close()
    async with replaying(path) as replay:
        seen = []
        for at in (619_999, 620_000, 699_999, 700_000, 650_000):
            await replay.to(at)
            seen.append(("second prompt" in replay.shown, "hidden by a rewind" in replay.shown))
        assert seen == [(True, False), (False, True), (False, True), (True, False), (False, True)]


async def test_from_the_log_the_head_has_the_title_and_the_model_of_the_moment(
    path: Path,
) -> None:
    database = open_database(path)
    switch_on(database)
    for at, column, value in (
        (100_000, "model_json", '{"provider_id":"o","model_id":"other-7"}'),
        (200_000, "metadata_json", '{"title":"A session","user":{"title":"Renamed"}}'),
        (300_000, "metadata_json", '{"title":"A session","note":1}'),
    ):
        database.connection.execute(f"UPDATE chat_sessions SET {column} = ?", (value,))
        database.connection.execute("UPDATE events SET at = ? WHERE id = (SELECT max(id)"
                                    " FROM events)", (START + at,))
    database.connection.execute("UPDATE events SET at = ? WHERE kind LIKE '%.snapshot'", (START,))
    database.close()
    async with replaying(path) as replay:
        seen = []
        for at in (0, 99_999, 100_000, 199_999, 200_000, 299_999, 300_000, 612_000, 150_000):
            await replay.to(at)
            head = "\n".join(replay.shown.splitlines()[:2])
            seen.append(("Renamed" in head, "other-7" in head))
        assert seen == [(False, False)] * 2 + [(False, True)] * 2 + [(True, True)] * 2 + [
            (False, True)] * 3


async def test_what_was_deleted_is_seen_until_then(path: Path) -> None:
    database = open_database(path)
    switch_on(database)
    for number in (0, 2):
        database.connection.execute(
            "DELETE FROM chat_messages WHERE id = ?", (message_id(number),))
    database.connection.execute("DELETE FROM chat_parts WHERE tool_call_id = 'c1'")
    database.connection.execute("UPDATE events SET at = ? WHERE kind LIKE '%deleted'",
                                (START + 605_000,))
    database.close()
    async with replaying(path, size=(200, 50)) as replay:
        assert replay.at == 0 and "first prompt" in replay.shown
        seen = []
        for at in (599_999, 600_000, 604_999, 605_000, 612_000, 80_000):
            await replay.to(at)
            seen.append(("second prompt" in replay.shown, "make all" in replay.shown))
        assert seen == [
            (False, True), (True, True), (True, True), (False, False), (False, False),
            (False, True)]
        await replay.to(604_999)
        subject = replay.screen.inspector.subject
        assert subject is not None and subject.detail.message.id == message_id(2)
        await replay.press("enter")
        assert isinstance(replay.run.app.screen, MainScreen)
