"""Prints each text of a JSON file, asks the terminal for its cursor's column, and writes those.

Run as ``python report_columns.py TEXTS.json COLUMNS.json`` in the terminal in question.
"""

from __future__ import annotations

import json
import os
import re
import sys
import termios
import tty
from pathlib import Path

if __name__ == "__main__":
    source, target = map(Path, sys.argv[1:])
    columns = []
    before = termios.tcgetattr(0)
    tty.setraw(0)
    try:
        for text in json.loads(source.read_text()):
            os.write(1, b"\x1b[H\x1b[2K" + text.encode() + b"\x1b[6n")
            answer = b""
            while (found := re.search(rb"\x1b\[\d+;(\d+)R", answer)) is None:
                answer += os.read(0, 64)
            columns.append(int(found[1]) - 1)
    finally:
        termios.tcsetattr(0, termios.TCSANOW, before)
    whole = target.with_suffix(".new")
    whole.write_text(json.dumps(columns))
    whole.rename(target)
