"""The moving picture of the README: a recorded session of the real app as one animated SVG.

A row of the screen that stays the same over some frames is drawn once, so that the file stays
small. It needs no script and no font of its own: CSS alone shows and hides the rows, which a
browser also does for an image in a page.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Sequence
from html import escape
from xml.etree import ElementTree

from tui.screenshots.shots import Frame, Shot

SECONDS = 2.0
"""How long each frame is shown."""
COLUMN, LINE = 12.2, 24.4
"""Width and height of a cell in the pictures that Textual draws."""
MARGIN, TOP, ABOVE_CAPTION = 14, 12, 8
_BACKGROUND, _DIMMED, _BRIGHT = "#101521", "#7b8597", "#d5d9e0"
_SVG = "{http://www.w3.org/2000/svg}"
_FONT = "'Fira Code',ui-monospace,Menlo,Consolas,'DejaVu Sans Mono',monospace"
_RULE = re.compile(r"\.([\w-]+) \{ (.*?);? ?\}")

_STEPS: tuple[tuple[tuple[str, ...], str], ...] = (
    ((), "the sessions of your agents, by workspace"),
    (("enter",), "enter   open a session: this one still runs, and is followed"),
    (("E",), "E   go to the previous error or denied call"),
    (("enter",), "enter   inspect it"),
    (("escape", "escape", "d"), "d   time, tokens and cost of each turn"),
    (("escape", "2", "greater_than_sign", "space", "home", "]"), ">   replay it as it happened"),
    (("4",), "4   go to a tenth of it: what was there then"),
    (("right", "right"), "→   the next message, after a rewind hid some"),
    (("escape", "1", "/"), "/   filter the list"),
    (("i", "s", "colon", *"waiting"), "is:waiting   the sessions that wait for you"),
    (("enter", "backspace", *"jjjjj", "enter", "["), "enter   open another one"),
    (("f",), "f   fork the session at this message"),
    (("enter",), "enter   a new session with all up to here"),
    (("U",), "U   undo"),
)
"""The keys before each frame, and what the picture says of them."""


def _moving() -> Shot:
    keys: list[str] = []
    captions = []
    for pressed, caption in _STEPS:
        keys += pressed
        captions.append((len(keys), caption))
    return Shot("moving", (110, 32), tuple(keys), captions=tuple(captions))


MOVING = _moving()


def moving_picture(frames: Sequence[Frame]) -> str:
    """Return the animated SVG.

    Args:
        frames: The screens, all of one size.
    """
    styles: dict[str, str] = {}
    screens = [_rows(frame.svg, styles) for frame in frames]
    columns, lines = MOVING.size
    for screen, frame in zip(screens, frames, strict=True):
        screen[lines] = _caption(frame.caption)
    groups: list[str] = []
    spans: set[tuple[int, int]] = set()
    for row in range(lines + 1):
        for first, end, content in _runs([screen.get(row, "") for screen in screens]):
            spans.add((first, end))
            y = round(TOP + row * LINE + (ABOVE_CAPTION if row == lines else 0), 1)
            groups.append(
                f'<g class="f{first}-{end}" transform="translate({MARGIN},{y:g})">{content}</g>'
            )
    width = round(columns * COLUMN + 2 * MARGIN)
    height = round(TOP + (lines + 1) * LINE + 2 * ABOVE_CAPTION)
    style = "".join([
        "text{font:20px ", _FONT, ";white-space:pre}",
        *(f".{name}{{{rule}}}" for rule, name in styles.items()),
        *(_timing(first, end, len(frames)) for first, end in sorted(spans)),
    ])  # fmt: skip
    return "\n".join([
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}">',
        "<title>A recorded session of Backscroll</title>",
        f"<style>{style}</style>",
        f'<rect width="{width}" height="{height}" rx="10" fill="{_BACKGROUND}"/>',
        *groups,
        "</svg>\n",
    ])  # fmt: skip


def _rows(svg: str, styles: dict[str, str]) -> dict[int, str]:
    """Return the elements of each row of a screen.

    Args:
        svg: The picture that Textual draws.
        styles: Class by style rule; new ones are added.
    """
    root = ElementTree.fromstring(svg)
    rules = dict(_RULE.findall(root.findtext(f"{_SVG}style") or ""))
    rows: defaultdict[int, list[str]] = defaultdict(list)
    rectangles: defaultdict[int, list[tuple[float, float, str]]] = defaultdict(list)
    for element in root.iter(f"{_SVG}rect"):
        if element.get("shape-rendering") == "crispEdges":
            row = round((float(element.attrib["y"]) - 1.5) / LINE)
            x, width = _number(element, "x"), _number(element, "width")
            before = rectangles[row]
            if before and before[-1][2] == element.attrib["fill"]:
                x, width = before[-1][0], x + width - before.pop()[0]
            before.append((x, width, element.attrib["fill"]))
    for row, found in rectangles.items():
        rows[row] = [
            f'<rect x="{x:g}" width="{round(width, 1):g}" height="24.7" fill="{fill}"/>'
            for x, width, fill in found
        ]
    for element in root.iter(f"{_SVG}text"):
        if "clip-path" in element.attrib:
            row = round((float(element.attrib["y"]) - 20) / LINE)
            rule = rules[element.attrib["class"]].replace(": ", ":")
            rows[row].append(_text(element, styles.setdefault(rule, f"c{len(styles)}")))
    return {row: "".join(elements) for row, elements in rows.items()}


def _text(element: ElementTree.Element, name: str) -> str:
    """Return a text without the blanks around it; ``name`` is the class of its style."""
    text = (element.text or "").replace("\xa0", " ")
    x, length = _number(element, "x"), _number(element, "textLength")
    kept = text.strip()
    if not kept:
        return ""
    before = len(text) - len(text.lstrip())
    after = len(text) - len(text.rstrip())
    x, length = x + before * COLUMN, length - (before + after) * COLUMN
    return (
        f'<text class="{name}" x="{round(x, 1):g}" y="18.5" textLength="{round(length, 1):g}">'
        f"{escape(kept, quote=False)}</text>"
    )


def _number(element: ElementTree.Element, name: str) -> float:
    return round(float(element.attrib[name]), 1)


def _caption(text: str) -> str:
    """Return the line below the screen: the keys, and what they do."""
    keys, _, what = text.rpartition("   ")
    shown = f'<tspan fill="{_BRIGHT}" font-weight="bold">{escape(keys)}</tspan>  ' if keys else ""
    return f'<text y="18.5" fill="{_DIMMED}">{shown}{escape(what)}</text>'


def _runs(contents: Sequence[str]) -> list[tuple[int, int, str]]:
    """Return what a row shows: the first frame, the one after the last, and the elements."""
    runs: list[tuple[int, int, str]] = []
    for number, content in enumerate(contents):
        if runs and runs[-1][2] == content:
            runs[-1] = (runs[-1][0], number + 1, content)
        else:
            runs.append((number, number + 1, content))
    return [run for run in runs if run[2]]


def _timing(first: int, end: int, frames: int) -> str:
    """Return the rules that show a group from a frame on, until another; 0 is shown at rest.

    Args:
        first: The first frame that shows it.
        end: The frame after the last.
        frames: How many there are.
    """
    name = f"f{first}-{end}"
    if (first, end) == (0, frames):
        return ""
    shown = {0.0: first == 0, first / frames: True, end / frames: end == frames}
    steps = "".join(
        f"{round(at * 100, 3):g}%{{visibility:{'visible' if visible else 'hidden'}}}"
        for at, visible in sorted(shown.items())
    )
    rest = "visible" if first == 0 else "hidden"
    return (
        f".{name}{{visibility:{rest};animation:{name} {frames * SECONDS:g}s step-end infinite}}"
        f"@keyframes {name}{{{steps}}}"
    )
