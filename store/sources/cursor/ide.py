"""A chat of Cursor's editor, from its row and the rows of its bubbles to a draft.

Source: the Cursor format page, section 2. The list of headers is the only order; rows that no
header names were made anew or cut away. Nothing is selected but by the keys of one chat.
"""

from __future__ import annotations

import json
import os
import sqlite3
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from store.sources.base.databases import columns, decoded, rows
from store.sources.base.drafts import LineageDraft, MessageDraft, SessionDraft
from store.sources.base.growing import Depends
from store.sources.base.json_values import LineError, parse_json
from store.sources.base.protocol import Fact, Library
from store.sources.base.row_session import RowSession
from store.sources.base.titles import FIRST_PROMPT, first_prompt, shortened
from store.sources.base.values import epoch_ms, mapping, number, string
from store.sources.cursor.bubbles import (
    Messages,
    answer_parts,
    model_of,
    place_of,
    prompt_parts,
    time_of,
)
from store.sources.cursor.workspaces import KIND, STORAGE, Workspaces, place_at

COMPOSER, BUBBLE = "composerData:", "bubbleId:"
HEADERS, LIST = "composerHeaders", "composer.composerHeaders"
"""The table of chats, and the key of the list that was there before."""
CHILD = "child:"
"""Fact: a chat is another one's helper, or one of its candidates."""
_SECRET = "encryptionkey"
_DRAFT = frozenset({"text", "richText"})
"""What stands unsent in the box; never a message."""
_NO_TITLE = "New chat"
_PARENTS = ("parentComposerId", "parentConversationId", "parentAgentId", "parentId")
_MODES = {1: "chat", 2: "agent", 4: "edit", 5: "plan"}
_STATES = {"error": "error", "aborted": "interrupted"}
_LONGEST_TEXT = 64 * 1024
_MOST_EDITS = 200


def above(prefix: str) -> str:
    """Return the first key after all that begin with a prefix, which ends with ``:``."""
    return prefix[:-1] + ";"


@dataclass(slots=True)
class Editor:
    """Where a chat was found.

    Attributes:
        user: The ``User`` folder; None where a database was opened alone.
        workspaces: The lists of chats of its workspaces.
        library: Has what chats say of others.
        depends: Takes what the chat tells others, and would want to know of them.
        listed: What the list says of the chat; empty where it does not have it.
    """

    user: str | None
    workspaces: Workspaces
    library: Library
    depends: Depends
    listed: dict[str, Any]


def read_chat(
    connection: sqlite3.Connection, path: Path, name: str, editor: Editor
) -> tuple[SessionDraft | None, RowSession]:
    """Return a chat with its rows; None for one that is gone, a draft, or just begun.

    Args:
        connection: The database, open for reading.
        path: Its file.
        name: The chat's id.
        editor: Where it was found.
    """
    session = RowSession(name, str(path))
    value = _value(connection, COMPOSER + name)
    if value is None:
        return None, session
    data = mapping(_parsed(value, session, "its row"))
    head = _head(connection, name)
    chat = _Chat(connection, session, data, head, editor)
    return chat.draft(), session


def has_chat(connection: sqlite3.Connection, name: str) -> bool:
    """Return whether the editor has a chat in which something was said, or had one.

    Args:
        connection: The database, open for reading.
        name: The chat's id.
    """
    key, prefix = COMPOSER + name, f"{BUBBLE}{name}:"
    row = connection.execute(
        "SELECT value IS NULL FROM cursorDiskKV WHERE key = ?", (key,)
    ).fetchone()
    if row is None or row[0]:
        # A chat that was deleted stays as a row without a value.
        return row is not None
    said = connection.execute(
        "SELECT 1 FROM cursorDiskKV WHERE key >= ? AND key < ? AND value IS NOT NULL LIMIT 1",
        (prefix, above(prefix)),
    ).fetchone()
    return said is not None or bool(mapping(decoded(_value(connection, key))).get("conversation"))


def _value(connection: sqlite3.Connection, key: str) -> Any:
    found = connection.execute("SELECT value FROM cursorDiskKV WHERE key = ?", (key,)).fetchone()
    return found[0] if found is not None else None


def _parsed(value: object, session: RowSession, what: str) -> Any:
    """Return a value's JSON, which may be text or bytes; None where it is damaged.

    Args:
        value: The value.
        session: Takes what is wrong with it.
        what: Names it in the problem.
    """
    raw = value.encode("utf-8", "surrogatepass") if isinstance(value, str) else value
    try:
        if not isinstance(raw, bytes):
            raise LineError("no text")
        return parse_json(raw, may_be_wrapped=False)[0]
    except LineError as error:
        session.complain(f"{what}: {error}")
        return None


def _head(connection: sqlite3.Connection, name: str) -> dict[str, Any]:
    """Return what the table of chats says of one; empty where it has none or is not there."""
    if "composerId" not in columns(connection, HEADERS):
        return {}
    found = rows(connection, f"SELECT * FROM {HEADERS} WHERE composerId = ?", (name,))
    return found[0] if found else {}


def _without_secrets(value: Any) -> Any:
    """Return a value without keys of ciphers, wherever they stand."""
    if isinstance(value, dict):
        return {key: _without_secrets(each) for key, each in value.items()
                if not key.lower().endswith(_SECRET)}  # fmt: skip
    return [_without_secrets(each) for each in value] if isinstance(value, list) else value


class _Chat:
    """One chat as it is read."""

    def __init__(
        self,
        connection: sqlite3.Connection,
        session: RowSession,
        data: dict[str, Any],
        head: dict[str, Any],
        editor: Editor,
    ) -> None:
        self._connection, self._session, self._editor = connection, session, editor
        self._data, self._head = data, head
        self._told = mapping(decoded(head.get("value"))) or editor.listed
        self._edits = 0
        self._orphans: dict[str, tuple[dict[str, Any], int]] = {}
        self._missing = self._unreadable = 0

    def draft(self) -> SessionDraft | None:
        """Return the session; None where nothing was said yet."""
        data, session = self._data, self._session
        kept = {key: each for key, each in data.items()
                if key not in _DRAFT and key != "conversation"}  # fmt: skip
        session.keep("cursorDiskKV", {"key": COMPOSER + session.id, **_without_secrets(kept)})
        created = epoch_ms(data.get("createdAt")) or epoch_ms(self._head.get("createdAt")) or 0
        made = Messages(created, self._contents)
        listed = list(self._bubbles())
        if not listed:
            return None
        summary = mapping(data.get("latestConversationSummary"))
        for name, bubble, record in listed:
            made.take(name, bubble, record)
            self._summarise(summary, name, listed, made)
        times = [at for _, bubble, _ in listed if (at := epoch_ms(bubble.get("createdAt")))]
        created = created or min(times, default=0)
        updated = max(
            [
                created,
                *times,
                *(
                    epoch_ms(value) or 0
                    for value in (
                        data.get("lastUpdatedAt"),
                        self._head.get("lastUpdatedAt"),
                        self._head.get("recency"),
                    )
                ),
            ]
        )
        draft = SessionDraft(
            session.id,
            session.path,
            KIND,
            created,
            updated,
            messages=self._with_orphans(made.found),
            records=session.records,
        )
        self._place(draft)
        self._say(draft, made)
        self._link(draft)
        return draft

    # --- bubbles

    def _bubbles(self) -> Iterator[tuple[str, dict[str, Any], int]]:
        """Yield the bubbles that are part of the chat, in order, each with its record."""
        inline = self._data.get("conversation")
        if isinstance(inline, list) and inline:
            yield from self._inline(inline)
            return
        stored = self._rows()
        headers = self._data.get("fullConversationHeadersOnly")
        listed: dict[str, None] = {}
        for header in map(mapping, headers if isinstance(headers, list) else ()):
            name = string(header.get("bubbleId"))
            if name is not None:
                listed[name] = None
        for name in listed:
            if name in stored:
                bubble = stored.pop(name)
                yield name, bubble, self._keep(name, bubble)
            else:
                self._missing += 1
        if len(listed) > self._missing:
            self._orphans = {name: (bubble, self._keep(name, bubble))
                             for name, bubble in stored.items()}  # fmt: skip

    def _rows(self) -> dict[str, dict[str, Any]]:
        prefix = f"{BUBBLE}{self._session.id}:"
        found: dict[str, dict[str, Any]] = {}
        for key, value in self._connection.execute(
            "SELECT key, value FROM cursorDiskKV WHERE key >= ? AND key < ?",
            (prefix, above(prefix)),
        ):
            name = str(key).removeprefix(prefix)
            if value is None:
                continue
            bubble = _parsed(value, self._session, f"bubble {name}")
            if isinstance(bubble, dict):
                found[name] = bubble
            else:
                self._unreadable += 1
        return found

    def _keep(self, name: str, bubble: dict[str, Any]) -> int:
        key = f"{BUBBLE}{self._session.id}:{name}"
        return self._session.keep("cursorDiskKV", {"key": key, **_without_secrets(bubble)})

    def _inline(self, inline: list[Any]) -> Iterator[tuple[str, dict[str, Any], int]]:
        """Yield the bubbles of the first versions, whose calls are kept apart from them."""
        calls: dict[str, Any] = {}
        given = self._data.get("capabilities")
        for capability in map(mapping, given if isinstance(given, list) else ()):
            told = decoded(mapping(capability.get("data")).get("bubbleDataMap"))
            calls |= mapping(told)
        for nth, bubble in enumerate(map(mapping, inline)):
            name = string(bubble.get("bubbleId")) or str(nth)
            if name in calls and "toolFormerData" not in bubble:
                bubble = {**bubble, "toolFormerData": mapping(calls[name])}
            yield name, bubble, self._keep(name, bubble)

    def _contents(self, key: str) -> str | None:
        """Return the text of a file before or after an edit."""
        self._edits += 1
        if self._edits > 2 * _MOST_EDITS or not key.startswith("composer.content."):
            return None
        found = self._connection.execute(
            "SELECT value FROM cursorDiskKV WHERE key = ? AND length(value) <= ?",
            (key, _LONGEST_TEXT),
        ).fetchone()
        value = found[0] if found is not None else None
        if isinstance(value, bytes):
            return value.decode("utf-8", "replace")
        return value if isinstance(value, str) else None

    def _with_orphans(self, listed: list[MessageDraft]) -> list[MessageDraft]:
        """Return the messages with those that were made anew or cut away, which are hidden."""
        found, hidden = list(listed), list[MessageDraft]()
        for name, (bubble, record) in self._orphans.items():
            is_prompt = bubble.get("type") == 1
            at = time_of(bubble) or max((each.updated_at for each in listed), default=0)
            parts = (
                list(prompt_parts(bubble, at, record))
                if is_prompt
                else answer_parts(name, bubble, at, record, self._contents)
            )
            role = "user" if is_prompt else "assistant"
            metadata: dict[str, Any] = {"origin": "human"} if is_prompt else {}
            message = MessageDraft(
                name,
                "user" if role == "user" else "assistant",
                at,
                at,
                metadata,
                parts,
                records=() if parts else (record,),
            )
            model = model_of(mapping(bubble.get("modelInfo")).get("modelName"))
            if model is not None and not is_prompt:
                message.metadata["model"] = model
            hidden.append(message)
        hidden.sort(key=lambda each: each.created_at)
        groups: dict[int, list[MessageDraft]] = {}
        for message in hidden:
            place = next(
                (nth for nth, each in enumerate(listed) if each.created_at > message.created_at),
                len(listed),
            )
            groups.setdefault(place, []).append(message)
        for place, group in sorted(groups.items(), reverse=True):
            last = max(message.updated_at for message in group)
            at = listed[place].created_at if place < len(listed) else last + 1
            for message in group:
                message.metadata["hidden_at"] = max(at, message.created_at + 1)
            found[place:place] = group
        return found

    def _summarise(
        self,
        told: dict[str, Any],
        name: str,
        listed: list[tuple[str, dict[str, Any], int]],
        made: Messages,
    ) -> None:
        """Add the summary of older versions behind the bubble that it was made after."""
        summary = mapping(told.get("summary"))
        text, cut = string(summary.get("summary")), self._compacted_through()
        last = string(told.get("lastBubbleId")) or cut
        if text is None or name != last:
            return
        draft = made.add_summary(f"{name}:summary", text, made.found[-1].updated_at
                                 if made.found else 0, 0)  # fmt: skip
        names = [each for each, _, _ in listed]
        after = names[names.index(cut) + 1 :] if cut in names else []
        if after and after[0] in made.by_bubble:
            tail = made.by_bubble[after[0]].source_id
            draft.parts[0].data["data"]["tail_start_id"] = tail

    def _compacted_through(self) -> str | None:
        summary = mapping(mapping(self._data.get("latestConversationSummary")).get("summary"))
        return string(summary.get("truncationLastBubbleIdInclusive"))

    # --- what the chat says of itself

    def _place(self, draft: SessionDraft) -> None:
        """Find the workspace, the branch and the title, from the nearest that names them."""
        extra: dict[str, Any] = {"surface": "ide"}
        draft.metadata["backscroll"] = extra
        for told in (self._data, self._told):
            draft.workspace_root = draft.workspace_root or _identified(told)
        user, entry = self._editor.user, dict[str, Any]()
        looked = self._editor.depends.looked
        if draft.workspace_root is not None:
            extra["workspace_from"] = "workspaceIdentifier"
        name = string(self._head.get("workspaceId"))
        if draft.workspace_root is None and user is not None and name is not None:
            folder = os.path.join(user, STORAGE, os.path.basename(name))
            draft.workspace_root = place_at(folder, self._session.problems, looked)
            if draft.workspace_root is not None:
                extra["workspace_from"] = "workspaceId"
        if draft.workspace_root is None and user is not None and name is None:
            found = self._editor.workspaces.of_chat(user, draft.source_id, looked)
            if found is not None:
                problems, entry = self._session.problems, found.entry
                draft.workspace_root = place_at(found.folder, problems, looked)
                extra["workspace_from"] = "workspace db"
        branch = (
            _branch(self._told)
            or _branch(self._data)
            or string(entry.get("createdOnBranch"))
            or string(self._data.get("createdOnBranch"))
        )
        if branch is not None:
            draft.metadata["git_branch"] = branch
        names = (self._data.get("name"), self._told.get("name"), entry.get("name"))
        title = next((each for each in names if string(each) and each != _NO_TITLE), None)
        draft.tells_title = title is not None
        draft.title = shortened(title) if title else first_prompt(draft.messages)
        draft.title_from = "name" if title else FIRST_PROMPT if draft.title else None

    def _say(self, draft: SessionDraft, made: Messages) -> None:
        """Add mode, model, counts and what the chat does now."""
        data, extra = self._data, draft.metadata["backscroll"]
        archived = number(self._head.get("isArchived")) > 0 or any(
            told.get("isArchived") is True for told in (data, self._told)
        )
        draft.archived_at = draft.updated_at if archived else None
        mode = data.get("unifiedMode")
        mode = string(mode) or _MODES.get(number(mode)) or string(data.get("forceMode"))
        if mode:
            extra["mode"] = mode
        models = [each.metadata["model"] for each in made.found if "model" in each.metadata]
        chosen = model_of(mapping(data.get("modelConfig")).get("modelName"))
        draft.model = models[-1] if models else chosen
        context = number(mapping(data.get("promptTokenBreakdown")).get("totalUsedTokens"))
        for name, count in (
            ("format_version", number(data.get("_v"))), ("context_tokens", context),
            ("nameless_calls", made.nameless), ("orphans", len(self._orphans)),
            ("missing", self._missing), ("unreadable", self._unreadable),
            ("compaction_marks", made.marks),
        ):  # fmt: skip
            if count > 0:
                extra[name] = count
        if any("usage" in each.metadata for each in made.found):
            # Aborted turns count nothing, caches are not noted.
            extra["usage_is_least"] = True
        through = self._compacted_through()
        if through is not None:
            extra["compacted_through"] = through
        status = string(data.get("status")) or ""
        generating = bool(data.get("generatingBubbleIds")) or status == "generating"
        state = "running" if generating else _STATES.get(status)
        if state is not None:
            draft.metadata["activity"] = {
                "state": state, "from": "stored", "since": draft.updated_at,
            }  # fmt: skip

    # --- lineage

    def _link(self, draft: SessionDraft) -> None:
        """Say whose helper or candidate the chat is, and tell its own ones of it."""
        depends = self._editor.depends
        for key, kind in (("subagentComposerIds", "subagent"), ("subComposerIds", "candidate")):
            given = self._data.get(key)
            for child in given if isinstance(given, list) else ():
                if string(child) and child != draft.source_id:
                    told = {"parent": draft.source_id, "kind": kind}
                    fact = Fact(CHILD + child, draft.source_id, json.dumps(told))
                    depends.facts.append(fact)
        self._name_helpers(draft)
        candidate = self._data.get("isBestOfNSubcomposer") is True
        info = mapping(self._data.get("subagentInfo"))
        parent = next((info[key] for key in _PARENTS if string(info.get(key))), None)
        if parent is None:
            depends.wants.add(CHILD + draft.source_id)
            facts = self._editor.library.facts(CHILD + draft.source_id)
            told = mapping(decoded(facts[0].value)) if facts else {}
            parent = string(told.get("parent"))
            candidate = candidate or told.get("kind") == "candidate"
        is_helper = bool(info) or number(self._head.get("isSubagent")) > 0
        if parent is None and (is_helper or candidate):
            parent = self._parent_in_rows(draft.source_id)
        if parent is not None and parent != draft.source_id:
            draft.lineage = LineageDraft("subagent", parent)
        elif is_helper:
            draft.metadata["backscroll"]["helper"] = "subagent"
        if candidate:
            draft.metadata["backscroll"]["candidate"] = True

    def _parent_in_rows(self, name: str) -> str | None:
        """Return the chat whose row names another one as its helper or candidate."""
        for key, value in self._connection.execute(
            "SELECT key, value FROM cursorDiskKV WHERE key >= ? AND key < ? AND key != ?"
            " AND instr(CAST(value AS BLOB), CAST(? AS BLOB)) > 0",
            (COMPOSER, above(COMPOSER), COMPOSER + name, name),
        ):
            data = mapping(decoded(value))
            for listed in ("subagentComposerIds", "subComposerIds"):
                given = data.get(listed)
                if isinstance(given, list) and name in given:
                    return str(key).removeprefix(COMPOSER)
        return None

    def _name_helpers(self, draft: SessionDraft) -> None:
        """Name at each call the helper that it started, where its result does not say it."""
        given = self._data.get("subagentComposerIds")
        left = [each for each in given if string(each)] if isinstance(given, list) else []
        tasks = [
            part
            for message in draft.messages
            for part in message.parts
            if part.type.startswith("tool-task") and "hidden_at" not in message.metadata
        ]
        results = [part.data.get("resultProviderMetadata", {}).get("backscroll") for part in tasks]
        for result in results:
            if result and result.get("child_session_source_id") in left:
                left.remove(result["child_session_source_id"])
        for result in results:
            if result is not None and "child_session_source_id" not in result and left:
                result["child_session_source_id"] = left.pop(0)


def _identified(told: dict[str, Any]) -> str | None:
    """Return the workspace that a chat's identifier names: a folder, or a file of several."""
    identifier = mapping(told.get("workspaceIdentifier"))
    return place_of(identifier.get("uri")) or place_of(identifier.get("configPath"))


def _branch(told: dict[str, Any]) -> str | None:
    """Return the branch that was used last in the first repository that has one."""
    repositories = told.get("trackedGitRepos")
    for each in map(mapping, repositories if isinstance(repositories, list) else ()):
        given = each.get("branches")
        branches = [mapping(one) for one in given] if isinstance(given, list) else []
        named = [one for one in branches if string(one.get("branchName"))]
        if named:
            last = max(named, key=lambda one: number(one.get("lastInteractionAt")))
            return str(last["branchName"])
    return None
