"""How a session list can be sorted, grouped and limited: each option is declared here, once.

The queries, the config, the remembered view, the header of the list and the help of its keys
are made from these declarations. To add a sort, add a ``Sort`` to ``SORTS``; nothing else.
A sort by something that ``ListRow`` has no field for needs that field first.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from store.system.records import NamedTuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Literal, TypeVar

    from store.engine.form import Form

    _Option = TypeVar("_Option", "Sort", "Group", "Shelf")


def _by_name(*options: _Option) -> dict[str, _Option]:
    return {option.name: option for option in options}


class Sort(NamedTuple):
    """An order of the sessions in a list.

    Attributes:
        name: In the config and in the remembered view.
        label: In the header of the list; at most 11 cells.
        help: In the help of the key that changes the sort.
        order: SQL after ``ORDER BY``, over a row ``s`` of ``chat_sessions``; ``{title}`` is the
            title. Its last term decides ties and has to be unique, such as ``s.id DESC``.
        field: The field of ``ListRow`` that decides the order. When it changes, the list is
            sorted again. A column of ``tui.sessions.columns`` for it is shown at any width.
        date: The field of ``ListRow`` (a column of ``chat_sessions`` too) that tells the age
            of a row, and its day where the list is grouped by day.
        newest_first: Whether this is the order of the last change. An index of the store has it,
            so the first page is read by itself; and the first session stays first as it grows.
        active_first: Whether sessions that wait, run or have failed come before all others.
        ascending: Whether the smallest come first; the header of the list shows which.
    """

    name: str
    label: str
    help: str
    order: str
    field: str
    date: Literal["updated_at", "created_at"] = "updated_at"
    newest_first: bool = False
    active_first: bool = False
    ascending: bool = False


SORTS: Mapping[str, Sort] = _by_name(
    Sort("recent", "recent", "recent", "s.updated_at DESC, s.id DESC", "updated_at",
         newest_first=True),
    Sort("created", "created", "created", "s.created_at DESC, s.id DESC", "created_at",
         date="created_at"),
    Sort("tokens", "tokens", "tokens", "s.total_tokens DESC, s.id DESC", "tokens"),
    Sort("cost", "cost", "cost", "s.cost_usd DESC, s.id DESC", "cost"),
    Sort("length", "length", "length",
         "(SELECT count(*) FROM chat_messages m WHERE m.session_id = s.id) DESC, s.id DESC",
         "messages"),
    Sort("activity", "active 24h", "activity of the last day", "s.updated_at DESC, s.id DESC",
         "activity", active_first=True),
)
"""By name, in the order in which the key goes through them; the first is the default."""


class Group(NamedTuple):
    """A grouping of the sessions in a list.

    Attributes:
        name: In the config and in the remembered view.
        label: In the header of the list.
        value: Returns the SQL of a session's group, for a form of the tables and a sort.
        heading: How the name of a group is written: a folder, a day, or as it is.
        unnamed: Heading of the sessions that have no such value.
        field: The field of ``ListRow`` that decides; None where the sort decides.
        indexed: Whether the first page can be read by itself where the newest are first.
    """

    name: str
    label: str
    value: Callable[[Form, Sort], str]
    heading: Literal["folder", "day", "text", "none"]
    unnamed: str = ""
    field: str | None = None
    indexed: bool = False


GROUPS: Mapping[str, Group] = _by_name(
    Group("workspace", "by workspace", lambda form, sort: "s.workspace_root",
          "folder", "no workspace", field="workspace", indexed=True),
    Group("day", "by day", lambda form, sort: f"s.{sort.date}", "day", indexed=True),
    Group("source", "by source",
          lambda form, sort: f"coalesce({form.source_kind('s')}, s.agent)",
          "text", "unknown source", field="source"),
    Group("owner", "by owner", lambda form, sort: form.fact("s", "owner"),
          "text", "no owner", field="owner"),
    Group("none", "ungrouped", lambda form, sort: "NULL", "none", indexed=True),
)
"""By name, in the order in which the key goes through them; the first is the default."""


class Shelf(NamedTuple):
    """Which sessions a list shows by whether they are archived.

    Attributes:
        name: In the remembered view.
        label: In the header of the list.
        condition: SQL of a session ``s``.
        archived: Whether the sessions are archived ones; None where both are shown.
        adjective: Before "sessions", where the list is empty.
    """

    name: str
    label: str
    condition: str
    archived: bool | None
    adjective: str = ""


SHELVES: Mapping[str, Shelf] = _by_name(
    Shelf("active", "Sessions", "s.archived_at IS NULL", archived=False),
    Shelf("archived", "Archived", "s.archived_at IS NOT NULL", archived=True,
          adjective="archived "),
    Shelf("all", "All sessions", "TRUE", archived=None),
)
"""By name, in the order in which the key goes through them; the first is the default."""

DEFAULT_SORT, DEFAULT_GROUP, DEFAULT_SHELF = (
    next(iter(options)) for options in (SORTS, GROUPS, SHELVES)
)


def next_name(options: Mapping[str, object], name: str) -> str:
    """Return the name of the option after another, the first one after the last."""
    names = list(options)
    return names[(names.index(name) + 1) % len(names)]
