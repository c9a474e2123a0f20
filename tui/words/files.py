"""The contents of a session's files in words: where they are from, how they are to the disk."""

from __future__ import annotations

from store.files.disk import Present, Standing
from store.files.history import Content, Point
from store.text.figures import count_of, moment, size

_ORIGINS = {
    "copy": "the agent's copy", "recorded": "recorded", "written": "written whole",
    "read": "read whole", "replayed": "replayed", "missing": "no file", "unknown": "not known",
}
_STANDINGS: dict[Standing, str] = {
    "same": "as on disk", "changed": "changed since", "gone": "not on disk",
    "there": "on disk again", "other": "no file today", "unknown": "not known",
}
_KINDS = {
    "found": "before", "write": "written", "edit": "edited", "delete": "deleted",
    "move": "moved", "change": "changed", "seen": "changed by others",
}


def origin_words(content: Content) -> str:
    """Return where a content is from, in a word or two."""
    return _ORIGINS[content.origin]


def source_words(content: Content) -> str:
    """Return where a content is from in a sentence."""
    edits = count_of(content.edits, "edit")
    return {
        "copy": f"the agent's copy: {content.source}",
        "recorded": f"recorded {content.source}",
        "replayed": f"replayed: {edits} made again on {content.source}",
        "unknown": f"not known: {content.source}",
    }.get(content.origin, content.source)


def point_words(point: Point) -> str:
    """Return what made a point: ``edited``, and what the agent's journal calls it."""
    if point.kind == "found" and point.content.origin == "missing":
        return "not there yet"
    kind = _KINDS[point.kind]
    operation = point.operation.replace("_", " ")
    return f"{kind} ({operation})" if operation else kind


def standing_words(standing: Standing) -> str:
    """Return how a file on disk is to a content, in two words."""
    return _STANDINGS[standing]


def since_words(content: Content, now: Present, standing: Standing) -> str:
    """Return how the file on disk differs, with size, time and hash; empty where it does not.

    Args:
        content: The content at a point of the session.
        now: What is on disk.
        standing: How both are to each other.
    """
    if standing == "gone":
        return "The file is not on disk any more."
    if now.state == "other":
        return "There is something on disk that is no file."
    if standing not in ("changed", "there"):
        return ""
    then = (f"{size(len(content.body))}, sha256 {content.digest[:12]}"
            if content.body is not None else "no file")
    digest = f", sha256 {now.digest[:12]}" if now.digest else ""
    return (f"The file on disk has changed since: {then} then, {size(now.size)}{digest} now, "
            f"changed {moment(now.changed_at)}.")
