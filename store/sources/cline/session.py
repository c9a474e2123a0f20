"""From the files of a session's folder, and its rows, to the drafts of it and its children.

Source: the Cline format page, section 2. A folder holds a session's manifest, its messages, what
a compaction replaced for the model, and the messages of its subagents and teammates. The rows of
the database say the same as the manifest, and are all there is of the children beside messages.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from typing import Any

from store.sources.base.content_blocks import blocks_of, text_of
from store.sources.base.databases import decoded, record_bytes
from store.sources.base.document_source import records_of
from store.sources.base.documents import parse_document
from store.sources.base.drafts import (
    ApiAnswer,
    LineageDraft,
    MessageDraft,
    PartDraft,
    SessionDraft,
)
from store.sources.base.early_results import EarlyResults
from store.sources.base.growing import Depends
from store.sources.base.json_values import LineError
from store.sources.base.plain_parts import data_part, text_part
from store.sources.base.protocol import SESSION_FACT, FileStamp, Library, Problem
from store.sources.base.titles import FIRST_PROMPT, first_prompt, shortened
from store.sources.base.values import epoch_ms, mapping, number, string
from store.sources.cline.content import part_of, read_typed, result_of, settle, typed
from store.sources.cline.rows import CHILD
from store.system.paths import read_regular

KIND = "cline"
MESSAGES = ".messages.json"
COMPACTION = ".compaction.json"
_SUMMARY = "compaction_summary"
_COLUMNS = frozenset({"session_id", "started_at", "status", "metadata_json"})
"""They tell a row from a manifest."""
_SPAWN, _RUN_TASK = "tool-spawn_agent", "tool-team_run_task"


@dataclass(slots=True)
class Folder:
    """What is in a session's folder.

    Attributes:
        path: The folder.
        bodies: Its files by path.
        rows: The rows of the session and its children, by their ids.
        library: Has the sessions whose files are gone.
        depends: Takes what it would want to know of others.
        problems: Takes what cannot be read.
    """

    path: str
    bodies: dict[str, bytes]
    rows: dict[str, dict[str, Any]]
    library: Library
    depends: Depends
    problems: list[Problem]

    @property
    def name(self) -> str:
        """The session's id."""
        return os.path.basename(self.path)

    def document(self, name: str) -> dict[str, Any] | None:
        """Return what a file holds; None where it is missing or damaged."""
        path = os.path.join(self.path, name)
        if path not in self.bodies:
            return None
        try:
            value, repaired = parse_document(self.bodies[path])
        except LineError as error:
            self.problems.append(Problem(path, 0, str(error)))
            return None
        self.problems += [Problem(path, 0, repaired)] if repaired else []
        if not isinstance(value, dict):
            self.problems.append(Problem(path, 0, "no object, as Cline's files are"))
            return None
        return value


@dataclass(frozen=True, slots=True)
class Facts:
    """What a session's manifest and its row say of it; the row first, which is newer.

    Attributes:
        told: The columns and members.
        metadata: Those of both.
        records: The manifest and the row as they were.
    """

    told: dict[str, Any]
    metadata: dict[str, Any]
    records: list[bytes] = field(default_factory=list)

    @classmethod
    def of(cls, manifest: dict[str, Any] | None, row: dict[str, Any] | None) -> Facts:
        """Return the facts of both; either may be missing."""
        first, then = mapping(manifest), mapping(row)
        known = {key: value for key, value in then.items() if value is not None}
        metadata = mapping(first.get("metadata")) | mapping(decoded(then.get("metadata_json")))
        records = [record_bytes(each) for each in (manifest, row) if each is not None]
        return cls(first | known, metadata, records)


def folder_drafts(folder: Folder) -> list[SessionDraft]:
    """Return the session of a folder and its children, with their calls."""
    manifest = folder.document(f"{folder.name}.json")
    facts = Facts.of(manifest, folder.rows.get(folder.name) or _known_row(folder, folder.name))
    lead_file = f"{folder.name}{MESSAGES}"
    found: list[SessionDraft] = []
    document = folder.document(lead_file)
    path = os.path.join(folder.path, lead_file)
    whole = document is not None or path not in folder.bodies
    if document is not None:
        found.append(_lead(folder, path, document, facts))
    elif facts.records:
        found.append(_prompt_alone(folder, facts))
    for other in sorted(folder.bodies):
        name = os.path.basename(other)
        if name.endswith(MESSAGES) and name != lead_file:
            said = folder.document(name)
            if said is not None:
                found.append(_child(folder, other, said))
    if not whole:
        # Which call started a child is in messages that are half written now.
        for draft in found:
            draft.partial = True
    _name_calls(found)
    return found


def _known_row(folder: Folder, name: str) -> dict[str, Any] | None:
    """Return the row that a session had in the database, where it is gone."""
    if not folder.library.keeps_deleted:
        return None
    told = (mapping(decoded(record)) for record in reversed(folder.library.records(name)))
    return next((row for row in told if row.keys() >= _COLUMNS), None)


def _lead(folder: Folder, path: str, document: dict[str, Any], facts: Facts) -> SessionDraft:
    draft, built = _draft(folder.name, path, document, facts)
    copied = _link(folder, draft, built, facts)
    compaction = folder.document(folder.name + COMPACTION)
    if compaction is not None:
        _compact(draft, built, compaction, copied)
    return draft


def _child(folder: Folder, path: str, document: dict[str, Any]) -> SessionDraft:
    stem = os.path.basename(path).removesuffix(MESSAGES)
    name = string(document.get("sessionId")) or f"{folder.name}{CHILD}{stem}"
    row = folder.rows.get(name) or _known_row(folder, name)
    draft, _ = _draft(name, path, document, Facts.of(None, row))
    origin = mapping(document.get("origin"))
    parent = (string(mapping(row).get("parent_session_id"))
              or string(origin.get("parentThreadId")) or folder.name)  # fmt: skip
    if parent != name:
        draft.lineage = LineageDraft("subagent", parent)
    named = string(origin.get("subagent")) or string(mapping(row).get("agent_id"))
    if named:
        draft.metadata["backscroll"]["agent_name"] = named
    return draft


def _draft(
    name: str, path: str, document: dict[str, Any], facts: Facts
) -> tuple[SessionDraft, Messages]:
    told = facts.told
    listed = document.get("messages")
    messages = listed if isinstance(listed, list) else []
    updated = epoch_ms(document.get("updated_at")) or 0
    started = epoch_ms(told.get("started_at")) or 0
    built = Messages(started or updated)
    for place, message in enumerate(messages):
        built.take(place, mapping(message))
    times = [each for each in (*built.times, started, updated) if each]
    draft = SessionDraft(
        name, path, KIND, started or min(times, default=0), updated or max(times, default=0),
        workspace_root=string(told.get("workspace_root")) or string(told.get("cwd")),
        messages=built.found, tells_title=bool(facts.records),
        records=[*records_of(document, messages, "messages"), *facts.records],
    )  # fmt: skip
    prompt = string(document.get("system_prompt"))
    if prompt is not None:
        digest = hashlib.sha256(prompt.encode("utf-8", "replace")).hexdigest()
        draft.system_prompts[digest] = prompt
        for message in draft.messages:
            if message.role == "assistant":
                message.metadata["system_prompt_digest"] = digest
    if not messages and string(told.get("prompt")):
        draft.messages = [_first(str(told["prompt"]), draft)]
    _describe(draft, document, facts, built)
    return draft, built


def _first(prompt: str, draft: SessionDraft) -> MessageDraft:
    """Return the prompt of a session whose messages are not written yet."""
    at, record = draft.created_at, len(draft.records) - 1
    return MessageDraft("prompt", "user", at, at, {"origin": "human"},
                        [text_part(typed(prompt), at, record)])  # fmt: skip


def _prompt_alone(folder: Folder, facts: Facts) -> SessionDraft:
    """Return a session whose messages are missing or half written: its prompt, and its facts."""
    path = os.path.join(folder.path, f"{folder.name}{MESSAGES}")
    draft, _ = _draft(folder.name, path, {}, facts)
    draft.partial = True
    return draft


def _describe(draft: SessionDraft, document: dict[str, Any], facts: Facts, built: Messages) -> None:
    """Add title, model, what the program says of itself, and how the session ended."""
    told, metadata = facts.told, facts.metadata
    title = string(metadata.get("title"))
    if title:
        draft.title, draft.title_from = shortened(title), "title"
    else:
        draft.title = first_prompt(draft.messages)
        draft.title_from = FIRST_PROMPT if draft.title else None
    model, provider = string(told.get("model")), string(told.get("provider"))
    answered = [each.metadata["model"] for each in draft.messages if "model" in each.metadata]
    if answered:
        draft.model = answered[-1]
    elif model:
        draft.model = {"provider_id": provider or "unknown", "model_id": model}
    origin = mapping(document.get("origin"))
    extra = {
        "version": string(origin.get("version")), "status": string(told.get("status")),
        "host": string(told.get("source")), "agent": string(document.get("agent")),
        "mode": string(metadata.get("mode")),
        "git_branch": string(mapping(metadata.get("git")).get("branch")),
        "restored_before_run": number(metadata.get("restoredCheckpointRunCount")) or None,
    }  # fmt: skip
    draft.metadata["backscroll"] = {key: value for key, value in extra.items() if value is not None}
    activity = built.activity(string(told.get("status")), draft.updated_at)
    if activity is not None:
        draft.metadata["activity"] = activity


class Messages:
    """The messages of a file, in its order.

    Attributes:
        found: The drafts.
        times: When each message that has a time was written, epoch ms.
        places: For each message of the file the place of the draft that it is in.
    """

    def __init__(self, begun: int) -> None:
        """Start without messages.

        Args:
            begun: When the session was begun, epoch ms.
        """
        self.found: list[MessageDraft] = []
        self.times: list[int] = []
        self.places: list[int] = []
        self._begun = begun
        self._names: set[str] = set()
        self._calls: dict[str, tuple[PartDraft, MessageDraft]] = {}
        self._early = EarlyResults()

    def take(self, place: int, message: dict[str, Any]) -> None:
        """Take the next message of the file."""
        at = epoch_ms(message.get("ts"))
        self.times += [at] if at else []
        at = at or (self.times[-1] if self.times else self._begun)
        name, record = string(message.get("id")), place + 1
        if name is None or name in self._names:
            name = f"{place}"
        self._names.add(name)
        blocks = blocks_of(message.get("content"))
        role = message.get("role")
        calls = any(block.get("type") == "tool_use" for block in blocks)
        if role == "assistant" or (role != "user" and calls):
            self._answer(name, message, blocks, at, record)
        else:
            self._user(name, message, blocks, at, record)
        self.places.append(len(self.found))

    def _user(
        self, name: str, message: dict[str, Any], blocks: list[dict[str, Any]], at: int, record: int
    ) -> None:
        results = [block for block in blocks if block.get("type") == "tool_result"]
        for nth, block in enumerate(results):
            self._result(block, f"{name}:{nth}" if nth else name, at, record)
        said = [block for block in blocks if block.get("type") != "tool_result"]
        if not said and results:
            return
        own = mapping(message.get("metadata"))
        if own.get("kind") == _SUMMARY:
            body = {"summary": text_of(said), "tail_start_id": None, "auto": False}
            line = data_part("compaction", body, at, record)
            self._add(MessageDraft(name, "system", at, at, {"compaction": True}, [line]), record)
            return
        made = own.get("userRunSpan") == 0 or own.get("displayRole") == "system"
        parts = [part_of(each, f"{name}:{n}", at, record) for n, each in enumerate(said)]
        for part in parts:
            read_typed(part)
        draft = MessageDraft(f"{name}:said" if results else name, "user", at, at,
                             {"origin": "meta" if made else "human"}, parts)  # fmt: skip
        self._add(draft, record)

    def _answer(
        self, name: str, message: dict[str, Any], blocks: list[dict[str, Any]], at: int, record: int
    ) -> None:
        parts = [part_of(each, f"{name}:{n}", at, record) for n, each in enumerate(blocks)]
        own = mapping(message.get("metadata"))
        if own.get("displayOnly") is True or own.get("displayRole") == "error":
            words = "\n".join(part.data["text"] for part in parts if part.type == "text")
            error = data_part("error", {"message": words}, at, record)
            self._add(MessageDraft(name, "system", at, at, {}, [error]), record)
            return
        draft = MessageDraft(name, "assistant", at, at, _answered(message), parts)
        if "usage" in draft.metadata and name == message.get("id"):
            draft.answer = ApiAnswer(name)
        self._add(draft, record)
        for part in parts:
            if part.tool_call_id is not None:
                self._calls[part.tool_call_id] = part, draft
                self._early.join(part.tool_call_id, part, draft, self.found)

    def _add(self, draft: MessageDraft, record: int) -> None:
        if not draft.parts:
            draft.records = (record,)
        self.found.append(draft)

    def _result(self, block: dict[str, Any], name: str, at: int, record: int) -> None:
        known = self._calls.get(string(block.get("tool_use_id")) or "")
        if known is None:
            call = {"type": "tool_use", "id": block.get("tool_use_id"), "name": block.get("name")}
            part = part_of(call, name, at, record)
            known = part, MessageDraft(name, "assistant", at, at, {}, [part])
            self._add(known[1], record)
            self._early.hold(part.tool_call_id or "", *known)
        part, owner = known
        status, words = result_of(block)
        settle(part, status, words, at, record)
        owner.updated_at = max(owner.updated_at, part.updated_at)

    def activity(self, status: str | None, since: int) -> dict[str, Any] | None:
        """Return what is known of how the session ended; None where it rests.

        Args:
            status: The program's own word. It says ``failed`` of sessions that did not fail.
            since: When the session was written last, epoch ms.
        """
        last = self.found[-1] if self.found else None
        if last is not None and any(part.type == "data-error" for part in last.parts):
            return {"state": "error", "from": "stored", "since": since}
        if status == "running":
            return {"state": "running", "from": "stored", "since": since}
        if status == "cancelled":
            return {"state": "interrupted", "from": "stored", "since": since}
        if status is None and last is not None:
            waits = any(part.tool_state == "input-available" for part in last.parts)
            if waits or last.role == "user":
                return {"state": "running", "from": "guessed", "since": since}
        return None


def _answered(message: dict[str, Any]) -> dict[str, Any]:
    """Return what an answer says of itself: tokens, model, cost.

    The input holds what was read from the cache and written to it.
    """
    found: dict[str, Any] = {}
    info, used = mapping(message.get("modelInfo")), mapping(message.get("metrics"))
    model = string(info.get("id"))
    if model is not None:
        provider = string(info.get("provider")) or "unknown"
        found["model"] = {"provider_id": provider, "model_id": model}
    if used:
        given, said, read, write = (
            max(0, number(used.get(key)))
            for key in ("inputTokens", "outputTokens", "cacheReadTokens", "cacheWriteTokens")
        )
        found["usage"] = {
            "input": max(0, given - read - write), "output": said, "reasoning": 0,
            "cache_read": read, "cache_write": write,
        }  # fmt: skip
        cost = used.get("cost")
        if isinstance(cost, int | float) and 0 < cost < 1e9:
            found["cost_usd"] = cost
    return found


def _link(folder: Folder, draft: SessionDraft, built: Messages, facts: Facts) -> int:
    """Say what a fork or a restored session was copied from; return how many messages are copies.

    A parent whose file is gone does not say which they are: those from before the copy.
    """
    fork = mapping(facts.metadata.get("fork"))
    parent = (string(fork.get("forkedFromSessionId"))
              or string(facts.metadata.get("restoredFromSessionId")))  # fmt: skip
    if parent is None or parent == draft.source_id:
        return 0
    made = epoch_ms(fork.get("forkedAt")) or _begun(draft)
    theirs = _ids_in(folder, parent)
    copied = 0
    for place, message in enumerate(draft.messages, 1):
        old = message.source_id in theirs if theirs else message.created_at < made
        if not old:
            break
        message.inherited_from = message.source_id
        copied = place
    at = draft.messages[copied - 1].source_id if copied else None
    draft.lineage = LineageDraft("fork", parent, at)
    return copied


def _begun(draft: SessionDraft) -> int:
    """Return when a session was begun, which its id says too: a later start is no beginning."""
    named = draft.source_id.partition("_")[0]
    at = epoch_ms(int(named)) if named.isdecimal() and len(named) < 16 else None
    return min(at or draft.created_at, draft.created_at)


def _ids_in(folder: Folder, session_id: str) -> Collection[str]:
    """Return the ids of a session's messages; none where that is not known."""
    if os.path.basename(session_id) != session_id:
        return ()
    path = os.path.join(os.path.dirname(folder.path), session_id, session_id + MESSAGES)
    folder.depends.looked.append(FileStamp.now(path))
    records: Sequence[Any]
    try:
        records = mapping(parse_document(read_regular(path))[0]).get("messages") or ()
    except (OSError, LineError):
        folder.depends.wants.add(SESSION_FACT + session_id)
        records = [decoded(each) for each in folder.library.records(session_id)]
    listed = records if isinstance(records, Sequence) else ()
    return {name for each in listed if (name := string(mapping(each).get("id")))}


def _compact(draft: SessionDraft, built: Messages, compaction: dict[str, Any], copied: int) -> None:
    """Put a line where the model has a summary of what is before."""
    listed = compaction.get("messages")
    kept = [mapping(each) for each in listed] if isinstance(listed, list) else []
    first = next(
        (
            each
            for each in kept
            if mapping(each.get("metadata")).get("kind") == _SUMMARY
        ),
        {},
    )
    own = mapping(first.get("metadata"))
    count = max(0, number(compaction.get("source_message_count")))
    draft.records = [*draft.records, record_bytes(compaction)]
    made = (epoch_ms(own.get("generatedAt")) or epoch_ms(compaction.get("updated_at"))
            or draft.updated_at)  # fmt: skip
    names = {each.source_id for each in draft.messages}
    tail = next((name for each in kept if (name := string(each.get("id"))) in names), None)
    body: dict[str, Any] = {
        "summary": string(own.get("summary")) or "", "tail_start_id": tail, "auto": False,
        "details": {"removedCount": count},
    }  # fmt: skip
    if number(own.get("tokensBefore")) > 0:
        body["details"]["tokensBefore"] = number(own["tokensBefore"])
    place = built.places[min(count, len(built.places)) - 1] if count and built.places else 0
    at = max(made, draft.messages[place - 1].created_at) if place else made
    part = data_part("compaction", body, at, len(draft.records) - 1)
    line = MessageDraft(f"compaction:{made}", "system", at, at, {"compaction": True}, [part])
    if place <= copied and draft.lineage is not None and made <= _begun(draft):
        line.inherited_from = line.source_id
    draft.messages = [*draft.messages[:place], line, *draft.messages[place:]]


def _name_calls(drafts: list[SessionDraft]) -> None:
    """Say of each child which call started it, and of the call which session it started."""
    by_id = {draft.source_id: draft for draft in drafts}
    used: set[int] = set()
    for child in drafts:
        parent = by_id.get(child.lineage.parent_source_id) if child.lineage is not None else None
        if parent is None or child.lineage is None or child.lineage.kind != "subagent":
            continue
        call = next((part for message in parent.messages for part in message.parts
                     if id(part) not in used and _starts(part, child)), None)  # fmt: skip
        if call is not None:
            used.add(id(call))
            child.lineage.tool_call_id = call.tool_call_id
            bag = call.data.setdefault("resultProviderMetadata", {}).setdefault("backscroll", {})
            bag["child_session_source_id"] = child.source_id


def _starts(part: PartDraft, child: SessionDraft) -> bool:
    """Return whether a call started a child: by its task, and the teammate it names."""
    if part.type not in (_SPAWN, _RUN_TASK):
        return False
    given = mapping(part.data.get("input"))
    agent, named = string(given.get("agentId")), child.metadata["backscroll"].get("agent_name")
    if part.type == _RUN_TASK and agent != named:
        return False
    task = string(given.get("task")) or ""
    first = next((each for each in child.messages if each.role == "user"), None)
    words = "\n".join(p.data["text"] for p in first.parts if p.type == "text") if first else ""
    return bool(task) and task in words
