"""An app with nothing but the inspector, for its tests."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from textual import on
from textual.app import ComposeResult
from textual.pilot import Pilot

from store.config import Settings
from store.store import Store
from tests.tui.inspected import Talk, part_id
from tui.inspector.pane import InspectorPane
from tui.keys.dispatch import CommandApp
from tui.keys.registry import COMMANDS
from tui.keys.table import CommandTable
from tui.kit.theme import OWN_THEMES
from tui.messages import SessionOpened


class InspectorApp(CommandApp):
    CSS = "InspectorPane { width: 1fr; }"

    @property
    def commands(self) -> CommandTable:
        return CommandTable(COMMANDS, {})

    settings = Settings()

    def __init__(self) -> None:
        super().__init__()
        self.opened: list[SessionOpened] = []

    def compose(self) -> ComposeResult:
        for theme in OWN_THEMES:
            self.register_theme(theme)
        self.theme = "backscroll-dark"
        yield InspectorPane()

    @on(SessionOpened)
    def keep(self, event: SessionOpened) -> None:
        self.opened.append(event)

    @property
    def pane(self) -> InspectorPane:
        return self.query_one(InspectorPane)

    def screen_lines(self) -> list[str]:
        """Return what the screen shows, row by row, without trailing blanks."""
        strips = self.screen._compositor.render_strips()
        return [strip.text.rstrip() for strip in strips]

    @property
    def shown(self) -> str:
        return "\n".join(self.screen_lines())


@asynccontextmanager
async def inspecting(
    talk: Talk, message: int, index: int, size: tuple[int, int] = (46, 50)
) -> AsyncIterator[tuple[InspectorApp, Pilot[None]]]:
    """Run the app on one part."""
    path: Path = talk.db.path
    store = await Store.open(path)
    app = InspectorApp()
    try:
        async with app.run_test(size=size) as pilot:
            await app.pane.show_part(store, talk.session_id, part_id(talk, message, index))
            await app.pane.settled()
            app.pane.focus()
            await pilot.pause()
            yield app, pilot
    finally:
        await store.close()
