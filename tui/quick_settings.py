"""The few settings that the first paint needs, read without pydantic.

``store.config`` reads the whole file afterwards and reports what is wrong in it.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from store.locations import config_path


@dataclass(frozen=True, slots=True)
class QuickSettings:
    """What the first paint needs.

    Attributes:
        theme: A theme's name, ``dark``, ``light`` or ``auto``.
        keys: Keys by command id.
        store: The store to open in place of the library, or None.
    """

    theme: str = "auto"
    keys: dict[str, list[str]] = field(default_factory=dict)
    store: str | None = None
    poll_ms: int = 250
    mouse: bool = True


def quick_settings() -> QuickSettings:
    """Read the config file; what is missing or wrong has its default."""
    try:
        text = config_path().read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        return QuickSettings()
    import tomllib

    try:
        found = tomllib.loads(text)
    except tomllib.TOMLDecodeError:
        return QuickSettings()
    ui, keys, live = (_table(found, name) for name in ("ui", "keys", "live"))
    theme, store, poll = ui.get("theme"), found.get("store"), live.get("poll_ms")
    return QuickSettings(
        theme=theme if isinstance(theme, str) else "auto",
        keys={
            name: [key for key in value if isinstance(key, str)]
            for name, value in keys.items() if isinstance(value, list)
        },
        store=store if isinstance(store, str) else None,
        poll_ms=poll if type(poll) is int and poll > 0 else 250,
        mouse=ui.get("mouse") is not False,
    )


def _table(found: dict[str, Any], name: str) -> dict[str, Any]:
    value = found.get(name)
    return value if isinstance(value, dict) else {}
