"""What an empty list says: why it is empty, and which key shows some sessions."""

from __future__ import annotations

from collections.abc import Sequence

from textual.strip import Strip

from store.queries.list_options import SHELVES
from store.queries.listing import ListQuery
from store.queries.summary import Totals
from store.text.figures import count_of
from tui.kit.glyphs import glyphs
from tui.kit.key_hints import keyed
from tui.kit.lines import Line
from tui.kit.paint import Paint, blank, strip_of
from tui.kit.text import fit_path, one_line, wrap
from tui.words.sessions import folder

MOST_PATH = 60


def empty_words(
    query: ListQuery, filter_text: str, matched_of: int, store: Totals, *, reads: str = "",
    elsewhere: bool = False, searching: bool = False, unsearched: str = "",
) -> list[str]:
    """Return why a list is empty, as lines; the first is the reason.

    Args:
        query: What the list shows.
        filter_text: What is typed into the filter.
        matched_of: Sessions that the list has without the filter.
        store: Counts of the whole store.
        reads: What a sync reads into the store now; "" for nothing.
        elsewhere: Whether another browser's watcher does.
        searching: Whether the filter still searches what was said in the sessions.
        unsearched: Why it has not searched all that was said; "" where it has.
    """
    if filter_text and matched_of:
        if searching:
            return [f"No title matches “{one_line(filter_text, 200)}” yet",
                    f"What was said is being searched{glyphs().more}"]
        partly = [f"Not everything was searched: {one_line(unsearched)}"] if unsearched else []
        return [f"No session matches “{one_line(filter_text, 200)}”", *partly,
                f"{matched_of:,} are hidden by the filter; esc clears it"]
    coming = ["Sessions appear here as they are read"] if reads else []
    if not store.sessions:
        if reads:
            return [f"Reading {one_line(reads)}{glyphs().more}", *coming]
        more = ["Another backscroll fills it; sessions appear here as they are read"]
        return ["There are no sessions in this store", *(more if elsewhere else [])]
    if query.workspace:
        where = fit_path(folder(query.workspace), MOST_PATH)
        return [f"No {SHELVES[query.shelf].adjective}sessions below {where}", *coming,
                f"The store has {count_of(store.sessions, 'session')} of other folders; "
                f"{keyed('list.folder', 'shows them')}"]
    if SHELVES[query.shelf].archived:
        return ["No session is archived", keyed("list.view", "shows the active ones")]
    return [f"No active session; {store.archived:,} archived", keyed("list.view", "shows them")]


def making_words(words: str) -> list[str]:
    """Return what a list says while the store is being filled.

    Args:
        words: What is done, such as ``Making the demo store``.
    """
    return [words + glyphs().more]


def message(words: Sequence[str], y: int, width: int, paint: Paint) -> Strip:
    """Draw a line of an empty list; its first paragraph is brighter.

    Args:
        words: Paragraphs; each takes as many lines as it needs.
        y: The line that is wanted.
        width: Columns.
        paint: Resolves the inks.
    """
    at = 1
    for number, text in enumerate(words):
        for start, end in wrap(text, width - 1):
            if at == y:
                run = f" {text[start:end].strip()}", "muted" if number else "text"
                return strip_of(Line((run,)), width, paint)
            at += 1
    return blank(width, paint, "panel")
