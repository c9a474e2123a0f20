"""The parts of a response to AI SDK parts: text, thoughts, calls, edits.

Source: the page on Copilot Chat in VS Code, section 4. A call has no arguments and no result as
such: what the tool noted stands beside it, and the rounds that come with the end of a turn have
the model's own words, under ids that need not be the call's.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

from store.sources.base.databases import decoded
from store.sources.base.drafts import PartDraft
from store.sources.base.plain_parts import call_part, data_part, reasoning_part, text_part
from store.sources.base.values import mapping, number, string
from store.sources.copilot_chat.edits import place_of

_CALLS = ("toolInvocationSerialized", "toolInvocation")
_QUIET = ("undoStop", "prepareToolInvocation", "codeblockUri", "mcpServersStarting")
"""Marks without words; a block of code that is an edit is in the edit too."""
_EDITS = ("textEditGroup", "notebookEditGroup")
_NAMED = (
    "progressMessage", "progressTaskSerialized", "confirmation", "elicitationSerialized",
    "questionCarousel", "command", "warning", "multiDiffData", "hook", "workspaceEdit",
    "treeData", "extensions", "pullRequest",
)  # fmt: skip
"""Kinds whose words say all; of others the whole is shown."""
_TOLD = ("content", "message", "title", "value")
_DENIED, _SKIPPED = 0, 5
_SUFFIX = "__vscode-"
_PREFIX = "copilot_"


class Round(NamedTuple):
    """A call as the model made it: the tool's name, the arguments, the result if there is one."""

    id: str
    name: str
    arguments: Any
    result: str | None


def words(value: object) -> str:
    """Return a text, or the text of VS Code's Markdown object."""
    for _ in range(2):
        value = value.get("value") if isinstance(value, dict) else value
    return value if isinstance(value, str) else ""


def parts_of(
    request: dict[str, Any], name: str, at: int, records: tuple[int, ...]
) -> list[PartDraft]:
    """Return the parts of a request's response.

    Args:
        request: The request.
        name: Names calls that have no id.
        at: When the response began, epoch ms.
        records: Numbers of the records that the request was made of.
    """
    response = request.get("response")
    items = [response] if isinstance(response, str) else response
    rounds = rounds_of(mapping(mapping(request.get("result")).get("metadata")))
    taken = _Response(name, at, rounds)
    for item in items if isinstance(items, list) else ():
        taken.take(item)
    taken.end_text()
    for part in taken.parts:
        part.records = records
    taken.settle()
    return taken.parts


class _Response:
    """The parts of one response, as they are taken."""

    def __init__(self, name: str, at: int, rounds: list[Round]) -> None:
        self.parts: list[PartDraft] = []
        self._name, self._at, self._rounds = name, at, rounds
        self._text: list[str] = []
        self._edits: list[PartDraft] = []
        self._calls: list[tuple[PartDraft, dict[str, Any]]] = []

    def take(self, item: object) -> None:
        """Take the next part of the response."""
        if isinstance(item, str):
            self._text.append(item)
            return
        if not isinstance(item, dict):
            return
        kind = string(item.get("kind"))
        if kind is None and ("value" in item or not item):
            self._text.append(words(item))
        elif kind is None:
            self._other("part", item)
        elif kind in ("markdownContent", "markdownVuln"):
            self._text.append(words(item.get("content")))
        elif kind == "inlineReference":
            self._text.append(_reference(item))
        elif kind in _EDITS:
            self._edit(item)
        elif kind not in _QUIET:
            self._other(kind, item)

    def end_text(self) -> None:
        """End the text that parts around edits make up; then say what was edited."""
        text = "".join(self._text)
        if text:
            self.parts.append(text_part(text, self._at))
        self.parts += self._edits
        self._text, self._edits = [], []

    def _edit(self, item: dict[str, Any]) -> None:
        path = place_of(item.get("uri"))
        if path is None:
            return
        change = {"files": [path]}
        if all(part.data["data"] != change for part in self._edits):
            self._edits.append(data_part("patch", change, self._at))

    def _other(self, kind: str, item: dict[str, Any]) -> None:
        if kind == "thinking":
            given = item.get("value")
            thought = "".join(map(words, given)) if isinstance(given, list) else words(given)
            if thought:
                self.end_text()
                self.parts.append(reasoning_part(thought, self._at, 0))
            return
        self.end_text()
        if kind in _CALLS:
            name = string(item.get("toolCallId")) or f"{self._name}:{len(self._calls)}"
            part = call_part(item.get("toolId"), name, None, self._at, 0)
            self._calls.append((part, item))
            self.parts.append(part)
            return
        known = kind in _NAMED
        told = "\n".join(dict.fromkeys(
            said for key in _TOLD if known and (said := words(item.get(key)))
        ))  # fmt: skip
        rest = {key: value for key, value in item.items() if key != "kind"}
        pieces = rest.get("value")
        if isinstance(pieces, list) and all(isinstance(piece, str) for piece in pieces):
            rest["value"] = "".join(pieces)
        self.parts.append(data_part("event", {"name": kind, "details": told or rest}, self._at))

    def settle(self) -> None:
        """Put what is known of each call into its part."""
        matched = _matched([(part.tool_call_id or "", item) for part, item in self._calls],
                           self._rounds)  # fmt: skip
        for (part, item), found in zip(self._calls, matched, strict=True):
            _settle(part, item, found)


def rounds_of(metadata: dict[str, Any]) -> list[Round]:
    """Return the calls of a turn's rounds, in order."""
    results = mapping(metadata.get("toolCallResults"))
    rounds = metadata.get("toolCallRounds")
    found: list[Round] = []
    for each in map(mapping, rounds if isinstance(rounds, list) else ()):
        calls = each.get("toolCalls")
        for call in map(mapping, calls if isinstance(calls, list) else ()):
            name = string(call.get("id")) or ""
            result = _result_words(results.get(name)) if name in results else None
            found.append(Round(name.partition(_SUFFIX)[0], string(call.get("name")) or "",
                               decoded(call.get("arguments")), result))  # fmt: skip
    return found


def _result_words(result: object) -> str:
    content = mapping(result).get("content")
    values = [mapping(each).get("value") for each in content] if isinstance(content, list) else []
    told = (value if isinstance(value, str) else _tree_words(value) for value in values)
    return "\n".join(filter(None, told))


def _tree_words(value: object) -> str:
    """Return the text of a prompt's elements (prompt-tsx), as most tools of Copilot return it."""
    found: list[str] = []
    waiting = [mapping(value).get("node")]
    while waiting:
        node = mapping(waiting.pop())
        if isinstance(text := node.get("text"), str):
            found += ["\n", text] if found and node.get("lineBreakBefore") else [text]
        children = node.get("children")
        waiting += reversed(children) if isinstance(children, list) else ()
    return "".join(found)


def _matched(calls: list[tuple[str, dict[str, Any]]], rounds: list[Round]) -> list[Round | None]:
    """Return the round of each call: of its id, else the next one of its tool.

    A helper's own calls are in no round.
    """
    left = list(rounds)
    found: list[Round | None] = []
    ids = {each.id: each for each in rounds if each.id}
    mine = {name.partition(_SUFFIX)[0] for name, _ in calls}
    for call_id, item in calls:
        own = ids.get(call_id.partition(_SUFFIX)[0])
        if own is None and not string(item.get("subAgentInvocationId")):
            tool = _plain(string(item.get("toolId")) or "")
            own = next((each for each in left if _plain(each.name) == tool
                        and each.id not in mine), None)  # fmt: skip
        if own is not None and own in left:
            left.remove(own)
        found.append(own)
    return found


def _plain(name: str) -> str:
    return name.removeprefix(_PREFIX).replace("_", "").replace("-", "").lower()


def _settle(part: PartDraft, item: dict[str, Any], found: Round | None) -> None:
    specific, details = mapping(item.get("toolSpecificData")), item.get("resultDetails")
    part.data["input"] = _given(specific, mapping(details), found)
    marks: dict[str, Any] = {}
    if string(item.get("subAgentInvocationId")):
        marks["in_subagent"] = item["subAgentInvocationId"]
    if item.get("presentation") == "hidden":
        marks["hidden"] = True
    messages = ("generatedTitle", "pastTenseMessage", "invocationMessage")
    said = next((told for key in messages if (told := words(item.get(key)))), "")
    if said:
        marks["title"] = said
    if marks:
        part.data["callProviderMetadata"] = {"backscroll": marks}
    confirmed = item.get("isConfirmed")
    how = mapping(confirmed).get("type")
    complete = item.get("isComplete") is not False
    denied = (
        (how in (_DENIED, _SKIPPED) and type(how) is int)
        or confirmed is False
        or (confirmed is None and complete)
    )
    if denied:
        _end(part, "output-denied", {"status": "denied"})
        reason = "skipped" if how == _SKIPPED else "denied"
        part.data["approval"] = {
            "id": part.tool_call_id, "approved": False, "reason": reason,
        }  # fmt: skip
    elif complete:
        _finish(part, specific, details, found)
    elif confirmed is None:
        part.tool_state = part.data["state"] = "approval-requested"
        part.data["approval"] = {"id": part.tool_call_id}


def _end(part: PartDraft, state: str, extra: dict[str, Any]) -> None:
    part.tool_state = part.data["state"] = state
    part.data["resultProviderMetadata"] = {"backscroll": extra}


def _finish(
    part: PartDraft, specific: dict[str, Any], details: object, found: Round | None
) -> None:
    """Put in the result of a call that was finished, well or not.

    Args:
        part: The call's part.
        specific: What the tool noted.
        details: Files that it touched, or what it was given and returned.
        found: Its round; None where there is none.
    """
    state = mapping(specific.get("terminalCommandState"))
    code, took = state.get("exitCode"), state.get("duration")
    failed = mapping(details).get("isError") is True or type(code) is int and code != 0
    extra: dict[str, Any] = {"status": "error" if failed else "ok"}
    if type(code) is int:
        extra["exit_code"] = code
    if isinstance(took, int | float) and number(took) > 0:
        extra["duration_ms"] = number(took)
    output = _returned(specific, details)
    if found is not None and found.result:
        output = found.result
    _end(part, "output-error" if failed else "output-available", extra)
    part.data["errorText" if failed else "output"] = output


def _given(specific: dict[str, Any], details: dict[str, Any], found: Round | None) -> Any:
    """Return a call's arguments: the model's own, else what the tool noted of them."""
    if found is not None and found.arguments not in (None, ""):
        return found.arguments
    if details.get("input") not in (None, ""):
        return decoded(details["input"])
    if specific.get("rawInput") is not None:
        return specific["rawInput"]
    line = specific.get("commandLine", specific.get("command"))
    command = string(line) or string(mapping(line).get("original"))
    if command is not None:
        return {"command": command}
    names = ("description", "agentName", "prompt", "todoList")
    return {name: specific[name] for name in names if specific.get(name) is not None}


def _returned(specific: dict[str, Any], details: object) -> str:
    """Return what the tool noted of its result."""
    shown = mapping(specific.get("terminalCommandOutput")).get("text")
    for said in (shown, specific.get("result")):
        if isinstance(said, str):
            return said
    if isinstance(details, list):
        places = (place_of(mapping(each).get("uri", each)) for each in details)
        return "\n".join(place for place in places if place)
    output = mapping(details).get("output")
    if isinstance(output, str):
        return output
    outputs: Iterable[Any] = output if isinstance(output, list) else ()
    values = (mapping(each).get("value") for each in outputs
              if mapping(each).get("isText") is not False)  # fmt: skip
    return "\n".join(value for value in values if isinstance(value, str))


def _reference(item: dict[str, Any]) -> str:
    """Return a reference in a sentence: the name of a symbol, or the path of a file."""
    target = mapping(item.get("inlineReference"))
    name = string(item.get("name")) or string(target.get("name"))
    shown = name or place_of(target.get("uri", target))
    return f"`{shown}`" if shown else ""
