"""From the two files of a session to its draft: title, lineage, tokens.

Source: the droid format page, sections 2 to 4. A fork, a rewind and a side question begin with
copies of their parent's messages, under the same ids. What follows a compression is a session
of its own, whose counts begin with those of its parent.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from store.sources.base.drafts import LineageDraft, MessageDraft, SessionDraft
from store.sources.base.growing import LINES, Depends, entries_of
from store.sources.base.json_lines import LineError, Record, parse_line
from store.sources.base.protocol import SESSION_FACT, Fact, FileStamp, Library
from store.sources.base.side_file import SideFile
from store.sources.base.titles import FIRST_PROMPT, first_prompt, shortened
from store.sources.base.values import epoch_ms, mapping, number, string
from store.sources.droid.messages import Messages, tokens_of
from store.system.paths import open_regular

KIND = "droid"
SETTINGS = ".settings.json"
SPENT = "spent:"
"""Fact: what a session's settings count, for one that begins with the same counts."""
_NO_TITLE = "New Session"


@dataclass(slots=True)
class Kept:
    """What was made of a file's lines the last time, to continue with.

    Attributes:
        lines: The list that grows with the file; another one where it was read anew.
    """

    lines: list[Record] | None = None
    built: Messages = field(default_factory=Messages)

    def bring_up(self, lines: list[Record]) -> Messages:
        """Take what the lines are more than before; return the session's messages."""
        if lines is not self.lines:
            self.lines, self.built = lines, Messages()
        self.built.take(lines)
        return self.built


def session_draft(
    path: str, records: list[bytes], built: Messages, settings: SideFile,
    library: Library, depends: Depends,
) -> SessionDraft:
    """Return the draft of a file's session.

    Args:
        path: The file.
        records: All its lines.
        built: The messages of its lines.
        settings: The file of settings beside it.
        library: Has the sessions whose files are gone.
        depends: Takes what it tells others, and would want to know of them.
    """
    start = built.start
    name = string(start.get("id")) or os.path.basename(path).removesuffix(LINES)
    draft = SessionDraft(
        name, path, KIND, min(built.times, default=0), max(built.times, default=0),
        workspace_root=string(start.get("cwd")),
        records=[*records, *([settings.body] if settings.body is not None else [])],
        archived_at=epoch_ms(settings.data.get("archivedAt")), tells_title=bool(start),
    )  # fmt: skip
    draft.messages = [*built.found]
    draft.title, draft.title_from = _title(start, draft.messages)
    draft.model = _model(built, settings.data)
    draft.metadata["backscroll"] = _extra(start, settings.data)
    activity = built.activity()
    if activity is not None:
        draft.metadata["activity"] = activity
    parent = Parent(draft.path, _parent_id(start), library, depends)
    _link(draft, start, parent, begins_compacted=_begins_compacted(built))
    _count(draft, built, settings.data, parent, depends)
    if built.quiet and draft.messages:
        last = draft.messages[-1]
        draft.messages[-1] = replace(last, records=(*last.records, *built.quiet))
    return draft


def _title(
    start: dict[str, Any], messages: list[MessageDraft]
) -> tuple[str | None, str | None]:
    given = string(start.get("title"))
    if given is None or given == _NO_TITLE:
        prompt = first_prompt(messages)
        return prompt, FIRST_PROMPT if prompt else None
    by_hand = start.get("isSessionTitleManuallySet") is True and "callingSessionId" not in start
    return shortened(given), "user" if by_hand else "title"


def _model(built: Messages, settings: dict[str, Any]) -> dict[str, Any] | None:
    """Return the model that is chosen now, else the one that answered last."""
    model = string(settings.get("model")) or next(reversed(built.models), None)
    if model is None:
        return None
    found = {"provider_id": string(settings.get("providerLock")) or "unknown", "model_id": model}
    effort = string(settings.get("reasoningEffort"))
    return {**found, "variant": effort} if effort and effort != "none" else found


def _extra(start: dict[str, Any], settings: dict[str, Any]) -> dict[str, Any]:
    extra: dict[str, Any] = {"format_version": number(start.get("version"))}
    tags = settings.get("tags")
    names = [string(mapping(tag).get("name")) for tag in tags] if isinstance(tags, list) else []
    if any(names):
        extra["tags"] = [name for name in names if name]
    if number(settings.get("assistantActiveTimeMs")) > 0:
        extra["active_ms"] = number(settings["assistantActiveTimeMs"])
    last = mapping(settings.get("lastCallTokenUsage"))
    context = sum(max(0, number(last.get(key))) for key in (
        "inputTokens", "cacheReadTokens", "cacheCreationTokens", "outputTokens"))
    if context:
        extra["context_tokens"] = context
    return extra


def _parent_id(start: dict[str, Any]) -> str | None:
    return string(start.get("parent")) or string(start.get("callingSessionId"))


def _begins_compacted(built: Messages) -> bool:
    return bool(built.found) and "compaction" in built.found[0].metadata


class Parent:
    """The session that another one was made from: its files, or what the library has of them."""

    def __init__(
        self, path: str, session_id: str | None, library: Library, depends: Depends
    ) -> None:
        """Look for its file, beside the session's own or in the folder of another project.

        Args:
            path: The session's own file.
            session_id: The parent's id; None where there is no parent.
            library: Has the sessions whose files are gone.
            depends: Takes what was looked for.
        """
        self.id = session_id
        self._library, self._depends = library, depends
        self._file = None if session_id is None else _file_of(path, session_id)
        if session_id is not None and self._file is None:
            depends.wants.add(SESSION_FACT + session_id)

    def message_ids(self) -> frozenset[str]:
        """Return the ids of its messages."""
        return frozenset(name for record in self._records() if (name := string(record.get("id"))))

    def _records(self) -> Iterator[dict[str, Any]]:
        for line in self._lines():
            try:
                yield parse_line(line)[0]
            except LineError:
                continue

    def _lines(self) -> Sequence[bytes]:
        if self.id is None:
            return ()
        if self._file is None:
            return self._library.records(self.id)
        self._depends.looked.append(FileStamp.now(self._file))
        try:
            with open_regular(self._file) as file:
                return [line for line in file.readall().split(b"\n") if line.strip()]
        except OSError:
            return ()

    def tokens(self) -> dict[str, int]:
        """Return what its settings count; empty where that is not known."""
        if self.id is None:
            return {}
        if self._file is not None:
            path = self._file.removesuffix(LINES) + SETTINGS
            self._depends.looked.append(FileStamp.now(path))
            try:
                with open_regular(path) as file:
                    return tokens_of(SideFile.read(path, file.readall(), []).data) or {}
            except OSError:
                pass
        self._depends.wants.add(SPENT + self.id)
        told = [json.loads(fact.value) for fact in self._library.facts(SPENT + self.id)]
        return {str(key): number(value) for key, value in (told[0] if told else {}).items()}


def _file_of(path: str, session_id: str) -> str | None:
    name = os.path.basename(session_id + LINES)
    folder = os.path.dirname(path)
    beside = (entry.path for entry in entries_of(os.path.dirname(folder)))
    places = (os.path.join(place, name) for place in (folder, *sorted(beside)))
    return next((each for each in places if each != path and os.path.isfile(each)), None)


def _link(
    draft: SessionDraft, start: dict[str, Any], parent: Parent, *, begins_compacted: bool
) -> None:
    """Say what the session was made from, and which of its messages are copies."""
    if parent.id is None or parent.id == draft.source_id:
        return
    call, caller = string(start.get("callingToolUseId")), string(start.get("callingSessionId"))
    fork_point = string(start.get("forkedAtMessageId"))
    copied = _copied(draft, fork_point, parent, begins_compacted=begins_compacted)
    for message in copied:
        message.inherited_from = message.source_id
    if caller is not None:
        draft.lineage = LineageDraft("subagent", parent.id, tool_call_id=call)
    elif copied or fork_point is not None:
        at = copied[-1].source_id if copied else fork_point
        draft.lineage = LineageDraft("fork", parent.id, at)
    else:
        draft.lineage = LineageDraft("continuation", parent.id)


def _copied(
    draft: SessionDraft, fork_point: str | None, parent: Parent, *, begins_compacted: bool
) -> list[MessageDraft]:
    if begins_compacted:
        return []
    for place, message in enumerate(draft.messages if fork_point else ()):
        if message.source_id == fork_point:
            return draft.messages[: place + 1]
    theirs = parent.message_ids()
    return [message for message in draft.messages if message.source_id in theirs]


def _count(
    draft: SessionDraft, built: Messages, settings: dict[str, Any], parent: Parent,
    depends: Depends,
) -> None:
    """Add what the whole session spent as an answer without words."""
    tokens = tokens_of(settings)
    if tokens is None:
        return
    depends.facts.append(Fact(SPENT + draft.source_id, draft.source_id, json.dumps(tokens)))
    if draft.lineage is not None and draft.lineage.kind == "continuation":
        before = parent.tokens()
        tokens = {key: max(0, value - before.get(key, 0)) for key, value in tokens.items()}
    if any(tokens.values()):
        at = draft.updated_at
        used = MessageDraft("usage", "assistant", at, at, {
            "usage": tokens, "backscroll": {"no_answer": True, "initiator": "session"}})
        used.records = (len(draft.records) - 1,)
        if len(built.models) == 1:
            (model,) = built.models
            used.metadata["model"] = {"provider_id": "unknown", "model_id": model}
        draft.messages.append(used)
