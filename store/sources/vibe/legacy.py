"""A folder of Vibe's older store to its session.

Source: the Mistral Vibe format page, section "Legacy store". Going on wrote a new folder with a
copy of all lines, under the same ids but without a link.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

from store.sources.base.databases import decoded
from store.sources.base.drafts import LineageDraft, MessageDraft, PartDraft, Role, SessionDraft
from store.sources.base.early_results import EarlyResults
from store.sources.base.growing import LINES, Depends, entries_of
from store.sources.base.json_lines import Record, read_head, records_of
from store.sources.base.plain_parts import (
    call_part,
    data_part,
    reasoning_part,
    settle_call,
    text_part,
)
from store.sources.base.protocol import Fact, FileStamp, Library
from store.sources.base.side_file import SideFile
from store.sources.base.titles import FIRST_PROMPT, first_prompt, shortened
from store.sources.base.values import epoch_ms, mapping, number, string
from store.sources.vibe.session import KIND, model_of, used
from store.sources.vibe.snapshot import META
from store.system.paths import open_regular, read_regular

MESSAGES = f"messages{LINES}"
_BEGINS = "begins:"
"""Begins the fact of the first message of a session, for those that copied it."""
_HEAD = 256 * 1024
"""How far into a file its first message is looked for."""
_ERROR, _CANCELLED = "<tool_error>", "<user_cancellation>"
_NOT_KEPT = frozenset({"config", "system_prompt", "tools_available"})


class Family:
    """The older sessions beside each other, by the ids of their messages."""

    def __init__(self) -> None:
        """Start with nothing read."""
        self._ids: dict[str, tuple[FileStamp, list[str]]] = {}
        self._roots: dict[str, tuple[FileStamp, dict[str, str | None]]] = {}

    def original(
        self, path: str, ids: list[str], library: Library, depends: Depends
    ) -> tuple[str, list[str]] | None:
        """Return the session that another one goes on from, and the ids that both have.

        Args:
            path: The file of the other one's messages.
            ids: The ids of its messages.
            library: Has the sessions whose files are gone.
            depends: Takes what was looked at.
        """
        folder = os.path.dirname(path)
        root = os.path.dirname(folder)
        found: list[tuple[int, str, list[str]]] = []
        here: set[str] = set()
        # Names of folders begin with the time at which the session began.
        for each in self._earlier(root, os.path.basename(folder), ids[0]):
            theirs = self._of(os.path.join(root, each, MESSAGES), depends)
            name = _session_id(os.path.join(root, each))
            here.add(name)
            if theirs[:1] == ids[:1]:
                found.append((_shared(theirs, ids), name, theirs))
        for fact in library.facts(_BEGINS + ids[0]):
            theirs = [one.name for one in library.messages(fact.session)]
            if fact.session not in here and fact.value < os.path.basename(folder):
                found.append((_shared(theirs, ids), fact.session, theirs))
        if not found:
            return None
        shared, name, _ = max(found, key=lambda each: each[0])
        return (name, ids[:shared]) if shared else None

    def _earlier(self, root: str, own: str, first: str) -> list[str]:
        """Return the folders before one that begin with a message; each is read once.

        Args:
            root: The folder of all sessions.
            own: The one folder's name.
            first: The message's id.
        """
        stamp, known = FileStamp.now(root), self._roots.get(root)
        if known is None or known[0] != stamp:
            before = known[1] if known is not None else {}
            known = stamp, {entry.name: before.get(entry.name) for entry in entries_of(root)}
            self._roots[root] = known
        found = known[1]
        found[own] = first
        for each in [name for name, told in found.items() if told is None]:
            found[each] = _first_in(os.path.join(root, each, MESSAGES))
        return [name for name, told in found.items() if told == first and name < own]

    def _of(self, path: str, depends: Depends) -> list[str]:
        stamp = FileStamp.now(path)
        depends.looked.append(stamp)
        known = self._ids.get(path)
        if known is None or known[0] != stamp:
            try:
                lines = records_of(read_regular(path))
            except OSError:
                lines = []
            known = self._ids[path] = stamp, _ids_of(lines)
        return known[1]


def _ids_of(lines: Sequence[dict[str, Any]]) -> list[str]:
    """Return the ids of messages, each once: a file may hold lines twice."""
    return [*dict.fromkeys(name for line in lines if (name := string(line.get("message_id"))))]


def _first_in(path: str) -> str | None:
    """Return the id of a file's first message; None where there is none yet."""
    try:
        with open_regular(path) as file:
            return next(iter(_ids_of(records_of(read_head(file, _HEAD)))), None)
    except OSError:
        return None


def _shared(theirs: list[str], ids: list[str]) -> int:
    count = 0
    for one, other in zip(theirs, ids, strict=False):
        if one != other:
            break
        count += 1
    return count


def _session_id(folder: str) -> str:
    try:
        meta = SideFile.read("", read_regular(os.path.join(folder, META)), []).data
    except OSError:
        meta = {}
    return string(meta.get("session_id")) or os.path.basename(folder)


def legacy_draft(
    path: str, lines: list[Record], records: list[bytes], meta: SideFile,
    family: Family, library: Library, depends: Depends,
) -> SessionDraft | None:
    """Return the session of an older folder; None where nothing was said in it.

    Args:
        path: The file of its messages.
        lines: Its lines that are JSON objects.
        records: All its lines.
        meta: The document beside it; it has the session's id.
        family: The other older sessions.
        library: Has the sessions whose files are gone.
        depends: Takes what it tells others, and would want to know of them.
    """
    said = meta.data
    created = epoch_ms(said.get("start_time")) or 0
    updated = epoch_ms(said.get("end_time")) or created
    model = model_of(mapping(said.get("config")).get("active_model"))
    taken = _Lines(created, model)
    for line in lines:
        taken.take(line)
    if not taken.found:
        return None
    about = {key: value for key, value in said.items() if key not in _NOT_KEPT}
    draft = SessionDraft(
        str(said["session_id"]), path, KIND, created, updated,
        workspace_root=string(mapping(said.get("environment")).get("working_directory")),
        messages=taken.found, model=model, records=list(records), tells_title=bool(about),
    )  # fmt: skip
    title = string(said.get("title"))
    draft.title = shortened(title) if title else first_prompt(draft.messages)
    draft.title_from = "title" if title else FIRST_PROMPT if draft.title else None
    if string(said.get("git_branch")):
        draft.metadata["git_branch"] = said["git_branch"]
    _link(draft, _ids_of([line.data for line in lines]), said, family, library, depends)
    if taken.is_open:
        draft.metadata["activity"] = {"state": "running", "from": "guessed", "since": updated}
    stats = mapping(said.get("stats"))
    tokens = {
        "input": max(0, number(stats.get("session_prompt_tokens"))),
        "output": max(0, number(stats.get("session_completion_tokens"))),
        "reasoning": 0, "cache_read": 0, "cache_write": 0,
    }  # fmt: skip
    if any(tokens.values()):
        draft.messages.append(used(draft, tokens))
    return draft


def _link(
    draft: SessionDraft, ids: list[str], said: dict[str, Any], family: Family,
    library: Library, depends: Depends,
) -> None:
    parent = string(said.get("parent_session_id"))
    shared: list[str] = []
    if ids:
        name = os.path.basename(os.path.dirname(draft.path))
        depends.facts.append(Fact(_BEGINS + ids[0], draft.source_id, name))
        depends.wants.add(_BEGINS + ids[0])
        original = family.original(draft.path, ids, library, depends)
        if original is not None and parent in (None, original[0]):
            parent, shared = original
    if parent is None or parent == draft.source_id:
        return
    for message in draft.messages:
        if message.source_id in shared:
            message.inherited_from = message.source_id
    if shared:
        draft.lineage = LineageDraft("continuation", parent, shared[-1])
    else:
        draft.lineage = LineageDraft("fork", parent)


class _Lines:
    """The messages of an older file.

    Attributes:
        found: The drafts, in order.
    """

    def __init__(self, at: int, model: dict[str, Any] | None) -> None:
        self.found: list[MessageDraft] = []
        self._at, self._model = at, model
        self._calls: dict[str, tuple[PartDraft, MessageDraft]] = {}
        self._early = EarlyResults()
        self._names: set[str] = set()
        self._last, self._since = "first", 0

    @property
    def is_open(self) -> bool:
        """Whether the last message waits for an answer or a result."""
        last = self.found[-1]
        return last.role == "user" or any(
            part.tool_state == "input-available" for part in last.parts)

    def take(self, line: Record) -> None:
        """Take the next line."""
        data, record = line.data, line.number
        role = data.get("role")
        if role == "tool":
            self._result(data, record)
        elif role == "assistant":
            self._answer(data, record)
        else:
            parts = _contents(data.get("content"), self._at, record)
            images = data.get("images")
            for image in images if isinstance(images, list) else ():
                parts.append(data_part("event", {"name": "image", "details": image},
                                       self._at, record))  # fmt: skip
            message = self._add(data, parts, record, is_answer=False)
            message.metadata["origin"] = "meta" if data.get("injected") is True else "human"

    def _add(
        self, data: dict[str, Any], parts: list[PartDraft], record: int, *, is_answer: bool
    ) -> MessageDraft:
        name = string(data.get("message_id"))
        if name is None or name in self._names:
            self._since += 1
            name = f"{self._last}:{self._since}"
        else:
            self._last, self._since = name, 0
        self._names.add(name)
        role: Role = "assistant" if is_answer else "user"
        draft = MessageDraft(name, role, self._at, self._at, {}, parts)
        if not parts:
            draft.records = (record,)
        self.found.append(draft)
        return draft

    def _answer(self, data: dict[str, Any], record: int) -> None:
        parts = _contents(data.get("content"), self._at, record)
        if string(data.get("reasoning_content")):
            parts.insert(0, reasoning_part(data["reasoning_content"], self._at, record))
        calls = data.get("tool_calls")
        for nth, call in enumerate(map(mapping, calls if isinstance(calls, list) else ())):
            function = mapping(call.get("function"))
            call_id = string(call.get("id")) or f"line-{record}:{nth}"
            given = decoded(function.get("arguments"))
            parts.append(call_part(function.get("name"), call_id, given, self._at, record))
        draft = self._add(data, parts, record, is_answer=True)
        if self._model is not None:
            draft.metadata["model"] = self._model
        for part in parts:
            if part.tool_call_id is not None:
                self._calls[part.tool_call_id] = part, draft
                self._early.join(part.tool_call_id, part, draft, self.found)

    def _result(self, data: dict[str, Any], record: int) -> None:
        call_id = string(data.get("tool_call_id")) or f"{self._last}:result"
        known = self._calls.get(call_id)
        if known is None:
            part = call_part(data.get("name"), call_id, None, self._at, record)
            owner = self._add({}, [part], record, is_answer=True)
            self._early.hold(call_id, part, owner)
        else:
            part = known[0]
        content = data.get("content")
        text = content if isinstance(content, str) else "" if content is None else str(content)
        ended = "ok"
        if text.startswith(_ERROR):
            ended = "error"
        elif text.startswith(_CANCELLED):
            ended = "interrupted"
        settle_call(part, ended, text, part.updated_at, record)


def _contents(content: object, at: int, record: int) -> list[PartDraft]:
    if isinstance(content, str):
        return [text_part(content, at, record)] if content else []
    if content is None:
        return []
    return [data_part("event", {"name": "content", "details": content}, at, record)]
