"""Fork a session after a preview, and open the fork."""

from __future__ import annotations

from typing import TYPE_CHECKING

from store.engine.database import Database
from store.errors import BackscrollError
from store.verbs.fork import ForkPreview, fork, preview_fork
from store.verbs.guards import refuse_while_running
from tui.dialogs.choose import ChooseDialog
from tui.dialogs.notes import facts, gap, paragraph, words
from tui.kit.blocks import Block, Text
from tui.kit.text import one_line
from tui.verbs.doing import counted, perform, quoted, refuse, report_done

if TYPE_CHECKING:
    from tui.host import Host

PROMPT_ROWS = 6


def _preview(
    db: Database, session_id: str, message_id: str, *, before: bool, now: int
) -> ForkPreview:
    refuse_while_running(db, session_id, now)
    return preview_fork(db, session_id, message_id, before=before)


async def fork_at(
    host: Host, session_id: str, message_id: str, *, before: bool = False
) -> bool:
    """Preview a fork; once it is confirmed, make it and open it. Return whether it was made.

    Args:
        host: The app.
        session_id: The session.
        message_id: The last message to copy; with ``before`` the user message to leave out.
        before: Offer that message's text for editing.
    """
    try:
        store = await host.library.ready()
        preview = await store.write(
            _preview, session_id, message_id, before=before, now=host.library.clock()
        )
    except BackscrollError as error:
        refuse(host, error)
        return False
    draft = preview.prompt
    while True:
        wanted = await host.push_screen_wait(_dialog(preview, draft, before=before))
        if wanted != "edit":
            break
        draft = _edited(host, draft or "")
    if not wanted:
        return False
    done = await perform(
        host, fork, session_id, message_id, before=before, draft=draft, ids=store.ids
    )
    if done is None:
        return False
    made = done.value.session_id
    host.open_session(made)
    if before and draft:
        from tui.kit.clipboard import copy

        await copy(host, draft)
        hint = host.commands.hint("app.continue", "continues with the text")
        report_done(host, f"forked {quoted(preview.title)}{hint}")
    else:
        report_done(host, f"forked {quoted(preview.title)}")
    return True


def _edited(host: Host, text: str) -> str:
    from tui.kit.editing import edit_text

    try:
        return edit_text(host, text)
    except BackscrollError as error:
        refuse(host, error)
        return text


def _dialog(preview: ForkPreview, draft: str | None, *, before: bool) -> ChooseDialog:
    copied = (
        f"{counted(preview.messages, 'message')}, {counted(preview.parts, 'part')},"
        f" {counted(preview.tool_calls, 'tool call')}"
    )
    notes: list[Block] = [facts([("title", [(one_line(preview.title), "text bold")]),
                                 ("copied", copied)])]
    if before:
        notes += [gap(), words(("Left out", "muted")),
                  Text(draft or "", words=True, limit=PROMPT_ROWS, paint=lambda line: "user")]
    if preview.files:
        files = one_line(", ".join(preview.files))
        notes.append(paragraph(f"Not copied; attach again in the agent: {files}", "tool"))
    notes += [gap(), words(("The session itself is not changed.", "muted"))]
    more = {"edit": "edit the text"} if before else {}
    title = "Fork before this message" if before else "Fork here"
    return ChooseDialog(title, notes=notes, verb="fork and open", more=more)
