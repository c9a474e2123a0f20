"""The files and commands of a session in words, for the details and the command line."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable

from store.queries.touches import Call, FileRow, FileUse
from store.text import figures
from store.text.figures import count_of

_ENDS = (
    (("failed",), "failed"), (("denied",), "denied"), (("interrupted",), "interrupted"),
    (("pending", "waiting", "running"), "without a result"),
)
_OTHER_CHANGES = (("move", "moved"), ("delete", "deleted"), ("change", "changed"))


def changed_words(row: FileRow) -> str:
    """Return what was done to a file: ``written, 2 edits``; empty if it was only read."""
    writes, edits = row.count("write"), row.count("edit")
    words = []
    if writes:
        words.append("written" if writes == 1 else f"written {writes}×")
    if edits:
        words.append(count_of(edits, "edit"))
    words += [word for kind, word in _OTHER_CHANGES if row.count(kind)]
    return ", ".join(words)


def read_words(row: FileRow) -> str:
    """Return how often a file was read, empty if never."""
    reads = row.count("read")
    return count_of(reads, "read") if reads else ""


def failed_words(row: FileRow) -> str:
    """Return how many calls did nothing, and why: ``1 denied, 2 failed``."""
    return _listed((row.ended(*statuses), word) for statuses, word in _ENDS)


def marked_words(row: FileRow) -> str:
    """Return how many calls a rewind hid, and how many a fork copied."""
    copied = sum(use.call.place.copied for use in row.uses)
    return _listed([(row.hidden, "hidden"), (copied, "copied")])


def line_words(row: FileRow) -> tuple[str, str]:
    """Return lines added and removed as ``+9`` and ``-3``; ``?`` where none are recorded."""
    plus, minus = row.lines
    more = "" if row.lines_known else "?"
    if not plus and not minus:
        return (more, "") if row.changes else ("", "")
    return f"+{plus:,}{more}" if plus or more else "", f"-{minus:,}" if minus else ""


def files_words(rows: Collection[FileRow]) -> tuple[str, str]:
    """Return how many files there are, and how many of each kind."""
    counts = [
        (sum(bool(row.count("edit")) for row in rows), "edited"),
        (sum(bool(row.count("write")) for row in rows), "written"),
        (sum(bool(row.count("move")) for row in rows), "moved"),
        (sum(bool(row.count("delete")) for row in rows), "deleted"),
        (sum(bool(row.count("change")) for row in rows), "changed by a command"),
        (sum(bool(row.count("read")) for row in rows), "read"),
    ]
    return count_of(len(rows), "file"), _listed(counts)


def commands_words(calls: Collection[Call]) -> tuple[str, str]:
    """Return how many commands there are, and how many ended how."""
    statuses = Counter(str(call.outcome.status) for call in calls)
    counts = [(statuses[status], word) for status, word in (
        ("failed", "failed"), ("denied", "denied"), ("interrupted", "interrupted"),
        ("pending", "without a result"), ("waiting", "waiting for approval"),
    )]  # fmt: skip
    took = sum(call.outcome.milliseconds or 0 for call in calls)
    told = _listed(counts)
    lasted = f"{figures.duration(took)} in all" if took else ""
    return count_of(len(calls), "command"), ", ".join(filter(None, (told, lasted)))


def _listed(counts: Iterable[tuple[int, str]]) -> str:
    return ", ".join(f"{count:,} {word}" for count, word in counts if count)


def end_words(call: Call) -> str:
    """Return how a command ended: ``ok``, ``exit 3``, ``denied``, ``no result``."""
    ended = call.outcome
    if ended.status == "ok":
        return "ok" if ended.exit_code in (0, None) else f"exit {ended.exit_code}"
    return ended.word or ended.status


def took_words(call: Call) -> str:
    """Return how long a call took, empty where unknown."""
    took = call.outcome.milliseconds
    return figures.duration(took) if took is not None else ""


def use_words(use: FileUse) -> str:
    """Return what one touch did: ``edit``, ``write``, and how it ended unless it went well."""
    ended = use.call.outcome
    word = "" if ended.done else f", {ended.word or ended.status}"
    moved = f" to {use.moved_to}" if use.moved_to else ""
    return f"{use.kind}{moved}{word}"


def mark_words(call: Call) -> str:
    """Return ``hidden``, ``copied``, both or nothing."""
    marks = (call.place.hidden, "hidden"), (call.place.copied, "copied")
    return " ".join(word for is_so, word in marks if is_so)
