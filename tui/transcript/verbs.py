"""What the keys do to the shown session: fork, rewind, label, go to another branch."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from store.queries.transcript import child_of
from store.text.stored_json import as_dict
from tui.host import WayBack, host_of
from tui.messages import InspectRequested
from tui.transcript.navigator import Navigator
from tui.transcript.selected import SelectedPart
from tui.transcript.shown import ShownSession
from tui.verbs.doing import asking

if TYPE_CHECKING:
    from textual.widget import Widget


class SessionVerbs:
    """Runs the verbs of a session at the selected message."""

    def __init__(
        self, shown: ShownSession, pane: Widget, *, navigator: Navigator,
        selected: SelectedPart,
    ) -> None:
        """Make the verbs of a session.

        Args:
            shown: The session.
            pane: The widget whose app asks, and shows what was done.
            navigator: Goes to a message that was chosen.
            selected: Announces the part that is to be inspected.
        """
        self._shown, self._pane = shown, pane
        self._navigator, self._selected = navigator, selected

    # Fork, rewind, restore

    async def fork(self) -> None:
        """Fork the session at the selected message."""
        from tui.verbs.forking import fork_at

        shown = self._shown
        await asking(self._pane, fork_at(
            host_of(self._pane), shown.session_id, shown.message_id))

    async def fork_before(self) -> None:
        """Fork before the user message of the selected turn."""
        from tui.verbs.forking import fork_at

        shown = self._shown
        message_id = shown.turn()[0] or shown.message_id
        await asking(self._pane, fork_at(
            host_of(self._pane), shown.session_id, message_id, before=True))

    async def rewind(self) -> None:
        """Hide what comes after the selected message, or its turn too."""
        from tui.verbs.rewinding import rewind_to

        shown = self._shown
        turn, latest = shown.turn()
        await asking(self._pane, rewind_to(
            host_of(self._pane), shown.session_id, shown.message_id, turn, latest=latest))

    async def restore(self) -> None:
        """Show again what a rewind has hidden."""
        from tui.verbs.rewinding import restore_batch

        await asking(self._pane, restore_batch(host_of(self._pane), self._shown.session_id))

    # Labels

    async def change_label(self) -> None:
        """Label the selected message."""
        from tui.verbs.labels import change_label

        shown = self._shown
        await asking(self._pane, change_label(
            host_of(self._pane), shown.session_id, shown.message_id))

    async def go_to_label(self) -> None:
        """Choose a label or a mark, and go there."""
        await host_of(self._pane).choose_place()

    # Other sessions

    async def branch(self, step: int) -> None:
        """Open the next (1) or previous (-1) branch of the family."""
        from tui.verbs.branches import neighbour

        host = host_of(self._pane)
        other = await neighbour(host, self._shown.session_id, step)
        if other is not None:
            host.open_session(other)

    async def show_details(self) -> None:
        """Show the details of the session."""
        from tui.details.screen import DetailsScreen

        library = host_of(self._pane).library
        self._pane.app.push_screen(
            DetailsScreen(await library.ready(), self._shown.session_id))

    async def show_file(self) -> None:
        """Show the file that the selected call changed, as it was before and after."""
        from tui.files.screen import FileScreen

        part_id, message_id = self.file_part(), self.file_message()
        if part_id is not None or message_id is not None:
            library = host_of(self._pane).library
            self._pane.app.push_screen(FileScreen(
                await library.ready(), self._shown.session_id, part_id=part_id,
                message_id=message_id if part_id is None else None))

    def file_message(self) -> str | None:
        """Return the selected message where its agent kept the files as they were then."""
        shown = self._shown
        item = shown.document.item(shown.cursor) if shown.has_parts else None
        if item is None:
            return None
        own = as_dict(item.metadata.get("backscroll"))
        kept = isinstance(item.metadata.get("snapshot_id"), str) or "checkpoint" in own
        return item.message.id if kept else None

    def file_part(self) -> str | None:
        """Return the selected part where it is a call that reads or changes files; else None."""
        from store.conversation.touched import touched

        shown = self._shown
        item = shown.document.item(shown.cursor) if shown.has_parts else None
        if item is None or item.row is None:
            return None
        found = touched(item.data)
        uses = found is not None and any(file.is_use for file in found.files)
        return item.row.id if uses else None

    async def show_exchange(self) -> None:
        """Show what the agents of the session sent to each other."""
        from tui.exchange.screen import ExchangeScreen

        library = host_of(self._pane).library
        self._pane.app.push_screen(ExchangeScreen(await library.ready(), self._shown.session_id))

    def show_tree(self) -> None:
        """Show the family of the session."""
        from tui.tree.screen import TreeScreen

        self._pane.app.push_screen(TreeScreen(self._shown.session_id))

    async def compare(self) -> None:
        """Compare with another branch."""
        await asking(self._pane, self._compare())

    async def _compare(self) -> None:
        from tui.compare.screen import CompareScreen
        from tui.verbs.branches import choose_branch

        session_id = self._shown.session_id
        other = await choose_branch(host_of(self._pane), session_id)
        if other is not None:
            await self._pane.app.push_screen(CompareScreen(session_id, other))

    def inspect(self) -> None:
        """Inspect the selected part; a subagent's call opens its session."""
        if not self.open_child():
            self._selected.again()
            self._pane.post_message(InspectRequested())

    def open_child(self) -> bool:
        """Open the session that the selected call started; False where there is none."""
        document = self._shown.document
        row = document.row(self._shown.cursor) if self._shown.has_parts else None
        if row is None or row.tool_call_id is None:
            return False
        child = child_of(document.setting.children, row.message_id, row.tool_call_id)
        if child is None:
            return False
        host, parent = host_of(self._pane), self._shown.session
        if parent is not None:
            again = partial(host.open_session, parent.id, back=host.way_back)
            back = WayBack(parent.title or "the parent", again)
            host.open_session(child.id, back=back)
        return True
