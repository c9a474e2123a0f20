"""The few settings that the first paint needs, read without pydantic.

``store.config`` reads the whole file afterwards and reports what is wrong in it.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

from store.queries.list_options import DEFAULT_GROUP, DEFAULT_SORT, GROUPS, SORTS
from store.system.locations import config_path
from store.system.paths import read_regular
from store.text.toml_text import NotToml, parse_toml


class QuickSettings(NamedTuple):
    """What the first paint needs.

    Attributes:
        theme: A theme's name, ``dark``, ``light`` or ``auto``.
        keys: Keys by command id.
        store: The store to open in place of the library, or None.
        poll_ms: Between two looks at the store.
        unfocused_poll_ms: The same while the terminal has not the focus.
        repaint_ms: At least this long between two repaints of what grows.
        mouse: Whether the mouse is used.
        sort: How the list is sorted at the first start.
        group: How it is grouped then.
        helpers: Whether it shows runs that agents started for themselves.
    """

    theme: str = "auto"
    keys: Mapping[str, list[str]] = MappingProxyType({})
    store: str | None = None
    poll_ms: int = 50
    unfocused_poll_ms: int = 250
    repaint_ms: int = 50
    mouse: bool = True
    sort: str = DEFAULT_SORT
    group: str = DEFAULT_GROUP
    helpers: bool = False


def quick_settings() -> QuickSettings:
    """Read the config file; what is missing or wrong has its default."""
    try:
        text = read_regular(config_path()).decode("utf-8")
    except (OSError, UnicodeDecodeError):
        return QuickSettings()
    from store.config import with_flat_keys

    try:
        found = parse_toml(text)
    except NotToml:
        return QuickSettings()
    found = with_flat_keys(found)
    ui, keys, live = (_table(found, name) for name in ("ui", "keys", "live"))
    theme, store = ui.get("theme"), found.get("store")
    defaults = QuickSettings()
    return QuickSettings(
        theme=theme if isinstance(theme, str) else "auto",
        keys={
            name: [key for key in value if isinstance(key, str)]
            for name, value in keys.items() if isinstance(value, list)
        },
        store=store if isinstance(store, str) else None,
        poll_ms=_positive(live, "poll_ms", defaults.poll_ms),
        unfocused_poll_ms=_positive(live, "unfocused_poll_ms", defaults.unfocused_poll_ms),
        repaint_ms=_positive(live, "repaint_ms", defaults.repaint_ms),
        mouse=ui.get("mouse") is not False,
        sort=_one_of(SORTS, ui.get("sort"), defaults.sort),
        group=_one_of(GROUPS, ui.get("group"), defaults.group),
        helpers=ui.get("helpers") is True,
    )


def _table(found: dict[str, Any], name: str) -> dict[str, Any]:
    value = found.get(name)
    return value if isinstance(value, dict) else {}


def _one_of(choices: Collection[str], value: object, default: str) -> str:
    return value if isinstance(value, str) and value in choices else default


def _positive(table: dict[str, Any], key: str, default: int) -> int:
    value = table.get(key)
    return value if type(value) is int and value > 0 else default
