"""Runs what is typed and clicked in order: each input waits for the one before it.

A key that stands for a command runs it; everything else goes to its widget. The next input is
taken when the command has ended, or the widgets have handled what followed from the input.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Iterator
from contextlib import ExitStack
from contextvars import ContextVar
from inspect import isawaitable
from typing import Any, Protocol, cast

from textual import events
from textual.app import App
from textual.dom import DOMNode
from textual.widget import Widget

Work = Callable[[], Awaitable[object] | None]
"""Something to run in the order of the keys; the next input waits for what it returns."""

SETTLES_WITHIN_S = 3.0
"""The next input waits no longer than this for widgets to handle the one before."""
MOST_CLIMBS = 8
"""A screen whose widgets never stop posting messages is not waited for again after these."""

BEHIND = 2
"""While so many repeats of a key that moves wait, frames are left out."""
NO_FRAME_S = 0.05
"""The longest time without a frame."""

_released: ContextVar[asyncio.Future[None] | None] = ContextVar("released", default=None)


def release_key() -> None:
    """Let the next key run while the current command goes on.

    For a command that waits for the user or for a busy store. Without effect outside a
    command, or when the command's key was released before.
    """
    released = _released.get()
    if released is not None and not released.done():
        released.set_result(None)


def holds_key() -> bool:
    """Return whether the next key waits for the command that calls this."""
    released = _released.get()
    return released is not None and not released.done()


class HasQueue(Protocol):
    """An app with a queue."""

    inputs: InputQueue


def enqueue(widget: DOMNode, work: Work) -> None:
    """Run something after the current input and before the inputs that wait.

    Args:
        widget: Whose app's queue it is put into.
        work: Is called when its turn comes; what it returns is awaited.
    """
    cast(HasQueue, widget.app).inputs.enqueue(work)


class InputQueue:
    """What was typed and clicked and is still to be run."""

    def __init__(
        self, app: App[Any], resolve: Callable[[events.Event], Work | None],
        forward: Callable[[events.Event], Awaitable[None]], handled: Callable[[], None],
    ) -> None:
        """Make an empty queue.

        Args:
            app: Whose input it is.
            resolve: Returns the command that an input event stands for when its turn comes.
            forward: Gives an input event that is no command to its widget.
            handled: Called after each input.
        """
        self._app = app
        self._resolve = resolve
        self._forward = forward
        self._handled = handled
        self._waiting: deque[events.Event] = deque()
        self._following: deque[Work] = deque()
        self._task: asyncio.Task[None] | None = None
        self._paused = False
        self._released: set[asyncio.Future[object]] = set()
        self._moving = self._frame_due = False
        self._no_frame: ExitStack | None = None

    # What comes in

    def put(self, event: events.Event) -> None:
        """Add an input event behind all others."""
        self._waiting.append(event)
        self._start()

    def enqueue(self, work: Work) -> None:
        """Add work that the current input asks for, before the inputs that wait."""
        self._following.append(work)
        if self._task is None:
            # From the app's own queue, so that the work runs in the app's context.
            self._app.call_later(self._start)

    def pause(self) -> None:
        """Keep input until ``resume``."""
        self._paused = True

    def resume(self) -> None:
        """Run what came since ``pause``, in order, and then what comes."""
        self._paused = False
        self._app.call_later(self._start)

    async def drained(self) -> None:
        """Wait until nothing waits and nothing runs."""
        while self._task is not None or self._following or (self._waiting and not self._paused):
            if self._task is None:
                await asyncio.sleep(0)
            else:
                await asyncio.wait([self._task])

    def stop(self) -> None:
        """Drop what waits, and what runs."""
        self._waiting.clear()
        self._following.clear()
        if self._task is not None:
            self._task.cancel()

    # Frames, while a key is held that moves faster than can be drawn

    def moves(self) -> None:
        """Note that the current input only moves: where it is held, not each step is drawn."""
        self._moving = True

    def _is_behind(self, event: events.Event) -> bool:
        """Return whether an input that moves is followed by more of the same."""
        return (
            self._moving and isinstance(event, events.Key) and len(self._waiting) >= BEHIND
            and all(isinstance(waiting := self._waiting[place], events.Key)
                    and waiting.key == event.key for place in range(BEHIND))
        )

    def _leave_out_frames(self) -> None:
        if self._no_frame is None and not self._frame_due:
            self._no_frame = ExitStack()
            self._no_frame.enter_context(self._app.batch_update())
            asyncio.get_running_loop().call_later(NO_FRAME_S, self._draw, self._no_frame)

    def _draw(self, of: ExitStack | None) -> None:
        """Have frames drawn again, the next one before any is left out."""
        if of is not None and of is self._no_frame:
            self._no_frame = None
            of.close()
            self._frame_due = self._app.screen.call_after_refresh(self._drawn)

    def _drawn(self) -> None:
        self._frame_due = False

    # One after the other

    def _start(self) -> None:
        if self._task is None and not self._paused and (self._following or self._waiting):
            self._task = asyncio.create_task(self._drain(), name="input queue")

    async def _drain(self) -> None:
        try:
            while not self._paused and (self._following or self._waiting):
                try:
                    if self._following:
                        await self._run_work(self._following.popleft())
                    else:
                        event = self._waiting.popleft()
                        self._moving = False
                        await self._take(event)
                        if self._is_behind(event):
                            self._leave_out_frames()
                            continue
                        self._draw(self._no_frame)
                    self._handled()
                except Exception as error:
                    self._failed(error)
        finally:
            self._draw(self._no_frame)
            self._task = None

    async def _run_work(self, work: Work) -> None:
        focus = self._focus
        await self._run(work)
        await self._settle(focus)

    async def _take(self, event: events.Event) -> None:
        """Run one input and wait for what follows from it."""
        work = self._resolve(event)
        if work is not None:
            await self._run_work(work)
            return
        at = self._under_mouse(event) if isinstance(event, events.MouseEvent) else self._focus
        await self._forward(event)
        # Moves of the mouse alone are many, and change nothing that a key acts on.
        if not isinstance(event, events.MouseMove) or self._waiting:
            await self._settle(at, climbs=2)

    @property
    def _focus(self) -> Widget:
        return self._app.focused or self._app.screen

    def _under_mouse(self, event: events.MouseEvent) -> Widget:
        captured = self._app.mouse_captured
        if captured is not None:
            return captured
        screen = self._app.screen
        return next((found for found, _ in screen.get_widgets_at(event.x, event.y)), screen)

    async def _run(self, work: Work) -> None:
        """Run something, and wait until it has ended or has released the key."""
        result = work()
        if not isawaitable(result):
            return
        released = asyncio.get_running_loop().create_future()
        token = _released.set(released)
        task: asyncio.Future[object] = asyncio.ensure_future(result)
        _released.reset(token)
        try:
            await asyncio.wait({task, released}, return_when=asyncio.FIRST_COMPLETED)
        except asyncio.CancelledError:
            task.cancel()
            raise
        if task.done():
            task.result()
        else:
            self._released.add(task)
            task.add_done_callback(self._released_ended)

    def _released_ended(self, task: asyncio.Future[object]) -> None:
        self._released.discard(task)
        error = None if task.cancelled() else task.exception()
        if isinstance(error, Exception):
            self._failed(error)

    def _failed(self, error: Exception) -> None:
        """Report an error as the app reports those of its workers; a test's app ends on it."""
        async def fail() -> None:
            raise error

        self._app.run_worker(fail(), exit_on_error=self._app.is_headless)

    # What follows from an input

    async def _settle(self, node: Widget, climbs: int = 1) -> None:
        """Wait until widgets have handled the messages that an input has led to.

        Args:
            node: Where the input went to; messages go up from there.
            climbs: How often to wait at least: a message that a widget posts to itself while
                it handles the input is behind the first wait.
        """
        await self._climb(node, climbs)
        now = self._focus
        if now is not node:
            await self._climb(now, climbs)

    async def _climb(self, node: Widget, climbs: int) -> None:
        pumps = list(_up_from(node, self._app))
        try:
            async with asyncio.timeout(SETTLES_WITHIN_S):
                for number in range(1, MOST_CLIMBS + 1):
                    for pump in pumps:
                        await _handled(pump)
                    if number >= climbs and not any(p.message_queue_size for p in pumps):
                        return
        except TimeoutError:
            pass


def _up_from(node: Widget, app: App[Any]) -> Iterator[DOMNode]:
    yield from (each for each in node.ancestors_with_self if each is not app)
    yield app


async def _handled(pump: DOMNode) -> None:
    """Wait until a node has handled all messages that it has now; not for a node that ended."""
    if isinstance(pump, Widget) and pump.is_mounted and not pump.is_running:
        return
    handled = asyncio.get_running_loop().create_future()

    def done() -> None:
        if not handled.done():
            handled.set_result(None)

    if pump.call_later(done):
        await handled
