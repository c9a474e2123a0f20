"""Finds what a fork was copied from; no store says it.

A fork's copies have new ids but keep their times, so they are older than their session
(opencode format page, sections 2.7 and 2.10). Their originals are the messages of the
same times and roles in another session; where several sessions have copies of them, the
one that the last of them was first written in.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from store.sources.opencode.stored import StoredMessage, StoredSession
from store.sources.values import mapping, ms_or_0

Signs = Sequence[tuple[str, int, str]]
"""Id, ``time_created`` and role of messages, in order."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """A session that may hold the originals."""

    id: str
    created_at: int
    signs: Signs


@dataclass(frozen=True, slots=True)
class Origin:
    """A fork's parent, and the original of each copy by the copy's id."""

    parent: str
    originals: dict[str, str]


Candidates = Callable[[int, str], Iterable[Candidate]]
"""Returns the sessions that hold a message of a time, but for the one that is named."""


def sign_of(message: StoredMessage) -> tuple[str, int, str]:
    """Return what a copy shares with its original, and the id."""
    return message.id, message.created_at, str(message.data.get("role"))


def copies_of(stored: StoredSession) -> list[StoredMessage]:
    """Return the messages that are older than their session."""
    began = ms_or_0(mapping(stored.info.get("time")).get("created"))
    return [message for message in stored.messages if 0 < message.created_at < began]


def find_origin(stored: StoredSession, candidates: Candidates) -> Origin | None:
    """Return where a session's copies come from; None without copies or without originals."""
    copies = copies_of(stored)
    if not copies or stored.info.get("parentID"):
        return None
    wanted = [sign_of(message) for message in copies]
    found: list[tuple[bool, int, str, dict[str, str]]] = []
    for candidate in candidates(wanted[-1][1], stored.id):
        originals = _matched(wanted, candidate.signs)
        if originals is not None:
            wrote = wanted[-1][1] >= candidate.created_at
            found.append((not wrote, candidate.created_at, candidate.id, originals))
    if not found:
        return None
    _, _, parent, originals = min(found, key=lambda one: one[:3])
    return Origin(parent, originals)


def _matched(wanted: Signs, signs: Signs) -> dict[str, str] | None:
    """Return original ids by copy, where all that was copied is there in the same order."""
    there = iter(signs)
    matched = {}
    for name, at, role in wanted:
        original = next((one for one in there if one[1:] == (at, role)), None)
        if original is None:
            return None
        matched[name] = original[0]
    return matched
