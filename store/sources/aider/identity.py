"""What a session is called: by its file and when it started, also after the file moved.

A session's id depends on the path of its history. Where the repository, or the home that it
is in, has moved since, its sessions are known by when they started and what they say, and
keep the ids that they had.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from store.sources.aider.regions import Region
from store.sources.aider.session import source_id
from store.sources.base.protocol import Fact, Library

START = "start:"
"""Fact: that a session began at a time, and in which file."""

Holds = Callable[[str, str], bool]
"""Says whether a file has a session of a name (``Region.name``) now."""


def shared_fact(path: str, region: Region, session: str) -> Fact:
    """Return what a session tells, for when its file has moved.

    Args:
        path: The history file.
        region: Where in it the session is.
        session: The session's id.
    """
    return Fact(START + region.name, session, path)


def known_as(
    path: str, region: Region, records: Sequence[bytes], library: Library, holds: Holds
) -> str:
    """Return a session's id.

    Args:
        path: The history file.
        region: Where in it the session is.
        records: What it says.
        library: Has the sessions of files that were read earlier.
        holds: Looks into the files that these had.
    """
    own = source_id(path, region)
    facts = library.facts(START + region.name)
    if any(fact.session == own for fact in facts):
        return own
    here = [fact.session for fact in facts if fact.value == path]
    if here:
        return here[0]
    for fact in facts:
        if not holds(fact.value, region.name) and _same(records, library.records(fact.session)):
            return fact.session
    return own


def _same(one: Sequence[bytes], other: Sequence[bytes]) -> bool:
    """Return whether two records of a session say the same, as far as the shorter one goes."""
    shorter, longer = sorted((one, other), key=len)
    if not shorter or list(shorter[:-1]) != list(longer[: len(shorter) - 1]):
        return False
    last, further = shorter[-1], longer[len(shorter) - 1]
    return further.startswith(last) or (len(one) == len(other) and last.startswith(further))
