"""A session of the OpenAI Agents SDK, from its rows to a draft.

A session with branches has all of them: the one with the newest row is shown, what only others
have is hidden. A branch repeats the rows that it shares with the one that it was begun from.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from store.engine.dialect import quoted
from store.sources.base.databases import decoded
from store.sources.base.drafts import ApiAnswer, MessageDraft, SessionDraft
from store.sources.base.message_tree import TreeNode, laid_out
from store.sources.base.row_reader import Row, RowReader
from store.sources.base.row_session import RowSession, without_repeats
from store.sources.base.titles import FIRST_PROMPT, first_prompt
from store.sources.base.values import mapping, number, utc_ms
from store.sources.openai_agents.items import Item, Messages
from store.sources.openai_agents.tables import Tables

KIND = "openai-agents"


def read_session(
    reader: RowReader, session: RowSession, tables: Tables, name: str
) -> SessionDraft | None:
    """Return a session; None where it is not there any more.

    Args:
        reader: Runs the statements.
        session: Names the session; takes records and problems.
        tables: The tables that hold it.
        name: The session's own id in them.
    """
    row: Row = {}
    if tables.sessions is not None:
        for row in reader.rows(
            f"SELECT * FROM {quoted(tables.sessions)} WHERE session_id = $1", name
        ):
            session.keep(tables.sessions, row)
    items = _items(reader, session, tables, name)
    if not session.records:
        return None
    branches = _branches(reader, name) if tables.branched else {}
    ordered = _ordered(items, branches) if branches else _in_line(list(items.values()))
    built = Messages(session)
    for item in ordered:
        built.add(item)
    times = [item.at for item in ordered if item.at]
    created = utc_ms(row.get("created_at")) or min(times, default=0)
    updated = max(created, utc_ms(row.get("updated_at")) or max(times, default=0))
    draft = SessionDraft(
        session.id, session.path, KIND, created, updated, messages=built.messages,
        records=session.records,
    )  # fmt: skip
    draft.title = first_prompt(draft.messages)
    draft.title_from = FIRST_PROMPT if draft.title else None
    models = [one.metadata["model"] for one in draft.messages if "model" in one.metadata]
    draft.model = models[-1] if models else None
    draft.metadata["backscroll"] = {"table": tables.messages}
    if len(branches) > 1:
        draft.metadata["backscroll"]["branch"] = _newest(branches)
    activity = _activity(draft)
    if activity is not None:
        draft.metadata["activity"] = activity
    if branches:
        _count(reader, session, built, branches, name)
    return draft


def _items(
    reader: RowReader, session: RowSession, tables: Tables, name: str
) -> dict[str, Item]:
    """Return the session's rows by id, in the order in which they were written."""
    found: dict[str, Item] = {}
    rows = reader.rows(
        "SELECT id, session_id, message_data, created_at"
        f" FROM {quoted(tables.messages)} WHERE session_id = $1 ORDER BY id", name,
    )  # fmt: skip
    for row in rows if tables.branched else without_repeats(rows):
        data = decoded(row["message_data"])
        if not isinstance(data, dict):
            session.complain(f"message {row['id']} holds no JSON object")
        record = session.keep(tables.messages, {**row, "message_data": data})
        item = Item(str(row["id"]), data if isinstance(data, dict) else None,
                    utc_ms(row["created_at"]) or 0, record)  # fmt: skip
        found[item.id] = item
    return found


def _in_line(items: list[Item]) -> list[Item]:
    before = [None, *(item.id for item in items)]
    return [replace(item, follows=last) for item, last in zip(items, before, strict=False)]


def _branches(reader: RowReader, name: str) -> dict[str, list[Row]]:
    """Return by branch its rows of structure in order."""
    found: dict[str, list[Row]] = {}
    for row in reader.rows(
        "SELECT * FROM message_structure WHERE session_id = $1"
        " ORDER BY branch_id, sequence_number, id", name,
    ):
        found.setdefault(str(row["branch_id"]), []).append(row)
    return found


def _newest(branches: dict[str, list[Row]]) -> str:
    """Return the branch that was written to last: the program does not say which one it is on."""
    return max(branches, key=lambda name: max(number(row["id"]) for row in branches[name]))


def _ordered(items: dict[str, Item], branches: dict[str, list[Row]]) -> list[Item]:
    """Return all items, each behind the one that it follows; those of other branches hidden."""
    shown = _newest(branches)
    follows: dict[str, str | None] = {}
    path: list[str] = []
    for name in sorted(branches, key=lambda each: (each != shown, each)):
        before: str | None = None
        for row in branches[name]:
            one = str(row["message_id"])
            if one not in items:
                continue
            if follows.setdefault(one, before) == before and name == shown:
                path.append(one)
            before = one
    nodes = [TreeNode(one, before, items[one].at or None) for one, before in follows.items()]
    start = min((item.at for item in items.values() if item.at), default=0)
    found = [
        replace(items[one.id], follows=follows[one.id], hidden_at=one.hidden_at)
        for one in laid_out(nodes, path, start)
    ]
    last = max((item.at for item in items.values()), default=0)
    lost = [replace(item, hidden_at=last + 1) for name, item in items.items()
            if name not in follows]  # fmt: skip
    return found + lost


def _activity(draft: SessionDraft) -> dict[str, Any] | None:
    """Return what the last item says: a prompt is written first, an answer when it is there."""
    said = next((one for one in reversed(draft.messages) if one.role != "system"
                 and "hidden_at" not in one.metadata), None)  # fmt: skip
    if said is None:
        return None
    states = [part.tool_state for part in said.parts if part.tool_call_id]
    if "approval-requested" in states:
        return {"state": "waiting-approval", "from": "stored", "since": said.updated_at}
    if said.role == "user" or (states and said.parts[-1].tool_call_id):
        return {"state": "running", "from": "guessed", "since": said.updated_at}
    return None


def _count(
    reader: RowReader, session: RowSession, built: Messages, branches: dict[str, list[Row]],
    name: str,
) -> None:  # fmt: skip
    """Add what each turn of each branch used, where the program stored it.

    Args:
        reader: Runs the statements.
        session: Takes records.
        built: The messages.
        branches: The rows of structure of each branch.
        name: The session's own id.
    """
    if not reader.columns("turn_usage"):
        return
    for row in reader.rows("SELECT * FROM turn_usage WHERE session_id = $1 ORDER BY id", name):
        record = session.keep("turn_usage", row)
        usage = _usage(row)
        turn = [built.owners[str(each["message_id"])]
                for each in branches.get(str(row["branch_id"]), [])
                if each.get("user_turn_number") == row.get("user_turn_number")
                and str(each["message_id"]) in built.owners]  # fmt: skip
        answers = list({id(each): each for each in turn if each.role == "assistant"}.values())
        if len(answers) == 1 and number(row.get("requests")) <= 1 and (
            "usage" not in answers[0].metadata
        ):
            answers[0].metadata["usage"] = usage
            answers[0].records += (record,)
        else:
            used = _add_answer(built.messages, turn[-1] if turn else None, f"usage-{row['id']}",
                               usage, record, answers)  # fmt: skip
            used.answer = ApiAnswer(f"{session.id}:{used.source_id}:{used.created_at}")


def _add_answer(
    messages: list[MessageDraft], last: MessageDraft | None, name: str, usage: dict[str, int],
    record: int, answers: list[MessageDraft],
) -> MessageDraft:  # fmt: skip
    """Add an answer without words behind a turn of several requests; return it.

    Args:
        messages: The session's messages.
        last: The turn's last message; None where the turn is not there.
        name: The new message's id.
        usage: What was used.
        record: The number of the row that says so.
        answers: The turn's answers.
    """
    ends = last or (messages[-1] if messages else None)
    at = ends.updated_at if ends is not None else 0
    used = MessageDraft(name, "assistant", at, at, {
        "usage": usage, "backscroll": {"no_answer": True, "initiator": "turn"}},
        records=(record,))  # fmt: skip
    if last is not None and "hidden_at" in last.metadata:
        used.metadata["hidden_at"] = last.metadata["hidden_at"]
    models = [one.metadata["model"] for one in answers if "model" in one.metadata]
    if models:
        used.metadata["model"] = models[-1]
    place = next((at for at, one in enumerate(messages) if one is ends), len(messages) - 1)
    messages.insert(place + 1, used)
    return used


def _usage(row: Row) -> dict[str, int]:
    """Return the five buckets: input includes the caches, output the reasoning."""
    given = mapping(decoded(row.get("input_tokens_details")))
    said = mapping(decoded(row.get("output_tokens_details")))
    whole, answer = (max(0, number(row.get(f"{key}_tokens"))) for key in ("input", "output"))
    read = min(whole, max(0, number(given.get("cached_tokens"))))
    written = min(whole - read, max(0, number(given.get("cache_write_tokens"))))
    thought = min(answer, max(0, number(said.get("reasoning_tokens"))))
    return {
        "input": whole - read - written, "output": answer - thought, "reasoning": thought,
        "cache_read": read, "cache_write": written,
    }  # fmt: skip
