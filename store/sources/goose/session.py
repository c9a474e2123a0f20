"""A session of Goose, from its rows or its file of lines to a draft.

Source: the Goose format page, sections 2 (tokens and cost, lineage) and 3 (files of lines).
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from store.sources.base.databases import decoded
from store.sources.base.drafts import LineageDraft, MessageDraft, SessionDraft
from store.sources.base.json_lines import Record
from store.sources.base.protocol import Library, Reading, Unit
from store.sources.base.row_reader import Row, RowReader
from store.sources.base.row_session import RowSession, without_repeats
from store.sources.base.titles import FIRST_PROMPT, first_prompt, shortened
from store.sources.base.values import mapping, number, string, utc_ms
from store.sources.goose.messages import Messages, created_ms

KIND = "goose"
_NOT_KEPT = ("extension_data",)
"""Columns that may hold values of the environment."""
_COUNTS = ("input", "output", "cache_read", "cache_write")
_NOTHING = 1e-9
"""Dollars that are left where the sums of two lists are the same."""
_LEDGER = b"usage_ledger"
_SUBAGENT, _HIDDEN = "sub_agent", "hidden"


def read_session(
    reader: RowReader, path: str, session_id: str, unit: Unit, library: Library
) -> Reading:
    """Read one session of a database whole; no session where it is not there any more.

    Args:
        reader: Runs the statements.
        path: The database.
        session_id: The session's id.
        unit: The unit as it was listed.
        library: What is stored already.
    """
    found = reader.rows("SELECT * FROM sessions WHERE id = $1", session_id)
    if not found:
        return Reading([], [], unit.stamps)
    row = {key: value for key, value in found[0].items() if key not in _NOT_KEPT}
    session, messages = RowSession(session_id, path), Messages()
    session.keep("sessions", row)
    thread = _thread(reader, row)
    for each in without_repeats(_message_rows(reader, session_id, row)):
        content = session.listed(f"message {each.get('id')}", each.get("content_json"))
        messages.take(
            string(each.get("message_id")) or f"row-{each.get('id')}", each.get("role"),
            content or [], created_ms(each.get("created_timestamp")),
            session.keep("messages", each), mapping(decoded(each.get("metadata_json"))),
        )  # fmt: skip
    draft = _draft(row, thread, session, messages)
    ledger = (
        reader.rows("SELECT * FROM usage_ledger WHERE session_id = $1 ORDER BY id", session_id)
        if reader.columns("usage_ledger") else []
    )  # fmt: skip
    draft.messages = _with_spending(draft, row, without_repeats(ledger), session, library)
    return Reading([draft], session.problems, unit.stamps)


def _thread(reader: RowReader, row: Row) -> Row:
    """Return the thread of a session of schema 10 or 11; empty where there is none."""
    name = row.get("thread_id")
    if not isinstance(name, str) or not reader.columns("threads"):
        return {}
    found = reader.rows("SELECT * FROM threads WHERE id = $1", name)
    return found[0] if found else {}


def _message_rows(reader: RowReader, session_id: str, row: Row) -> list[Row]:
    found = reader.rows("SELECT * FROM messages WHERE session_id = $1", session_id)
    if not found and isinstance(row.get("thread_id"), str) and reader.columns("thread_messages"):
        return reader.rows(
            "SELECT * FROM thread_messages WHERE thread_id = $1 ORDER BY id", row["thread_id"])
    # Some writers stored ms, so that the database's own order is none.
    return sorted(found, key=lambda one: (created_ms(one.get("created_timestamp")), one["id"]))


def _draft(row: Row, thread: Row, session: RowSession, made: Messages) -> SessionDraft:
    first = next((one.created_at for one in made.found if one.created_at), 0)
    created = utc_ms(row.get("created_at")) or first
    updated = utc_ms(row.get("updated_at")) or 0
    last = max([updated, *(one.updated_at for one in made.found)]) or created
    kind = string(row.get("session_type")) or "user"
    draft = SessionDraft(
        session.id, session.path, KIND, created, last, messages=made.found,
        workspace_root=string(row.get("working_dir")) or string(thread.get("working_dir")),
        records=session.records, tells_title=True,
        archived_at=utc_ms(row.get("archived_at")) or utc_ms(thread.get("archived_at")),
    )  # fmt: skip
    by_hand = bool(number(row.get("user_set_name"))) or bool(number(thread.get("user_set_name")))
    _name(draft, (thread.get("name"), row.get("name"), row.get("description")), by_hand)
    config = mapping(decoded(row.get("model_config_json")))
    names = (config.get(key) for key in ("model_name", "modelName", "model"))
    model = next((name for name in names if string(name)), None)
    if model is not None:
        provider = string(row.get("provider_name")) or "unknown"
        draft.model = {"provider_id": provider, "model_id": model}
    extra: dict[str, Any] = {"session_type": kind}
    if row.get("total_tokens") is not None:
        extra["context_tokens"] = number(row["total_tokens"])
    for name in ("goose_mode", "schedule_id", "project_id"):
        if string(row.get(name)):
            extra[name] = row[name]
    if kind == _HIDDEN:
        extra["helper"] = _HIDDEN
    draft.metadata["backscroll"] = extra
    parent = string(row.get("parent_session_id"))
    if kind == _SUBAGENT and parent is not None and parent != session.id:
        told = mapping(decoded(row.get("parent_delegation")))
        message = string(told.get("parent_delegate_message_id"))
        draft.lineage = LineageDraft("subagent", parent, message)
    activity = _activity(draft)
    if activity is not None:
        draft.metadata["activity"] = activity
    return draft


def _name(draft: SessionDraft, names: Iterable[object], by_hand: bool) -> None:
    given = next((name for name in names if isinstance(name, str) and name), None)
    if given is not None:
        draft.title, draft.title_from = shortened(given), "user" if by_hand else "name"
        return
    draft.title = first_prompt(draft.messages)
    draft.title_from = FIRST_PROMPT if draft.title else None


def _activity(draft: SessionDraft) -> dict[str, Any] | None:
    """Return what the last message says: an answer is written when it is finished."""
    said = next((one for one in reversed(draft.messages) if one.role != "system"
                 and one.metadata.get("origin") != "meta"), None)  # fmt: skip
    if said is None:
        return None
    states = {part.tool_state for part in said.parts if part.tool_call_id}
    if "approval-requested" in states:
        return {"state": "waiting-approval", "from": "stored", "since": said.updated_at}
    if said.role == "user" or states:
        return {"state": "running", "from": "guessed", "since": said.updated_at}
    return None


def _with_spending(
    draft: SessionDraft, row: Row, ledger: list[Row], session: RowSession, library: Library
) -> list[MessageDraft]:
    """Return the messages with what each request spent, as answers without words.

    The ledger has a row a request. Of each count the larger of its sum and the session's own is
    right; what the ledger does not have is one more such answer, at the session's end. Rows that
    the ledger had once are kept in the library, and counted there.

    Args:
        draft: The session.
        row: Its row.
        ledger: Its rows of the ledger.
        session: Keeps these as records.
        library: What is stored already.
    """
    spent = [_request(each, session.keep("usage_ledger", each)) for each in ledger]
    spent = [each for each in spent if each is not None]
    rest, cost = _rest(row, ledger)
    if any(rest.values()) or cost > _NOTHING:
        rest, cost = _rest(row, [*ledger, *_gone(ledger, library.records(session.id))])
    if any(rest.values()) or cost > _NOTHING:
        used = _answer("usage", draft.updated_at, _buckets(rest), draft.model, 0)
        if cost > _NOTHING:
            used.metadata["cost_usd"] = cost
        spent.append(used)
    found, messages = list[MessageDraft](), list(draft.messages)
    for used in sorted((each for each in spent if each is not None), key=_created):
        while messages and messages[0].created_at <= used.created_at:
            found.append(messages.pop(0))
        found.append(used)
    return found + messages


def _rest(row: Row, ledger: list[Row]) -> tuple[dict[str, int], float]:
    """Return what a session spent, in tokens and dollars, beyond what a ledger has."""
    rest = {}
    for key in _COUNTS:
        counted = sum(number(each.get(f"{key}_tokens")) for each in ledger)
        rest[key] = max(0, number(row.get(f"accumulated_{key}_tokens")) - counted)
    cost = _dollars(row.get("accumulated_cost")) - sum(_dollars(one.get("cost")) for one in ledger)
    return rest, max(0.0, cost)


def _gone(ledger: list[Row], records: Iterable[bytes]) -> list[Row]:
    """Return the stored rows of a ledger that it has no longer."""
    there = {row.get("id") for row in ledger}
    stored = (mapping(decoded(record)) for record in records if _LEDGER in record)
    gone = {row.get("id"): row for row in stored if row.get("table") == "usage_ledger"}
    return [row for name, row in gone.items() if name not in there]


def _created(message: MessageDraft) -> int:
    return message.created_at


def _request(row: Row, record: int) -> MessageDraft | None:
    usage = _buckets({key: number(row.get(f"{key}_tokens")) for key in _COUNTS})
    cost = _dollars(row.get("cost"))
    if not any(usage.values()) and not cost:
        return None
    model = string(row.get("model"))
    named = {"provider_id": "unknown", "model_id": model} if model else None
    at = created_ms(row.get("created_timestamp"))
    used = _answer(f"usage-{row.get('id')}", at, usage, named, record)
    if cost:
        used.metadata["cost_usd"] = cost
    extra = used.metadata["backscroll"]
    if string(row.get("cost_source")):
        extra["cost_source"] = row["cost_source"]
    if number(row.get("is_compaction")):
        extra["initiator"] = "compaction"
    return used


def _answer(
    name: str, at: int, usage: dict[str, int], model: dict[str, Any] | None, record: int
) -> MessageDraft:
    used = MessageDraft(name, "assistant", at, at, {
        "usage": usage, "backscroll": {"no_answer": True, "initiator": "session"}})
    if model is not None:
        used.metadata["model"] = {key: model[key] for key in ("provider_id", "model_id")}
    used.records = (record,)
    return used


def _buckets(counts: dict[str, int]) -> dict[str, int]:
    """Return disjoint buckets: the input of Goose includes what was read from caches."""
    read, write = max(0, counts["cache_read"]), max(0, counts["cache_write"])
    return {
        "input": max(0, counts["input"] - read - write), "output": max(0, counts["output"]),
        "reasoning": 0, "cache_read": read, "cache_write": write,
    }  # fmt: skip


def _dollars(value: object) -> float:
    return float(value) if isinstance(value, int | float) and 0 <= value < 1e9 else 0.0


def lines_draft(path: str, name: str, lines: list[Record], records: list[bytes]) -> SessionDraft:
    """Return the draft of a file of lines, as Goose wrote them until September 2025.

    It is partial: Goose has imported the file into its database, or will, under the same id.

    Args:
        path: The file.
        name: The session's id: the file's name.
        lines: Its lines that are JSON objects; the first one is about the session, unless it is
            a message already. Where a file holds its content twice, others may equal that one.
        records: All its lines.
    """
    head: dict[str, Any] = {}
    made = Messages()
    for nth, line in enumerate(lines):
        data = line.data
        if "role" not in data and (nth == 0 or data == head):
            head = data
            continue
        content = data.get("content")
        made.take(
            string(data.get("id")) or line.name, data.get("role"),
            content if isinstance(content, list) else [], created_ms(data.get("created")),
            line.number, mapping(data.get("metadata")),
        )  # fmt: skip
    times = [one.created_at for one in made.found if one.created_at]
    draft = SessionDraft(
        name, path, KIND, min(times, default=0), max(times, default=0), messages=made.found,
        workspace_root=string(head.get("working_dir")), records=list(records),
        tells_title=bool(head), partial=True,
    )  # fmt: skip
    _name(draft, (head.get("description"),), by_hand=False)
    draft.metadata["backscroll"] = {"session_type": "user"}
    if head.get("total_tokens") is not None:
        draft.metadata["backscroll"]["context_tokens"] = number(head["total_tokens"])
    usage = _buckets({key: number(head.get(f"accumulated_{key}_tokens")) for key in _COUNTS})
    if any(usage.values()):
        draft.messages = [*made.found, _answer("usage", draft.updated_at, usage, None, 0)]
    return draft
