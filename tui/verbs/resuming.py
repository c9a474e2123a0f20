"""Going on with a session in its agent: what is started is shown, the host steps aside."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path
from typing import TYPE_CHECKING

from textual.app import SuspendNotSupported
from textual.geometry import Size

from store.engine.database import Database
from store.errors import BackscrollError, Refused, no_session
from store.ids import derived_session_id
from store.queries.sessions import get
from store.resume.planning import ResumePlan, note_exported, start, with_prompt, write_file
from store.resume.registry import label_of, plan
from tui.dialogs.choose import ChooseDialog
from tui.dialogs.frame import room_for_notes
from tui.dialogs.notes import facts, gap, paragraph, words
from tui.kit.blocks import Block, Text
from tui.kit.text import one_line
from tui.verbs.doing import ask_store, name_of, refuse

if TYPE_CHECKING:
    from tui.host import Host

PROMPT_ROWS = 6
COMMAND_ROWS = 2


def _plan(db: Database, session_id: str) -> ResumePlan:
    row = get(db, session_id)
    if row is None:
        raise no_session(session_id)
    return plan(db, row, os.environ, Path.home())


async def go_on(host: Host, session_id: str) -> None:
    """Resume a session in its agent.

    The user is asked first where a file is written or a prompt sent, and always where the session
    was not read from an agent's files on this machine.
    """
    refused = host.library.limits.read_only or host.library.limits.no_programs
    if refused is not None:
        refuse(host, Refused(refused))
        return
    found = await ask_store(host, _plan, session_id)
    if found is None:
        return
    made = found.value
    at_once = made.doubt is None and made.file is None and _missing(made) is None
    while True:
        answer = True if at_once else await host.push_screen_wait(
            _dialog(made, host.size, await name_of(host, session_id)))
        if answer == "edit":
            made = _with_edited(host, made)
        elif answer == "view":
            _view(host, made)
        else:
            break
    try:
        if answer == "copy":
            await _copy_command(host, session_id, made)
        elif answer:
            await _start(host, session_id, made)
    except (BackscrollError, OSError) as error:
        refuse(host, error if isinstance(error, BackscrollError) else Refused(str(error)))


def _dialog(made: ResumePlan, screen: Size, name: str) -> ChooseDialog:
    missing = _missing(made)
    notes: list[Block] = []
    below: list[Block] = []
    if made.doubt is not None:
        doubt = f"Check this command before you start it: {made.doubt}."
        notes += [paragraph(doubt, "tool"), gap()]
    notes += [
        Text(f"$ {made.shown(folder=False)}", limit=COMMAND_ROWS, paint=lambda line: "text bold"),
        facts([("folder", one_line(made.shown_cwd)), ("environment", _environment(made))]
              + ([("new file", one_line(str(made.path)))] if _writes(made) else [])),
    ]
    if made.withheld is not None:
        below.append(paragraph(f"{made.withheld}: edit it, or type it yourself.", "tool"))
    if missing:
        below += [gap(), paragraph(missing, "tool")]
    elif _writes(made) and made.doubt is None:
        below += [gap(), paragraph("Existing files are not changed; a new session is"
                                   " created.", "muted")]
    if made.prompt:
        head = "First prompt" if made.withheld is None else "Not sent"
        notes += [gap(), words((head, "muted"))]
        # One more row says how many are left out.
        rows = room_for_notes(screen, [*notes, *below]) - 1
        notes.append(Text(made.prompt, words=True, limit=max(1, min(PROMPT_ROWS, rows)),
                          paint=lambda line: "user"))
    notes += below
    more = {"view": "view all", "edit": "edit"}
    if missing is None:
        more["copy"] = "copy"
    verb = "start the agent" if missing is None else (
        "write file, copy command" if _writes(made) else "copy command")
    return ChooseDialog(f"Continue in {label_of(made.kind)}", about=name, notes=notes,
                        verb=verb, more=more)


def _writes(made: ResumePlan) -> bool:
    return made.file is not None and bool(made.file.lines)


def _environment(made: ResumePlan) -> str:
    variables = (f"{name}={value}" for name, value in made.variables.items())
    return one_line(", ".join(["as in this terminal", *variables]))


def _view(host: Host, made: ResumePlan) -> None:
    """Show in the pager what the dialog has room for the beginning of."""
    from tui.kit.external import open_in_pager

    pieces = [f"folder: {made.shown_cwd}", f"environment: {_environment(made)}",
              *(f"new file: {made.path}" for _ in range(_writes(made))),
              f"command: {made.shown(folder=False)}"]
    if made.prompt:
        pieces += ["", "first prompt:" if made.withheld is None else "not sent:", made.prompt]
    try:
        open_in_pager(host, "\n".join(pieces))
    except BackscrollError as error:
        refuse(host, error)


def _missing(made: ResumePlan) -> str | None:
    if made.program is None:
        way_out = "write the file and copy the command" if _writes(made) else "copy the command"
        return f"{made.started} is not on PATH; {way_out} to run it yourself."
    if not Path(made.cwd).is_dir():
        return f"The folder {one_line(made.cwd)} does not exist; create it, then run the command."
    return None


def _with_edited(host: Host, made: ResumePlan) -> ResumePlan:
    from tui.kit.editing import edit_text

    try:
        return with_prompt(made, edit_text(host, made.prompt or ""))
    except BackscrollError as error:
        refuse(host, error)
        return made


async def _written(host: Host, session_id: str, made: ResumePlan) -> None:
    """Write the session file of a plan, and remember where it came from."""
    if not _writes(made):
        return
    await asyncio.to_thread(write_file, made)
    store = await host.library.ready()
    if store.read_only is None:
        await store.write(note_exported, session_id, made)


async def _copy_command(host: Host, session_id: str, made: ResumePlan) -> None:
    from tui.kit.clipboard import copy

    await _written(host, session_id, made)
    await copy(host, made.shown())


async def _start(host: Host, session_id: str, made: ResumePlan) -> None:
    if _missing(made) is not None:
        await _copy_command(host, session_id, made)
        return
    await _written(host, session_id, made)
    try:
        with host.suspend():
            code = start(made)
    except SuspendNotSupported:
        host.notify("This terminal cannot be handed to another program", severity="warning")
        return
    if code not in (0, 130):
        host.notify(f"{made.started} ended with exit code {code}", severity="warning")
    await _come_back(host, session_id, made)


async def _come_back(host: Host, session_id: str, made: ResumePlan) -> None:
    """Sync what the agent wrote, and open the session that it went on with."""
    if host.library.database.form.name == "own" and made.path.is_file():
        await host.sync_now([str(made.path)])
    continued = derived_session_id(made.kind, made.session_id)
    row = await host.library.read(get, continued)
    target = continued if row is not None else session_id
    await host.show_written()
    host.open_session(target)
