"""Rows of one thread to a session draft."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import orjson

from store.sources.base.drafts import AttachmentDraft, MessageDraft, SessionDraft
from store.sources.base.guesses import may_go_on
from store.sources.claude_code.costs import add_costs
from store.sources.claude_code.messages import Thread
from store.sources.claude_code.queue import waiting_messages
from store.sources.claude_code.rows import Row, mapping, string
from store.sources.claude_code.transcript import Transcript
from store.sources.claude_code.tree import branches_of

# The words of the process (``running``) say whether it works or rests. How a turn ended is in
# the rows only: an interactive process that got an error or an interruption rests like any other.
_GOES_ON = ("tool_use", "pause_turn")
_OPEN = ("input-streaming", "input-available", "approval-requested")
_ASIDE = ("command", "shell", "meta", "notification")


def activity_of(messages: Sequence[MessageDraft]) -> dict[str, Any] | None:
    """Return ``metadata_json.activity`` of a thread; None where its last turn ended well.

    Nothing of an answer is written while it streams, so after a prompt or a result the next
    words are awaited.
    """
    for message in reversed(messages):
        if "hidden_at" in message.metadata or "queued_at" in message.metadata:
            continue
        if message.metadata.get("compaction"):
            return None
        if message.role == "assistant":
            return _after_answer(message)
        details = mapping(message.metadata.get("backscroll"))
        if details.get("interrupt"):
            return _state("interrupted", message)
        if message.role == "user" and message.metadata.get("origin") not in _ASIDE:
            return _state("running", message)
    return None


def _after_answer(message: MessageDraft) -> dict[str, Any] | None:
    details = mapping(message.metadata.get("backscroll"))
    last = message.parts[-1] if message.parts else None
    if last is not None and last.type == "data-error":
        return _state("error", message)
    if details.get("aborted_at"):
        return _state("interrupted", message)
    is_call = last is not None and last.tool_state is not None
    is_open = any(part.tool_state in _OPEN for part in message.parts)
    if is_open or is_call or details.get("finish_reason") in _GOES_ON:
        return _state("running", message)
    if "finish_reason" not in details:
        # Versions that write each block when it ends store no reason; another may follow.
        return may_go_on(message.updated_at)
    return None


def _state(state: str, message: MessageDraft) -> dict[str, Any]:
    came = "guessed" if state == "running" else "stored"
    return {"state": state, "from": came, "since": message.updated_at}


KIND = "claude-code"
CATALOGUE = "tool-catalogue.json"


class ThreadBuilder:
    """Makes the messages of a thread that grows; rows are mapped once where that is safe."""

    def __init__(self) -> None:
        """Start with nothing built."""
        self._thread = Thread()
        self._taken = self._changed = 0
        self._left: dict[str, int] = {}

    def build(
        self, rows: Sequence[Row], leaf: str | None, earlier: int = 0, changed: int = 0
    ) -> Thread:
        """Return the messages, abandoned ones marked as hidden.

        Args:
            rows: All rows of the thread in file order; those of the last call come first.
            leaf: The uuid of the current tip, where a note names it.
            earlier: How many of the rows are context for the others.
            changed: How many times rows of earlier calls were changed.

        Returns:
            The thread; the next call continues with the same one, unless a rewind or a
            late result changes what was built.
        """
        branches = branches_of(rows[earlier:], leaf, goes_on=earlier > 0)
        left = branches.left
        fresh = rows[self._taken :]
        grew = changed == self._changed and self._only_grew(left, fresh)
        if self._thread.has_orphans or not grew:
            self._thread, fresh = Thread(), rows
        self._thread.take(fresh, branches)
        self._taken, self._left, self._changed = len(rows), left, changed
        return self._thread

    def _only_grew(self, left: dict[str, int], fresh: Sequence[Row]) -> bool:
        """Return whether the rows taken before are hidden as they were."""
        if not self._left.items() <= left.items():
            return False
        return left.keys() - self._left.keys() <= {row.uuid for row in fresh}


def build_thread(rows: Sequence[Row], leaf: str | None) -> Thread:
    """Return the messages of a thread, abandoned ones marked as hidden."""
    return ThreadBuilder().build(rows, leaf)


def session_draft(
    source_id: str, path: str, rows: Sequence[Row], thread: Thread, records: Sequence[bytes]
) -> SessionDraft:
    """Return the draft of a thread, with all that its rows tell about the session.

    Args:
        source_id: The session's id.
        path: Its file.
        rows: Its rows.
        thread: The messages made of them.
        records: The original records.
    """
    times = [row.at for row in rows]
    first = rows[0].data if rows else {}
    draft = SessionDraft(
        source_id,
        path,
        KIND,
        created_at=next(filter(None, times), 0),
        updated_at=max(times, default=0),
        workspace_root=_first(rows, "cwd"),
        messages=thread.messages,
        records=records,
        system_prompts=dict(thread.prompts.bodies),
        times_settled=True,
    )
    if thread.model:
        draft.model = {"provider_id": "anthropic", "model_id": thread.model}
        if thread.effort:
            draft.model["variant"] = thread.effort
    for name, key in (("git_branch", "gitBranch"), ("version", "version")):
        found = _last(rows, key)
        if found:
            draft.metadata[name] = found
    activity = activity_of(thread.messages)
    if activity is not None:
        draft.metadata["activity"] = activity
    extra: dict[str, Any] = draft.metadata.setdefault("backscroll", {})
    if string(first.get("entrypoint")):
        extra["entrypoint"] = first["entrypoint"]
    if thread.prompts.tools:
        extra["tools"] = [tool["name"] for tool in thread.prompts.tools]
        body = orjson.dumps(thread.prompts.tools, default=str)
        draft.attachments.append(AttachmentDraft(CATALOGUE, "application/json", body))
    return draft


def add_notes(draft: SessionDraft, transcript: Transcript) -> None:
    """Add what the notes of a session's file tell: mode, cost, names, links, waiting prompts."""
    notes = transcript.notes
    extra = draft.metadata["backscroll"]
    add_costs(draft, transcript.costs)
    for name, note, key in (
        ("permission_mode", "permission-mode", "permissionMode"),
        ("mode", "mode", "mode"),
        ("agent_name", "agent-name", "agentName"),
        ("tag", "tag", "tag"),
        ("pull_request", "pr-link", "prUrl"),
        ("continued_in", "continued-in", "continuedInSessionId"),
    ):
        found = string(notes.get(note, {}).get(key))
        if found:
            extra[name] = found
    if mapping(notes.get("derived-from")).get("sessions"):
        extra["derived_from"] = notes["derived-from"]["sessions"]
    waiting = waiting_messages(transcript.queue.waiting)
    if waiting:
        draft.created_at = draft.created_at or waiting[0].created_at
        draft.updated_at = max(draft.updated_at, *(message.created_at for message in waiting))
        draft.messages = draft.messages + waiting


def _first(rows: Sequence[Row], key: str) -> str | None:
    return next((found for row in rows if (found := string(row.data.get(key)))), None)


def _last(rows: Sequence[Row], key: str) -> str | None:
    return next((found for row in reversed(rows) if (found := string(row.data.get(key)))), None)
