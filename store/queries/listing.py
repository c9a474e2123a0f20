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


def _metadata(read: Callable[[dict[str, Any]], Any]) -> Any:
    """Declare a field that is in the decoded ``metadata_json``."""
    return field(metadata={"read": read})


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

    A new field is one line above ``turns``; from there on, fields are set after the reading.

    Attributes:
        title: The user's title, else the stored one, else None.
        owner: Whose session it is in a shared store, or None.
        model: The model id, or None.
        lineage: ``fork``, ``subagent``, ``continuation`` or ``unknown``; None without parent.
        activity: As stored, or None; ``activities.rows`` judges it.
        activity_from: ``stored`` or ``guessed``.
        said: The whole activity as stored, with the process that runs it.
        messages: Stored messages, hidden ones too.
        outline: Whether its file is listed and not read yet: counts are unknown.
        prompts_only: Whether only its prompts are known, from an agent's log of typed lines.
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
    source: str | None = _metadata(lambda found: _text(_part(found, "source").get("kind")))
    model: str | None = _column("s.model_json", _model_id)
    workspace: str | None = _column("s.workspace_root", text)
    branch: str | None = _metadata(lambda found: _text(found.get("git_branch")))
    parent_id: str | None = _column("s.parent_id", text)
    lineage: str | None = _metadata(lambda found: _text(_part(found, "lineage").get("kind")))
    tokens: int = _column("s.total_tokens", number)
    cost: float = _column("s.cost_usd", amount)
    created_at: int = _column("s.created_at", number)
    updated_at: int = _column("s.updated_at", number)
    archived_at: int | None = _column("s.archived_at", number_or_none)
    star: bool = _metadata(is_starred)
    tags: tuple[str, ...] = _metadata(lambda found: tag_names(_part(found, "user")))
    activity: str | None = _metadata(lambda found: _text(_part(found, "activity").get("state")))
    activity_from: str | None = _metadata(lambda found: _text(_part(found, "activity").get("from")))
    said: Mapping[str, Any] | None = _metadata(
        lambda found: activity if _text((activity := _part(found, "activity")).get("state"))
        else None)
    messages: int = _column(_MESSAGES, number)
    outline: bool = _metadata(is_outline)
    prompts_only: bool = _metadata(
        lambda found: _part(found, "backscroll").get("prompts_only") is True)
    owner: str | None = field(
        default=None, metadata={"read": lambda found: _text(found.get("owner"))})
    turns: int | None = None
    active_at: int = 0
    live: Mapping[str, Any] | None = None
    own_cost: tuple[float, bool] | None = None


_READ = [each.metadata for each in fields(ListRow).values() if each.metadata]
_COLUMNS = [each["sql"] for each in _READ if "sql" in each]
# Of each field, where its value is among the decoded metadata (0) and the columns, and how it
# is read.
_READERS: list[tuple[int, Callable[[Any], Any]]] = [
    (1 + _COLUMNS.index(each["sql"]) if "sql" in each else 0, each["read"]) for each in _READ
]


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
    marks, place = ",".join("?" * len(rowids)), db.sql.rowid("s")
    names = ", ".join(["s.metadata_json", *_COLUMNS])
    if not counted:
        names = names.replace(_MESSAGES, "0")
    rows = db.connection.execute(
        f"SELECT {names.format(title=db.form.title('s'), rowid=place)} FROM chat_sessions s"
        f" WHERE {place} IN ({marks})",
        list(rowids),
    ).fetchall()
    found = [_list_row(row) for row in rows]
    live = live_activities(db, [row.id for row in found])
    for row in found:
        row.live = live.get(row.id)
    return {row.rowid: row for row in found}


def _list_row(row: tuple[Column, ...]) -> ListRow:
    metadata = decoded(text(row[0]))
    read_from = (metadata, *row[1:])
    found = ListRow(*[read(read_from[at]) for at, read in _READERS])
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
