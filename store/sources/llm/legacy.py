"""What versions up to 0.31 wrote: a row for each request, with its prompt and its answer.

Source: the llm format page, section 3. ``prompt_json`` and ``response_json`` repeat the whole
history and are never asked for.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from store.sources.base.databases import decoded
from store.sources.base.row_reader import Row, RowReader, bound_ids
from store.sources.base.row_session import RowSession
from store.sources.base.values import number, string
from store.sources.llm.nodes import Node, Part, Request, time_of

_COLUMNS = (
    "id", "model", "prompt", "system", "options_json", "response", "conversation_id",
    "duration_ms", "datetime_utc", "input_tokens", "output_tokens", "token_details", "schema_id",
    "resolved_model", "reasoning",
)  # fmt: skip
LOGS = ("log", "logs")
"""The one table of versions up to 0.4."""
LOG_PREFIX = "log-"
"""Begins the ids of that table's sessions, whose rows are numbered."""


@dataclass(slots=True)
class Legacy:
    """The requests of a conversation, and what belongs to each by its id."""

    requests: list[Request] = field(default_factory=list)
    calls: dict[str, list[Row]] = field(default_factory=dict)
    results: dict[str, list[Row]] = field(default_factory=dict)
    fragments: dict[str, list[str]] = field(default_factory=dict)
    system_fragments: dict[str, list[str]] = field(default_factory=dict)
    attachments: dict[str, list[str]] = field(default_factory=dict)
    result_attachments: dict[str, list[str]] = field(default_factory=dict)
    """By id of the result's row."""

    def exceptions(self) -> dict[str, str]:
        """Return what went wrong in calls, by the call's id."""
        return {
            str(row["tool_call_id"]): row["exception"]
            for rows in self.results.values() for row in rows if string(row.get("exception"))
        }  # fmt: skip


def read_legacy(reader: RowReader, conversation: str) -> Legacy:
    """Read a conversation's rows; those are left out that were brought into ``turns``."""
    known = reader.columns("responses")
    found = Legacy()
    if "conversation_id" not in known:
        return found
    names = ", ".join(name for name in _COLUMNS if name in known)
    newer = "AND id NOT IN (SELECT id FROM turns)" if reader.columns("turns") else ""
    where = "conversation_id = $1 OR (conversation_id IS NULL AND id = $1)"
    rows = reader.rows(
        f"SELECT {names} FROM responses WHERE ({where}) {newer} ORDER BY datetime_utc, id",
        conversation,
    )
    found.requests = [Request.of(row) for row in rows]
    ids = bound_ids([one.name for one in found.requests])
    mine = f"WHERE response_id {reader.any_of(1)}"
    for table, into in (("tool_calls", found.calls), ("tool_results", found.results)):
        if reader.columns(table):
            for row in reader.rows(f"SELECT * FROM {table} {mine} ORDER BY id", ids):
                into.setdefault(str(row["response_id"]), []).append(row)
    for table, into_ids, what in (
        ("prompt_fragments", found.fragments, "content"),
        ("system_fragments", found.system_fragments, "content"),
        ("prompt_attachments", found.attachments, "attachment_id"),
    ):
        if not reader.columns(table):
            continue
        join = "JOIN fragments f ON f.id = t.fragment_id" if what == "content" else ""
        for row in reader.rows(
            f"SELECT t.response_id AS owner, {what} AS what FROM {table} t {join} {mine}"
            ' ORDER BY t."order"', ids,
        ):  # fmt: skip
            into_ids.setdefault(str(row["owner"]), []).append(str(row["what"]))
    if reader.columns("tool_results_attachments"):
        held = bound_ids([str(row["id"]) for rows in found.results.values() for row in rows])
        for row in reader.rows(
            "SELECT tool_result_id AS owner, attachment_id AS what FROM tool_results_attachments"
            f' WHERE CAST(tool_result_id AS TEXT) {reader.any_of(1)} ORDER BY "order"', held,
        ):  # fmt: skip
            found.result_attachments.setdefault(str(row["owner"]), []).append(str(row["what"]))
    return found


def nodes_of(session: RowSession, legacy: Legacy) -> list[Node]:
    """Return a conversation's messages; the prompt of a call's follow-up is empty and is none."""
    nodes: list[Node] = []
    said: str | None = None
    for request in legacy.requests:
        row, name = request.row, request.name
        calls, results = legacy.calls.get(name, []), legacy.results.get(name, [])
        record = session.keep("responses", {**row, "calls": calls, "results": results})
        system = _joined(legacy.system_fragments.get(name, []), row.get("system"))
        if system and system != said:
            nodes.append(Node(f"{name}:system", "system", [_text(system)], record, request.at))
        said = system or said
        if results:
            held = legacy.result_attachments
            parts = [_result(each, held.get(str(each["id"]), [])) for each in results]
            nodes.append(Node(f"{name}:results", "tool", parts, record, request.at, request.at))
        prompt = _prompt(legacy, name, row)
        if prompt:
            nodes.append(Node(f"{name}:prompt", "user", prompt, record, request.at, request.at))
        answer: list[Part] = []
        if string(row.get("reasoning")):
            answer.append({"type": "reasoning", "text": row["reasoning"]})
        if string(row.get("response")):
            answer.append(_text(row["response"]))
        answer += [_call(each) for each in calls]
        nodes.append(Node(
            name, "assistant", answer, record, request.at, request.end, [request]
        ))  # fmt: skip
    return nodes


def _text(text: str) -> Part:
    return {"type": "text", "text": text}


def _joined(fragments: list[str], typed: object) -> str:
    return "\n".join([*fragments, *([typed] if isinstance(typed, str) and typed else [])])


def _prompt(legacy: Legacy, name: str, row: Row) -> list[Part]:
    fragments, typed = legacy.fragments.get(name, []), string(row.get("prompt"))
    parts: list[Part] = []
    text = _joined(fragments, typed)
    if text:
        parts.append(_text(text))
        if fragments and typed:
            parts[0]["typed"] = typed
    parts += [{"type": "attachment", "id": each} for each in legacy.attachments.get(name, [])]
    return parts


def _call(row: Row) -> Part:
    return {
        "type": "tool_call", "name": row.get("name"), "arguments": decoded(row.get("arguments")),
        "tool_call_id": row.get("tool_call_id"),
    }  # fmt: skip


def _result(row: Row, attachments: list[str]) -> Part:
    return {
        "type": "tool_result", "name": row.get("name"), "output": row.get("output"),
        "tool_call_id": row.get("tool_call_id"), "exception": row.get("exception"),
        "attachments": attachments,
    }  # fmt: skip


def log_table(reader: RowReader) -> str | None:
    """Return the name of the table that versions up to 0.4 wrote; None where there is none."""
    needed = {"model", "timestamp", "prompt", "system", "response", "chat_id"}
    return next((name for name in LOGS if reader.columns(name) >= needed), None)


def read_log(reader: RowReader, session: RowSession) -> list[Node]:
    """Return the messages of a chat of the one table of versions up to 0.4."""
    table, number_ = log_table(reader), session.id.removeprefix(LOG_PREFIX)
    if table is None or not number_.isdecimal():
        return []
    nodes: list[Node] = []
    for row in reader.rows(
        f"SELECT rowid AS number, * FROM {table} WHERE rowid = $1 OR chat_id = $1 ORDER BY rowid",
        int(number_),
    ):
        name, at = str(row["number"]), time_of(row.get("timestamp"))
        end = at + max(0, number(row.get("duration_ms")))
        record = session.keep(table, row)
        if string(row.get("system")):
            nodes.append(Node(f"{name}:system", "system", [_text(row["system"])], record, at))
        if string(row.get("prompt")):
            nodes.append(Node(f"{name}:prompt", "user", [_text(row["prompt"])], record, at, at))
        said: list[Any] = [_text(row["response"])] if string(row.get("response")) else []
        request = Request({**row, "id": name}, at, end)
        nodes.append(Node(name, "assistant", said, record, at, end, [request]))
    return nodes
