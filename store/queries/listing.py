"""What a session list asks for, and the rows of a window of it; ``list_keys`` has the order."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

from store.activity.judgement import live_activities
from store.engine.database import Database
from store.queries.reading import amount, decoded, number, number_or_none, tag_names, text

Sort = Literal["recent", "created", "tokens", "cost", "length", "activity"]
Group = Literal["workspace", "day", "source", "none"]
Shelf = Literal["active", "archived", "all"]

SORTS: tuple[Sort, ...] = ("recent", "created", "tokens", "cost", "length", "activity")
GROUPS: tuple[Group, ...] = ("workspace", "day", "source", "none")
SHELVES: tuple[Shelf, ...] = ("active", "archived", "all")


class ListQuery(NamedTuple):
    """What the list shows and in which order.

    Attributes:
        workspace: Only sessions of this folder; None for all.
        helpers: Whether runs that agents started for themselves are in the list.
    """

    sort: Sort = "recent"
    group: Group = "workspace"
    shelf: Shelf = "active"
    workspace: str | None = None
    helpers: bool = False


@dataclass(slots=True)
class ListRow:
    """What the list draws of one session.

    Attributes:
        title: The user's title, else the stored one, else None.
        model: The model id, or None.
        lineage: ``fork``, ``subagent``, ``continuation`` or ``unknown``; None without parent.
        activity: As stored, or None; ``activities.rows`` says what it is worth.
        activity_from: ``stored`` or ``guessed``.
        active_at: Epoch ms of what a guess goes by, where that is newer; else 0.
        messages: Stored messages, hidden ones too.
        turns: Visible messages of the user; None until it is counted.
        said: The whole activity as stored, with the process that runs it.
        live: What a watcher that lives has seen of it.
        prompts_only: Whether only its prompts are known, from an agent's log of typed lines.
    """

    rowid: int
    id: str
    title: str | None
    agent: str
    source: str | None
    model: str | None
    workspace: str | None
    branch: str | None
    parent_id: str | None
    lineage: str | None
    tokens: int
    cost: float
    created_at: int
    updated_at: int
    archived_at: int | None
    star: bool
    tags: tuple[str, ...]
    activity: str | None
    activity_from: str | None
    messages: int = 0
    turns: int | None = None
    active_at: int = 0
    said: Mapping[str, Any] | None = None
    live: Mapping[str, Any] | None = None
    prompts_only: bool = False


def upper_bound(db: Database) -> int:
    """Return at least the number of sessions, without counting them."""
    (largest,) = db.connection.execute("SELECT max(rowid) FROM chat_sessions").fetchone()
    return int(largest or 0)


def rows_of(db: Database, rowids: Sequence[int]) -> dict[int, ListRow]:
    """Read what the list draws of some sessions, by rowid; those that are gone are missing."""
    marks = ",".join("?" * len(rowids))
    rows = db.connection.execute(
        f"SELECT s.rowid, s.id, {db.form.title('s')}, s.agent, s.model_json, s.workspace_root, "
        "s.parent_id, s.total_tokens, s.cost_usd, s.created_at, s.updated_at, s.archived_at, "
        "s.metadata_json, (SELECT count(*) FROM chat_messages m WHERE m.session_id = s.id) "
        f"FROM chat_sessions s WHERE s.rowid IN ({marks})",
        list(rowids),
    ).fetchall()
    live = live_activities(db, [row[1] for row in rows])
    return {row[0]: _list_row(row, live.get(row[1])) for row in rows}


def _part(container: dict[str, Any], key: str) -> dict[str, Any]:
    value = container.get(key)
    return value if isinstance(value, dict) else {}


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) and value else None


def _list_row(row: tuple[Any, ...], live: Mapping[str, Any] | None) -> ListRow:
    metadata = decoded(text(row[12]))
    user, activity = _part(metadata, "user"), _part(metadata, "activity")
    return ListRow(
        rowid=row[0], id=text(row[1]) or "", title=_text(user.get("title")) or _text(row[2]),
        agent=text(row[3]) or "",
        source=_text(_part(metadata, "source").get("kind")),
        model=_text(decoded(text(row[4])).get("model_id")), workspace=text(row[5]),
        branch=_text(metadata.get("git_branch")), parent_id=text(row[6]),
        lineage=(_text(_part(metadata, "lineage").get("kind")) or "unknown") if row[6] else None,
        tokens=number(row[7]), cost=amount(row[8]), created_at=number(row[9]),
        updated_at=number(row[10]), archived_at=number_or_none(row[11]),
        star=user.get("star") is True,
        tags=tag_names(user),
        activity=_text(activity.get("state")), activity_from=_text(activity.get("from")),
        messages=row[13], said=activity if _text(activity.get("state")) else None, live=live,
        prompts_only=_part(metadata, "backscroll").get("prompts_only") is True,
    )


def rowid_of(db: Database, session_id: str) -> int | None:
    """Return a session's rowid, or None when it is not in the store."""
    row = db.connection.execute(
        "SELECT rowid FROM chat_sessions WHERE id = ?", (session_id,)
    ).fetchone()
    return None if row is None else int(row[0])


def rowids_of(db: Database, session_ids: Sequence[str]) -> dict[str, int]:
    """Return the rowids of the sessions that are in the store, by id."""
    marks = ",".join("?" * len(session_ids))
    rows = db.connection.execute(
        f"SELECT id, rowid FROM chat_sessions WHERE id IN ({marks})", list(session_ids)
    )
    return dict(rows.fetchall())
