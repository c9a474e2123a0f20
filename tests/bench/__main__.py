"""Measures the design's numbers and prints them as a table.

    python -m tests.bench [--quick] [--json FILE] [--only NAME...]

``--quick`` runs everything once on small stores: it shows that the bench works, its times
mean nothing. Exit code 1: something could not be measured. A missed number is no error.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import sys
import time
import traceback
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from tests.bench import (
    browse_bench,
    bytes_bench,
    events_bench,
    files_bench,
    live_bench,
    loop_bench,
    replay_bench,
    scale_bench,
    search_bench,
    server_bench,
    stats_bench,
    typing_bench,
    write_bench,
)
from tests.bench.report import Line, table

Bench = Callable[[bool], Iterable[Line]]
BENCHES: dict[str, Bench] = {
    "start": browse_bench.start,
    "list": browse_bench.list_key,
    "held": browse_bench.held_keys,
    "open": browse_bench.open_session,
    "page": browse_bench.pages,
    "bytes": bytes_bench.count_bytes,
    "live": live_bench.live,
    "sync": write_bench.sync,
    "first": write_bench.first_run,
    "kinds": write_bench.kinds,
    "grow": write_bench.grow,
    "record": write_bench.record,
    "events": events_bench.events,
    "loop": loop_bench.loop,
    "fork": write_bench.fork,
    "search": search_bench.search,
    "server": server_bench.server,
    "stats": stats_bench.statistics,
    "type": typing_bench.type_searches,
    "files": files_bench.files,
    "replay": replay_bench.replay,
    "scale": scale_bench.scale,
}


def run(names: list[str], quick: bool) -> tuple[list[Line], list[str]]:
    """Run benches; return their lines, and the names of those that failed."""
    lines: list[Line] = []
    failed: list[str] = []
    for name in names:
        started = time.monotonic()
        try:
            for line in BENCHES[name](quick):
                lines.append(line)
                cells = "  ".join(cell for cell in line.cells() if cell)
                print(cells, file=sys.stderr, flush=True)
        except Exception:
            traceback.print_exc()
            failed.append(name)
        print(f"{name}: {time.monotonic() - started:.0f} s", file=sys.stderr, flush=True)
    return lines, failed


def machine() -> dict[str, Any]:
    """Return what the figures depend on."""
    return {
        "python": platform.python_version(), "system": platform.system(),
        "machine": platform.machine(), "processors": os.cpu_count(), "load": os.getloadavg(),
    }  # fmt: skip


def main() -> int:
    """Run what the command line asks for."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="small stores, each thing once")
    parser.add_argument("--json", type=Path, metavar="FILE", help="also write the lines here")
    parser.add_argument("--only", nargs="+", choices=sorted(BENCHES), metavar="NAME",
                        help=", ".join(BENCHES))  # fmt: skip
    options = parser.parse_args()
    before = machine()
    lines, failed = run(options.only or list(BENCHES), options.quick)
    print(table(lines))
    if options.quick:
        print("\nA quick run: its times mean nothing.")
    if options.json is not None:
        told = {
            "quick": options.quick, "machine": before, "load_after": os.getloadavg(),
            "lines": [line.as_json() for line in lines], "failed": failed,
        }  # fmt: skip
        options.json.write_text(json.dumps(told, indent=2) + "\n")
    if failed:
        print("could not be measured: " + ", ".join(failed), file=sys.stderr)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
