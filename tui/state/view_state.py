"""What is remembered of a store between two runs: layout, view, session, places, folds."""

from __future__ import annotations

import os
from collections.abc import Collection

from store.queries.list_options import (
    DEFAULT_GROUP,
    DEFAULT_SHELF,
    DEFAULT_SORT,
    GROUPS,
    SHELVES,
    SORTS,
)
from store.system.locations import private_folder, view_file
from store.system.paths import read_regular
from store.system.records import field, record
from store.text.stored_json import loads
from tui.state.layout import PANES, LayoutState

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pathlib import Path
    from typing import Any

    from store.config import UiSettings
    from tui.state.layout import PaneName

MOST_PLACES = 300


@record
class ViewState:
    """What is remembered.

    Attributes:
        sort: A name of ``list_options.SORTS``.
        group: A name of ``list_options.GROUPS``.
        shelf: A name of ``list_options.SHELVES``.
        folds: By session id, whether its children are folded; only what the user chose.
        places: By session id, what the transcript pane wants back; the newest last.
        helpers: Whether the list shows helpers' runs; a setting, so not kept here.
    """

    layout: LayoutState = field(default_factory=LayoutState)
    session_id: str | None = None
    sort: str = DEFAULT_SORT
    group: str = DEFAULT_GROUP
    shelf: str = DEFAULT_SHELF
    folds: dict[str, bool] = field(default_factory=dict)
    places: dict[str, Any] = field(default_factory=dict)
    helpers: bool = False

    def keep_place(self, session_id: str, place: Any) -> None:
        """Remember a place in a session; the oldest beyond a few hundred are dropped."""
        self.places.pop(session_id, None)
        self.places[session_id] = place
        while len(self.places) > MOST_PLACES:
            self.places.pop(next(iter(self.places)))


def state_path(store: Path) -> Path:
    """Return the state file of a store."""
    from pathlib import Path  # The first rows are read without.

    return Path(view_file(store))


def remembered_state(store: str | Path, settings: UiSettings | None) -> ViewState:
    """Return what is remembered of a store, with the config's view where there is nothing.

    Args:
        store: The store's file.
        settings: The ``ui`` of the config; None where all is by default.
    """
    if settings is None:
        return load_state(view_file(store))
    state = load_state(view_file(store), sort=settings.sort, group=settings.group)
    state.helpers = settings.helpers
    return state


def load_state(
    path: str | Path, *, sort: str = DEFAULT_SORT, group: str = DEFAULT_GROUP
) -> ViewState:
    """Read a state file; whatever is missing or damaged in it has its default.

    Args:
        path: As ``view_file`` names it.
        sort: How the list is sorted where the file does not have it.
        group: How it is grouped there.
    """
    found = _document(path)
    if not isinstance(found, dict):
        return ViewState(sort=sort, group=group)
    layout = found.get("layout")
    session_id = found.get("session_id")
    return ViewState(
        layout=_layout(layout if isinstance(layout, dict) else {}),
        session_id=session_id if isinstance(session_id, str) else None,
        sort=_choice(found, "sort", SORTS, sort),
        group=_choice(found, "group", GROUPS, group),
        shelf=_choice(found, "shelf", SHELVES, DEFAULT_SHELF),
        folds={k: v for k, v in _table(found, "folds").items() if isinstance(v, bool)},
        places=_table(found, "places"),
    )


def _document(path: str | Path) -> Any:
    """Return what is in a state file; None where it is missing or damaged."""
    try:
        text = read_regular(path).decode()
        found = loads(text)
        if "\\ud" in text.lower():
            import json

            # Half a surrogate pair could be neither asked for nor kept.
            json.dumps(found, ensure_ascii=False).encode()
    except (OSError, ValueError):
        return None
    return found


def save_state(path: Path, state: ViewState) -> None:
    """Write a state file, whole or not at all."""
    document = {
        "layout": {
            "sessions_width": state.layout.sessions_width,
            "inspector_width": state.layout.inspector_width,
            "hidden": sorted(state.layout.hidden),
            "zoomed": state.layout.zoomed,
            "focused": state.layout.focused,
        },
        "session_id": state.session_id, "sort": state.sort, "group": state.group,
        "shelf": state.shelf, "folds": state.folds, "places": state.places,
    }
    write_whole(path, document)


def write_whole(path: Path, document: object) -> None:
    """Write a private file as JSON, whole or not at all.

    Raises:
        OSError: It cannot be written.
    """
    import orjson  # 8 ms, which the first rows do not wait for

    private_folder(path.parent)
    draft = path.with_suffix(f".{os.getpid()}.new")
    descriptor = os.open(draft, os.O_CREAT | os.O_WRONLY | os.O_TRUNC, 0o600)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(orjson.dumps(document))
        draft.replace(path)
    finally:
        draft.unlink(missing_ok=True)


def _choice(found: dict[str, Any], key: str, options: Collection[str], default: str) -> str:
    value = found.get(key)
    return value if isinstance(value, str) and value in options else default


def _table(found: dict[str, Any], key: str) -> dict[str, Any]:
    value = found.get(key)
    return value if isinstance(value, dict) else {}


def _layout(found: dict[str, Any]) -> LayoutState:
    def width(key: str) -> int | None:
        value = found.get(key)
        return value if type(value) is int and 0 < value < 1000 else None

    hidden = found.get("hidden")
    focused = found.get("focused")
    names: frozenset[PaneName] = frozenset(
        name for name in PANES if isinstance(hidden, list) and name in hidden
    )
    return LayoutState(
        width("sessions_width"), width("inspector_width"), names - {"transcript"},
        found.get("zoomed") is True, focused if focused in PANES else "sessions",
    )
