"""Rows to messages: rows of one API message joined, results put to their calls."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import Any

from store.sources.base.drafts import ApiAnswer, MessageDraft, PartDraft
from store.sources.base.notices import is_context, told_parts
from store.sources.base.plain_parts import data_part
from store.sources.base.requests import prompt_parts, without_context
from store.sources.claude_code.blocks import plain_part, reasoning_part
from store.sources.claude_code.compaction import (
    add_summary,
    compaction_message,
    is_boundary,
    set_tail,
)
from store.sources.claude_code.events import event_message, is_quiet, queued_prompt
from store.sources.claude_code.origins import (
    asks_model,
    command_line,
    is_local,
    is_summary,
    origin_details,
    origin_of,
)
from store.sources.claude_code.printed import printed_parts
from store.sources.claude_code.rows import Row, mapping, number, string, text_of
from store.sources.claude_code.tools import call_part, result_text, settle, structured_of
from store.sources.claude_code.tree import Branches, is_queued_prompt
from store.sources.claude_code.turns import Answer, Turns
from store.sources.claude_code.usage import SYNTHETIC, details_of, larger, usage_of


class Prompts:
    """What the snapshots of a thread have told so far.

    Attributes:
        digest: SHA-256 (hex) of the newest system prompt.
        bodies: All prompts by digest.
        tools: The newest tool catalogue, ``[{name, description?, input_schema?}]``.
    """

    def __init__(self) -> None:
        """Start with nothing known."""
        self.digest: str | None = None
        self.bodies: dict[str, str] = {}
        self.tools: list[dict[str, Any]] = []
        self._known: object = None

    def take(self, attachment: dict[str, Any]) -> None:
        """Take one prompt_snapshot attachment."""
        prompt = attachment.get("systemPrompt")
        if prompt and prompt != self._known:
            self._known = prompt
            blocks = prompt if isinstance(prompt, list) else [prompt]
            body = "\n\n".join(block for block in blocks if isinstance(block, str))
            self.digest = sha256(body.encode("utf-8", "replace")).hexdigest()
            self.bodies[self.digest] = body
        tools = attachment.get("tools")
        if isinstance(tools, list) and tools:
            self.tools = [_tool(tool) for tool in tools if isinstance(tool, dict)]


def _tool(tool: dict[str, Any]) -> dict[str, Any]:
    schema = tool.get("schema")
    schema = schema if isinstance(schema, dict) else {}
    found = {
        "name": string(tool.get("name")) or string(schema.get("name")) or "unknown",
        "description": string(tool.get("description")) or string(schema.get("description")),
        "input_schema": schema.get("input_schema"),
    }
    return {key: value for key, value in found.items() if value is not None}


def _set_details(metadata: dict[str, Any], details: dict[str, Any]) -> None:
    if details:
        metadata["usage_details"] = details
    else:
        metadata.pop("usage_details", None)


_PLACE = (("git_branch", "gitBranch"), ("cwd", "cwd"), ("version", "version"))
_ASSISTANT = {
    "requestId": "request_id",
    "effort": "effort",
    "costUSD": "cost_usd",
    "durationMs": "duration_ms",
    "attributionAgent": "attribution_agent",
    "attributionSkill": "attribution_skill",
    "attributionMcpServer": "attribution_mcp_server",
}
"""What an assistant row says about its API message, and its name in ``backscroll``."""


@dataclass(slots=True)
class Call:
    """A tool call and the message that it is in."""

    part: PartDraft
    message: MessageDraft

    @property
    def id(self) -> str:
        """The call's id, unique within its message."""
        return self.part.tool_call_id or ""

    @property
    def key(self) -> tuple[str, str]:
        """The message's source id and the call's id, which together name it."""
        return self.message.source_id, self.id

    @property
    def settled(self) -> bool:
        """Whether it has its result."""
        return self.part.tool_state != "input-available"


class Thread:
    """The messages of one thread of rows, in file order.

    Attributes:
        messages: The drafts.
        owner: The message that each row's uuid went into.
        calls: The tool calls in order. An id alone does not name one: some model servers
            number the calls of each answer from 0.
        prompts: System prompts and tool catalogue that the rows bring.
        has_orphans: Whether results are alone whose call may still come.
    """

    def __init__(self) -> None:
        """Start without messages."""
        self.messages: list[MessageDraft] = []
        self.owner: dict[str, MessageDraft] = {}
        self.calls: list[Call] = []
        self.prompts = Prompts()
        self.model: str | None = None
        self.effort: str | None = None
        self.has_orphans = False
        self._left: Mapping[str, int] = {}
        self._usual: list[tuple[str, str, object]] = []
        self._answers: dict[str, Answer] = {}
        self._turns = Turns()
        self._assistant: MessageDraft | None = None
        self._compaction: MessageDraft | None = None
        self._boundaries: list[tuple[MessageDraft, Row]] = []
        self._calls: dict[str, list[Call]] = {}
        self._early: dict[str, list[tuple[dict[str, Any], Row]]] = {}
        self._command: tuple[MessageDraft, str] | None = None
        self._quiet: list[int] = []

    def take(self, rows: Sequence[Row], branches: Branches) -> None:
        """Take rows that follow those taken before.

        Args:
            rows: In file order.
            branches: What the tree of all rows says.
        """
        self._left, self._kept = branches.left, branches.kept
        if rows and not self._usual:
            self._usual = [(name, key, rows[0].data.get(key)) for name, key in _PLACE]
        for row in rows:
            self._take(row)
        self._settle()

    def _take(self, row: Row) -> None:
        if row.type == "assistant":
            self._take_assistant(row)
            return
        self._turns.take(row)
        if row.type == "user":
            self._take_user(row)
        elif row.type == "attachment" and is_queued_prompt(row):
            self._take_out(row)
            self._add(queued_prompt(row), row)
        elif is_boundary(row):
            self._compaction = self._add(compaction_message(row), row)
            self._boundaries.append((self._compaction, row))
        elif is_quiet(row):
            self._take_quiet(row)
        else:
            self._add(event_message(row), row)

    def _take_out(self, row: Row) -> None:
        """Take out the message of an earlier row that this one stands for."""
        earlier = self.owner.pop(row.stands_for, None) if row.stands_for else None
        if earlier is None:
            return
        for place in reversed(range(len(self.messages))):
            if self.messages[place] is earlier:
                del self.messages[place]
                parts = [number for part in earlier.parts for number in part.records]
                row.records = tuple(sorted({*earlier.records, *parts, *row.records}))
                return

    def _add(self, message: MessageDraft, row: Row) -> MessageDraft:
        """Append a message that begins with this row."""
        message.records = (*message.records, *row.records)
        if not self._quiet:
            self.messages.append(message)
        elif self.messages:
            self._flush_quiet()
            self.messages.append(message)
        else:
            self.messages.append(message)
            self._flush_quiet()
        self.owner[row.uuid] = message
        if row.uuid in self._left:
            message.metadata["hidden_at"] = self._left[row.uuid]
        data = row.data
        for name, key, usual in self._usual:
            if key in data and data[key] != usual:
                message.metadata.setdefault("backscroll", {})[name] = data[key]
        return message

    def _flush_quiet(self) -> None:
        """Give the quiet rows that were gathered to the last message."""
        if self._quiet and self.messages:
            last = self.messages[-1]
            last.records = (*last.records, *self._quiet)
            self._quiet.clear()

    def _take_quiet(self, row: Row) -> None:
        attachment = mapping(row.data.get("attachment"))
        if attachment.get("type") == "prompt_snapshot":
            self.prompts.take(attachment)
        if self._assistant is not None and row.data.get("subtype") == "turn_duration":
            turn = self._assistant.metadata.setdefault("backscroll", {})
            turn["turn_duration_ms"] = number(row.data.get("durationMs"))
        self._quiet.append(row.number)
        if self.messages:
            self.owner[row.uuid] = self.messages[-1]

    def _take_assistant(self, row: Row) -> None:
        self._know_command(expanded=row.message.get("model") != SYNTHETIC)
        turn = self._turns.take(row)
        answer = self._answers.get(row.message_id)
        if answer is None or not self._turns.goes_on(answer, row):
            name = row.message_id if answer is None else row.uuid
            group = MessageDraft(name, "assistant", row.at, row.at, answer=_api_answer(row))
            self._describe(group, row)
            self._answers[row.message_id] = Answer(self._add(group, row), turn, row.parent)
            again = False
        else:
            group, again = answer.message, self._turns.is_again(answer, row)
            self.owner[row.uuid] = group
            group.updated_at = max(group.updated_at, row.at)
        self._assistant = group
        self._update(group, row)
        if row.data.get("isApiErrorMessage"):
            group.parts.append(data_part("error", _api_error(row), row.at, row.number))
            return
        for block in row.blocks:
            if not (again and _is_known(group, block, row)):
                self._take_block(group, block, row)

    def _describe(self, group: MessageDraft, row: Row) -> None:
        """Set what the first row of an API message says about all of it."""
        model = string(row.message.get("model"))
        if model and model != SYNTHETIC:
            self.model = model
            group.metadata["model"] = {"provider_id": "anthropic", "model_id": model}
        if self.prompts.digest:
            group.metadata["system_prompt_digest"] = self.prompts.digest
        data = row.data
        extra = {
            name: data[key] for key, name in _ASSISTANT.items() if key in data and data[key]
        }
        self.effort = string(extra.get("effort")) or self.effort
        if model == SYNTHETIC:
            extra["synthetic"] = True
        if extra:
            group.metadata["backscroll"] = extra

    def _update(self, group: MessageDraft, row: Row) -> None:
        """Set what a later row of an API message may know better."""
        metadata = group.metadata
        if group.answer is not None and group.answer.request is None:
            group.answer = _api_answer(row) or group.answer
        usage = usage_of(row.message)
        if usage is not None:
            known = metadata.get("usage")
            counted = usage if known is None else larger(known, usage)
            if counted is usage:
                _set_details(metadata, details_of(row.message))
            metadata["usage"] = counted
        reason = row.message.get("stop_reason")
        if reason:
            metadata.setdefault("backscroll", {})["finish_reason"] = reason
        if row.data.get("isAbortedMidStream"):
            metadata.setdefault("backscroll", {})["aborted_at"] = row.at

    def _take_block(self, group: MessageDraft, block: dict[str, Any], row: Row) -> None:
        kind = block.get("type")
        if kind == "text":
            group.parts.append(plain_part(block, row.at, row.number))
        elif kind in ("thinking", "redacted_thinking"):
            duration = row.data.get("thinkingDurationMs")
            group.parts.append(reasoning_part(block, duration, row.at, row.number))
        elif kind in ("tool_use", "server_tool_use", "mcp_tool_use"):
            self._take_call(group, call_part(block, row), row)
        elif isinstance(kind, str) and kind.endswith("tool_result"):
            self._take_result(block, row)
        else:
            group.parts.append(plain_part(block, row.at, row.number))

    def _take_call(self, group: MessageDraft, part: PartDraft, row: Row) -> None:
        call = Call(part, group)
        known = self._calls.setdefault(call.id, [])
        for other in known:
            if other.message is group:
                other.part.records = (*other.part.records, row.number)
                return
        group.parts.append(part)
        known.append(call)
        self.calls.append(call)
        for early, early_row in self._early.pop(call.id, ()):
            self._take_result(early, early_row)

    def _call_of(self, block: dict[str, Any], row: Row) -> Call | None:
        """Return the call that a result belongs to; None where it may still come.

        The row says which answer it follows; where it does not, the result is of the newest
        call with that id that has none yet.
        """
        known = self._calls.get(string(block.get("tool_use_id")) or "", [])
        source = string(row.data.get("sourceToolAssistantUUID"))
        if source is not None and source not in self.owner:
            return known[0] if len(known) == 1 and not known[0].settled else None
        for named in (source, row.parent):
            owner = self.owner.get(named) if named else None
            for call in reversed(known):
                if call.message is owner:
                    return call
        candidates = [call for call in known if not call.settled] or known
        return candidates[-1] if candidates else None

    def _take_user(self, row: Row) -> None:
        if is_summary(row):
            self._take_summary(row)
            return
        words = []
        for block in row.blocks:
            if block.get("type") == "tool_result":
                self._take_result(block, row)
            else:
                words.append(block)
        if not words and row.blocks:
            return
        self._take_out(row)
        text = without_context(text_of(words))
        origin = origin_of(row, text)
        extra = origin_details(row, origin, text)
        self._know_command(expanded=origin == "meta" and "interrupt" not in extra)
        metadata: dict[str, Any] = {"origin": origin}
        if row.data.get("permissionMode"):
            extra["permission_mode"] = row.data["permissionMode"]
        if extra:
            metadata["backscroll"] = extra
        parts = [plain_part(block, row.at, row.number) for block in words]
        structured = structured_of(row) if words and "tool_use_id" in words[0] else None
        if structured is not None and parts[0].type == "data-event":
            parts[0].data["data"]["structured"] = structured
        if origin != "meta":
            parts = prompt_parts(parts)
        if origin == "notification" or (origin == "meta" and is_context(text)):
            parts = told_parts(parts)
        elif extra.get("output"):
            parts = printed_parts(parts)
        message = self._add(MessageDraft(row.uuid, "user", row.at, row.at, metadata, parts), row)
        if "command" in extra and not extra.get("output"):
            self._command = message, text
            self._set_command(asks_model(extra["command"], text))
        of_message = extra.get("interrupt")
        if of_message and self._assistant is not None:
            aborted = self._answers.get(of_message) if isinstance(of_message, str) else None
            target = self._assistant if aborted is None else aborted.message
            target.metadata.setdefault("backscroll", {}).setdefault("aborted_at", row.at)

    def _know_command(self, *, expanded: bool) -> None:
        """Decide about the command before this row, now that its result is known.

        Args:
            expanded: Whether the row after it is its expansion or an answer.
        """
        if self._command is not None:
            self._set_command(expanded and not is_local(self._command[0].metadata))
            self._command = None

    def _set_command(self, prompt: bool) -> None:
        """Make the newest command a prompt in the person's words, or the program's business."""
        assert self._command is not None
        message, text = self._command
        words = command_line(message.metadata) if prompt else text
        message.metadata["origin"] = "human" if prompt else "command"
        first = next(part for part in message.parts if part.type == "text")
        first.data["text"] = words

    def _take_summary(self, row: Row) -> None:
        message = self._compaction
        if message is None or message.parts[0].data["data"]["summary"]:
            message = self._add(compaction_message(row), row)
        self.owner[row.uuid] = message
        add_summary(message, row)

    def _take_result(self, block: dict[str, Any], row: Row) -> None:
        call = self._call_of(block, row)
        if call is None:
            self._early.setdefault(string(block.get("tool_use_id")) or "", []).append((block, row))
            return
        settle(call.part, block, row)
        call.message.updated_at = max(call.message.updated_at, call.part.updated_at)
        self.owner.setdefault(row.uuid, call.message)

    def _settle(self) -> None:
        """Place results that are without their call, and the compactions' tails."""
        self._flush_quiet()
        early = [found for results in self._early.values() for found in results]
        for block, row in sorted(early, key=lambda found: found[1].number):
            data = {
                "tool_call_id": block.get("tool_use_id"),
                "is_error": bool(block.get("is_error")),
                "text": result_text(block.get("content")),
            }
            structured = structured_of(row)
            if structured is not None:
                data["structured"] = structured
            part = data_part("result", data, row.at, row.number)
            self.has_orphans = True
            owner = self.owner.get(row.uuid)
            if owner is None:
                name = f"{row.uuid}:result"
                self._add(MessageDraft(name, "system", row.at, row.at, {}, [part]), row)
            else:
                owner.parts.append(part)
        if early:
            self.messages.sort(key=_first_record)
        for message, row in self._boundaries:
            set_tail(message, self._kept.get(row.uuid, ()), self.owner, self.messages)


def _api_answer(row: Row) -> ApiAnswer | None:
    """Return which answer of the API a row is of; None where the API gave it no id."""
    message_id = row.message.get("id")
    if not isinstance(message_id, str) or not message_id:
        return None
    return ApiAnswer(message_id, string(row.data.get("requestId")))


def _is_known(group: MessageDraft, block: dict[str, Any], row: Row) -> bool:
    """Return whether an answer says a block already, and note the row that says it again."""
    said = string(block.get("text")) or string(block.get("thinking"))
    for part in group.parts:
        if said and part.type in ("text", "reasoning") and part.data.get("text") == said:
            part.records = (*part.records, row.number)
            return True
    return False


def _first_record(message: MessageDraft) -> int:
    parts = [part.records[0] for part in message.parts if part.records]
    return min(parts, default=min(message.records, default=0))


def _api_error(row: Row) -> dict[str, Any]:
    """Return an API failure as the program noted it for the user."""
    data = row.data
    found = {
        "message": text_of(row.blocks),
        "status": data.get("apiErrorStatus"),
        "error_type": data.get("apiErrorType") or data.get("error"),
    }
    return {key: value for key, value in found.items() if value is not None}
