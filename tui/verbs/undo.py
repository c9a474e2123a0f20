"""Undo and redo the newest change of the store, and notice rewinds that others undo."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tui.kit.key_hints import keyed
from tui.verbs.doing import perform, report_done

if TYPE_CHECKING:
    from store.engine.changes import Moved
    from store.verbs.undo import Step
    from tui.host import Host


async def undo(host: Host) -> Step | None:
    """Undo the newest change of this store, and select its session; None where refused."""
    from store.verbs.undo import undo as undo_in_store

    def leave(step: Step) -> None:
        host.rewinds.pop(step.session_id, None)
        if step.verb == "fork":
            # The fork may still be being opened; that it is gone is what was asked for.
            host.open_session(step.session_id, focus=False)

    done = await perform(host, undo_in_store, written=leave)
    if done is None:
        return None
    step = done.value
    _show(host, step)
    if step.kept is None:
        hint = host.commands.hint("app.redo", "redoes")
        host.notify(f"Undone: {step.summary}{hint}", markup=False)
    else:
        hint = host.commands.hint("app.undo", "undoes the change before it")
        words = f"Not undone: {step.summary}: {step.kept}{hint}"
        host.notify(words, severity="warning", markup=False)
    return step


async def redo(host: Host) -> Step | None:
    """Redo what was undone last, and select its session; None where refused.

    A rewind of the shown session that another program undid is done again first.
    """
    from store.verbs.undo import redo as redo_in_store

    shown = host.shown_session or ""
    rewound = host.rewinds.get(shown)
    if rewound is not None and rewound.reported:
        from tui.verbs.rewinding import hide_again

        await hide_again(host, shown, rewound)
        return None
    done = await perform(host, redo_in_store)
    if done is None:
        return None
    _show(host, done.value)
    report_done(host, f"redone: {done.value.summary}")
    return done.value


def _show(host: Host, step: Step) -> None:
    if step.verb == "fork":
        host.open_session(step.session_id, focus=False)
    else:
        host.select_session(step.session_id)


async def report_undone_rewind(host: Host, moved: Moved) -> None:
    """Report a rewind of the shown session that another program's write has undone.

    Args:
        host: The app.
        moved: What was written.
    """
    session_id = host.shown_session
    rewound = host.rewinds.get(session_id or "")
    if session_id is None or rewound is None or not moved.touches(session_id):
        return
    from store.verbs.rewind import shown_again

    count = await host.library.read(shown_again, session_id, rewound.kept, rewound.last_at)
    if host.rewinds.get(session_id) != rewound:
        return
    if count and not rewound.reported:
        what = "message" if count == 1 else "messages"
        host.notify(
            f"Another program shows {count} rewound {what} again · "
            f"{keyed('app.redo', 'hides them again')}",
            severity="warning", timeout=20, markup=False)
    host.rewinds[session_id] = rewound._replace(reported=bool(count))
