"""Which rooms import which: read from the code, drawn as a picture for the documentation.

A room is a folder of ``store`` or ``tui``, or a module beside these folders. ``python -m
tests.rooms`` draws ``docs/imports.svg``; a test compares it with the code.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cache
from html import escape
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[1]
PICTURE = ROOT / "docs" / "imports.svg"
PACKAGES = ("store", "tui")
TOOLS = frozenset({"tui.screenshots", "tui.documents"})
"""Programs for developers; they may import everything and nothing imports them."""
AGENTS = "store.sources.<agent>"

Graph = dict[str, set[str]]


def room_of(module: str) -> str:
    """Return the room of a module, by dotted names: ``store.sync.engine`` is in ``store.sync``.

    The commands that a screen declares belong to the keys: they only name what they call.
    """
    steps = module.split(".")
    if len(steps) > 2 and steps[0] == "tui" and steps[2] == "commands":
        return "tui.keys"
    if len(steps) > 2 and steps[:2] == ["store", "sources"]:
        if steps[2] == "base":
            return "store.sources.base"
        return AGENTS if (ROOT / "store" / "sources" / steps[2]).is_dir() else "store.sources"
    return ".".join(steps[:2])


def imports(code: ast.Module) -> Iterator[tuple[str, bool]]:
    """Yield what a module imports, inside functions too, and if for type checking alone."""
    nodes = list(ast.walk(code))
    for_types = {
        id(inner)
        for node in nodes
        if isinstance(node, ast.If) and any(
            "TYPE_CHECKING" in (getattr(one, "id", ""), getattr(one, "attr", ""))
            for one in ast.walk(node.test))
        for statement in node.body
        for inner in ast.walk(statement)
    }
    by_name = any(
        "import_module" in getattr(node, "id", "") or "import_module" in getattr(node, "attr", "")
        for node in nodes
    )
    for node in nodes:
        alone = id(node) in for_types
        if isinstance(node, ast.Import):
            yield from ((alias.name, alone) for alias in node.names)
        elif by_name and isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.value, alone
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield from ((f"{node.module}.{alias.name}", alone) for alias in node.names)


@cache
def imports_of_modules() -> dict[str, list[tuple[str, bool]]]:
    """Return the imports of each module of the product, by its dotted name."""
    found = {}
    for package in PACKAGES:
        for path in sorted((ROOT / package).rglob("*.py")):
            name = ".".join(path.relative_to(ROOT).with_suffix("").parts)
            code = ast.parse(path.read_text("utf-8"))
            found[name.removesuffix(".__init__")] = list(imports(code))
    return found


@cache
def module_graph(*, types: bool = False) -> Graph:
    """Return which modules each module imports.

    Args:
        types: Also what is imported for type checking alone.
    """
    found = imports_of_modules()
    graph: Graph = {name: set() for name in found}
    for name, imported_names in found.items():
        for imported, alone in imported_names:
            target = imported if imported in found else imported.rpartition(".")[0]
            if target in found and target not in (name, *PACKAGES) and (types or not alone):
                graph[name].add(target)
    return graph


def room_graph() -> Graph:
    """Return which rooms each room imports; programs for developers are left out."""
    graph: Graph = {}
    for name, imported in module_graph().items():
        room = room_of(name)
        if name in PACKAGES or room in TOOLS:
            continue
        graph.setdefault(room, set()).update(room_of(one) for one in imported)
    for room, others in graph.items():
        others.discard(room)
    # The registry names every agent's source; the sources do not know it.
    graph.get("store.sources", set()).discard("store.sources")
    return graph


def circles(graph: Graph) -> list[list[str]]:
    """Return the groups of rooms or modules that import each other, each sorted."""
    order: list[str] = []
    seen: set[str] = set()

    def visit(start: str, edges: Graph, into: list[str]) -> None:
        stack = [(start, iter(sorted(edges.get(start, ()))))]
        seen.add(start)
        while stack:
            at, left = stack[-1]
            following = next((one for one in left if one not in seen), None)
            if following is None:
                into.append(at)
                stack.pop()
            else:
                seen.add(following)
                stack.append((following, iter(sorted(edges.get(following, ())))))

    for name in sorted(graph):
        if name not in seen:
            visit(name, graph, order)
    backwards: Graph = {}
    for name, others in graph.items():
        for other in others:
            backwards.setdefault(other, set()).add(name)
    seen.clear()
    found = []
    for name in reversed(order):
        if name not in seen:
            group: list[str] = []
            visit(name, backwards, group)
            found.append(sorted(group))
    return sorted(group for group in found if len(group) > 1)


# The picture

BOX_WIDTH, BOX_HEIGHT, GAP, FLOOR, HEADING, BETWEEN = 116, 32, 14, 74, 30, 40
STYLE = """
  text { font: 12px system-ui, sans-serif; fill: #1f2328; text-anchor: middle; }
  .store rect { fill: #ddf4ff; stroke: #0969da; }
  .tui rect { fill: #fff8c5; stroke: #9a6700; }
  path { fill: none; stroke: #656d76; stroke-opacity: .45; marker-end: url(#head); }
  .label { font-size: 16px; font-weight: 600; text-anchor: start; }
"""


def floors(graph: Graph) -> dict[str, int]:
    """Return the floor of each room: 0 for one that imports none, else above all it imports."""
    found: dict[str, int] = {}

    def floor(room: str) -> int:
        if room not in found:
            found[room] = 1 + max((floor(one) for one in graph.get(room, ())), default=-1)
        return found[room]

    for room in graph:
        floor(room)
    return found


def direct(graph: Graph) -> Graph:
    """Return a graph without the arrows that a longer way says too."""

    def reached(room: str, found: set[str]) -> set[str]:
        for one in graph.get(room, ()):
            if one not in found:
                found.add(one)
                reached(one, found)
        return found

    return {
        room: {
            one for one in others
            if not any(one in reached(other, set()) for other in others if other != one)
        }
        for room, others in graph.items()
    }  # fmt: skip


def rows_of(graph: Graph, arrows: Graph) -> list[list[str]]:
    """Return the rooms of each floor, lowest first, ordered so that arrows cross little."""
    at = floors(graph)
    rows: list[list[str]] = [[] for _ in range(1 + max(at.values()))]
    for room in sorted(at):
        rows[at[room]].append(room)
    for _ in range(8):
        place = {
            room: (number + 0.5) / len(row) for row in rows for number, room in enumerate(row)
        }
        for row in rows:
            near = {
                room: [place[one] for one in (*arrows[room], *_importers(arrows, room))]
                for room in row
            }
            row.sort(key=lambda room: (sum(near[room]) / (len(near[room]) or 1), room))
    return rows


def _importers(arrows: Graph, room: str) -> list[str]:
    return [one for one, others in arrows.items() if room in others]


def picture() -> str:
    """Return the room graph as SVG: each room stands above all rooms that it imports.

    The two packages stand side by side; every room of ``tui`` may import rooms of ``store``.
    """
    graph = room_graph()
    parts = [
        _part(package, {
            room: {one for one in others if one.startswith(package)}
            for room, others in graph.items() if room.startswith(package)
        })
        for package in reversed(PACKAGES)
    ]  # fmt: skip
    height = max(part.height for part in parts)
    drawn, left = [], 0.0
    for part in parts:
        drawn.append(f'<g transform="translate({left:.0f} {height - part.height})">')
        drawn += [*part.lines, "</g>"]
        left += part.width + BETWEEN
    width = left - BETWEEN
    return "\n".join([
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:.0f} {height}" '
        f'width="{width:.0f}" height="{height}">',
        f"<title>Which rooms import which</title><style>{STYLE}</style>",
        '<defs><marker id="head" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7"'
        ' markerHeight="7" orient="auto"><path d="M0 0L8 4L0 8z" style="fill:#656d76;'
        'stroke:none;marker-end:none"/></marker></defs>',
        f'<rect width="{width:.0f}" height="{height}" fill="#ffffff"/>',
        *drawn, "</svg>", "",
    ])  # fmt: skip


class Part(NamedTuple):
    """The drawing of one package; width and height in pixels."""

    width: int
    height: int
    lines: list[str]


def _part(package: str, graph: Graph) -> Part:
    arrows = direct(graph)
    rows = rows_of(graph, arrows)
    width = max(len(row) for row in rows) * (BOX_WIDTH + GAP) + GAP
    height = len(rows) * FLOOR + GAP + HEADING
    at: dict[str, tuple[float, float]] = {}
    for number, row in enumerate(rows):
        left = (width - len(row) * (BOX_WIDTH + GAP) + GAP) / 2
        for place, room in enumerate(row):
            at[room] = left + place * (BOX_WIDTH + GAP), height - FLOOR * (number + 1) + GAP
    heading = f'<text class="label" x="{GAP}" y="{HEADING - 8}">{package}/</text>'
    lines = [
        _arrow(at[room], at[one]) for room in sorted(arrows) for one in sorted(arrows[room])
    ]
    return Part(width, height, [heading, *lines, *(_box(room, *at[room]) for room in sorted(at))])


def _arrow(start: tuple[float, float], end: tuple[float, float]) -> str:
    x, y = start[0] + BOX_WIDTH / 2, start[1] + BOX_HEIGHT
    to_x, to_y = end[0] + BOX_WIDTH / 2, end[1]
    bend = (to_y - y) / 2
    return (
        f'<path d="M{x:.0f} {y:.0f}C{x:.0f} {y + bend:.0f} {to_x:.0f} {to_y - bend:.0f}'
        f' {to_x:.0f} {to_y:.0f}"/>'
    )


def _box(room: str, x: float, y: float) -> str:
    package, _, name = room.partition(".")
    return (
        f'<g class="{package}"><rect x="{x:.0f}" y="{y:.0f}" width="{BOX_WIDTH}"'
        f' height="{BOX_HEIGHT}" rx="5"/><text x="{x + BOX_WIDTH / 2:.0f}"'
        f' y="{y + BOX_HEIGHT / 2 + 4:.0f}">{escape(name or package)}</text></g>'
    )


if __name__ == "__main__":
    PICTURE.parent.mkdir(exist_ok=True)
    PICTURE.write_text(picture(), "utf-8")
    print(PICTURE)
