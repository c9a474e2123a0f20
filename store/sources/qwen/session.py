"""From the files of a session to its draft: title, lineage, subagents.

Source: the Qwen Code format page, sections 2 and 4. A fork is a file of its own that begins with
the active records of its parent, each under its own id and time. A subagent is a file below
``subagents/<session>``, with a small one beside it that says who started it.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from typing import Any

from store.sources.base.drafts import LineageDraft, MessageDraft, SessionDraft
from store.sources.base.growing import LINES, Depends, entries_of
from store.sources.base.json_lines import Record
from store.sources.base.protocol import Fact, FileStamp, Library
from store.sources.base.side_file import SideFile
from store.sources.base.titles import FIRST_PROMPT, first_prompt, shortened
from store.sources.base.values import mapping, string
from store.sources.qwen.messages import Messages, was_stopped
from store.sources.qwen.tree import Entry, Tree

KIND = "qwen"
META = ".meta.json"
SUBAGENTS, AGENT = "subagents", "agent-"
ARCHIVE = "archive"
_AGENTS = "agents:"
"""Fact: a subagent of a session is there, so its requests are counted with it."""
_ENDS = {"failed": "error", "cancelled": "interrupted"}


@dataclass(slots=True)
class Kept:
    """What was made of a file's lines the last time, to continue with.

    Attributes:
        lines: The list that grows with the file; another one where it was read anew.
        left: ``Tree.left`` of that time.
    """

    lines: list[Record] | None = None
    tree: Tree = field(default_factory=Tree)
    left: dict[str, int] = field(default_factory=dict)
    built: Messages | None = None

    def bring_up(self, lines: list[Record]) -> Messages:
        """Take what the lines are more than before; return the session's messages."""
        if lines is not self.lines or len(lines) < self.tree.lines:
            self.lines, self.tree, self.built = lines, Tree(), None
        self.tree.grow(lines)
        if self.built is None or self.tree.left != self.left:
            # Where another branch was taken up, what is left is another part of the tree.
            self.built, self.left = Messages(self.tree), self.tree.left
        return self.built


def session_draft(
    path: str, lines: list[Record], records: list[bytes], kept: Kept, agent: SideFile,
    library: Library, depends: Depends,
) -> SessionDraft | None:
    """Return the draft of a file's session; None where it has no record.

    Args:
        path: The file.
        lines: Its lines that are JSON objects.
        records: All its lines.
        kept: What was made of them the last time.
        agent: What stands beside a subagent's records.
        library: Knows subagents whose files are gone.
        depends: Takes what it tells others, and would want to know of them.
    """
    built, tree = kept.bring_up(lines), kept.tree
    if not any(entry.type for entry in tree.entries):
        return None
    of_agent = is_agent(path)
    session_id = _session_id(path, tree, of_agent=of_agent)
    times = [entry.at for entry in tree.entries if entry.at]
    draft = SessionDraft(
        f"{session_id}/{_first(tree, 'agentId') or _agent_id(path)}" if of_agent else session_id,
        path, KIND, min(times, default=0), max(times, default=0),
        workspace_root=_first(tree, "cwd"),
        messages=built.build(),
        records=[*records, *([agent.body] if agent.body is not None else [])],
    )  # fmt: skip
    draft.model = _model(tree, agent.data)
    draft.metadata |= _metadata(tree)
    if of_agent:
        _describe_agent(draft, session_id, tree, agent.data, depends)
    else:
        _describe(draft, path, tree)
    _know_agents(draft, built, session_id, library, depends)
    return draft


def is_agent(path: str) -> bool:
    """Return whether a file is a subagent's, by where it is."""
    folder, name = os.path.split(path)
    above = os.path.basename(os.path.dirname(folder))
    return above == SUBAGENTS and name.startswith(AGENT)


def _agent_id(path: str) -> str:
    return os.path.basename(path).removeprefix(AGENT).removesuffix(LINES)


def _session_id(path: str, tree: Tree, *, of_agent: bool) -> str:
    """Return the session's id: its file is called by it, and so is its subagents' folder."""
    if of_agent:
        return os.path.basename(os.path.dirname(path))
    return _first(tree, "sessionId") or os.path.basename(path).removesuffix(LINES)


def _first(tree: Tree, key: str) -> str | None:
    return next((found for entry in tree.entries if (found := string(entry.data.get(key)))), None)


def _metadata(tree: Tree) -> dict[str, Any]:
    versions, branches = (
        list(dict.fromkeys(told for entry in tree.entries if (told := string(entry.data.get(key)))))
        for key in ("version", "gitBranch")
    )
    extra: dict[str, Any] = {"versions": versions}
    if tree.broken is not None:
        extra["broken_at"] = tree.broken
    found: dict[str, Any] = {"backscroll": extra}
    if branches:
        found["git_branch"] = branches[-1]
    if versions:
        found["version"] = versions[-1]
    return found


def _model(tree: Tree, agent: dict[str, Any]) -> dict[str, Any] | None:
    """Return the model that answered last on the active path, else the one that was chosen."""
    answers = [entry for entry in tree.entries if string(entry.data.get("model"))]
    shown = [entry for entry in answers if entry.id not in tree.left] or answers
    name = shown[-1].data["model"] if shown else string(agent.get("model"))
    return {"provider_id": "unknown", "model_id": name} if name else None


def _describe(draft: SessionDraft, path: str, tree: Tree) -> None:
    """Say what a session is called, what it was forked from, and what it does."""
    titles = [entry.payload for entry in tree.entries if entry.subtype == "custom_title"]
    given = string(titles[-1].get("customTitle")) if titles else None
    draft.tells_title = bool(titles)
    if given is not None:
        by_hand = titles[-1].get("titleSource") != "auto"
        draft.title, draft.title_from = shortened(given), "user" if by_hand else "title"
    else:
        draft.title = first_prompt(draft.messages)
        draft.title_from = FIRST_PROMPT if draft.title else None
    if os.path.basename(os.path.dirname(path)) == ARCHIVE:
        draft.archived_at = draft.updated_at
    activity = _activity(tree)
    if activity is not None:
        draft.metadata["activity"] = activity
    parent = next((found for entry in tree.entries if (found := string(
        mapping(entry.data.get("forkedFrom")).get("sessionId")))), None)  # fmt: skip
    if parent is not None and parent != draft.source_id:
        copied = [message for message in draft.messages if message.inherited_from is not None]
        at = _last_with_words(copied)
        draft.lineage = LineageDraft("fork", parent, at.inherited_from if at else None)


def _last_with_words(messages: list[MessageDraft]) -> MessageDraft | None:
    return next((each for each in reversed(messages) if each.parts), None)


def _describe_agent(
    draft: SessionDraft, session_id: str, tree: Tree, agent: dict[str, Any], depends: Depends
) -> None:
    """Say what a subagent is called, who started it, and what it does."""
    agent_id = draft.source_id.removeprefix(f"{session_id}/")
    depends.facts.append(Fact(_AGENTS + session_id, draft.source_id, agent_id))
    name = string(agent.get("agentType")) or _first(tree, "agentName")
    call_id = string(agent.get("toolUseId"))
    if call_id is None and name and agent_id.startswith(f"{name}-"):
        call_id = agent_id.removeprefix(f"{name}-")
    above = string(agent.get("parentAgentId"))
    parent = string(agent.get("parentSessionId")) or session_id
    draft.lineage = LineageDraft(
        "subagent", f"{parent}/{above}" if above else parent, tool_call_id=call_id)
    if string(agent.get("description")):
        draft.title, draft.title_from = shortened(agent["description"]), "description"
    else:
        draft.title = first_prompt(draft.messages)
        draft.title_from = FIRST_PROMPT if draft.title else None
    extra = draft.metadata["backscroll"]
    if name:
        extra["agent_type"] = name
    status = string(agent.get("status"))
    if status is not None:
        extra["status"] = status
    state = _ENDS.get(status or "")
    if state is not None:
        draft.metadata["activity"] = {"state": state, "from": "stored", "since": draft.updated_at}
    elif status not in (None, "completed", "running"):
        draft.metadata["activity"] = {"state": "unknown", "from": "stored",
                                      "since": draft.updated_at, "word": status}  # fmt: skip
    elif status != "completed" and (activity := _activity(tree)) is not None:
        draft.metadata["activity"] = activity


def _know_agents(
    draft: SessionDraft, built: Messages, session_id: str, library: Library, depends: Depends
) -> None:
    """Link calls to the subagents they started; leave out requests that these count themselves."""
    if is_agent(draft.path):
        folder = os.path.dirname(draft.path)
    else:
        chats = os.path.dirname(draft.path)
        if os.path.basename(chats) == ARCHIVE:
            chats = os.path.dirname(chats)
        folder = os.path.join(os.path.dirname(chats), SUBAGENTS, session_id)
    depends.looked.append(FileStamp.now(folder))
    depends.wants.add(_AGENTS + session_id)
    agents = {_agent_id(entry.path) for entry in entries_of(folder)
              if entry.name.startswith(AGENT) and entry.name.endswith(LINES)}  # fmt: skip
    agents |= {fact.value for fact in library.facts(_AGENTS + session_id)}
    draft.messages = [message for message in draft.messages
                      if built.agents.get(message.source_id) not in agents]  # fmt: skip
    for part in (part for message in draft.messages for part in message.parts if agents):
        call_id = part.tool_call_id
        child = next((each for each in sorted(agents) if call_id and each.endswith(f"-{call_id}")),
                     None)  # fmt: skip
        if child is not None and draft.source_id != f"{session_id}/{child}":
            result = part.data.setdefault("resultProviderMetadata", {})
            extra = result.setdefault("backscroll", {})
            extra["child_session_source_id"] = f"{session_id}/{child}"


def _activity(tree: Tree) -> dict[str, Any] | None:
    """Return what the last record of the conversation says; None where it ended well.

    An answer is written when it is finished, so after a prompt or a result one is awaited.
    """
    path = (entry for entry in reversed(tree.entries) if entry.id not in tree.left)
    last = next((entry for entry in path if _says_state(entry)), None)
    if last is None:
        return None
    if last.event_name == "api_error":
        return {"state": "error", "from": "stored", "since": last.at}
    cancelled = mapping(last.data.get("toolCallResult")).get("status") == "cancelled"
    if was_stopped(last) or (last.type == "tool_result" and cancelled):
        return {"state": "interrupted", "from": "stored", "since": last.at}
    calls = any("functionCall" in part for part in last.parts)
    if last.type == "assistant" and not calls:
        return None
    return {"state": "running", "from": "guessed", "since": last.at}


def _says_state(entry: Entry) -> bool:
    if entry.type in ("user", "assistant", "tool_result"):
        return True
    return entry.event_name == "api_error" and not string(entry.event.get("subagent_name"))
