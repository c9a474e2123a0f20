"""What the terminal shows is the last frame, whatever was left out on the way."""

from __future__ import annotations

import os
import random
import select
import shutil
import subprocess
import threading
import tty
from collections.abc import Iterator
from pathlib import Path

import pyte
import pytest

from store.system.streams import erases_in_colour
from tui.terminal import driver
from tui.terminal.cells import Cells, look_of, selecting
from tui.terminal.driver import CUT_SHORT, Sender
from tui.terminal.output import (
    FIRST_AHEAD,
    FRAME_END,
    FRAME_START,
    LEAST_AHEAD,
    PATIENCE_S,
    QUESTION,
    Output,
)

WIDTH, HEIGHT = 40, 8
SIZE = WIDTH, HEIGHT
STYLES = ("", "1", "38;2;1;2;3;48;2;9;9;9", "1;3;38;2;1;2;3;48;2;9;9;9", "48;2;9;9;9", "4;31;42",
          "7;38;5;9", "38;2;4;5;6;48;2;9;9;9")  # fmt: skip
GRAPHEMES = ("a", "b", " ", "  ", "     ", " " * 15, "é", "─", "⠋", "漢", "字", "한", "e\u0301",
             "\U0001f600")  # fmt: skip
WIDE = {"漢": 2, "字": 2, "한": 2, "\U0001f600": 2, "e\u0301": 1}
ON, OFF = "\x1b[?1049h", "\x1b[?1049l"


def drawn(data: str, screen: pyte.Screen | None = None) -> pyte.Screen:
    """Return a screen that has drawn what it got."""
    if screen is None:
        screen = pyte.Screen(WIDTH, HEIGHT)
        screen.reset_mode(pyte.modes.DECAWM)
    pyte.Stream(screen).feed(data)
    return screen


def seen(screen: pyte.Screen) -> list[list[tuple[object, ...]]]:
    """Return what is seen of each cell: of a blank, only what is seen behind it."""
    rows = []
    for y in range(screen.lines):
        cells = [screen.buffer[y][x] for x in range(screen.columns)]
        rows.append([
            (" ", cell.bg) if cell.data == " " and not cell.underscore and not cell.reverse
            else tuple(cell) for cell in cells
        ])  # fmt: skip
    return rows


def frames(seed: int, count: int, graphemes: tuple[str, ...] = GRAPHEMES) -> Iterator[str]:
    """Yield frames as Textual writes them: whole ones, and parts of rows."""
    chance = random.Random(seed)
    for number in range(count):
        rows = range(HEIGHT) if number == 0 else sorted(chance.sample(range(HEIGHT), 3))
        texts = []
        for y in rows:
            x = 0 if number == 0 else chance.choice((0, 0, 12, 30))
            texts.append(f"\x1b[{y + 1};{x + 1}H")
            left = WIDTH - x
            while left > 0:
                text, width = "", 0
                for piece in chance.choices(graphemes, k=chance.randint(1, 9)):
                    cells = WIDE.get(piece, len(piece))
                    if width + cells <= left:
                        text, width = text + piece, width + cells
                text, width = (text, width) if text else (" " * left, left)
                style = chance.choice(STYLES)
                texts.append(f"\x1b[{style}m{text}\x1b[0m" if style else text)
                left -= width
            texts.append("\n")
        yield "".join(texts[:-1]) + "\x1b[1;1H"


def narrow_frames(seed: int, count: int) -> Iterator[str]:
    """Yield frames whose parts never begin within a wide character."""
    return frames(seed, count, GRAPHEMES[:9])


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("erases", [True, False])
@pytest.mark.one_in(3)
def test_the_terminal_shows_the_last_frame(seed: int, erases: bool) -> None:
    cells, wanted, shown = Cells(WIDTH, HEIGHT, erases=erases), drawn(""), drawn("")
    chance, sent, raw = random.Random(seed), 0, 0
    for number, frame in enumerate(narrow_frames(seed, 40)):
        cells.draw(frame)
        drawn(frame, wanted)
        raw += len(frame)
        while number % 3 == 0 and cells.is_changed:
            piece = cells.take(chance.choice((1, 100, 10_000)))
            sent += len(piece)
            drawn(piece, shown)
        if number % 3 == 0:
            assert seen(shown) == seen(wanted)
    assert sent < raw


@pytest.mark.parametrize("seed", range(12))
def test_characters_of_any_width_stay_in_their_cells(seed: int) -> None:
    cells, shown = Cells(WIDTH, HEIGHT), drawn("")
    for number in range(6):
        frame = next(frames(seed * 10 + number, 1))
        cells.draw(frame)
        drawn(cells.take(10_000), shown)
        assert seen(shown) == seen(drawn(frame))


def shown_by_tmux(folder: Path, sent: dict[str, str]) -> dict[str, pyte.Screen]:
    """Return the screens of tmux panes, colours too, that have drawn something each.

    Args:
        folder: Empty, of a short path.
        sent: What each pane gets, by name.
    """
    tmux = ["tmux", "-S", str(folder / "socket"), "-f", os.devnull, "-u"]
    size = ["-x", str(WIDTH), "-y", str(HEIGHT + 1)]
    for name, data in sent.items():
        (folder / name).write_text(f"\x1b[?7l{data}")
        # The question behind it is answered once it is drawn.
        command = (
            f"stty raw -echo; cat {folder / name}; printf '\\033[6n'; head -c 1 > {os.devnull};"
            f" tmux wait-for -S {name}; cat > {os.devnull}")
        subprocess.run([*tmux, "new-session", "-d", "-s", name, *size, command], check=True)
    screens = {}
    try:
        for name in sent:
            subprocess.run([*tmux, "wait-for", name], check=True, timeout=60)
            capture = [*tmux, "capture-pane", "-p", "-e", "-N", "-t", name]
            rows = subprocess.run(capture, check=True, capture_output=True, text=True).stdout
            screens[name] = drawn("\r\n".join(rows.splitlines()[:HEIGHT]))
    finally:
        subprocess.run([*tmux, "kill-server"], check=True)
    return screens


@pytest.mark.skipif(shutil.which("tmux") is None, reason="needs tmux")
def test_tmux_shows_the_colours_of_the_last_frame(tmp_path: Path) -> None:
    sent = {}
    for seed in range(4):
        cells, made = Cells(WIDTH, HEIGHT), list(narrow_frames(seed, 12))
        sent[f"cells{seed}"], sent[f"frames{seed}"] = "", "".join(made)
        for frame in made:
            cells.draw(frame)
            sent[f"cells{seed}"] += cells.take(10_000)
    shown = shown_by_tmux(tmp_path, sent)
    for seed in range(4):
        assert seen(shown[f"cells{seed}"]) == seen(shown[f"frames{seed}"])


def test_what_is_the_same_is_not_sent() -> None:
    cells = Cells(WIDTH, HEIGHT)
    cells.draw("\x1b[2;3H\x1b[31mone two\x1b[0m   three\x1b[1;1H")
    assert "one two" in cells.take(10_000)
    cells.draw("\x1b[2;3H\x1b[31mone two\x1b[0m   three\x1b[1;1H")
    assert cells.take(10_000) == "" and not cells.is_changed
    cells.draw("\x1b[2;3H\x1b[31mone \x1b[0m\x1b[31mtwo\x1b[0m   thrEe\x1b[1;1H")
    assert cells.take(10_000) == "\x1b[2;13HthrEe"
    cells.draw("\x1b[2;3H\x1b[31mone 2wo\x1b[0m\x1b[1;1H")
    assert cells.take(10_000) == "\x1b[2;3H\x1b[31mone 2wo"


def test_a_rule_is_sent_where_it_differs() -> None:
    cells = Cells(WIDTH, HEIGHT)
    cells.draw("\x1b[1;1H" + "─" * 30 + " " * 10 + "\x1b[1;1H")
    cells.take(10_000)
    cells.draw("\x1b[1;1H" + "─" * 33 + " " * 7 + "\x1b[1;1H")
    assert cells.take(10_000) == "\x1b[1;31H───"


def test_blanks_up_to_the_edge_are_erased_once() -> None:
    cells = Cells(WIDTH, HEIGHT)
    ground = "48;2;9;9;9"
    cells.draw(f"\x1b[1;1H\x1b[1;{ground}mone   \x1b[0m\x1b[38;5;3;{ground}m{' ' * 30}\x1b[0m"
               f"\x1b[{ground}m {' ' * 3}\x1b[0m\x1b[1;1H")
    assert cells.take(10_000) == f"\x1b[1;1H\x1b[0;1;{ground}mone\x1b[K"


def test_only_what_differs_of_a_look_is_selected() -> None:
    one, two = look_of("1;38;2;1;2;3;48;2;9;9;9"), look_of("1;3;38;2;1;2;3;48;5;9")
    assert selecting(two, one) == "\x1b[3;48;5;9m"
    assert selecting(one, two) == "\x1b[23;48;2;9;9;9m"
    assert selecting(look_of("3"), two) == "\x1b[0;3m"
    assert selecting(look_of("2;31"), look_of("1;2;31")) == "\x1b[22;2m"
    assert selecting(two, look_of("7;8;9")) == "\x1b[0;1;3;38;2;1;2;3;48;5;9m"
    assert selecting(look_of("1"), one) == "\x1b[0;1m"
    assert selecting(one, one) == ""


def test_a_row_with_characters_of_unsure_width_is_sent_from_there_on() -> None:
    cells = Cells(WIDTH, HEIGHT)
    cells.draw("\x1b[1;1Hab \U0001f600 cd\x1b[1;1H")
    cells.take(10_000)
    cells.draw("\x1b[1;1Hab \U0001f600 ce\x1b[1;1H")
    sent = cells.take(10_000)
    assert sent.startswith("\x1b[1;1Hab \U0001f600\x1b[6G ce")


def test_what_draws_nothing_is_left_out_of_a_frame() -> None:
    cells = Cells(WIDTH, HEIGHT)
    cells.take(10_000)
    link = "\x1b]8;;http://x\x1b\\two\x1b]8;;\x1b\\"
    cells.draw(f"\x1b[1;1H\x1b[1m\x1b[0mone \x07{link}\x1b[2J\x1b[4m three\x1b[0m\x1b[1;1H")
    assert drawn(cells.take(10_000)).display[0].rstrip() == "one two three"


def answering_output() -> Output:
    """Return an output whose terminal answers, with the screen taken."""
    output = Output()
    output.write(ON, SIZE)
    output.write(FRAME_START, SIZE)
    assert output.next(0) == ON
    assert not output.answered(0)
    return output


def sent_until_it_waits(output: Output, now: float) -> str:
    """Return all that an output sends before it waits."""
    sent = ""
    while piece := output.next(now):
        sent += piece
    return sent


def test_frames_that_were_overtaken_are_not_sent() -> None:
    output, size = answering_output(), 0
    made = list(narrow_frames(3, 400))
    got = ""
    for frame in made:
        output.write(frame, SIZE)
        piece = output.next(0)
        got += piece
        size += len(piece.encode())
    # The terminal takes nothing: what is ahead of it has an end.
    assert size <= FIRST_AHEAD + len(max(made, key=len)) and got.count(QUESTION) == 1
    assert output.next(0) == ""
    assert output.answered(0.05)
    got += sent_until_it_waits(output, 0.05)
    wanted = drawn("".join(made))
    assert seen(drawn(got)) == seen(wanted)
    assert got.count(FRAME_START) == got.count(FRAME_END) < len(made) / 2


def test_a_slow_terminal_is_sent_less_ahead() -> None:
    output, now = answering_output(), 0.0
    chance = narrow_frames(4, 2_000)
    for frame in chance:
        output.write(frame, SIZE)
        if QUESTION in output.next(now):
            now += 1.0
            output.answered(now)
    assert output.ahead == LEAST_AHEAD


def test_a_terminal_that_does_not_answer_any_more_is_waited_for_each_time_longer() -> None:
    output, now, waits = answering_output(), 0.0, []
    for frame in narrow_frames(5, 2_000):
        output.write(frame, SIZE)
        if not output.next(now) and (until := output.waits_until()) is not None:
            waits.append(until - now)
            now = until
    assert waits[:3] == [PATIENCE_S, 2 * PATIENCE_S, 4 * PATIENCE_S]
    assert output.ahead == LEAST_AHEAD


def test_rows_of_the_newest_frame_come_first() -> None:
    cells = Cells(WIDTH, HEIGHT)
    cells.draw("\x1b[1;1H" + "\n".join(f"\x1b[{y + 1};1Hrow {y}" for y in range(HEIGHT)))
    cells.draw("\x1b[6;1Hnewest\x1b[1;1H")
    assert "newest" in cells.take(1)


def test_the_end_is_not_kept_waiting_by_frames() -> None:
    output = answering_output()
    output.write(next(narrow_frames(1, 1)), SIZE)
    output.write(OFF, SIZE)
    output.write(next(narrow_frames(2, 1)), SIZE)
    assert output.next(0) == "\x1b[0m" + OFF
    assert output.next(0) == ""


def test_a_screen_that_was_lost_is_sent_whole() -> None:
    output = answering_output()
    frame = next(narrow_frames(1, 1))
    output.write(frame, SIZE)
    output.next(0)
    assert output.next(0) == ""
    output.stale = True
    assert seen(drawn(output.next(0))) == seen(drawn(frame))
    output.write(frame, (WIDTH, HEIGHT + 1))
    assert seen(drawn(output.next(0))) == seen(drawn(frame))


def test_what_is_shown_already_is_not_sent_again() -> None:
    output = Output()
    output.shows("\x1b[?1049h\x1b[1;1H\x1b[1mone\x1b[0m two" + "\x1b[2;1H" + " " * WIDTH, SIZE)
    output.write("\x1b[1;1H\x1b[1mone\x1b[0m twice", SIZE)
    assert output.next(0) == "\x1b[1;4H\x1b[0m twice\x1b[1;10H"


def test_a_slow_reader_gets_the_last_frame_and_no_backlog() -> None:
    near, far = os.openpty()
    try:
        tty.setraw(far)
        output = answering_output()
        sender = Sender(output, far)
        sender.start()
        made = list(narrow_frames(7, 1_500))
        for frame in made:
            with sender.changed:
                output.write(frame, SIZE)
                sender.changed.notify()
        got, wanted = b"", seen(drawn("".join(made)))
        while True:
            answered = got.count(QUESTION.encode())
            got += os.read(near, 100)
            for _ in range(got.count(QUESTION.encode()) - answered):
                with sender.changed:
                    output.answered(0)
                    sender.changed.notify()
            # The last frame may end with a question.
            whole = got.removesuffix(QUESTION.encode())
            if whole.endswith(FRAME_END.encode()) and seen(drawn(whole.decode())) == wanted:
                break
        assert len(got) < FIRST_AHEAD + 4 * len(max(made, key=len))
        with sender.changed:
            output.write(OFF, SIZE)
        sender.stop()
        assert not sender.is_alive()
    finally:
        os.close(near)
        os.close(far)


def test_a_frame_is_taken_before_its_writer_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    rests = threading.Event()

    class Watched(Output):
        def waits_until(self) -> float | None:
            rests.set()
            return super().waits_until()

    monkeypatch.setattr("tui.terminal.driver.TAKEN_WITHIN_S", 10)
    near, far = os.openpty()
    try:
        output = Watched()
        sender = Sender(output, far)
        sender.take_now()  # Nothing is waited for before it is started, and after its end.
        sender.start()
        rests.wait()
        with sender.changed:
            output.write(ON, SIZE)
            sender.changed.notify()
            sender.take_now()
            assert output.next(0) == ""
        sender.stop()
        sender.take_now()
        assert os.read(near, 1_000).decode() == ON
    finally:
        os.close(near)
        os.close(far)


@pytest.mark.parametrize("text", ["─" * 2_000, "a" * 3_000, "漢" * 700 + "é─" * 900])
def test_a_text_longer_than_a_write_arrives_whole(text: str) -> None:
    near, far = os.openpty()
    try:
        tty.setraw(far)
        output = Output()
        sender = Sender(output, far)
        sender.start()
        with sender.changed:
            output.write(ON, SIZE)
            output.write(text + ON, SIZE)
            sender.changed.notify()
        got = b""
        while not got.endswith((text + ON).encode()):
            got += os.read(near, 10_000)
        with sender.changed:
            output.write(OFF, SIZE)
        sender.stop()
        assert not sender.is_alive()
    finally:
        os.close(near)
        os.close(far)


def ready(descriptor: int, event: int) -> bool:
    """Return whether a descriptor, of whatever number, can be read or written now."""
    poll = select.poll()
    poll.register(descriptor, event)
    return bool(poll.poll(0))


def test_a_terminal_that_nobody_reads_is_given_back(monkeypatch: pytest.MonkeyPatch) -> None:
    near, far = os.openpty()
    tty.setraw(far)
    monkeypatch.setattr(driver, "STUCK_S", 0.1)
    monkeypatch.setattr(
        driver, "_opened_anew", lambda _far: os.open(os.ttyname(far), os.O_WRONLY | os.O_NONBLOCK))
    try:
        output = Output()
        sender = Sender(output, far)
        with sender.changed:
            output.write(ON, SIZE)
            output.write("x" * 100_000, SIZE)
            output.write("\x1b[1;1Hone", SIZE)
        sender.start()
        while ready(far, select.POLLOUT):
            pass
        with sender.changed:
            output.write(OFF, SIZE)
        sender.stop()
        assert not sender.is_alive()
        got = b""
        while ready(near, select.POLLIN):
            got += os.read(near, 100_000)
        assert got.endswith(CUT_SHORT + b"\x1b[0m" + OFF.encode())
    finally:
        os.close(near)
        os.close(far)


@pytest.mark.parametrize(("environment", "erases"), [
    ({"TERM": "xterm-256color"}, True), ({"TERM": "tmux-256color"}, True),
    ({"TERM": "screen-256color", "TMUX": "/x"}, True), ({"TERM": "screen-256color"}, False),
    ({"TERM": "xterm", "STY": "1.x"}, False), ({"TERM": "vt100"}, False), ({}, False),
])  # fmt: skip
def test_blanks_are_erased_where_that_takes_the_colour(
    environment: dict[str, str], erases: bool
) -> None:
    assert erases_in_colour(environment) is erases
