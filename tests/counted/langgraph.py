"""LangGraph: each answer's message once, however many checkpoints of its thread repeat it."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tests.counted.answers import Counted, ms, parted, rows


def counted(root: Path) -> list[Counted]:
    found: dict[tuple[str, str], Counted] = {}
    for row in rows(root, "SELECT thread_id, checkpoint FROM checkpoints ORDER BY checkpoint_id"):
        state, _ = _value(row["checkpoint"], 0)
        for message in _answers(state["channel_values"]):
            used = message.get("usage_metadata") or {}
            given, said = (used.get(f"{side}_token_details") or {} for side in ("input", "output"))
            tokens = parted(
                used.get("input_tokens", 0), used.get("output_tokens", 0),
                reasoning=said.get("reasoning", 0), read=given.get("cache_read", 0),
            )  # fmt: skip
            model = message["response_metadata"].get("model_name") or "unknown"
            found.setdefault((row["thread_id"], message["id"]), Counted(
                model, ms(state["ts"]), tokens))  # fmt: skip
    return list(found.values())


def _answers(value: Any) -> Iterator[dict[str, Any]]:
    if isinstance(value, dict) and value.get("type") == "ai" and "usage_metadata" in value:
        yield value
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    for each in inner:
        yield from _answers(each)


def _value(raw: bytes, at: int) -> tuple[Any, int]:
    """Return a MessagePack value and where the next one begins."""
    mark, at = raw[at], at + 1
    if mark < 0x80 or mark >= 0xE0:
        return mark if mark < 0x80 else mark - 256, at
    if mark in (0xC0, 0xC2, 0xC3):
        return {0xC0: None, 0xC2: False, 0xC3: True}[mark], at
    if 0xCA <= mark <= 0xD3:
        form = ">" + "fdBHIQbhiq"[mark - 0xCA]
        return struct.unpack_from(form, raw, at)[0], at + struct.calcsize(form)
    if 0xD4 <= mark <= 0xD8:
        return _extension(raw, at, 1 << (mark - 0xD4))
    short = {0x80: 0x0F, 0x90: 0x0F, 0xA0: 0x1F}
    kind = next((one for one, mask in short.items() if mark & ~mask == one), None)
    if kind is not None:
        size = mark & short[kind]
    else:
        first, kind, smallest = next(
            (first, kind, smallest) for first, last, kind, smallest in (
                (0xC4, 0xC6, 0xC4, 0), (0xC7, 0xC9, 0xC7, 0), (0xD9, 0xDB, 0xA0, 0),
                (0xDC, 0xDD, 0x90, 1), (0xDE, 0xDF, 0x80, 1),
            ) if first <= mark <= last
        )  # fmt: skip
        length = 1 << (mark - first + smallest)
        size, at = int.from_bytes(raw[at : at + length], "big"), at + length
    if kind == 0xC7:
        return _extension(raw, at, size)
    if kind in (0xA0, 0xC4):
        body = raw[at : at + size]
        return body.decode() if kind == 0xA0 else body, at + size
    found = []
    for _ in range(size * (2 if kind == 0x80 else 1)):
        each, at = _value(raw, at)
        found.append(each)
    return dict(zip(found[::2], found[1::2], strict=True)) if kind == 0x80 else found, at


def _extension(raw: bytes, at: int, size: int) -> tuple[Any, int]:
    value, _ = _value(raw[at + 1 : at + 1 + size], 0)
    return value, at + 1 + size
