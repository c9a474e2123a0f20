"""The replay of a session: the transcript as it was at a moment, played and scrubbed.

A tick of the clock or a key moves the ``Player``; then ``show`` cuts the document at its moment,
and the parts of the transcript pane do the rest: ``Placement`` loads what is seen, ``Navigator``
moves through it, ``Folds`` opens it. Ticks wait in the queue of the keys, one at a time.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import replace
from functools import partial

from textual import events, on
from textual.app import ComposeResult
from textual.containers import Horizontal, Vertical

from store.queries.inspection import PartDetail
from store.queries.sessions import get
from store.queries.transcript import child_of
from store.replay.axis import Axis
from store.replay.player import Player
from store.replay.totals import Totals
from store.system.clock import Clock
from store.text import figures
from store.usage import Spent
from tui.inspector.pane import InspectorPane
from tui.keys.declaration import AnyCommand
from tui.keys.footer import BottomLine, show_keys
from tui.keys.queue import Work, enqueue
from tui.kit.lines import Line, Run
from tui.kit.paint import follow_theme
from tui.main.inspecting import InspectorFeed
from tui.messages import JumpedFrom, NothingSelected, PartSelected, SessionOpened
from tui.replay.bar import PositionBar
from tui.replay.document import ReplayDocument
from tui.replay.reading import Left, Piece, ReplayReader, SessionReading
from tui.stacked import UpperScreen
from tui.state.layout import THREE_PANES, TWO_PANES, LayoutState
from tui.transcript.copy_actions import CopyActions
from tui.transcript.folds import Folds
from tui.transcript.headings import FactLines, header_lines
from tui.transcript.navigator import Navigator
from tui.transcript.placement import Placement
from tui.transcript.selected import SelectedPart
from tui.transcript.shown import OwnServices, ShownSession
from tui.transcript.snapshot import ViewportSnapshot
from tui.transcript.view import TranscriptView

TICK_S = 1 / 12
"""How often the picture moves while it plays."""
JUDGED_EVERY_S = 5.0
"""How often is looked whether a session that ran still does."""
RENEWED_S = 1.0
"""What was written of a session is read no more often than this."""
RESTS = 5
"""How many times as long as that took it is then left alone."""


class ReplayScreen(OwnServices, UpperScreen):
    """Plays one session.

    Attributes:
        player: Where the replay is; None until the session is read.
        feed: Hands the selected part to the inspector.
        view: Shows the transcript at that moment.
    """

    SCOPE = "replay"
    navigator: Navigator
    folds: Folds
    copying: CopyActions
    AUTO_FOCUS = "TranscriptView"
    DEFAULT_CSS = """
    ReplayScreen { background: $background; }
    ReplayScreen #replay-body { height: 1fr; }
    ReplayScreen #replay-talk { width: 1fr; }
    ReplayScreen InspectorPane { display: none; }
    """

    def __init__(
        self, session_id: str, message_id: str | None, *, clock: Clock, ticks: bool = True
    ) -> None:
        """Make the replay of a session.

        Args:
            session_id: The session.
            message_id: The message to begin at; None for the start of the session.
            clock: Returns the present, epoch ms; the replay goes by it.
            ticks: Whether a timer moves it; else ``tick`` has to be called.
        """
        super().__init__()
        self._session_id, self._from = session_id, message_id
        self._clock, self._ticks = clock, ticks
        self.view = TranscriptView(id="replay-view")
        self.header = FactLines(2, id="replay-header")
        self.bar = PositionBar()
        self.inspector = InspectorPane()
        self.inspector.as_shown, self.inspector.known = self._detail_then, self._detail_known
        self.shown = shown = ShownSession(self.view)
        self.selected = SelectedPart(shown, self)
        self.placement = Placement(shown, self, self.selected)
        self.navigator = Navigator(shown, self, self.placement)
        self.folds = Folds(shown, self, self.placement)
        self.copying = CopyActions(shown, self)
        self.player: Player | None = None
        self.feed: InspectorFeed
        self._totals: Totals | None = None
        self._axis: Axis | None = None
        self._reading: SessionReading | None = None
        self._begun: int | None = None
        self._left: Left | None = None
        self._is_window, self._was_moved = False, False
        self._ticked = clock()
        self._tick_waits = False
        self._sought_share: float | None = None
        self._inspects = False
        self._digit = 0
        self._renewing = self._again = self._is_gone = False

    def compose(self) -> ComposeResult:
        """Compose head, transcript, inspector, position and keys."""
        yield self.header
        with Horizontal(id="replay-body"):
            with Vertical(id="replay-talk"):
                yield self.view
            yield self.inspector
        yield self.bar
        yield BottomLine()

    def on_mount(self) -> None:
        """Read the session."""
        self.header.show([Line([("Reading the session…", "muted")])])
        self.feed = InspectorFeed(self, self.host.library)
        self.feed.inspector = self.inspector
        self.inspector.left_out = self._keys_from_inspector()
        self._arrange()
        follow_theme(self, ReplayScreen._look_changed)
        self.run_worker(self._open(), exit_on_error=False)

    # Reading

    async def _open(self) -> None:
        """Show the first moment as soon as it is read, and go on reading."""
        store = await self.host.library.ready()
        row = await store.read(get, self._session_id)
        self._renewing = True
        if row is not None:
            reading = self._reading = SessionReading(store, row, self._clock, self.shown.setting)
            async for piece in reading.pieces(self._from):
                if piece is not None and self.player is None:
                    await self._begin(piece)
                elif piece is not None:
                    await self._show_instead(piece)
        if self.player is None:
            self.host.notify("This session has no messages to replay", markup=False)
            self.dismiss()
            return
        self._renewed()

    async def _begin(self, piece: Piece) -> None:
        """Show the first moment, and play on from there."""
        self._take(piece)
        player = self.player
        assert player is not None
        start = self._start()
        player.seek(start if start is not None else player.axis.begin)
        player.playing = True
        self.view.at_end = True
        await self.show()
        if self._ticks:
            self._ticked = self._clock()
            self.set_interval(TICK_S, self.tick)
            self.set_interval(JUDGED_EVERY_S, self.look_whether_it_runs)

    def _start(self) -> int | None:
        """Return when the message to begin at came; None without one."""
        return self.document.timeline.begin_of(self._from) if self._from else None

    def _take(self, piece: Piece) -> None:
        """Show the session as far as it was read, with the same folds; the moment stays."""
        reading = self._reading
        assert reading is not None
        was_window, self._is_window = self._is_window, piece.is_window
        self._axis, self._left = piece.axis, piece.left
        view, document, before = self.view, piece.document, self.view.document
        document.folds, document.pages = before.folds, before.pages
        document.turn_like(before)
        at_end = view.at_end
        self.shown.reader = ReplayReader(reading.store, reading.row)
        view.show(document)
        view.at_end = at_end
        axis = piece.axis.reached(self._clock()) if piece.runs else piece.axis
        growing = piece.left is not None
        if self.player is None:
            self.player = Player(axis, running=piece.runs)
            self.player.growing = growing
        else:
            self.player.take(axis, running=piece.runs, growing=growing)
        if not self._was_moved:
            self._begin_again(was_window=was_window)
        if not growing:
            self.background(self._read_totals, group="totals")

    def _begin_again(self, *, was_window: bool) -> None:
        """Go to where the replay was to begin, where more of the session says better when."""
        player, start = self.player, self._start()
        assert player is not None
        if start is not None:
            if was_window and start > player.at:
                player.seek(start)
        elif self._begun is not None and player.axis.begin < self._begun:
            player.seek(player.axis.begin)
        self._begun = player.axis.begin

    async def _read_totals(self) -> None:
        """Read what the answers used; figures follow the time from then on."""
        reading, document = self._reading, self.document
        if reading is None:
            return
        totals = await reading.totals(document.recording)
        if document is self.view.document:
            self._totals = totals
            self.update_headings()
            if self.shown.has_parts:
                self.selected.again()

    def look_whether_it_runs(self) -> None:
        """Judge again whether a session that ran still does: its end may be written nowhere."""
        if self.player is not None and self.player.running:
            self.store_changed()

    def store_changed(self) -> None:
        """Read what was written of the session."""
        if self.player is None or self._renewing:
            self._again = self.player is not None
            return
        self._renewing = True
        self.background(self._renew, group="renew")

    async def _renew(self) -> None:
        begun, reading = self._clock(), self._reading
        try:
            row = await reading.store.read(get, self._session_id) if reading is not None else None
            piece = await reading.renewed(row) if reading is not None and row is not None else None
            if piece is not None:
                await self._show_instead(piece)
            if (row is None) != self._is_gone:
                self._is_gone = row is None
                self._came_or_went()
        finally:
            took = max(0, self._clock() - begun) / 1_000
            if self.is_attached:
                self.set_timer(min(60.0, max(RENEWED_S, RESTS * took)), self._renewed)

    def _came_or_went(self) -> None:
        """Tell that the session was removed; what is read of it stays, and nothing more comes."""
        player, reading = self.player, self._reading
        if self._is_gone and player is not None and reading is not None:
            reading.runs = False
            player.take(player.axis, running=False)
            self.host.notify("This session is no longer in the store", markup=False)
            self.update_headings()
            show_keys(self)

    async def _show_instead(self, piece: Piece) -> None:
        """Show more of the session, or as it is now, at the same moment and the same lines."""
        async with self.placement.moving:
            before = ViewportSnapshot.of(self.view)
            self._take(piece)
            player = self.player
            if player is not None:
                self.document.show_at(player.at)
            before.restore(self.view)
        await self.show()

    def _renewed(self) -> None:
        self._renewing = False
        if self._again:
            self._again = False
            self.store_changed()

    # The moment

    @property
    def document(self) -> ReplayDocument:
        """The session at the moment; it must have been read."""
        document = self.view.document
        assert isinstance(document, ReplayDocument)
        return document

    def tick(self) -> None:
        """Go on with the clock; a picture that waits to be shown is not overtaken."""
        now, player = self._clock(), self.player
        elapsed, self._ticked = now - self._ticked, now
        if player is None or self._tick_waits:
            return
        moved = player.advance(elapsed)
        if player.running and self._axis is not None and now - player.axis.finish >= 1_000:
            player.take(self._axis.reached(now), running=True)
            moved = True
        if moved:
            self._tick_waits = True
            enqueue(self, self._tick)

    async def _tick(self) -> None:
        try:
            if self.is_attached:
                await self.show()
        finally:
            self._tick_waits = False

    async def show(self) -> None:
        """Show the moment that the player is at.

        What it needs is read first: then cutting the document and moving the view is one step.
        """
        async with self.placement.in_order() as same:
            if not same or self.player is None:
                return
            at = self.player.at
            await self._read_for(at)
            open_before = self._selected_is_open()
            await self._show_cut(at)
            if open_before or self._selected_is_open():
                self.selected.again()
        self.update_headings()
        show_keys(self)

    async def _read_for(self, at: int) -> None:
        """Read the rows, and from the log what they were, that a moment needs."""
        reader, document = self.shown.reader, self.document
        if isinstance(reader, ReplayReader):
            await reader.have_at(document, document.needed_at(at), at)

    async def _show_cut(self, at: int) -> None:
        view, document = self.view, self.document
        before = None if view.at_end else ViewportSnapshot.of(view)
        if not document.show_at(at) and before is not None:
            return
        if before is not None:
            before.restore(view)
        else:
            view.step_to_end()
        view.changed()
        await self.placement.arrive(view.stay, sure=False)

    def _selected_is_open(self) -> bool:
        document = self.document
        return len(document) > 0 and document.is_open(min(self.view.cursor, len(document) - 1))

    async def _move(self, move: Callable[[Player], None]) -> None:
        """Go where the user wants to; the end of what is there is followed from then on."""
        if self.player is not None:
            self._was_moved = True
            move(self.player)
            self.view.at_end = True
            await self.show()

    # Commands

    async def toggle(self) -> None:
        """Play, or pause."""
        if self.player is not None:
            self._ticked = self._clock()
            self._was_moved = True
            self.player.toggle()
            self.view.at_end |= self.player.playing
            await self.show()

    async def message(self, step: int) -> None:
        """Go to the next message (1), or to the start of this one and the one before (-1)."""
        timeline = self.document.timeline
        find = timeline.next_message if step > 0 else timeline.previous_message
        await self._step(find, step, "message")

    async def turn(self, step: int) -> None:
        """Go to the next turn (1), or to the start of this one and the one before (-1)."""
        timeline = self.document.timeline
        find = timeline.next_turn if step > 0 else timeline.previous_turn
        await self._step(find, step, "turn")

    async def _step(self, find: Callable[[int], int | None], step: int, what: str) -> None:
        player = self.player
        at = find(player.at) if player is not None else None
        if at is not None:
            await self._move(lambda player: player.seek(at))
        elif step > 0 and player is not None and not player.at_end:
            await self.to_end()
        else:
            self.toast(f"This is the {'last' if step > 0 else 'first'} {what}", timeout=2)

    def change_speed(self, step: int) -> None:
        """Play faster (1) or slower (-1)."""
        if self.player is not None:
            if not self.player.change_speed(step):
                self.toast(f"{self.player.speed}x is the "
                           f"{'fastest' if step > 0 else 'slowest'}", timeout=2)
            self.update_headings()

    def toggle_waits(self) -> None:
        """Skip waits, or play them in full."""
        if self.player is not None:
            self.player.toggle_skip()
            self.update_headings()

    async def to_start(self) -> None:
        """Go to the start."""
        await self._move(lambda player: player.seek(player.axis.begin))

    async def to_end(self) -> None:
        """Go to the end; a session that runs is followed."""
        await self._move(Player.seek_end)

    async def to_share(self, share: float) -> None:
        """Go to a share of the replay, 0 to 1."""
        await self._move(lambda player: player.seek_share(share))

    async def to_tenth(self) -> None:
        """Go to the tenth that the key names."""
        await self.to_share(self._digit / 10)

    def work_for(self, key: str) -> Work | None:
        """Return what a key runs here; a key for a tenth also says which."""
        work = super().work_for(key)
        table = self.host.commands
        command = table.for_key("replay", key)
        if work is None or command is None or command.id != "replay.tenth":
            return work
        keys = list(table.keys_of(command))
        digit = keys.index(key) if key in keys else 0
        return partial(self._run_tenth, min(digit, 9), work)

    def _run_tenth(self, digit: int, work: Work) -> Awaitable[object] | None:
        self._digit = digit
        return work()

    async def lines(self, step: int) -> None:
        """Go one line down (1) or up (-1); at the end, what comes is followed again."""
        await self.navigator.lines(step)
        self._follow_at_end(step)

    async def pages(self, step: int) -> None:
        """Go one page down (1) or up (-1)."""
        await self.navigator.page(step)
        self._follow_at_end(step)

    def _follow_at_end(self, step: int) -> None:
        scroller = self.view.scroller
        if step > 0 and (scroller.part, scroller.line) >= scroller.end():
            self.view.at_end = True

    async def fold(self) -> None:
        """Fold or unfold the selected part; the end stays in sight while it is followed."""
        at_end = self.view.at_end
        await self.folds.fold_selected()
        if at_end:
            await self.placement.move(self.view.step_to_end)

    def open_here(self) -> None:
        """Leave the replay, and show the selected part in the transcript."""
        document = self.document
        row = document.row(self.view.cursor)
        message_id = document.skeleton.key(self.view.cursor)[0]
        self.open_in_transcript(self._session_id, message_id, row.id if row is not None else None)

    def _keys_from_inspector(self) -> frozenset[str]:
        """Return the keys that play and pause; the inspector has others to page."""
        table = self.host.commands
        return frozenset(table.keys_of(table.by_id["replay.play"]))

    def turn_inspector(self) -> None:
        """Focus the inspector, or the transcript again; a narrow screen shows one of them."""
        if self.inspector.has_focus_within:
            self._inspects = False
            self._arrange()
            self.view.focus()
        else:
            self._inspects = True
            self._arrange()
            self.inspector.focus()

    def go_back(self) -> None:
        """Go back one step: toasts, the inspector, the screen below."""
        if self.host.close_toasts():
            return
        if self.inspector.has_focus_within:
            if not self.inspector.go_back():
                self.turn_inspector()
            return
        self.close()

    # Layout and what is shown around the transcript

    def _arrange(self) -> None:
        """Give the transcript and the inspector their room."""
        width = self.app.size.width
        wide = width >= THREE_PANES
        self.inspector.display = wide or self._inspects
        alone = self._inspects and width < TWO_PANES
        self.view.display = not alone
        self.query_one("#replay-talk").display = not alone
        self.inspector.styles.width = "1fr" if alone else LayoutState().width_of(
            "inspector", width)
        self.feed.came_into_sight()

    def on_resize(self, event: events.Resize) -> None:
        """Fit the width."""
        self._arrange()
        self.call_after_refresh(self.update_headings)

    def _look_changed(self) -> None:
        """Lay all out again: the theme, or what is masked, has changed."""
        self.view.document.relayout()
        self.view.repaint()
        self.inspector.masks_changed()
        self.update_headings()

    def update_headings(self) -> None:
        """Bring head and position up to date."""
        row, player = self.shown.session, self.player
        if row is None or player is None:
            return
        self.bar.show_replay(player, self.document.timeline, self._left)
        if not len(self.view.document):
            return
        totals, at = self._totals, player.at
        context = totals.context(at) if totals is not None else 0
        if self._reading is not None and self._left is None:
            row = self._reading.row_at(row, at)
        first, second = header_lines(row, self.document, self.view.cursor, None, context)
        first.runs = [("Replay  ", "fork bold"), *first.runs]
        first.right = self._spent_runs(at)
        self.header.show([first, second])

    def _spent_runs(self, at: int) -> list[Run]:
        if self._totals is None:
            return []
        spent = self._totals.spent(at)
        cost = "" if spent.cost is None else f"  {figures.money(spent.cost)}"
        if spent.estimated and not spent.cost:
            cost = f"  {figures.estimate(spent.estimated)}"
        return [(f"{figures.tokens(spent.total)} tokens{cost}", "muted")]

    def footer_label(self, command: AnyCommand) -> str | None:
        """Return a command's words in the footer."""
        player = self.player
        if command.id == "replay.play" and player is not None:
            return "pause" if player.playing else "play"
        if command.id == "replay.inspector" and self.inspector.has_focus_within:
            return "transcript"
        if command.id == "replay.waits" and player is not None:
            return "play waits" if player.skip else "skip waits"
        return super().footer_label(command)

    def _detail_then(self, detail: PartDetail) -> PartDetail:
        """Return what the inspector shows of a part as it was."""
        document, player = self.view.document, self.player
        if not isinstance(document, ReplayDocument) or player is None:
            return detail
        timeline = document.timeline
        number = timeline.part_of(detail.part.message_id, detail.part.index, player.at)
        if number is None:
            return detail
        message = timeline.message_of(number)
        found = replace(
            detail, part=document.part_then(number, detail.part),
            message=document.message_then(message, detail.message),
            parts=timeline.parts_at(message, player.at))
        if self._totals is not None:
            turn, count = self._totals.turn_spent(message, player.at)
            found = replace(
                found, turn=turn, turn_messages=count, session=self._totals.spent(player.at))
        return found

    def _detail_known(self, part_id: str) -> PartDetail | None:
        """Return what the inspector shows of the selected part, which was deleted later."""
        document, cursor = self.document, self.view.cursor
        row = document.row(cursor) if cursor < len(document) else None
        message = document.message_row(cursor) if row is not None else None
        if row is None or message is None or row.id != part_id:
            return None
        skeleton = document.skeleton
        parts = skeleton.parts_of(skeleton.message[cursor])
        return PartDetail(
            row, message[0], cursor - parts.start + 1, len(parts), None, 0, Spent())

    # What comes up from below

    @on(PartSelected)
    async def _part_selected(self, event: PartSelected) -> None:
        event.stop()
        await self.feed.select(event)

    @on(NothingSelected)
    def _nothing_selected(self, event: NothingSelected) -> None:
        event.stop()
        self.feed.clear()
        show_keys(self)

    @on(JumpedFrom)
    @on(TranscriptView.Resized)
    def _ignored(self, event: JumpedFrom | TranscriptView.Resized) -> None:
        event.stop()
        if isinstance(event, TranscriptView.Resized) and self.player is not None:
            self._in_turn(self.placement.stay)

    @on(SessionOpened)
    def _opened(self, event: SessionOpened) -> None:
        event.stop()
        self.open_in_transcript(event.session_id, event.message_id)

    def _in_turn(self, work: Callable[[], Awaitable[None]]) -> None:
        """Do what the mouse asks for after the keys before it, and before those after it."""
        enqueue(self, partial(self._if_there, work))

    async def _if_there(self, work: Callable[[], Awaitable[None]]) -> None:
        if self.is_attached and self.player is not None:
            await work()

    @on(PositionBar.Sought)
    def _sought(self, event: PositionBar.Sought) -> None:
        event.stop()
        waits, self._sought_share = self._sought_share is not None, event.share
        if not waits:
            self._in_turn(self._to_sought)

    async def _to_sought(self) -> None:
        """Go to the newest place that the mouse asked for."""
        share, self._sought_share = self._sought_share, None
        if share is not None:
            await self.to_share(share)

    @on(PositionBar.Pressed)
    def _pressed(self, event: PositionBar.Pressed) -> None:
        event.stop()

    @on(TranscriptView.Wheeled)
    def _wheeled(self, event: TranscriptView.Wheeled) -> None:
        event.stop()
        self._in_turn(partial(self.lines, event.lines))

    @on(TranscriptView.Dragged)
    def _dragged(self, event: TranscriptView.Dragged) -> None:
        event.stop()
        self._in_turn(partial(self.navigator.share_of_lines, event.share))

    @on(TranscriptView.Clicked)
    def _clicked(self, event: TranscriptView.Clicked) -> None:
        event.stop()
        self._in_turn(partial(self.folds.click, event, self._open_child))

    def _open_child(self, part: int) -> None:
        """Show the session that a call started."""
        row, known = self.document.row(part), self.document.setting.children
        child = child_of(known, row.message_id, row.tool_call_id) if row is not None else None
        if child is not None:
            self.open_in_transcript(child.id)

