"""The few settings that the first paint needs, read without pydantic.

``store.config`` reads the whole file afterwards and reports what is wrong in it.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import NamedTuple

from store.config import LiveSettings, UiSettings, quick_config
from store.system.locations import config_path

_UI, _LIVE = UiSettings(), LiveSettings()


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
    poll_ms: int = _LIVE.poll_ms
    unfocused_poll_ms: int = _LIVE.unfocused_poll_ms
    repaint_ms: int = _LIVE.repaint_ms
    mouse: bool = _UI.mouse
    sort: str = _UI.sort
    group: str = _UI.group
    helpers: bool = _UI.helpers


def quick_settings() -> QuickSettings:
    """Read the config file; what is missing or wrong has its default."""
    settings = quick_config(config_path())
    ui, live = settings.ui, settings.live
    return QuickSettings(
        theme=ui.theme or "auto", keys=settings.keys, store=settings.store,
        poll_ms=live.poll_ms, unfocused_poll_ms=live.unfocused_poll_ms,
        repaint_ms=live.repaint_ms, mouse=ui.mouse, sort=ui.sort, group=ui.group,
        helpers=ui.helpers,
    )
