"""A seeded stream of chunks as a coding agent makes them, and the rows it leads to."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from typing import Any

from store.recorder.json_text import dump
from store.recorder.reducer import MessageState

Chunk = dict[str, Any]
Row = tuple[str, str, str, int, str, str, str | None, str | None, int, int]
_WORDS = [
    "the", "file", "has", "a", "test", "that", "fails", "when",
    "parser", "reads", "empty", "input", "so", "return", "early", "漢字",
    "–", "ok",
]
PARAGRAPH_DELTAS, INPUT_DELTAS = 160, 40


def chunks(count: int, seed: int = 3) -> list[Chunk]:
    """Return so many chunks: steps of text, reasoning, and a tool call with its output."""
    made: list[Chunk] = [{"type": "start", "messageId": "bench"}]
    source = _steps(random.Random(seed))
    while len(made) < count - 1:
        made.append(next(source))
    return [*made, {"type": "finish", "finishReason": "stop"}]


def _steps(rnd: random.Random) -> Iterator[Chunk]:
    step = 0
    while True:
        step += 1
        yield {"type": "start-step"}
        for kind in ("reasoning", "text"):
            block = f"{kind}-{step}"
            yield {"type": f"{kind}-start", "id": block}
            for _ in range(rnd.randint(PARAGRAPH_DELTAS // 2, PARAGRAPH_DELTAS)):
                delta = " ".join(rnd.choices(_WORDS, k=4)) + " "
                yield {"type": f"{kind}-delta", "id": block, "delta": delta}
            yield {"type": f"{kind}-end", "id": block}
        call = f"call-{step}"
        given = {"command": " ".join(rnd.choices(_WORDS, k=INPUT_DELTAS * 2))}
        text = json.dumps(given, ensure_ascii=False)
        size = len(text) // INPUT_DELTAS + 1
        yield {"type": "tool-input-start", "toolCallId": call, "toolName": "shell"}
        for first in range(0, len(text), size):
            piece = text[first : first + size]
            yield {"type": "tool-input-delta", "toolCallId": call, "inputTextDelta": piece}
        yield {"type": "tool-input-available", "toolCallId": call, "toolName": "shell",
               "input": given}
        yield {"type": "tool-output-available", "toolCallId": call,
               "output": " ".join(rnd.choices(_WORDS, k=400))}
        usage = {"input": 1200, "output": 300, "reasoning": 90, "cache_read": 9000}
        yield {"type": "finish-step"}
        yield {"type": "message-metadata", "messageMetadata": {"usage": usage}}


def rows_by_transaction(stream: list[Chunk], chunks_each: int) -> list[list[Row]]:
    """Return the part rows that each transaction writes, when it holds so many chunks."""
    number = iter(range(10**9))
    state = MessageState(lambda: f"prt_{next(number):026}", lambda: 1)
    transactions = []
    for first in range(0, len(stream), chunks_each):
        for chunk in stream[first : first + chunks_each]:
            state.apply(chunk)
        rows: list[Row] = []
        for part in state.changed:
            part.dirty = False
            kind, call_id, tool_state = part.columns
            rows.append((part.row_id, "msg", "ses", part.index, kind, dump(part.data), call_id,
                         tool_state, 1, first))
        state.changed = []
        transactions.append(rows)
    return transactions
