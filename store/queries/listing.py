"""What a session list asks for, and the rows of a window of it; ``list_keys`` has the order."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence

from store.activity.judgement import live_activities
from store.conversation.outline_marks import is_outline
from store.engine.database import Database
from store.engine.values import Column, amount, decoded, number, number_or_none, tag_names, text
from store.queries.list_options import DEFAULT_GROUP, DEFAULT_SHELF, DEFAULT_SORT
from store.queries.user_marks import is_starred
from store.system.records import NamedTuple, field, fields, record
from store.text.stored_json import array_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


class ListQuery(NamedTuple):
    """What the list shows and in which order.

    Attributes:
        sort: A name of ``SORTS``.
        group: A name of ``GROUPS``.
        shelf: A name of ``SHELVES``.
        workspace: Only sessions of this folder; None for all.
        helpers: Whether runs that agents started for themselves are in the list.
    """

    sort: str = DEFAULT_SORT
    group: str = DEFAULT_GROUP
    shelf: str = DEFAULT_SHELF
    workspace: str | None = None
    helpers: bool = False


_MESSAGES = "(SELECT count(*) FROM chat_messages m WHERE m.session_id = s.id)"


def _column(sql: str, read: Callable[[Column], Any]) -> Any:
    """Declare a field that SQL gives.

    Args:
        sql: An expression over a session ``s``; ``{title}`` is the title of this form,
            ``{rowid}`` the session's number.
        read: Makes the field of what SQLite gives.
    """
    return field(metadata={"sql": sql, "read": read})


def _metadata(read: Callable[[dict[str, Any]], Any], *keys: str) -> Any:
    """Declare a field that is in the decoded ``metadata_json``.

    Args:
        read: Makes the field of it.
        keys: Where it looks; without them it is not called, and the field is as of nothing.
    """
    return field(metadata={"read": read, "keys": frozenset(keys)})


def _required(value: Column) -> str:
    return text(value) or ""


def _part(container: dict[str, Any], key: str) -> dict[str, Any]:
    value = container.get(key)
    return value if isinstance(value, dict) else {}


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) and value else None


def _model_id(value: Column) -> str | None:
    return _text(decoded(text(value)).get("model_id"))


@record
class ListRow:
    """What the list draws of one session; each field declares where it is read from.

    A new field is one line: with the columns, with the metadata, or below these two where it is
    set after the reading.

    Attributes:
        title: The user's title, else the stored one, else None.
        model: The model id, or None.
        messages: Stored messages, hidden ones too.
        lineage: ``fork``, ``subagent``, ``continuation`` or ``unknown``; None without parent.
        activity: As stored, or None; ``activities.rows`` judges it.
        activity_from: ``stored`` or ``guessed``.
        said: The whole activity as stored, with the process that runs it.
        outline: Whether its file is listed and not read yet: counts are unknown.
        prompts_only: Whether only its prompts are known, from an agent's log of typed lines.
        owner: Whose session it is in a shared store, or None.
        turns: Visible messages of the user; None until they are counted.
        active_at: Epoch ms of what a guess goes by, where that is newer; else 0.
        live: What a running watcher has seen of it.
        own_cost: Dollars of its own answers, and whether a part of them is an estimate; None
            until statistics tell. ``cost`` is what its row says, copies included.
    """

    rowid: int = _column("{rowid}", number)
    id: str = _column("s.id", _required)
    title: str | None = _column("{title}", _text)
    agent: str = _column("s.agent", _required)
    model: str | None = _column("s.model_json", _model_id)
    workspace: str | None = _column("s.workspace_root", text)
    parent_id: str | None = _column("s.parent_id", text)
    tokens: int = _column("s.total_tokens", number)
    cost: float = _column("s.cost_usd", amount)
    created_at: int = _column("s.created_at", number)
    updated_at: int = _column("s.updated_at", number)
    archived_at: int | None = _column("s.archived_at", number_or_none)
    messages: int = _column(_MESSAGES, number)

    source: str | None = _metadata(lambda told: _text(_part(told, "source").get("kind")), "source")
    branch: str | None = _metadata(lambda told: _text(told.get("git_branch")), "git_branch")
    lineage: str | None = _metadata(
        lambda told: _text(_part(told, "lineage").get("kind")), "lineage")
    star: bool = _metadata(is_starred, "user", "backscroll")
    tags: tuple[str, ...] = _metadata(lambda told: tag_names(_part(told, "user")), "user")
    activity: str | None = _metadata(
        lambda told: _text(_part(told, "activity").get("state")), "activity")
    activity_from: str | None = _metadata(
        lambda told: _text(_part(told, "activity").get("from")), "activity")
    said: Mapping[str, Any] | None = _metadata(
        lambda told: activity if _text((activity := _part(told, "activity")).get("state"))
        else None, "activity")
    outline: bool = _metadata(is_outline, "source")
    prompts_only: bool = _metadata(
        lambda told: _part(told, "backscroll").get("prompts_only") is True, "backscroll")
    owner: str | None = field(default=None, metadata={
        "read": lambda told: _text(told.get("owner")), "keys": frozenset({"owner"})})

    turns: int | None = None
    active_at: int = 0
    live: Mapping[str, Any] | None = None
    own_cost: tuple[float, bool] | None = None


_FIELDS = [each.metadata for each in fields(ListRow).values() if each.metadata]
_COLUMNS = [(each["sql"], each["read"]) for each in _FIELDS if "sql" in each]
_FACTS = [(each["keys"], each["read"], each["read"]({})) for each in _FIELDS if "keys" in each]
_KEYS = frozenset[str]().union(*[keys for keys, _, _ in _FACTS])
_NO_FACTS = [nothing for _, _, nothing in _FACTS]
_MADE = [(at, read) for at, (_, read) in enumerate(_COLUMNS) if read in (_text, _model_id)]
"""Columns whose fields are made of them, and are not the same in another type."""


def has_sessions(db: Database) -> bool:
    """Say whether there is any session."""
    return db.connection.execute("SELECT 1 FROM chat_sessions LIMIT 1").fetchone() is not None


def upper_bound(db: Database) -> int:
    """Return at least the number of sessions, without counting them."""
    (largest,) = db.connection.execute(db.sql.most_sessions()).fetchone()
    return int(largest or 0)


def rows_of(
    db: Database, rowids: Sequence[int], *, counted: bool = True
) -> dict[int, ListRow]:
    """Read what the list draws of some sessions, by rowid; those that are gone are missing.

    Args:
        db: The store.
        rowids: The sessions.
        counted: Whether their messages are counted, which takes longer the more there are;
            else the rows say 0.
    """
    rows = db.connection.execute(
        db.composed(("list rows", counted), lambda: _rows_sql(db, counted)),
        {"1": array_of(rowids)},
    ).fetchall()
    has_types = db.has_types
    found = [_list_row(row, has_types=has_types) for row in rows]
    live = live_activities(db, [row.id for row in found])
    if live:
        for row in found:
            row.live = live.get(row.id)
    return {row.rowid: row for row in found}


def _rows_sql(db: Database, counted: bool) -> str:
    place, title = db.sql.rowid("s"), db.form.title("s")
    columns = [
        "0" if sql == _MESSAGES and not counted else sql.format(title=title, rowid=place)
        for sql, _ in _COLUMNS
    ]
    return (f"SELECT s.metadata_json, {', '.join(columns)} FROM chat_sessions s"
            f" WHERE {db.sql.is_among(place, '$1')}")


def _list_row(row: Sequence[Any], *, has_types: bool) -> ListRow:
    """Return a row of the list.

    Args:
        row: The metadata and the columns.
        has_types: Whether the columns have the types of our tables.
    """
    metadata = decoded(text(row[0]))
    columns = list(row[1:])
    if has_types:
        for at, read in _MADE:
            columns[at] = read(columns[at])
    else:
        columns = [read(value) for (_, read), value in zip(_COLUMNS, columns, strict=True)]
    facts, told = _NO_FACTS, _KEYS.intersection(metadata)
    if told:
        facts = [
            nothing if keys.isdisjoint(told) else read(metadata) for keys, read, nothing in _FACTS
        ]
    found = ListRow(*columns, *facts)
    if "user" in told:
        found.title = _text(_part(metadata, "user").get("title")) or found.title
    found.lineage = (found.lineage or "unknown") if found.parent_id else None
    return found


def rowid_of(db: Database, session_id: str) -> int | None:
    """Return a session's rowid, or None when it is not in the store."""
    row = db.connection.execute(
        f"SELECT {db.sql.rowid()} FROM chat_sessions WHERE id = ?", (session_id,)
    ).fetchone()
    return None if row is None else int(row[0])


def rowids_of(db: Database, session_ids: Collection[str]) -> dict[str, int]:
    """Return the rowids of the sessions that are in the store, by id."""
    rows = db.connection.execute(
        f"SELECT s.id, {db.sql.rowid('s')} FROM {db.sql.texts('?', 'j')}"
        " JOIN chat_sessions s ON s.id = j.value",
        (array_of(session_ids),),
    )
    return dict(rows.fetchall())
