"""Going on with a session in its agent: what is started is shown, the app steps aside."""

from __future__ import annotations

import asyncio
import os
import shlex
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

from textual.app import SuspendNotSupported

from store.database import Database
from store.errors import BackscrollError, NotFound, Refused
from store.ids import derived_session_id
from store.queries.sessions import get
from store.resume.planning import ResumePlan, note_exported, with_prompt, write_file
from store.resume.registry import AGENTS, plan
from tui.dialogs.choose import ChooseDialog
from tui.dialogs.notes import facts, gap, words
from tui.inspector.blocks import Block, Text
from tui.text import one_line
from tui.verbs.doing import ask_store, refuse

if TYPE_CHECKING:
    from tui.app import BackscrollApp

PROMPT_ROWS = 6


def _plan(db: Database, session_id: str) -> ResumePlan:
    row = get(db, session_id)
    if row is None:
        raise NotFound(f"there is no session {session_id}")
    return plan(db, row, os.environ, Path.home())


def shell_command(made: ResumePlan) -> str:
    """Return what a user types to go on."""
    return f"cd {shlex.quote(made.cwd)} && {shlex.join(made.command)}"


async def go_on(app: BackscrollApp, session_id: str) -> None:
    """Go on with a session in the agent; ask first where something is written or said."""
    found = await ask_store(app, _plan, session_id)
    if found is None:
        return
    made = found.value
    if made.program is not None and made.file is None and Path(made.cwd).is_dir():
        await _start(app, session_id, made)
        return
    while True:
        answer = await app.push_screen_wait(_dialog(made))
        if answer != "e":
            break
        made = _with_edited(app, made)
    try:
        if answer == "y":
            await _copy_command(app, session_id, made)
        elif answer:
            await _start(app, session_id, made)
    except (BackscrollError, OSError) as error:
        refuse(app, error if isinstance(error, BackscrollError) else Refused(str(error)))


def _dialog(made: ResumePlan) -> ChooseDialog:
    missing = _missing(made)
    pairs = [("command", one_line(shlex.join(made.command[:3]))), ("folder", one_line(made.cwd))]
    if made.file is not None and made.file.lines:
        pairs.append(("new file", one_line(str(made.path))))
    notes: list[Block] = [facts([(name, text) for name, text in pairs])]
    if made.prompt:
        notes += [gap(), words(("Says first", "muted")),
                  Text(made.prompt, words=True, limit=PROMPT_ROWS, paint=lambda line: "user")]
    if missing:
        notes += [gap(), words((missing, "tool"))]
    if made.file is not None:
        notes += [gap(), words(("No file of the agent's is changed; it goes on in a session of"
                                " its own.", "muted"))]
    more = [("e", "edit what it says")]
    if missing is None:
        more.insert(0, ("y", "copy the command"))
    writes = made.file is not None and bool(made.file.lines)
    verb = "start the agent" if missing is None else (
        "write the file, copy the command" if writes else "copy the command")
    return ChooseDialog(f"Continue in {AGENTS[made.kind].label}", notes=notes, verb=verb, more=more)


def _missing(made: ResumePlan) -> str | None:
    if made.program is None:
        yours = "the file and the command are" if made.file is not None else "the command is"
        return f"{made.started} is not on PATH: {yours} yours to use."
    if not Path(made.cwd).is_dir():
        return f"The folder {one_line(made.cwd)} is not there: make it, then run the command."
    return None


def _with_edited(app: BackscrollApp, made: ResumePlan) -> ResumePlan:
    from tui.editing import edit_text

    try:
        return with_prompt(made, edit_text(app, made.prompt or ""))
    except BackscrollError as error:
        refuse(app, error)
        return made


async def _written(app: BackscrollApp, session_id: str, made: ResumePlan) -> None:
    """Write the session file of a plan, and remember where it came from."""
    if made.file is None or not made.file.lines:
        return
    await asyncio.to_thread(write_file, made)
    store = await app.library.ready()
    if store.read_only is None:
        await store.write(note_exported, session_id, made)


async def _copy_command(app: BackscrollApp, session_id: str, made: ResumePlan) -> None:
    from tui.clipboard import copy

    await _written(app, session_id, made)
    await copy(app, shell_command(made))


async def _start(app: BackscrollApp, session_id: str, made: ResumePlan) -> None:
    if _missing(made) is not None:
        await _copy_command(app, session_id, made)
        return
    await _written(app, session_id, made)
    try:
        with app.suspend():
            done = subprocess.run(made.command, cwd=made.cwd, check=False)
    except SuspendNotSupported:
        app.notify("This terminal cannot be handed to another program", severity="warning")
        return
    if done.returncode not in (0, 130):
        app.notify(f"{made.started} ended with exit code {done.returncode}", severity="warning")
    await _come_back(app, session_id, made)


async def _come_back(app: BackscrollApp, session_id: str, made: ResumePlan) -> None:
    """Sync what the agent wrote, and open the session that it went on with."""
    source_id = made.file.session_id if made.file is not None else made.command[2]
    if app.library.database.form.name == "own" and made.path.is_file():
        await app.sync_now([str(made.path)])
    continued = derived_session_id(made.kind, source_id)
    row = await app.library.read(get, continued)
    target = continued if row is not None else session_id
    await app.main.show_written()
    app.main.sessions.go_to(target)
    app.main.go_into(target)
