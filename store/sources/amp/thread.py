"""From one thread to its session: messages, times, usage, lineage.

Source: the Amp format page, sections 2 to 5. Only prompts say when they were sent, and from March
2026 answers too; the ledger of January has the times of answers. A fork copies messages with
their usage; messages are known by their place, as their numbers begin anew in a fork.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from store.sources.amp.content import part_of, settle
from store.sources.base.content_blocks import blocks_of
from store.sources.base.document_source import records_of
from store.sources.base.drafts import LineageDraft, MessageDraft, PartDraft, SessionDraft
from store.sources.base.early_results import EarlyResults
from store.sources.base.titles import FIRST_PROMPT, first_prompt, shortened
from store.sources.base.uris import path_of_uri
from store.sources.base.values import epoch_ms, mapping, number, string, utc_ms

KIND = "amp"
_BRANCH = "refs/heads/"


def thread_draft(path: str, thread: dict[str, Any]) -> SessionDraft:
    """Return the session of a thread.

    Args:
        path: Its file.
        thread: The document.
    """
    created = epoch_ms(thread.get("created")) or 0
    given = thread.get("messages")
    messages = [mapping(each) for each in given] if isinstance(given, list) else []
    built = _Messages(thread, messages, created)
    place = _place(thread)
    draft = SessionDraft(
        str(thread["id"]), path, KIND, created,
        max([created, *built.times, *(at for _, at in _ledger(thread))]),
        workspace_root=path_of_uri(place.get("uri")), messages=built.found, names_count=True,
        records=records_of(thread, messages, "messages"),
    )  # fmt: skip
    title = string(thread.get("title"))
    draft.title = shortened(title) if title else first_prompt(draft.messages)
    draft.title_from = "title" if title else FIRST_PROMPT if draft.title else None
    models = [each.metadata["model"] for each in draft.messages if "model" in each.metadata]
    draft.model = models[-1] if models else None
    draft.metadata["backscroll"] = _extra(thread, place)
    ref = string(mapping(place.get("repository")).get("ref"))
    if ref and ref.startswith(_BRANCH):
        draft.metadata["git_branch"] = ref.removeprefix(_BRANCH)
    activity = _activity(messages, built)
    if activity is not None:
        draft.metadata["activity"] = activity
    _link(draft, thread)
    return draft


class _Messages:
    """The messages of a thread, calls with their results.

    Attributes:
        found: The drafts.
        times: When each message that says so was written, epoch ms.
    """

    def __init__(
        self, thread: dict[str, Any], messages: list[dict[str, Any]], created: int
    ) -> None:
        self.found: list[MessageDraft] = []
        self.times: list[int] = []
        self._at = created
        self._calls: dict[str, tuple[PartDraft, MessageDraft]] = {}
        self._early = EarlyResults()
        point = thread.get("forkPointIndex")
        self._own_from = point + 1 if type(point) is int else 0
        self._answered = {
            number(event.get("toMessageId")): at for event, at in _ledger(thread)
            if event.get("operationType") == "inference"
        }  # fmt: skip
        for place, message in enumerate(messages):
            self._take(place, message)

    def _take(self, place: int, message: dict[str, Any]) -> None:
        at = self._time(place, message)
        record = place + 1
        if message.get("role") == "assistant":
            self._answer(place, message, at)
            return
        blocks = blocks_of(message.get("content"))
        results = [block for block in blocks if block.get("type") == "tool_result"]
        for nth, block in enumerate(results):
            self._result(f"{place}:{nth}", block, at, record)
        said = [block for block in blocks if block.get("type") != "tool_result"]
        if said or not results:
            parts = [part_of(each, f"{place}:{n}", at, record) for n, each in enumerate(said)]
            metadata: dict[str, Any] = {"origin": "human"}
            self._add(MessageDraft(f"{place}", "user", at, at, metadata, parts), record)

    def _time(self, place: int, message: dict[str, Any]) -> int:
        usage = mapping(message.get("usage"))
        at = epoch_ms(mapping(message.get("meta")).get("sentAt")) or utc_ms(usage.get("timestamp"))
        if at is None and message.get("role") == "assistant" and place >= self._own_from:
            at = self._answered.get(number(message.get("messageId")))
        if at is not None:
            self.times.append(at)
        self._at = max(self._at, at or 0) if place else at or self._at
        return at or self._at

    def _add(self, message: MessageDraft, record: int) -> None:
        if not message.parts:
            message.records = (record,)
        self.found.append(message)

    def _answer(self, place: int, message: dict[str, Any], at: int) -> None:
        record, usage = place + 1, mapping(message.get("usage"))
        draft = MessageDraft(f"{place}", "assistant", at, at)
        model = string(usage.get("model"))
        if model:
            draft.metadata["model"] = {"provider_id": "amp", "model_id": model}
        spent = _spent(usage)
        if spent:
            draft.metadata["usage"] = spent
        state = mapping(message.get("state"))
        extra = {"finish_reason": state["stopReason"]} if string(state.get("stopReason")) else {}
        if state.get("type") == "cancelled":
            extra["aborted_at"] = at
        if extra:
            draft.metadata["backscroll"] = extra
        draft.parts = [part_of(block, f"{place}:{nth}", at, record)
                       for nth, block in enumerate(blocks_of(message.get("content")))]  # fmt: skip
        self._add(draft, record)
        for part in draft.parts:
            if part.tool_call_id is not None:
                self._calls[part.tool_call_id] = part, draft
                self._early.join(part.tool_call_id, part, draft, self.found)

    def _result(self, name: str, block: dict[str, Any], at: int, record: int) -> None:
        known = self._calls.get(string(block.get("toolUseID")) or "")
        if known is None:
            part = part_of({"type": "tool_use", "id": block.get("toolUseID")}, name, at, record)
            known = part, MessageDraft(name, "assistant", at, at, {}, [part])
            self._add(known[1], record)
            self._early.hold(part.tool_call_id or "", *known)
        part, owner = known
        settle(part, mapping(block.get("run")), at, record)
        owner.updated_at = max(owner.updated_at, part.updated_at)


def _ledger(thread: dict[str, Any]) -> Iterator[tuple[dict[str, Any], int]]:
    """Yield the requests of the ledger, each with its time; those for titles too."""
    events = mapping(thread.get("usageLedger")).get("events")
    for event in map(mapping, events if isinstance(events, list) else ()):
        at = utc_ms(event.get("timestamp"))
        if at is not None:
            yield event, at


def _spent(usage: dict[str, Any]) -> dict[str, int] | None:
    found = {
        "input": number(usage.get("inputTokens")), "output": number(usage.get("outputTokens")),
        "reasoning": 0, "cache_read": number(usage.get("cacheReadInputTokens")),
        "cache_write": number(usage.get("cacheCreationInputTokens")),
    }  # fmt: skip
    found = {key: max(0, value) for key, value in found.items()}
    return found if any(found.values()) else None


def _place(thread: dict[str, Any]) -> dict[str, Any]:
    trees = mapping(mapping(thread.get("env")).get("initial")).get("trees")
    return mapping(trees[0]) if isinstance(trees, list) and trees else {}


def _extra(thread: dict[str, Any], place: dict[str, Any]) -> dict[str, Any]:
    extra: dict[str, Any] = {}
    platform = mapping(mapping(mapping(thread.get("env")).get("initial")).get("platform"))
    for name, value in (("mode", thread.get("agentMode")),
                        ("client", platform.get("clientVersion")),
                        ("repository", mapping(place.get("repository")).get("url"))):  # fmt: skip
        if string(value):
            extra[name] = value
    return extra


def _activity(messages: list[dict[str, Any]], built: _Messages) -> dict[str, Any] | None:
    """Return what the end of the thread says; None where its turn ended."""
    if not messages:
        return None
    last, at = messages[-1], max(built.times, default=0)
    state = mapping(last.get("state"))
    if last.get("role") == "assistant" and state.get("type") != "streaming":
        if state.get("type") == "cancelled":
            return {"state": "interrupted", "from": "stored", "since": at}
        if state.get("stopReason") != "tool_use":
            return None
    return {"state": "running", "from": "guessed", "since": at}


def _link(draft: SessionDraft, thread: dict[str, Any]) -> None:
    """Say what a thread was made from, and which of its messages are copies."""
    origin, main = string(thread.get("originThreadID")), string(thread.get("mainThreadID"))
    point = thread.get("forkPointIndex")
    if main is not None and main != draft.source_id:
        draft.lineage = LineageDraft("subagent", main)
    elif origin is not None and origin != draft.source_id:
        until = point if type(point) is int else -1
        copied = [each for each in draft.messages if int(each.source_id.split(":")[0]) <= until]
        for message in copied:
            message.inherited_from = message.source_id
        at = copied[-1].source_id if copied else None
        draft.lineage = LineageDraft("fork", origin, at)
