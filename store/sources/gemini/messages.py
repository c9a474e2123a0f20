"""Entries to messages: turns, thoughts, calls with their results, notices."""

from __future__ import annotations

import re
from dataclasses import replace
from itertools import islice
from typing import Any

from store.conversation.wrapping import unwrapped
from store.sources.base.drafts import MessageDraft, PartDraft
from store.sources.base.early_results import EarlyResults
from store.sources.base.plain_parts import data_part, text_part
from store.sources.base.values import mapping, number, string
from store.sources.gemini.content import parts_of, text_of
from store.sources.gemini.entry import Entry, Key
from store.sources.gemini.history import History
from store.sources.gemini.ledger import Ledger
from store.sources.gemini.tools import call_part, file_data, open_call, settle_by_response

PROVIDER = "google"
_EXPORTED = re.compile(r"(msg_[0-9A-Za-z]{26})(?:\.\d+)?")
"""The id of a record that our export wrote: the message's own id."""
_SHELL = re.compile(r"I ran the following shell command:\s*```\w*\n(.*?)\n```", re.S)
_NOTICES = ("info", "warning", "error")


class Messages:
    """The messages of one session.

    Attributes:
        found: In the order in which they came.
        by_key: By the entry that each was made of.
        calls: Tool parts by call id.
    """

    def __init__(self) -> None:
        """Start without messages."""
        self._restart()

    def _restart(self) -> None:
        self._early = EarlyResults()
        self._joined = False
        self.found: list[MessageDraft] = []
        self.by_key: dict[Key, MessageDraft] = {}
        self.calls: dict[str, PartDraft] = {}
        self._owner: dict[str, tuple[MessageDraft, int]] = {}
        self._names: dict[str, None] = {}
        self._empty: dict[int, None] = {}
        self._ledger = Ledger()

    def build(self, history: History, inherited: frozenset[str]) -> list[MessageDraft]:
        """Return the messages of a history; called again, of what it has become.

        Args:
            history: The session, always the same one.
            inherited: Ids of the entries that are copies of the parent session's, always
                the same.
        """
        if self._joined:
            # A message was taken out, so that places no longer tell how to go back.
            self._restart()
            history.changed = 0
        made = self._ledger.back_to(history.changed)
        if made is not None:
            del self.found[made:]
        for entry in islice(history.entries.values(), len(self._ledger), None):
            self._ledger.begin(len(self.found))
            self._take(entry, inherited)
        history.changed = len(history.entries)
        self._name_tails(history)
        found = list(self.found)
        if found:
            records = (*found[-1].records, *history.quiet, *self._empty)
            found[-1] = replace(found[-1], records=records)
        return found

    def _take(self, entry: Entry, inherited: frozenset[str]) -> None:
        if entry.kind == "tool-response":
            self._take_responses(entry)
            return
        if entry.kind in _NOTICES and not text_of(entry.data.get("content")):
            # What was shown instead of words, as a compression's numbers, is not kept.
            for number in entry.records:
                self._ledger.put(self._empty, number, None)
            return
        message = self._message(entry)
        if entry.left is not None:
            message.metadata["hidden_at"] = entry.left
        copy = _EXPORTED.fullmatch(entry.id)
        if copy:
            message.inherited_from = copy[1]
        elif entry.id in inherited:
            message.inherited_from = message.source_id

    def _message(self, entry: Entry) -> MessageDraft:
        if entry.compacts:
            message = _compaction(entry)
        elif entry.kind == "gemini":
            message = self._answer(entry)
        elif entry.kind in ("user", "context"):
            message = _prompt(entry)
        else:
            message = _notice(entry)
        message.source_id = self._name(entry)
        self.found.append(message)
        self._ledger.put(self.by_key, entry.key, message)
        for part in message.parts:
            if part.tool_call_id is not None:
                self._ledger.put(self.calls, part.tool_call_id, part)
                self._ledger.put(self._owner, part.tool_call_id, (message, entry.place))
                name = part.tool_call_id
                if part.tool_state == "input-available" and name in self._early:
                    self._early.join(name, part, message, self.found)
                    self._joined = True
                message.updated_at = max(message.updated_at, part.updated_at)
        return message

    def _name(self, entry: Entry) -> str:
        name = entry.id if entry.id not in self._names else f"{entry.id}:{entry.kind}"
        self._ledger.put(self._names, name, None)
        return name

    def _answer(self, entry: Entry) -> MessageDraft:
        data = entry.data
        message = MessageDraft(entry.id, "assistant", entry.at, entry.updated)
        message.records = entry.records
        usage = usage_of(data.get("tokens"))
        if usage:
            message.metadata["usage"] = usage
        if string(data.get("model")):
            model = {"provider_id": PROVIDER, "model_id": data["model"]}
            message.metadata["model"] = model
        message.parts = _thoughts(entry)
        taken = {string(call.get("id")) for call in _calls(data)}
        for place, part in enumerate(parts_of(data.get("content"))):
            if part.get("thought") and data.get("thoughts"):
                continue
            called = mapping(part.get("functionCall"))
            if called:
                name = string(called.get("id")) or f"{entry.id}-content-{place}"
                if name not in taken and not _same_call(called, _calls(data)):
                    kind = string(called.get("name")) or "unknown"
                    message.parts.append(
                        open_call(kind, name, called.get("args"), entry.at, entry.records)
                    )
            else:
                message.parts.append(plain_part(part, entry))
        for place, call in enumerate(_calls(data)):
            fallback = f"{entry.id}-{place}"
            message.parts.append(call_part(call, entry.at, fallback, entry.records))
        return message

    def _take_responses(self, entry: Entry) -> None:
        """Put the results of a record into their calls; each is reported up to three times."""
        alone: list[PartDraft] = []
        for place, part in enumerate(parts_of(entry.data.get("content"))):
            response = mapping(part.get("functionResponse"))
            if not response:
                continue
            call_id = string(response.get("id")) or f"{entry.id}-{place}"
            call = self.calls.get(call_id) or self._open(string(response.get("name")))
            if call is None:
                call = open_call(string(response.get("name")) or "unknown", call_id, None,
                                 entry.at, entry.records)  # fmt: skip
                alone.append(call)
                self._ledger.put(self.calls, call_id, call)
            settle_by_response(call, response, entry.at, entry.records[0])
            owner = self._owner.get(call.tool_call_id or "")
            if owner is not None:
                self._ledger.needs(owner[1])
                owner[0].updated_at = max(owner[0].updated_at, call.updated_at)
        if alone:
            message = MessageDraft(self._name(entry), "assistant", entry.at, entry.at)
            message.parts = alone
            if entry.left is not None:
                message.metadata["hidden_at"] = entry.left
            self.found.append(message)
            for call in alone:
                self._early.hold(call.tool_call_id or "", call, message)

    def _open(self, name: str | None) -> PartDraft | None:
        """Return the first call of a name that waits, for results that name no call."""
        return next(
            (part for part in self.calls.values()
             if part.tool_state == "input-available" and part.type == f"tool-{name}"),
            None,
        )  # fmt: skip

    def _name_tails(self, history: History) -> None:
        for entry in history.entries.values():
            tail = self.by_key.get(entry.tail) if entry.tail else None
            if tail is not None and entry.compacts:
                data = self.by_key[entry.key].parts[0].data["data"]
                data["tail_start_id"] = tail.source_id


def usage_of(tokens: object) -> dict[str, int] | None:
    """Return Gemini's counts as our five buckets.

    Its input holds what came from the cache, its output is without the thoughts.
    """
    bag = mapping(tokens)
    if not bag:
        return None
    given = number(bag.get("input"))
    cached = min(number(bag.get("cached")), given)
    output, thoughts, tool = (number(bag.get(key)) for key in ("output", "thoughts", "tool"))
    if number(bag.get("total")) == given + output + thoughts + tool:
        given += tool
    return {
        "input": given - cached,
        "output": output,
        "reasoning": thoughts,
        "cache_read": cached,
        "cache_write": 0,
    }


def _calls(data: dict[str, Any]) -> list[dict[str, Any]]:
    calls = data.get("toolCalls")
    return [call for call in calls if isinstance(call, dict)] if isinstance(calls, list) else []


def _same_call(called: dict[str, Any], calls: list[dict[str, Any]]) -> bool:
    """Return whether a call without an id is one of those that are reported in full."""
    return not called.get("id") and any(
        call.get("name") == called.get("name") and call.get("args") == called.get("args")
        for call in calls
    )


def _thoughts(entry: Entry) -> list[PartDraft]:
    found = []
    thoughts = entry.data.get("thoughts")
    for thought in thoughts if isinstance(thoughts, list) else ():
        bag = mapping(thought)
        subject, words = string(bag.get("subject")), string(bag.get("description"))
        text = "\n\n".join(part for part in (f"**{subject}**" if subject else None, words) if part)
        if text:
            found.append(_reasoning(text, entry))
    return found


def _reasoning(text: str, entry: Entry) -> PartDraft:
    data = {"type": "reasoning", "text": text, "state": "done"}
    return PartDraft("reasoning", data, entry.at, entry.at, records=entry.records)


def plain_part(part: dict[str, Any], entry: Entry) -> PartDraft:
    """Return a content part that is no call."""
    text = part.get("text")
    if isinstance(text, str):
        if part.get("thought"):
            return _reasoning(text, entry)
        return text_part(text, entry.at, *entry.records)
    file = file_data(part)
    if file is not None:
        return PartDraft("file", file, entry.at, entry.at, records=entry.records)
    event = {"name": next(iter(part), "part"), "details": part}
    return data_part("event", event, entry.at, *entry.records)


def _prompt(entry: Entry) -> MessageDraft:
    content = entry.data.get("content")
    metadata: dict[str, Any] = {"origin": "meta" if entry.kind == "context" else "human"}
    typed = _SHELL.match(text_of(content))
    if typed:
        metadata["origin"] = "shell"
        metadata["backscroll"] = {"shell": typed[1]}
    shown = entry.data.get("displayContent")
    if shown and text_of(shown) != text_of(content):
        metadata.setdefault("backscroll", {})["display"] = text_of(shown)
    parts = []
    for part in parts_of(content):
        said = part.get("text")
        exported = isinstance(said, str) and _EXPORTED.fullmatch(entry.id)
        tag, text = unwrapped(str(said)) if exported else (None, "")
        if tag == "not_from_user":
            metadata["origin"] = "meta"
        parts.append(plain_part({**part, "text": text} if tag else part, entry))
    return MessageDraft(entry.id, "user", entry.at, entry.updated, metadata, parts,
                        records=entry.records)  # fmt: skip


def _compaction(entry: Entry) -> MessageDraft:
    summary = text_of(entry.data.get("content"))
    data = {"summary": summary, "tail_start_id": None, "auto": False}
    part = data_part("compaction", data, entry.at, *entry.records)
    return MessageDraft(entry.id, "system", entry.at, entry.updated, {"compaction": True},
                        [part], records=entry.records)  # fmt: skip


def _notice(entry: Entry) -> MessageDraft:
    """Return what the program told its user, or a record of a type that is not known."""
    text = text_of(entry.data.get("content"))
    if entry.kind == "error":
        part = data_part("error", {"message": text}, entry.at, *entry.records)
    elif entry.kind in _NOTICES:
        part = data_part("event", {"name": entry.kind, "details": text}, entry.at, *entry.records)
    else:
        event = {"name": entry.kind, "details": entry.data}
        part = data_part("event", event, entry.at, *entry.records)
    return MessageDraft(entry.id, "system", entry.at, entry.updated, {}, [part])
