"""The pictures of the app: what is opened, which keys are pressed, and the screens after them.

They show the demo store, and in one picture a library of the tests' samples. Clock, time
zone, home folder, locale and settings are fixed, so the same code draws the same bytes on
every machine.
"""

from __future__ import annotations

import asyncio
import os
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from textual.widget import Widget

if TYPE_CHECKING:
    from rich.segment import Segment
    from textual.geometry import Region
    from textual.pilot import Pilot

    from tui.app import BackscrollApp

NOW = 1_790_000_000_000
"""Epoch ms at which the pictures are taken: 2026-09-21 14:13:20 UTC."""
HOME = "/home/mira"
DATA = Path(__file__).parents[2] / "tests" / "data"
LOOK_S = 0.1
SAME_LOOKS = 3
TURNS = 50
"""Of the loop before each look: messages go a hop in each, however slow the machine is."""


@dataclass(frozen=True, slots=True)
class Shot:
    """One picture.

    Attributes:
        size: Columns and rows.
        keys: What is pressed before it is taken.
        captions: What a moving picture says of a key, by the key's place in ``keys``; the
            frame after each of these keys is in the picture.
        theme: None for the default one.
        samples: Synced in place of the demo store: kind of source, and place below ``DATA``.
        now: Epoch ms at which it is taken.
        year: Whether the demo store has a made-up year of further sessions.
    """

    name: str
    size: tuple[int, int]
    keys: tuple[str, ...] = ()
    captions: tuple[tuple[int, str], ...] = ()
    theme: str | None = None
    samples: tuple[tuple[str, str], ...] = ()
    now: int = NOW
    year: bool = False


WHOLE = ("enter", "g", "pagedown", "pagedown", "pagedown", "G")
"""Opens a session and goes through it, so that the scroll bar knows every part's height."""

_CODEX = "codex/0.171.0/sessions/2026/11/28"
_PI = "pi/sessions/--home-user-project--"
_QWEN = "qwen/qwen/projects/-home-mira-code-api/chats"
SAMPLES = (
    ("claude-code", "claude-code/home/.claude/projects/-home-user-notes-d-my-site-v2"),
    ("codex", f"{_CODEX}/rollout-2026-11-28T00-57-50-01a21fa8-9280-7132-bc13-799e1c3e81e7.jsonl"),
    ("opencode", "opencode/legacy"),
    ("gemini", "gemini/tmp/project/chats/session-2026-11-27T22-38-47bb34e5.jsonl"),
    ("pi", f"{_PI}/2026-11-27T22-27-45-796Z_01a21f1f-2a04-71ed-bc04-9eae727ff70c.jsonl"),
    ("copilot", "copilot/session-state/82ca1005-c439-454d-87a4-a18e1e6c1d25"),
    ("hub", "hub/hub.db"),
    ("qwen", f"{_QWEN}/288b23f6-5a06-46d1-8218-96a0e39cd6cf.jsonl"),
    ("droid", "droid/sessions/-home-mira-code-api/121c4565-7f2a-46ea-9f2f-2ddb94cc54e4.jsonl"),
    ("amp", "amp/threads/T-01a221b8-1c6e-737f-b479-e8e2252836fb.json"),
    ("goose", "goose/sessions/20250701_101500.jsonl"),
    ("openhands", "openhands/conversations/5a18b44234404ceb9c6607443727a314"),
)  # fmt: skip
LATER = 1_795_867_200_000
"""Epoch ms after the last of the samples: 2026-11-28 12:00:00 UTC."""

SHOTS = (
    Shot("three-panes", (190, 50), (*WHOLE, "E", "E")),
    Shot("two-panes", (120, 40), (*WHOLE, "E", "E")),
    Shot("one-pane", (80, 24)),
    Shot("details", (120, 40), ("d",)),
    Shot("search", (150, 40), ("S", *"token", "down", "n")),
    Shot("search-facets", (120, 40), (
        "S", *"tool", "colon", *"bash", "space", *"is", "colon", *"error", "tab", "tab",
        *"jjjjjjj", "space",
    )),
    Shot("statistics", (150, 46), ("dollar_sign", *["left"] * 4), year=True),
    Shot("statistics-year", (120, 40), ("dollar_sign", "c", *["left"] * 9, "up"), year=True),
    Shot("light", (120, 40), ("j", "j", "j", *WHOLE), theme="backscroll-light"),
    Shot("twelve-agents", (120, 50), WHOLE, samples=SAMPLES, now=LATER),
)


def fixed_environment(folder: Path) -> dict[str, str]:
    """Return the environment variables that make a run the same everywhere.

    Args:
        folder: An empty folder for settings and state.
    """
    kept = {name: os.environ[name] for name in ("PATH", "PYTHONPATH") if name in os.environ}
    places = {
        f"XDG_{name}_HOME": str(folder / name.lower())
        for name in ("CONFIG", "DATA", "CACHE", "STATE")
    }
    return {
        **kept, **places, "HOME": HOME, "TZ": "UTC", "LANG": "C.UTF-8", "LC_ALL": "C.UTF-8",
        "TERM": "xterm-256color", "COLORTERM": "truecolor", "TMPDIR": str(folder),
        "TEXTUAL_ANIMATIONS": "none",
    }  # fmt: skip


def _library(shot: Shot, folder: Path) -> Path:
    """Return a new library with all the samples of a picture."""
    from store.engine.database import open_database
    from store.sources.registry import source
    from store.sync.engine import Sync
    from store.sync.settings import Settings
    from store.sync.targets import Target

    copy = folder / "samples"
    shutil.copytree(DATA, copy)
    for path in copy.rglob("*"):
        os.utime(path, (shot.now / 1000, shot.now / 1000))
    database = open_database(folder / f"{shot.name}.db", create=True)
    targets = []
    for kind, place in shot.samples:
        root = source(kind).recognise(copy / place)
        assert root is not None, place
        targets.append(Target(source(kind), root))
    Sync(database, Settings(helpers=0), clock=lambda: shot.now).run(targets)
    database.close()
    return folder / f"{shot.name}.db"


@dataclass(frozen=True, slots=True)
class Frame:
    """What the screen shows after a key.

    Attributes:
        svg: The screen.
        caption: What a moving picture says of the key.
    """

    svg: str
    caption: str = ""


async def frames(shot: Shot, folder: Path) -> list[Frame]:
    """Return the screens of a picture that have a caption, and the last one.

    Args:
        shot: The picture.
        folder: Where its store is made.
    """
    from store.config import Settings
    from store.demo import make_demo
    from tui.app import BackscrollApp
    from tui.state.library import Library

    def clock() -> int:
        return shot.now

    place, name = folder / f"{shot.name}.db", "library" if shot.samples else "demo"
    path = _library(shot, folder) if shot.samples else make_demo(place, clock)
    if shot.year:
        from store.demo.year import add_year

        add_year(path, shot.now)
    app = BackscrollApp(Library.open(path, name, clock=clock), Settings())
    if shot.theme is not None:
        app.theme = shot.theme
    async with app.run_test(size=shot.size) as pilot:
        await _settle(app, pilot)
        captions, taken = dict(shot.captions), []
        for number, key in enumerate(("", *shot.keys)):
            if key:
                await pilot.press(key)
                await _settle(app, pilot)
            if number in captions or number == len(shot.keys):
                svg = app.export_screenshot(title="backscroll")
                taken.append(Frame(svg, captions.get(number, "")))
        return taken


def _drawn(widget: Widget) -> tuple[Region, list[list[Segment]]]:
    """Return where a widget is, and what it draws there."""
    strips = widget.render_lines(widget.size.region) if widget.is_on_screen else []
    return widget.region, [list(strip) for strip in strips]


async def _settle(app: BackscrollApp, pilot: Pilot[None]) -> None:
    """Let loading and drawing come to rest: until some looks in a row show the same.

    What still works in the background may show something else, however long it takes.
    """
    seen: list[tuple[Region, list[list[Segment]]]] = []
    same = 0
    while same < SAME_LOOKS:
        await pilot.pause(LOOK_S)
        for _ in range(TURNS):
            await asyncio.sleep(0)
        if app.main.inspector is not None:
            await app.main.inspector.settled()
        # Cheaper by far than a whole picture, which would show the same.
        now = [_drawn(widget) for widget in app.screen.walk_children(Widget, with_self=True)]
        # A dialog is awaited by a worker, which ends with it.
        works = not app.screen.is_modal and any(not one.is_finished for one in app.workers)
        same = same + 1 if now == seen and not works else 0
        seen = now

