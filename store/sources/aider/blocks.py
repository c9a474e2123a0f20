"""A session's lines as blocks: what was typed, what the program said, what the model said.

Source: the aider section of the format page: ``#### `` lines are the user's, ``> `` lines
the program's, the rest is the model's. The program ends its own lines, and those that it
copies of the user's, with the two blanks of a Markdown line break, which a model's heading
or quotation seldom has; where an editor took them away nothing tells them apart. Of a
message of several lines that the program says only the first begins with ``> `` and only
the last ends so.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from store.sources.base.values import iso_ms

Kind = Literal["start", "user", "tool", "assistant"]
_TYPED_AT = re.compile(r"^# (\d{4}-\d\d-\d\d \d\d:\d\d:\d\d(?:\.\d+)?)\s*$")

_KNOWN = re.compile(r"> (?:Tokens: |Applied edit to |Commit [0-9a-f]{7}|litellm\.|\^C)")
"""What the program says of answers, also where its line breaks were taken away."""


@dataclass(slots=True)
class Block:
    """Lines that belong together.

    Attributes:
        lines: As they are, blank ones after it too.
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
    lines = text.split("\n")
    marked = any(_begins(line) and _breaks(line) for line in lines)
    block: Block | None = None
    blank = False
    said_until = -1
    for number, line in enumerate(lines):
        if block is not None and number <= said_until:
            block.lines.append(line)
            continue
        if not line.strip():
            blank = True
            if block is None:
                block = Block("start", [])
            block.lines.append(line)
            continue
        above = block.kind if block is not None else "start"
        follows = above == "start" or (above != "assistant" and not blank)
        kind = _kind(line, block, told=not marked or _breaks(line), follows=follows)
        new_prompt = kind == "user" and blank
        if block is None or kind != block.kind or new_prompt:
            if block is not None:
                yield block
            block = Block(kind, [])
        block.lines.append(line)
        if kind == "tool" and marked and not _breaks(line):
            said_until = _end_of_message(lines, number)
        blank = False
    if block is not None:
        yield block


def _begins(line: str) -> bool:
    return line.startswith(("#### ", "> "))


def _breaks(line: str) -> bool:
    """Return whether a line ends as the program ends those that it writes."""
    return line.rstrip("\r").endswith("  ")


def _kind(line: str, block: Block | None, *, told: bool, follows: bool) -> Kind:
    """Return whose a line is.

    Args:
        line: Not a blank one.
        block: What it comes after.
        told: Whether its beginning can be trusted.
        follows: Whether it is right below a line of the program or the user, or first.
    """
    if block is None and line.startswith("# aider chat started at "):
        return "start"
    if (line.startswith("#### ") or line.rstrip() == "####") and told:
        return "user"
    if line.startswith("> ") or line.rstrip() == ">":
        return "tool" if told or follows or _KNOWN.match(line) else "assistant"
    return "assistant"


def _end_of_message(lines: list[str], first: int) -> int:
    """Return the last line of a program's message that has more than one; ``first`` if none."""
    for number in range(first + 1, len(lines)):
        if _breaks(lines[number]) and lines[number].strip():
            return first if _begins(lines[number]) else number
    return first


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
    return iso_ms(stamp) or 0
