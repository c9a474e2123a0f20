"""Saves what the screen shows, as a picture (SVG) and as text."""

from __future__ import annotations

import re
from collections import defaultdict
from datetime import datetime
from html import unescape
from pathlib import Path

from store.system.files import AlreadyThere, write_whole
from tui.kit.text import cells

COLUMN = 12.2
"""Width of a cell in the pictures that Textual draws."""
_TEXT = re.compile(r'<text [^>]*? x="([\d.]+)"[^>]*?-line-(\d+)\)">([^<]*)</text>')
_REMOTE = re.compile(r',?\s*url\("https?:[^"]*"\)(?:\s*format\("[^"]*"\))?')


def without_remote_fonts(svg: str) -> str:
    """Return a picture that loads nothing from elsewhere when it is opened."""
    return _REMOTE.sub("", svg)


def text_of(svg: str) -> str:
    """Return what a picture shows, row by row."""
    rows: defaultdict[int, str] = defaultdict(str)
    for x, row, content in _TEXT.findall(svg):
        gap = round(float(x) / COLUMN) - cells(rows[int(row)])
        rows[int(row)] += " " * gap + unescape(content).replace("\xa0", " ")
    return "".join(f"{rows[row].rstrip()}\n" for row in range(max(rows, default=-1) + 1))


def save_picture(svg: str, at: float) -> Path:
    """Write a picture and its text into the current folder, and return the picture's path.

    A file that is there stays: the next name that is free for both is taken.

    Args:
        svg: As Textual draws it.
        at: Epoch ms of the time in the name.

    Raises:
        Refused: They cannot be written.
        OSError: The current folder is gone.
    """
    folder, taken = Path.cwd(), datetime.fromtimestamp(at / 1000)
    number = 1
    while True:
        ending = f"-{number}" if number > 1 else ""
        path = folder / f"backscroll-{taken:%Y%m%d-%H%M%S}{ending}.svg"
        number += 1
        if path.with_suffix(".txt").exists():
            continue
        try:
            write_whole(path, [without_remote_fonts(svg)])
        except AlreadyThere:
            continue
        write_whole(path.with_suffix(".txt"), [text_of(svg)])
        return path
