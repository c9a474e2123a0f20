"""``python -m tui.screenshots``: draws the real app into SVG files."""

from __future__ import annotations

import argparse
import asyncio
import os
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from store.system.streams import guard_streams
from tui.screenshots.moving import MOVING, moving_picture
from tui.screenshots.shots import SHOTS, fixed_environment, frames

FOLDER = Path("screenshots")


def main(arguments: Sequence[str] | None = None) -> int:
    """Draw the pictures.

    Args:
        arguments: The command line; the process's by default.

    Returns:
        The exit code.
    """
    parser = argparse.ArgumentParser(prog="python -m tui.screenshots", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help="the pictures to draw (all)")
    parser.add_argument("--out", type=Path, default=FOLDER, help="the folder (screenshots)")
    parser.add_argument(
        "--moving", action="store_true", help="draw the moving picture instead of the others"
    )
    options = parser.parse_args(arguments)
    shots = [shot for shot in SHOTS if not options.names or shot.name in options.names]
    if len(shots) < len(set(options.names)):
        parser.error(f"the pictures are {', '.join(shot.name for shot in SHOTS)}")
    if options.moving:
        shots = [MOVING]
    out = options.out.absolute()
    out.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as name:
        os.environ.update(fixed_environment(Path(name)))
        os.environ.pop("NO_COLOR", None)
        time.tzset()
        for shot in shots:
            drawn = asyncio.run(frames(shot, Path(name)))
            path = out / f"{shot.name}.svg"
            picture = moving_picture(drawn) if options.moving else drawn[-1].svg
            path.write_text(picture, encoding="utf-8")
            print(path)
    return 0


if __name__ == "__main__":
    guard_streams()
    sys.exit(main())
