"""From a chat's requests to its session: turns, what was undone, title, model, activity.

Source: the page on Copilot Chat in VS Code, sections 3 to 6. Counts of tokens are those of the
last request of a turn: they say how full the context was, not what was spent.
"""

from __future__ import annotations

import base64
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from store.sources.base.drafts import MessageDraft, PartDraft, SessionDraft
from store.sources.base.plain_parts import data_part, text_part
from store.sources.base.titles import FIRST_PROMPT, first_prompt, shortened
from store.sources.base.values import epoch_ms, mapping, number, string
from store.sources.copilot_chat.content import parts_of, words
from store.sources.copilot_chat.edits import edited_files, place_of
from store.sources.copilot_chat.log import REQUESTS, Turn

KIND = "copilot-chat"
_STATES = ("pending", "complete", "cancelled", "failed", "needs_input")
_OWN_EXTENSIONS = ("github.copilot-chat", "github.copilot")


@dataclass(frozen=True, slots=True)
class Beside:
    """What stands beside a chat.

    Attributes:
        entry: What the index says of it.
        workspace: The folder, or the file of a workspace of several; None for an empty window.
        edits: The chat's editing session.
    """

    entry: dict[str, Any]
    workspace: str | None
    edits: dict[str, Any]


def holds_chat(data: object) -> bool:
    """Return whether a value is the whole state of a chat."""
    chat = mapping(data)
    return isinstance(chat.get(REQUESTS), list) and (
        "responderUsername" in chat or "creationDate" in chat
    )


def state_of(request: dict[str, Any]) -> str:
    """Return how a turn ended; before 1.107 only its result and a mark say so."""
    told = mapping(request.get("modelState")).get("value")
    if type(told) is int and 0 <= told < len(_STATES):
        return _STATES[told]
    if request.get("isCanceled") is True:
        return "cancelled"
    if mapping(mapping(request.get("result")).get("errorDetails")):
        return "failed"
    return "complete"


def chat_draft(
    path: str,
    state: dict[str, Any],
    turns: Sequence[Turn],
    records: Sequence[bytes],
    beside: Beside,
    name: str,
) -> SessionDraft:
    """Return the session of a chat.

    Args:
        path: Its file.
        state: The chat as it is now.
        turns: Its requests, those too that were cut out.
        records: The lines of its file, or the parts of its document.
        beside: What stands beside it.
        name: Its id, where it does not say one.
    """
    created = epoch_ms(state.get("creationDate")) or 0
    live = [turn.request for turn in turns if turn.cut is None]
    times = [at for request in live for at in _times(request)]
    times += filter(None, [epoch_ms(state.get("lastMessageDate"))])
    created = created or min(times, default=0)
    draft = SessionDraft(
        string(state.get("sessionId")) or name, path, KIND, created, max([created, *times]),
        workspace_root=beside.workspace, records=records, tells_title=bool(beside.entry),
    )  # fmt: skip
    _add_turns(draft, turns, edited_files(beside.edits))
    _add_queued(draft, state)
    _name(draft, state, beside.entry)
    models = [each.metadata["model"] for each in draft.messages
              if "model" in each.metadata and "hidden_at" not in each.metadata]  # fmt: skip
    draft.model = models[-1] if models else _selected(state)
    draft.metadata["backscroll"] = _extra(draft, state, live)
    branch = string(mapping(state.get("repoData")).get("localBranch"))
    if branch is not None:
        draft.metadata["git_branch"] = branch
    ended = state_of(live[-1]) if live else "complete"
    activity = {
        "pending": ("running", "guessed"),
        "cancelled": ("interrupted", "stored"),
        "failed": ("error", "stored"),
        "needs_input": ("waiting-input", "stored"),
    }
    if ended in activity:
        word, told = activity[ended]
        draft.metadata["activity"] = {"state": word, "from": told, "since": draft.updated_at}
    return draft


def _times(request: dict[str, Any]) -> list[int]:
    found = (request.get("timestamp"), mapping(request.get("modelState")).get("completedAt"))
    return [at for stamp in found if (at := epoch_ms(stamp)) is not None]


def _add_turns(draft: SessionDraft, turns: Sequence[Turn], edited: dict[str, str | None]) -> None:
    """Add the messages of each turn, and hide those that were taken out of the chat."""
    at = draft.created_at
    names: set[str] = set()
    cuts: dict[int, list[MessageDraft]] = {}
    starts: list[tuple[int, int]] = []
    last = next((turn for turn in reversed(turns) if turn.cut is None), None)
    told = {string(turn.request.get("requestId")) for turn in turns if turn.cut is None}
    for place, turn in enumerate(turns):
        at = epoch_ms(turn.request.get("timestamp")) or at
        mine = [
            path
            for path, request in edited.items()
            if turn.cut is None
            and (request == turn.request.get("requestId") or turn is last and request not in told)
        ]
        made = _Turn(turn, place, at, mine)
        messages = made.messages(names)
        at = max(at, made.end)
        starts.append((min(turn.records, default=0), made.at))
        if turn.cut is not None:
            cuts.setdefault(turn.cut, []).extend(messages)
        elif turn.request.get("shouldBeRemovedOnSend") or turn.request.get("isHidden") is True:
            for message in messages:
                message.metadata["hidden_at"] = made.end + 1
        draft.messages += messages
    _hide(cuts, starts)


def _hide(cuts: dict[int, list[MessageDraft]], starts: list[tuple[int, int]]) -> None:
    """Hide what each record took out: from when the chat went on, each at a time of its own."""
    used: set[int] = set()
    for record, messages in sorted(cuts.items()):
        ended = max((each.updated_at for each in messages), default=0)
        at = next((begun for first, begun in starts if first > record and begun > ended), ended + 1)
        while at in used:
            at += 1
        used.add(at)
        for message in messages:
            message.metadata["hidden_at"] = at
            message.metadata["backscroll"]["removed"] = True


class _Turn:
    """The messages of one turn.

    Attributes:
        at: When it was asked, epoch ms.
        end: When it ended.
    """

    def __init__(self, turn: Turn, place: int, at: int, edited: list[str]) -> None:
        request = turn.request
        self._request, self._place, self._edited = request, place, edited
        first, *rest = turn.records or (0,)
        # A log has many records of a turn; that of the request, and the last one, show it.
        self._records, self._ends = (first,), tuple(dict.fromkeys((first, *rest[-1:])))
        self._between = tuple(rest[:-1])
        self._result = mapping(request.get("result"))
        self._metadata = mapping(self._result.get("metadata"))
        self._state = state_of(request)
        self.at = at
        took = number(mapping(self._result.get("timings")).get("totalElapsed"))
        completed = epoch_ms(mapping(request.get("modelState")).get("completedAt"))
        has_time = epoch_ms(request.get("timestamp")) is not None
        self.end = max(at, completed or (at + max(0, took) if has_time else at))

    def messages(self, names: set[str]) -> list[MessageDraft]:
        """Return the prompt, a compaction's summary, and the answer.

        Args:
            names: The names of earlier messages; takes those of the new ones.
        """
        found = [self._prompt(), *self._summaries()]
        answer = self._answer()
        found += [answer] if answer is not None else []
        for message in found:
            if message.source_id in names:
                message.source_id = f"{message.source_id}:{self._place}"
            names.add(message.source_id)
        return found

    def _name(self, key: str, fallback: str) -> str:
        return string(self._request.get(key)) or f"{self._place}{fallback}"

    def _prompt(self) -> MessageDraft:
        said = self._request.get("message")
        text = said if isinstance(said, str) else mapping(said).get("text")
        parts = [text_part(text, self.at, *self._records)] if isinstance(text, str) else []
        parts += self._attached()
        agent = mapping(self._request.get("agent"))
        extra: dict[str, Any] = {"turn": self._state}
        if string(agent.get("id")):
            extra["agent"] = agent["id"]
        extension = string(mapping(agent.get("extensionId")).get("value"))
        if extension and extension.lower() not in _OWN_EXTENSIONS:
            extra["extension"] = extension
        command = mapping(self._request.get("slashCommand"))
        if string(command.get("name")):
            extra["slash_command"] = command["name"]
        metadata = {"origin": "human", "backscroll": extra}
        name = self._name("requestId", "")
        return MessageDraft(name, "user", self.at, self.at, metadata, parts,
                            records=() if parts else self._records)  # fmt: skip

    def _attached(self) -> list[PartDraft]:
        given = mapping(self._request.get("variableData")).get("variables")
        return [_attachment(each, self.at, self._records)
                for each in map(mapping, given if isinstance(given, list) else ())]  # fmt: skip

    def _summaries(self) -> list[MessageDraft]:
        given = self._metadata.get("summaries")
        listed = given if isinstance(given, list) else [self._metadata.get("summary")]
        texts = [text for each in listed if (text := string(mapping(each).get("text")))]
        name = self._name("requestId", "")
        return [
            MessageDraft(f"{name}:summary-{nth}", "system", self.at, self.at,
                         {"compaction": True, "backscroll": {}}, [data_part(
                             "compaction", {"summary": text, "tail_start_id": None, "auto": True},
                             self.at, *self._records)])
            for nth, text in enumerate(texts)
        ]  # fmt: skip

    def _answer(self) -> MessageDraft | None:
        """Return the answer; None while there is nothing of it."""
        name = self._name("responseId", ":answer")
        first = number(mapping(self._result.get("timings")).get("firstProgress"))
        begun = min(self.at + max(0, first), self.end)
        parts = parts_of(self._request, name, begun, self._ends)
        told = {path for part in parts if part.type == "data-patch"
                for path in part.data["data"].get("files", ())}  # fmt: skip
        more = [path for path in self._edited if path not in told]
        if more:
            parts.append(data_part("patch", {"files": more}, self.end, *self._ends))
        error = mapping(self._result.get("errorDetails"))
        if self._state == "failed" or string(error.get("message")) and self._state != "cancelled":
            body: dict[str, Any] = {"message": words(error.get("message")) or "The request failed."}
            if string(error.get("code")):
                body["code"] = error["code"]
            parts.append(data_part("error", body, self.end, *self._ends))
        if not parts and self._state in ("pending", "needs_input"):
            return None
        extra = self._said()
        metadata: dict[str, Any] = {"backscroll": extra}
        model = string(self._metadata.get("resolvedModel")) or string(self._request.get("modelId"))
        if model is not None:
            chosen = string(self._request.get("modelId")) or model
            vendor, found, _ = chosen.partition("/")
            metadata["model"] = {"provider_id": vendor if found else "unknown", "model_id": model}
        records = self._between if parts else (*self._ends, *self._between)
        return MessageDraft(name, "assistant", begun, self.end, metadata, parts, records=records)

    def _said(self) -> dict[str, Any]:
        """Return what a turn's end says beside its words."""
        extra: dict[str, Any] = {}
        if self._state == "cancelled":
            extra["aborted_at"] = self.end
        counts = [self._metadata.get(name) for name in ("promptTokens", "outputTokens")]
        if any(number(count) > 0 for count in counts):
            extra["context_tokens"] = [max(0, number(count)) for count in counts]
        vote = self._request.get("vote")
        if type(vote) is int:
            extra["vote"] = vote
        return extra


def _attachment(item: dict[str, Any], at: int, records: tuple[int, ...]) -> PartDraft:
    """Return what a person attached: an image, or a file or selection by its name and place."""
    name, value = str(item.get("name") or ""), item.get("value")
    image = _bytes(value) if item.get("kind") == "image" else None
    if image is not None:
        media = string(item.get("mimeType")) or "image/png"
        url = f"data:{media};base64,{base64.b64encode(image).decode()}"
        data = {"type": "file", "mediaType": media, "url": url, "filename": name}
        return PartDraft("file", data, at, at, records=records)
    target = mapping(value)
    place = place_of(target.get("uri", target)) if target else None
    content = place or (value if isinstance(value, str) else "")
    details = {"name": name, "content": content}
    return data_part("event", {"name": "context", "details": details}, at, *records)


def _bytes(value: object) -> bytes | None:
    """Return an image's bytes: numbers in a list or by their places, or base64."""
    if isinstance(value, dict):
        if isinstance(value.get("$base64"), str):
            return _decoded(value["$base64"])
        places = sorted((int(key), one) for key, one in value.items() if key.isdecimal())
        value = [one for _, one in places]
    if isinstance(value, str):
        return _decoded(value)
    if isinstance(value, list) and all(type(one) is int and 0 <= one < 256 for one in value):
        return bytes(value)
    return None


def _decoded(text: str) -> bytes | None:
    try:
        return base64.b64decode(text, validate=True)
    except ValueError:
        return None


def _add_queued(draft: SessionDraft, state: dict[str, Any]) -> None:
    """Add the prompts that wait to be sent."""
    given = state.get("pendingRequests")
    known = {message.source_id for message in draft.messages}
    for nth, item in enumerate(map(mapping, given if isinstance(given, list) else ())):
        request = mapping(item.get("request"))
        said = request.get("message")
        text = said if isinstance(said, str) else mapping(said).get("text")
        at = epoch_ms(request.get("timestamp")) or draft.updated_at
        name = string(item.get("id")) or string(request.get("requestId")) or f"queued-{nth}"
        name = name if name not in known else f"{name}:queued"
        known.add(name)
        record = max(0, len(draft.records) - 1)
        parts = [text_part(text if isinstance(text, str) else "", at, record)]
        draft.messages.append(
            MessageDraft(
                name, "user", at, at, {"origin": "human", "queued_at": at, "backscroll": {}}, parts
            )
        )


def _name(draft: SessionDraft, state: dict[str, Any], entry: dict[str, Any]) -> None:
    given = (("custom-title", state.get("customTitle")), ("title", state.get("computedTitle")),
             ("index", entry.get("title")))  # fmt: skip
    for told, title in given:
        if string(title):
            draft.title, draft.title_from = shortened(str(title)), told
            draft.tells_title = True
            return
    draft.title = first_prompt(draft.messages)
    draft.title_from = FIRST_PROMPT if draft.title else None


def _selected(state: dict[str, Any]) -> dict[str, Any] | None:
    """Return the model that is chosen for the next request."""
    chosen = string(
        mapping(mapping(state.get("inputState")).get("selectedModel")).get("identifier")
    )
    if chosen is None or not state.get(REQUESTS):
        return None
    vendor, found, _ = chosen.partition("/")
    return {"provider_id": vendor if found else "unknown", "model_id": chosen}


def _extra(
    draft: SessionDraft, state: dict[str, Any], live: list[dict[str, Any]]
) -> dict[str, Any]:
    version = number(state.get("version"))
    extra: dict[str, Any] = {"format_version": version if version > 0 else 1}
    typed = string(mapping(state.get("inputState")).get("inputText"))
    if typed is not None:
        extra["draft"] = typed
    for key, name in (("initialLocation", "location"), ("responderUsername", "responder")):
        if string(state.get(key)):
            extra[name] = state[key]
    used = [each.metadata["backscroll"].get("context_tokens") for each in draft.messages
            if each.role == "assistant" and "hidden_at" not in each.metadata]  # fmt: skip
    if live and used and used[-1] is not None:
        extra["context_tokens"] = sum(used[-1])
    return extra
