"""Merges values that the user set on an imported session with those of its source."""

from __future__ import annotations

from typing import Any

import orjson

from store.conversation.gone_marks import GONE_MESSAGES
from store.sync.jsontext import json_text

LINKS = ("child_session_source_id", "child_session_id", "attachment")
"""Keys of a part's ``resultProviderMetadata.backscroll`` that name a session or side file."""
GUESSED = (None, "first-prompt", "last-prompt", "placeholder", "id")
"""``title_from`` of generated titles."""
NAMED = ("custom-title", "manual-title", "name", "session-name")
"""``title_from`` of names that a person gave; no other title replaces them."""


def session_metadata(
    said: dict[str, Any],
    stored: str | None,
    *,
    keep_title: bool = False,
) -> str:
    """Return ``metadata_json`` of a session: the source's values and the stored ``user``.

    Args:
        said: The metadata from the source.
        stored: The stored ``metadata_json``; None for a new session.
        keep_title: Whether to keep a stored name that the source no longer has (the file
            that contained it is gone), and a stored title made from the first prompt if
            messages are gone, since that prompt may be one of them.
    """
    if stored is None:
        return json_text(said)
    before = _decoded(stored)
    given = before.get("title_from")
    differs = said.get("title") != before.get("title")
    if keep_title and differs and _has_less_of_a_title(said, given):
        rest = {key: value for key, value in said.items() if key not in ("title", "title_from")}
        said = {"title": before.get("title"), "title_from": given, **rest}
    after = {**said, "user": before["user"]} if "user" in before else said
    return _settled(json_text(after), stored, before)


def _has_less_of_a_title(said: dict[str, Any], given: str | None) -> bool:
    """Return whether the stored title, by its origin, is better than the source's."""
    now = said.get("title_from")
    if given == now == "first-prompt":
        return GONE_MESSAGES in said["source"]
    return (given in NAMED and now not in NAMED) or (given not in GUESSED and now in GUESSED)


def message_metadata(said: str, stored: str | None, inherited_from: str | None) -> str:
    """Return ``metadata_json`` of a message: the source's values and the user's.

    Args:
        said: The metadata from the source, as JSON text.
        stored: The stored ``metadata_json`` of the same message, if any.
        inherited_from: The id of the original, for a copy whose parent is in the store.
    """
    if stored == said and inherited_from is None:
        return said
    before = None if stored is None else _decoded(stored)
    kept = before is not None and ("user" in before or hidden_by_user(before))
    if inherited_from is None and not kept:
        return said
    after = orjson.loads(said)
    if inherited_from is not None:
        after["inherited_from"] = inherited_from
    if before is None or stored is None:
        return json_text(after)
    if kept:
        _lay_over(after, before)
    return _settled(json_text(after), stored, before)


def part_data(said: str, stored: str) -> str:
    """Return ``data_json`` of a part with its stored links.

    When the file of a call's subagent, or a result's side file, is gone, the source no
    longer links to it; the library still has both.
    """
    if not any(f'"{link}"' in stored and f'"{link}"' not in said for link in LINKS):
        return said
    before, after = _own(_decoded(stored)), _decoded(said)
    links = {key: before[key] for key in LINKS if key in before}
    if not links:
        return said
    bag = after.get("resultProviderMetadata")
    bag = bag if isinstance(bag, dict) else {}
    own = _own(after)
    own = {**own, **{key: value for key, value in links.items() if key not in own}}
    after["resultProviderMetadata"] = {**bag, "backscroll": own}
    return stored if after == _decoded(stored) else json_text(after)


def _own(part: dict[str, Any]) -> dict[str, Any]:
    bag = part.get("resultProviderMetadata")
    own = bag.get("backscroll") if isinstance(bag, dict) else None
    return own if isinstance(own, dict) else {}


def hidden_by_user(metadata: dict[str, Any]) -> bool:
    """Return whether a rewind or restore in this store set the message's visibility.

    A rewind sets ``backscroll.hidden_by`` to "user"; restoring a message that the source
    hides sets it to "shown".
    """
    own = metadata.get("backscroll")
    return isinstance(own, dict) and own.get("hidden_by") in ("user", "shown")


def archived_at(said: int | None, said_before: int | None, stored: int | None) -> int | None:
    """Return when a session was archived, by the latest decision of source or user.

    Args:
        said: The source's value now.
        said_before: The source's value at the last sync.
        stored: The column's value, which the user may have changed since.
    """
    if said == said_before:
        return stored
    if said is None:
        return None if stored == said_before else stored
    return said if stored is None or stored == said_before else stored


def said_archived_at(metadata_json: str) -> int | None:
    """Return the source's archive time at the last sync, from the stored metadata."""
    own = _decoded(metadata_json).get("backscroll")
    value = own.get("source_archived_at") if isinstance(own, dict) else None
    return value if isinstance(value, int) else None


def _lay_over(after: dict[str, Any], before: dict[str, Any]) -> None:
    if "user" in before:
        after["user"] = before["user"]
    if hidden_by_user(before):
        decided = before["backscroll"]["hidden_by"]
        after["backscroll"] = {**(after.get("backscroll") or {}), "hidden_by": decided}
        after.pop("hidden_at", None)
        if before.get("hidden_at") is not None:
            after["hidden_at"] = before["hidden_at"]


def _settled(text: str, stored: str, before: dict[str, Any]) -> str:
    """Return the stored text if the values are equal; the order of keys may differ."""
    return stored if text == stored or orjson.loads(text) == before else text


def _decoded(text: str) -> dict[str, Any]:
    value = orjson.loads(text)
    return value if isinstance(value, dict) else {}
