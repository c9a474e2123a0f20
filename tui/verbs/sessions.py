"""Verbs on whole sessions: the list and the tree have the same keys for them.

The verbs and dialogs are loaded with the first key that needs them, not before the first
paint.
"""

from __future__ import annotations

from collections.abc import Coroutine
from typing import TYPE_CHECKING, Any, cast

from store.queries import chosen
from store.queries.chosen import Chosen
from tui.verbs.doing import ask_store, asking, counted, perform, quoted, shown_app, told

if TYPE_CHECKING:
    from textual.widget import Widget


class SessionVerbs:
    """Mixin of a pane or screen that has a current session, and perhaps marked ones."""

    def current_session(self) -> str | None:
        """Return the id of the session that the cursor is on."""
        raise NotImplementedError

    async def chosen_sessions(self) -> list[Chosen]:
        """Return the sessions that archive acts on: the marked ones, else the current one."""
        current = self.current_session()
        return await self._named([current] if current else [])

    def leave(self, *, archiving: bool) -> None:
        """Choose the neighbour to go to when the chosen sessions go out of sight."""

    def left(self, *, done: bool) -> None:
        """Go there, or stay where the verb was refused."""

    def unmark(self) -> None:
        """Take all marks away."""

    async def _named(self, session_ids: list[str]) -> list[Chosen]:
        found = await ask_store(shown_app(self), chosen.by_id, session_ids)
        return found.value if found else []

    async def flow(self, work: Coroutine[Any, Any, None]) -> None:
        """Run something that asks the user in between."""
        await asking(cast("Widget", self), work)

    async def do_archive(self) -> None:
        """Archive the chosen sessions; bring them back where all of them are archived."""
        from store.verbs.shelf import archive, unarchive

        app = shown_app(self)
        targets = await self.chosen_sessions()
        archiving = not all(target.archived for target in targets)
        going = [target for target in targets if target.archived is not archiving]
        if not going:
            return
        names = [target.id for target in going]
        self.leave(archiving=archiving)
        done = await perform(app, archive if archiving else unarchive, names)
        self.left(done=done is not None)
        if done is None:
            return
        self.unmark()
        one = len(going) == 1
        what = quoted(going[0].title) if one else counted(len(going), "session")
        told(app, f"archived {what}" if archiving else f"unarchived {what}")

    async def do_rename(self) -> None:
        """Give the session another title."""
        await self.flow(self._rename())

    async def _rename(self) -> None:
        from store.verbs.marks import rename
        from tui.dialogs.ask import AskDialog

        app, session_id = shown_app(self), self.current_session()
        known = await self._named([session_id] if session_id else [])
        if not known:
            return
        title = await app.push_screen_wait(
            AskDialog("Rename", known[0].title or "", verb="rename", placeholder="a title",
                      note="Your title stays, whatever the agent calls the session later.")
        )
        if title is None or title.strip() == (known[0].title or "").strip():
            return
        done = await perform(app, rename, known[0].id, title)
        if done is not None:
            told(app, f"renamed to {quoted(done.value)}")

    async def do_star(self) -> None:
        """Star the session, or take its star off."""
        from store.verbs.marks import star

        app, session_id = shown_app(self), self.current_session()
        known = await self._named([session_id] if session_id else [])
        if known:
            done = await perform(app, star, known[0].id)
            if done is not None:
                title = quoted(known[0].title)
                told(app, f"starred {title}" if done.value else f"took the star off {title}")

    async def do_tag(self) -> None:
        """Change the session's tags."""
        await self.flow(self._tag())

    async def _tag(self) -> None:
        from store.verbs.marks import tag, user_marks
        from tui.dialogs.ask import AskDialog

        app, session_id = shown_app(self), self.current_session()
        if session_id is None:
            return
        marks = await ask_store(app, user_marks, session_id)
        if marks is None:
            return
        before = [str(name) for name in marks.value.get("tags") or []]
        text = await app.push_screen_wait(
            AskDialog("Tags", ", ".join(before), verb="set", placeholder="fix, api, later",
                      note="Commas stand between tags; an empty line takes all away.")
        )
        if text is None:
            return
        after = [name for part in text.split(",") if (name := " ".join(part.split()))]
        add = [name for name in after if name not in before]
        remove = [name for name in before if name not in after]
        if not add and not remove:
            return
        done = await perform(app, tag, session_id, add=add, remove=remove)
        if done is not None:
            told(app, f"tagged {', '.join(done.value)}" if done.value else "took all tags away")
