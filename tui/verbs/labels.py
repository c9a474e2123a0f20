"""Set, change and remove labels of messages."""

from __future__ import annotations

from typing import TYPE_CHECKING

from store.queries.tree_facts import labels_of
from store.verbs.marks import label
from tui.dialogs.ask import AskDialog
from tui.kit.key_hints import keyed
from tui.verbs.doing import ask_store, name_of, perform, report_done

if TYPE_CHECKING:
    from tui.host import Host


async def change_label(host: Host, session_id: str, message_id: str) -> None:
    """Ask for the label of a message; an empty one removes it.

    Args:
        host: The app.
        session_id: The session.
        message_id: The message.
    """
    found = await ask_store(host, labels_of, session_id)
    if found is None:
        return
    known = next((one.text for one in found.value if one.message_id == message_id), "")
    text = await host.push_screen_wait(
        AskDialog("Label this message", known, verb="set", placeholder="before the refactoring",
                  about=await name_of(host, session_id),
                  note=f"Labels show in the tree; {keyed('transcript.labels', 'lists them')}."
                       " Clear the line to remove it.")
    )
    if text is None or text.strip() == known.strip():
        return
    done = await perform(host, label, session_id, message_id, text.strip() or None)
    if done is not None:
        given = text.strip()
        report_done(host, f"labelled “{given}”" if given else f"removed label “{known}”")
