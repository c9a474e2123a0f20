"""Continue: the usage of each answer, once where a fork copied it; no times."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

from tests.counted.answers import Counted, largest, parted


def counted(root: Path) -> list[Counted]:
    return largest(_answers(root))


def _answers(root: Path) -> Iterator[tuple[object, Counted]]:
    for path in sorted(root.glob("*.json")):
        session = json.loads(path.read_text())
        if not isinstance(session, dict):
            continue
        at, model = round(path.stat().st_mtime * 1000), session.get("chatModelTitle") or "unknown"
        before, compacted, asked_so_far, answered_so_far = "", False, 0, 0
        for item in session["history"]:
            message = item["message"]
            content, used = message["content"], message.get("usage") or {}
            if message["role"] != "assistant" or item.get("conversationSummary") == content:
                before = content if message["role"] == "user" else before
                compacted = compacted or message["role"] == "assistant"
                continue
            model = used.get("model") or model
            given = used.get("prompt_tokens_details") or {}
            written = given.get("cache_write_tokens", 0)
            read = given.get("cached_tokens", 0)
            asked = used.get("prompt_tokens", 0)
            asked_so_far += asked
            answered_so_far += used.get("completion_tokens", 0)
            if "cache_read_tokens" in given:
                # As Anthropic's API says it: without the cache.
                read = given["cache_read_tokens"]
                asked += read + written
            thought = (used.get("completion_tokens_details") or {}).get("reasoning_tokens", 0)
            tokens = parted(asked, used.get("completion_tokens", 0), reasoning=thought, read=read,
                            write=written)  # fmt: skip
            name = json.dumps([before, content, used]) if used else (path.name, id(item))
            yield name, Counted(model, at, tokens)
        whole = session.get("usage") or {}
        if compacted and whole.get("promptTokens", 0) > asked_so_far:
            # What a compaction took out of the file is in the running total alone.
            rest = (whole["promptTokens"] - asked_so_far,
                    whole["completionTokens"] - answered_so_far, 0, 0, 0)  # fmt: skip
            yield (path.name, "rest"), Counted(model if model != "unknown" else "mock-1", at, rest)
