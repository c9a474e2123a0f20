"""A thread as a session: its messages, or the steps of a state that holds none."""

from __future__ import annotations

from typing import Any

from store.sources.base.drafts import MessageDraft, SessionDraft
from store.sources.base.plain_parts import data_part
from store.sources.base.row_reader import RowReader
from store.sources.base.row_session import RowSession
from store.sources.base.titles import FIRST_PROMPT, first_prompt
from store.sources.base.values import mapping, string
from store.sources.langgraph.messages import Messages
from store.sources.langgraph.thread import Thread, ThreadReader, Write, changed

KIND = "langgraph"


def read_session(
    reader: RowReader, session: RowSession, known: ThreadReader
) -> SessionDraft | None:
    """Return a session; None where it is not there any more.

    Args:
        reader: Runs the statements.
        session: Takes records and problems.
        known: Reads the thread, and has what was read of it before.
    """
    thread = known.read(reader, session)
    if thread is None:
        return None
    built = Messages(session)
    built.add_all(thread.messages)
    times = [one.at for one in thread.checkpoints if one.at]
    draft = SessionDraft(
        session.id, session.path, KIND, min(times, default=0), max(times, default=0),
        messages=built.messages, records=session.records,
    )  # fmt: skip
    if thread.states:
        draft.messages += _steps(thread, session)
    draft.title = first_prompt(draft.messages)
    draft.title_from = FIRST_PROMPT if draft.title else None
    models = [one.metadata["model"] for one in draft.messages if "model" in one.metadata]
    draft.model = models[-1] if models else None
    head = thread.head
    graphs = {one.namespace for one in thread.checkpoints} - {head.namespace}
    draft.metadata["backscroll"] = {
        "head": head.id, "leaves": thread.leaves,
        "checkpoints": sum(one.namespace == head.namespace for one in thread.checkpoints),
        **({"subgraphs": sorted(graphs)} if graphs else {}),
    }  # fmt: skip
    activity = _activity(draft, thread, built)
    if activity is not None:
        draft.metadata["activity"] = activity
    return draft


def _steps(thread: Thread, session: RowSession) -> list[MessageDraft]:
    """Return what each step changed of a state that is no conversation."""
    found = []
    for one, values in changed(thread.states):
        record = session.keep("checkpoints", {"checkpoint_id": one.id, "values": values})
        step = MessageDraft(one.id, "system", one.at, one.at, records=(record,))
        name = one.source if one.source not in ("", "loop") else f"step {one.step}"
        event = {"name": name, "details": values}
        step.parts.append(data_part("event", event, one.at, record))
        found.append(step)
    return found


def _activity(draft: SessionDraft, thread: Thread, built: Messages) -> dict[str, Any] | None:
    """Return what the newest checkpoint says of the next step, and show what ended or holds it."""
    at = thread.head.at
    if thread.errors:
        said = MessageDraft(f"{thread.head.id}:error", "system", at, at)
        for write in thread.errors:
            told = string(write.value) or str(write.value)
            error = {"name": told.partition("(")[0][:80], "message": told}
            said.parts.append(data_part("error", error, at, write.record))
        draft.messages.append(said)
        return {"state": "error", "from": "stored", "since": at}
    if thread.interrupts:
        for write in thread.interrupts:
            _ask(draft, write, at)
        waiting = built.open_calls()
        for part in waiting:
            part.data["state"] = part.tool_state = "approval-requested"
            part.data["approval"] = {"id": part.tool_call_id}
        state = "waiting-approval" if waiting else "waiting-input"
        return {"state": state, "from": "stored", "since": at}
    if thread.next:
        return {"state": "running", "from": "guessed", "since": at}
    return None


def _ask(draft: SessionDraft, write: Write, at: int) -> None:
    """Show what a person is asked at the end of the answer that asks it."""
    shown = [one for one in draft.messages if "hidden_at" not in one.metadata]
    if not shown or shown[-1].role != "assistant":
        shown = [MessageDraft(f"{write.task}:interrupt", "assistant", at, at)]
        draft.messages += shown
    for each in write.value if isinstance(write.value, list) else [write.value]:
        value = mapping(each).get("value", each)
        event = {"name": "waits for an answer", "details": value}
        shown[-1].parts.append(data_part("event", event, at, write.record))
