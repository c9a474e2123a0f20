"""From the two documents of a task's folder to its session.

Source: the Cline format page, section 3. ``ui_messages.json`` is what a person saw, in order, and
counts the tokens of each request. ``api_conversation_history.json`` is what the model saw: its
calls and their results. A request and the model's message that answers it are joined by time.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from typing import Any

from store.sources.base.content_blocks import blocks_of
from store.sources.base.databases import decoded, record_bytes
from store.sources.base.drafts import (
    ApiAnswer,
    LineageDraft,
    MessageDraft,
    PartDraft,
    SessionDraft,
)
from store.sources.base.plain_parts import call_part, data_part, reasoning_part, text_part
from store.sources.base.titles import FIRST_PROMPT, first_prompt, shortened
from store.sources.base.values import epoch_ms, mapping, number, string
from store.sources.cline.content import settle
from store.sources.cline.markup import ANSWERS, calls_in, feedback_in, results_in, words_in

_FOLDER = re.compile(r"Current Work(?:ing|space) Directory \(([^\n]+?)\)(?: Files)?\n")
_MODEL = re.compile(r"<model>([^<\n]+)</model>")
_SUBTASK = re.compile(r"Subtask ([0-9A-Za-z-]{8,64}) completed")
_WITHOUT_CACHE = frozenset({"anthropic", "bedrock", "vertex", "claude-code", "openrouter", "cline",
                   "openai-native", "gemini", "deepseek", "qwen"})  # fmt: skip
"""Providers whose count of input leaves out what the cache held."""
_TOOLS = frozenset({"tool", "command", "use_mcp_server", "browser_action_launch", "browser_action",
                    "use_subagents", "followup"})  # fmt: skip
_QUIET = frozenset({"resume_task", "resume_completed_task", "checkpoint_saved", "subtask_result",
                    "checkpoint_created", "api_req_finished", "api_req_retried",
                    "command_output", "browser_action_result", "mcp_server_response",
                    "mcp_server_request_started", "task_progress",
                    "shell_integration_warning"})  # fmt: skip
_ERRORS = frozenset({"error", "api_req_failed", "diff_error", "error_retry", "clineignore_error",
                     "mistake_limit_reached", "rooignore_error",
                     "condense_context_error"})  # fmt: skip
_APPROVED = _TOOLS - {"followup"}
_APPROVAL = "REQ_APP"

_Asked = tuple[str, str | None, Any]
"""A call of the model: its name, its id and its input."""


def task_draft(
    kind: str,
    path: str,
    shown: list[Any],
    history: list[Any],
    entry: dict[str, Any],
    used: dict[str, Any],
) -> SessionDraft:
    """Return the session of a task.

    Args:
        kind: The kind of source.
        path: The file of what was shown.
        shown: What a person saw.
        history: What the model saw.
        entry: What the list of tasks says of it; empty where it has none.
        used: The file that says which models it used, where older versions alone say it.
    """
    name = os.path.basename(os.path.dirname(path))
    task = _Task(name, len(shown), entry, used)
    for place, message in enumerate(shown):
        task.show(place, mapping(message))
    task.join([mapping(each) for each in history])
    times = task.times or [epoch_ms(int(name)) or 0 if name.isdecimal() and len(name) < 16 else 0]
    draft = SessionDraft(
        name, path, kind, times[0], max(times),
        workspace_root=_folder_of(entry, history), messages=task.found,
        records=list(map(record_bytes, [*shown, *history, *([entry] if entry else [])])),
        names_count=True, tells_title=bool(entry),
    )  # fmt: skip
    title = string(entry.get("task"))
    draft.title = shortened(title) if title else first_prompt(draft.messages)
    draft.title_from = "title" if title else (FIRST_PROMPT if draft.title else None)
    models = [each.metadata["model"] for each in draft.messages if "model" in each.metadata]
    if models:
        draft.model = models[-1]
    elif string(entry.get("modelId")):
        draft.model = {"provider_id": "unknown", "model_id": entry["modelId"]}
    parent = string(entry.get("parentTaskId"))
    if parent is not None and parent != name:
        draft.lineage = LineageDraft("subagent", parent)
    draft.metadata["backscroll"] = _extra(task, shown, history, entry)
    activity = task.activity(shown)
    if activity is not None:
        draft.metadata["activity"] = activity
    return draft


def _extra(
    task: _Task, shown: list[Any], history: list[Any], entry: dict[str, Any]
) -> dict[str, Any]:
    extra = {
        "listed": bool(entry), "favorite": entry.get("isFavorited") is True,
        "status": string(entry.get("status")), "mode": string(entry.get("mode")),
        "profile": string(entry.get("apiConfigName")), "root": string(entry.get("rootTaskId")),
        "children": _names(entry.get("childIds")),
        "requests": len(task.requests), "failed_requests": task.failed,
        "messages_replaced": _replaced(shown, history),
    }  # fmt: skip
    return {key: value for key, value in extra.items() if value}


def _names(value: object) -> list[str]:
    return [each for each in value if string(each)] if isinstance(value, list) else []


def _replaced(shown: list[Any], history: list[Any]) -> int:
    """Return how many messages the model no longer sees: condensed, or cut out of its history."""
    condensed = sum(any(string(mapping(each).get(key)) for key in ("condenseParent",
                                                                   "truncationParent"))
                    for each in history)  # fmt: skip
    ranges = [mapping(each).get("conversationHistoryDeletedRange") for each in shown]
    last = next((each for each in reversed(ranges) if isinstance(each, list)), None)
    if last is None or len(last) != 2:
        return condensed
    return condensed + max(0, number(last[1]) - number(last[0]) + 1)


def _folder_of(entry: dict[str, Any], history: list[Any]) -> str | None:
    named = string(entry.get("cwdOnTaskInitialization")) or string(entry.get("workspace"))
    if named is not None:
        return named
    for message in history[:1]:
        for block in blocks_of(mapping(message).get("content")):
            found = _FOLDER.search(str(block.get("text") or ""))
            if found is not None:
                return found[1]
    return None


class _Task:
    """The messages of a task.

    Attributes:
        found: The drafts, in the order in which they were shown.
        times: When each message that has a time was shown, epoch ms.
        requests: The drafts of requests to a model.
        failed: How many requests failed, or were stopped.
    """

    def __init__(self, name: str, first: int, entry: dict[str, Any], used: dict[str, Any]) -> None:
        """Start without messages.

        Args:
            name: The task's id.
            first: The number of the record of the model's first message.
            entry: What the list says of the task.
            used: Which models it used, and from when on.
        """
        self.found: list[MessageDraft] = []
        self.times: list[int] = []
        self.requests: list[MessageDraft] = []
        self.failed = 0
        self._name, self._first, self._entry = name, first, entry
        models = used.get("model_usage")
        self._models = [mapping(each) for each in models] if isinstance(models, list) else []
        self._current: MessageDraft | None = None
        self._shown_calls: list[tuple[MessageDraft, PartDraft]] = []
        self._started = _names(entry.get("childIds"))

    # --- what was shown -----------------------------------------------------------------------

    def show(self, place: int, message: dict[str, Any]) -> None:
        """Take the next message that was shown."""
        at = epoch_ms(message.get("ts"))
        self.times += [at] if at else []
        at = at or (self.times[-1] if self.times else 0)
        asks = message.get("type") == "ask"
        told = string(message.get("ask" if asks else "say"))
        what = told or string(message.get("say")) or string(message.get("ask")) or "message"
        text = message.get("text")
        text = text if isinstance(text, str) else ""
        if not place and what in ("task", "text") or what == "user_feedback":
            self._prompt(place, message, text, at)
        elif what == "api_req_started":
            self._request(place, message, mapping(decoded(text)), at)
        elif what == "reasoning":
            self._say(place, reasoning_part(text, at, place), message, at)
        elif what in ("text", "completion_result", "plan_mode_respond"):
            plan = mapping(decoded(text)).get("response") if what == "plan_mode_respond" else None
            words = plan if isinstance(plan, str) else text
            if words or not asks:
                self._say(place, text_part(words, at, place), message, at)
            else:
                self._keep(place, at)
        elif what in _TOOLS:
            self._call(place, what, text, at)
        elif what == "error_retry" and mapping(decoded(text)).get("failed") is not True:
            self._system(place, data_part("retry", _retry(mapping(decoded(text))), at, place), at)
        elif what in _ERRORS:
            self._system(place, data_part("error", {"message": _problem(text)}, at, place), at)
        elif what == "condense_context":
            self._compact(place, message, at)
        elif what in _QUIET:
            self._keep(place, at)
            if what == "command_output":
                self._output(text)
        else:
            event = {"name": what, "details": decoded(text)}
            self._system(place, data_part("event", event, at, place), at)

    def _prompt(self, place: int, message: dict[str, Any], text: str, at: int) -> None:
        parts = [text_part(text, at, place)]
        images = message.get("images")
        for url in images if isinstance(images, list) else ():
            if isinstance(url, str) and url.startswith("data:"):
                media = url[5:].partition(";")[0] or "image/png"
                file = {"type": "file", "mediaType": media, "url": url}
                parts.append(PartDraft("file", file, at, at, records=(place,)))
        self._current = None
        self.found.append(MessageDraft(f"{place}", "user", at, at, {"origin": "human"}, parts))

    def _request(self, place: int, message: dict[str, Any], told: dict[str, Any], at: int) -> None:
        draft = MessageDraft(f"{place}", "assistant", at, at, records=(place,))
        info = mapping(message.get("modelInfo"))
        model, provider = string(info.get("modelId")), string(info.get("providerId"))
        if not info:
            model, provider = self._chosen(at)
        if model is not None:
            draft.metadata["model"] = {"provider_id": provider or "unknown", "model_id": model}
        usage = _usage(told, whole=self._counts_cache(told, provider))
        if any(usage.values()):
            draft.metadata["usage"] = usage
            draft.answer = ApiAnswer(f"{self._name}:{place}")
        cost = told.get("cost")
        if isinstance(cost, int | float) and 0 < cost < 1e9:
            draft.metadata["cost_usd"] = cost
        if string(told.get("cancelReason")):
            self.failed += 1
            draft.metadata["backscroll"] = {"cancelled": told["cancelReason"]}
        self.found.append(draft)
        self.requests.append(draft)
        self._current = draft

    def _chosen(self, at: int) -> tuple[str | None, str | None]:
        """Return the model that was chosen last before a time, and its provider."""
        for each in reversed(self._models):
            if (epoch_ms(each.get("ts")) or 0) <= at:
                return string(each.get("model_id")), string(each.get("model_provider_id"))
        return None, None

    def _counts_cache(self, told: dict[str, Any], provider: str | None) -> bool:
        """Return whether the input counts what the cache held: of Roo and Kilo it always does."""
        if "apiProtocol" in told or "workspace" in self._entry:
            return True
        return provider is not None and provider not in _WITHOUT_CACHE

    def _answer(self, place: int, at: int) -> MessageDraft:
        if self._current is None:
            self._current = MessageDraft(f"{place}", "assistant", at, at)
            self.found.append(self._current)
        return self._current

    def _say(self, place: int, part: PartDraft, message: dict[str, Any], at: int) -> None:
        draft = self._answer(place, at)
        if message.get("partial") is True:
            draft.metadata.setdefault("backscroll", {})["cut"] = True
        draft.parts.append(part)
        draft.updated_at = max(draft.updated_at, at)

    def _call(self, place: int, what: str, text: str, at: int) -> None:
        """Add a call as it was shown, until the model's own message has it."""
        draft = self._answer(place, at)
        given = mapping(decoded(text))
        name = string(given.get("tool")) or what
        if what == "command":
            name, given = "execute_command", {"command": text.removesuffix(_APPROVAL)}
        elif what == "followup":
            name = "ask_followup_question"
        nth = sum(part.tool_call_id is not None for part in draft.parts)
        part = call_part(name, f"{draft.source_id}:{nth}", given, at, place)
        if what == "followup" and string(given.get("selected")):
            settle(part, "ok", given["selected"], at, place)
        draft.parts.append(part)
        self._shown_calls.append((draft, part))

    def _output(self, text: str) -> None:
        if self._shown_calls:
            part = self._shown_calls[-1][1]
            before = part.data.get("output")
            part.data |= {"state": "output-available",
                          "output": f"{before}\n{text}" if before else text}  # fmt: skip
            part.tool_state = "output-available"

    def _system(self, place: int, part: PartDraft, at: int) -> None:
        self.found.append(MessageDraft(f"{place}", "system", at, at, {}, [part]))

    def _keep(self, place: int, at: int) -> None:
        """Keep the record of what needs no line of its own."""
        if self.found:
            self.found[-1].records = (*self.found[-1].records, place)
            return
        self._system(place, data_part("event", {"name": "status", "details": {}}, at, place), at)

    def _compact(self, place: int, message: dict[str, Any], at: int) -> None:
        told = mapping(message.get("contextCondense"))
        body: dict[str, Any] = {
            "summary": str(told.get("summary") or ""), "tail_start_id": None, "auto": False,
        }  # fmt: skip
        details = {key: number(told.get(key)) for key in ("prevContextTokens", "newContextTokens")
                   if number(told.get(key)) > 0}  # fmt: skip
        if details:
            body["details"] = details
        part = data_part("compaction", body, at, place)
        self.found.append(MessageDraft(f"{place}", "system", at, at, {"compaction": True}, [part]))
        self._current = None

    # --- what the model saw -------------------------------------------------------------------

    def join(self, history: list[dict[str, Any]]) -> None:
        """Put the model's calls and their results into the messages that were shown."""
        answers = [each for each in self.requests if "usage" in each.metadata] or self.requests
        pending: list[PartDraft] = []
        joined: set[int] = set()
        nth, model = 0, string(None)
        for place, message in enumerate(history):
            record, at = self._first + place, epoch_ms(message.get("ts"))
            blocks = blocks_of(message.get("content"))
            if not _answers(message, blocks):
                model = _model_in(blocks) or model
                self._settle(blocks, pending, at, record)
                continue
            draft, asked = self._request_of(at, nth, answers), list(_asked(blocks))
            nth += 1
            if draft is None:
                if not asked:
                    continue
                draft = MessageDraft(f"request:{place}", "assistant", at or 0, at or 0)
                self.found.append(draft)
            if model is not None and "model" not in draft.metadata:
                draft.metadata["model"] = {"provider_id": "unknown", "model_id": model}
            if asked and id(draft) not in joined:
                joined.add(id(draft))
                self._forget_shown(draft)
            draft.records = (*draft.records, record)
            pending = self._calls(draft, asked, at, record)

    def _request_of(
        self, at: int | None, nth: int, answers: list[MessageDraft]
    ) -> MessageDraft | None:
        """Return the request that a message of the model answers: the last one before it."""
        if at is not None:
            return next((each for each in reversed(self.requests) if each.created_at <= at), None)
        return answers[nth] if nth < len(answers) else None

    def _forget_shown(self, draft: MessageDraft) -> None:
        """Take calls as they were shown out of a message: the model's own say more."""
        for owner, part in self._shown_calls:
            if owner is draft:
                draft.parts = [each for each in draft.parts if each is not part]
                draft.records = (*draft.records, *part.records)

    def _calls(
        self, draft: MessageDraft, asked: list[_Asked], at: int | None, record: int
    ) -> list[PartDraft]:
        made: list[PartDraft] = []
        for name, call_id, given in asked:
            if name in ANSWERS:
                continue
            nth = sum(part.tool_call_id is not None for part in draft.parts)
            own = call_id or f"{draft.source_id}:{nth}"
            part = call_part(name, own, given, at or draft.created_at, record)
            draft.parts.append(part)
            made.append(part)
        return made

    def _settle(
        self, blocks: list[dict[str, Any]], pending: list[PartDraft], at: int | None, record: int
    ) -> None:
        for call_id, name, words, status in results_in(blocks):
            part = next((each for each in pending if _is_of(each, call_id, name)), None)
            if part is None:
                continue
            pending.remove(part)
            settle(part, status, words, at or part.created_at, record)
            child = _SUBTASK.search(words) if part.type == "tool-new_task" else None
            if part.type == "tool-new_task":
                started = child[1] if child else next(iter(self._started), None)
                if started is not None:
                    bag = part.data["resultProviderMetadata"]["backscroll"]
                    bag["child_session_source_id"] = started
                    self._started = [each for each in self._started if each != started]

    def _wait(self) -> None:
        """Let the last call wait for a person's approval."""
        parts = [part for message in self.found for part in message.parts if part.tool_call_id]
        if parts and parts[-1].tool_state == "input-available":
            parts[-1].data |= {"state": "approval-requested",
                               "approval": {"id": parts[-1].tool_call_id}}  # fmt: skip
            parts[-1].tool_state = "approval-requested"

    def activity(self, shown: list[Any]) -> dict[str, Any] | None:
        """Return what the end of the task says; None where its turn ended."""
        last, since = mapping(shown[-1]) if shown else {}, max(self.times, default=0)
        if last.get("type") == "ask":
            what = last.get("ask")
            if what in _APPROVED:
                self._wait()
                return {"state": "waiting-approval", "from": "stored", "since": since}
            if what == "followup":
                answered = string(mapping(decoded(last.get("text"))).get("selected")) is not None
                state, told = ("running", "guessed") if answered else ("waiting-input", "stored")
                return {"state": state, "from": told, "since": since}
            if what == "api_req_failed":
                return {"state": "error", "from": "stored", "since": since}
            return None
        if not last or last.get("say") == "completion_result":
            return None
        return {"state": "running", "from": "guessed", "since": since}


def _is_of(part: PartDraft, call_id: str | None, name: str | None) -> bool:
    if call_id is not None:
        return part.tool_call_id == call_id
    return part.type == f"tool-{name}"


def _answers(message: dict[str, Any], blocks: list[dict[str, Any]]) -> bool:
    """Return whether a message is the model's: one of an unknown role that has calls is, too."""
    role = message.get("role")
    return role == "assistant" or (role != "user" and any(True for _ in _asked(blocks)))


def _asked(blocks: list[dict[str, Any]]) -> Iterator[_Asked]:
    """Yield the calls of a model's message: blocks of their own, or marked up in its text."""
    for block in blocks:
        if block.get("type") == "tool_use" or "input" in block:
            name = string(block.get("name")) or "unknown"
            yield name, string(block.get("id")), block.get("input")
        elif block.get("type") == "text":
            for called, given in calls_in(str(block.get("text") or "")):
                yield called, None, given


def _model_in(blocks: list[dict[str, Any]]) -> str | None:
    for block in blocks:
        text = str(block.get("text") or "")
        if "<environment_details>" in text and (found := _MODEL.search(text)):
            return found[1]
    return None


def _usage(told: dict[str, Any], *, whole: bool) -> dict[str, int]:
    """Return a request's tokens as buckets.

    Args:
        told: What is counted.
        whole: Whether the input holds what was read from the cache and written to it.
    """
    given, said, read, write = (
        max(0, number(told.get(key)))
        for key in ("tokensIn", "tokensOut", "cacheReads", "cacheWrites")
    )
    if whole and given >= read + write:
        given -= read + write
    return {"input": given, "output": said, "reasoning": 0, "cache_read": read,
            "cache_write": write}  # fmt: skip


def _problem(text: str) -> str:
    """Return what an error says; its words may be JSON in JSON."""
    told = mapping(decoded(text))
    inner = string(told.get("errorMessage"))
    return _problem(inner) if inner else string(told.get("message")) or text


def _retry(told: dict[str, Any]) -> dict[str, Any]:
    return {
        "message": _problem(string(told.get("errorMessage")) or ""),
        "attempt": number(told.get("attempt")), "max_attempts": number(told.get("maxAttempts")),
        "delay_ms": 1000 * number(told.get("delaySeconds")),
    }  # fmt: skip


def shown_from(history: list[Any]) -> list[dict[str, Any]]:
    """Return what a person saw, as far as the model's messages tell, where its file is missing."""
    found: list[dict[str, Any]] = []
    for message in map(mapping, history):
        at, blocks = message.get("ts"), blocks_of(message.get("content"))
        texts = [str(block.get("text") or "") for block in blocks if block.get("type") == "text"]
        if not _answers(message, blocks):
            said = [words for text in texts for words in feedback_in(text)]
            found += [{"ts": at, "type": "say", "say": "user_feedback", "text": words}
                      for words in said]  # fmt: skip
            continue
        found.append({"ts": at, "type": "say", "say": "api_req_started", "text": "{}",
                      "modelInfo": message.get("modelInfo")})  # fmt: skip
        found += [{"ts": at, "type": "say", "say": "text", "text": words}
                  for text in texts if (words := words_in(text))]  # fmt: skip
        for name, _, given in _asked(blocks):
            answer = mapping(given).get("result", mapping(given).get("response"))
            if name in ANSWERS and isinstance(answer, str):
                found.append({"ts": at, "type": "say", "say": "completion_result", "text": answer})
    return found
