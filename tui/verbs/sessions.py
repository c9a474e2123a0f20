"""Actions on whole sessions, shared by the list and the tree.

Verbs and dialogs are imported by the first key that needs them, after the first paint.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import TYPE_CHECKING, Protocol

from store.errors import Refused
from store.queries import chosen
from store.queries.chosen import Chosen
from tui.host import host_of
from tui.verbs.doing import ask_store, asking, counted, perform, quoted, refuse, report_done

if TYPE_CHECKING:
    from textual.widget import Widget

    from tui.host import Host


SEPARATOR = ";"
"""Between rules of permission that are edited in one line."""


class Targets(Protocol):
    """The sessions that an action is for."""

    @property
    def current(self) -> str | None:
        """The id of the session under the cursor."""
        ...

    @property
    def unseen(self) -> int:
        """How many of the marked sessions are not in the list, as a filter leaves them out."""
        ...

    async def chosen(self) -> list[Chosen]:
        """Return the marked sessions, else the current one."""
        ...

    def leaving(self, gone: Collection[str], *, archiving: bool) -> None:
        """Choose the session to select where the current one is among those that leave the list.

        Args:
            gone: Their ids.
            archiving: Whether they were archived; else they were taken out of the archive.
        """
        ...

    def left(self) -> None:
        """Read the list without what has left it."""
        ...

    def clear_marks(self) -> None:
        """Clear all marks."""
        ...


class OneSession:
    """The session under a cursor, where none can be marked and none leaves the list."""

    def __init__(self, screen: Widget, current: Callable[[], str | None]) -> None:
        """Take the screen, which leads to the host, and what returns the session."""
        self._screen, self._current = screen, current

    unseen = 0

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

    def leaving(self, gone: Collection[str], *, archiving: bool) -> None:
        """Stay."""

    def left(self) -> None:
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
        names, what = [target.id for target in going], self._what(going)
        # Only once it is written: while the store is busy the cursor may move elsewhere.
        done = await perform(
            host, archive if archiving else unarchive, names,
            written=lambda changed: self._targets.leaving(changed, archiving=archiving))
        if done is None:
            return
        self._targets.left()
        self._targets.clear_marks()
        along = len(set(done.value) - set(names))
        what += f" with {counted(along, 'subagent')}" if along else ""
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
                      about=quoted(known[0].title),
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
            not_seen = self._not_seen()
            done = await perform(host, star_all, [one.id for one in known])
            if done is not None:
                on, changed = done.value
                title = _what([one for one in known if one.id in set(changed)]) + not_seen
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
                      about=quoted(known[0].title) if known else "",
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

    async def edit_rules(self) -> None:
        """Edit the rules of permission of the session's own scope."""
        await asking(self._widget, self._edit_rules())

    async def _edit_rules(self) -> None:
        from store.queries.sessions import get
        from store.verbs.permissions import rule_in, session_rules, set_rules
        from tui.dialogs.ask import AskDialog

        host, session_id = self._host, self._targets.current
        found = await ask_store(host, get, session_id) if session_id else None
        if found is None or found.value is None:
            return
        row = found.value
        rules = session_rules(row.permissions_json)
        before = f"{SEPARATOR} ".join(map(str, rules))
        if before.count(SEPARATOR) >= max(1, len(rules)):
            refuse(host, Refused(f"A rule of this session has a {SEPARATOR!r} in it; change it with"
                                 " `backscroll permissions`"))
            return
        text = await host.push_screen_wait(
            AskDialog("Permissions", before, verb="set", placeholder="allow Bash git *; deny Web",
                      about=quoted(row.title),
                      note="Separate rules with semicolons: allow, deny or ask, a tool, a pattern."
                           " Rules of the agent and the project stay as they are.")
        )
        if text is None or text.strip() == before:
            return
        try:
            rules = [rule_in(part) for part in text.split(SEPARATOR) if part.strip()]
        except Refused as error:
            refuse(host, error)
            return
        done = await perform(host, set_rules, row.id, rules)
        if done is not None:
            rules_now = counted(len(done.value), "rule")
            report_done(host, f"set {rules_now} of {quoted(row.title)}" if done.value
                        else f"removed all rules of {quoted(row.title)}")

    async def _tag_many(self, known: list[Chosen]) -> None:
        from store.verbs.marks import tag_all
        from tui.dialogs.ask import AskDialog

        host = self._host
        text = await host.push_screen_wait(
            AskDialog(f"Tags of {self._what(known)}", "", verb="set",
                      placeholder="fix, api, -later",
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

    def _what(self, chosen_ones: list[Chosen]) -> str:
        return _what(chosen_ones) + self._not_seen()

    def _not_seen(self) -> str:
        """Return how many of the marked sessions the list does not show, "" for none."""
        unseen = self._targets.unseen
        return f" ({unseen:,} not in this list)" if unseen else ""


def _what(chosen_ones: list[Chosen]) -> str:
    """Return one session's title, or how many there are."""
    one = len(chosen_ones) == 1
    return quoted(chosen_ones[0].title) if one else counted(len(chosen_ones), "session")
