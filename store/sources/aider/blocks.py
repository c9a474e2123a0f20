"""A session's lines as blocks: what was typed, what the program said, what the model said.

Source: the aider section of the format page: ``#### `` lines are the user's, ``> `` lines
the program's, the rest is the model's. Lines of an answer that begin so cannot be told
from them; the program itself reads them the same way.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Literal

Kind = Literal["start", "user", "tool", "assistant"]
_TYPED_AT = re.compile(r"^# (\d{4}-\d\d-\d\d \d\d:\d\d:\d\d(?:\.\d+)?)\s*$")


@dataclass(slots=True)
class Block:
    """Lines that belong together.

    Attributes:
        lines: As they stand, blank ones after it too.
    """

    kind: Kind
    lines: list[str]

    @property
    def text(self) -> str:
        """What was said, without marks and the line breaks of Markdown."""
        mark = {"user": "####", "tool": ">"}.get(self.kind, "")
        said = [line.rstrip("\r").removeprefix(mark) for line in self.lines]
        if mark:
            said = [line.removeprefix(" ").removesuffix("  ") for line in said]
        return "\n".join(said).strip("\n") if mark else "\n".join(said).strip()


def blocks_of(text: str) -> Iterator[Block]:
    """Yield the blocks of a session's part of the file; joined they are the text again."""
    block: Block | None = None
    blank = False
    for line in text.split("\n"):
        if not line.strip():
            blank = True
            if block is None:
                block = Block("start", [])
            block.lines.append(line)
            continue
        kind = _kind(line, block)
        new_prompt = kind == "user" and blank
        if block is None or kind != block.kind or new_prompt:
            if block is not None:
                yield block
            block = Block(kind, [])
        block.lines.append(line)
        blank = False
    if block is not None:
        yield block


def _kind(line: str, block: Block | None) -> Kind:
    if block is None and line.startswith("# aider chat started at "):
        return "start"
    if line.startswith("#### ") or line.rstrip() == "####":
        return "user"
    if line.startswith("> ") or line.rstrip() == ">":
        return "tool"
    return "assistant"


def typed_at(body: bytes) -> list[tuple[int, str]]:
    """Return the prompts of ``.aider.input.history`` with their times, each once.

    Returns:
        Epoch ms and words; the file holds each prompt twice, microseconds apart.
    """
    found: list[tuple[int, str]] = []
    at, words = 0, list[str]()
    for line in [*body.decode("utf-8", "replace").splitlines(), "#"]:
        stamp = _TYPED_AT.match(line)
        if line.startswith("+"):
            words.append(line[1:])
        elif line.startswith("#"):
            text = "\n".join(words).strip()
            twice = found and found[-1][1] == text and at - found[-1][0] < 50
            if text and at and not twice:
                found.append((at, text))
            words = []
            at = _ms(stamp[1]) if stamp else 0
    return found


def _ms(stamp: str) -> int:
    try:
        return round(datetime.fromisoformat(stamp).timestamp() * 1000)
    except (ValueError, OverflowError, OSError):
        return 0
