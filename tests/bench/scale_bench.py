"""What grows with a store: each figure at several sizes, beside the smallest of them.

Lists of up to a million sessions, sessions of up to a million parts in one table, up to a
hundred sources, and fifty sessions that grow at once.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
import traceback
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import compress
from pathlib import Path

from store.language.query import parse
from store.search.searching import Searcher
from tests.bench import claude_corpus
from tests.bench.browse_bench import (
    cpu_seconds,
    key_times,
    open_times,
    open_times_in,
    page_times,
)
from tests.bench.kept import with_sidecars
from tests.bench.live_bench import commit_times
from tests.bench.long_session import SMALL_PARTS
from tests.bench.many_sessions import list_store
from tests.bench.report import Limits, Line
from tests.bench.search_bench import PAGE, indexer
from tests.bench.search_store import needles, search_store
from tests.bench.talks import Talk, long_talk, short_talk, short_talk_in
from tests.bench.terminal import Terminal, clean_environment

WITHIN = Limits(ratio=1.2)
GROWING = 50
LINES_A_SECOND = 1
_START = "import sys; from tui.__main__ import main; sys.exit(main())"


def scale(quick: bool) -> Iterator[Line]:
    """Measure each thing at all of its sizes; yields the lines as they come.

    Raises:
        RuntimeError: Something could not be measured; all else was.
    """
    failed = []
    for measure in (
        _lists, _in_lists, _openings, _in_sessions, _searches, _sources, _growing
    ):
        started = time.monotonic()
        try:
            yield from measure(quick)
        except Exception as error:
            traceback.print_exc()
            failed.append(f"{measure.__name__}: {error}")
        print(f"scale {measure.__name__}: {time.monotonic() - started:.0f} s, load "
              f"{os.getloadavg()[0]:.1f}", file=sys.stderr, flush=True)  # fmt: skip
    if failed:
        raise RuntimeError("; ".join(failed))


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


def _sessions(quick: bool) -> tuple[int, ...]:
    return (5_000, 1_000) if quick else (1_000_000, 100_000, 1_000)


def _lists(quick: bool) -> list[Line]:
    found, spent = key_times(_sessions(quick), 5 if quick else 100)
    return _compared("key down in the list", "ms", _medians_ms(found), of="sessions",
                     cpu_ms=_medians_ms(spent))


def _parts(quick: bool) -> tuple[int, ...]:
    return (2_000, 4_000) if quick else (10_000, 100_000, 1_000_000)


def _openings(quick: bool) -> Iterator[Line]:
    for parts in _parts(quick):
        opened, spent = open_times(parts, 2 if quick else 15)
        yield from _compared("Enter to the transcript", "ms", _medians_ms(opened), of="parts",
                             cpu_ms=_medians_ms(spent))


def _in_sessions(quick: bool) -> Iterator[Line]:
    """Page, and add to, sessions of many parts, beside one of a hundred."""
    with short_talk() as short:
        talks = {SMALL_PARTS: short} | {parts: long_talk(parts) for parts in _parts(quick)}
        yield from _read_and_grown(talks, "parts", 5 if quick else 100, 2 if quick else 20)


def _read_and_grown(
    talks: Mapping[int, Talk], of: str, pages: int, commits: int
) -> Iterator[Line]:
    """Page sessions, and add to them.

    Args:
        talks: The sessions by size.
        of: What the size counts.
        pages: How often each is paged.
        commits: How often something is added to each.
    """
    paged, spent = page_times(talks, pages)
    yield from _compared("page down", "ms", _medians_ms(paged), of=of, cpu_ms=_medians_ms(spent))
    came, spent = commit_times(talks, commits)
    yield from _compared("commit to screen", "ms", _medians_ms(came), of=of,
                         cpu_ms=_medians_ms(spent))


def _in_lists(quick: bool) -> Iterator[Line]:
    """Open a session of a hundred parts in stores of many sessions, page it, and add to it."""
    with contextlib.ExitStack() as stack:
        talks = {
            size: stack.enter_context(short_talk_in(list_store(size)))
            for size in reversed(_sessions(quick))
        }
        opened, spent = open_times_in(talks, 2 if quick else 15)
        yield from _compared("Enter to the transcript", "ms", _medians_ms(opened), of="sessions",
                             cpu_ms=_medians_ms(spent))
        yield from _read_and_grown(talks, "sessions", 5 if quick else 60, 2 if quick else 20)


def _searches(quick: bool) -> Iterator[Line]:
    sizes = (1_000, 5_000) if quick else (1_000, 10_000, 100_000, 1_000_000)
    by_parts = {
        parts: (search_store(parts), {kind: needles(parts)[kind] for kind in _KINDS})
        for parts in sizes
    }
    by_sessions = {
        size: (with_sidecars(list_store(size)), {"a common word": "assistant",
                                                 "an absent word": "xylophagous"})
        for size in reversed(_sessions(quick))
    }  # fmt: skip
    for store, _ in by_parts.values():
        subprocess.run(indexer(store, "--once"), check=True)
    for of, stores in (("parts", by_parts), ("sessions", by_sessions)):
        found, spent = asyncio.run(_first_hits(stores, 2 if quick else 30))
        for kind in found:
            yield from _compared(f"first hits of {kind}", "ms", _medians_ms(found[kind]), of=of,
                                 cpu_ms=_medians_ms(spent[kind]))


_KINDS = ("a common word", "an absent word", "a common phrase")
"""A rare word has more hits the larger the store is, and each is read from the rows. A store of
1,000 parts has too few of the phrase for a page."""
_ByKind = dict[str, dict[int, list[float]]]


async def _first_hits(
    stores: Mapping[int, tuple[Path, Mapping[str, str]]], rounds: int
) -> tuple[_ByKind, _ByKind]:
    """Search in stores in turn, each round beginning with another.

    Args:
        stores: By their size, each with what is searched for, by its kind.
        rounds: How often, after one that is not counted.

    Returns:
        The seconds to the first hits, or to the word that there are none, and the CPU seconds;
        without the kinds of which a store has less than a page.
    """
    searchers = [
        (size, await Searcher.open(store), words) for size, (store, words) in stores.items()
    ]
    found: _ByKind = {}
    spent: _ByKind = {}
    for number in range(-1, rounds):
        first = number % len(searchers)
        for size, searcher, words in searchers[first:] + searchers[:first]:
            for kind, word in words.items():
                started, before = time.perf_counter(), time.process_time()
                query = parse(word, now=int(time.time() * 1000), zone=None)
                async for update in searcher.search(query, limit=PAGE, counting=False):
                    if update.ready:
                        break
                if number >= 0 and len(update.page.hits) in (0, PAGE):
                    found.setdefault(kind, {}).setdefault(size, []).append(
                        time.perf_counter() - started)
                    spent.setdefault(kind, {}).setdefault(size, []).append(
                        time.process_time() - before)
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
            last = [last_row(path) for path in files]
            pids = [terminal.process.pid, *children(terminal.process.pid)]
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


def last_row(path: Path) -> bytes:
    """Return the last line of a session's file that is a row of the conversation."""
    lines = path.read_bytes().splitlines()
    return next(line for line in reversed(lines) if b'"parentUuid"' in line)


def children(pid: int) -> list[int]:
    """Return the processes that a process has started, and theirs."""
    found: list[int] = []
    for task in Path(f"/proc/{pid}/task").glob("*/children"):
        with contextlib.suppress(OSError):  # It has ended meanwhile.
            for child in map(int, task.read_text().split()):
                found += [child, *children(child)]
    return found
