"""The first frame, which is on the screen before Textual is imported."""

from __future__ import annotations

import fcntl
import os
import re
import signal
import struct
import sys
import termios
from collections.abc import Iterable
from pathlib import Path

import pyte
import pytest
from pyte.screens import Char
from rich.console import Console
from rich.style import Style

from store.config import Settings
from store.system.streams import picture
from tests.tui.stores import NOW, Told, put, settled, some
from tests.tui.terminals import on_a_terminal
from tui.app import BackscrollApp
from tui.kit.ansi import AnsiPaint, depth_of
from tui.kit.lines import Line
from tui.kit.palette import PALETTES
from tui.main.first_frame import FirstFrame, Screen, most_sessions
from tui.main.outline import BOTTOM
from tui.main.screen import MainScreen
from tui.sessions.first_page import read_first_page
from tui.start.begin import Begun
from tui.start.early import EarlyTerminal, size_of_terminal
from tui.start.hangup import Watch
from tui.state.layout import LayoutState
from tui.state.library import Library
from tui.state.view_state import ViewState, load_state, remembered_state, save_state, state_path

TURNS = re.compile(r"\d+ turns?")
"""They are counted later, now and then before the main screen is painted."""
HOSTILE = "\x1b]0;owned\x07 \u202eevil [bold] \r\nnext \x9b31m"
WIDE = "日本語のタイトル 👩\u200d👩\u200d👧 ❤\ufe0f é\u0301 ｶﾅ 🏳\ufe0f\u200d🌈 end of it all"
TOLD = [
    Told("ses_a", HOSTILE, source="codex"),
    Told("ses_b", WIDE, workspace="/w/日本", source="pi"),
    Told("ses_c", "", archived=True),
    Told("ses_d", "Runs", activity="running"),
    Told("ses_e", "A title that is longer than any list here is wide " * 3, activity="error"),
    Told("ses_f", "Waits", activity="waiting-approval", parent="ses_e"),
]
Cells = list[list[Char]]


def drawn(rows: Iterable[str], width: int, height: int) -> Cells:
    """Return the cells of a terminal that some rows were written to."""
    screen = pyte.Screen(width, height)
    stream = pyte.Stream(screen)
    for y, row in enumerate(rows, start=1):
        stream.feed(f"\x1b[{y};1H{row}")
    return [[_seen(screen.buffer[y][x]) for x in range(width)] for y in range(height)]


def _seen(cell: Char) -> Char:
    """Return a cell without what nobody sees: the colour of a blank."""
    return cell._replace(fg="default", bold=False, italics=False) if cell.data == " " else cell


class Starting(BackscrollApp):
    """Keeps what the main screen drew first."""

    def __init__(self, path: Path, settings: Settings) -> None:
        library = Library.open(path, "test", clock=lambda: NOW)
        super().__init__(library, settings, poll_ms=0)
        self.then: list[str] = []

    def _after_first_paint(self) -> None:
        strips = self.main._compositor.render_strips()
        self.then = [strip.render(Console(color_system="truecolor")) for strip in strips]
        super()._after_first_paint()


LAYOUTS = {
    "plain": ViewState(),
    "by day, far down": ViewState(group="day", session_id=f"ses_{31:026d}"),
    "ungrouped, wide list": ViewState(
        group="none", sort="tokens", layout=LayoutState(sessions_width=75)),
    "all, zoomed": ViewState(shelf="all", layout=LayoutState(zoomed=True)),
    "list put away": ViewState(layout=LayoutState(hidden=frozenset({"sessions"}))),
    "inspector left": ViewState(layout=LayoutState(inspector_width=60, focused="inspector")),
}


async def both(
    path: Path, state: ViewState, size: tuple[int, int], *, theme: str = "dark"
) -> tuple[Cells, Cells]:
    """Return the cells of the first frame, and those that the main screen draws first."""
    save_state(state_path(path), state)
    settings = Settings()
    settings.ui.theme = theme
    app = Starting(path, settings)
    page = read_first_page(
        app.library, app.view_state, seen=most_sessions(app.view_state.layout, *size))
    frame = FirstFrame("test", False, page, app.view_state.layout, NOW)
    palette = PALETTES[f"backscroll-{theme}"]
    ways = [AnsiPaint(palette, "TRUECOLOR", erases=erases) for erases in (False, True)]
    pictures = [picture(frame.rows(Screen(*size, way))) for way in ways]
    whole, first = (drawn([one], *size) for one in pictures)
    assert whole == first and len(pictures[1]) <= len(pictures[0])
    async with app.run_test(size=size) as pilot:
        await settled(app, pilot)
    return first, drawn(app.then, *size)


def text_of(row: list[Char]) -> str:
    return "".join(cell.data or "\0" for cell in row)


def differing(first: Cells, then: Cells) -> list[str]:
    """Return what differs, but for what the main screen knows a little later."""
    told = []
    for y, (was, is_now) in enumerate(zip(first[:-BOTTOM], then[:-BOTTOM], strict=True)):
        later = [False] * len(was)
        for found in TURNS.finditer(text_of(is_now)):
            later[found.start():found.end()] = [True] * len(found[0])
        if y == 0:  # Counts, and how fresh the store is.
            later[len(text_of(was).rstrip()):] = [True] * (len(was) - len(text_of(was).rstrip()))
        wrong = [x for x, late in enumerate(later) if not late and was[x] != is_now[x]]
        if wrong:
            x = wrong[0]
            told.append(f"{y}: {len(wrong)} from {x}: {was[x]} {is_now[x]}"
                        f"\n{text_of(was)}\n{text_of(is_now)}")
    return told


@pytest.mark.parametrize("size", [(200, 60), (120, 40), (80, 24), (60, 12)])
@pytest.mark.parametrize("name", LAYOUTS)
@pytest.mark.one_in(3)
async def test_the_main_screen_has_the_same_cells(
    tmp_path: Path, name: str, size: tuple[int, int]
) -> None:
    path = put(tmp_path / "s.db", some(40))
    first, then = await both(path, LAYOUTS[name], size)
    assert "Session " in "".join(map(text_of, first))
    assert differing(first, then) == []
    assert {cell.bg for cell in first[-1]} == {then[-1][-1].bg}


@pytest.mark.parametrize("theme", ["dark", "light"])
async def test_what_sessions_are_called_and_do_has_the_same_cells(
    tmp_path: Path, theme: str
) -> None:
    path = put(tmp_path / "s.db", TOLD)
    first, then = await both(path, ViewState(shelf="all"), (150, 40), theme=theme)
    text = "\n".join(map(text_of, first))
    assert differing(first, then) == []
    assert "日" in text and "owned" in text and "archived" in text and "Waits" in text
    assert "\x1b" not in text and "\u202e" not in text and "\x9b" not in text


@pytest.mark.parametrize("term", ["xterm", "xterm-256color", "screen-256color", "xterm-kitty"])
@pytest.mark.parametrize("colours", ["", "truecolor", "24bit", "yes"])
def test_a_terminal_with_fewer_colours_gets_those_that_rich_takes(
    term: str, colours: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TERM", term)
    monkeypatch.setenv("COLORTERM", colours)
    monkeypatch.delenv("NO_COLOR", raising=False)
    depth = depth_of(os.environ)
    system = Console(force_terminal=True)._color_system
    assert system is not None and system.name == depth
    palette = PALETTES["backscroll-dark"]
    (piece,) = AnsiPaint(palette, depth).line(Line((("Title", "text bold"),)), 5, "focus")
    style = Style(color=palette.text, bgcolor=palette.focus, bold=True)
    assert piece == style.render("Title", color_system=system)


async def test_what_is_written_after_the_frame_is_in_the_list(tmp_path: Path) -> None:
    path = put(tmp_path / "s.db", some(3))
    library = Library.open(path, "test", clock=lambda: NOW)
    page = read_first_page(library, ViewState())
    terminal = EarlyTerminal(Watch(0, 0, frozenset()))
    for late in (False, True):
        if late:
            put(path, [Told("ses_late", "Written late")])
        app = BackscrollApp(library, Settings(), poll_ms=0, begun=Begun(page, terminal))
        shown = app.get_default_screen()
        assert isinstance(shown, MainScreen)
        titles = {row.title for row in shown.sessions.view.rows.values()}
        assert ("Written late" in titles) == late
        assert shown.sessions.view.rows.keys() >= page.rows.keys()
    library.database.close()


def runs(*arguments: str) -> list[str]:
    return [sys.executable, "-m", "tui", *arguments]


def environment() -> dict[str, str]:
    changing = ("NO_COLOR", "COLUMNS", "LINES", "TEXTUAL")
    kept = {name: one for name, one in os.environ.items() if not name.startswith(changing)}
    return kept | {"TERM": "xterm-256color", "COLORTERM": "truecolor"}


def test_textual_draws_over_the_frame_without_clearing_it(tmp_path: Path) -> None:
    path, size = put(tmp_path / "s.db", some(10)), (160, 40)
    with on_a_terminal(runs("--store", str(path)), environment(), size, frames=True) as terminal:
        terminal.wait_for(b"Session 9")
        terminal.wait_for(b"no messages")
        terminal.send(b"\x11")
        terminal.wait_for_end()
    assert terminal.received.count(b"\x1b[?1049h") == 1
    shown, _left = terminal.received.split(b"\x1b[?1049l")
    assert not any(clear in shown for clear in (b"\x1b[2J", b"\x1b[J", b"\x1b[3J"))
    screen = pyte.Screen(*size)
    stream = pyte.ByteStream(screen)
    titles = [f"Session {n}" for n in range(10)]
    first, *frames = re.split(rb"(?<=\x1b\[\?2026l)", shown)
    stream.feed(first)
    grounds = [screen.buffer[y][size[0] - 1].bg for y in range(size[1])]
    opening = list[bool]()
    for frame in [b"", *frames]:
        stream.feed(frame)
        text = "\n".join(screen.display)
        assert all(title in text for title in titles)
        assert [screen.buffer[y][size[0] - 1].bg for y in range(size[1])] == grounds
        assert screen.display[1].count("Session 0") == 1, "the transcript's title vanished"
        opening.append("opening" in screen.display[2])
    assert len(frames) > 3 and opening == sorted(opening, reverse=True) and opening[0]


def test_after_a_new_size_before_textual_everything_is_drawn_anew(tmp_path: Path) -> None:
    path, size = put(tmp_path / "s.db", some(10)), (100, 30)
    with on_a_terminal(runs("--store", str(path)), environment(), (120, 40)) as terminal:
        first = len(terminal.wait_for(b"\x1b[?2026l"))
        fcntl.ioctl(terminal.handle, termios.TIOCSWINSZ, struct.pack("HHHH", *size[::-1], 0, 0))
        terminal.wait_for(b"no messages")
        terminal.send(b"\x11")
        assert terminal.exit_code() == 0
    screen = pyte.Screen(*size)
    stream = pyte.ByteStream(screen)
    stream.feed(b"\x1b#8")  # Each cell shows an E.
    stream.feed(terminal.received[first:].split(b"\x1b[?1049l")[0])
    assert "Session 9" in "\n".join(screen.display)
    assert not any("EE" in row for row in screen.display)


def test_keys_before_textual_are_answered_in_order(tmp_path: Path) -> None:
    path = put(tmp_path / "s.db", some(10))
    with on_a_terminal(runs("--store", str(path)), environment(), (120, 40)) as terminal:
        terminal.wait_for(b"Session 9")
        terminal.send(b"jj\x03kjjd")
        terminal.wait_for(b" tabs")
        terminal.send(b"\x11")
        assert terminal.exit_code() == 0
    assert b"jj" not in terminal.received
    assert load_state(state_path(path)).session_id == f"ses_{9:026d}"


def test_a_signal_before_textual_gives_the_terminal_back(tmp_path: Path) -> None:
    path = put(tmp_path / "s.db", some(3))
    with on_a_terminal(runs("--store", str(path)), environment(), (120, 40)) as terminal:
        terminal.wait_for(b"Session 0")
        os.kill(terminal.child, signal.SIGTERM)
        assert terminal.exit_code() == 128 + signal.SIGTERM
        modes = termios.tcgetattr(terminal.handle)
    assert terminal.received.count(b"\x1b[?1049l") == 1
    assert modes[3] & termios.ECHO and modes[3] & termios.ICANON


def test_a_signal_is_heeded_while_the_terminal_takes_no_frame(tmp_path: Path) -> None:
    path = put(tmp_path / "s.db", some(10))
    given = environment()
    given.pop("PYTHONUNBUFFERED", None)
    with on_a_terminal(runs("--store", str(path)), given, (500, 150)) as terminal:
        assert os.read(terminal.handle, 1) == b"\x1b"
        os.kill(terminal.child, signal.SIGTERM)
        status = os.waitpid(terminal.child, 0)[1]
        terminal.child = 0
        assert os.waitstatus_to_exitcode(status) == 128 + signal.SIGTERM
        terminal.wait_for_end()
        assert b"\x1b[?1049l" in terminal.received


def test_a_stop_before_textual_leaves_the_terminal_in_order(tmp_path: Path) -> None:
    path = put(tmp_path / "s.db", some(3))
    with on_a_terminal(runs("--store", str(path)), environment(), (120, 40)) as terminal:
        terminal.wait_for(b"Session 0")
        os.kill(terminal.child, signal.SIGTSTP)
        terminal.wait_for(b"\x1b[?1049l")
        _, status = os.waitpid(terminal.child, os.WUNTRACED)
        assert os.WIFSTOPPED(status)
        terminal.received = b""
        os.kill(terminal.child, signal.SIGCONT)
        terminal.wait_for(b"Session 0")
        terminal.wait_for(b" keys")
        terminal.send(b"\x11")
        assert terminal.exit_code() == 0


LEFT_OUT = {
    "NO_COLOR": {"NO_COLOR": "1"}, "odd terminal": {"TERM": "vt52"},
    "another size": {"COLUMNS": "100"}, "another driver": {"TEXTUAL_COLOR_SYSTEM": "256"},
}


@pytest.mark.parametrize("name", LEFT_OUT)
def test_where_textual_draws_something_else_it_is_left_out(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "get_terminal_size", lambda _descriptor: (120, 40))
    monkeypatch.setattr("sys.stdout.fileno", lambda: 1, raising=False)
    given = environment()
    assert size_of_terminal(given) == (120, 40)
    assert size_of_terminal(given | LEFT_OUT[name]) is None


def test_without_a_config_all_is_as_its_defaults_say(tmp_path: Path) -> None:
    settings, store = Settings(), tmp_path / "s.db"
    assert remembered_state(store, None) == remembered_state(store, settings.ui)
    assert settings.store is None and not settings.read_only and not settings.masks.view
    assert (settings.ui.theme or "auto") == "auto"


NEEDED = """
import sys
from tui.main import first_frame
import tui.start.early
def show(self, rows, size):
    drawn = str(tui.start.early.picture(rows))
    print("Session 0" in drawn, "\\x1b[1;1H" in drawn, *sorted(sys.modules), sep="\\n")
    raise SystemExit
tui.start.early.EarlyTerminal.show = show
from tui.__main__ import main
main(["--store", sys.argv[1]])
"""
HEAVY = (
    "textual", "rich", "pydantic", "asyncio", "inspect", "dataclasses", "orjson",
    "typing", "pathlib", "urllib",
    "platformdirs", "tempfile", "shutil", "subprocess", "logging", "tomllib", "hashlib", "ssl",
    "store.store", "store.language", "store.search", "store.sync", "store.sources", "tui.keys",
    "tui.app",
)


def test_it_imports_nothing_heavy(tmp_path: Path) -> None:
    path = put(tmp_path / "s.db", some(3))
    command = [sys.executable, "-c", NEEDED, str(path)]
    with on_a_terminal(command, environment(), (120, 40)) as terminal:
        terminal.wait_for_end()
    drawn, placed, *modules = terminal.received.decode().split()
    assert (drawn, placed) == ("True", "True")
    assert {m for m in modules if m.partition(".")[0] in HEAVY or m in HEAVY} == set()
    assert "sqlite3" in modules
    ours = {module for module in modules if module.startswith(("store.", "tui."))}
    assert len(ours) < 80
