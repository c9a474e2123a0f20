"""The output of a tool call as a text and what goes beside it."""

from __future__ import annotations

import re
from typing import Any

from tui.inspector.subject import Subject

TEXT_KEYS = ("text", "output", "content", "stdout", "result")


_RULER = re.compile(r"([=_\-*#~─═])\1{7,}")
_ERROR_LINE = re.compile(
    r"^(E\s{2,}|✗|\s*(error|fatal|traceback|failed|failure)\b)"
    r"|\b\w*(Error|Exception):|=+ (FAIL|ERR)|^_{4,}",
    re.IGNORECASE,
)
_PLACE = re.compile(r"^\S*[\w.-]+/[\w./-]+:\d+(:\d+)?\S*$")
LONGEST_SHRUNK = 1_000_000
"""Characters of an output beyond which rulers are left as they are."""


def paint_output(line: str) -> str:
    """Return the ink of a line of a failed program's output: what went wrong, and where."""
    if _ERROR_LINE.search(line):
        return "error"
    return "user" if _PLACE.match(line.strip()) else "text"


def shrink_rulers(text: str, width: int) -> str:
    """Shorten the rulers (``====``) of lines that are too wide, so that they need no second row.

    Args:
        text: A program's output.
        width: Cells of a line.
    """
    if len(text) > LONGEST_SHRUNK or not _RULER.search(text):
        return text
    return "\n".join(
        _shrunk(line, width) if len(line) > width else line for line in text.split("\n")
    )


def _shrunk(line: str, width: int) -> str:
    rulers = list(_RULER.finditer(line))
    excess = len(line) - width
    if not rulers:
        return line
    spare = sum(len(ruler[0]) - 3 for ruler in rulers)
    if spare < excess:
        return line
    out, at = [], 0
    for number, ruler in enumerate(rulers):
        take = min(len(ruler[0]) - 3, -(-excess // (len(rulers) - number)))
        excess -= take
        out += [line[at : ruler.start()], ruler[0][: len(ruler[0]) - take]]
        at = ruler.end()
    return "".join([*out, line[at:]])


def output_text(output: Any) -> str | None:
    """Return an output as the text that it mostly is; None when it is data.

    A list of content blocks gives the text of its text blocks; an object that holds just
    one text gives that.
    """
    if isinstance(output, str):
        return output
    if isinstance(output, list) and output:
        texts = [
            block["text"] for block in output
            if isinstance(block, dict) and isinstance(block.get("text"), str)
        ]
        return "\n".join(texts) if texts else None
    if isinstance(output, dict):
        texts = [output[key] for key in TEXT_KEYS if isinstance(output.get(key), str)]
        return texts[0] if len(texts) == 1 and len(output) == 1 else None
    return None


def media_of(output: Any) -> list[tuple[str, int]]:
    """Return the images and documents among an output's blocks: media type, bytes."""
    found = []
    for block in output if isinstance(output, list) else ():
        if not isinstance(block, dict) or block.get("type") in (None, "text"):
            continue
        source = block.get("source")
        source = source if isinstance(source, dict) else block
        data = source.get("data") or source.get("url") or ""
        media = source.get("media_type") or source.get("mediaType") or block["type"]
        found.append((str(media), len(data) * 3 // 4 if isinstance(data, str) else 0))
    return found


def result_of(subject: Subject) -> Any:
    """Return a call's output, its error text, or why it was denied.

    An attachment that was loaded wins.
    """
    name = subject.extras.get("attachment")
    if isinstance(name, str) and name in subject.loaded:
        return subject.loaded[name].decode("utf-8", "replace")
    if subject.data.get("errorText") is not None:
        return subject.data["errorText"]
    if subject.data.get("output") is not None:
        return subject.data["output"]
    approval = subject.data.get("approval")
    reason = approval.get("reason") if isinstance(approval, dict) else None
    return reason if isinstance(reason, str) and reason.strip() else None
