"""Saves searches by name, removes them, and lets one be chosen."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tui.dialogs.ask import AskDialog
from tui.dialogs.choose import ChooseDialog, Option
from tui.kit.text import fit, one_line
from tui.state.searches import SearchKeeper
from tui.verbs.doing import quoted

if TYPE_CHECKING:
    from tui.host import Host

QUERY_CELLS = 60
RECENT_SHOWN = 30


async def save_search(host: Host, keeper: SearchKeeper, query: str) -> None:
    """Ask for a name and save a query by it.

    Args:
        host: The app.
        keeper: Keeps the searches.
        query: As it was typed.
    """
    name = await host.push_screen_wait(AskDialog(
        "Save this search", verb="save", placeholder="failing pushes",
        about=fit(one_line(query), QUERY_CELLS),
        note="Saved searches are in the facets here, and among the views of the session list.",
    ))
    if name is None or not name.strip():
        return
    known = name.strip() in keeper.kept.saved
    if _kept(host, keeper, name.strip(), query):
        words = "Saved the search as" if not known else "Changed the saved search"
        host.notify(f"{words} {quoted(name.strip())}", markup=False)


def _kept(host: Host, keeper: SearchKeeper, name: str, query: str) -> bool:
    try:
        keeper.save(name, query)
    except OSError as error:
        host.report("The search could not be saved", error)
        return False
    return True


async def forget_search(host: Host, keeper: SearchKeeper, name: str) -> None:
    """Remove a saved search, once the user has confirmed it.

    Args:
        host: The app.
        keeper: Keeps the searches.
        name: The name it was saved by.
    """
    sure = await host.push_screen_wait(ChooseDialog(
        f"Remove the saved search {quoted(name)}?", verb="remove",
        about=fit(one_line(keeper.kept.saved.get(name, "")), QUERY_CELLS),
    ))
    if not sure:
        return
    try:
        keeper.forget(name)
    except OSError as error:
        host.report("The saved search could not be removed", error)
        return
    host.notify(f"Removed the saved search {quoted(name)}", markup=False)


async def choose_search(host: Host, keeper: SearchKeeper) -> str | None:
    """Return the query of the saved or recent search that the user chooses; None without one."""
    kept = keeper.kept
    options = [
        Option(name, query, fit(one_line(query), QUERY_CELLS), look="text bold")
        for name, query in kept.saved.items()
    ]
    saved = set(kept.saved.values())
    options += [
        Option(fit(one_line(query), QUERY_CELLS), query, "used before")
        for query in kept.recent[:RECENT_SHOWN] if query not in saved
    ]
    chosen: str | None = await host.push_screen_wait(ChooseDialog(
        "Searches", options, about=f"{len(kept.saved)} saved", verb="search"))
    return chosen
