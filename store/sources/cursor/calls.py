"""A tool call of Cursor's editor, which is stored together with its result, as a part.

Source: the Cursor format page, section 2 (bubbles). Arguments, result and error are JSON that is
a string; the result may also be plain text, or missing.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable
from typing import Any

from store.sources.base.databases import decoded
from store.sources.base.diffs import hunks_of
from store.sources.base.drafts import PartDraft
from store.sources.base.plain_parts import call_part
from store.sources.base.values import mapping, number, string

Contents = Callable[[str], str | None]
"""Returns the text of a file before or after an edit by its key; None where it is not there."""
_OPEN = frozenset({"loading", "running", "started", "pending", "queued", "streaming"})
_STOPPED = frozenset({"cancelled", "canceled", "rejected", "aborted"})
_ENDED = frozenset({"completed", "error"})
_SHOWN = ("output", "contents", "content", "text", "message")
_PATHS = ("relativeWorkspacePath", "targetFile", "target_file", "path", "file_path")


def is_call(former: dict[str, Any]) -> bool:
    """Return whether a bubble's data is a call: about a third of it has no name, and is none."""
    return string(former.get("name")) is not None


def part_of(
    former: dict[str, Any], name: str, at: int, record: int, contents: Contents
) -> PartDraft:
    """Return the part of a call with its result.

    Args:
        former: The bubble's ``toolFormerData``.
        name: The call's id where it has none.
        at: When it was made, epoch ms.
        record: The number of its record.
        contents: Gives the texts that an edit refers to.
    """
    given, normal = decoded(former.get("rawArgs")), decoded(former.get("params"))
    given = given if isinstance(given, dict) else normal if normal is not None else given
    part = call_part(former.get("name"), string(former.get("toolCallId")) or name,
                     {} if given == "" else given, at, record)  # fmt: skip
    result, status = decoded(former.get("result")), string(former.get("status")) or ""
    rejected = former.get("userDecision") == "rejected" or mapping(result).get("rejected") is True
    extra: dict[str, Any] = {"status": "ok"}
    unknown = status not in _OPEN | _STOPPED | _ENDED
    if unknown and status:
        extra["word"] = status
    if status == "error" or (unknown and result is None and former.get("error")):
        extra["status"] = "error"
        state, words = "output-error", _error(former, result)
    elif rejected and status not in _OPEN:
        extra["status"], state, words = "denied", "output-denied", "rejected"
        part.data["approval"] = {"id": part.tool_call_id, "approved": False, "reason": words}
    elif status in _STOPPED:
        extra["status"], state, words = "interrupted", "output-error", _shown(result)
    elif status in _OPEN or (status != "completed" and result is None):
        return part
    else:
        state, words = "output-available", _shown(result)
        _add_details(extra, mapping(result), mapping(normal) or mapping(given), contents)
        if "structured" in extra and "afterContentId" in mapping(result):
            # The names of two texts, whose difference is told.
            words = ""
    part.tool_state = part.data["state"] = state
    if state == "output-available":
        part.data["output"] = words
    elif state == "output-error":
        part.data["errorText"] = words if isinstance(words, str) else str(words)
    part.data["resultProviderMetadata"] = {"backscroll": extra}
    return part


def _error(former: dict[str, Any], result: Any) -> str:
    error = decoded(former.get("error"))
    for key in ("clientVisibleErrorMessage", "modelVisibleErrorMessage"):
        if string(mapping(error).get(key)):
            return str(mapping(error)[key])
    said = error if isinstance(error, str) else _shown(result)
    return said if isinstance(said, str) else str(said)


def _shown(result: Any) -> Any:
    """Return the words of a result; the whole of one that has none."""
    if result is None:
        return ""
    if isinstance(result, dict):
        return next((result[key] for key in _SHOWN if isinstance(result.get(key), str)), result)
    return result


def _add_details(
    extra: dict[str, Any], result: dict[str, Any], given: dict[str, Any], contents: Contents
) -> None:
    """Add what a result says beside its words.

    Args:
        extra: Takes it.
        result: The result.
        given: The arguments.
        contents: Gives the texts that an edit refers to.
    """
    code = result.get("exitCode")
    if type(code) is int:
        extra["exit_code"] = code
    if result.get("notInterrupted") is False:
        extra["status"] = "interrupted"
    child = string(result.get("agentId"))
    if child is not None:
        extra["child_session_source_id"] = child
    path = next((given[key] for key in _PATHS if string(given.get(key))), None)
    diff = _stored_diff(result) or _content_diff(result, contents)
    if path is not None and diff is not None:
        lines = diff.split("\n")
        added = sum(line.startswith("+") and not line.startswith("+++") for line in lines)
        removed = sum(line.startswith("-") and not line.startswith("---") for line in lines)
        extra["structured"] = {
            "files": [{"path": path, "diff": diff, "additions": added, "deletions": removed}],
            "structuredPatch": hunks_of(diff),
        }  # fmt: skip


def _stored_diff(result: dict[str, Any]) -> str | None:
    """Return the unified diff of an edit whose result has its chunks."""
    chunks = mapping(result.get("diff")).get("chunks")
    found: list[str] = []
    for chunk in map(mapping, chunks if isinstance(chunks, list) else ()):
        if isinstance(chunk.get("diffString"), str):
            old, new, was, now = (
                number(chunk.get(key)) for key in ("oldStart", "newStart", "oldLines", "newLines")
            )
            found += [f"@@ -{old},{was} +{new},{now} @@", chunk["diffString"]]
    return "\n".join(found) or None


def _content_diff(result: dict[str, Any], contents: Contents) -> str | None:
    """Return the unified diff between the texts before and after an edit."""
    names = [string(result.get(key)) for key in ("beforeContentId", "afterContentId")]
    texts = [contents(name) if name is not None else None for name in names]
    before, after = texts
    if before is None or after is None:
        return None
    pieces = difflib.unified_diff(before.splitlines(), after.splitlines(), lineterm="")
    return "\n".join(list(pieces)[2:]) or None
