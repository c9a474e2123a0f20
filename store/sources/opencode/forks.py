"""Finds what a fork was copied from; no store says it.

A fork's copies have new ids but keep their times, so they are older than their session
(opencode format page, sections 2.7 and 2.10). Their originals are the messages of the
same times and roles in another session; where several sessions have copies of them, the
one that the last of them was first written in. A session whose rows are gone is looked for
in the library: each session tells when its first message was written, which its forks have
a copy of.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass

from store.sources.base.protocol import Fact, Library
from store.sources.base.values import mapping, ms_or_0
from store.sources.opencode.stored import StoredMessage, StoredSession

BEGAN = "began:"
"""Begins the fact of when a session's first message was written; it says when the session was."""

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


def shared_facts(stored: StoredSession) -> list[Fact]:
    """Return what the forks of a session may want to know of it."""
    began = ms_or_0(mapping(stored.info.get("time")).get("created"))
    first = next((one.created_at for one in stored.messages if one.created_at > 0), 0)
    return [Fact(f"{BEGAN}{first}", stored.id, str(began))] if first else []


def wanted_facts(stored: StoredSession) -> list[str]:
    """Return the names of the facts by which a fork finds what it was copied from."""
    copies = [] if stored.info.get("parentID") else copies_of(stored)
    return [f"{BEGAN}{copies[0].created_at}"] if copies else []


def candidates_in_library(
    library: Library, stored: StoredSession, known: Collection[str]
) -> Iterator[Candidate]:
    """Yield the sessions of the library that a fork may come from.

    Args:
        library: What earlier syncs brought in.
        stored: The fork.
        known: Sessions that were found where the fork is.
    """
    for name in wanted_facts(stored):
        for fact in library.facts(name):
            if fact.session != stored.id and fact.session not in known:
                signs = library.messages(fact.session)
                yield Candidate(fact.session, int(fact.value), signs)


def find_origin(
    stored: StoredSession, candidates: Candidates, library: Library
) -> Origin | None:
    """Return where a session's copies come from; None without copies or without originals.

    Args:
        stored: The session.
        candidates: Looks where the session is.
        library: Has those that are no longer there.
    """
    copies = copies_of(stored)
    if not copies or stored.info.get("parentID"):
        return None
    signs = [sign_of(message) for message in copies]
    found: list[tuple[bool, int, str, dict[str, str]]] = []
    there = list(candidates(signs[-1][1], stored.id))
    gone = candidates_in_library(library, stored, {candidate.id for candidate in there})
    for candidate in (*there, *gone):
        originals = _matched(signs, candidate.signs)
        if originals is not None:
            wrote = signs[-1][1] >= candidate.created_at
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
