"""What the search screen says: counts, what was searched, and why nothing is shown."""

from __future__ import annotations

from collections.abc import Sequence

from store.language.query import Query
from store.search.hits import Counts, Coverage
from store.text.figures import count_of
from tui.kit.glyphs import glyphs
from tui.kit.lines import Line, Run, width_of
from tui.kit.text import one_line
from tui.kit.wrap import plain_lines

EXAMPLES = (
    ("retry loop", "both words, in any order, also inside RetryLoop and retry_loop"),
    ('"could not connect"', "a phrase"),
    ("deploy -staging", "without a word"),
    ("re:/time(d )?out/i", "a regular expression"),
    ("tool:bash git push", "commands that were run"),
    ("file:src/app.py", "sessions that touched a file"),
    ("is:error after:3d", "what failed in the last three days"),
    ("in:prompt agent:codex", "what was typed, to one agent"),
)


def count_runs(
    counts: Counts, coverage: Coverage, room: int, *, counting: bool,
) -> list[Run]:
    """Return how much was found, in which part of the store, in some cells.

    What has no room is left out; a number is never cut.

    Args:
        counts: How much was found.
        coverage: What was searched.
        room: Cells.
        counting: Whether more may be found.
    """
    more = "+" if counting and not counts.whole else ""
    hits = f"{counts.hits:,}{more} {'hit' if counts.hits == 1 and not more else 'hits'}"
    pieces: list[Run] = [(f"{hits} in {count_of(counts.sessions, 'session')}", "text")]
    if counts.all_sessions:
        pieces.append((f" of {counts.all_sessions:,}", "muted"))
    if counts.archived_hits:
        pieces.append((f"  {counts.archived_hits:,} more in archived ones", "muted"))
    covered = _covered(coverage, counting=counting)
    pieces.append(covered)
    wanted = sorted(pieces[1:], key=lambda piece: piece is not covered) if coverage.why else (
        pieces[1:])
    kept = pieces[:1]
    for piece in wanted:
        if width_of([*kept, piece]) <= room:
            kept.append(piece)
    return [piece for piece in pieces if piece in kept]


def _covered(coverage: Coverage, *, counting: bool) -> Run:
    if counting:
        if coverage.total:
            share = min(99, 100 * coverage.searched // coverage.total)
            return f"  searching {share}%", "faint"
        return "  searching" + glyphs().more, "faint"
    if coverage.why:
        return "  " + one_line(coverage.why), "tool"
    return ("  all indexed" if coverage.indexed else "  all searched"), "faint"


def start_lines(width: int, fields: Sequence[tuple[str, str]]) -> list[Line]:
    """Return what is shown before anything is typed: what can be searched for, with examples.

    Args:
        width: Cells of a line.
        fields: Name and help of each field of the language.
    """
    lines = [Line(), Line([("Search everything that was typed, thought, run or printed", "text")])]
    lines.append(Line())
    column = max(len(example) for example, _ in EXAMPLES) + 3
    for example, words in EXAMPLES:
        if column + len(words) < width:
            lines.append(Line([(f"  {example.ljust(column)}", "text"), (words, "muted")]))
        else:
            lines += [Line([(f"  {example}", "text")]), Line([(f"    {words}", "muted")])]
    names = " ".join(f"{name}:" for name, _ in fields)
    lines += [Line(), Line([("  Fields", "muted bold")])]
    lines += plain_lines(names, max(20, width - 2), "muted", [("  ", "blank")])
    return lines


def nothing_lines(
    query: Query, counts: Counts, coverage: Coverage, width: int, *, unfiltered: bool | None,
    running: bool, failure: str, reset: str,
) -> list[Line]:
    """Return why there are no hits: none exists, or the filters hide them, or not all was searched.

    Args:
        query: What was asked for.
        counts: How much was found.
        coverage: What was searched.
        width: Cells of a line.
        unfiltered: Whether there are hits without the filters; None where that is not known.
        running: Whether hits may still come.
        failure: Why the search failed.
        reset: The key that takes the filters off; empty for none.
    """
    def said(*texts: tuple[str, str]) -> list[Line]:
        return [Line(), *(line for text, ink in texts
                          for line in plain_lines(text, max(20, width - 2), ink))]

    if failure:
        return said((one_line(failure), "error"))
    if running:
        return said(("searching" + glyphs().more, "faint"))
    words = " ".join(one_line(query.text[slice(*term.span)], 200) for term in query.terms)
    filters = " ".join(dict.fromkeys(
        one_line(query.text[slice(*each.span)], 200) for each in query.filters))
    texts: list[tuple[str, str]]
    if counts.archived_hits:
        texts = [
            ("No hit in sessions that are not archived", "text"),
            (f"{count_of(counts.archived_hits, 'hit')} in archived ones: add is:archived", "muted"),
        ]
    elif words and filters and unfiltered:
        texts = [
            (f"The filters hide every hit: {filters}", "text"),
            (f"{words} is found without them" + (f" · {reset} takes them off" if reset else ""),
             "muted"),
        ]
    elif words and filters:
        texts = [(f"{words} is not found, with or without the filters", "text")]
    elif words:
        texts = [(f"{words} is not found", "text")]
    else:
        texts = [(f"No session fits {filters}", "text")]
    if coverage.why:
        texts.append((f"Not everything was searched: {one_line(coverage.why)}", "tool"))
    return said(*texts)
