"""Verbs that work wherever the focus is: undo, redo, and going on in the agent."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

from tui.host import host_of
from tui.verbs.doing import asking, perform

if TYPE_CHECKING:
    from textual.widget import Widget

    from store.verbs.undo import Step


class UndoVerbs:
    """Mixin of a screen."""

    async def do_undo(self) -> None:
        """Take the newest verb of this store back."""
        from store.verbs.undo import undo

        app = host_of(cast("Widget", self))
        done = await perform(app, undo)
        if done is None:
            return
        step = done.value
        app.rewinds.pop(step.session_id, None)
        await self.after_step(step)
        if step.kept is None:
            app.notify(f"Undone: {step.summary} · ctrl+r redoes", markup=False)
        else:
            words = f"Not undone: {step.summary}: {step.kept} · U goes on with what was before it"
            app.notify(words, severity="warning", markup=False)

    async def do_redo(self) -> None:
        """Do again what was undone last."""
        from store.verbs.undo import redo

        app = host_of(cast("Widget", self))
        shown = app.shown_session or ""
        rewound = app.rewinds.get(shown)
        if rewound is not None and rewound.told:
            from tui.verbs.rewinding import hide_again

            await asking(cast("Widget", self), hide_again(app, shown, rewound))
            return
        done = await perform(app, redo)
        if done is not None:
            await self.after_step(done.value)
            app.notify(f"Done again: {done.value.summary} · U undoes", markup=False)

    async def after_step(self, step: Step) -> None:
        """Show the session that was undone or redone to."""
        host = host_of(cast("Widget", self))
        host.select_session(step.session_id)
        if step.verb == "fork":
            host.open_session(step.session_id, focus=False)


class ContinueVerb:
    """Mixin of a screen that knows which session is meant."""

    def session_meant(self) -> str | None:
        """Return the session to go on with."""
        raise NotImplementedError

    async def settle_selection(self) -> None:
        """Wait until the selection is where earlier keys moved it."""

    async def do_continue(self) -> None:
        """Go on with the session in its agent."""
        from tui.verbs.resuming import go_on

        await self.settle_selection()
        session_id = self.session_meant()
        if session_id is not None:
            work: Any = go_on(host_of(cast("Widget", self)), session_id)
            await asking(cast("Widget", self), work)
