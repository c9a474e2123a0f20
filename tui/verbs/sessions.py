"""Verbs on whole sessions: the list and the tree have the same keys for them.

The verbs and dialogs are loaded with the first key that needs them, not before the first
paint.
"""

from __future__ import annotations

from collections.abc import Coroutine
from typing import TYPE_CHECKING, Any, cast

from store.queries import chosen
from store.queries.chosen import Chosen
from tui.host import host_of
from tui.verbs.doing import ask_store, asking, counted, perform, quoted, told

if TYPE_CHECKING:
    from textual.widget import Widget


class SessionVerbs:
    """Mixin of a pane or screen that has a current session, and perhaps marked ones."""

    def current_session(self) -> str | None:
        """Return the id of the session that the cursor is on."""
        raise NotImplementedError

    async def chosen_sessions(self) -> list[Chosen]:
        """Return the sessions that are acted on: the marked ones, else the current one."""
        current = self.current_session()
        return await self._named([current] if current else [])

    def leave(self, *, archiving: bool) -> None:
        """Choose the neighbour to go to when the chosen sessions go out of sight."""

    def left(self, *, done: bool) -> None:
        """Go there, or stay where the verb was refused."""

    def unmark(self) -> None:
        """Take all marks away."""

    async def _named(self, session_ids: list[str]) -> list[Chosen]:
        found = await ask_store(host_of(cast("Widget", self)), chosen.by_id, session_ids)
        return found.value if found else []

    async def flow(self, work: Coroutine[Any, Any, None]) -> None:
        """Run something that asks the user in between."""
        await asking(cast("Widget", self), work)

    async def do_archive(self) -> None:
        """Archive the chosen sessions; bring them back where all of them are archived."""
        from store.verbs.shelf import archive, unarchive

        app = host_of(cast("Widget", self))
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

        app, session_id = host_of(cast("Widget", self)), self.current_session()
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
        """Star the chosen sessions; take the stars off where all have one."""
        from store.verbs.marks import star_all

        app, known = host_of(cast("Widget", self)), await self.chosen_sessions()
        if known:
            done = await perform(app, star_all, [one.id for one in known])
            if done is not None:
                on, changed = done.value
                title = _what([one for one in known if one.id in set(changed)])
                self.unmark()
                told(app, f"starred {title}" if on else f"took the star off {title}")

    async def do_tag(self) -> None:
        """Change the session's tags."""
        await self.flow(self._tag())

    async def _tag(self) -> None:
        from store.verbs.marks import tag, user_marks
        from tui.dialogs.ask import AskDialog

        app, session_id = host_of(cast("Widget", self)), self.current_session()
        known = await self.chosen_sessions()
        if len(known) > 1:
            await self._tag_many(known)
            return
        session_id = known[0].id if known else session_id
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

    async def _tag_many(self, known: list[Chosen]) -> None:
        from store.verbs.marks import tag_all
        from tui.dialogs.ask import AskDialog

        app = host_of(cast("Widget", self))
        text = await app.push_screen_wait(
            AskDialog(f"Tags of {_what(known)}", "", verb="set", placeholder="fix, api, -later",
                      note="They are added to the tags of each; a minus before one takes it away.")
        )
        names = [name for part in (text or "").split(",") if (name := " ".join(part.split()))]
        if not names:
            return
        add = [name for name in names if not name.startswith("-")]
        remove = [name[1:] for name in names if name.startswith("-")]
        ids = [one.id for one in known]
        done = await perform(app, tag_all, ids, add=add, remove=remove)
        if done is not None:
            self.unmark()
            told(app, f"tagged {counted(len(done.value), 'session')}: {', '.join(names)}")


def _what(chosen_ones: list[Chosen]) -> str:
    """Return one session's title, or how many there are."""
    one = len(chosen_ones) == 1
    return quoted(chosen_ones[0].title) if one else counted(len(chosen_ones), "session")
