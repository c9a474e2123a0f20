"""Runs a verb on the store that is shown, and says what came of it."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, TypeVar, cast

from store.errors import BackscrollError, NotFound, Refused
from tui.text import fit, one_line

if TYPE_CHECKING:
    from textual.app import App

    from tui.app import BackscrollApp

T = TypeVar("T")

TITLE_CELLS = 40


class Done(NamedTuple, Generic[T]):
    """A verb that was done, with what it gave."""

    value: T


def shown_app(widget: Any) -> BackscrollApp:
    """Return the app of a widget."""
    return cast("BackscrollApp", widget.app)


def cannot_write(owner: Any) -> str | None:
    """Return why no verb can be done to this store, None where they can."""
    reason: str | None = owner.app.library.database.file_read_only
    return reason


def refuse(app: App[Any], error: BackscrollError) -> None:
    """Say why something is not possible."""
    severe = not isinstance(error, (Refused, NotFound))
    reason = str(error)
    app.notify(
        reason[:1].upper() + reason[1:], severity="error" if severe else "warning", markup=False
    )


def told(app: App[Any], words: str) -> None:
    """Say what was done, and the key that takes it back."""
    app.notify(f"{words[:1].upper()}{words[1:]} · U undoes", markup=False)


def quoted(title: str | None) -> str:
    """Return a title as toasts name it."""
    return f"“{fit(one_line(title or 'untitled'), TITLE_CELLS)}”"


def counted(number: int, noun: str) -> str:
    """Return a number with its noun: ``3 messages``."""
    return f"{number:,} {noun}" + ("" if number == 1 else "s")


async def perform(
    app: BackscrollApp, verb: Callable[..., T], *args: Any, **kwargs: Any
) -> Done[T] | None:
    """Do a verb; where it is refused, say why and return None.

    Args:
        app: The app; its panes show what was written at once.
        verb: One of ``store.verbs``; it is given the present as ``now``.
        args: What the verb takes after the database.
        kwargs: Likewise.
    """
    try:
        store = await app.library.ready()
        value = await store.write(verb, *args, now=app.library.clock(), **kwargs)
    except BackscrollError as error:
        refuse(app, error)
        return None
    await app.main.show_written()
    return Done(value)


async def ask_store(
    app: BackscrollApp, query: Callable[..., T], *args: Any, **kwargs: Any
) -> Done[T] | None:
    """Run a query that may refuse; where it does, say why and return None."""
    try:
        return Done(await app.library.read(query, *args, **kwargs))
    except BackscrollError as error:
        refuse(app, error)
        return None
