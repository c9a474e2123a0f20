"""Breaks the store's work at random moments and checks what is left: ``python -m tests.faults``.

Each round works in a process of its own, which is killed (SIGKILL), finds the disk full, or sees
the clock jump. Then ``doctor`` must find nothing that it does not mend, and all that was
acknowledged must be there.
"""

from __future__ import annotations

import argparse
import sys
import time

from tests.faults.rounds import FAULTS, run_rounds
from tests.faults.targets import TARGETS


def main() -> int:
    """Run, and return 1 where a round failed."""
    parser = argparse.ArgumentParser(prog="python -m tests.faults", description=__doc__)
    parser.add_argument("targets", nargs="*", metavar="TARGET",
                        help=f"what to break: {', '.join(TARGETS)} (default: all)")
    parser.add_argument("--fault", action="append", choices=FAULTS, help="only this fault")
    parser.add_argument("--minutes", type=float, default=5.0, help="how long (default: 5)")
    parser.add_argument("--rounds", type=int, help="so many rounds of each instead")
    parser.add_argument("--seed", type=int, default=0, help="the first seed (default: 0)")
    options = parser.parse_args()
    names = options.targets or list(TARGETS)
    if unknown := [name for name in names if name not in TARGETS]:
        parser.error(f"no target {unknown[0]!r}; there are {', '.join(TARGETS)}")
    ends = time.monotonic() + options.minutes * 60

    def goes_on(done: int) -> bool:
        return time.monotonic() < ends if options.rounds is None else done < int(options.rounds)

    count, killed, failed = run_rounds(names, options.fault or list(FAULTS), options.seed, goes_on)
    what = f"{count} rounds of {', '.join(names)}, {killed} killed in the middle"
    print(f"{what}: {len(failed)} failed", *failed, sep="\n  ")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
