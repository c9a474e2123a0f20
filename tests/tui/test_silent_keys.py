"""Every key does something that is seen, or a toast says why not."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.tui.seeded import Said, make_store, text
from tests.tui.stores import put
from tests.tui.verbs_app import Running, running
from tui.dialogs.frame import Dialog
from tui.keys.declaration import Scope
from tui.keys.names import key_name
from tui.keys.pane import owners_of
from tui.keys.registry import commands

pytestmark = pytest.mark.long

MOVES = frozenset({
    "down", "up", "page-down", "page-up", "half-page-down", "half-page-up", "top", "end",
})
"""Nothing is said where there is no line to move to: held keys reach an end all the time."""

QUIET = {
    "app.sessions": "the list has the focus already",
    "app.back": "there is no step to go back from the list",
    "search.left": "there are no facets at the left of the hits",
    "search.right": "the hits have the focus already",
    "search.narrow": "in the hits it moves by a page",
}
LEFT_OUT = frozenset({"app.quit"})
"""Ends the app, which is seen."""

PLAIN = [Said("user", [text("plain words")])]
PLACES: dict[str, tuple[Scope, list[Said], Sequence[str]]] = {
    "list, empty": ("list", [], ()),
    "transcript, empty": ("transcript", [], ("2",)),
    "search, empty": ("search", [], ("S", "tab")),
    "list": ("list", PLAIN, ()),
    "main": ("main", PLAIN, ()),
    "transcript": ("transcript", PLAIN, ("enter",)),
    "inspector": ("inspector", PLAIN, ("enter", "enter")),
    "tree": ("tree", PLAIN, ("T",)),
    "details": ("details", PLAIN, ("d",)),
    "search": ("search", PLAIN, ("S", "tab")),
    "stats": ("stats", PLAIN, ("dollar_sign",)),
}
"""By name: a scope, what is in the store, and the keys that lead there from the list."""


def seen(run: Running) -> tuple[Any, ...]:
    """What a user sees or hears of."""
    app = run.app
    rows = [strip.text + repr([segment.style for segment in strip])
            for strip in map(_joined, app.screen._compositor.render_strips())]
    return rows, list(app.screen_stack), app.focused, app.theme, len(run.told), app.clipboard


def _joined(strips: Any) -> Any:
    from textual.strip import Strip

    return strips if isinstance(strips, Strip) else Strip.join(strips)


async def arrive(run: Running, keys: Sequence[str]) -> None:
    """Go where keys lead from the list, from wherever one is."""
    app = run.app
    app.release_keys()
    while len(app.screen_stack) > 1:
        top = app.screen
        if isinstance(top, Dialog):
            top.dismiss(None)
        else:
            app.pop_screen()
        await run.quiet()
    app.close_toasts()
    app.main.panes.focus("sessions")
    await run.quiet()
    await run.press(*keys)
    app.close_toasts()
    await run.quiet()


@pytest.mark.parametrize("place", PLACES)
async def test_no_key_is_without_an_answer(
    place: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    scope, said, keys = PLACES[place]
    path = tmp_path / "s.db"
    if said:
        make_store(path, said)
    else:
        put(path, [])
    unanswered = []
    async with running(path, (200, 50)) as run:
        if place == "search":
            await run.press("S", *"plain")
        await arrive(run, keys)
        there = list(run.app.screen_stack), run.app.focused
        for command in commands(scope):
            verb = command.id.partition(".")[2]
            if not command.keys or command.id in LEFT_OUT or verb in MOVES:
                continue
            if (list(run.app.screen_stack), run.app.focused) != there:
                await arrive(run, keys)
                assert scope in [owner.SCOPE for owner in owners_of(run.app.focused or run.app)]
                there = list(run.app.screen_stack), run.app.focused
            run.app.close_toasts()
            await run.quiet()
            before = seen(run)
            await run.press(key_name(command.keys[0]))
            if seen(run) == before and command.id not in QUIET:
                unanswered.append(command.id)
            run.app.release_keys()
            if verb == "archive":
                await run.press("U")
        await arrive(run, ())
    assert unanswered == []


def test_what_may_be_quiet_is_there() -> None:
    ids = {command.id for command in commands("main") + commands("search") + commands("stats")}
    assert ids >= set(QUIET)
