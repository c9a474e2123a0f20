"""From the files of a session's folder to the drafts of it and its subagents.

Source: the Kimi format page, sections A.2 and A.5. ``state.json`` is what the program says of a
session; each agent's conversation is in a file of its own.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from store.sources.base.drafts import LineageDraft, SessionDraft
from store.sources.base.growing import Depends, GrowingFile
from store.sources.base.json_lines import Record, records_of
from store.sources.base.protocol import FileStamp
from store.sources.base.side_file import SideFile
from store.sources.base.titles import FIRST_PROMPT, first_prompt, shortened
from store.sources.base.values import epoch_ms, mapping, string
from store.sources.kimi.messages import Messages
from store.system.paths import read_regular

KIND = "kimi"
STATE, AGENTS, WIRE = "state.json", "agents", "wire.jsonl"
MAIN = "main"
_INDEX, _WORKSPACES = "session_index.jsonl", "workspaces.json"
_COPY = "Fork: "
"""Begins the title that a fork gets by itself; older versions say that a person gave it."""


@dataclass(slots=True)
class Kept:
    """What was made of a file's lines the last time, to continue with.

    Attributes:
        lines: The list that grows with the file; another one where it was read anew.
    """

    lines: list[Record] | None = None
    built: Messages = field(default_factory=Messages)

    def bring_up(self, lines: list[Record]) -> Messages:
        """Take what the lines are more than before; return the agent's messages."""
        if lines is not self.lines:
            self.lines, self.built = lines, Messages()
        self.built.take(lines)
        return self.built


@dataclass(frozen=True, slots=True)
class Agent:
    """One agent of a session.

    Attributes:
        name: ``main``, or ``agent-N``.
        path: Its file.
        records: All lines of it.
        built: The messages of its lines.
    """

    name: str
    path: str
    records: list[bytes]
    built: Messages


def agents_of(files: Mapping[str, GrowingFile], kept: dict[str, Kept]) -> list[Agent]:
    """Return the agents of a session, the main one first.

    Args:
        files: Their files, by path.
        kept: What was made of each before, by path.
    """
    found = [Agent(agent_name(path), path, file.records, kept[path].bring_up(file.lines))
             for path, file in files.items()]  # fmt: skip
    return sorted(found, key=lambda agent: (agent.name != MAIN, agent.name))


def agent_name(path: str) -> str:
    """Return which agent a file of lines is of."""
    return os.path.basename(os.path.dirname(path))


def session_drafts(
    folder: str, agents: list[Agent], state: SideFile, depends: Depends
) -> list[SessionDraft]:
    """Return the session of a folder, and those of its subagents.

    Args:
        folder: The session's folder.
        agents: Its agents.
        state: What the program says of the session.
        depends: Takes the other file that it was read with.
    """
    drafts = [_draft(folder, agent, state, depends) for agent in agents if agent.built.found]
    _name_spawned(drafts, folder, agents)
    return drafts


def _draft(folder: str, agent: Agent, state: SideFile, depends: Depends) -> SessionDraft:
    built, told, is_main = agent.built, state.data, agent.name == MAIN
    begun = min(built.times, default=0)
    written = max(built.times, default=0)
    draft = SessionDraft(
        _session_id(folder, agent.name), agent.path, KIND, begun, written,
        workspace_root=string(told.get("cwd")) or built.folder or _indexed(folder, depends),
        messages=built.shown, records=agent.records, system_prompts=dict(built.prompts),
    )  # fmt: skip
    answered = [each.metadata["model"] for each in draft.messages if "model" in each.metadata]
    draft.model = answered[-1] if answered else None
    draft.metadata["backscroll"] = {}
    if is_main:
        _describe(draft, state, told)
    activity = built.activity()
    # What a fork copied says how its parent was.
    if activity is not None and ("forkedFrom" not in told or activity["since"] >= draft.created_at):
        draft.metadata["activity"] = activity
    if draft.title is None:
        draft.title = first_prompt(draft.messages)
        draft.title_from = FIRST_PROMPT if draft.title else None
    _mark_copies(draft, built, string(told.get("forkedFrom")) if is_main else None)
    if not is_main:
        _describe_agent(draft, folder, agent, mapping(mapping(told.get("agents")).get(agent.name)))
    if built.quiet and draft.messages:
        last = draft.messages[-1]
        draft.messages[-1] = replace(last, records=(*last.records, *built.quiet))
    return draft


def _session_id(folder: str, agent: str) -> str:
    """Return the id of an agent's session; that of the main one is the folder's name."""
    name = os.path.basename(folder)
    return name if agent == MAIN else f"{name}:{agent}"


def _describe(draft: SessionDraft, state: SideFile, told: dict[str, Any]) -> None:
    """Add what the program says of a session: its title, times, whether it is archived."""
    if state.body is None:
        return
    draft.records = [*draft.records, state.body]
    draft.tells_title = True
    draft.created_at = epoch_ms(told.get("createdAt")) or draft.created_at
    updated = epoch_ms(told.get("updatedAt"))
    draft.updated_at = max(draft.updated_at, updated or 0)
    if told.get("archived") is True:
        draft.archived_at = epoch_ms(told.get("archivedAt")) or draft.updated_at
    title, prompt = string(told.get("title")), string(told.get("lastPrompt"))
    if title is not None:
        copied = string(told.get("forkedFrom")) is not None and title.startswith(_COPY)
        by_hand = told.get("titleKind") == "custom" or (
            told.get("isCustomTitle") is True and not copied)
        draft.title, draft.title_from = shortened(title), "user" if by_hand else "title"
    elif prompt is not None:
        draft.title, draft.title_from = shortened(prompt) or None, "last-prompt"
    ended = string(told.get("lastTurnReason"))
    if ended is not None:
        draft.metadata["backscroll"]["status"] = ended


def _mark_copies(draft: SessionDraft, built: Messages, parent: str | None) -> None:
    """Say what a session was forked off, and which of its messages are copies."""
    copied = [each for each in draft.messages if each.source_id in built.forked]
    if parent is not None and not copied:
        # The first versions write no record of it: what is older than the session was copied.
        copied = [each for each in draft.messages if each.created_at < draft.created_at]
    for message in copied:
        message.inherited_from = message.source_id
    if parent is not None and parent != draft.source_id:
        last = next((each for each in reversed(copied) if each.parts), None)
        draft.lineage = LineageDraft("fork", parent, last.source_id if last else None)


def _describe_agent(
    draft: SessionDraft, folder: str, agent: Agent, told: dict[str, Any]
) -> None:
    """Say whose subagent an agent is, and what kind of one."""
    above = string(told.get("parentAgentId")) or MAIN
    draft.lineage = LineageDraft("subagent", _session_id(folder, above))
    kind = string(mapping(told.get("labels")).get("profileName"))
    if kind is not None:
        draft.metadata["backscroll"]["agent_type"] = kind


def _name_spawned(drafts: list[SessionDraft], folder: str, agents: list[Agent]) -> None:
    """Say of each subagent which call started it, and of the call which session it started."""
    by_id = {draft.source_id: draft for draft in drafts}
    for agent in agents:
        caller = by_id.get(_session_id(folder, agent.name))
        calls = {part.tool_call_id: part for message in (caller.messages if caller else ())
                 for part in message.parts if part.tool_call_id}  # fmt: skip
        for name, records in agent.built.spawned.items():
            child = by_id.get(_session_id(folder, name))
            if child is None or caller is None or child is caller:
                continue
            _describe_spawned(child, caller.source_id, records[0])
            for call_id in (string(record.get("parentToolCallId")) for record in records):
                part = calls.get(call_id or "")
                if part is not None:
                    bag = part.data.setdefault("resultProviderMetadata", {})
                    bag.setdefault("backscroll", {})["child_session_source_id"] = child.source_id


def _describe_spawned(child: SessionDraft, caller: str, told: dict[str, Any]) -> None:
    child.lineage = LineageDraft(
        "subagent", caller, tool_call_id=string(told.get("parentToolCallId")))
    if string(told.get("subagentName")):
        child.metadata["backscroll"]["agent_type"] = told["subagentName"]
    if string(told.get("description")):
        child.title, child.title_from = shortened(told["description"]), "description"


def _indexed(folder: str, depends: Depends) -> str | None:
    """Return the folder that the list of all sessions, or of workspaces, has for a session."""
    workspace, name = os.path.split(folder)
    top = os.path.dirname(os.path.dirname(workspace))
    listed = records_of(_beside(os.path.join(top, _INDEX), depends))
    found = [string(each.get("workDir")) for each in listed if each.get("sessionId") == name]
    if found:
        return found[-1]
    (spaces, *_) = (*records_of(_beside(os.path.join(top, _WORKSPACES), depends)), {})
    known = mapping(mapping(spaces.get("workspaces")).get(os.path.basename(workspace)))
    return string(known.get("root"))


def _beside(path: str, depends: Depends) -> bytes:
    """Return what a file beside the sessions holds; nothing where it is missing."""
    depends.looked.append(FileStamp.now(path))
    try:
        return read_regular(path)
    except OSError:
        return b""
