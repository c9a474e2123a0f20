"""What the user set on rows of an imported session, laid over what its source says."""

from __future__ import annotations

from typing import Any

import orjson

from store.conversation.gone_marks import GONE_MESSAGES
from store.sync.jsontext import json_text

LINKS = ("child_session_source_id", "child_session_id", "attachment")
"""What a part says, in ``resultProviderMetadata.backscroll``, of a session or a side file."""
GUESSED = (None, "first-prompt", "placeholder", "id")
"""``title_from`` of titles that nobody gave the session."""
NAMED = ("custom-title", "manual-title", "name", "session-name")
"""``title_from`` of names that a person gave it, which no other title takes the place of."""


def session_metadata(
    said: dict[str, Any],
    stored: str | None,
    *,
    keep_title: bool = False,
) -> str:
    """Return ``metadata_json`` of a session: the source's, with the stored ``user`` kept.

    Args:
        said: What the source says.
        stored: What the store has, if anything.
        keep_title: Whether a name that was given to the session stays where the source no
            longer has any, as the file that held it is gone; and one made of the first prompt
            where messages are gone, as that prompt may be among them.
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
    """Say whether a title that was given, by its origin, is more than what is said now."""
    now = said.get("title_from")
    if given == now == "first-prompt":
        return GONE_MESSAGES in said["source"]
    return (given in NAMED and now not in NAMED) or (given not in GUESSED and now in GUESSED)


def message_metadata(said: str, stored: str | None, inherited_from: str | None) -> str:
    """Return ``metadata_json`` of a message.

    Args:
        said: What the source says, as JSON text.
        stored: What the store has for the same message of the source, if anything.
        inherited_from: The id of the original, for a copied message whose parent is here.
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
    """Return ``data_json`` of a part, linked to what it was linked to before.

    A call whose subagent's file is gone, or a result whose side file is, names neither any
    more; the library has both.
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
    """Return whether a rewind or restore in this store decided on the message's hiding.

    A rewind writes ``backscroll.hidden_by`` "user", a restore of what the source itself
    has hidden "shown".
    """
    own = metadata.get("backscroll")
    return isinstance(own, dict) and own.get("hidden_by") in ("user", "shown")


def archived_at(said: int | None, said_before: int | None, stored: int | None) -> int | None:
    """Return when a session was archived: the newest decision of source or user.

    Args:
        said: What the source says now.
        said_before: What it said at the last sync.
        stored: The column's value, which the user may have set since.
    """
    if said == said_before:
        return stored
    if said is None:
        return None if stored == said_before else stored
    return said if stored is None or stored == said_before else stored


def said_archived_at(metadata_json: str) -> int | None:
    """Return what the source said of the archive at the last sync, from the stored metadata."""
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
    """Keep the stored text where it says the same: a verb may have ordered its keys otherwise."""
    return stored if text == stored or orjson.loads(text) == before else text


def _decoded(text: str) -> dict[str, Any]:
    value = orjson.loads(text)
    return value if isinstance(value, dict) else {}
