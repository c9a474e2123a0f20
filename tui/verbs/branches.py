"""Find the next branch of a session, and choose one to compare with."""

from __future__ import annotations

from typing import TYPE_CHECKING

from store.engine.database import Database
from store.queries.lineage import siblings
from store.queries.sessions import get
from store.rows import SessionRow
from store.text import figures
from tui.dialogs.choose import ChooseDialog, Option
from tui.kit.key_hints import keyed
from tui.verbs.doing import ask_store
from tui.words.sessions import age

if TYPE_CHECKING:
    from tui.host import Host


def _alone() -> str:
    return f"This session has no other branch; {keyed('transcript.fork', 'forks it')}"


def branch_rows(db: Database, session_id: str) -> list[SessionRow]:
    """Return all branches of a session in the order of their age, itself included."""
    rows = [get(db, name) for name in siblings(db, session_id)]
    return [row for row in rows if row is not None]


async def neighbour(host: Host, session_id: str, step: int) -> str | None:
    """Return the next (1) or previous (-1) branch; None, with a toast, where there is none.

    Args:
        host: The app.
        session_id: The session.
        step: 1 or -1.
    """
    found = await ask_store(host, siblings, session_id)
    if found is None:
        return None
    names = found.value
    if len(names) < 2:
        host.notify(_alone(), markup=False)
        return None
    at = names.index(session_id) + step
    if not 0 <= at < len(names):
        host.notify("This is the last branch" if step > 0 else "This is the first branch",
                   markup=False)
        return None
    host.notify(f"Branch {at + 1} of {len(names)}", timeout=2, markup=False)
    return names[at]


async def choose_branch(host: Host, session_id: str) -> str | None:
    """Return the branch that the user chooses; the only other one without asking."""
    found = await ask_store(host, branch_rows, session_id)
    if found is None:
        return None
    others = [row for row in found.value if row.id != session_id]
    if not others:
        host.notify(_alone(), severity="warning", markup=False)
        return None
    if len(others) == 1:
        return others[0].id
    now = host.library.clock()
    options = [
        Option(row.title or "untitled", row.id,
               f"{figures.tokens(row.total_tokens)} tokens  {age(row.updated_at, now)}")
        for row in others
    ]
    chosen: str | None = await host.push_screen_wait(
        ChooseDialog("Compare with", options, about=f"{len(options)} branches", verb="compare")
    )
    return chosen
