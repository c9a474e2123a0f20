"""A tour of the browser on a store of PostgreSQL, for as long as asked, with a recorder beside.

    python -m tests.bench.server_tour [--minutes 60] [--out FOLDER] [--beside]

It runs ``backscroll`` in tmux on a server of its own, again and again through the same stops:
list, live, fork, rewind, undo, redo, search, archive, star, statistics and replay. After each key
it waits for what the screen must show. It prints what the browser and the server held after each
round; how long each stop took by the clock and on a processor, all of the time and in its first
and last tenth; and each stop of more than a second. With ``--beside`` it makes the same rounds
on a SQLite copy of the store, one after every three on the server, and prints how many times as
long each stop took on the server; ``--out`` keeps a screen of each stop and of each failure. The
exit code is 1 where a screen did not come, or a browser wrote to its log.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import os
import re
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

from store.copying.copying import copy_sessions
from store.demo import make_demo
from store.engine.database import open_database
from store.engine.opening import open_target
from store.store import Store
from store.system.clock import system_clock
from tests.bench.app import STARTED
from tests.bench.browse_bench import cpu_seconds
from tests.bench.record_stream import chunks
from tests.bench.report import p95
from tests.bench.server_bench import filled
from tests.bench.terminal import clean_environment
from tests.bench.tour_watch import Watch
from tests.store.engines import fill

SESSIONS = 1_000
COLUMNS, LINES = 160, 45
PATIENCE_S = 30.0
_SETTLED_S = 1.0
_LONG_MS = 1_000
_BESIDE = 3
"""Every so many rounds on the server there is one on the copy."""
_WORDS = ("escapes", "redis", "avif", "Überlange", "migration")
"""Each is said in a session of the demo."""
_TOURED = "Rewrite the search"
"""The session on which the verbs are tried."""
_CHUNKS, _A_SECOND = 3_000, 20
"""Of each recorded session."""
_TROUBLE = re.compile(r"Traceback|does not answer|cannot be|not on the server|no longer")


class Failed(Exception):
    """A screen did not come."""


class Screen:
    """A browser in tmux.

    Attributes:
        early: What it showed a moment after the last wait began, with a message that has gone.
    """

    early = ""

    def __init__(self, name: str, url: str, environment: dict[str, str]) -> None:
        """Start it.

        Args:
            name: Of the store's kind.
            url: The store.
            environment: Of the browser.
        """
        self._name = f"tour{os.getpid()}{name}"
        self._tmux("new-session", "-d", "-x", str(COLUMNS), "-y", str(LINES), "-s", "tour",
                   "env", "-i", *(f"{name}={value}" for name, value in environment.items()),
                   sys.executable, "-c", STARTED, "--store", url)  # fmt: skip
        self.process = int(self._tmux("display", "-p", "-t", "tour", "#{pane_pid}"))

    def _tmux(self, *arguments: str) -> str:
        return subprocess.run(["tmux", "-L", self._name, *arguments], check=True,
                              capture_output=True, text=True).stdout  # fmt: skip

    def shown(self) -> str:
        """Return the screen's text."""
        return self._tmux("capture-pane", "-p", "-t", "tour")

    def press(self, *keys: str) -> None:
        """Press keys by tmux's names."""
        self._tmux("send-keys", "-t", "tour", *keys)

    def text(self, words: str) -> None:
        """Type words."""
        self._tmux("send-keys", "-t", "tour", "-l", words)

    def until(self, what: str | Callable[[str], object]) -> str:
        """Return the screen once it shows a pattern, or once a function of it is true.

        Args:
            what: The pattern or the function.

        Raises:
            Failed: It did not come.
        """
        started, self.early = time.monotonic(), ""
        while True:
            shown = self.shown()
            if not self.early and time.monotonic() > started + _SETTLED_S:
                self.early = shown
            if what(shown) if callable(what) else re.search(what, shown):
                return shown
            if time.monotonic() > started + PATIENCE_S:
                raise Failed(f"{what} did not come")
            time.sleep(0.005)

    def rest(self) -> str:
        """Return the screen after a moment in which what was pressed is done."""
        time.sleep(_SETTLED_S)
        return self.shown()

    def close(self) -> None:
        """End it, where it has not ended."""
        subprocess.run(["tmux", "-L", self._name, "kill-server"], check=False, capture_output=True)


async def record(url: str, seconds: float) -> None:
    """Record one session after the other until the time is over."""
    until, seed = time.monotonic() + seconds, 0
    async with await Store.open(url) as store:
        while time.monotonic() < until:
            seed += 1
            session = await store.create_session("tour", title=f"Tour {seed}")
            recorder = await store.recorder(session)
            for chunk in chunks(_CHUNKS, seed):
                await recorder.feed(chunk)
                await asyncio.sleep(1 / _A_SECOND)
                if time.monotonic() > until:
                    break
            await recorder.close()


class Spent(NamedTuple):
    """What a stop took.

    Attributes:
        at: When it began (``time.monotonic``).
        ms: Until its screen was there.
        processor_ms: What the browser's process took of a processor meanwhile.
    """

    at: float
    ms: float
    processor_ms: float


class Tour:
    """Goes through the stops, and keeps how long each took.

    Attributes:
        spent: By stop, what it took each time.
        failed: What did not come, with the time.
        slow: Each stop of more than a second, with the time.
    """

    def __init__(self, screen: Screen, out: Path | None) -> None:
        """Begin.

        Args:
            screen: The browser.
            out: Where screens are kept.
        """
        self.screen, self._out = screen, out
        self.spent = dict[str, list[Spent]]()
        self.failed: list[str] = []
        self.slow: list[str] = []
        self.odd = dict[str, int]()

    def stop(self, name: str, what: str | Callable[[str], object], *keys: str) -> str:
        """Press keys and wait for a screen; return it.

        Args:
            name: Of the stop.
            what: What the screen must show, and does not show before.
            keys: By tmux's names; none waits only.
        """
        test = what if callable(what) else lambda shown: re.search(what, shown)
        try:
            self.screen.until(lambda shown: not test(shown))
        except Failed:
            raise Failed(f"{name} was there before") from None
        started = self._now()
        self.screen.press(*keys)
        try:
            shown = self.screen.until(what)
        except Failed:
            raise Failed(f"{name} did not come") from None
        self._took(name, started)
        for found in _TROUBLE.findall(shown):
            self.odd[f"{name}: {found}"] = self.odd.get(f"{name}: {found}", 0) + 1
        self._keep(name, shown)
        return shown

    def change(self, name: str, part: Callable[[str], str], *keys: str) -> None:
        """Press keys, if any, and wait until a part of the screen is another.

        Args:
            name: Of the stop.
            part: Gives the part.
            keys: By tmux's names.
        """
        before, started = part(self.screen.shown()), self._now()
        if keys:
            self.screen.press(*keys)
        try:
            shown = self.screen.until(lambda shown: part(shown) != before)
        except Failed:
            raise Failed(f"{name} did not change") from None
        self._took(name, started)
        self._keep(name, shown)

    def _now(self) -> tuple[float, float]:
        return time.monotonic(), cpu_seconds(self.screen.process) * 1_000

    def _took(self, name: str, started: tuple[float, float]) -> None:
        (began, before), (ended, after) = started, self._now()
        ms = (ended - began) * 1_000
        self.spent.setdefault(name, []).append(Spent(began, ms, after - before))
        if ms > _LONG_MS:
            self.slow.append(f"{time.strftime('%H:%M:%S')} {name}: {ms:.0f} ms")

    def _keep(self, name: str, shown: str) -> None:
        if self._out is not None:
            (self._out / f"{re.sub('[^a-z0-9]+', '-', name)}.txt").write_text(shown)

    def round(self) -> None:
        """Go through all stops once; a screen that does not come ends the round."""
        try:
            for each in (self._list, self._verbs, self._shelf, self._screens, self._live):
                each()
        except Failed as error:
            self.failed.append(f"{time.strftime('%H:%M:%S')} {each.__name__}: {error}")
            both = f"{self.screen.early}\n{self.screen.shown()}"
            self._keep(f"failed-{len(self.failed)}", both)
            print(self.failed[-1], flush=True)
            # Back to the list, with nothing left of what the round did.
            self.screen.press("Escape", "Escape", "Escape")
            for _ in range(4):
                self.screen.rest()
                self.screen.press("U")

    def _list(self) -> None:
        screen = self.screen
        screen.press("1", "BSpace")
        screen.press("g")
        screen.rest()
        for _ in range(20):
            screen.until("▌")
            self.change("key down", _selected, "j")
        self.stop("filter", "Sessions +1 of", "/", *_TOURED, "Enter")
        screen.rest()
        self.stop("open", "fork here", "Enter")

    def _verbs(self) -> None:
        screen = self.screen
        screen.press("2", "G", "[", "[")
        screen.rest()
        self.stop("fork, its question", "Fork here", "f")
        self.stop("fork", "Forked", "Enter")
        screen.until(r"\(2\) .*turn \d of \d")
        screen.press("[")
        screen.rest()
        self.stop("rewind, its question", "enter hide", "r")
        self.stop("rewind", "Hidden: ", "Enter")
        self.stop("undo a rewind", "Undone: rewound", "U")
        self.stop("redo a rewind", "Redone: rewound", "C-r")
        screen.until(lambda shown: "Undone: rewound" not in shown)
        self.stop("undo it again", "Undone: rewound", "U")
        self.stop("undo a fork", "Undone: forked", "U")

    def _shelf(self) -> None:
        self.screen.press("1")
        self.stop("archive", "Archived “", "a")
        self.screen.until("Sessions +0 of")
        self.stop("undo archiving", "Undone: archived", "U")
        self.screen.until("Sessions +1 of")
        self.stop("star", "Starred “", "*")
        self.stop("take the star away", "Unstarred “", "*")

    def _screens(self) -> None:
        self.stop("search opens", r"\A backscroll +search", "S")
        word = _WORDS[len(self.spent["search opens"]) % len(_WORDS)]
        self.screen.press("C-u")
        found = rf" S {word} .*[1-9]\d*\+? hits? in"
        # Without Enter, which opens the first hit.
        self.stop("search", found, *word)
        while self.screen.rest().startswith(" backscroll  search"):
            self.screen.press("Escape")
        self.stop("statistics", "By model", "$")
        self.screen.press("3")
        self.screen.rest()
        self.change("statistics, all time", str, "5")
        self.screen.press("q")
        self.screen.until("Sessions")
        self.stop("replay", r"\A Replay ", ">")
        time.sleep(2)  # It plays.
        self.screen.press("q")
        self.screen.until("Sessions")

    def _live(self) -> None:
        screen = self.screen
        screen.press("1", "BSpace")
        self.stop("the running session", "Tour [0-9]", "L")
        screen.press("Enter", "2", "G")
        for _ in range(20):
            if "following" not in screen.until("↓ (following|end)"):
                screen.rest()  # It has ended, and the next one begins.
                screen.press("1", "L", "Enter", "2", "G")
                screen.until("following")
            self.change("live", str)


def _selected(shown: str) -> str:
    return "".join(line[:40] for line in shown.splitlines() if line.startswith("▌"))


def told(spent: dict[str, list[Spent]], started: float, ended: float) -> list[str]:
    """Return a line for each stop: all of the time, its first tenth and its last.

    Args:
        spent: As in ``Tour``.
        started: When the tour began.
        ended: When it ended.
    """
    tenth = (ended - started) / 10
    lines = []
    for name, found in spent.items():
        all_ms = [each.ms for each in found]
        ends = [[each.ms for each in found if each.at < started + tenth],
                [each.ms for each in found if each.at > ended - tenth]]
        first, last = (f"{statistics.median(part):.0f}" if part else "-" for part in ends)
        lines.append(f"{name}: {len(found)} times, median {statistics.median(all_ms):.0f}, p95"
                     f" {p95(all_ms):.0f}, most {max(all_ms):.0f} ms; first {first}, last {last};"
                     f" on a processor {_processor(found):.0f}")
    return lines


def _processor(found: list[Spent]) -> float:
    return statistics.median(each.processor_ms for each in found)


def compared(server: dict[str, list[Spent]], file: dict[str, list[Spent]]) -> list[str]:
    """Return a line for each stop: the server beside the file.

    Args:
        server: As in ``Tour``, of the store on the server.
        file: The same of its copy.
    """
    lines = []
    for name in server:
        if name not in file:
            continue
        both = [[each.ms for each in spent[name]] for spent in (server, file)]
        middle = [statistics.median(part) for part in both]
        lines.append(
            f"{name}: median {middle[0]:.0f} and {middle[1]:.0f} ms (x{middle[0] / middle[1]:.2f}),"
            f" p95 {p95(both[0]):.0f} and {p95(both[1]):.0f}, on a processor"
            f" {_processor(server[name]):.0f} and {_processor(file[name]):.0f}")
    return lines


class Run:
    """A browser on its tour, with a recorder beside.

    Attributes:
        tour: The tour.
    """

    def __init__(self, name: str, url: str, out: Path | None, seconds: float) -> None:
        """Start both.

        Args:
            name: Of the store's kind.
            url: The store.
            out: Where screens are kept.
            seconds: How long the recorder goes on.
        """
        self.name = name
        self._open = contextlib.ExitStack()
        try:
            environment = self._open.enter_context(clean_environment())
            self._state = Path(environment["XDG_STATE_HOME"])
            recorder = subprocess.Popen([sys.executable, "-m", "tests.bench.server_tour",
                                         "--record", url, "--minutes", str(seconds / 60)])
            self._open.callback(recorder.wait)
            self._open.callback(recorder.terminate)
            screen = Screen(name, url, environment)
            self._open.callback(screen.close)
            self.tour = Tour(screen, out)
            self._watch = self._open.enter_context(Watch(screen.process, url))
            screen.until("Retry loop")
        except BaseException:
            self._open.close()
            raise

    def round(self) -> None:
        """Go through all stops once, and print what is held then."""
        self.tour.round()
        print(f"{time.strftime('%H:%M:%S')} {self.name}: {self._watch.held()}", flush=True)

    def close(self) -> str:
        """End both; return what the browser wrote to its log."""
        try:
            return "".join(file.read_text() for file in self._state.rglob("*.log"))
        finally:
            self._open.close()


def run(stores: dict[str, str], minutes: float, out: Path | None) -> int:
    """Tour stores in turn and print what was found; return the exit code.

    Args:
        stores: Files and URLs, by name.
        minutes: How long.
        out: Where screens are kept.
    """
    runs: list[Run] = []
    started, rounds, logged = time.monotonic(), 0, ""
    try:
        for name, url in stores.items():
            folder = None if out is None else out / name
            if folder is not None:
                folder.mkdir(parents=True, exist_ok=True)
            runs.append(Run(name, url, folder, minutes * 60))
        started = time.monotonic()
        while time.monotonic() < started + minutes * 60:
            for each in runs if rounds % _BESIDE == 0 else runs[:1]:
                each.round()
            rounds += 1
            if out is not None:
                lines = [line for each in runs
                         for line in (each.name, *told(each.tour.spent, started, time.monotonic()))]
                (out / "table.txt").write_text("\n".join(lines))
    except subprocess.CalledProcessError as error:
        logged += f"a browser has ended: {error}"
    finally:
        for each in runs:
            logged += each.close()
    ended = time.monotonic()
    print(f"{rounds} rounds in {(ended - started) / 60:.0f} minutes, load {os.getloadavg()}")
    for each in runs:
        tour = each.tour
        print(f"\n{each.name}", *told(tour.spent, started, ended), sep="\n")
        print(f"did not come: {tour.failed or 'nothing'}")
        print(f"more than a second: {tour.slow or 'nothing'}")
        print(f"words of trouble on screens: {tour.odd or 'none'}")
    if len(runs) > 1:
        print("\nserver and file", *compared(*(each.tour.spent for each in runs)), sep="\n")
    print(f"log: {logged or 'empty'}")
    return 1 if logged or any(each.tour.failed for each in runs) else 0


@contextlib.contextmanager
def toured(*, beside: bool) -> Iterator[dict[str, str]]:
    """Give a store on a server of its own, filled, and its copy in a file.

    Args:
        beside: Whether there is a copy.
    """
    with tempfile.TemporaryDirectory() as home, filled(SESSIONS) as url:
        os.environ["XDG_DATA_HOME"] = home
        demo = open_database(make_demo(Path(home) / "demo.db", system_clock), write=False)
        store = open_target(url, write=True)
        fill(store, demo)
        demo.close()
        stores = {"server": url}
        if beside:
            file = Path(home) / "copy.db"
            copy = open_target(str(file), create=True, write=True)
            ids = store.connection.execute("SELECT id FROM chat_sessions").fetchall()
            copy_sessions(store, copy, [row[0] for row in ids])
            copy.close()
            stores["file"] = str(file)
        store.close()
        yield stores


def main() -> int:
    """Run what the command line asks for."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=60)
    parser.add_argument("--out", type=Path)
    parser.add_argument("--beside", action="store_true")
    parser.add_argument("--record", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.record:
        asyncio.run(record(options.record, options.minutes * 60))
        return 0
    with toured(beside=options.beside) as stores:
        return run(stores, options.minutes, options.out)


if __name__ == "__main__":
    sys.exit(main())
