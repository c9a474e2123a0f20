"""A stored session as session drafts: its own thread, and one for each other branch.

The branch that was made first and is no fork is the session's own conversation; a fork
continues the branch that it was made from; other branches are agents of the session.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime
from typing import Any

from store.sources.base.databases import Row, decoded
from store.sources.base.drafts import LineageDraft, LineageKind, MessageDraft, SessionDraft
from store.sources.base.titles import first_prompt
from store.sources.base.values import mapping, number, string, utc_ms
from store.sources.lionagi.events import event_parts, put_events
from store.sources.lionagi.history import Turn, first_thread, history, is_fork
from store.sources.lionagi.messages import Conversation
from store.sources.lionagi.stored import StoredBranch, StoredSession, parent_of, plain_row

KIND = "lionagi"
_TITLE = 160
_STATES = {
    "running": "running", "completed": "ended", "completed_empty": "ended", "failed": "error",
    "timed_out": "error", "aborted": "interrupted", "cancelled": "interrupted",
}  # fmt: skip
"""``status``, and what a session of it does."""
_RELATIONS: dict[str, LineageKind] = {
    "fork": "fork", "subagent": "subagent", "thread": "continuation",
}  # fmt: skip
_KEPT = (
    "run_id", "cc_session_id", "playbook_name", "agent_name", "invocation_kind", "invocation_id",
    "show_topic", "show_play_name", "artifacts_path", "source_kind", "status", "current_phase",
    "effort", "agent_hash", "project", "status_reason_code", "status_reason_summary",
    "status_evidence_refs", "num_turns", "duration_ms", "input_tokens", "output_tokens",
    "total_cost_usd",
)  # fmt: skip
_SIGNALS = 100
"""The newest signals that are shown with the session; the records have all."""
_NAMES = ("user_label", "show_play_name", "playbook_name", "agent_name", "name")
_NAME_LENGTH = 80
"""Characters of the longest name that is cut from a prompt."""
_PLACEHOLDERS = frozenset({"agent", "session", "flow", "codex session"})
"""Stored names that say nothing, in lower case."""
_PREAMBLE = re.compile(
    r"\A(?:\|[-+]?\s|(?:END_OF_)?LION_SYSTEM_MESSAGE\b[\s:.-]*|-{2,}|#{1,6}(?!\w)"
    r"|[A-Za-z][\w -]{0,24}:(?=\s|\Z))",
    re.IGNORECASE | re.ASCII,
)
"""What is before the words of a prompt: a banner, a rule, a heading, a label."""


def session_drafts(stored: StoredSession) -> list[SessionDraft]:
    """Return the drafts of a session and its branches, the session's own first."""
    first = first_thread(stored)
    own = [b for b in stored.branches.values() if string(b.row.get("session_id")) == stored.id]
    drafts: list[SessionDraft] = []
    names: dict[str, dict[str, str]] = {}
    for branch in [first, *(one for one in own if one is not first)]:
        turns = history(stored, branch) if branch is not None else _loose(stored)
        records = _records(stored, branch, turns, whole=branch is first)
        model = _model(branch.row if branch is not None else {}) or _model(stored.row)
        parent = stored.branches.get(parent_of(branch) or "") if branch is not None else None
        above = _model(parent.row) if parent is not None else None
        conversation = Conversation(stored, model, above or model)
        for turn in turns:
            conversation.take(turn)
        conversation.put_in_time()
        for message in conversation.messages:
            message.gone = message.source_id in stored.gone
        if branch is first:
            draft = _session(stored, conversation.messages, records)
            events = event_parts(stored.sides, 1 if branch is None else 2)
            put_events(draft.messages, events, stored.id, _gaps(stored, branch))
        else:
            assert branch is not None
            draft = _branch(stored, branch, conversation.messages, records)
        draft.model = model
        if branch is not None:
            _describe_branch(draft, branch)
            names[branch.id] = conversation.names
            _link(draft, stored, branch, first, turns, names)
        drafts.append(draft)
    _add_usage(stored, drafts)
    return drafts


def _gaps(stored: StoredSession, branch: StoredBranch | None) -> frozenset[str]:
    """Return the messages behind which a listed one has no row; "" where the first has none."""
    listed = branch.ids if branch is not None else stored.ids
    return frozenset(before for before, name in zip(["", *listed], listed, strict=False)
                     if name not in stored.messages)  # fmt: skip


def _loose(stored: StoredSession) -> list[Turn]:
    """Return the session's own progression: what there is where it has no branches."""
    found = [stored.messages.get(name) for name in stored.ids]
    return [Turn(message, message.clone_from) for message in found if message is not None]


def _records(
    stored: StoredSession, branch: StoredBranch | None, turns: list[Turn], *, whole: bool
) -> list[bytes]:
    """Return a thread's original records, and tell its messages their numbers."""
    records: list[bytes] = []
    if whole:
        records.append(plain_row("sessions", stored.row, stored.metadata))
    if branch is not None:
        records.append(plain_row("branches", branch.row, branch.metadata))
    if whole:
        for table, found in stored.sides.items():
            records += [plain_row(table, row) for row in found]
    for turn in turns:
        turn.message.record = len(records)
        records.append(plain_row("messages", turn.message.row))
    return records


def _session(
    stored: StoredSession, messages: list[MessageDraft], records: list[bytes]
) -> SessionDraft:
    row = stored.row
    created = utc_ms(row.get("created_at")) or 0
    last = max((message.updated_at for message in messages), default=created)
    draft = SessionDraft(
        stored.id, stored.path, KIND, created, utc_ms(row.get("updated_at")) or last,
        workspace_root=_workspace(stored),
        messages=messages, records=records, tells_title=True,
    )  # fmt: skip
    draft.title, draft.title_from = title_of(row)
    if draft.title_from == "id":
        # The program names a run by its id then; what it was asked says more.
        prompt = first_prompt(messages)
        draft.title, draft.title_from = prompt or draft.title, "first-prompt"
    draft.metadata["activity"] = _activity(stored)
    own = {key: value for key in _KEPT if (value := decoded(row.get(key))) not in (None, "", [])}
    signals = [_signal(one) for one in stored.sides.get("session_signals", ())]
    if signals:
        own |= {"signals": signals[-_SIGNALS:], "signal_count": len(signals)}
    changes = [
        {"status": one.get("status"), "reason": one.get("reason_code"),
         "summary": one.get("reason_summary"), "at": utc_ms(one.get("created_at"))}
        for one in stored.sides.get("status_transitions", ())
    ]  # fmt: skip
    if changes:
        own["status_changes"] = changes
    tags = [one["tag"] for one in stored.sides.get("run_tags", ())]
    if tags:
        own["tags"] = tags
    draft.metadata["backscroll"] = own
    lineage = mapping(stored.metadata.get("lineage"))
    parent = string(lineage.get("parent_session_id"))
    if parent is not None:
        kind = _RELATIONS.get(str(lineage.get("relation")), "unknown")
        draft.lineage = LineageDraft(kind, parent)
        own["lineage"] = lineage
    return draft


def _signal(row: Row) -> dict[str, Any]:
    return {"seq": row.get("seq"), "kind": row.get("kind"), "op_id": row.get("op_id"),
            "at": utc_ms(row.get("ts")), "payload": decoded(row.get("payload"))}  # fmt: skip


def _workspace(stored: StoredSession) -> str | None:
    """Return the folder of a session; a mirrored one has it in the place of its artifacts."""
    known = stored.project_path or string(stored.metadata.get("cwd"))
    mirrored = stored.metadata.get("process_identity_mode") == "external"
    return known or (string(stored.row.get("artifacts_path")) if mirrored else None)


def _branch(
    stored: StoredSession, branch: StoredBranch, messages: list[MessageDraft], records: list[bytes]
) -> SessionDraft:
    created = utc_ms(branch.row.get("created_at")) or 0
    own = [message.updated_at for message in messages if message.inherited_from is None]
    ended = utc_ms(branch.row.get("ended_at")) or created
    draft = SessionDraft(
        branch.id, stored.path, KIND, created, max([created, ended, *own]),
        workspace_root=_workspace(stored),
        messages=messages, records=records,
    )  # fmt: skip
    name = string(branch.row.get("name")) or branch.id[:8]
    draft.title, draft.title_from = f"{title_of(stored.row)[0]} · {name}"[:_TITLE], "branch"
    state = _STATES.get(str(branch.row.get("status")))
    if state == "running" and _state_of(stored) != "running":
        state = None
    if state is None and _state_of(stored) != "running":
        state = _state_of(stored)
    if state is not None:
        activity = _activity(stored) if state == "running" else {"from": "stored"}
        draft.metadata["activity"] = activity | {"state": state, "since": draft.updated_at}
    return draft


def _describe_branch(draft: SessionDraft, branch: StoredBranch) -> None:
    own = draft.metadata.setdefault("backscroll", {})
    kept = ("id", "name", "agent_name", "status", "session_id", "system_msg_id")
    own["branch"] = {key: branch.row[key] for key in kept if branch.row.get(key)}


def _link(
    draft: SessionDraft,
    stored: StoredSession,
    branch: StoredBranch,
    first: StoredBranch | None,
    turns: list[Turn],
    names: dict[str, dict[str, str]],
) -> None:
    """Say which thread a branch continues, or else belongs to."""
    parent = parent_of(branch)
    if not is_fork(branch):
        if branch is not first:
            draft.lineage = LineageDraft("subagent", stored.id)
        for message in draft.messages:
            message.inherited_from = None
        return
    copied = [turn for turn in turns if turn.original is not None]
    named = names.get(parent or "", {})
    # A response is no message of its own, but a part of the one that asked.
    last = copied[-1].original if copied else None
    last = named.get(last, last) if last is not None else None
    if parent is None or (branch is first and draft.lineage is not None):
        return
    thread = stored.id if first is not None and parent == first.id else parent
    draft.lineage = LineageDraft("fork", thread, last)
    for message in draft.messages:
        original = message.inherited_from
        message.inherited_from = named.get(original, original) if original is not None else None


def _model(row: Row) -> dict[str, Any] | None:
    """Return ``{provider_id, model_id}`` of a row's ``model`` (``provider/name``)."""
    named = string(row.get("model"))
    if named is None:
        return None
    provider, slash, name = named.partition("/")
    if not slash:
        provider, name = string(row.get("provider")) or "unknown", named
    return {"provider_id": provider, "model_id": name}


def _state_of(stored: StoredSession) -> str:
    """Return what a session does; one without a status is of before and has completed."""
    return _STATES.get(str(stored.row.get("status") or "completed"), "unknown")


def _activity(stored: StoredSession) -> dict[str, Any]:
    """Return ``metadata_json.activity``: the status, and the process that runs the session."""
    row, state = stored.row, _state_of(stored)
    since = [utc_ms(row.get(key)) for key in ("ended_at", "last_message_at", "started_at")]
    found: dict[str, Any] = {"state": state, "from": "stored"}
    if state == "unknown":
        found["word"] = str(row.get("status"))
    known = [at for at in since if at is not None]
    if known:
        found["since"] = known[0]
    if state == "running":
        waiting = [one for one in stored.sides.get("approvals", ()) if one["status"] == "pending"]
        if waiting:
            found["state"] = "waiting-approval"
        pid, host = stored.metadata.get("pid"), string(stored.metadata.get("pid_host"))
        local = stored.metadata.get("process_identity_mode") != "external"
        if type(pid) is int and host is not None and local:
            found |= {"pid": pid, "host": host}
    return found


def title_of(row: Row) -> tuple[str, str]:
    """Return a session's name, and what it comes from, as the program itself names it."""
    said = {key: str(row.get(key) or "").strip() for key in _NAMES}
    agent, at = said["agent_name"], utc_ms(row.get("started_at"))
    clock = f"{datetime.fromtimestamp(at / 1000, UTC):%H:%M}" if at is not None else ""
    described = " · ".join(filter(None, (agent, str(row.get("id") or "").strip()[:4], clock)))
    for text, came in (
        (said["user_label"], "user-label"),
        (said["show_play_name"], "show"),
        (said["playbook_name"], "playbook"),
        (described if agent else "", "agent"),
        (_prompt_name(said["name"]), "name"),
    ):
        if text:
            return text[:_TITLE], came
    return str(row.get("id"))[-12:], "id"


def _prompt_name(name: str) -> str:
    """Return a stored name without what introduces the prompt that it was cut from.

    Nothing where it is a default that every run has.
    """
    if name.casefold() in _PLACEHOLDERS:
        return ""
    text, before = " ".join(name.split()), ""
    while text != before:
        before = text
        text = _PREAMBLE.sub("", text, count=1).strip()
    return text if len(text) <= _NAME_LENGTH else text[: _NAME_LENGTH - 1].rstrip() + "…"


def _add_usage(stored: StoredSession, drafts: list[SessionDraft]) -> None:
    """Count what the run used with the last answer that is no copy.

    The program keeps one sum for the whole run, all branches together.
    """
    row = stored.row
    tokens = {"input": number(row.get("input_tokens")), "output": number(row.get("output_tokens"))}
    cost = row.get("total_cost_usd")
    for draft in drafts:
        answers = [m for m in draft.messages if m.role == "assistant" and m.inherited_from is None]
        if not answers:
            continue
        if any(tokens.values()):
            zero = dict.fromkeys(("reasoning", "cache_read", "cache_write"), 0)
            answers[-1].metadata["usage"] = {**tokens, **zero}
        if isinstance(cost, int | float) and cost:
            answers[-1].metadata["cost_usd"] = float(cost)
        return
