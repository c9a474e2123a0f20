"""Actions on whole sessions, shared by the list and the tree.

Verbs and dialogs are imported by the first key that needs them, after the first paint.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Protocol

from store.queries import chosen
from store.queries.chosen import Chosen
from tui.host import host_of
from tui.verbs.doing import ask_store, asking, counted, perform, quoted, report_done

if TYPE_CHECKING:
    from textual.widget import Widget

    from tui.host import Host


class Targets(Protocol):
    """The sessions that an action is for."""

    @property
    def current(self) -> str | None:
        """The id of the session under the cursor."""
        ...

    async def chosen(self) -> list[Chosen]:
        """Return the marked sessions, else the current one."""
        ...

    def leaving(self, *, archiving: bool) -> None:
        """Choose the session to select when the chosen ones leave the list."""
        ...

    def left(self, *, done: bool) -> None:
        """Select it, or stay where the action was refused."""
        ...

    def clear_marks(self) -> None:
        """Clear all marks."""
        ...


class OneSession:
    """The session under a cursor, where none can be marked and none leaves the list."""

    def __init__(self, screen: Widget, current: Callable[[], str | None]) -> None:
        """Take the screen, which leads to the host, and what returns the session."""
        self._screen, self._current = screen, current

    @property
    def current(self) -> str | None:
        """The id of the session under the cursor."""
        return self._current()

    async def chosen(self) -> list[Chosen]:
        """Return the session."""
        current = self.current
        found = await ask_store(
            host_of(self._screen), chosen.by_id, [current] if current else [])
        return found.value if found else []

    def leaving(self, *, archiving: bool) -> None:
        """Stay."""

    def left(self, *, done: bool) -> None:
        """Stay."""

    def clear_marks(self) -> None:
        """Clear nothing."""


class SessionActions:
    """Archives, renames, stars and tags sessions, and reports what was done."""

    def __init__(self, widget: Widget, targets: Targets) -> None:
        """Take what the actions are for.

        Args:
            widget: Leads to the host, and runs what asks the user.
            targets: The sessions.
        """
        self._widget, self._targets = widget, targets

    @property
    def _host(self) -> Host:
        return host_of(self._widget)

    async def archive(self) -> None:
        """Archive the chosen sessions; unarchive them where all are archived."""
        from store.verbs.shelf import archive, unarchive

        host = self._host
        targets = await self._targets.chosen()
        archiving = not all(target.archived for target in targets)
        going = [target for target in targets if target.archived is not archiving]
        if not going:
            return
        names = [target.id for target in going]
        self._targets.leaving(archiving=archiving)
        done = await perform(host, archive if archiving else unarchive, names)
        self._targets.left(done=done is not None)
        if done is None:
            return
        self._targets.clear_marks()
        one = len(going) == 1
        what = quoted(going[0].title) if one else counted(len(going), "session")
        report_done(host, f"archived {what}" if archiving else f"unarchived {what}")

    async def rename(self) -> None:
        """Rename the session."""
        await asking(self._widget, self._rename())

    async def _rename(self) -> None:
        from store.verbs.marks import rename
        from tui.dialogs.ask import AskDialog

        host, session_id = self._host, self._targets.current
        found = await ask_store(host, chosen.by_id, [session_id] if session_id else [])
        if found is None or not found.value:
            return
        known = found.value
        title = await host.push_screen_wait(
            AskDialog("Rename", known[0].title or "", verb="rename", placeholder="a title",
                      note="Your title stays when the agent changes its own.")
        )
        if title is None or title.strip() == (known[0].title or "").strip():
            return
        done = await perform(host, rename, known[0].id, title)
        if done is not None:
            report_done(host, f"renamed to {quoted(done.value)}")

    async def star(self) -> None:
        """Star the chosen sessions; unstar them where all are starred."""
        from store.verbs.marks import star_all

        host, known = self._host, await self._targets.chosen()
        if known:
            done = await perform(host, star_all, [one.id for one in known])
            if done is not None:
                on, changed = done.value
                title = _what([one for one in known if one.id in set(changed)])
                self._targets.clear_marks()
                report_done(host, f"starred {title}" if on else f"unstarred {title}")

    async def tag(self) -> None:
        """Edit the tags of the chosen sessions."""
        await asking(self._widget, self._tag())

    async def _tag(self) -> None:
        from store.queries.user_marks import user_marks
        from store.verbs.marks import tag
        from tui.dialogs.ask import AskDialog

        host, session_id = self._host, self._targets.current
        known = await self._targets.chosen()
        if len(known) > 1:
            await self._tag_many(known)
            return
        session_id = known[0].id if known else session_id
        if session_id is None:
            return
        marks = await ask_store(host, user_marks, session_id)
        if marks is None:
            return
        before = [str(name) for name in marks.value.get("tags") or []]
        text = await host.push_screen_wait(
            AskDialog("Tags", ", ".join(before), verb="set", placeholder="fix, api, later",
                      note="Separate tags with commas; clear the line to remove all.")
        )
        if text is None:
            return
        after = [name for part in text.split(",") if (name := " ".join(part.split()))]
        add = [name for name in after if name not in before]
        remove = [name for name in before if name not in after]
        if not add and not remove:
            return
        done = await perform(host, tag, session_id, add=add, remove=remove)
        if done is not None:
            tags = ", ".join(done.value)
            report_done(host, f"tagged {tags}" if tags else "removed all tags")

    async def _tag_many(self, known: list[Chosen]) -> None:
        from store.verbs.marks import tag_all
        from tui.dialogs.ask import AskDialog

        host = self._host
        text = await host.push_screen_wait(
            AskDialog(f"Tags of {_what(known)}", "", verb="set", placeholder="fix, api, -later",
                      note="They are added to the tags of each; a minus before a tag removes it.")
        )
        names = [name for part in (text or "").split(",") if (name := " ".join(part.split()))]
        if not names:
            return
        add = [name for name in names if not name.startswith("-")]
        remove = [name[1:] for name in names if name.startswith("-")]
        ids = [one.id for one in known]
        done = await perform(host, tag_all, ids, add=add, remove=remove)
        if done is not None:
            self._targets.clear_marks()
            report_done(host, f"tagged {counted(len(done.value), 'session')}: {', '.join(names)}")


def _what(chosen_ones: list[Chosen]) -> str:
    """Return one session's title, or how many there are."""
    one = len(chosen_ones) == 1
    return quoted(chosen_ones[0].title) if one else counted(len(chosen_ones), "session")
