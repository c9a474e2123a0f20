"""What a branch's conversation is, put together from its rows and those of its parents.

Source: the lionagi format page, "Rebuilding a branch". A branch may store copies of what
it was made from, only name it (``clone_from.progression``), or point at a place in its
parent (``parent_branch_id`` and ``forked_at_ord``).
"""

from __future__ import annotations

from dataclasses import dataclass

from store.sources.base.values import mapping, string
from store.sources.lionagi.stored import StoredBranch, StoredMessage, StoredSession, parent_of


@dataclass(frozen=True, slots=True)
class Turn:
    """One message of a branch.

    Attributes:
        original: The parent's message that it is, or is a copy of; None for its own.
    """

    message: StoredMessage
    original: str | None = None


def history(
    stored: StoredSession, branch: StoredBranch, seen: frozenset[str] = frozenset()
) -> list[Turn]:
    """Return the messages of a branch in order.

    Args:
        stored: The session, with the branches that its own were made from.
        branch: The branch.
        seen: Branches that are being put together, so that a circle of parents ends.
    """
    seen = seen | {branch.id}
    parent = stored.branches.get(parent_of(branch) or "")
    above = history(stored, parent, seen) if parent is not None and parent.id not in seen else []
    own = [
        Turn(message, message.clone_from)
        for name in branch.ids
        if (message := stored.messages.get(name)) is not None
    ]
    missing = len(branch.ids) - len(own)
    turns = _before(stored, branch, parent, above, own) + own
    if missing and parent is None:
        stored.miss(f"{missing} messages of branch {branch.id} have no row")
    system = stored.messages.get(string(branch.row.get("system_msg_id")) or "")
    if system is not None and all(turn.message is not system for turn in turns):
        turns.insert(0, Turn(system, system.clone_from))
    return turns


def _before(
    stored: StoredSession,
    branch: StoredBranch,
    parent: StoredBranch | None,
    above: list[Turn],
    own: list[Turn],
) -> list[Turn]:
    """Return what a branch continues and stores no copies of."""
    clone = branch.metadata.get("clone_from")
    if isinstance(clone, dict):
        if any(turn.message.clone_from for turn in own if turn.message.kind != "System"):
            return []
        listed = clone.get("progression")
        names = [str(name) for name in listed] if isinstance(listed, list) else []
        return _named(stored, branch, names, above)
    place = branch.metadata.get("forked_at_ord")
    if string(branch.metadata.get("parent_branch_id")) is None:
        return []
    if parent is None:
        stored.miss(f"branch {branch.id} was forked from a branch that is not there")
    count = place if type(place) is int and place >= 0 else len(above)
    return [Turn(turn.message, turn.message.id) for turn in above[:count]]


def _named(
    stored: StoredSession, branch: StoredBranch, names: list[str], above: list[Turn]
) -> list[Turn]:
    """Return the messages that a clone names.

    Those without a row are copies that the parent itself did not store: in order, they are
    what the parent continues.
    """
    present = set(names)
    unstored = iter([turn for turn in above if turn.message.id not in present])
    turns: list[Turn] = []
    lost = 0
    for name in names:
        message = stored.messages.get(name)
        if message is None:
            turn = next(unstored, None)
            message = turn.message if turn is not None else None
        if message is None:
            lost += 1
        else:
            turns.append(Turn(message, message.id))
    if lost:
        stored.miss(f"{lost} messages that branch {branch.id} goes on from are not there")
    return turns


def first_thread(stored: StoredSession) -> StoredBranch | None:
    """Return the branch that is the session's own conversation: the first that is no fork."""
    own = [b for b in stored.branches.values() if string(b.row.get("session_id")) == stored.id]
    roots = [branch for branch in own if parent_of(branch) is None]
    return next(iter(roots or own), None)


def is_fork(branch: StoredBranch) -> bool:
    """Return whether a branch was made from another one."""
    return bool(mapping(branch.metadata.get("clone_from"))) or parent_of(branch) is not None
