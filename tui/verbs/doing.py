"""Runs a verb on the store that is shown, and reports the outcome."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable, Coroutine
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, TypeVar
from weakref import WeakSet

from textual.worker import WorkerError

from store.engine.transactions import POLL_S, Patience
from store.errors import BackscrollError, NotFound, Refused
from tui.keys.queue import holds_key, release_key
from tui.kit.masked import shown
from tui.kit.text import fit, one_line

if TYPE_CHECKING:
    from textual.widget import Widget
    from textual.worker import Worker

    from tui.host import Host, Terminal

T = TypeVar("T")

TITLE_CELLS = 40
OPENING = "open"
"""The group of the worker that opens a session."""
WAITS_AT_MOST_S = 3.0
BUSY_AFTER_S = 1.0
"""A verb that takes longer shows what it waits for."""
BUSY = "Waiting for the store; this is done as soon as it is free"


class Done(NamedTuple, Generic[T]):
    """A verb that was done, with what it gave."""

    value: T


async def asking(widget: Widget, work: Coroutine[Any, Any, object]) -> None:
    """Run a verb that may ask the user; return when its dialog is shown, or when it is done.

    The dialog releases the key, so keys that were typed ahead are for the dialog.
    """
    worker = widget.run_worker(work, group="verb", exit_on_error=False)
    if holds_key():
        await _finished(worker)


def still_opening(widget: Widget) -> Worker[Any] | None:
    """Return the worker that is opening a session now, None where nothing is."""
    found = (w for w in widget.workers if w.group == OPENING and not w.is_finished)
    return next(found, None)


async def opened(widget: Widget) -> None:
    """Wait for a session that is being opened, so that a key acts on it and not before it."""
    while (worker := still_opening(widget)) is not None and worker not in _slow:
        await _finished(worker)
        if not worker.is_finished:
            _slow.add(worker)


_slow: WeakSet[Worker[Any]] = WeakSet()
"""Workers that took too long: the next keys do not wait for them again."""


async def _finished(worker: Worker[Any]) -> None:
    """Wait for a worker; not for long, as the keyboard waits with it."""
    await asyncio.wait({asyncio.ensure_future(_ended(worker))}, timeout=WAITS_AT_MOST_S)


async def _ended(worker: Worker[Any]) -> None:
    with suppress(WorkerError):
        await worker.wait()


_THE_MESSAGE = r"^message \S+(?= (?:is|was) )"


def refuse(host: Terminal, error: BackscrollError) -> None:
    """Show why something is not possible."""
    severe = not isinstance(error, (Refused, NotFound))
    # Whoever looks at the selected message needs no id to know which one is meant.
    reason = re.sub(_THE_MESSAGE, "this message", str(error))
    if "://" not in reason.partition(" ")[0]:
        reason = reason[:1].upper() + reason[1:]
    host.notify(reason, severity="error" if severe else "warning", markup=False)


def report_done(host: Host, words: str) -> None:
    """Show what was done, and the key that undoes it."""
    hint = host.commands.hint("app.undo", "undoes")
    host.notify(f"{words[:1].upper()}{words[1:]}{hint}", markup=False)


def quoted(title: str | None) -> str:
    """Return a title as toasts name it."""
    return f"“{fit(one_line(shown(title) or 'untitled'), TITLE_CELLS)}”"


async def name_of(host: Host, session_id: str) -> str:
    """Return the title of a session as dialogs and toasts name it."""
    from store.queries.transcript import title_of

    return quoted(await host.library.read(title_of, session_id))


def counted(number: int, noun: str) -> str:
    """Return a number with its noun: ``3 messages``."""
    return f"{number:,} {noun}" + ("" if number == 1 else "s")


async def perform(
    host: Host,
    verb: Callable[..., T],
    *args: Any,
    written: Callable[[T], object] | None = None,
    **kwargs: Any,
) -> Done[T] | None:
    """Run a verb; where it is refused, show why and return None.

    Args:
        host: The app; its panes show what was written at once.
        verb: One of ``store.verbs``; it is given the present as ``now``.
        args: What the verb takes after the database.
        written: Called with what the verb gave, before the panes show it.
        kwargs: Likewise.
    """
    try:
        store = await host.library.ready()
        value = await _patiently(
            host, lambda: store.write(verb, *args, now=host.library.clock(), **kwargs))
    except BackscrollError as error:
        refuse(host, error)
        return None
    if written is not None:
        written(value)
    await host.show_written()
    return Done(value)


async def _patiently(host: Host, write: Callable[[], Awaitable[T]]) -> T:
    """Write, and wait for other writers as long as a person would; say so while it lasts."""
    patience = Patience()
    while True:
        # The host's own timers wait for the key that this verb is done for.
        waits = asyncio.get_running_loop().call_later(BUSY_AFTER_S, _tell_of_waiting, host)
        try:
            return await write()
        except Refused as error:
            if error.__cause__ is None or not patience.lasts(error.__cause__):
                raise
        finally:
            waits.cancel()
        await asyncio.sleep(POLL_S)


def _tell_of_waiting(host: Host) -> None:
    host.notify(BUSY, severity="warning", markup=False)
    release_key()


async def ask_store(
    host: Host, query: Callable[..., T], *args: Any, **kwargs: Any
) -> Done[T] | None:
    """Run a query; where it is refused, show why and return None.

    Args:
        host: The app.
        query: Takes the database first.
        args: What else it takes.
        kwargs: Likewise.
    """
    try:
        return Done(await host.library.read(query, *args, **kwargs))
    except BackscrollError as error:
        refuse(host, error)
        return None
