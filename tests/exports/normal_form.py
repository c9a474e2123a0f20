"""A session as what every agent can tell of it: who said what, and which tools ran.

``NOT_CARRIED`` is the one place that says what a format cannot hold; everything else that
a session tells must come back from every format.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

from store.engine.database import Database
from store.exports.reading import MessageReading, View, read_session

Event = tuple[Any, ...]
"""``("said", role, text)``, ``("called", name, input, output, failed)`` or
``("compacted", summary)``; what a program told the model by itself has the role ``aside``."""

NO_RESULT = "(no result)"
FILE = "(a file)"
NOT_CARRIED: dict[str, dict[str, str]] = {
    "claude-code": {"answer's files": "the API takes no files in what an assistant said"},
    "codex": {"failed": "an output is words alone, which say nothing of failure"},
    "gemini": {"aside's files": "words alone are marked as no prompt, not files"},
    "opencode": {"aside's files": "a text can be marked as synthetic, a file cannot"},
}
"""By format: what it cannot hold, and why."""
VIEWS: dict[str, View] = {"opencode": "display", "codex": "context"}
"""All other formats hold what the model would be sent now after the marker of a compaction.

opencode's marks compactions; a Codex compaction names the prompts that it keeps."""

_STAND_IN = re.compile(r"^\[[\w.+-]+(?:/[\w.+-]+)?: [^\]\n]*\]$", re.M)
"""A line that stands for a file which a format has no room for."""
_NO_RESULTS = ("This call has no recorded result.", "aborted")
_FRAMES = (
    re.compile(r"^The conversation so far was compacted\. This is the summary of it:\n\n"),
    re.compile(r"^<state_snapshot>\n|\n</state_snapshot>$"),
)
"""What stands around a summary of another agent, so that the model knows what it is."""


def view_of(form: str) -> View:
    """Return the view of a session that a format holds."""
    return VIEWS.get(form, "resumed")


def told(db: Database, session_id: str, form: str) -> list[Event]:
    """Return what a session tells, in order; what an answer says in a row is one text."""
    found: list[Event] = []
    for item in read_session(db, session_id, view_of(form)).messages:
        for place, event in enumerate(_events(item, NOT_CARRIED.get(form, {}))):
            goes_on = found and event[:2] == found[-1][:2] and event[0] == "said"
            if goes_on and (event[1] == "assistant" or place):
                found[-1] = (*event[:2], f"{found[-1][2]}\n\n{event[2]}")
            else:
                found.append(event)
    return found


def _events(item: MessageReading, without: dict[str, str]) -> Iterator[Event]:
    role = "aside" if _is_aside(item, without) else item.message["role"]
    for part in item.parts:
        data = part["data"]
        if not isinstance(data, dict):
            continue
        if data.get("type") == "data-compaction":
            yield from _compacted(data["data"])
        elif role == "system":
            continue
        elif data.get("type") == "text" and data["text"].strip():
            yield "said", role, _STAND_IN.sub(FILE, data["text"].strip())
        elif data.get("type") == "file":
            if role == "aside" and "aside's files" in without:
                yield "said", "user", FILE
            elif role != "assistant" or "answer's files" not in without:
                yield "said", role, FILE
        elif part["tool_call_id"] is not None:
            yield _call(data, "failed" not in without)


def _is_aside(item: MessageReading, without: dict[str, str]) -> bool:
    """Tell whether a message is a program's word to the model, no turn of a person."""
    origin = (item.message["metadata"] or {}).get("origin")
    return item.message["role"] == "user" and origin in ("meta", "notification") and (
        "asides" not in without
    )


def _compacted(data: dict[str, Any]) -> Iterator[Event]:
    summary = str(data.get("summary") or "").strip()
    for frame in _FRAMES:
        summary = frame.sub("", summary).strip()
    if summary:
        yield "compacted", summary


def _call(data: dict[str, Any], tells_failure: bool) -> Event:
    # Other agents take no dots and the like in the names of tools.
    name = re.sub(r"[^\w-]", "_", data.get("toolName") or data["type"].removeprefix("tool-"))
    given, state = data.get("input"), data.get("state")
    given = given if isinstance(given, dict) else {} if given is None else {"input": given}
    failed = state != "output-available" or _really_failed(data)
    output = _text(data.get("output", data.get("errorText")))
    if state == "output-denied":
        output = data["approval"]["reason"]
    if not str(state).startswith("output-") or output in _NO_RESULTS:
        output = NO_RESULT
    return "called", name, given, output, failed if tells_failure else None


def _really_failed(data: dict[str, Any]) -> bool:
    """Tell whether a call failed whose agent names it completed: what is shown as failed."""
    own = data.get("resultProviderMetadata", {}).get("backscroll", {})
    failed = own.get("status") in ("error", "denied", "interrupted")
    return failed or own.get("exit_code") not in (None, 0)


def _text(output: object) -> str:
    """Return an output's words without its files; what is no words is its JSON."""
    if isinstance(output, list) and output and all(map(_is_content, output)):
        output = "\n".join(one["text"] for one in output if one["type"] == "text")
    if isinstance(output, str) and output[:1] in ("{", "["):
        with suppress(ValueError):
            output = json.loads(output)
    if isinstance(output, str):
        return _STAND_IN.sub("", output).strip()
    return json.dumps(output, ensure_ascii=False, sort_keys=True)


def _is_content(item: object) -> bool:
    return isinstance(item, dict) and item.get("type") in ("text", "file")
