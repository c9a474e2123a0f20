"""From the files of one unit to its sessions, subagents among them."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from store.sources.base.drafts import (
    AttachmentDraft,
    LineageDraft,
    MessageDraft,
    PartDraft,
    SessionDraft,
)
from store.sources.base.guesses import may_go_on
from store.sources.base.titles import first_prompt, shortened
from store.sources.base.values import epoch_ms, mapping, string
from store.sources.gemini.content import text_of
from store.sources.gemini.history import History
from store.sources.gemini.messages import Messages


def activity_of(messages: Sequence[MessageDraft]) -> dict[str, Any] | None:
    """Return a session's ``metadata_json.activity``; None where it ends with an answer.

    Nothing is written while an answer is made, a tool runs or an approval is open, so after a
    prompt, and after an answer that ends in calls, the next words are awaited. An answer that
    ends in words may be followed by its calls: it is written first without them.
    """
    last = next(
        (
            each for each in reversed(messages)
            if "hidden_at" not in each.metadata and not _is_notice(each)
        ),
        None,
    )  # fmt: skip
    if last is None:
        return None
    if last.role == "assistant" and any(_was_stopped(part) for part in last.parts):
        return {"state": "interrupted", "from": "stored", "since": last.updated_at}
    calls = last.role == "assistant" and (
        not any(part.type != "reasoning" for part in last.parts)
        or last.parts[-1].tool_state is not None
    )  # without words: its calls are written when they have ended
    if last.metadata.get("origin") == "human" or calls:
        return {"state": "running", "from": "guessed", "since": last.updated_at}
    if any(part.type == "data-error" for part in last.parts):
        return {"state": "error", "from": "stored", "since": last.created_at}
    return may_go_on(last.updated_at) if last.role == "assistant" else None


def _is_notice(message: MessageDraft) -> bool:
    """Return whether the program told its user something, which ends no turn."""
    return message.role == "system" and all(
        part.type == "data-event" for part in message.parts
    )


def _was_stopped(part: PartDraft) -> bool:
    """Return whether the user cancelled or refused a call, which ends the turn."""
    details = mapping(mapping(part.data.get("resultProviderMetadata")).get("backscroll"))
    return details.get("status") in ("interrupted", "denied")


KIND = "gemini"
_WORKSPACE = re.compile(r"\*\*Workspace Directories:\*\*\s*\n\s*- (\S[^\n]*)")


@dataclass(slots=True)
class Log:
    """One file of a session, as records.

    Attributes:
        lines: ``(number into records, object)`` in file order.
        source: The list that grows with the file; another one where it was read anew.
    """

    path: str
    records: list[bytes]
    lines: list[tuple[int, dict[str, Any]]]
    source: object = None

    @property
    def session_id(self) -> str | None:
        """Return the id that its header names."""
        for _, data in self.lines:
            found = string(data.get("sessionId"))
            if found:
                return found
        return None

    @property
    def said_start(self) -> str:
        """Return when the session began as its header has it: in one form, so it sorts."""
        headers = (data for _, data in self.lines if string(data.get("sessionId")))
        return string(next(headers, {}).get("startTime")) or ""

    @property
    def started(self) -> int:
        """Return when the session began, epoch ms; 0 where it is not recorded."""
        return next((at for _, data in self.lines if (at := epoch_ms(data.get("startTime")))), 0)


@dataclass(slots=True)
class SessionLogs:
    """The files of one session, oldest first."""

    session_id: str
    logs: list[Log] = field(default_factory=list)

    @property
    def path(self) -> str:
        """Return the file that says most."""
        return max(self.logs, key=lambda log: len(log.records)).path

    def history(self) -> tuple[History, list[bytes]]:
        """Return what the files add up to, and all their records."""
        history, records = History(), list[bytes]()
        for log in sorted(self.logs, key=lambda log: (log.started, log.path)):
            first = len(records)
            records += log.records
            following = [data for _, data in log.lines[1:]] + [None]
            for (number, data), after in zip(log.lines, following, strict=True):
                history.take(data, first + number, after)
        return history, records


def by_session(logs: Iterator[Log]) -> list[SessionLogs]:
    """Put the files together that are of one session."""
    found: dict[str, SessionLogs] = {}
    for log in logs:
        name = log.session_id
        if name:
            found.setdefault(name, SessionLogs(name)).logs.append(log)
    return list(found.values())


@dataclass(slots=True)
class Kept:
    """What was made of a session's one file the last time, to continue with.

    Attributes:
        source: ``Log.source`` of that time.
        taken: How many of its lines were taken.
    """

    source: object = None
    taken: int = 0
    history: History = field(default_factory=History)
    messages: Messages = field(default_factory=Messages)
    inherited: frozenset[str] = frozenset()

    def bring_up(self, logs: SessionLogs) -> list[bytes]:
        """Take what a session's files have more than the last time; return their records."""
        log = logs.logs[0]
        if len(logs.logs) > 1 or log.source is None:
            self.source, self.messages = None, Messages()
            self.history, records = logs.history()
            return records
        if log.source is not self.source or self.taken > len(log.lines):
            self.source, self.taken = log.source, 0
            self.history, self.messages = History(), Messages()
        new = log.lines[self.taken :]
        following = [*(data for _, data in new[1:]), None]
        for (number, data), after in zip(new, following, strict=False):
            self.history.take(data, number, after)
        self.taken = len(log.lines)
        if new and "$rewindTo" in new[-1][1]:
            # The line after it tells when it was.
            self.source = None
        return list(log.records)

    def build(self, inherited: frozenset[str]) -> list[MessageDraft]:
        """Return the messages."""
        if inherited != self.inherited:
            self.inherited, self.messages = inherited, Messages()
            self.history.changed = 0
        return self.messages.build(self.history, inherited)


@dataclass(slots=True)
class Built:
    """A session's draft, and what else its files told."""

    draft: SessionDraft
    history: History
    messages: Messages


def build_session(
    logs: SessionLogs,
    workspace: str | None,
    kept: Kept,
    records: list[bytes],
    inherited: frozenset[str] = frozenset(),
) -> Built:
    """Return the draft of one session.

    Args:
        logs: Its files.
        workspace: The project's folder, where it is known.
        kept: What was taken of them (``Kept.bring_up``).
        records: Theirs.
        inherited: Ids of entries that are copies of the parent session's.
    """
    history, found = kept.history, kept.build(inherited)
    times = [message.created_at for message in found]
    first = next(filter(None, times), 0)
    started = history.started or first
    draft = SessionDraft(
        logs.session_id,
        logs.path,
        KIND,
        created_at=min(started, first) if first else started,
        updated_at=max(history.last, started),
        workspace_root=workspace or _workspace(history),
        messages=found,
        records=records,
    )
    draft.title, draft.title_from = _title(history, found)
    draft.tells_title = "summary" in history.meta
    draft.model = next(
        (m.metadata["model"] for m in reversed(found) if "model" in m.metadata), None
    )
    draft.metadata["backscroll"] = _extra(history)
    activity = activity_of(found)
    if activity is not None:
        draft.metadata["activity"] = activity
    return Built(draft, history, kept.messages)


def _extra(history: History) -> dict[str, Any]:
    meta = history.meta
    extra: dict[str, Any] = {}
    for name, key in (
        ("session_kind", "kind"),
        ("start_time", "startTime"),
        ("last_updated", "lastUpdated"),
        ("summary", "summary"),
        ("memory_scratchpad", "memoryScratchpad"),
        ("directories", "directories"),
    ):
        if meta.get(key):
            extra[name] = meta[key]
    if history.rewinds:
        extra["rewinds"] = history.rewinds
    if history.replaced:
        extra["checkpoint_sets"] = history.replaced
    return extra


def _workspace(history: History) -> str | None:
    """Return the folder that the session itself names."""
    folders = history.meta.get("directories")
    if isinstance(folders, list) and folders and isinstance(folders[0], str):
        return folders[0]
    for entry in history.entries.values():
        if entry.kind == "context":
            found = _WORKSPACE.search(text_of(entry.data.get("content")))
            return found[1].strip() if found else None
    return None


def _title(history: History, messages: list[MessageDraft]) -> tuple[str | None, str | None]:
    """Return the summary that the program made, else the first prompt.

    A subagent's summary is its result; its prompt says better what it was for.
    """
    summary = string(history.meta.get("summary"))
    prompt = first_prompt(messages)
    if summary and history.meta.get("kind") != "subagent":
        return shortened(summary), "summary"
    return prompt, "first-prompt" if prompt else None


def link_agent(child: SessionDraft, parent_id: str, parent: Built | None) -> None:
    """Say which session, and which call of it, started a subagent.

    Args:
        child: The subagent's session.
        parent_id: The parent's id at the source.
        parent: The parent; None where it was not read.
    """
    child.lineage = LineageDraft("subagent", parent_id)
    for message in parent.draft.messages if parent else ():
        for part in message.parts:
            if _child_of(part) == child.source_id:
                child.lineage.parent_message_source_id = message.source_id
                child.lineage.tool_call_id = part.tool_call_id
                return


def _child_of(part: PartDraft) -> object:
    extra = mapping(mapping(part.data.get("resultProviderMetadata")).get("backscroll"))
    return extra.get("child_session_source_id")


def attach(draft: SessionDraft, bodies: dict[str, bytes]) -> None:
    """Add the files of ``tool-outputs/``, each named by the part that its result is cut in.

    Args:
        draft: The session.
        bodies: The files by path.
    """
    names = {os.path.basename(path): body for path, body in sorted(bodies.items())}
    for name, body in names.items():
        binary = b"\0" in body[:8192]
        media_type = "application/octet-stream" if binary else "text/plain"
        draft.attachments.append(AttachmentDraft(name, media_type, body))
    for message in draft.messages if names else ():
        for part in message.parts:
            text = part.data.get("output", part.data.get("errorText"))
            if part.tool_call_id is None or not isinstance(text, str):
                continue
            for name in names:
                if name in text or part.tool_call_id in name:
                    part.data["resultProviderMetadata"]["backscroll"]["attachment"] = name
