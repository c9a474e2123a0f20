"""From a session's events to its draft and those of its subagents."""

from __future__ import annotations

import re
from itertools import islice
from typing import Any

from store.sources.base.drafts import LineageDraft, MessageDraft, SessionDraft
from store.sources.base.json_lines import Record
from store.sources.base.titles import first_prompt, shortened
from store.sources.base.values import epoch_ms, mapping, string
from store.sources.copilot.event import Event, EventReader
from store.sources.copilot.thread import Thread
from store.sources.copilot.usage import TYPES, Spent, unanswered

KIND = "copilot"
_TURNS = {
    "user.message": "running", "assistant.turn_start": "running", "abort": "interrupted",
    "session.error": "error", "session.idle": "", "session.task_complete": "",
}  # fmt: skip
"""What events say of a turn; nothing for one that ended well."""
_FORKED = re.compile(r"Forked from .*\(([0-9a-f]{8}-[0-9a-f-]{27})\) as ", re.S)


class Session:
    """One session's events, sorted by whose they are; it grows with its file.

    Attributes:
        lines: The list that grows with the file; another one where it was read anew.
        turn_state: ``running``, ``interrupted`` or ``error`` and since when, epoch ms; None
            where the last turn ended well.
    """

    def __init__(self, lines: list[Record]) -> None:
        """Start before the first line."""
        self.lines = lines
        self._taken = 0
        self._reader = EventReader()
        self.spent = Spent()
        self.main = Thread(self.spent)
        self.agents: dict[str, tuple[Thread, list[Event], dict[str, Any]]] = {}
        self.start: dict[str, Any] = {}
        self.context: dict[str, Any] = {}
        self.times: list[int] = []
        self.title: str | None = None
        self.sources: dict[str, str] = {}
        self.turn_state: tuple[str, int] | None = None
        self._asks = False
        self._calls_of_agents: dict[str, str] = {}

    def grow(self) -> None:
        """Take what the file has more than before."""
        for event in self._reader.events(islice(self.lines, self._taken, None)):
            self._take(event)
        self._taken = len(self.lines)

    def _take(self, event: Event) -> None:
        data = event.data
        self.times.append(event.at)
        if event.type == "subagent.started":
            self._begin_agent(event)
        elif event.type in TYPES:
            self._spend(event)
        elif event.type == "session.start" and not self.start:
            self.start = data
        if event.type in ("session.start", "session.resume", "session.context_changed"):
            bag = mapping(data.get("context")) or data
            self.context |= {key: bag[key] for key in ("cwd", "branch") if string(bag.get(key))}
        elif event.type == "session.title_changed":
            self.title = string(data.get("title")) or self.title
        if event.type in TYPES:
            return
        call_id = string(data.get("parentToolCallId")) or self._calls_of_agents.get(
            event.agent or ""
        )
        if call_id and event.type != "subagent.started":
            thread, events, _ = self._agent(call_id)
            thread.take(event)
            events.append(event)
        else:
            self._note_turn(event)
            self.main.take(event)

    def _note_turn(self, event: Event) -> None:
        """Note whether the model is at work, or was broken off.

        A turn continues after its end where the answer asked for calls.
        """
        if event.type == "assistant.message":
            self._asks = bool(event.data.get("toolRequests"))
        state = _TURNS.get(event.type)
        if event.type == "assistant.turn_end":
            state = "running" if self._asks else ""
        if state is not None:
            self.turn_state = (state, event.at) if state else None

    def _spend(self, event: Event) -> None:
        """Note what a request used; it goes to its answer."""
        if not self.spent.note(event):
            return
        bag = mapping(event.data.get("usage")) or event.data
        source = string(mapping(bag.get("accounting")).get("sourceSessionId"))
        call = string(bag.get("apiCallId"))
        if source and call:
            self.sources[call] = source

    def _agent(self, call_id: str) -> tuple[Thread, list[Event], dict[str, Any]]:
        return self.agents.setdefault(call_id, (Thread(self.spent), [], {}))

    def _begin_agent(self, event: Event) -> None:
        call_id = string(event.data.get("toolCallId"))
        if call_id is None:
            return
        if event.agent:
            self._calls_of_agents[event.agent] = call_id
        self._agent(call_id)[2].update(event.data)

    def messages(self, agent: str | None = None) -> list[MessageDraft]:
        """Return the messages of the session, or of the subagent that a call started.

        Requests that have no answer are counted: failed ones, and those of the program.
        """
        thread = self.agents[agent][0] if agent is not None else self.main
        found = list(thread.messages)
        for call_id, used in self.spent.left():
            named = self._calls_of_agents.get(used.agent or "") or used.agent
            if (named if named in self.agents else None) != agent:
                continue
            place = len(found)
            while place and found[place - 1].created_at > used.at:
                place -= 1
            found.insert(place, unanswered(f"usage-{call_id}", used))
        return thread.with_rest(found)


def session_drafts(
    path: str, folder_id: str, session: Session, records: list[bytes], workspace: dict[str, str]
) -> list[SessionDraft]:
    """Return the drafts of one session and its subagents.

    Args:
        path: ``events.jsonl``.
        folder_id: The session's id by its folder.
        session: Its events; those that are new are taken.
        records: Of the file.
        workspace: What ``workspace.yaml`` says.
    """
    session.grow()
    session_id = string(session.start.get("sessionId")) or folder_id
    started = epoch_ms(session.start.get("startTime")) or min(session.times, default=0)
    draft = SessionDraft(
        session_id,
        path,
        KIND,
        created_at=started or epoch_ms(workspace.get("created_at")) or 0,
        updated_at=max([*session.times, started]),
        workspace_root=string(session.context.get("cwd")) or workspace.get("cwd") or None,
        messages=session.messages(),
        records=list(records),
        system_prompts=dict(session.main.prompts),
    )
    draft.title, draft.title_from = _title(session, workspace, draft.messages)
    draft.tells_title = "name" in workspace
    draft.model = session.main.model or _chosen_model(session)
    for name, value in (
        ("git_branch", session.context.get("branch") or workspace.get("branch")),
        ("version", session.start.get("copilotVersion")),
    ):
        if value:
            draft.metadata[name] = value
    extra = {name: workspace[key] for name, key in (("fork_count", "fork_count"),
             ("client", "client_name")) if workspace.get(key) not in (None, "", "0")}  # fmt: skip
    draft.metadata["backscroll"] = extra
    if session.turn_state is not None:
        state, since = session.turn_state
        draft.metadata["activity"] = {"state": state, "from": "stored", "since": since}
    _link_fork(draft, session)
    return [draft, *_agents(draft, session)]


def _chosen_model(session: Session) -> dict[str, Any] | None:
    chosen = string(session.start.get("selectedModel"))
    return {"provider_id": "github-copilot", "model_id": chosen} if chosen else None


def _title(
    session: Session, workspace: dict[str, str], messages: list[MessageDraft]
) -> tuple[str | None, str | None]:
    name = workspace.get("name")
    if name and workspace.get("user_named") == "true":
        return shortened(name), "session-name"
    if session.title:
        return shortened(session.title), "summary"
    if name:
        return shortened(name), "summary"
    prompt = first_prompt(messages)
    return prompt, "first-prompt" if prompt else None


def _link_fork(draft: SessionDraft, session: Session) -> None:
    """Mark what a fork copied: a notice ends it, and a request keeps the id of who spent it."""
    copied, parent = 0, None
    for place, message in enumerate(draft.messages):
        call = mapping(message.metadata.get("backscroll")).get("request_id")
        source = session.sources.get(call) if isinstance(call, str) else None
        source = source or _forked_from(message)
        if source and source != draft.source_id:
            noticed = call is None
            copied, parent = place if noticed else place + 1, source
    if parent is None:
        return
    for message in draft.messages[:copied]:
        message.inherited_from = message.source_id
    last = draft.messages[copied - 1].source_id if copied else None
    draft.lineage = LineageDraft("fork", parent, last)


def _forked_from(message: MessageDraft) -> str | None:
    """Return the session that a notice names as what this one was forked from."""
    for part in message.parts if message.role == "system" else ():
        details = mapping(part.data.get("data")).get("details")
        found = _FORKED.match(details) if isinstance(details, str) else None
        if found:
            return found[1]
    return None


def _agents(parent: SessionDraft, session: Session) -> list[SessionDraft]:
    """Return the subagents that ran in a session, each linked to its call."""
    drafts = []
    for call_id, (thread, events, told) in session.agents.items():
        part = session.main.calls.get(call_id)
        messages = session.messages(call_id)
        if not messages:
            continue
        draft = SessionDraft(
            f"{parent.source_id}:{call_id}",
            parent.path,
            KIND,
            created_at=next((event.at for event in events if event.at), 0),
            updated_at=max(event.at for event in events),
            workspace_root=parent.workspace_root,
            messages=messages,
            records=parent.records,
            model=thread.model or parent.model,
        )
        owner = next((m for m in parent.messages if any(p is part for p in m.parts)), None)
        draft.lineage = LineageDraft(
            "subagent", parent.source_id, owner.source_id if owner else None, call_id
        )
        if owner is not None and owner.inherited_from and parent.lineage:
            _inherit(draft, f"{parent.lineage.parent_source_id}:{call_id}", call_id)
        name = string(told.get("agentDisplayName")) or string(told.get("agentName"))
        given = mapping(part.data.get("input")) if part else {}
        prompt = string(given.get("description")) or string(given.get("prompt"))
        draft.title = shortened(prompt or name or call_id)
        draft.title_from = "agent"
        draft.metadata["backscroll"] = {"agent_type": name} if name else {}
        if part is not None:
            extra = part.data.setdefault("resultProviderMetadata", {}).setdefault("backscroll", {})
            extra["child_session_source_id"] = draft.source_id
        drafts.append(draft)
    return drafts


def _inherit(draft: SessionDraft, original: str, call_id: str) -> None:
    """Make a subagent that a fork copied a copy of the one that ran."""
    for message in draft.messages:
        message.inherited_from = message.source_id
    draft.lineage = LineageDraft("fork", original, draft.messages[-1].source_id, call_id)
