"""Records to messages: prompts, answers with their calls, notices, and requests without words.

Source: the Qwen Code format page, sections 2 and 3. Each request of the conversation is counted
by its answer. The telemetry beside it tells of the same ones, and of others that have no answer
here: of the memory, of compactions, and those that answered nothing.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import islice
from typing import Any

from store.conversation.wrapping import bare_aside, unwrapped_file
from store.sources.base.drafts import MessageDraft, PartDraft
from store.sources.base.early_results import EarlyResults
from store.sources.base.notices import told, told_parts
from store.sources.base.plain_parts import data_part, text_part
from store.sources.base.values import mapping, string
from store.sources.qwen.content import part_of, settle, usage_of, words_of
from store.sources.qwen.tree import Entry, Tree

_QUIET = frozenset((
    "at_command", "attribution_snapshot", "branch_checkpoint", "custom_title",
    "file_history_snapshot", "parent_session", "rewind", "session_model", "session_source",
    "session_sources_snapshot", "turn_result",
))  # fmt: skip
"""Subtypes that say something of the session and are no messages."""
_FILES, _FILES_END = "--- Content from referenced files ---", "--- End of content ---"
_OWN_PROMPT = "########"
"""What the prompt ids of the conversation's own requests contain."""
_NOTICES = ("notification", "background_task_completed")
_COUNTS = ("promptTokenCount", "cachedContentTokenCount", "candidatesTokenCount",
           "thoughtsTokenCount", "totalTokenCount")  # fmt: skip
_EVENT_COUNTS = ("input_token_count", "cached_content_token_count", "output_token_count",
                 "thoughts_token_count", "total_token_count")  # fmt: skip


class Messages:
    """The messages of one file, in file order.

    Attributes:
        found: The drafts.
        agents: By message without an answer, the subagent whose request it counts.
    """

    def __init__(self, tree: Tree) -> None:
        """Start without messages."""
        self.found: list[MessageDraft] = []
        self.agents: dict[str, str] = {}
        self._tree = tree
        self._taken = 0
        self._named: dict[str, MessageDraft] = {}
        self._seen: dict[str, Entry] = {}
        self._calls: dict[str, tuple[PartDraft, MessageDraft]] = {}
        self._early = EarlyResults()
        self._quiet: list[int] = []
        self._pending: list[Entry] = []

    def build(self) -> list[MessageDraft]:
        """Return them; called again, those of what the tree has become.

        What was taken before must be where it was: on the active path, or left.
        """
        for entry in islice(self._tree.entries, self._taken, None):
            self._take(entry)
        self._taken = len(self._tree.entries)
        found = list(self.found)
        rest = [*self._quiet, *(entry.number for entry in self._pending)]
        if rest and found:
            found[-1] = replace(found[-1], records=(*found[-1].records, *rest))
        return found

    def _take(self, entry: Entry) -> None:
        first = self._seen.setdefault(entry.id, entry)
        if first is not entry and first.data == entry.data:
            self._quiet.append(entry.number)
        elif entry.type == "user":
            self._count_pending()
            self._said(entry)
        elif entry.type == "assistant":
            self._answer(entry)
        elif entry.type == "tool_result":
            self._result(entry)
        elif entry.subtype == "ui_telemetry":
            self._telemetry(entry)
        elif entry.subtype == "chat_compression":
            self._compact(entry)
        elif entry.subtype == "slash_command":
            self._command(entry)
        elif entry.subtype in _QUIET or entry.subtype.startswith(
            ("session_artifact_", "managed_session_")
        ):
            self._quiet.append(entry.number)
        else:
            self._event(entry)

    def _event(self, entry: Entry) -> None:
        """Show a record that is not known as its name and what it says."""
        details = entry.payload or mapping(entry.data.get("message"))
        name = entry.subtype or entry.type or "record"
        part = data_part("event", {"name": name, "details": details}, entry.at, entry.number)
        self._add(entry, MessageDraft(entry.id, "system", entry.at, entry.at, {}, [part]))

    def _add(self, entry: Entry, message: MessageDraft) -> None:
        known = self._named.get(message.source_id)
        if known is not None and known.role == message.role:
            # Pieces of one message have one id.
            known.parts += message.parts
            known.metadata |= message.metadata
            known.updated_at = max(known.updated_at, message.updated_at)
            self._quiet.append(entry.number)
            for part in message.parts:
                if part.tool_call_id is not None:
                    self._calls[part.tool_call_id] = part, known
            return
        if known is not None:
            message.source_id = f"{message.source_id}:{entry.number}"
        self._named[message.source_id] = message
        if not message.parts:
            message.records = (*message.records, entry.number)
        message.records = (*self._quiet, *message.records)
        self._quiet = []
        if entry.id in self._tree.left:
            message.metadata["hidden_at"] = self._tree.left[entry.id]
        original = string(mapping(entry.data.get("forkedFrom")).get("messageUuid"))
        exported = string(entry.exported.get("message"))
        if original is not None:
            message.inherited_from = original + message.source_id.removeprefix(entry.id)
        elif exported is not None:
            message.inherited_from = exported
        self.found.append(message)

    def _parts(self, entry: Entry, parts: list[dict[str, Any]]) -> list[PartDraft]:
        return [part_of(part, f"{entry.id}:{place}", entry.at, entry.number)
                for place, part in enumerate(parts)]  # fmt: skip

    def _said(self, entry: Entry) -> None:
        """Add what a person typed, or the program told the model."""
        if entry.exported.get("compaction") is True:
            self._summarise(entry, words_of(entry.parts))
            return
        if entry.subtype:
            self._notice(entry)
            return
        if entry.exported:
            self._said_elsewhere(entry)
            return
        typed, files = _without_files(entry.parts)
        message = MessageDraft(entry.id, "user", entry.at, entry.at, {"origin": "human"})
        message.parts = self._parts(entry, typed)
        self._add(entry, message)
        if files:
            name = f"{entry.id}:files"
            beside = MessageDraft(name, "user", entry.at, entry.at, {"origin": "meta"})
            beside.parts = self._parts(entry, files)
            self._add(entry, beside)

    def _said_elsewhere(self, entry: Entry) -> None:
        """Add what our export wrote: tags around text say what it was."""
        origin = "meta" if entry.exported.get("aside") is True else "human"
        message = MessageDraft(entry.id, "user", entry.at, entry.at, {"origin": origin})
        for part in self._parts(entry, entry.parts):
            if part.type == "text":
                text = bare_aside(part.data["text"]) if origin == "meta" else part.data["text"]
                file = unwrapped_file(text)
                part.data["text"] = text
                if file is not None:
                    part.type, part.data = "file", file
            message.parts.append(part)
        self._add(entry, message)

    def _notice(self, entry: Entry) -> None:
        origin = "notification" if entry.subtype in _NOTICES else "meta"
        shown, parts = string(entry.payload.get("displayText")), self._parts(entry, entry.parts)
        if shown is not None:
            if [told(part.data["text"]) for part in parts if part.type == "text"] == [shown]:
                parts = []
            parts = [text_part(shown, entry.at, entry.number), *parts]
        extra = {"subtype": entry.subtype}
        draft = MessageDraft(entry.id, "user", entry.at, entry.at,
                             {"origin": origin, "backscroll": extra}, told_parts(parts))
        self._add(entry, draft)

    def _answer(self, entry: Entry) -> None:
        draft = MessageDraft(entry.id, "assistant", entry.at, entry.at)
        if string(entry.data.get("model")):
            draft.metadata["model"] = _model(entry.data["model"])
        usage = mapping(entry.data.get("usageMetadata"))
        counts = usage_of([usage.get(key) for key in _COUNTS])
        if usage:
            draft.metadata["usage"] = counts
            self._match(counts)
        elif was_stopped(entry):
            draft.metadata["backscroll"] = {"aborted_at": entry.at}
        draft.parts = self._parts(entry, entry.parts)
        self._add(entry, draft)
        for part in draft.parts:
            if part.tool_call_id is not None:
                if self._calls.get(part.tool_call_id, (None, None))[0] is not part:
                    # An id that begins anew is the newest call's.
                    self._calls[part.tool_call_id] = part, draft
                self._early.join(part.tool_call_id, part, draft, self.found)

    def _result(self, entry: Entry) -> None:
        given = mapping(entry.data.get("toolCallResult"))
        response = next((r for part in entry.parts
                         if (r := mapping(part.get("functionResponse")))), {})  # fmt: skip
        call_id = string(response.get("id")) or string(given.get("callId")) or ""
        known = self._calls.get(call_id)
        if known is None:
            call = {"functionCall": {"id": call_id, "name": response.get("name")}}
            part = part_of(call, entry.id, entry.at, entry.number)
            known = part, MessageDraft(entry.id, "assistant", entry.at, entry.at, {}, [part])
            self._add(entry, known[1])
            self._early.hold(part.tool_call_id or "", *known)
        part, owner = known
        settle(part, entry.parts, given, entry.at, entry.number)
        owner.updated_at = max(owner.updated_at, part.updated_at)

    def _telemetry(self, entry: Entry) -> None:
        """Count a request that has no answer of its own, and tell of one that failed."""
        kind, event = entry.event_name, entry.event
        if kind == "api_error":
            words = string(event.get("error")) or string(event.get("error_message"))
            error: dict[str, Any] = {"message": words or "the request failed"}
            part = data_part("error", error, entry.at, entry.number)
            self._add(entry, MessageDraft(entry.id, "system", entry.at, entry.at, {}, [part]))
        elif kind != "api_response":
            self._quiet.append(entry.number)
        elif not is_own_request(entry):
            by = string(event.get("subagent_name"))
            agent = string(event.get("subagent_id"))
            if by and agent:
                self.agents[entry.id] = agent
            compacts = str(event.get("prompt_id") or "").startswith("compress")
            self._spend(entry, by or ("compaction" if compacts else "request"))
        else:
            self._count_pending()
            self._pending.append(entry)

    def _match(self, counts: dict[str, int]) -> None:
        """Take the telemetry of a request whose answer is here."""
        for entry in self._pending:
            if _event_counts(entry) == counts:
                self._pending.remove(entry)
                self._quiet.append(entry.number)
                return

    def _count_pending(self) -> None:
        """Count the conversation's requests that were followed by the next without an answer."""
        pending, self._pending = self._pending, []
        for entry in pending:
            self._spend(entry, "request")

    def _spend(self, entry: Entry, initiator: str) -> None:
        usage = _event_counts(entry)
        if not any(usage.values()):
            self._quiet.append(entry.number)
            return
        extra = {"no_answer": True, "initiator": initiator}
        metadata: dict[str, Any] = {"usage": usage, "backscroll": extra}
        if string(entry.event.get("model")):
            metadata["model"] = _model(entry.event["model"])
        self._add(entry, MessageDraft(entry.id, "assistant", entry.at, entry.at, metadata))

    def _compact(self, entry: Entry) -> None:
        history, info = entry.payload.get("compressedHistory"), mapping(entry.payload.get("info"))
        first = mapping(history[0]) if isinstance(history, list) and history else {}
        before = info.get("originalTokenCount")
        tokens = {"pre_tokens": before} if isinstance(before, int) and before > 0 else {}
        self._summarise(entry, words_of(first.get("parts")),
                        auto=info.get("triggerReason") != "manual", **tokens)  # fmt: skip

    def _summarise(self, entry: Entry, summary: str, **more: Any) -> None:
        body = {"summary": summary, "tail_start_id": None, "auto": False, **more}
        part = data_part("compaction", body, entry.at, entry.number)
        metadata = {"compaction": True}
        self._add(entry, MessageDraft(entry.id, "system", entry.at, entry.at, metadata, [part]))

    def _command(self, entry: Entry) -> None:
        """Add a command that the program carried out itself, and what it printed."""
        payload = entry.payload
        line = str(payload.get("rawCommand") or "")
        is_output = payload.get("phase") == "result"
        items = payload.get("outputHistoryItems")
        texts = [mapping(item).get("text") for item in items] if isinstance(items, list) else []
        text = "\n".join(text for text in texts if isinstance(text, str)) if is_output else line
        sent = payload.get("sentToModel") is True or payload.get("hiddenInvocation") is True
        if not text or (sent and not is_output):
            self._quiet.append(entry.number)
            return
        name, _, args = line.partition(" ")
        command = {"command": {"name": name, "args": args}}
        extra: dict[str, Any] = {"output": True} if is_output else command
        draft = MessageDraft(entry.id, "system", entry.at, entry.at,
                             {"origin": "command", "backscroll": extra},
                             [text_part(text, entry.at, entry.number)])  # fmt: skip
        self._add(entry, draft)


def was_stopped(entry: Entry) -> bool:
    """Return whether an answer was interrupted: its request was not counted, nor went on."""
    return (entry.type == "assistant" and not mapping(entry.data.get("usageMetadata"))
            and entry.data.get("isSidechain") is not True
            and not any("functionCall" in part for part in entry.parts))  # fmt: skip


def is_own_request(entry: Entry) -> bool:
    """Return whether a telemetry record tells of a request of the conversation itself."""
    prompt = string(entry.event.get("prompt_id"))
    return not string(entry.event.get("subagent_name")) and (
        prompt is None or _OWN_PROMPT in prompt
    )


def _event_counts(entry: Entry) -> dict[str, int]:
    return usage_of([entry.event.get(key) for key in _EVENT_COUNTS])


def _model(name: str) -> dict[str, Any]:
    return {"provider_id": "unknown", "model_id": name}


def _without_files(
    parts: list[dict[str, Any]],
) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Return a prompt's parts, and apart from them the files that it names with ``@``."""
    typed: list[dict[str, Any]] = []
    files: list[dict[str, Any]] = []
    inside = False
    for part in parts:
        text = part.get("text")
        words = text.strip() if isinstance(text, str) else ""
        inside = inside or (bool(typed) and words.startswith(_FILES))
        (files if inside else typed).append(part)
        inside = inside and not words.endswith(_FILES_END)
    return typed, files
