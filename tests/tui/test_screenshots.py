from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest

from tui.screenshots.moving import MOVING, moving_picture
from tui.screenshots.shots import SHOTS, Frame

ROOT = Path(__file__).parents[2]


SLOW = ("search", "search-facets", "statistics", "statistics-year", "light", "twelve-agents",
        "three-panes")
"""Pictures of which each takes seconds."""


@pytest.mark.parametrize("name", [
    pytest.param(shot.name, marks=pytest.mark.long) if shot.name in SLOW else shot.name
    for shot in SHOTS
])
@pytest.mark.one_in(3)
def test_it_shows_the_app_as_it_is(tmp_path: Path, name: str) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "tui.screenshots", name, "--out", str(tmp_path)], cwd=ROOT,
        capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    file = f"{name}.svg"
    drawn, checked_in = (tmp_path / file).read_bytes(), (ROOT / "screenshots" / file).read_bytes()
    # Compared before the assertion: a difference between whole pictures says nothing.
    same = drawn == checked_in
    assert same, "run: python -m tui.screenshots"


def test_there_is_a_picture_of_each_kind_and_no_other() -> None:
    names = {f"{shot.name}.svg" for shot in (*SHOTS, MOVING)}
    assert {path.name for path in (ROOT / "screenshots").glob("*.svg")} == names


SCREEN = """<svg xmlns="http://www.w3.org/2000/svg"><style>.t-r1 {{ fill: #fff;font-weight: bold }}
</style><rect fill="#111" x="0" y="1.5" width="12.2" height="24.65" shape-rendering="crispEdges"/>
<rect fill="#111" x="12.2" y="1.5" width="12.2" height="24.65" shape-rendering="crispEdges"/>
<text class="t-r1" x="0" y="20" textLength="61" clip-path="url(#l)">&#160;{first}&#160;</text>
<text class="t-r1" x="0" y="44.4" textLength="36.6" clip-path="url(#l)">two</text></svg>"""


def test_a_row_that_stays_is_drawn_once_in_the_moving_picture() -> None:
    words = ("one", "a&lt;b")
    picture = moving_picture([Frame(SCREEN.format(first=word), f"k   {word}") for word in words])
    assert picture.count(">two<") == 1 and picture.count(">one<") == picture.count(">a&lt;b<") == 1
    assert '<rect x="0" width="24.4"' in picture
    assert '<text class="c0" x="12.2" y="18.5" textLength="36.6">one<' in picture
    shown = re.findall(r"@keyframes (f[\d-]+)\{(.*?\})\}", picture)
    assert shown == [
        ("f0-1", "0%{visibility:visible}50%{visibility:hidden}"),
        ("f1-2", "0%{visibility:hidden}50%{visibility:visible}100%{visibility:visible}"),
    ]


def test_the_moving_picture_needs_nothing_else() -> None:
    path = ROOT / "screenshots" / f"{MOVING.name}.svg"
    text = path.read_text(encoding="utf-8")
    assert len(text.encode()) < 500_000
    assert "url(" not in text and "<script" not in text and "href" not in text
    root = ElementTree.fromstring(text)
    groups = {group.attrib["class"] for group in root.iter("{http://www.w3.org/2000/svg}g")}
    timed = set(re.findall(r"@keyframes (f[\d-]+)", text))
    assert groups - timed <= {f"f0-{len(MOVING.captions)}"}
