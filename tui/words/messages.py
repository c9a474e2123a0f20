"""Times, models and token counts as the transcript shows them."""

from __future__ import annotations

import time
from typing import Any

from store.text import figures
from store.text.stored_json import as_dict
from store.usage import spent_of
from tui.words.sessions import model_name


def clock_time(at: int) -> str:
    """Return the local hour and minute of an epoch ms."""
    return time.strftime("%H:%M", time.localtime(at / 1000))


def day(at: int) -> str:
    """Return the local day of an epoch ms, such as ``Sat 28 Nov 2026``."""
    return time.strftime("%a %d %b %Y", time.localtime(at / 1000))


def same_day(one: int, other: int) -> bool:
    """Return whether two epoch ms fall on one local day."""
    return time.localtime(one / 1000)[:3] == time.localtime(other / 1000)[:3]


def model_of(metadata: dict[str, Any]) -> str:
    """Return the short name of the model of a message, "" where none is known."""
    model = metadata.get("model")
    name = as_dict(model).get("model_id") if isinstance(model, dict) else model
    return model_name(name) if isinstance(name, str) else ""


def tokens_out(metadata: dict[str, Any]) -> str:
    """Return what the model wrote, such as ``1.8k out``; "" where it is unknown."""
    spent = spent_of(metadata)
    wrote = spent.output + spent.reasoning
    return f"{figures.tokens(wrote)} out" if wrote else ""


def message_facts(role: str, created_at: int, metadata: dict[str, Any]) -> str:
    """Return time, model and tokens of a message for the right edge.

    Args:
        role: Who wrote it.
        created_at: Epoch ms.
        metadata: Its decoded ``metadata_json``.
    """
    facts = [clock_time(created_at)]
    if role == "assistant":
        facts += [model_of(metadata), tokens_out(metadata)]
    return "  ".join(fact for fact in facts if fact)
