"""A thread's messages to a session draft."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from store.sources.base.drafts import LineageDraft, MessageDraft, SessionDraft
from store.sources.base.odd_times import LONG_MS
from store.sources.base.requests import title_of_prompt
from store.sources.base.titles import first_prompt, shortened
from store.sources.base.values import mapping, string
from store.sources.codex.copies import Resolve, began_at, copied_from
from store.sources.codex.discovery import home_of
from store.sources.codex.facts import Facts
from store.sources.codex.lineage import History, KnownBase, history_of
from store.sources.codex.messages import Thread
from store.sources.codex.names import rollout_name
from store.sources.codex.queue import queued_messages
from store.sources.codex.rollout import Rollout
from store.sources.codex.setting import Setting

KIND = "codex"
LOCKS = "thread-writer-locks"


def session_draft(
    thread_id: str,
    segments: Sequence[Rollout],
    facts: Facts | None,
    resolve: Resolve,
    known_base: KnownBase,
    answers: int = 0,
) -> tuple[SessionDraft | None, History]:
    """Return the draft of a thread, and the lines that it was made of.

    Args:
        thread_id: The thread's id.
        segments: Its files, oldest first, each with at least one line.
        facts: What side files say about it.
        resolve: Finds files of other threads.
        known_base: Returns what a file that is not found goes on from.
        answers: How many answers are before those of the segments.

    Returns:
        None for a thread that has no message yet.
    """
    facts = facts or Facts()
    history = history_of(segments, facts.head, resolve, known_base)
    head = next((each for each in segments if each.key == facts.head), segments[-1])
    meta = head.meta or segments[0].meta
    cwd = string(meta.get("cwd"))
    spawn = _spawn(meta)
    setting = Setting(cwd, _agent(facts, spawn))
    thread = Thread(_first_records(segments), answers=answers, setting=setting)
    thread.take(history.entries)
    if not thread.messages:
        return None, history
    last_at = max(segment.lines[-1].at for segment in segments)
    draft = SessionDraft(
        thread_id,
        head.path,
        KIND,
        created_at=_created_at(facts, segments),
        updated_at=max(last_at, facts.updated_at or 0),
        workspace_root=cwd,
        model=setting.model_ref(),
        messages=thread.messages,
        records=[record for segment in segments for record in segment.records],
        system_prompts=setting.prompts,
        archived_at=_archived_at(head, facts, last_at),
        times_settled=True,
    )
    draft.title, draft.title_from = _title(thread.messages, facts)
    draft.tells_title = facts.tells_title
    draft.lineage = _lineage(thread_id, meta, spawn, history, thread.messages, segments[0])
    _add_metadata(draft, meta, spawn, thread)
    draft.messages = thread.messages + queued_messages(facts.queued, len(draft.records))
    draft.records = [*draft.records, *(queued.row for queued in facts.queued)]
    return draft, history


def _created_at(facts: Facts, segments: Sequence[Rollout]) -> int:
    """Return when a thread was begun: not years before its first line."""
    stated = facts.created_at or min(began_at(segment) for segment in segments)
    first = min(segment.lines[0].at for segment in segments)
    return stated if stated >= first - LONG_MS else first


def _agent(facts: Facts, spawn: dict[str, Any]) -> str | None:
    """Return what a subagent is called: its role, else its name."""
    role = facts.role or string(spawn.get("agent_role"))
    return role or facts.nickname or string(spawn.get("agent_nickname"))


def _first_records(segments: Sequence[Rollout]) -> dict[str, int]:
    """Return by path where a file's records begin among those of the session."""
    found, count = {}, 0
    for segment in segments:
        found[segment.path] = count
        count += len(segment.records)
    return found


def _archived_at(head: Rollout, facts: Facts, last_at: int) -> int | None:
    """Return when a thread was archived: its file is with the archived ones then."""
    if "archived_sessions" not in head.path.replace("\\", "/").split("/")[:-1]:
        return None
    return facts.archived_at or last_at


def _spawn(meta: dict[str, Any]) -> dict[str, Any]:
    """Return what a subagent's file says about how it was started."""
    subagent = mapping(mapping(meta.get("source")).get("subagent"))
    return mapping(subagent.get("thread_spawn"))


def _title(messages: Sequence[MessageDraft], facts: Facts) -> tuple[str | None, str | None]:
    """Return the title: the name, Codex's own title, the first own prompt, the first of all."""
    if facts.name:
        return facts.name, "name"
    own = [message for message in messages if message.inherited_from is None]
    prompt = first_prompt(own) or first_prompt(messages)
    title = shortened(title_of_prompt(facts.title)) if facts.title else None
    if title and title != prompt:
        return title, "title"
    return prompt, "first-prompt" if prompt else None


def _lineage(
    thread_id: str,
    meta: dict[str, Any],
    spawn: dict[str, Any],
    history: History,
    messages: Sequence[MessageDraft],
    first: Rollout,
) -> LineageDraft | None:
    copied = [message.source_id for message in messages if message.inherited_from is not None]
    last = copied[-1] if copied else None
    own = (thread_id, first.key)
    parent = string(spawn.get("parent_thread_id")) or string(meta.get("parent_thread_id"))
    if parent and parent.lower() not in own:
        return LineageDraft("subagent", parent.lower(), last)
    forked = string(meta.get("forked_from_id")) or string(first.meta.get("forked_from_id"))
    if first.key == thread_id:
        forked = forked or history.parent or copied_from(first)
    if forked is None or forked.lower() in own:
        # Its own older file is gone, or the file names itself.
        return None
    return LineageDraft("fork", forked.lower(), last)


def _add_metadata(
    draft: SessionDraft, meta: dict[str, Any], spawn: dict[str, Any], thread: Thread
) -> None:
    branch = string(mapping(meta.get("git")).get("branch"))
    if branch:
        draft.metadata["git_branch"] = branch
    version = string(meta.get("cli_version"))
    if version:
        draft.metadata["version"] = version
    extra: dict[str, Any] = {}
    for name, found in (
        ("originator", meta.get("originator")),
        ("entrypoint", meta.get("source")),
        ("history_mode", meta.get("history_mode")),
        ("agent_nickname", spawn.get("agent_nickname")),
        ("agent_role", spawn.get("agent_role")),
        ("git_commit", mapping(meta.get("git")).get("commit_hash")),
    ):
        if string(found):
            extra[name] = found
    if isinstance(spawn.get("depth"), int):
        extra["spawn_depth"] = spawn["depth"]
    if thread.counting.total is not None:
        extra["total_token_usage"] = thread.counting.total
    draft.metadata["backscroll"] = extra
    if thread.turn_state is not None:
        state, since = thread.turn_state
        activity = {"state": state, "from": "stored", "since": since}
        if state == "running":
            activity["lock"] = writer_lock(draft.path, draft.source_id)
        draft.metadata["activity"] = activity


def writer_lock(path: str, thread: str) -> str:
    """Return the file that a running Codex holds locked while it has a thread open."""
    return os.path.join(home_of(Path(path)), LOCKS, f"{thread}.lock")


def thread_id_of(path: str, rollout: Rollout) -> str:
    """Return the thread that a file belongs to, by its name or its first line."""
    name = rollout_name(path)
    said = string(rollout.meta.get("id")) or string(rollout.meta.get("session_id"))
    return name.thread if name else (said or path).lower()
