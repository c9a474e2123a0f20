"""Records of one agent's file to messages: prompts, steps, calls, what was undone.

Source: the Kimi format page, sections A.3 to A.6. The conversation is in the ``context.*``
records; ``agent.message.appended`` says it a second time, and requests are counted by
``usage.record`` alone.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable
from itertools import islice
from typing import Any

from store.sources.base.content_blocks import blocks_of, text_of
from store.sources.base.databases import decoded
from store.sources.base.drafts import ApiAnswer, MessageDraft, PartDraft
from store.sources.base.early_results import EarlyResults
from store.sources.base.json_lines import Record
from store.sources.base.notices import told_parts
from store.sources.base.plain_parts import call_part, data_part
from store.sources.base.values import epoch_ms, mapping, number, string
from store.sources.kimi.branches import Branches
from store.sources.kimi.content import as_sent, is_told, part_of, settle

_CALLS, _ENDED_WELL = "tool_use", ("end_turn", "completed", "stop")
_STATES = {"cancelled": "interrupted", "interrupted": "interrupted", "failed": "error",
           "error": "error"}  # fmt: skip
_COUNTS = {"input": "inputOther", "output": "output", "cache_read": "inputCacheRead",
           "cache_write": "inputCacheCreation"}  # fmt: skip
_ORIGINS = {
    "user": "human", "shell_command": "shell", "system_trigger": "notification",
    "task": "notification", "background_task": "notification", "cron_job": "notification",
    "cron_missed": "notification",
}  # fmt: skip
_COMMANDS = ("skill_activation", "plugin_command")
_BESIDE = frozenset({
    "agent", "config", "file_history", "full_compaction", "interaction", "llm", "mcp", "metadata",
    "permission", "plan_mode", "plugin", "profile", "prompt", "runtime", "session", "subagent",
    "swarm_mode", "token_counting", "tools", "turn", "usage",
})  # fmt: skip
"""First words of records that say nothing which other records do not say better."""
_CODE = re.compile(r"\[([\w.-]{1,80})\] (.+)", re.S)
"""How a step says which error ended it."""
_TASK, _TYPED_COMMAND, _SUMMARY = "subagent", "user-slash", "compaction_summary"


class Messages:
    """The messages of a file, taken as it grows.

    Attributes:
        found: The drafts, in file order.
        forked: The names of those that were there when the session was forked off another one.
        spawned: The records of the subagents that were started, by the subagent's name.
        prompts: System prompts by their digest.
        folder: The folder that the agent worked in; None where no record has it.
        times: When each record that has a time was written, epoch ms.
    """

    def __init__(self) -> None:
        """Start without messages."""
        self.found: list[MessageDraft] = []
        self.forked: frozenset[str] = frozenset()
        self.spawned: dict[str, list[dict[str, Any]]] = {}
        self.prompts: dict[str, str] = {}
        self.folder: str | None = None
        self.times: list[int] = []
        self.taken = 0
        self._branches = Branches()
        self._places: dict[str, tuple[str, int]] = {}
        self._asked: list[MessageDraft] = []
        self._lines: list[int] = []
        self._undone = False
        self._left: set[int] = set()
        self._names: set[str] = set()
        self._steps: dict[str, MessageDraft] = {}
        self._step: MessageDraft | None = None
        self._ended: set[str] = set()
        self._calls: dict[str, tuple[PartDraft, MessageDraft]] = {}
        self._by_record: dict[str, str] = {}
        self._decisions: dict[str, str] = {}
        self._early = EarlyResults()
        self._digest: str | None = None
        self._model: dict[str, Any] | None = None
        self._compacts: str | None = None
        self._told_error = False
        self._waits: dict[str, str] = {}
        self._state: tuple[str, str, int] | None = None
        self._quiet: list[int] = []
        self._takers: dict[str, Callable[[Record, int], None]] = {
            "context.append_message": self._message,
            "context.append_loop_event": self._event,
            "context.apply_compaction": self._compact,
            "context.clear": self._clear,
            "context.undo": self._undo,
            "agent.switched": self._switch,
            "usage.record": self._usage,
            "llm.request": self._request,
            "profile.bind": self._profile,
            "config.update": self._profile,
            "permission.record_approval_result": self._decide,
            "interaction.request": self._ask,
            "interaction.resolved": self._answered,
            "subagent.spawned": self._spawn,
            "full_compaction.begin": self._begin_compaction,
            "full_compaction.complete": self._end_compaction,
            "full_compaction.cancel": self._end_compaction,
            "turn.prompt": self._begin_turn,
            "turn.cancel": self._cancel,
            "turn.step.interrupted": self._interrupt,
            "turn.ended": self._end_turn,
            "forked": self._fork,
        }

    @property
    def shown(self) -> list[MessageDraft]:
        """The messages that hold anything: a step has its first part when its answer ends."""
        return [each for each in self.found if each.parts or each.role != "assistant"
                or "usage" in each.metadata or "aborted_at" in _own(each)]  # fmt: skip

    @property
    def quiet(self) -> tuple[int, ...]:
        """The records at the end that no message has yet."""
        return tuple(self._quiet)

    def take(self, records: list[Record]) -> None:
        """Take what the records are more than before."""
        for record in islice(records, self.taken, None):
            at = epoch_ms(record.data.get("time")) or epoch_ms(record.data.get("created_at"))
            self.times += [at] if at else []
            self._lines.append(record.line)
            taker = self._takers.get(str(record.data.get("type")), self._keep)
            taker(record, at or (self.times[-1] if self.times else 0))
        self.taken = len(records)

    def _keep(self, record: Record, at: int) -> None:
        """Keep the record of what is beside a talk; show what a newer program writes."""
        kind = str(record.data.get("type"))
        if kind.partition(".")[0] in _BESIDE or kind == "context.undone":
            self._quiet.append(record.number)
            return
        rest = {key: value for key, value in record.data.items() if key not in ("type", "time")}
        self._show(record, kind, rest, at)

    def _show(self, record: Record, name: str, details: dict[str, Any], at: int) -> None:
        part = data_part("event", {"name": name, "details": details}, at, record.number)
        self._add(MessageDraft(self._name(record, None), "system", at, at, {}, [part]), record)

    def _name(self, record: Record, given: object) -> str:
        name = string(given)
        name = record.name if name is None or name in self._names else name
        self._names.add(name)
        return name

    def _add(self, message: MessageDraft, record: Record) -> None:
        if not message.parts:
            message.records = (*message.records, record.number)
        message.records = (*self._quiet, *message.records)
        self._quiet = []
        self.found.append(message)
        self._places[message.source_id] = self._branches.current, record.line

    # --- what was said ----------------------------------------------------------------------

    def _message(self, record: Record, at: int) -> None:
        message = mapping(record.data.get("message"))
        role = message.get("role")
        if role == "assistant":
            self._older_answer(record, message, at)
        elif role == "tool":
            result = {"output": message.get("content"), "isError": message.get("isError")}
            self._result(record, {"toolCallId": message.get("toolCallId")}, result, at)
        else:
            self._said(record, message, at)

    def _said(self, record: Record, message: dict[str, Any], at: int) -> None:
        told = mapping(message.get("origin"))
        kind = str(told.get("kind") or "user")
        if kind == _SUMMARY:
            self._summarise(record, text_of(message.get("content")), {}, at)
            return
        origin = _ORIGINS.get(kind, "meta")
        if kind in _COMMANDS and told.get("trigger") == _TYPED_COMMAND:
            origin = "command"
        elif told.get("name") == _TASK:
            origin = "human"
        parts = [part_of(each, at, record.number) for each in blocks_of(message.get("content"))]
        if origin in ("meta", "notification") and not any(map(is_told, parts)):
            parts = told_parts(parts)
        parts = [as_sent(part) for part in parts]
        name = self._name(record, message.get("id"))
        draft = MessageDraft(name, "user", at, at, {"origin": origin}, parts)
        if origin in ("human", "command") and told.get("inTurn") is not True:
            self._asked.append(draft)
            self._undone = False
        self._add(draft, record)

    def _older_answer(self, record: Record, message: dict[str, Any], at: int) -> None:
        """Add an answer with its calls in one message, as the first protocols have it."""
        draft = self._begin_step(record, message.get("id"), at)
        draft.parts += [
            part_of(each, at, record.number) for each in blocks_of(message.get("content"))
        ]
        calls = message.get("toolCalls")
        for nth, call in enumerate(map(mapping, calls if isinstance(calls, list) else ())):
            function = mapping(call.get("function")) or call
            given = decoded(function.get("arguments"))
            call_id = string(call.get("id")) or f"{draft.source_id}:{nth}"
            part = call_part(function.get("name"), call_id, given, at, record.number)
            self._add_call(draft, part)

    def _event(self, record: Record, at: int) -> None:
        event = mapping(record.data.get("event"))
        kind = event.get("type")
        if kind == "step.begin":
            draft = self._begin_step(record, event.get("uuid"), at)
            if string(event.get("uuid")):
                self._steps[event["uuid"]] = draft
        elif kind == "content.part":
            step = self._step_of(record, event, at)
            self._put(step, part_of(mapping(event.get("part")), at, record.number))
        elif kind == "tool.call":
            self._call(record, event, at)
        elif kind == "tool.result":
            self._result(record, event, mapping(event.get("result")), at)
        elif kind == "step.end":
            self._end_step(record, event, at)
        else:
            self._show(record, str(kind), event, at)

    def _begin_step(self, record: Record, name: object, at: int) -> MessageDraft:
        draft = MessageDraft(self._name(record, name), "assistant", at, at)
        if string(name) == draft.source_id:
            # A copy of the session has it under the same name.
            draft.answer = ApiAnswer(draft.source_id)
        if self._digest is not None:
            draft.metadata["system_prompt_digest"] = self._digest
        self._add(draft, record)
        self._step = draft
        self._state = "running", "guessed", at
        return draft

    def _step_of(self, record: Record, event: dict[str, Any], at: int) -> MessageDraft:
        """Return the step that a record is of; a new one where its beginning is missing."""
        name = string(event.get("stepUuid"))
        step = self._steps.get(name) if name is not None else self._step
        if step is None and self._step is not None and self._step.answer is None:
            step = self._step  # It began without a name.
        if step is None:
            step = self._begin_step(record, name, at)
            if name is not None:
                self._steps[name] = step
        return step

    def _put(self, step: MessageDraft, part: PartDraft) -> None:
        step.parts.append(part)
        step.updated_at = max(step.updated_at, part.updated_at)

    def _call(self, record: Record, event: dict[str, Any], at: int) -> None:
        step = self._step_of(record, event, at)
        own = string(event.get("uuid"))
        call_id = string(event.get("toolCallId")) or own or f"{step.source_id}:{len(step.parts)}"
        part = call_part(event.get("name"), call_id, event.get("args"), at, record.number)
        if own is not None:
            self._by_record[own] = call_id
        self._add_call(step, part)

    def _add_call(self, step: MessageDraft, part: PartDraft) -> None:
        self._put(step, part)
        call_id = part.tool_call_id or ""
        self._calls[call_id] = part, step
        self._early.join(call_id, part, step, self.found)

    def _result(
        self, record: Record, event: dict[str, Any], result: dict[str, Any], at: int
    ) -> None:
        parent = string(event.get("parentUuid"))
        call_id = string(event.get("toolCallId")) or self._by_record.get(parent or "") or (
            parent or record.name)
        known = self._calls.get(call_id)
        if known is None:
            part = call_part(None, call_id, None, at, record.number)
            known = part, MessageDraft(self._name(record, None), "assistant", at, at, {}, [part])
            self._add(known[1], record)
            self._early.hold(call_id, *known)
        part, owner = known
        settle(part, result, self._decisions.get(call_id), at, record.number)
        owner.updated_at = max(owner.updated_at, part.updated_at)

    def _end_step(self, record: Record, event: dict[str, Any], at: int) -> None:
        step = self._steps.get(string(event.get("uuid")) or "")
        if step is None:
            self._quiet.append(record.number)
            return
        step.records = (*step.records, record.number)
        self._ended.add(step.source_id)
        reason = string(event.get("finishReason"))
        if reason is not None and reason not in (_CALLS, *_ENDED_WELL):
            _extra(step)["finish_reason"] = reason
        if reason != _CALLS and (self._state or ("running",))[0] == "running":
            # The first versions do not say that a turn has ended.
            state = _STATES.get(str(reason))
            self._state = (state, "stored", at) if state is not None else None

    # --- what was spent ---------------------------------------------------------------------

    def _request(self, record: Record, at: int) -> None:
        data = record.data
        model = string(data.get("model")) or string(data.get("modelAlias"))
        if model is not None:
            provider = string(data.get("provider")) or "unknown"
            self._model = {"provider_id": provider, "model_id": model}
        step = self._step
        if step is not None and data.get("kind") in (None, "loop") and self._model is not None:
            step.metadata.setdefault("model", self._model)
        self._quiet.append(record.number)

    def _usage(self, record: Record, at: int) -> None:
        given = mapping(record.data.get("usage"))
        usage = {key: max(0, number(given.get(name))) for key, name in _COUNTS.items()}
        usage["reasoning"] = 0
        if not any(usage.values()):
            self._quiet.append(record.number)
            return
        alias = string(record.data.get("model"))
        named = {"provider_id": "unknown", "model_id": alias} if alias else None
        step = self._step
        whole = record.data.get("usageScope") == "session"
        counted = step is not None and step.source_id in self._ended and "usage" in step.metadata
        if step is None or whole or counted:
            initiator = "request" if not whole else "compaction" if self._compacts else "session"
            metadata: dict[str, Any] = {
                "usage": usage, "backscroll": {"no_answer": True, "initiator": initiator}}
            if self._model or named:
                metadata["model"] = self._model or named
            self._add(MessageDraft(self._name(record, None), "assistant", at, at, metadata), record)
            return
        before = step.metadata.get("usage", {})
        step.metadata["usage"] = {key: value + before.get(key, 0) for key, value in usage.items()}
        step.records = (*step.records, record.number)
        if named is not None:
            step.metadata.setdefault("model", named)

    def _profile(self, record: Record, at: int) -> None:
        data = record.data
        prompt = string(data.get("systemPrompt"))
        if prompt is not None:
            self._digest = hashlib.sha256(prompt.encode("utf-8", "replace")).hexdigest()
            self.prompts[self._digest] = prompt
        folder = string(mapping(data.get("environmentDisclosure")).get("cwd"))
        self.folder = folder or self.folder
        self._quiet.append(record.number)

    # --- turns and their ends ---------------------------------------------------------------

    def _begin_turn(self, record: Record, at: int) -> None:
        self._told_error = False
        self._state = "running", "guessed", at
        self._step = None
        self._quiet.append(record.number)

    def _cancel(self, record: Record, at: int) -> None:
        self._state = "interrupted", "stored", at
        if self._step is not None and self._step.source_id not in self._ended:
            _extra(self._step)["aborted_at"] = at
        self._quiet.append(record.number)

    def _interrupt(self, record: Record, at: int) -> None:
        message = string(record.data.get("message"))
        if self._step is None:
            self._quiet.append(record.number)
        elif record.data.get("reason") == "aborted":
            _extra(self._step)["aborted_at"] = at
            self._step.records = (*self._step.records, record.number)
        else:
            self._told_error = True
            said = message or string(record.data.get("reason")) or "error"
            code = _CODE.match(said)
            error = {"name": code[1], "message": code[2]} if code else {"message": said}
            _extra(self._step)["error"] = code[1] if code else said
            self._put(self._step, data_part("error", error, at, record.number))

    def _end_turn(self, record: Record, at: int) -> None:
        reason, error = record.data.get("reason"), record.data.get("error")
        state = _STATES.get(str(reason))
        self._state = (state, "stored", at) if state is not None else None
        self._waits = {}
        self._step = None
        if reason == "failed" and not self._told_error:
            said = string(error) or string(mapping(error).get("message")) or "failed"
            code = string(mapping(error).get("code"))
            body = {**({"name": code} if code else {}), "message": said}
            part = data_part("error", body, at, record.number)
            name = self._name(record, None)
            self._add(MessageDraft(name, "system", at, at, {}, [part]), record)
        else:
            self._quiet.append(record.number)

    def _decide(self, record: Record, at: int) -> None:
        call_id = string(record.data.get("toolCallId"))
        decision = string(mapping(record.data.get("result")).get("decision"))
        if call_id is not None and decision is not None:
            self._decisions[call_id] = decision
        self._quiet.append(record.number)

    def _ask(self, record: Record, at: int) -> None:
        approval = record.data.get("kind") in (None, "approval")
        self._waits[str(record.data.get("id"))] = (
            "waiting-approval" if approval else "waiting-input")
        self._quiet.append(record.number)

    def _answered(self, record: Record, at: int) -> None:
        self._waits.pop(str(record.data.get("id")), None)
        self._quiet.append(record.number)

    def _spawn(self, record: Record, at: int) -> None:
        name = string(record.data.get("subagentId"))
        if name is not None:
            self.spawned.setdefault(name, []).append(record.data)
        self._quiet.append(record.number)

    def activity(self) -> dict[str, Any] | None:
        """Return what the end of the file says; None where its turn ended well."""
        if self._state is None:
            return None
        state, known, since = self._state
        waits = next(reversed(self._waits.values()), None)
        if state == "running" and waits is not None:
            return {"state": waits, "from": "stored", "since": self.times[-1]}
        return {"state": state, "from": known, "since": since}

    # --- what was summed up, undone, forked -------------------------------------------------

    def _begin_compaction(self, record: Record, at: int) -> None:
        self._compacts = string(record.data.get("source")) or "auto"
        self._quiet.append(record.number)

    def _end_compaction(self, record: Record, at: int) -> None:
        self._compacts = None
        self._quiet.append(record.number)

    def _compact(self, record: Record, at: int) -> None:
        said, data = record.data.get("summary"), record.data
        summary = string(said) or text_of(mapping(said).get("content"))
        details = {key: number(data.get(key)) for key in
                   ("compactedCount", "keptUserMessageCount", "tokensBefore", "tokensAfter")
                   if number(data.get(key)) > 0}  # fmt: skip
        self._summarise(record, summary or text_of(data.get("contextSummary")), details, at)

    def _summarise(
        self, record: Record, summary: str, details: dict[str, int], at: int
    ) -> None:
        """Add a line where the model has a summary of what is before; said twice it is one."""
        if self.found and "compaction" in self.found[-1].metadata:
            self._quiet.append(record.number)
            return
        automatic = bool(details) and self._compacts != "manual"
        body: dict[str, Any] = {"summary": summary, "tail_start_id": None, "auto": automatic}
        if details:
            body["details"] = details
        self._asked.clear()  # An undo does not go back beyond it.
        part = data_part("compaction", body, at, record.number)
        name = self._name(record, None)
        self._add(MessageDraft(name, "system", at, at, {"compaction": True}, [part]), record)

    def _clear(self, record: Record, at: int) -> None:
        part = data_part("event", {"name": "context cleared"}, at, record.number)
        self._add(MessageDraft(self._name(record, None), "system", at, at, {}, [part]), record)

    def _switch(self, record: Record, at: int) -> None:
        data = record.data
        name, base = string(data.get("branch")), mapping(data.get("base"))
        self._quiet.append(record.number)
        if name is None:
            return
        above, line = string(base.get("branch")), number(base.get("line"))
        if number(data.get("legacyUndoLine")) - 1 == len(self._lines) < record.line:
            # It counts without the lines that the file holds twice.
            line = self._lines[line - 1] if 0 < line <= len(self._lines) else line
        self._branches.switch(name, (above, line) if above else None)
        self._undone = data.get("reason") == "undo"
        self._hide(at)

    def _undo(self, record: Record, at: int) -> None:
        """Drop the last prompts; after a switch of branches it says the same once more."""
        self._quiet.append(record.number)
        count = number(record.data.get("count"))
        if self._undone or count < 1:
            self._undone = False
            return
        kept = [draft for draft in self._asked if "hidden_at" not in draft.metadata]
        if kept:
            branch, line = self._places[kept[max(0, len(kept) - count)].source_id]
            self._branches.switch(f"line {record.line}", (branch, line - 1))
            self._hide(at)

    def _hide(self, at: int) -> None:
        """Mark what is no longer part of the conversation; all that went at once in one way."""
        while at in self._left:
            at += 1
        for message in self.found:
            if self._branches.has(*self._places[message.source_id]):
                message.metadata.pop("hidden_at", None)
            elif "hidden_at" not in message.metadata:
                message.metadata["hidden_at"] = at
                self._left.add(at)
        self._step, self._state, self._waits = None, None, {}

    def _fork(self, record: Record, at: int) -> None:
        self.forked = frozenset(each.source_id for each in self.found)
        self._step, self._state, self._waits = None, None, {}
        self._quiet.append(record.number)


def _own(draft: MessageDraft) -> dict[str, Any]:
    return mapping(draft.metadata.get("backscroll"))


def _extra(draft: MessageDraft) -> dict[str, Any]:
    extra: dict[str, Any] = draft.metadata.setdefault("backscroll", {})
    return extra
