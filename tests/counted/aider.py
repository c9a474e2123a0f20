"""aider: the lines that say how many tokens went and came, and what it cost."""

from __future__ import annotations

import re
from datetime import datetime
from pathlib import Path

from tests.counted.answers import Counted

_START = re.compile(r"# aider chat started at (\S+ \S+)")
_MODEL = re.compile(r"> (?:Main model|Model): (?:\S+/)?(\S+) with ")
_TOKENS = re.compile(
    r"> Tokens: (\S+) sent, (\S+) received\.(?: Cost: \$([\d.]+) message)?"
)


def counted(path: Path) -> list[Counted]:
    at, model, found = 0, "unknown", []
    for line in path.read_text().splitlines():
        if start := _START.match(line):
            at = round(datetime.fromisoformat(start[1]).timestamp() * 1000)
        elif named := _MODEL.match(line):
            model = named[1]
        elif used := _TOKENS.match(line):
            tokens = (_number(used[1]), _number(used[2]), 0, 0, 0)
            found.append(Counted(model, at, tokens, float(used[3]) if used[3] else None))
    return found


def _number(text: str) -> int:
    return round(float(text[:-1]) * 1000) if text.endswith("k") else int(text)
