"""A row of Amazon Q's and Kiro's first database to its session.

Source: the Kiro format page, section "Q and K1". A row holds one conversation as JSON: entries of
what was asked and what was answered; results of tools are in the entry after their call's.
"""

from __future__ import annotations

from typing import Any

from store.sources.base.databases import record_bytes
from store.sources.base.drafts import MessageDraft, PartDraft, SessionDraft
from store.sources.base.plain_parts import data_part, text_part
from store.sources.base.row_reader import Row
from store.sources.base.titles import FIRST_PROMPT, first_prompt
from store.sources.base.values import mapping, ms_or_0, string
from store.sources.kiro.talk import (
    INTERRUPTED,
    KIND,
    Ended,
    Talk,
    call_of,
    image_part,
    last_model,
    model_of,
    output_of,
    time_ms,
)

_DENIED = "I deny this tool request. Ask a follow up question clarifying the expected action"
_STOPPED = "The user interrupted the tool execution."
_NOT_KEPT = frozenset({"history", "transcript", "tools"})
"""Members of a conversation that are records of their own, a copy for the screen, or bulk."""


def row_draft(path: str, row: Row, value: dict[str, Any], moved_ms: int) -> SessionDraft | None:
    """Return the session of a row; None where nothing was said in it.

    Args:
        path: The database.
        row: The row: ``key`` is the folder; the later table has times too.
        value: The conversation.
        moved_ms: When the database was written, epoch ms, for a row that tells no time.
    """
    given = value.get("history")
    history = [mapping(each) for each in given] if isinstance(given, list) else []
    chosen = mapping(value.get("model_info")).get("model_id") or value.get("model")
    taken = _Entries(chosen)
    taken.summary(value.get("latest_summary"))
    for place, entry in enumerate(history):
        taken.take(entry, place + 1)
    if not history and not taken.talk.found:
        return None
    created, updated = ms_or_0(row.get("created_at")), ms_or_0(row.get("updated_at"))
    first = created or min(taken.times, default=0) or moved_ms
    kept = {key: each for key, each in value.items() if key not in _NOT_KEPT}
    folder = string(row.get("key"))
    draft = SessionDraft(
        string(value.get("conversation_id")) or string(row.get("conversation_id")) or f"{folder}",
        path, KIND, first, updated or max(taken.times, default=0) or first,
        workspace_root=folder, messages=taken.talk.found, partial=True,
        records=[record_bytes({**row, "value": kept}), *map(record_bytes, history)],
    )  # fmt: skip
    draft.title = first_prompt(draft.messages)
    draft.title_from = FIRST_PROMPT if draft.title else None
    draft.model = last_model(draft.messages, chosen)
    if value.get("tangent_state") is not None:
        draft.metadata["backscroll"] = {"tangent": True}
    activity = taken.activity(draft.updated_at)
    if activity is not None:
        draft.metadata["activity"] = activity
    return draft


class _Entries:
    """The messages of a conversation's entries.

    Attributes:
        times: What the entries tell, epoch ms.
    """

    def __init__(self, chosen: object) -> None:
        self.talk = Talk()
        self.times: list[int] = []
        self._chosen = chosen
        self._answer: MessageDraft | None = None
        self._ended: str | None = None

    def summary(self, latest: object) -> None:
        """Begin with the summary of turns that are not there any more."""
        if not isinstance(latest, list) or not latest:
            return
        meta = mapping(latest[1] if len(latest) > 1 else None)
        self.talk.at = time_ms(meta.get("stream_end_timestamp_ms")) or 0
        name = string(meta.get("message_id"))
        self.talk.compaction(f"{name}:summary" if name else None, latest[0], 0)

    def take(self, entry: dict[str, Any], record: int) -> None:
        """Take the next entry."""
        user, meta = mapping(entry.get("user")), mapping(entry.get("request_metadata"))
        given = mapping(entry.get("assistant"))
        answer = mapping(given.get("ToolUse", given.get("Response")))
        name = string(answer.get("message_id"))
        at, end = time_ms(user.get("timestamp")), time_ms(meta.get("stream_end_timestamp_ms"))
        self.times += [each for each in (at, end) if each]
        self.talk.at = at or time_ms(meta.get("request_start_timestamp_ms")) or self.talk.at
        self._said(user, f"{name}:user" if name else None, record)
        self.talk.at = end or self.talk.at
        if given:
            self._answered(answer, name, meta.get("model_id") or self._chosen, record)

    def _said(self, user: dict[str, Any], name: str | None, record: int) -> None:
        content = user.get("content")
        bag = {"Prompt": {"prompt": content}} if isinstance(content, str) else mapping(content)
        parts = self._beside(user, record)
        self._ended = None
        prompt: object = None
        if "Prompt" in bag:
            prompt = mapping(bag["Prompt"]).get("prompt")
            prompt = prompt if isinstance(prompt, str) else ""
        elif "ToolUseResults" in bag:
            self._results(bag["ToolUseResults"], None, record)
        elif "CancelledToolUses" in bag:
            cancelled = mapping(bag["CancelledToolUses"])
            said = cancelled.get("prompt")
            denied = isinstance(said, str) and said != _STOPPED
            self._ended = "denied" if denied else "interrupted"
            self._results(cancelled, "denied" if denied else "interrupted", record)
            prompt = said if denied and said != _DENIED else None
        elif bag:
            parts.append(data_part("event", {"name": next(iter(bag)), "details": bag},
                                   self.talk.at, record))  # fmt: skip
        if isinstance(prompt, str):
            words = text_part(prompt, self.talk.at, record)
            self.talk.add(name, "user", [words, *parts], record, {"origin": "human"})
        elif parts:
            self.talk.add(name, "user", parts, record, {"origin": "meta"})

    def _beside(self, user: dict[str, Any], record: int) -> list[PartDraft]:
        """Return what was sent with the words: images, and what hooks printed."""
        images = user.get("images")
        parts = [image_part(each, self.talk.at, record)
                 for each in (images if isinstance(images, list) else ())]  # fmt: skip
        context = string(user.get("additional_context"))
        if context is not None:
            details = {"name": "context", "details": context}
            parts.append(data_part("event", details, self.talk.at, record))
        return parts

    def _results(self, given: object, ended: Ended | None, record: int) -> None:
        """Settle calls; all that were cancelled, those too without a result of their own."""
        results = mapping(given).get("tool_use_results")
        for result in map(mapping, results if isinstance(results, list) else ()):
            blocks = result.get("content")
            told = [(str(key).lower(), value) for block in
                    (blocks if isinstance(blocks, list) else ())
                    for key, value in mapping(block).items()]  # fmt: skip
            output, extra = output_of(told, self.talk.at, record)
            own: Ended = "ok" if result.get("status") == "Success" else "error"
            self.talk.settle(result.get("tool_use_id"), ended or own, output, record, extra)
        if ended is not None and self._answer is not None:
            for part in self.talk.open_calls(self._answer):
                self.talk.settle(part.tool_call_id, ended, "", record)

    def _answered(
        self, answer: dict[str, Any], name: str | None, model: object, record: int
    ) -> None:
        text = answer.get("content")
        if text in INTERRUPTED:
            self._ended = "interrupted"
            self.talk.notice(str(text), record)
            return
        parts = [text_part(text, self.talk.at, record)] if isinstance(text, str) and text else []
        uses = answer.get("tool_uses")
        for nth, use in enumerate(map(mapping, uses if isinstance(uses, list) else ())):
            call_id = string(use.get("id")) or f"{name or record}:{nth}"
            parts.append(call_of(use.get("name"), call_id, use.get("args"), self.talk.at, record))
        told = model_of(model)
        metadata = {"model": told} if told is not None else {}
        self._answer = self.talk.add(name, "assistant", parts, record, metadata)

    def activity(self, at: int) -> dict[str, Any] | None:
        """Return what the last entry says: it is saved when its answer is there."""
        if self._answer is not None and self.talk.open_calls(self._answer):
            return {"state": "running", "from": "guessed", "since": at}
        if self._ended == "interrupted":
            return {"state": "interrupted", "from": "stored", "since": at}
        return None
