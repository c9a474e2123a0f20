"""What is done to the library or a whole session: export, forget, import, sync, figures."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Sequence
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from store.engine.database import Database
from store.errors import BackscrollError, Refused
from store.queries.sessions import get
from tui.dialogs.ask import AskDialog
from tui.dialogs.choose import ChooseDialog, Option
from tui.dialogs.lines import LinesDialog
from tui.dialogs.notes import facts, gap, paragraph
from tui.kit.lines import Line
from tui.kit.text import one_line
from tui.verbs.doing import ask_store, counted, quoted, refuse
from tui.words.places import place_lines

if TYPE_CHECKING:
    from tui.host import Host

T = TypeVar("T")


async def _on_store(host: Host, work: Callable[[Database], T]) -> T | None:
    """Run work on a writing connection of its own; where it is refused, show why."""
    from store.engine.opening import open_target

    def run() -> T:
        with closing(open_target(host.library.path, write=True)) as database:
            if database.read_only:
                raise Refused(database.read_only)
            return work(database)

    try:
        if host.library.no_change is not None:
            raise Refused(host.library.no_change)
        return await asyncio.to_thread(run)
    except BackscrollError as error:
        refuse(host, error)
        return None


async def export_session(host: Host, session_id: str, message_id: str | None = None) -> None:
    """Choose a format and a file, and write a session there.

    Args:
        host: The app.
        session_id: The session.
        message_id: The message that is selected in it; None where none is.
    """
    from store.exports.registry import FORMATS
    from tui.dialogs.save import ExportScreen

    found = await ask_store(host, get, session_id)
    if found is None or found.value is None:
        return
    title = quoted(found.value.title)
    options = [Option(each.name, each, each.help) for each in FORMATS.values()]
    start = next(n for n, option in enumerate(options) if option.name == "markdown")
    options.append(Option("share…", "share", "choose what goes out, and look at it first"))
    chosen = await host.push_screen_wait(
        ChooseDialog("Save session as", options, about=title, verb="choose the file", start=start))
    if chosen == "share":
        await share_sessions(host, [session_id], message_id)
    elif chosen is not None:
        await host.push_screen_wait(ExportScreen(host.library.path, session_id, chosen, title))


async def share_sessions(
    host: Host, session_ids: Sequence[str], message_id: str | None
) -> None:
    """Show the screen on which one chooses what of some sessions goes out.

    Args:
        host: The app.
        session_ids: The sessions.
        message_id: The message that is selected in the only session; None where none is.
    """
    from store.sharing.masks import Masking, Masks
    from store.sharing.settings import masking_of
    from tui.share.outgoing import Outgoing
    from tui.share.screen import ShareScreen

    found = await ask_store(host, get, session_ids[0])
    if found is None or found.value is None:
        return
    one = len(session_ids) == 1
    masking = masking_of(host.settings.masks)
    outgoing = Outgoing(
        host.library.path, session_ids, message_id if one else None, masking,
        host.settings.prices)
    masked = Masks(Masking()).mask(found.value.title or "untitled")
    title = quoted(masked) if one else counted(len(session_ids), "session")
    await host.push_screen(ShareScreen(outgoing, title))


async def forget_session(host: Host, session_id: str) -> None:
    """Remove a session permanently, after a question that names it."""
    from store.sync.forget import forget

    found = await ask_store(host, get, session_id)
    if found is None or found.value is None:
        return
    row = found.value
    notes = [
        facts([("title", [(one_line(row.title or "untitled"), "text bold")]), ("id", row.id)]),
        gap(),
        paragraph("It is removed from the store with its subagents. This cannot be undone, and no"
                  " later sync adds it again. The agent's own files are not changed.", "tool"),
    ]
    if not await host.push_screen_wait(
        ChooseDialog("Remove permanently?", notes=notes, verb="remove for good")
    ):
        return
    gone = await _on_store(host, lambda database: forget(database, [session_id]))
    if gone is not None:
        await host.show_written()
        host.notify(f"Forgotten: {quoted(row.title)}, {counted(len(gone), 'session')}",
                    markup=False)


async def import_sessions(host: Host) -> None:
    """Ask for a file that ``export`` wrote, and bring its sessions in."""
    from store.imports.reading import import_file
    from store.system.paths import expanded

    text = await host.push_screen_wait(AskDialog(
        "Import sessions", verb="import", placeholder="~/session.jsonl",
        note="A file that was exported as jsonl or json. Importing twice changes nothing."))
    if not text or not text.strip():
        return
    path = expanded(text.strip())
    results = await _on_store(host, lambda database: list(import_file(database, path)))
    if results is None:
        return
    await host.show_written()
    added = [result for result in results if result.outcome == "added"]
    problems = [problem for result in results for problem in result.problems]
    if added and added[0].session_id:
        host.select_session(added[0].session_id)
    words = f"Imported {counted(len(added), 'session')} of {len(results)}"
    if problems:
        words += f"; {one_line(problems[0])}"
    host.notify(words, severity="warning" if problems else "information", markup=False)


async def sync_now(host: Host) -> None:
    """Read the sessions of all sources now."""
    targets = host.library.sync_targets
    host.notify("Reading the sessions of your agents…", timeout=3, markup=False)
    await host.sync_now([str(target) for target in targets or ()])
    await host.show_written()
    host.notify("Read the sessions of your agents", timeout=3, markup=False)


async def show_sources(host: Host) -> None:
    """Show where sessions are looked for, and what could not be read."""
    from store.copying.places import places_of

    def read(database: Database) -> list[Line]:
        return place_lines(*places_of(database, os.environ, Path.home()))

    found = await ask_store(host, read)
    if found is not None:
        host.push_screen(LinesDialog("Sources", found.value))
