"""Times what a user waits for: start, keys in the list, opening, paging; and memory.

Everything is measured at the terminal's end of a pty. A figure and its floor come from the
same minute: their processes run in turn, or side by side with keys pressed in turn.
"""

from __future__ import annotations

import contextlib
import statistics
import subprocess
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from tests.bench import app
from tests.bench.kept import with_sidecars
from tests.bench.long_session import SMALL_PARTS, first_words, last_words, long_store
from tests.bench.many_sessions import active, list_store, shown_number, title_start
from tests.bench.report import Limits, Line, p95
from tests.bench.screen import PageWatch
from tests.bench.talks import Talk, long_talk
from tests.bench.terminal import PATIENCE_S, Terminal, clean_environment

SPOKEN = "What the assistant said"
KEY_PAUSE_S = 0.03
"""Between an answer and the next key: a key that is held down."""
KEYS_A_SECOND = 60
REST_S = 0.4
LEFT_AFTER_S = 1.5
PAGES_OF_SHORT = 6
"""After so many pages one goes back to the top of a session of ``SMALL_PARTS``."""
SETTLING_S, RESTING = 1.0, 0.04
"""How long an app is watched, and the share of a processor that it takes at rest."""
MEGABYTE = 1_000_000


def _count(quick: bool, full: int, small: int) -> int:
    return small if quick else full


def _ms(seconds: float) -> float:
    return seconds * 1_000

FOOTER = b" keys"
"""What the bottom line ends with; the screen that draws it answers keys."""

# -- start


def start(quick: bool) -> list[Line]:
    """Time process start to the first session's row and to all else, beside hello-world.

    The first run has nothing that an earlier one kept; the last lines are those of a second run.
    """
    sizes = (1_000, 5_000) if quick else (100_000, 1_000_000)
    stores = [list_store(size) for size in sizes]
    commands = [app.command(store) for store in stores]
    starts = [app.HELLO_COMMAND, *commands, commands[0]]
    texts = [app.HELLO, *(title_start(0).encode() for _ in stores), FOOTER]
    found: list[list[tuple[float, float]]] = [[] for _ in starts]
    again = [app.HELLO_COMMAND, commands[0]]
    with clean_environment() as kept:
        _leave_screen(commands[0], kept)
        seconds = _second_starts(_count(quick, 21, 1), again, kept)
    for number in range(_count(quick, 21, 1) + 1):
        for runs, command, text in zip(found, starts, texts, strict=True):
            run = _started(command, text)
            if number:  # The first round reads the files into memory.
                runs.append(run)
    floor, *figures = ([_ms(statistics.median(c)) for c in zip(*runs, strict=True)]
                       for runs in found)  # fmt: skip
    names = [*(f"the first rows, {size:,} sessions" for size in sizes),
             f"the whole screen, {sizes[0]:,} sessions"]  # fmt: skip
    return [
        Line(
            "start", f"start to {name}", wall, "ms", floor[0], Limits(ratio=limit),
            {"rounds": len(found[0]), "cpu_ms": cpu, "floor_cpu_ms": floor[1],
             "cpu_ratio": cpu / max(floor[1], 1)},
        )
        for name, (wall, cpu), limit in zip(names, figures, (0.25, 0.3, 1.25), strict=True)
    ] + seconds  # fmt: skip


def _leave_screen(command: list[str], environment: dict[str, str]) -> None:
    """Run the browser until it is at rest, and quit, so that it keeps its last screen."""
    with Terminal(command, environment) as terminal:
        terminal.until(SPOKEN.encode())
        terminal.quiet(LEFT_AFTER_S)
        terminal.send(app.QUIT)
        while terminal.process.poll() is None:
            terminal.pump(0.05)


def _second_starts(
    rounds: int, commands: Sequence[list[str]], kept: dict[str, str]
) -> list[Line]:
    """Time starts that find the last screen, beside hello-world.

    Args:
        rounds: How often, after one that is not counted.
        commands: Of hello-world and of the browser.
        kept: The environment in which the last screen was left.
    """
    floors: list[tuple[float, ...]] = []
    found: list[tuple[float, ...]] = []
    for number in range(rounds + 1):
        floor = _started(commands[0], app.HELLO)
        with Terminal(commands[1], kept) as terminal:
            first = terminal.until(title_start(0).encode()) - terminal.started
            cpu = cpu_seconds(terminal.process.pid)
            # What the transcript shows, and the bottom line.
            whole = max(terminal.until(SPOKEN.encode()), terminal.until(FOOTER))
            pressed = terminal.send(app.HELP)
            answered = terminal.until(app.HELP_SHOWN)
            terminal.send(app.ESCAPE)
            terminal.quiet(LEFT_AFTER_S)
            terminal.send(app.QUIT)
            while terminal.process.poll() is None:
                terminal.pump(0.05)
        if number:
            floors.append(floor)
            found.append((first, cpu, whole - terminal.started, answered - terminal.started,
                          answered - pressed))
    wall, floor_cpu = (_ms(statistics.median(column)) for column in zip(*floors, strict=True))
    first, cpu, whole, answered, waited = (
        _ms(statistics.median(column)) for column in zip(*found, strict=True))
    details = {"rounds": rounds, "cpu_ms": cpu, "floor_cpu_ms": floor_cpu,
               "cpu_ratio": cpu / max(floor_cpu, 1), "key_waited_ms": waited}
    again = "started again"
    return [
        Line("start", f"{again}, the first rows", first, "ms", wall, Limits(ratio=0.25), details),
        Line("start", f"{again}, all of the last screen", whole, "ms", wall, Limits(ratio=1.25)),
        Line("start", f"{again}, the answer to a key pressed then", answered, "ms", wall),
    ]


def _started(command: list[str], text: bytes) -> tuple[float, float]:
    """Return the seconds from a process's start to a text, and its CPU seconds by then."""
    with clean_environment() as environment, Terminal(command, environment) as terminal:
        shown = terminal.until(text)
        return shown - terminal.started, cpu_seconds(terminal.process.pid)


# -- a key in the list


def list_key(quick: bool) -> list[Line]:
    """Press key down in a long list and in a short one, in turn, each to its next row."""
    sizes = (5_000, 1_000) if quick else (1_000_000, 1_000)
    presses = _count(quick, 150, 10)
    found, spent = key_times(sizes, presses)
    many, few = (found[size] for size in sizes)
    return [
        Line(
            "list", f"key down in the list, {sizes[0]:,} sessions",
            _ms(statistics.median(many)), "ms", _ms(statistics.median(few)),
            Limits(ratio=1.2, value=16),
            {"presses": presses, "p95_ms": _ms(p95(many)), "floor_p95_ms": _ms(p95(few)),
             "cpu_median_ms": _ms(statistics.median(spent[sizes[0]])),
             "cpu_p95_ms": _ms(p95(spent[sizes[0]])),
             "floor_cpu_median_ms": _ms(statistics.median(spent[sizes[1]]))},
        )
    ]  # fmt: skip


def key_times(
    sizes: Sequence[int], presses: int
) -> tuple[dict[int, list[float]], dict[int, list[float]]]:
    """Press key down in lists that are open side by side, in turn, each to its next row.

    Each round begins with another one: what an app does behind its answer takes time from
    the next one.

    Args:
        sizes: How many sessions each has.
        presses: In each list.

    Returns:
        The seconds of each press, and its CPU seconds, by size.
    """
    with contextlib.ExitStack() as stack:
        shown = [
            (size, stack.enter_context(app.running(store, SPOKEN, _tally(size))))
            for size, store in [(size, with_sidecars(list_store(size))) for size in sizes]
        ]
        found: dict[int, list[float]] = {size: [] for size in sizes}
        spent: dict[int, list[float]] = {size: [] for size in sizes}
        for position in range(1, presses + 1):
            first = position % len(shown)
            for size, terminal in shown[first:] + shown[:first]:
                before = cpu_seconds(terminal.process.pid)
                pressed = terminal.send(app.DOWN)
                number = shown_number(position, size)
                found[size].append(terminal.until(title_start(number).encode()) - pressed)
                spent[size].append(cpu_seconds(terminal.process.pid) - before)
                terminal.rest(KEY_PAUSE_S)
    return found, spent


def _tally(size: int) -> str:
    """Return how the list's header counts its sessions once it has them all."""
    return f"{active(size):,}"


# -- keys that are held


def held_keys(quick: bool) -> list[Line]:
    """Hold a key for ten seconds in list and transcript, until the place that all lead to."""
    held = _count(quick, 600, 30)
    size, parts = _count(quick, 100_000, 5_000), _count(quick, 10_000, 2_000)
    talk = long_talk(parts)
    lines = []
    for pane, store, ready, key, last in (
        ("list", list_store(size), _tally(size), app.DOWN, title_start(shown_number(held, size))),
        ("transcript", talk.store, last_words(SMALL_PARTS), b".", f"part {held + 1:,} of"),
    ):
        with app.running(store, ready) as terminal:
            if pane == "transcript":
                open_talk(terminal, talk)
                _to_top(terminal, parts)
            pressed = terminal.send(key)
            for _ in range(1, held):
                terminal.rest(max(0.0, pressed + 1 / KEYS_A_SECOND - time.perf_counter()))
                pressed = terminal.send(key)
            ended = terminal.until(last.encode(), frame=True)
        lines.append(Line(
            "held", f"{held} keys held in the {pane}: from the last to its frame",
            _ms(ended - pressed), "ms", limits=Limits(value=1_000 / KEYS_A_SECOND),
            details={"held": held}))
    return lines


# -- opening


def open_session(quick: bool) -> list[Line]:
    """Open a long session and a short one in turn, each to the last part's text."""
    parts, rounds = _count(quick, 100_000, 2_000), _count(quick, 25, 2)
    found, spent = open_times(parts, rounds)
    long, short = found[parts], found[SMALL_PARTS]
    return [
        Line(
            "open", f"Enter to the transcript, {parts:,} parts", _ms(statistics.median(long)),
            "ms", _ms(statistics.median(short)), Limits(ratio=1.3, value=100),
            {"rounds": rounds, "first_ms": _ms(long[0]), "p95_ms": _ms(p95(long)),
             "cpu_median_ms": _ms(statistics.median(spent[parts])),
             "floor_cpu_median_ms": _ms(statistics.median(spent[SMALL_PARTS]))},
        )
    ]  # fmt: skip


def open_times_in(
    talks: Mapping[int, Talk], rounds: int
) -> tuple[dict[int, list[float]], dict[int, list[float]]]:
    """Open the first session of stores that are shown side by side, in turn.

    Args:
        talks: The sessions, by what is compared.
        rounds: How often each is opened, after once that is not counted.

    Returns:
        The seconds of each Enter, and its CPU seconds, by size.
    """
    found: dict[int, list[float]] = {size: [] for size in talks}
    spent: dict[int, list[float]] = {size: [] for size in talks}
    with contextlib.ExitStack() as stack:
        shown = [
            (size, stack.enter_context(app.running(talk.store, last_words(SMALL_PARTS))))
            for size, talk in talks.items()
        ]
        for _, terminal in shown:
            settle(terminal)
        for number in range(-1, rounds):
            first = number % len(shown)
            for size, terminal in shown[first:] + shown[:first]:
                for key in (app.TO_LIST, app.DOWN):
                    terminal.send(key)
                    terminal.rest(REST_S)
                terminal.send(app.UP)
                terminal.until(f"{SMALL_PARTS} parts".encode())
                before = cpu_seconds(terminal.process.pid)
                pressed = terminal.send(app.ENTER)
                took = terminal.until(last_words(SMALL_PARTS).encode(), frame=True) - pressed
                cpu = cpu_seconds(terminal.process.pid) - before
                terminal.rest(REST_S)
                if number >= 0:
                    found[size].append(took)
                    spent[size].append(cpu)
    return found, spent


def open_times(
    parts: int, rounds: int
) -> tuple[dict[int, list[float]], dict[int, list[float]]]:
    """Open the long and the short session of one store in turn.

    Each was opened once before, which loads what draws their parts.

    Args:
        parts: Of the long session.
        rounds: How often each is opened.

    Returns:
        The seconds of each Enter, and its CPU seconds, by parts.
    """
    found: dict[int, list[float]] = {parts: [], SMALL_PARTS: []}
    spent: dict[int, list[float]] = {parts: [], SMALL_PARTS: []}
    store = with_sidecars(long_store(parts))
    with app.running(store, last_words(SMALL_PARTS)) as terminal:
        for _ in range(rounds + 1):
            for size, key in ((parts, app.DOWN), (SMALL_PARTS, app.UP)):
                terminal.send(app.TO_LIST)
                terminal.rest(REST_S)
                terminal.send(key)
                terminal.until(f"{size} parts".encode())
                before = cpu_seconds(terminal.process.pid)
                pressed = terminal.send(app.ENTER)
                shown = terminal.until(last_words(size).encode(), frame=True)
                found[size].append(shown - pressed)
                spent[size].append(cpu_seconds(terminal.process.pid) - before)
                terminal.rest(REST_S)
    return (
        {size: times[1:] for size, times in found.items()},
        {size: times[1:] for size, times in spent.items()},
    )


# -- paging, and memory after it


def page_times(
    talks: Mapping[int, Talk], paged: int
) -> tuple[dict[int, list[float]], dict[int, list[float]]]:
    """Page down from the start of sessions that are open side by side, in turn.

    Args:
        talks: The sessions, by what is compared.
        paged: How many pages of each.

    Returns:
        The seconds of each page, and its CPU seconds, by size.
    """
    found: dict[int, list[float]] = {size: [] for size in talks}
    spent: dict[int, list[float]] = {size: [] for size in talks}
    with contextlib.ExitStack() as stack:
        shown = []
        for size, talk in talks.items():
            terminal = stack.enter_context(app.running(talk.store, last_words(SMALL_PARTS)))
            open_talk(terminal, talk)
            _to_top(terminal, talk.parts)
            shown.append((size, terminal, PageWatch(terminal)))
        for number in range(paged):
            first = number % len(shown)
            for size, terminal, watch in shown[first:] + shown[:first]:
                before = cpu_seconds(terminal.process.pid)
                found[size].append(watch.turn(app.PAGE_DOWN))
                spent[size].append(cpu_seconds(terminal.process.pid) - before)
                terminal.rest(KEY_PAUSE_S)
                if talks[size].parts <= SMALL_PARTS and number % PAGES_OF_SHORT == 0:
                    _to_top(terminal, SMALL_PARTS)
    return found, spent


def open_talk(terminal: Terminal, talk: Talk) -> None:
    """Open a session from the list, at its end, and wait until the app rests."""
    if talk.above:
        terminal.send(app.DOWN * talk.above)
        terminal.until(f"{talk.parts} parts".encode())
    terminal.send(app.ENTER)
    terminal.until(last_words(talk.parts).encode())
    settle(terminal)


def settle(terminal: Terminal) -> None:
    """Read on until the app rests: it reads a session whole behind its first window."""
    deadline = time.perf_counter() + PATIENCE_S
    while time.perf_counter() < deadline:
        before = cpu_seconds(terminal.process.pid)
        terminal.rest(SETTLING_S)
        if cpu_seconds(terminal.process.pid) - before < RESTING * SETTLING_S:
            return


def pages(quick: bool) -> list[Line]:
    """Page down from the start, then jump between the ends; then look at the memory."""
    parts = _count(quick, 100_000, 2_000)
    paged, jumps = _count(quick, 500, 20), _count(quick, 40, 3)
    talk = long_talk(parts)
    with app.running(talk.store, last_words(SMALL_PARTS)) as terminal:
        open_talk(terminal, talk)
        _to_top(terminal, parts)
        watch = PageWatch(terminal)
        times, spent = [], []
        for _ in range(paged):
            before = cpu_seconds(terminal.process.pid)
            times.append(watch.turn(app.PAGE_DOWN))
            spent.append(cpu_seconds(terminal.process.pid) - before)
            terminal.rest(KEY_PAUSE_S)
        memory = _memory(terminal)
        ends = []
        for _ in range(jumps):
            _to_top(terminal, parts)
            pressed = terminal.send(app.END)
            ends.append(terminal.until(last_words(parts).encode(), frame=True) - pressed)
            terminal.rest(REST_S)
    with app.hello() as small:
        small.quiet()
        floor = _memory(small)
    return [
        Line("page", f"page down in {parts:,} parts, p95", _ms(p95(times)), "ms",
             limits=Limits(value=12),
             details={"pages": paged, "median_ms": _ms(statistics.median(times)),
                      "max_ms": _ms(max(times)), "cpu_median_ms": _ms(statistics.median(spent)),
                      "cpu_p95_ms": _ms(p95(spent))}),
        Line("page", f"jump to the end of {parts:,} parts, p95", _ms(p95(ends)), "ms",
             limits=Limits(value=50),
             details={"jumps": jumps, "median_ms": _ms(statistics.median(ends))}),
        Line("page", f"memory (RSS) after {paged} pages", memory["rss"], "MB", floor["rss"],
             Limits(over=45), {"app": memory, "hello": floor}),
    ]  # fmt: skip


def _to_top(terminal: Terminal, parts: int) -> None:
    terminal.send(app.TO_TOP)
    terminal.until(first_words(parts).encode(), frame=True)
    terminal.rest(REST_S)


def _memory(terminal: Terminal) -> dict[str, Any]:
    """Return RSS and, where the system tells it, PSS, in MB."""
    process = terminal.process.pid
    told = Path(f"/proc/{process}/smaps_rollup")
    if not told.exists():
        done = subprocess.run(
            ["ps", "-o", "rss=", "-p", str(process)], check=True, capture_output=True, text=True
        )
        return {"rss": int(done.stdout) * 1024 / MEGABYTE}
    rows = dict(line.split(":", 1) for line in told.read_text().splitlines()[1:])
    kept = {"rss": "Rss", "pss": "Pss", "private_dirty": "Private_Dirty"}
    return {name: int(rows[row].split()[0]) * 1024 / MEGABYTE for name, row in kept.items()}


def cpu_seconds(process: int) -> float:
    """Return the CPU time that a process has used, ended threads too; 0 where none is told."""
    try:
        # What clock_getcpuclockid() makes of a process.
        return time.clock_gettime(~process << 3 | 2)
    except OSError:
        return 0.0
