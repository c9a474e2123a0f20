"""A chat of Cursor's command line: its database and the file beside it, to a draft.

Source: the Cursor format page, section 3. What the newest root no longer names was compacted, or
cut away where the chat still begins as it did. Nothing says what was spent.
"""

from __future__ import annotations

import hashlib
import os
import re
import sqlite3
from pathlib import Path
from typing import Any

from store.sources.base.content_blocks import blocks_of, text_of
from store.sources.base.databases import columns, decoded, record_bytes
from store.sources.base.drafts import MessageDraft, PartDraft, SessionDraft
from store.sources.base.json_values import LineError, parse_json
from store.sources.base.plain_parts import (
    call_part,
    data_part,
    reasoning_part,
    settle_call,
    text_part,
)
from store.sources.base.protocol import FileStamp, Problem
from store.sources.base.titles import FIRST_PROMPT, first_prompt, shortened
from store.sources.base.values import epoch_ms, mapping, string
from store.sources.cursor.bubbles import PROVIDER, model_of
from store.sources.cursor.graph import Listed, Root, history, root_of, workspace_of
from store.sources.cursor.workspaces import KIND
from store.system.paths import read_regular

STORE, META = "store.db", "meta.json"
_SECRET = "encryptionkey"
_UNTITLED = "New Agent"
_QUERY = re.compile(r"<user_query>\n?(.*?)\n?</user_query>", re.S)
_CONTEXT = re.compile(r"\s*<(?:user_info|system_reminder|project_layout|rules|git_status)\b")
_SUMMARY = re.compile(
    r"\s*(?:<(?:conversation_|previous_conversation_)?summary>"
    r"|\[?(?:previous |prior )?conversation summary\b)", re.I)  # fmt: skip
_EXIT = re.compile(r"exited with code (\d{1,9})")
_FAILED = "Error:"


def is_chat(connection: sqlite3.Connection) -> bool:
    """Tell a chat's database by its two tables."""
    return {"id", "data"} <= columns(connection, "blobs") and (
        {"key", "value"} <= columns(connection, "meta")
    )


def read_cli_chat(
    connection: sqlite3.Connection, path: Path, problems: list[Problem]
) -> SessionDraft | None:
    """Return a chat; None where nothing was said yet.

    Args:
        connection: The database, open for reading.
        path: Its file.
        problems: Takes what is damaged.
    """
    beside, damaged = _meta_file(path.with_name(META), problems)
    chat = _Chat(_meta(connection), beside, connection, path, problems)
    draft = chat.draft()
    if draft is not None and damaged:
        draft.tells_title = False
    return draft


def _meta(connection: sqlite3.Connection) -> dict[str, Any]:
    """Return what the database says of its chat: JSON, mostly as hex."""
    row = connection.execute("SELECT value FROM meta WHERE key = '0'").fetchone()
    value = row[0] if row is not None else None
    text = value.decode("utf-8", "replace") if isinstance(value, bytes) else value
    if isinstance(text, str) and not text.lstrip().startswith("{"):
        try:
            text = bytes.fromhex(text).decode("utf-8", "replace")
        except ValueError:
            return {}
    return mapping(decoded(text))


def _meta_file(path: Path, problems: list[Problem]) -> tuple[dict[str, Any], bool]:
    """Return what the file beside a database says, and whether it is damaged.

    Args:
        path: The file; older chats have none.
        problems: Takes what is wrong with it.
    """
    if not FileStamp.now(str(path)).inode:
        return {}, False
    try:
        return mapping(parse_json(read_regular(path))[0]), False
    except (OSError, LineError) as error:
        problems.append(Problem(str(path), 0, str(error)))
        return {}, True


class _Chat:
    """One chat as it is read."""

    def __init__(
        self,
        meta: dict[str, Any],
        beside: dict[str, Any],
        connection: sqlite3.Connection,
        path: Path,
        problems: list[Problem],
    ) -> None:
        self._meta, self._beside, self._path, self._problems = meta, beside, path, problems
        self._messages: dict[str, dict[str, Any]] = {}
        self._raw: dict[str, bytes] = {}
        self._roots: dict[str, Root] = {}
        for name, data in connection.execute("SELECT id, data FROM blobs ORDER BY rowid"):
            self._blob(str(name), data)
        self._records: list[bytes] = []
        self._calls: dict[str, tuple[PartDraft, MessageDraft]] = {}
        self._found: list[MessageDraft] = []
        self._names: set[str] = set()
        self._places: list[str] = []
        self._prompts: dict[str, str] = {}
        self._digest: str | None = None
        self.compacted = 0

    def _blob(self, name: str, data: object) -> None:
        raw = data.encode("utf-8", "surrogatepass") if isinstance(data, str) else data
        if not isinstance(raw, bytes):
            return
        if raw[:1] == b"{":
            try:
                value = parse_json(raw, may_be_wrapped=False)[0]
            except LineError as error:
                self._problems.append(Problem(str(self._path), 0, f"blob {name[:12]}: {error}"))
                return
            if string(mapping(value).get("role")):
                self._messages[name], self._raw[name] = value, raw
            return
        root = root_of(raw)
        if root is not None:
            self._roots[name] = root

    def _listed(self) -> tuple[list[Listed], Root]:
        """Return the messages in order, and the root that the chat is now."""
        newest = self._roots.get(string(self._meta.get("latestRootBlobId")) or "")
        if newest is None:
            return [Listed(name, None, now=True) for name in self._messages], Root()
        return history(list(self._roots.values()), newest), newest

    def draft(self) -> SessionDraft | None:
        """Return the session; None where no message is there."""
        listed, newest = self._listed()
        listed = [one for one in listed if one.id in self._messages]
        name = string(self._meta.get("agentId")) or self._path.parent.name
        created = (
            epoch_ms(self._beside.get("createdAtMs"))
            or epoch_ms(self._meta.get("createdAt"))
            or min((one.at for one in listed if one.at), default=0)
        )
        kept = {key: value for key, value in self._meta.items()
                if not key.lower().endswith(_SECRET)}  # fmt: skip
        self._records = [record_bytes({"meta": kept, "file": self._beside})]
        gone = [one for one in listed if not one.now]
        rewound = bool(gone) and self._begins_the_same(listed)
        at = created
        for one in listed:
            at = max(at, one.at or 0)
            self._take(one, at, hide=rewound and not one.now)
        if not self._found:
            return None
        updated = epoch_ms(self._beside.get("updatedAtMs")) or newest.at or at
        draft = SessionDraft(
            name, str(self._path), KIND, created, max(created, updated), messages=self._found,
            records=self._records, workspace_root=string(self._beside.get("cwd"))
            or newest.workspace or next(iter(self._places), None),
        )  # fmt: skip
        draft.system_prompts = self._prompts
        self._hide_rewound(draft)
        if gone and not rewound:
            self._draw_compaction(listed)
        self._name(draft)
        self._say(draft, newest)
        return draft

    def _begins_the_same(self, listed: list[Listed]) -> bool:
        """Return whether the chat still begins with its first prompt: then its end was cut."""
        first = next((one for one in listed if _is_prompt(self._messages[one.id])), None)
        return first is not None and first.now

    def _hide_rewound(self, draft: SessionDraft) -> None:
        hidden = [each for each in self._found if "hidden_at" in each.metadata]
        last = max((each.updated_at for each in hidden), default=0)
        for message in hidden:
            message.metadata["hidden_at"] = max(last + 1, draft.created_at)

    def _draw_compaction(self, listed: list[Listed]) -> None:
        """Put the line of a compaction before what the newest root still has."""
        if any("compaction" in each.metadata for each in self._found):
            return
        kept = {one.id for one in listed if one.now and _is_prompt(self._messages[one.id])}
        place = next((nth for nth, each in enumerate(self._found)
                      if each.source_id.partition(":")[0] in kept), len(self._found))  # fmt: skip
        tail = self._found[place].source_id if place < len(self._found) else None
        at = self._found[max(0, place - 1)].updated_at
        body = {"summary": "", "tail_start_id": tail, "auto": True}
        self._found.insert(place, MessageDraft(
            "compaction", "system", at, at, {"compaction": True},
            [data_part("compaction", body, at, 0)]))  # fmt: skip

    # --- messages

    def _take(self, one: Listed, at: int, *, hide: bool) -> None:
        message = self._messages[one.id]
        record = len(self._records)
        self._records.append(self._raw[one.id])
        name, count = one.id, 1
        while name in self._names:
            # An equal message is stored once.
            count += 1
            name = f"{one.id}:{count}"
        self._names.add(name)
        before = len(self._found)
        role = message.get("role")
        if role == "assistant":
            self._answer(name, message, at, record)
        elif role == "tool":
            self._results(name, message, at, record)
        elif role == "system":
            text = text_of(message.get("content"))
            self._digest = hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()
            self._prompts[self._digest] = text
        elif role == "user":
            self._user(name, message, at, record, now=one.now)
        if hide:
            for each in self._found[before:]:
                each.metadata["hidden_at"] = at
        elif not one.now and role == "user" and _is_prompt(message):
            self.compacted += 1

    def _user(self, name: str, message: dict[str, Any], at: int, record: int, *, now: bool) -> None:
        parts: list[PartDraft] = []
        context: list[PartDraft] = []
        for block in blocks_of(message.get("content")):
            text = block.get("text") if block.get("type") == "text" else None
            if not isinstance(text, str):
                parts.append(_other(block, at, record))
            elif _is_summary(message, text):
                body = {"summary": text, "tail_start_id": None, "auto": True}
                self._found.append(MessageDraft(
                    name, "system", at, at, {"compaction": True},
                    [data_part("compaction", body, at, record)]))  # fmt: skip
                return
            elif (typed := asked(text)) is not None:
                parts.append(text_part(typed, at, record))
            else:
                place = workspace_of(text)
                self._places += [place] if place else []
                details = {"name": "context", "details": text}
                context.append(data_part("event", details, at, record))
        if parts:
            self._found.append(
                MessageDraft(name, "user", at, at, {"origin": "human"}, parts + context)
            )
        elif context:
            self._found.append(MessageDraft(name, "user", at, at, {"origin": "meta"}, context))

    def _answer(self, name: str, message: dict[str, Any], at: int, record: int) -> None:
        draft = MessageDraft(name, "assistant", at, at)
        for nth, block in enumerate(blocks_of(message.get("content"))):
            kind, text = block.get("type"), block.get("text")
            if kind == "text":
                draft.parts.append(text_part(text if isinstance(text, str) else "", at, record))
            elif kind == "reasoning":
                draft.parts.append(reasoning_part(text, at, record))
            elif kind == "redacted-reasoning":
                kept = {"data": block["data"]} if string(block.get("data")) else {}
                draft.parts.append(reasoning_part("", at, record, PROVIDER, kept))
            elif kind == "tool-call":
                call_id = string(block.get("toolCallId")) or f"{name}:{nth}"
                part = call_part(block.get("toolName"), call_id, decoded(block.get("args")), at,
                                 record)  # fmt: skip
                draft.parts.append(part)
                self._calls[call_id] = part, draft
            else:
                draft.parts.append(_other(block, at, record))
        model = model_of(
            mapping(mapping(message.get("providerOptions")).get("cursor")).get("modelName")
        )
        if model is not None:
            draft.metadata["model"] = model
        if self._digest is not None:
            draft.metadata["system_prompt_digest"] = self._digest
        if not draft.parts:
            draft.records = (record,)
        self._found.append(draft)

    def _results(self, name: str, message: dict[str, Any], at: int, record: int) -> None:
        for nth, block in enumerate(blocks_of(message.get("content"))):
            if block.get("type") != "tool-result":
                continue
            call_id = string(block.get("toolCallId")) or f"{name}:{nth}"
            known = self._calls.get(call_id)
            if known is None:
                part = call_part(block.get("toolName"), call_id, None, at, record)
                known = part, MessageDraft(f"{name}:{nth}", "assistant", at, at, {}, [part])
                self._found.append(known[1])
                self._calls[call_id] = known
            part, owner = known
            _settle(part, block, at, record)
            owner.updated_at = max(owner.updated_at, part.updated_at)

    # --- what the chat says of itself

    def _name(self, draft: SessionDraft) -> None:
        named = (self._meta.get("name"), self._beside.get("title"))
        title = next((each for each in named if string(each) and each != _UNTITLED), None)
        draft.title = shortened(title) if title else first_prompt(draft.messages)
        draft.title_from = "name" if title else FIRST_PROMPT if draft.title else None
        draft.tells_title = title is not None

    def _say(self, draft: SessionDraft, newest: Root) -> None:
        models = [each.metadata["model"] for each in draft.messages if "model" in each.metadata]
        draft.model = models[-1] if models else model_of(self._meta.get("lastUsedModel"))
        extra: dict[str, Any] = {"surface": "cli"}
        if string(self._meta.get("mode")):
            extra["mode"] = self._meta["mode"]
        if newest.context:
            extra["context_tokens"] = newest.context
        if self.compacted:
            extra["compacted_prompts"] = self.compacted
        if self._beside.get("isSubagent") is True:
            extra["helper"] = "subagent"
        draft.metadata["backscroll"] = extra
        shown = [each for each in draft.messages if "hidden_at" not in each.metadata
                 and each.role != "system" and each.metadata.get("origin") != "meta"]  # fmt: skip
        last = shown[-1] if shown else None
        states = {part.tool_state for part in last.parts if part.tool_call_id} if last else set()
        if last is not None and (last.role == "user" or states):
            draft.metadata["activity"] = {
                "state": "running", "from": "guessed", "since": draft.updated_at,
            }  # fmt: skip


def asked(text: str) -> str | None:
    """Return what a person typed in a text; None for context."""
    found = _QUERY.search(text)
    if found is not None:
        return found[1]
    return None if _CONTEXT.match(text) else text


def _is_summary(message: dict[str, Any], text: str) -> bool:
    told = mapping(mapping(message.get("providerOptions")).get("cursor"))
    return told.get("isSummary") is True or _SUMMARY.match(text) is not None


def _is_prompt(message: dict[str, Any]) -> bool:
    if message.get("role") != "user":
        return False
    texts = [block.get("text") for block in blocks_of(message.get("content"))]
    return any(isinstance(text, str) and asked(text) is not None
               and not _is_summary(message, text) for text in texts)  # fmt: skip


def _other(block: dict[str, Any], at: int, record: int) -> PartDraft:
    """Return an image, or what is not known by its name."""
    if block.get("type") in ("image", "file"):
        given = block.get("image", block.get("data"))
        media = string(block.get("mediaType")) or string(block.get("mimeType")) or "image/png"
        if isinstance(given, str) and given:
            is_url = given.startswith(("data:", "http:", "https:", "file:"))
            url = given if is_url else f"data:{media};base64,{given}"
            file = {"type": "file", "mediaType": media, "url": url}
            return PartDraft("file", file, at, at, records=(record,))
    event = {"name": str(block.get("type") or "block"), "details": block}
    return data_part("event", event, at, record)


def _settle(part: PartDraft, block: dict[str, Any], at: int, record: int) -> None:
    """Put a result into the part of its call; a second one is left out.

    Args:
        part: The call's part.
        block: The result.
        at: Epoch ms.
        record: The number of its record.
    """
    result = block.get("result", block.get("output"))
    words = result if isinstance(result, str) else None
    code = _EXIT.search(words[:2000]) if words is not None else None
    failed = block.get("isError") is True or (
        "isError" not in block and words is not None and words.startswith(_FAILED)
    )
    extra = {"exit_code": int(code[1])} if code is not None else {}
    shown = result if result is not None else ""
    settle_call(part, "error" if failed else "ok", str(shown) if failed else shown, at, record,
                extra)  # fmt: skip


def stamps_of(folder: str) -> list[FileStamp]:
    """Return the stamps of a chat's files: the database, what is not yet in it, the one beside."""
    names = (STORE, f"{STORE}-wal", META)
    stamps = (FileStamp.now(os.path.join(folder, name)) for name in names)
    return [stamp for stamp in stamps if stamp.inode]
