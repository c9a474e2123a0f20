"""Fork: a new session with the visible messages up to a chosen one.

Rows are copied as text by set-based SQL, never through a model: a round trip would add
keys that an agent's API rejects. Queued, cancelled and hidden messages stay behind.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

from store.conversation.kept import kept_names
from store.conversation.readable import decode
from store.engine.database import Database
from store.engine.transactions import beside_others
from store.errors import Refused
from store.ids import IdMinter
from store.text.stored_json import array_of, as_dict
from store.verbs import rollups
from store.verbs.fork_rows import columns_of, fingerprint
from store.verbs.guards import refuse_while_running, require_session, require_visible_message
from store.verbs.log import note_change, record
from store.verbs.titles import fork_title

_LEFT_BEHIND = ("source", "user", "activity", "ephemeral", "backscroll", "title_from")


@dataclass(frozen=True, slots=True)
class ForkPreview:
    """What a fork would copy.

    Attributes:
        last_message_id: The newest message of the fork, its ``parent_message_id``.
        prompt: With "before", the text of the chosen user message, for editing.
        files: With "before", what that message has beside its text, which no prompt can hold:
            type and name of each image or file.
    """

    title: str
    messages: int
    parts: int
    tool_calls: int
    last_message_id: str
    prompt: str | None
    files: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Forked:
    """A fork that was made."""

    session_id: str
    preview: ForkPreview


class _Chosen(NamedTuple):
    """The messages that are copied, as a table of ``position`` (from 1) and ``old_id``.

    Attributes:
        table: A temporary table of a file. On a server, which writes one to its catalogue, the
            statement that finds them.
        values: Of that statement, by name.
    """

    table: str
    values: Mapping[str, object]


def _chosen(db: Database, session_id: str, message_id: str, *, before: bool) -> _Chosen:
    """Return the messages up to one, in display order.

    Args:
        db: The store.
        session_id: The session.
        message_id: The message.
        before: Whether it is left out.
    """
    selected = (
        "SELECT row_number() OVER (ORDER BY m.created_at, m.id) AS position, m.id AS old_id"
        " FROM chat_messages m WHERE m.session_id = $from AND (m.created_at, m.id)"
        f" {'<' if before else '<='} (SELECT created_at, id FROM chat_messages WHERE id = $until)"
        f" AND {db.form.shown('m')}"
    )
    values = {"from": session_id, "until": message_id}
    if db.server is not None:
        return _Chosen(f"({selected})", values)
    db.connection.execute("DROP TABLE IF EXISTS temp.fork_messages")
    db.connection.execute(
        "CREATE TEMP TABLE fork_messages("
        " position BIGINT PRIMARY KEY, old_id TEXT NOT NULL, new_id TEXT)"
    )
    db.connection.execute(
        "INSERT INTO temp.fork_messages(position, old_id)"
        f" {selected} ORDER BY m.created_at, m.id", values)
    return _Chosen("temp.fork_messages", {})


def _prompt_text(db: Database, message_id: str) -> str:
    rows = db.connection.execute(
        f"SELECT {db.sql.fact('data_json', 'text')} FROM chat_parts"
        " WHERE message_id = $1 AND type = 'text' ORDER BY \"index\"",
        {"1": message_id},
    )
    return "\n\n".join(row[0] for row in rows if row[0] and isinstance(row[0], str))


def _is_a_persons(db: Database, message_id: str) -> bool:
    """Tell whether a user message holds what a person typed, a command or shell line too."""
    (origin,) = db.connection.execute(
        f"SELECT {db.form.rare_fact('m', 'origin')} FROM chat_messages m WHERE m.id = $1",
        {"1": message_id},
    ).fetchone()
    return origin not in ("meta", "notification")


def _files_of(db: Database, message_id: str) -> tuple[str, ...]:
    media_type, name, url = (
        db.sql.fact("data_json", key) for key in ("mediaType", "filename", "url"))
    rows = db.connection.execute(
        f"SELECT {media_type}, {name}, substr({url}, 1, 200) FROM chat_parts"
        f" WHERE message_id = $1 AND type = 'file' AND {db.sql.is_json('data_json')}"
        ' ORDER BY "index"',
        {"1": message_id},
    )
    return tuple(_file_name(*row) for row in rows)


def _file_name(media_type: object, name: object, url: object) -> str:
    """Return what a person knows a file by: its type, and its name or place."""
    place = url if isinstance(url, str) and not url.startswith("data:") else ""
    words = (str(media_type or "file"), str(name or place))
    return " ".join(word for word in words if word)


@beside_others
def preview_fork(
    db: Database, session_id: str, message_id: str, *, before: bool = False
) -> ForkPreview:
    """Tell what a fork at a message would copy; writes nothing but a temporary table of a file.

    Args:
        db: The store, inside a write transaction.
        session_id: The session's id.
        message_id: The message's id.
        before: Leave the chosen user message out and hand its text over.

    Raises:
        NotFound: Session or message is not there.
        Refused: The message cannot be the point of a fork.
    """
    return _preview(db, session_id, message_id, before=before)[0]


def _preview(
    db: Database, session_id: str, message_id: str, *, before: bool
) -> tuple[ForkPreview, _Chosen]:
    """Return what a fork would copy, as a preview and as a table; see ``preview_fork``."""
    require_session(db, session_id)
    role = require_visible_message(db, session_id, message_id)
    if before and role != "user":
        raise Refused(f"cannot fork before {message_id}: it is the {role}'s; choose a user message")
    if before and not _is_a_persons(db, message_id):
        raise Refused("cannot fork before this message: a program wrote it; choose one of yours")
    chosen = _chosen(db, session_id, message_id, before=before)
    messages, parts, calls, last_at = db.connection.execute(
        "SELECT count(DISTINCT f.position), count(p.id), count(p.tool_call_id), max(f.position)"
        f" FROM {chosen.table} f LEFT JOIN chat_parts p ON p.message_id = f.old_id", chosen.values
    ).fetchone()
    if not messages:
        raise Refused("nothing comes before the first message; start a new session with its text")
    (last,) = db.connection.execute(
        f"SELECT f.old_id FROM {chosen.table} f WHERE f.position = $last",
        {**chosen.values, "last": last_at}).fetchone()
    prompt = _prompt_text(db, message_id) if before else None
    files = _files_of(db, message_id) if before else ()
    title = fork_title(db, session_id)
    return ForkPreview(title, messages, parts, calls, last, prompt, files), chosen


@beside_others
def fork(
    db: Database,
    session_id: str,
    message_id: str,
    *,
    before: bool = False,
    draft: str | None = None,
    ids: IdMinter,
    now: int,
) -> Forked:
    """Make a fork; one set-based copy inside the caller's transaction.

    Args:
        db: The store, inside a write transaction.
        session_id: The session's id.
        message_id: The message's id.
        before: Leave the chosen user message out and hand its text over.
        draft: With ``before``, that text as it was edited; None keeps it as it is. It is kept
            in ``metadata_json.backscroll.draft_prompt``, for going on in an agent.
        ids: Mints the new session's id and the stamps of the copies.
        now: Epoch ms.

    Raises:
        NotFound: Session or message is not there.
        Refused: The session runs, or the message cannot be the point of a fork.
    """
    require_session(db, session_id)
    refuse_while_running(db, session_id, now)
    preview, chosen = _preview(db, session_id, message_id, before=before)
    new_session = ids.mint("ses")
    draft = preview.prompt if draft is None else draft
    _copy_session(db, session_id, new_session, preview, draft if before else None, now)
    _copy_messages(db, chosen, new_session, ids.reserve(preview.messages))
    _remap_compactions(db, chosen, new_session)
    _copy_attachments(db, session_id, new_session)
    rollups.write(db, new_session)
    record(
        db, "fork", session_id, f"forked “{preview.title}”", "[]", now,
        created_session=new_session, created_fingerprint=fingerprint(db, new_session),
    )  # fmt: skip
    note_change(db, new_session, now)
    return Forked(new_session, preview)


def _new_id(db: Database, prefix: str, position: str) -> str:
    """Return SQL for an id of a copy: its stamp is the first tick ($1) plus its position.

    Args:
        db: The store.
        prefix: How the id begins.
        position: The position of the message, from 1.
    """
    # Hexadecimal digits are base62 digits too.
    tick = f"(CAST($1 AS BIGINT) + {position} - 1)"
    return f"'{prefix}' || {db.sql.hex12(tick)} || {db.sql.random_tail}"


def _copying(db: Database, table: str, overrides: dict[str, str], tail: str) -> str:
    """Return a statement that copies rows, every column of whatever form the store has.

    Args:
        db: The store.
        table: The table.
        overrides: SQL of the columns that are not copied as they are.
        tail: What comes after FROM; the rows are called ``x``.
    """
    columns = columns_of(db, table, copied=True)
    names = ", ".join(f'"{name}"' for name in columns)
    picked = ", ".join(overrides.get(name, f'x."{name}"') for name in columns)
    return f"INSERT INTO {table}({names}) SELECT {picked} FROM {tail}"


def _copy_session(
    db: Database, session_id: str, new_session: str, preview: ForkPreview, draft: str | None,
    now: int,
) -> None:
    overrides = {
        "id": "$2",
        "title": "$4",
        "parent_id": "x.id",
        "parent_message_id": "$3",
        "permissions_json": "'[]'",
        "metadata_json": "$6",
        "cost_usd": "0",
        "created_at": "$5",
        "updated_at": "$5",
        "archived_at": "NULL",
    }
    values: dict[str, object] = {
        "1": session_id, "2": new_session, "3": preview.last_message_id, "4": preview.title,
        "5": now, "6": _metadata(db, session_id, preview.title, draft),
    }  # fmt: skip
    db.connection.execute(
        _copying(db, "chat_sessions", overrides, "chat_sessions x WHERE x.id = $1"), values)


def _metadata(db: Database, session_id: str, title: str, draft: str | None) -> str:
    """Return the metadata of a fork, of that of the session it is made of.

    Args:
        db: The store.
        session_id: That session.
        title: The fork's title.
        draft: Its prompt as it was edited; None without one.
    """
    (text,) = db.connection.execute(
        "SELECT metadata_json FROM chat_sessions WHERE id = $1", {"1": session_id}).fetchone()
    removed = ", ".join(f"'$.{key}'" for key in _LEFT_BEHIND)
    made = f"json_set(json_remove($1, {removed}), '$.lineage', json('{{\"kind\":\"fork\"}}')"
    made += "" if db.form.title_column else ", '$.title', $2"
    made += ", '$.backscroll', json_object('draft_prompt', $3))" if draft else ")"
    (metadata,) = db.json.execute(
        f"SELECT CASE WHEN json_valid($1) THEN {made} ELSE '{{}}' END",
        {"1": text, "2": title, "3": draft}).fetchone()
    return str(metadata)


def _copy_messages(db: Database, chosen: _Chosen, new_session: str, first_tick: int) -> None:
    """Copy the chosen messages with their parts.

    Args:
        db: The store.
        chosen: The messages.
        new_session: The session that they go to.
        first_tick: The stamp of the first copy.
    """
    message = {
        "id": "f.new_id",
        "session_id": "$2",
        "metadata_json": db.sql.with_text("x.metadata_json", "inherited_from", "x.id"),
    }
    part = {
        "id": _new_id(db, "prt_", "f.position"),
        "message_id": "f.new_id",
        "session_id": "$2",
        # An unsettled answer of the parent's run is not the fork's to continue.
        "continuation_run_id": "NULL",
    }
    named = chosen.table if db.server is None else "named"
    messages = _copying(
        db, "chat_messages", message,
        f"{named} f {db.sql.then_join} chat_messages x ON x.id = f.old_id ORDER BY f.position")
    # On a server a part waits for the copy of its message.
    copied = "" if db.server is None else "JOIN copied c ON c.id = f.new_id"
    parts = _copying(
        db, "chat_parts", part,
        f"{named} f {copied} {db.sql.then_join} chat_parts x ON x.message_id = f.old_id"
        ' ORDER BY f.position, x."index"')
    new_id, tick = _new_id(db, "msg_", "position"), {"1": first_tick}
    if db.server is None:
        db.connection.execute(f"UPDATE {named} SET new_id = {new_id}", tick)
        db.connection.execute(messages, {"2": new_session})
        db.connection.execute(parts, {**tick, "2": new_session})
        return
    # One statement sees one state of the session, whoever else writes it.
    db.connection.execute(
        f"WITH named AS MATERIALIZED (SELECT o.*, {new_id} AS new_id FROM {chosen.table} o),"
        f" copied AS ({messages} RETURNING id) {parts}",
        {**chosen.values, **tick, "2": new_session})


def _remap_compactions(db: Database, chosen: _Chosen, new_session: str) -> None:
    """Point copied compaction markers at the copies; text surgery keeps the rest verbatim."""
    copies = chosen.table if db.server is None else (
        f"(SELECT {db.form.fact('m', 'inherited_from')} AS old_id, m.id AS new_id"
        " FROM chat_messages m WHERE m.session_id = $1)")
    markers = db.connection.execute(
        f"SELECT id, {db.sql.text('data_json')} FROM chat_parts"
        " WHERE session_id = $1 AND type = 'data-compaction'",
        {"1": new_session},
    ).fetchall()
    named = {part_id: kept_names(as_dict(decode(text))) for part_id, text in markers}
    wanted = list({name for names in named.values() for name in names})
    new_ids = dict(db.connection.execute(
        f"SELECT f.old_id, f.new_id FROM {copies} f JOIN {db.sql.texts('$2', 'n')}"
        " ON n.value = f.old_id",
        {"1": new_session, "2": array_of(wanted)},
    ).fetchall()) if wanted else {}
    replaced = db.sql.as_json(f"replace({db.sql.text('data_json')}, $1, $2)")
    for part_id, names in named.items():
        for old_id in filter(new_ids.__contains__, names):
            db.connection.execute(
                f"UPDATE chat_parts SET data_json = {replaced} WHERE id = $3",
                {"1": f'"{old_id}"', "2": f'"{new_ids[old_id]}"', "3": part_id},
            )


def _copy_attachments(db: Database, session_id: str, new_session: str) -> None:
    if db.form.name == "own":
        db.connection.execute(
            "INSERT INTO attachments(session_id, name, media_type, size, body)"
            " SELECT $2, name, media_type, size, body FROM attachments WHERE session_id = $1",
            {"1": session_id, "2": new_session},
        )
