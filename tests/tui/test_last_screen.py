"""The picture of the last screen: when it is shown, and that the next screen is the same."""

from __future__ import annotations

import os
import signal
import sqlite3
import sys
import termios
import time
from pathlib import Path

import pyte
import pytest

import backscroll
from store.engine.changes import newest
from store.engine.database import open_database
from store.sync.forget import forget
from store.system.clock import system_clock
from store.system.locations import last_screens
from store.system.streams import picture
from tests.tui.stores import NOW, put, some
from tests.tui.terminals import on_a_terminal
from tests.tui.test_first_frame import NEEDED, drawn, environment, runs, text_of
from tui.kit.ansi import AnsiPaint
from tui.kit.palette import PALETTES
from tui.main import last_picture
from tui.main.first_frame import FirstFrame, Screen
from tui.main.outline import BOTTOM, TOP
from tui.sessions.first_page import read_first_page
from tui.state.last_screen import (
    Drawn,
    drop_screen,
    keep_screen,
    last_screen,
    program_files,
    setting_of,
)
from tui.state.library import Library
from tui.state.view_state import ViewState
from tui.terminal.cells import Cells, Piece
from tui.terminal.output import FRAME_END, Held, Output
from tui.words.sessions import DAY, HOUR, MINUTE, age, age_until

SIZE = (40, 3)
GIVEN = {"TERM": "xterm-256color", "COLORTERM": "truecolor"}
QUIT = b"\x11"


def kept(path: Path, text: str = "a title", codes: str = "1", **times: int) -> Drawn:
    """Keep a picture of a store that is valid now, and return it."""
    now = int(time.time())
    rows: list[list[Piece]] = [[("", codes, text)], [("", "", "list")], [("", "", "keys")]]
    picture = Drawn(20, rows, [[], [(20, "2", "beside")], []], times.get("until", now + 90),
                    times.get("midnight", now + 900))
    setting = setting_of(str(path), SIZE, GIVEN)
    assert setting is not None
    keep_screen(str(path), setting, picture)
    return picture


def shown(
    path: Path, size: tuple[int, int] = SIZE, given: dict[str, str] | None = None
) -> str | None:
    """Return what would be shown of a store; None for nothing."""
    last = last_screen(str(path), size, GIVEN | (given or {}))
    return None if last is None else "\n".join("".join(row) for row in last.whole())


def test_it_is_shown_where_nothing_has_moved(tmp_path: Path) -> None:
    path = put(tmp_path / "s.db", some(1))
    assert shown(path) is None
    kept(path)
    assert shown(path) == "\x1b[1ma title\x1b[0m\nlist\x1b[21G\x1b[2mbeside\x1b[0m\nkeys"
    (file,) = Path(last_screens()).iterdir()
    assert file.stat().st_mode & 0o777 == 0o600
    assert file.parent.stat().st_mode & 0o777 == 0o700
    drop_screen(str(path))
    assert shown(path) is None and not file.exists()


def test_it_is_not_shown_where_anything_has_moved(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = put(tmp_path / "s.db", some(1))
    kept(path)
    assert shown(path, (41, 3)) is None
    assert shown(path, (40, 4)) is None
    for name in ("TERM", "COLORTERM", "COLORFGBG", "LANG", "TZ", "BACKSCROLL_STORE"):
        assert shown(path, given={name: "other"}) is None, name
    assert shown(path, given={"TMUX": "/tmp/tmux-0/default,1,0"}) is None
    assert shown(put(tmp_path / "other.db", some(1))) is None
    config, view = os.environ["XDG_CONFIG_HOME"], os.environ["XDG_STATE_HOME"]
    from tui.state.view_state import save_state, state_path

    for file in (Path(config) / "backscroll" / "config.toml", state_path(path)):
        file.parent.mkdir(parents=True, exist_ok=True)
        assert shown(path) is not None
        file.write_text("[ui]\n")
        assert shown(path) is None, file
        file.unlink()
    save_state(state_path(path), ViewState())
    assert view and shown(path) is None
    kept(path)
    monkeypatch.setattr(time, "time", lambda: system_clock() / 1000 + 1_000)
    assert shown(path) is None
    monkeypatch.setattr(time, "time", lambda: system_clock() / 1000 - 1_000)
    assert shown(path) is None


def test_another_version_of_the_program_draws_it_anew(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert backscroll.__file__ in program_files()
    path, version = put(tmp_path / "s.db", some(1)), tmp_path / "__init__.py"
    version.write_text('__version__ = "1.0"')
    monkeypatch.setattr("tui.state.last_screen.program_files", lambda: (str(version),))
    kept(path)
    assert shown(path) is not None
    version.write_text('__version__ = "1.10"')
    assert shown(path) is None


def test_a_write_of_anybody_ends_it(tmp_path: Path) -> None:
    path = put(tmp_path / "s.db", some(1))
    kept(path)
    writer = sqlite3.connect(path)
    writer.execute("UPDATE chat_sessions SET total_tokens = 7")
    writer.commit()
    assert shown(path) is None  # It is in the -wal still.
    writer.close()
    assert shown(path) is None
    kept(path)
    path.unlink()
    assert shown(path) is None


def test_once_an_age_is_another_one_the_list_is_drawn_anew(tmp_path: Path) -> None:
    path = put(tmp_path / "s.db", some(2))
    kept(path, until=int(time.time()) - 1)
    last = last_screen(str(path), SIZE, GIVEN)
    assert last is not None and not last.is_current
    library = Library.open(path, "test", clock=lambda: NOW)
    page = read_first_page(library, ViewState())
    columns, height = 44, 12
    last = last._replace(
        columns=columns, rows=[last.rows[0]] * (height - BOTTOM) + [last.rows[-1]],
        beside=[[], *[last.beside[1]] * (height - TOP)])
    screen = Screen(150, height, AnsiPaint(PALETTES["backscroll-dark"], "TRUECOLOR"))
    frame = FirstFrame("test", False, page, ViewState().layout, NOW)
    cells = drawn(["".join(row) for row in frame.rows(screen, last)], 150, height)
    texts = [text_of(row) for row in cells]
    assert texts[0].startswith("a title") and texts[-1].startswith("keys")
    assert any("Session 0" in text for text in texts)
    assert all(text[20:26] == "beside" for text in texts[TOP:-BOTTOM])
    library.database.close()


@pytest.mark.parametrize("codes", ["1;31m\x1b]0;owned\x07", "x", "\u0661"])
def test_no_sequence_of_a_file_reaches_the_terminal(tmp_path: Path, codes: str) -> None:
    path = put(tmp_path / "s.db", some(1))
    kept(path, codes=codes)
    assert shown(path) is None
    kept(path, text="\x1b]0;owned\x07 \u202eevil \x9b31m")
    text = shown(path)
    assert text is not None and "owned" in text
    assert "\x1b]" not in text and not set("\x07\x9b\u202e") & set(text)


def test_a_file_that_others_can_read_or_that_is_damaged_is_not_shown(tmp_path: Path) -> None:
    path = put(tmp_path / "s.db", some(1))
    kept(path)
    (file,) = Path(last_screens()).iterdir()
    whole = file.read_bytes()
    for length in range(0, len(whole), 7):
        file.write_bytes(whole[:length])
        assert shown(path) is None or length > len(whole) - 7
    file.write_bytes(b"\xff\n" + whole)
    assert shown(path) is None
    file.write_bytes(whole)
    file.chmod(0o644)
    assert shown(path) is None
    file.unlink()
    os.mkfifo(file)
    assert shown(path) is None


def test_forget_deletes_the_pictures_of_all_stores(tmp_path: Path) -> None:
    path, other = put(tmp_path / "s.db", some(2)), put(tmp_path / "other.db", some(1))
    kept(path)
    kept(other)
    database = open_database(path, write=True)
    forget(database, [f"ses_{0:026d}"])
    database.close()
    assert list(Path(last_screens()).iterdir()) == []


def test_no_picture_is_left_that_a_forget_has_overtaken(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, drawn = put(tmp_path / "s.db", some(2)), Drawn(20, [], [], 0, 0)
    monkeypatch.setattr(os, "get_terminal_size", lambda _descriptor: os.terminal_size(SIZE))

    def forgotten(store: str, setting: str, drawn: Drawn) -> None:
        database = open_database(path, write=True)
        forget(database, [f"ses_{0:026d}"])
        database.close()
        keep_screen(store, setting, drawn)

    for keep, left in ((keep_screen, 1), (forgotten, 0)):
        monkeypatch.setattr(last_picture, "keep_screen", keep)
        database = open_database(path, write=False)
        last_picture.LastPicture(str(path), newest(database), drawn).keep()
        database.close()
        assert len(list(Path(last_screens()).iterdir())) == left


def test_an_age_has_the_same_words_until_then() -> None:
    for gone in (0, 1, 59_999, MINUTE, 90_000, HOUR - 1, HOUR, 5 * HOUR + 7, DAY, 13 * DAY + 1,
                 14 * DAY, 69 * DAY, 70 * DAY + 3, 364 * DAY, 365 * DAY, 1_000 * DAY):
        now = 1_000 * DAY + gone
        until = age_until(1_000 * DAY, now)
        assert until > now
        assert age(1_000 * DAY, until - 1) == age(1_000 * DAY, now), gone
    assert age_until(1_000, 0) > 0  # Written by a clock that is ahead.


def test_frames_wait_until_they_draw_what_is_shown() -> None:
    def held(rows: range, start: int = 0) -> Output:
        output = Output()
        output.shows("\x1b[1;1Htop\x1b[2;1Hlist  beside", (20, 3))
        output.hold(Held(5.0, rows, start))
        output.write("\x1b[2;1Hlist  opening", (20, 3))
        assert output.next(1.0) == "" and output.waits_until() == 5.0
        return output

    output = held(range(1, 3))
    output.write("\x1b[2;1Hlist  beside \x1b[1;1Hnew", (20, 3))
    assert "new" in output.next(1.0) and output.waits_until() is None
    output = held(range(1, 3), 6)
    output.write("\x1b[2;1Hrows  beside ", (20, 3))
    assert "rows" in output.next(1.0)
    output = held(range(1, 3))
    assert "opening" in output.next(5.0)
    output = held(range(1, 3))
    output.let_go()
    assert "opening" in output.next(1.0)
    output = held(range(0))
    output.write("\x1b[2;1Hlist  beside ", (20, 3))
    assert output.next(1.0) == ""
    output.write("said", (20, 3))
    assert output.next(1.0) == "said"


@pytest.mark.parametrize(
    "text", ["สวัสดี ไทย เธอ", "🚀 deploy 🎉 now", "مرحبا بالعالم", "漢字 and 한국어"])
def test_the_same_is_known_again_where_pieces_end_at_characters_of_unsure_width(
    tmp_path: Path, text: str
) -> None:
    size = (30, 3)
    frame = "".join(
        f"\x1b[{row};1H\x1b[1;38;2;1;2;3;48;2;9;9;9m{text}\x1b[0m" for row in range(1, 4))
    cells = Cells(*size)
    cells.draw(frame)
    path, now = put(tmp_path / "s.db", some(1)), int(time.time())
    setting = setting_of(str(path), size, GIVEN)
    assert setting is not None
    rows = [cells.pieces(y, 0, 30) for y in range(3)]
    keep_screen(str(path), setting, Drawn(30, rows, [[]] * 3, now + 90, now + 900))
    last = last_screen(str(path), size, GIVEN)
    assert last is not None
    output = Output()
    output.shows(picture(last.whole()), size)
    output.hold(Held(5.0, range(3)))
    output.write(frame.replace("38;2;1;2;3", "38;2;7;7;7"), size)
    assert output.next(1.0) == "" and output.waits_until() == 5.0
    output.write(frame, size)
    output.write("\x1b[1;1Hnew", size)
    assert "new" in output.next(1.0)


# With the program itself


def run_once(path: Path, size: tuple[int, int]) -> None:
    """Run the browser until it is at rest, and quit."""
    with on_a_terminal(runs("--store", str(path)), environment(), size) as terminal:
        terminal.wait_for(b" keys")
        terminal.wait_for(b" ago")
        if size[0] > 99:
            terminal.wait_for(b"no messages")
        terminal.send(QUIT)
        assert terminal.exit_code() == 0


PATIENT = """
import sys
from tui.start import frame_rate
set_it = frame_rate.set_frame_rate
def patient():
    set_it()
    import tui.app, tui.terminal.driver
    tui.app.FILLED_AFTER_S = tui.terminal.driver.HELD_S = 1_000.0
frame_rate.set_frame_rate = patient
from tui.__main__ import main
sys.exit(main(sys.argv[1:]))
"""
"""The program, whose picture stays until the same is drawn, however long a busy machine takes."""


@pytest.mark.parametrize("size", [(200, 60), (120, 40), (80, 24)])
@pytest.mark.one_in(2)
def test_the_first_frame_is_the_whole_screen(tmp_path: Path, size: tuple[int, int]) -> None:
    path = put(tmp_path / "s.db", some(30))
    run_once(path, size)
    command = [sys.executable, "-c", PATIENT, "--store", str(path)]
    with on_a_terminal(command, environment(), size) as terminal:
        received = terminal.wait_for(FRAME_END.encode())
        first = screen_of(received, size)
        assert "Session 2" in "\n".join(first) and " keys" in first[-1]
        terminal.wait_for(b" ago")
        terminal.send(QUIT)
        assert terminal.exit_code() == 0
    # What ends the keyboard protocol, which pyte would show as a "u".
    received = terminal.received.split(b"\x1b[?1049l")[0].replace(b"\x1b[<u", b"")
    frames = received.split(FRAME_END.encode())
    screen = pyte.Screen(*size)
    stream = pyte.ByteStream(screen)
    for frame in frames:
        stream.feed(frame + FRAME_END.encode())
        assert screen.display[TOP:] == first[TOP:]


def screen_of(data: bytes, size: tuple[int, int]) -> list[str]:
    screen = pyte.Screen(*size)
    pyte.ByteStream(screen).feed(data)
    return list(screen.display)


@pytest.mark.long
def test_keys_behind_the_picture_are_answered_in_order(tmp_path: Path) -> None:
    path = put(tmp_path / "s.db", some(10))
    run_once(path, (120, 40))
    with on_a_terminal(runs("--store", str(path)), environment(), (120, 40)) as terminal:
        terminal.wait_for(FRAME_END.encode())
        terminal.send(b"jjkjd")
        terminal.wait_for(b" tabs")
        terminal.send(QUIT)
        assert terminal.exit_code() == 0


def test_a_signal_behind_the_picture_gives_the_terminal_back(tmp_path: Path) -> None:
    path = put(tmp_path / "s.db", some(3))
    run_once(path, (120, 40))
    with on_a_terminal(runs("--store", str(path)), environment(), (120, 40)) as terminal:
        terminal.wait_for(FRAME_END.encode())
        os.kill(terminal.child, signal.SIGTERM)
        assert terminal.exit_code() == 128 + signal.SIGTERM
        modes = termios.tcgetattr(terminal.handle)
    assert terminal.received.count(b"\x1b[?1049l") == 1
    assert modes[3] & termios.ECHO and modes[3] & termios.ICANON


def test_no_paths_patterns_or_store_are_loaded_for_it(tmp_path: Path) -> None:
    path = put(tmp_path / "s.db", some(1))
    size = (120, 40)
    given = environment()
    setting = setting_of(str(path), size, given)
    assert setting is not None
    day = int(time.time()) + 900
    rows: list[list[Piece]] = [[("", "", "│ Session 0 漢字 Ж 🚀")]] * size[1]
    keep_screen(str(path), setting, Drawn(120, rows, [[]] * size[1], day, day))
    with on_a_terminal([sys.executable, "-c", NEEDED.replace("from tui.main import first_frame\n",
                       ""), str(path)], given, size) as terminal:
        terminal.wait_for_end()
    written, placed, *modules = terminal.received.decode().split()
    assert (written, placed) == ("True", "True")
    left_out = {"re", "pathlib", "sqlite3", "typing", "json", "tui.kit.lines", "tui.kit.glyphs",
                "tui.words.commands", "enum", "functools", "collections", "contextlib", "signal",
                "importlib", "zlib"}
    assert left_out & set(modules) == set()
