"""What grows with a store: each figure at several sizes, beside the smallest of them.

Lists of up to a million sessions, sessions of up to a million parts in one table, up to a
hundred sources, and fifty sessions that grow at once.
"""

from __future__ import annotations

import asyncio
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import compress
from pathlib import Path

from store.language.query import parse
from store.search.searching import Searcher
from tests.bench import claude_corpus
from tests.bench.browse_bench import cpu_seconds, key_times, open_times, page_times
from tests.bench.live_bench import commit_times
from tests.bench.report import Limits, Line
from tests.bench.search_bench import PAGE, indexer
from tests.bench.search_store import needles, search_store
from tests.bench.terminal import Terminal, clean_environment

WITHIN = Limits(ratio=1.2)
GROWING = 50
LINES_A_SECOND = 1
_START = "import sys; from tui.__main__ import main; sys.exit(main())"


def scale(quick: bool) -> list[Line]:
    """Measure each thing at all of its sizes."""
    return [
        line
        for measure in (_lists, _openings, _pages, _commits, _searches, _sources, _growing)
        for line in measure(quick)
    ]


def _compared(
    what: str, unit: str, figures: Mapping[int, float], *, of: str, limits: Limits = WITHIN,
    cpu_ms: Mapping[int, float] | None = None,
) -> list[Line]:
    """Return a line for each size but the smallest, which is the floor.

    Args:
        what: What was measured.
        unit: Of the figures.
        figures: By size.
        of: What the sizes count.
        limits: What the figure may be, beside that of the smallest size.
        cpu_ms: CPU times by size, where they were taken; for ``details``.
    """
    smallest = min(figures)
    details: dict[str, object] = {"by_size": {str(one): value for one, value in figures.items()}}
    if cpu_ms is not None:
        details["cpu_ms"] = {str(one): value for one, value in cpu_ms.items()}
    return [
        Line("scale", f"{what}, {size:,} {of} beside {smallest:,}", figure, unit,
             figures[smallest], limits, details)
        for size, figure in sorted(figures.items()) if size != smallest
    ]  # fmt: skip


def _medians_ms(seconds: Mapping[int, Sequence[float]]) -> dict[int, float]:
    return {size: statistics.median(times) * 1_000 for size, times in seconds.items()}


def _lists(quick: bool) -> list[Line]:
    sizes = (5_000, 1_000) if quick else (1_000_000, 100_000, 1_000)
    found, spent = key_times(sizes, 5 if quick else 100)
    return _compared("key down in the list", "ms", _medians_ms(found), of="sessions",
                     cpu_ms=_medians_ms(spent))


def _parts(quick: bool) -> tuple[int, ...]:
    return (2_000, 4_000) if quick else (10_000, 100_000, 1_000_000)


def _openings(quick: bool) -> list[Line]:
    return [
        line
        for parts in _parts(quick)
        for line in _compared(
            "Enter to the transcript", "ms",
            _medians_ms(open_times(parts, 2 if quick else 15)), of="parts")
    ]


def _pages(quick: bool) -> list[Line]:
    paged, spent = page_times(_parts(quick), 5 if quick else 150)
    return _compared("page down", "ms", _medians_ms(paged), of="parts",
                     cpu_ms=_medians_ms(spent))


def _commits(quick: bool) -> list[Line]:
    came = commit_times(_parts(quick), 2 if quick else 25)
    return _compared("commit to screen", "ms", _medians_ms(came), of="parts")


def _searches(quick: bool) -> list[Line]:
    sizes = (1_000, 5_000) if quick else (10_000, 100_000, 1_000_000)
    stores = {parts: search_store(parts) for parts in sizes}
    for store in stores.values():
        subprocess.run(indexer(store, "--once"), check=True)
    found, spent = asyncio.run(_first_hits(stores, 2 if quick else 20))
    return [
        line
        for kind in _KINDS
        for line in _compared(f"first hits of {kind}", "ms", _medians_ms(found[kind]), of="parts",
                              cpu_ms=_medians_ms(spent[kind]))
    ]


_KINDS = ("a common word", "an absent word")
"""A rare word has more hits the larger the store is, and each is read from the rows."""
_ByKind = dict[str, dict[int, list[float]]]


async def _first_hits(stores: Mapping[int, Path], rounds: int) -> tuple[_ByKind, _ByKind]:
    """Search in stores in turn, each round beginning with another.

    Args:
        stores: By their number of parts.
        rounds: How often, after one that is not counted.

    Returns:
        The seconds to the first hits, or to the word that there are none, and the CPU seconds.
    """
    searchers = [
        (parts, await Searcher.open(store), needles(parts)) for parts, store in stores.items()
    ]
    found: _ByKind = {kind: {parts: [] for parts in stores} for kind in _KINDS}
    spent: _ByKind = {kind: {parts: [] for parts in stores} for kind in _KINDS}
    for number in range(-1, rounds):
        first = number % len(searchers)
        for parts, searcher, words in searchers[first:] + searchers[:first]:
            for kind in _KINDS:
                started, before = time.perf_counter(), time.process_time()
                query = parse(words[kind], now=int(time.time() * 1000), zone=None)
                async for update in searcher.search(query, limit=PAGE, counting=False):
                    if update.ready:
                        break
                if number >= 0:
                    found[kind][parts].append(time.perf_counter() - started)
                    spent[kind][parts].append(time.process_time() - before)
    for _, searcher, _ in searchers:
        await searcher.close()
    return found, spent


def _sources(quick: bool) -> list[Line]:
    """Sync places that have nothing new, all in one library: the same number of files.

    Each place is looked through anew, so what is compared is what one more of them takes.
    """
    files = 20 if quick else 200
    few, some, many = (1, 2, 5) if quick else (1, 10, 100)
    figures = {}
    for count in (few, some, many):
        with tempfile.TemporaryDirectory() as folder:
            roots = [Path(folder) / f"place{number}" for number in range(count)]
            for number, root in enumerate(roots):
                claude_corpus.make(root, files // count, 10, number + 1)
            _sync(folder, roots)
            again = [_sync(folder, roots) for _ in range(1 if quick else 15)]
        figures[count] = statistics.median(again) * 1_000
    each = {
        count: max(figures[count] - figures[few], 0.0) / (count - few) for count in (some, many)
    }
    return [
        Line("scale", f"sync of {files} files in {few} place, nothing new", figures[few], "ms",
             limits=Limits(value=100), details={str(count): ms for count, ms in figures.items()}),
        Line("scale", f"the same in {many} places, for each further one beside {some} places",
             each[many], "ms", each[some], WITHIN),
    ]  # fmt: skip


def _sync(folder: str, roots: Sequence[Path]) -> float:
    done = subprocess.run(
        [sys.executable, "-m", "store.sync", "--json", "--store", f"{folder}/s.db",
         *map(str, roots)],
        cwd=Path(__file__).parents[2], env={**os.environ, "XDG_CONFIG_HOME": folder},
        check=True, capture_output=True, text=True,
    )  # fmt: skip
    return float(json.loads(done.stdout.splitlines()[-1])["seconds"])


# -- sessions that grow at once


@dataclass(slots=True)
class _Spent:
    """CPU shares in percent of one processor, of the browser and the processes it starts."""

    app: list[float] = field(default_factory=list)
    watcher: list[float] = field(default_factory=list)
    upkeep: list[float] = field(default_factory=list)


def _growing(quick: bool) -> list[Line]:
    """Append to sessions while the browser shows the list, at one line and at four a second."""
    seconds, few = (2, 3) if quick else (20, GROWING)
    spent = _Spent()
    rates = (LINES_A_SECOND, 4 * LINES_A_SECOND)
    written = [_grow(few, rate, seconds, spent) for rate in rates]
    what = f"{few} sessions that grow by a line a second each"
    lines = [
        Line("scale", f"CPU of the browser, {what}", spent.app[0], "%", limits=Limits(value=5),
             details={"at_4_lines": spent.app[1], "kb_a_second": written})
    ]  # fmt: skip
    for who, shares in (("watcher", spent.watcher), ("upkeep", spent.upkeep)):
        once, more = (share / size for share, size in zip(shares, written, strict=True))
        lines.append(Line(
            "scale", f"CPU of the {who} per kB a second, four times as much beside once",
            more, "%", once, WITHIN, {who: shares, "kb_a_second": written}))
    return lines


def _grow(count: int, rate: int, seconds: int, spent: _Spent) -> float:
    """Append lines to sessions; return the kB a second that were written.

    Args:
        count: How many sessions grow.
        rate: Lines a second of each.
        seconds: How long.
        spent: Takes the CPU shares.
    """
    with clean_environment() as environment, tempfile.TemporaryDirectory() as home:
        claude_corpus.make(Path(home) / ".claude", count, 20)
        files = sorted((Path(home) / ".claude" / "projects").rglob("*.jsonl"))
        environment = environment | {"HOME": home}
        with Terminal([sys.executable, "-c", _START], environment) as terminal:
            terminal.until(f"{count:,} sessions".encode())
            terminal.quiet(1.0)
            last = [_last_row(path) for path in files]
            pids = [terminal.process.pid, *_children(terminal.process.pid)]
            before, size = [cpu_seconds(pid) for pid in pids], 0
            started = time.perf_counter()
            for number in range(rate * seconds):
                for place, path in enumerate(files):
                    line = claude_corpus.next_line(last[place], number)
                    last[place] = line.rstrip(b"\n")
                    with path.open("ab") as file:
                        size += file.write(line)
                terminal.rest(max(0.0, started + (number + 1) / rate - time.perf_counter()))
            took = time.perf_counter() - started
            own, *shares = [
                100 * (cpu_seconds(pid) - seen) / took
                for pid, seen in zip(pids, before, strict=True)
            ]
            syncs = [b"store.sync" in Path(f"/proc/{pid}/cmdline").read_bytes() for pid in pids[1:]]
    spent.app.append(own)
    spent.watcher.append(sum(compress(shares, syncs)))
    spent.upkeep.append(sum(shares) - spent.watcher[-1])
    return size / took / 1_000


def _last_row(path: Path) -> bytes:
    """Return the last line of a session's file that is a row of the conversation."""
    lines = path.read_bytes().splitlines()
    return next(line for line in reversed(lines) if b'"parentUuid"' in line)


def _children(pid: int) -> list[int]:
    """Return the processes that a process has started, and theirs."""
    found: list[int] = []
    for task in Path(f"/proc/{pid}/task").glob("*/children"):
        for child in map(int, task.read_text().split()):
            found += [child, *_children(child)]
    return found
