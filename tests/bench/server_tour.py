"""A tour of the browser on a store of PostgreSQL, for as long as asked, with a recorder beside.

    python -m tests.bench.server_tour [--minutes 60] [--out FOLDER]

It runs ``backscroll`` in tmux on a server of its own, again and again through the same stops:
list, live, fork, rewind, undo, redo, search, archive, star, statistics and replay. After each key
it waits for what the screen must show. It prints how long each stop took and how much memory the
browser had, in the first tenth of the time and in the last; ``--out`` keeps a screen of each stop
and of each failure. The exit code is 1 where a screen did not come, or the browser wrote to its
log.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import re
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from store.demo import make_demo
from store.engine.database import open_database
from store.engine.opening import open_target
from store.store import Store
from store.system.clock import system_clock
from tests.bench.app import STARTED
from tests.bench.record_stream import chunks
from tests.bench.report import p95
from tests.bench.server_bench import filled
from tests.bench.terminal import clean_environment
from tests.store.engines import fill

SESSIONS = 1_000
COLUMNS, LINES = 160, 45
PATIENCE_S = 30.0
_SETTLED_S = 1.0
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

    def __init__(self, url: str, environment: dict[str, str]) -> None:
        """Start it.

        Args:
            url: The store.
            environment: Of the browser.
        """
        self._name = f"tour{os.getpid()}"
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

    def memory_mb(self) -> float:
        """Return the browser's resident memory."""
        rows = Path(f"/proc/{self.process}/smaps_rollup").read_text()
        (found,) = re.findall(r"^Rss:\s+(\d+) kB", rows, re.MULTILINE)
        return int(found) / 1024

    def close(self) -> None:
        """End it."""
        self._tmux("kill-server")


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


class Tour:
    """Goes through the stops, and keeps how long each took.

    Attributes:
        spent: By stop, the time of each (``time.monotonic``) and its milliseconds.
        failed: What did not come, with the time.
    """

    def __init__(self, screen: Screen, out: Path | None) -> None:
        """Begin.

        Args:
            screen: The browser.
            out: Where screens are kept.
        """
        self.screen, self._out = screen, out
        self.spent = dict[str, list[tuple[float, float]]]()
        self.failed: list[str] = []
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
        started = time.monotonic()
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

    def _took(self, name: str, started: float) -> None:
        self.spent.setdefault(name, []).append((started, (time.monotonic() - started) * 1_000))

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
            self.stop("key down", _differs(_selected, screen.until("▌")), "j")
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
        self.stop("statistics, all time", _differs(str, self.screen.rest()), "5")
        self.screen.press("q")
        self.screen.until("Sessions")
        self.stop("replay", r"\A Replay ", ">")
        time.sleep(2)  # It plays.
        self.screen.press("q")
        self.screen.until("Sessions")

    def _live(self) -> None:
        self.screen.press("1", "BSpace")
        self.stop("the running session", "Tour [0-9]", "L")
        self.screen.press("Enter", "2", "G")
        for _ in range(20):
            # What changes all the time has no screen that was there before.
            before, started = self.screen.until("following"), time.monotonic()
            self.screen.until(_differs(str, before))
            self._took("live", started)


def _differs(part: Callable[[str], str], before: str) -> Callable[[str], bool]:
    return lambda shown: part(shown) != part(before)


def _selected(shown: str) -> str:
    return "".join(line[:40] for line in shown.splitlines() if line.startswith("▌"))


def told(spent: dict[str, list[tuple[float, float]]], started: float, ended: float) -> list[str]:
    """Return a line for each stop: all of the time, its first tenth and its last.

    Args:
        spent: As in ``Tour``.
        started: When the tour began.
        ended: When it ended.
    """
    tenth = (ended - started) / 10
    lines = []
    for name, found in spent.items():
        parts = [[ms for _, ms in found],
                 [ms for at, ms in found if at < started + tenth],
                 [ms for at, ms in found if at > ended - tenth]]
        first, last = (f"{statistics.median(part):.0f}" if part else "-" for part in parts[1:])
        lines.append(f"{name}: {len(found)} times, median {statistics.median(parts[0]):.0f}, p95"
                     f" {p95(parts[0]):.0f}, most {max(parts[0]):.0f} ms; first {first},"
                     f" last {last}")
    return lines


def run(url: str, minutes: float, out: Path | None) -> int:
    """Tour a store and print what was found; return the exit code.

    Args:
        url: The store.
        minutes: How long.
        out: Where screens are kept.
    """
    recording = subprocess.Popen([sys.executable, "-m", "tests.bench.server_tour", "--record", url,
                                  "--minutes", str(minutes)])  # fmt: skip
    memory: list[float] = []
    with clean_environment() as environment:
        screen = Screen(url, environment)
        tour, started = Tour(screen, out), time.monotonic()
        try:
            screen.until("Retry loop")
            while time.monotonic() < started + minutes * 60:
                tour.round()
                memory.append(screen.memory_mb())
        finally:
            screen.close()
            recording.terminate()
            recording.wait()
        logged = [file.read_text() for file in Path(environment["XDG_STATE_HOME"]).rglob("*.log")]
    print(f"{len(memory)} rounds in {(time.monotonic() - started) / 60:.0f} minutes,"
          f" load {os.getloadavg()}")
    print("\n".join(told(tour.spent, started, time.monotonic())))
    few = max(1, len(memory) // 10)
    print(f"memory: {statistics.median(memory[:few]):.0f} MB in the first rounds,"
          f" {statistics.median(memory[-few:]):.0f} in the last, most {max(memory):.0f}")
    print(f"did not come: {tour.failed or 'nothing'}")
    print(f"words of trouble on screens: {tour.odd or 'none'}")
    print(f"log: {logged or 'empty'}")
    return 1 if tour.failed or any(logged) else 0


def main() -> int:
    """Run what the command line asks for."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=60)
    parser.add_argument("--out", type=Path)
    parser.add_argument("--record", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.record:
        asyncio.run(record(options.record, options.minutes * 60))
        return 0
    if options.out is not None:
        options.out.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as home, filled(SESSIONS) as url:
        os.environ["XDG_DATA_HOME"] = home
        demo = open_database(make_demo(Path(home) / "demo.db", system_clock), write=False)
        store = open_target(url, write=True)
        fill(store, demo)
        store.close()
        demo.close()
        return run(url, options.minutes, options.out)


if __name__ == "__main__":
    sys.exit(main())
