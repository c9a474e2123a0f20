"""Extracts a person's reply to a tool call from the fixed text around it.

An agent passes a refusal, an approval or an answer to the model as the call's result: a few
fixed sentences with the person's words among them.
Sources: results that Claude Code (1.0.128 to 2.1.332) and opencode wrote.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, NamedTuple

_SAID = re.compile(
    r"\bthe user (?:also )?(?:said|wrote|replied):[ \t]*\r?\n?"
    r"|\bprovided the following (?:reason for the rejection|feedback):[ \t]*\r?\n?"
    r"|\bspecific tool call with the following feedback:[ \t]*\r?\n?",
    re.IGNORECASE,
)
_NOTE = re.compile(r"\n\s*\n(?:Note: The user's next message\b|<system-reminder>)")
_PLAN = re.compile(r"^## Approved Plan[^\n]*:[ \t]*\r?\n", re.M)
_EDITED = "(edited by user)"


class Reply(NamedTuple):
    """A tool result divided into reply and fixed text.

    Attributes:
        words: The person's words; empty if there are none.
        rest: The fixed text around them.
    """

    words: str
    rest: str


def reply_in(result: str) -> Reply:
    """Return the person's words in a call's result, and the rest of it."""
    found = _SAID.search(result)
    if found is None:
        return Reply("", result)
    words, after = result[found.end() :], ""
    note = _NOTE.search(words)
    if note is not None:
        words, after = words[: note.start()], words[note.start() :].strip()
    rest = result[: found.end()].strip()
    return Reply(words.strip(), f"{rest}\n{after}" if after else rest)


class ApprovedPlan(NamedTuple):
    """A plan that a person approved.

    Attributes:
        edited: Whether the person changed it first.
        rest: The fixed text of the result.
    """

    plan: str
    edited: bool
    rest: str


def approved_plan(result: str, structured: Mapping[str, Any]) -> ApprovedPlan | None:
    """Return the approved plan in the result of a plan tool, or None.

    Args:
        result: The result's text.
        structured: The agent's structured data of the result.
    """
    heading = _PLAN.search(result)
    given = structured.get("plan")
    plan = given if isinstance(given, str) and given.strip() else None
    if heading is None and plan is None:
        return None
    edited = structured.get("planWasEdited") is True
    rest = result
    if heading is not None:
        plan = result[heading.end() :].strip()
        edited = edited or _EDITED in heading[0]
        rest = result[: heading.start()].strip()
    return ApprovedPlan(plan or "", edited, rest)
