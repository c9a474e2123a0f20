"""A trajectory of mini-SWE-agent to its session.

Source: the SWE-agent format page, section "mini". Versions before 2 have no calls: the command is
a block in the answer, and what it printed is the next message of the user.
"""

from __future__ import annotations

import hashlib
import re
from itertools import pairwise
from typing import Any

from store.sources.base.content_blocks import text_of
from store.sources.base.databases import decoded, record_bytes
from store.sources.base.drafts import MessageDraft, PartDraft, Role, SessionDraft
from store.sources.base.plain_parts import call_part, data_part, reasoning_part, text_part
from store.sources.base.titles import FIRST_PROMPT, first_prompt
from store.sources.base.values import mapping, named_model, number, string, utc_ms
from store.sources.swe_agent.shared import KIND, dollars, no_answer, settle, tokens_of

FORMAT = "mini-swe-agent"
_SUBMIT = "COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT"
_NOT_RUN = "action was not executed"
_SUBMITTED = "Submitted"
_REJECTED = "UserRejection"
_TASK = re.compile(r"\{\{-?\s*task\s*-?\}\}")
_TAGS = re.compile(r"\{\{.*?\}\}|\{%.*?%\}", re.S)
_COMMAND = re.compile(r"```(?:bash|mswea_bash_command)\s*\n(.*?)\n?```", re.S)
_CODE = re.compile(r"\s*<returncode>\s*(-?\d{1,9})\s*</returncode>\s*")
_OUTPUT = re.compile(r"\A<output>\n?(.*?)\n?</output>\s*\Z", re.S)
_REJECTION = re.compile(r"Commands? not executed\. The user rejected")
_STOPPED = ("KeyboardInterrupt", "UserInterruption")
_SHELL = "bash"
_LONG_ID = 10
"""Characters of an API's id from which on it is no mere number of an answer."""


def is_trajectory(data: Any) -> bool:
    """Return whether a document is one of this program."""
    if not isinstance(data, dict) or not isinstance(data.get("messages"), list):
        return False
    return str(data.get("trajectory_format")).startswith(FORMAT) or (
        "mini_version" in mapping(data.get("info")))


def mini_draft(path: str, data: dict[str, Any], written_ms: int) -> SessionDraft:
    """Return the session of a trajectory.

    Args:
        path: Its file.
        data: The document.
        written_ms: When the file was written, epoch ms, for a run that tells no time.
    """
    info = mapping(data.get("info"))
    config = mapping(info.get("config"))
    environment = mapping(config.get("environment"))
    messages = [mapping(each) for each in data["messages"]]
    times = [at for each in messages if (at := _stamped(each))]
    answered = [at for each in messages if (at := _answered(each))]
    created = min(times or answered or [written_ms])
    updated = max(times or answered or [written_ms])
    model = named_model(mapping(config.get("model")).get("model_name"))
    taken = _Messages(info, model, created)
    after: dict[str, Any] | None = None
    following = list[dict[str, Any] | None]()
    for message in reversed(messages):
        following.append(after)
        after = after if message.get("role") == "tool" else message
    for place, message in enumerate(messages):
        taken.take(place, message, following[-1 - place])
    kept = {**info, "config": {**config, "environment": {
        key: value for key, value in environment.items() if key != "env"}}}
    draft = SessionDraft(
        f"{path}#{_run(messages, times)}", path, KIND, created, updated,
        workspace_root=string(environment.get("cwd")), messages=taken.found, model=model,
        names_count=True,
        records=[record_bytes({"info": kept}), *map(record_bytes, messages)],
    )  # fmt: skip
    draft.title = first_prompt(draft.messages)
    draft.title_from = FIRST_PROMPT if draft.title else None
    ended = string(info.get("exit_status"))
    calls = number(mapping(info.get("model_stats")).get("api_calls"))
    draft.metadata["backscroll"] = {
        "format": data.get("trajectory_format"), "exit_status": ended or "",
        "submission": info.get("submission") or "", "api_calls": calls,
    }  # fmt: skip
    activity = _activity(ended, updated)
    if activity is not None:
        draft.metadata["activity"] = activity
    return draft


def _run(messages: list[dict[str, Any]], times: list[int]) -> str:
    """Return what tells a run from others that overwrite the same file: its first answer."""
    responses = (mapping(mapping(one.get("extra")).get("response")) for one in messages)
    named = next((each["id"] for each in responses if string(each.get("id"))), "")
    asked = next((text_of(one.get("content")) for one in messages if one.get("role") == "user"), "")
    first = named if len(named) >= _LONG_ID else f"{times[:1]}"
    words = f"{first}\0{asked}".encode("utf-8", "surrogatepass")
    return hashlib.blake2b(words, digest_size=6).hexdigest()


def _activity(ended: str | None, at: int) -> dict[str, Any] | None:
    if ended is None:
        return {"state": "running", "from": "guessed", "since": at}
    if ended == _SUBMITTED:
        return None
    state = "interrupted" if ended in _STOPPED else "error"
    return {"state": state, "from": "stored", "since": at}


def _stamped(message: dict[str, Any]) -> int | None:
    extra = mapping(message.get("extra"))
    return utc_ms(extra.get("timestamp")) or utc_ms(message.get("timestamp"))


def _answered(message: dict[str, Any]) -> int | None:
    """Return when an answer was made, by the API's own word."""
    response = mapping(mapping(message.get("extra")).get("response"))
    return utc_ms(response.get("created")) or utc_ms(response.get("created_at"))


class _Messages:
    """The messages of a trajectory.

    Attributes:
        found: The drafts, in order.
    """

    def __init__(self, info: dict[str, Any], model: dict[str, Any] | None, at: int) -> None:
        self.found: list[MessageDraft] = []
        agent = mapping(mapping(info.get("config")).get("agent"))
        self._template = string(agent.get("instance_template")) or ""
        self._ended = string(info.get("exit_status"))
        self._model, self._at = model, at
        self._calls: dict[str, PartDraft] = {}
        self._open: list[PartDraft] = []
        self._asked = False

    def take(self, place: int, message: dict[str, Any], after: dict[str, Any] | None) -> None:
        """Take the next message.

        Args:
            place: Its place, from 0; its record is the next number.
            message: The message.
            after: The next one that is no result; None behind the last.
        """
        role, extra = message.get("role"), mapping(message.get("extra"))
        self._at = _stamped(message) or _answered(message) or self._at
        text, record = text_of(message.get("content")), place + 1
        if role == "assistant" or message.get("object") == "response":
            self._answer(place, message, text, extra)
        elif role == "tool" or message.get("type") == "function_call_output":
            call = message.get("tool_call_id") or message.get("call_id")
            part = self._calls.get(string(call) or "") or self._unknown(place, call)
            self._result(part, extra, text, after, record)
        elif role == "user" and not self._asked:
            self._asked = True
            self._task(place, text)
        elif role == "user":
            self._told(place, text, extra, after)
        elif role == "exit":
            self._event(place, "exit", {"status": extra.get("exit_status"), "text": text})
        else:
            self._event(place, "system prompt" if role == "system" else str(role), text)

    def _add(self, name: str, role: Role, parts: list[PartDraft], record: int) -> MessageDraft:
        draft = MessageDraft(name, role, self._at, self._at, {}, parts)
        if not parts:
            draft.records = (record,)
        self.found.append(draft)
        return draft

    def _event(self, place: int, name: str, details: object) -> None:
        event = {"name": name, "details": details}
        self._add(f"{place}", "system", [data_part("event", event, self._at, place + 1)], place + 1)

    def _unknown(self, place: int, call: object) -> PartDraft:
        part = call_part(None, string(call) or f"{place}:call", None, self._at, place + 1)
        self._add(f"{place}", "assistant", [part], place + 1)
        return part

    def _task(self, place: int, text: str) -> None:
        """Add the task, with the program's instructions round it apart."""
        task, record = task_in(text, self._template), place + 1
        parts = [text_part(task, self._at, record)]
        if task != text:
            event = {"name": "instructions", "details": text}
            parts.append(data_part("event", event, self._at, record))
        self._add(f"{place}", "user", parts, record).metadata["origin"] = "human"

    def _answer(
        self, place: int, message: dict[str, Any], text: str, extra: dict[str, Any]
    ) -> None:
        record, parts = place + 1, list[PartDraft]()
        thought = string(message.get("reasoning_content"))
        if thought is not None:
            parts.append(reasoning_part(thought, self._at, record))
        made = self._stated(place, message, extra)
        if not made and not isinstance(message.get("tool_calls"), list):
            blocks = _COMMAND.findall(text)
            if len(blocks) == 1:
                text = _COMMAND.sub("", text).strip()
                made = [call_part(_SHELL, f"{place}:0", {"command": blocks[0]}, self._at, record)]
        if text:
            parts.append(text_part(text, self._at, record))
        draft = self._add(f"{place}", "assistant", [*parts, *made], record)
        self._open = list(made)
        self._calls |= {str(part.tool_call_id): part for part in made}
        self._count(draft, extra)

    def _stated(
        self, place: int, message: dict[str, Any], extra: dict[str, Any]
    ) -> list[PartDraft]:
        """Return the calls that an answer states, else those that the program made of it."""
        calls = message.get("tool_calls")
        made: list[PartDraft] = []
        for nth, call in enumerate(map(mapping, calls if isinstance(calls, list) else ())):
            function = mapping(call.get("function"))
            given, call_id = decoded(function.get("arguments")), string(call.get("id"))
            made.append(call_part(function.get("name"), call_id or f"{place}:{nth}", given,
                                  self._at, place + 1))  # fmt: skip
        actions = extra.get("actions")
        for nth, action in enumerate(actions if isinstance(actions, list) and not made else ()):
            bag = mapping(action)
            command = bag.get("command") if bag else action
            call_id = string(bag.get("tool_call_id")) or f"{place}:{nth}"
            made.append(call_part(_SHELL, call_id, {"command": command}, self._at, place + 1))
        return made

    def _count(self, draft: MessageDraft, extra: dict[str, Any]) -> None:
        if self._model is not None:
            draft.metadata["model"] = self._model
        used = tokens_of(mapping(mapping(extra.get("response")).get("usage")))
        if used is not None:
            draft.metadata["usage"] = used
        cost = dollars(extra.get("cost"))
        if cost is not None:
            draft.metadata["cost_usd"] = cost

    def _result(
        self, part: PartDraft, extra: dict[str, Any], text: str, after: dict[str, Any] | None,
        record: int,
    ) -> None:
        """Settle a call by what the program says of it beside the text for the model."""
        self._open = [each for each in self._open if each is not part]
        if part.tool_state != "input-available":
            return
        code, trouble = extra.get("returncode"), string(extra.get("exception_info"))
        raw = extra.get("raw_output")
        output = raw if isinstance(raw, str) else text
        if trouble == _NOT_RUN:
            self._not_run(part, after, record)
        elif type(code) is int and not trouble:
            settle(part, "error" if code else "ok", output, self._at, record, exit_code=code)
        else:
            status = "error" if trouble or code not in (None, 0) else "ok"
            said = {"exit_code": code} if type(code) is int else {}
            settle(part, status, trouble or output, self._at, record, **said)

    def _not_run(self, part: PartDraft, after: dict[str, Any] | None, record: int) -> None:
        """Settle a call that was not run: rejected, the end of the run, or cut off."""
        kind = mapping(mapping(after).get("extra")).get("interrupt_type")
        command = str(mapping(part.data.get("input")).get("command"))
        if kind == _REJECTED:
            words = text_of(mapping(after).get("content"))
            settle(part, "denied", words, self._at, record, returncode=-1)
        elif _SUBMIT in command and mapping(after).get("role") in ("exit", None):
            settle(part, "ok", "", self._at, record, submitted=True, returncode=-1)
        else:
            settle(part, "interrupted", _NOT_RUN, self._at, record, returncode=-1)

    def _told(
        self, place: int, text: str, extra: dict[str, Any], after: dict[str, Any] | None
    ) -> None:
        """Add what the program said in the user's name: a result, a notice, the end."""
        record, kind = place + 1, string(extra.get("interrupt_type"))
        if kind is not None:
            self._notice(place, "rejection" if kind == _REJECTED else kind, text, extra)
        elif "returncode" in extra and self._open:
            self._result(self._open[0], extra, text, after, record)
        elif self._open and after is None and self._ended == _SUBMITTED:
            settle(self._open.pop(0), "ok", "", self._at, record, submitted=True)
            self._event(place, "exit", {"status": self._ended, "text": text})
        elif self._open and _REJECTION.match(text):
            settle(self._open.pop(0), "denied", text, self._at, record)
            self._notice(place, "rejection", text, extra)
        elif self._open:
            self._observed(self._open.pop(0), text, record)
        else:
            self._event(place, "notice", text)

    def _notice(self, place: int, kind: str, text: str, extra: dict[str, Any]) -> None:
        response = mapping(extra.get("response"))
        choices = response.get("choices")
        first = mapping(choices[0] if isinstance(choices, list) and choices else None)
        answer = text_of(mapping(first.get("message")).get("content"))
        self._event(place, kind, {"text": text, "answer": answer} if answer else {"text": text})
        if tokens_of(mapping(response.get("usage"))) is not None:
            # A failed answer is not among the messages, and was paid for.
            failed = no_answer(f"{place}:answer", self._at, place + 1, initiator=kind)
            self._count(failed, extra)
            self.found.append(failed)

    def _observed(self, part: PartDraft, text: str, record: int) -> None:
        """Settle a call of an older version by the text that the model got."""
        stated = _CODE.match(text)
        code = int(stated[1]) if stated else None
        rest = text[stated.end() :] if stated else text
        inner = _OUTPUT.match(rest)
        extra = {"exit_code": code} if code is not None else {}
        status = "error" if code not in (0,) else "ok"
        settle(part, status, inner[1] if inner else rest, self._at, record, **extra)


def task_in(text: str, template: str) -> str:
    """Return the task in the words that the model got; all of them where it cannot be told.

    Args:
        text: The first message of the user.
        template: What it was made of, with a place for the task.
    """
    place = _TASK.search(template)
    if place is None:
        return text
    tags = [(0, 0), *(found.span() for found in _TAGS.finditer(template)),
            (len(template), len(template))]  # fmt: skip
    before = after = ""
    for (_, end), (start, stop) in pairwise(tags):
        if stop == place.end():
            before = template[end:start]
        if end == place.end():
            after = template[end:start]
    begin = text.find(before) if before.strip() else 0
    if begin < 0:
        begin, before = text.find(before.strip()), before.strip()
    if begin < 0:
        return text
    rest = text[begin + len(before) :]
    end = rest.find(after.rstrip()) if after.strip() else len(rest)
    return rest[:end].strip() if end > 0 else text
