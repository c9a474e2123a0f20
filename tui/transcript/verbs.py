"""What the transcript does at the selected message: fork, rewind, label, branches, context."""

from __future__ import annotations

from collections.abc import Coroutine
from typing import TYPE_CHECKING, Any, cast

from tui.host import host_of
from tui.kit.lines import Run
from tui.kit.text import one_line
from tui.transcript.headings import FactLines
from tui.transcript.plain import as_dict, decode
from tui.verbs.doing import asking, open_now

if TYPE_CHECKING:
    from tui.transcript.context import Meter
    from tui.transcript.transcript_pane import TranscriptPane


class TranscriptVerbs:
    """Mixin of the transcript pane."""

    _meter: Meter | None = None
    _metered: tuple[str, int] | None = None
    _meter_lines: FactLines | None = None

    @property
    def _pane(self) -> TranscriptPane:
        return cast("TranscriptPane", self)

    async def flow(self, work: Coroutine[Any, Any, None]) -> None:
        """Run something that asks the user in between."""
        await asking(self._pane, work)

    @property
    def session_id(self) -> str:
        """The session that is shown; there is one."""
        row = self._pane.session
        assert row is not None
        return row.id

    @property
    def message_id(self) -> str:
        """The selected message; there is one."""
        return self._pane.document.skeleton.key(self._pane.cursor)[0]

    def turn_here(self) -> tuple[str | None, bool]:
        """Return the user message that begins the selected turn, and whether it is the last."""
        skeleton = self._pane.document.skeleton
        number = skeleton.turn_of(skeleton.message[self._pane.cursor])
        if not number:
            return None, False
        return skeleton.message_ids[skeleton.turns[number - 1]], number == len(skeleton.turns)

    # Fork, rewind, restore

    async def do_fork(self) -> None:
        """Fork the session at the selected message."""
        from tui.verbs.forking import fork_at

        await self.flow(fork_at(host_of(self._pane), self.session_id, self.message_id))

    async def do_fork_before(self) -> None:
        """Fork before the user message of the selected turn."""
        from tui.verbs.forking import fork_at

        turn, _latest = self.turn_here()
        message_id = turn or self.message_id
        await self.flow(fork_at(host_of(self._pane), self.session_id, message_id, before=True))

    async def do_rewind(self) -> None:
        """Hide what comes after the selected message, or the turn too."""
        from tui.verbs.rewinding import rewind_to

        turn, latest = self.turn_here()
        await self.flow(rewind_to(host_of(self._pane), self.session_id, self.message_id, turn,
                            latest=latest))

    async def do_restore(self) -> None:
        """Show again what a rewind has hidden."""
        from tui.verbs.rewinding import restore_batch

        await self.flow(restore_batch(host_of(self._pane), self.session_id))

    # Labels

    async def do_label(self) -> None:
        """Label the selected message."""
        from tui.verbs.labels import change_label

        await self.flow(change_label(host_of(self._pane), self.session_id, self.message_id))

    async def do_labels(self) -> None:
        """Choose a label and go there."""
        await self.flow(self._to_label())

    async def _to_label(self) -> None:
        from tui.verbs.labels import choose_label

        message_id = await choose_label(host_of(self._pane), self.session_id)
        if message_id is not None:
            part = self._pane.document.skeleton.locate(message_id)
            if part is None:
                open_now(self._pane, self.session_id, message_id)
            else:
                await self._pane.jump(part, top=True)

    # Branches

    async def _branch(self, step: int) -> None:
        from tui.verbs.branches import neighbour

        app = host_of(self._pane)
        other = await neighbour(app, self.session_id, step)
        if other is not None:
            app.select_session(other)
            open_now(self._pane, other)

    async def do_next_branch(self) -> None:
        """Open the next branch of the family."""
        await self._branch(1)

    async def do_previous_branch(self) -> None:
        """Open the branch before."""
        await self._branch(-1)

    def do_tree(self) -> None:
        """Show the family of the session."""
        from tui.tree.screen import TreeScreen

        self._pane.app.push_screen(TreeScreen(self.session_id))

    async def do_compare(self) -> None:
        """Compare with another branch."""
        await self.flow(self._compare())

    async def _compare(self) -> None:
        from tui.compare.screen import CompareScreen
        from tui.verbs.branches import choose_branch

        session_id = self.session_id
        other = await choose_branch(host_of(self._pane), session_id)
        if other is not None:
            await self._pane.app.push_screen(CompareScreen(session_id, other))

    # Context view

    @property
    def in_context_view(self) -> bool:
        """Whether what the model would be sent is shown, not all that happened."""
        reader = self._pane.reader
        return reader is not None and not reader.in_display_order

    async def do_context(self) -> None:
        """Go between all that happened and what the model would be sent now."""
        pane = self._pane
        # What is written meanwhile is shown afterwards, in what is shown then.
        async with pane.in_order() as same, pane.changing:
            if same:
                await self._other_view()

    async def _other_view(self) -> None:
        from tui.transcript.context import ContextReader
        from tui.transcript.reader import SessionReader

        pane = self._pane
        before = pane.reader
        assert before is not None
        kind = SessionReader if self.in_context_view else ContextReader
        reader = kind(before.store, before.row)
        chosen, at_end = self.message_id, pane.view.at_end
        setting = pane.view.content_setting
        document = await reader.open(setting, chosen, at_end=False)
        document.folds = pane.document.folds
        if not document.complete:
            skeleton, heights = await reader.skeleton(document.setting)
            document.use(skeleton, heights, complete=True)
        if pane.reader is not before:
            return
        pane.end_search()
        before.left, pane.reader = True, reader
        pane.view.show(document)

        def stood() -> None:
            part = pane.document.skeleton.locate(chosen)
            if at_end or part is None:
                pane._ended()
            else:
                pane._jumped(part)

        await pane.arrive(stood)
        self.show_around()

    def show_around(self) -> None:
        """Bring header, status, labels and the context's meter up to date."""
        self._take_labels()
        super().show_around()  # type: ignore[misc]
        self._show_meter()

    def _take_labels(self) -> None:
        """Draw the labels that the session's row has now."""
        pane = self._pane
        metadata = pane.session.metadata_json if pane.session is not None else ""
        labels: dict[str, str] = {}
        if '"labels"' in metadata:
            found = as_dict(as_dict(as_dict(decode(metadata)).get("user")).get("labels"))
            labels = {name: str(text) for name, text in found.items()}
        document = pane.document
        if labels == document.setting.labels:
            return
        changed = set(labels.items()) ^ set(document.setting.labels.items())
        document.setting.labels = labels
        for message_id in {name for name, _text in changed}:
            part = document.skeleton.locate(message_id) if len(document) else None
            if part is not None:
                document.forget(part)
        pane.view.changed()

    def _left(self) -> list[Run]:
        runs: list[Run] = super()._left()  # type: ignore[misc]
        pane = self._pane
        if pane.search is not None or not len(pane.document):
            return runs
        label = pane.document.setting.labels.get(self.message_id)
        return [(f"“{one_line(label)}”  ", "tool"), *runs] if label else runs

    def _show_meter(self) -> None:
        pane = self._pane
        if not self.in_context_view:
            if self._meter_lines is not None:
                self._meter_lines.display = False
            self._metered = None
            return
        from tui.transcript.context import meter_lines

        if self._meter_lines is None:
            self._meter_lines = FactLines(3, id="transcript-context")
            pane.mount(self._meter_lines, before=pane.view)
        self._meter_lines.display = True
        messages = len(pane.document.skeleton.message_ids)
        state = (self.session_id, messages)
        if state != self._metered:
            if self._metered is None or self._metered[0] != state[0]:
                self._meter = None
            self._metered = state
            pane.background(self._measure, group="context")
        lines = meter_lines(self._meter, messages, pane.size.width)
        self._meter_lines.styles.height = len(lines)
        self._meter_lines.show(lines)

    async def _measure(self) -> None:
        from tui.transcript.context import meter_of, read_filling

        reader = self._pane.reader
        if reader is None:
            return
        found = meter_of(await read_filling(reader.store, reader.row.id))
        if reader is self._pane.reader:
            self._meter = found
            self._show_meter()
