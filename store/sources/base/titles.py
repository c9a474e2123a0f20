"""Titles of sessions that no one has named: what the person asked for first."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

from store.sources.base.drafts import MessageDraft, SessionDraft
from store.sources.base.requests import request_of, title_of_prompt, words_of
from store.sources.base.values import mapping, string

TITLE_LENGTH = 300
"""Characters of the longest title."""

FIRST_PROMPT = "first-prompt"
"""``title_from`` of a session that is called by what the person asked for first."""

_BY_HAND = ("custom-title", "manual-title", "user", "user-label", "session-name")
"""``title_from`` of titles that are shown as a person wrote them."""

_MARK = re.compile(r"</?[a-z][a-z_-]*(?: [^<>]*)?>")


def shortened(text: str) -> str:
    """Return a text on one line, cut where it is too long for a title."""
    line = " ".join(text[: TITLE_LENGTH * 4].split())
    return line if len(line) <= TITLE_LENGTH else line[: TITLE_LENGTH - 1] + "…"


def title_of(draft: SessionDraft) -> tuple[str | None, str | None]:
    """Return the title of a session, and what it comes from.

    A title that a program stored may be a prompt with what an editor or a hook put around it.
    Only the person's words are shown; where it has none, the first prompt is.
    """
    title, came = draft.title, draft.title_from
    if title is None or came in (*_BY_HAND, FIRST_PROMPT):
        return title, came
    request = title_of_prompt(title)
    if request:
        return (title if request == title.strip() else shortened(request)), came
    if draft.first_record or not draft.messages:
        return title, came
    prompt = first_prompt(draft.messages)
    return prompt, FIRST_PROMPT if prompt else None


def first_prompt(messages: Iterable[MessageDraft]) -> str | None:
    """Return the first prompt, else the first command or shell line.

    Only the person's own words count, not what an editor, a hook or the program put around
    them. Where nobody typed anything, it is what another agent sent first. What a rewind
    hid counts only where nothing else was said.
    """
    asked = [message for message in messages if message.role == "user"]
    shown = [message for message in asked if "hidden_at" not in message.metadata]
    return _first(shown) or (_first(asked) if len(shown) < len(asked) else None)


def _first(messages: Iterable[MessageDraft]) -> str | None:
    typed = told = None
    for message in messages:
        origin = message.metadata.get("origin")
        if origin in ("human", None):
            shown = string(mapping(message.metadata.get("backscroll")).get("display"))
            if line := shortened(request_of(shown) if shown else words_of(message)):
                return line
        elif typed is None and origin in ("command", "shell"):
            typed = _typed(message.metadata)
        elif told is None and origin == "notification":
            point, _, _ = words_of(message).partition("\n\n")
            told = shortened(_MARK.sub(" ", point)) or None
    return typed or told


def _typed(metadata: dict[str, Any]) -> str | None:
    extra = mapping(metadata.get("backscroll"))
    if "shell" in extra:
        return shortened("! " + str(extra["shell"]))
    command = mapping(extra.get("command"))
    name = string(command.get("name"))
    return shortened(f"{name} {command.get('args') or ''}") if name else None
