"""The async store layer: the three-table contract, its engines, queries, verbs and sources.

Nothing here imports Textual. Heavy imports (pydantic, asyncio) happen in the modules
that need them, so that a first page of sessions can be read without them; the names of
this package come when they are asked for.

    from store import Store

    async with Store.open(path) as store:
        sessions = await store.sessions()
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from store.config import Config, load_config
    from store.engine.database import Database, Form, open_database
    from store.engine.opening import open_target, recognise
    from store.errors import BackscrollError, Invalid, NotFound, Refused, StoreError
    from store.events.reading import Event
    from store.ids import IdMinter
    from store.models import Model, PermissionRule, Session, UIMessage
    from store.queries.sessions import SessionFilter
    from store.recorder.policy import SavePolicy
    from store.recorder.recorder import Recorder
    from store.rows import MessageRow, PartRow, SessionRow
    from store.search.hits import Hit, Hits
    from store.store import Store
    from store.usage import Spent
    from store.watch import Change, Watch

_HOMES = {
    "store.config": ("Config", "load_config"),
    "store.engine.database": ("Database", "Form", "open_database"),
    "store.errors": ("BackscrollError", "Invalid", "NotFound", "Refused", "StoreError"),
    "store.events.reading": ("Event",),
    "store.ids": ("IdMinter",),
    "store.models": ("Model", "PermissionRule", "Session", "UIMessage"),
    "store.engine.opening": ("open_target", "recognise"),
    "store.queries.sessions": ("SessionFilter",),
    "store.recorder.policy": ("SavePolicy",),
    "store.recorder.recorder": ("Recorder",),
    "store.rows": ("MessageRow", "PartRow", "SessionRow"),
    "store.search.hits": ("Hit", "Hits"),
    "store.store": ("Store",),
    "store.usage": ("Spent",),
    "store.watch": ("Change", "Watch"),
}  # fmt: skip
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names}

__all__ = [
    "BackscrollError", "Change", "Config", "Database", "Event", "Form", "Hit", "Hits", "IdMinter",
    "Invalid", "MessageRow", "Model", "NotFound", "PartRow", "PermissionRule", "Recorder",
    "Refused", "SavePolicy", "Session", "SessionFilter", "SessionRow", "Spent", "Store",
    "StoreError", "UIMessage", "Watch",
    "load_config", "open_database", "open_target", "recognise",
]  # fmt: skip


def __getattr__(name: str) -> Any:
    """Import a public name when it is asked for."""
    if name not in _HOME_OF:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module  # The browser asks for no name, and starts without.

    return getattr(import_module(_HOME_OF[name]), name)


def __dir__() -> list[str]:
    """List the public names."""
    return sorted([*globals(), *_HOME_OF])
