"""Searches all sessions for what is selected: a text, a path, a command, an error."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from tui.dialogs.choose import ChooseDialog, Option
from tui.host import host_of
from tui.verbs.doing import asking
from tui.words.searching import Wanted, text_query

if TYPE_CHECKING:
    from textual.widget import Widget

    from tui.host import Host

NOTHING = "Select the text to search for with the mouse first"


async def search_everywhere(owner: Widget, wanted: Sequence[Wanted]) -> None:
    """Search all sessions for the text that the mouse selected, else for what the line has.

    Args:
        owner: The pane or screen with the line.
        wanted: What the line has; one of several is asked for.
    """
    selected = text_query(owner.screen.get_selected_text() or "")
    host = host_of(owner)
    if selected:
        host.open_search(selected)
    elif len(wanted) == 1:
        host.open_search(wanted[0].query)
    elif wanted:
        await asking(owner, _choose(host, wanted))
    else:
        host.notify(NOTHING, severity="warning", markup=False)


async def _choose(host: Host, wanted: Sequence[Wanted]) -> None:
    options = [Option(each.text, each.query, each.name) for each in wanted]
    query: str | None = await host.push_screen_wait(
        ChooseDialog("Search all sessions for", options, verb="search"))
    if query is not None:
        host.open_search(query)
