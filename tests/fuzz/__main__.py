"""Runs rounds of fuzzing for some minutes and prints what failed: ``python -m tests.fuzz``."""

from __future__ import annotations

import argparse
import sys
import time
import traceback

from tests.fuzz.rounds import TARGETS, one


def main() -> int:
    """Run, and return 1 where a round failed."""
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    parser.add_argument("targets", nargs="*", metavar="TARGET",
                        help=f"what to try: {', '.join(TARGETS)} (default: all)")
    parser.add_argument("--minutes", type=float, default=5.0, help="how long (default: 5)")
    parser.add_argument("--seed", type=int, default=0, help="the first seed (default: 0)")
    options = parser.parse_args()
    chosen = options.targets or list(TARGETS)
    if unknown := [name for name in chosen if name not in TARGETS]:
        parser.error(f"no target {unknown[0]!r}; there are {', '.join(TARGETS)}")
    ends, seed, failed = time.monotonic() + options.minutes * 60, options.seed, 0
    while time.monotonic() < ends:
        for name in chosen:
            try:
                one(name, seed)
            except Exception:
                failed += 1
                print(f"{name}, seed {seed}:\n{traceback.format_exc()}", flush=True)
        seed += 1
    print(f"{seed - options.seed} rounds of {', '.join(chosen)}: {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
