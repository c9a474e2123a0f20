"""The recorder: UI message streams of the AI SDK become rows of the three tables.

``Recorder`` is imported when it is asked for: it needs asyncio, which the command line's
``record`` and readers of this package do without.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from store.recorder.policy import SavePolicy

if TYPE_CHECKING:
    from store.recorder.recorder import Recorder

__all__ = ["Recorder", "SavePolicy"]


def __getattr__(name: str) -> Any:
    if name == "Recorder":
        from store.recorder.recorder import Recorder

        return Recorder
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
