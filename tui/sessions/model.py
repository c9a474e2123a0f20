"""The arrangement of the list: groups, threads, folds, lines of the screen."""

from __future__ import annotations

from array import array
from bisect import bisect_right
from collections.abc import Collection, Mapping
from itertools import compress

from store.queries.list_keys import ListKeys
from store.system.records import NamedTuple, field, record

FOLD_BEYOND = 4
"""A session with more children than this starts folded."""
HEADING_LINES = 2
"""An empty line and the group's name."""
MOST_RAILS = 15


class GroupSpan(NamedTuple):
    """A group of the list.

    Attributes:
        name: As in ``ListKeys.group_names``.
        start: Its first entry.
        entries: How many entries it has, without folded ones.
        sessions: How many sessions it has, folded ones too.
    """

    name: str
    start: int
    entries: int
    sessions: int


@record
class ListModel:
    """The entries of a list, in the order they are shown; one a session that is not folded.

    Attributes:
        rowids: Of each entry.
        depths: How deep each entry is below the first session of its thread.
        lasts: 1 where an entry is the last child of its parent.
        rails: Bit n is set where a line of depth n runs on past the entry.
        children: By rowid, how many sessions are directly below it.
        folded: Rowids whose children are not shown.
        parents: By rowid, the parent's.
        total: Sessions of the list before a filter.
        matched: Sessions of the list after it.
        whole: False while only the first page is known.
    """

    rowids: array[int] = field(default_factory=lambda: array("q"))
    depths: bytearray = field(default_factory=bytearray)
    lasts: bytearray = field(default_factory=bytearray)
    rails: array[int] = field(default_factory=lambda: array("H"))
    groups: list[GroupSpan] = field(default_factory=list)
    children: dict[int, int] = field(default_factory=dict)
    folded: set[int] = field(default_factory=set)
    parents: dict[int, int] = field(default_factory=dict)
    total: int = 0
    matched: int = 0
    whole: bool = True
    headed: bool = True

    def __len__(self) -> int:
        """Return how many entries there are."""
        return len(self.rowids)

    def find(self, rowid: int) -> int | None:
        """Return the entry of a session, or None when it is not shown."""
        try:
            return self.rowids.index(rowid)
        except ValueError:
            return None

    def find_shown(self, rowid: int) -> int | None:
        """Return the entry of a session or, where that is folded away, of its ancestor."""
        at: int | None = rowid
        while at is not None:
            entry = self.find(at)
            if entry is not None:
                return entry
            at = self.parents.get(at)
        return None

    def count_shown(self, rowids: Collection[int]) -> int:
        """Return how many of some sessions are in the list, also where they are folded away."""
        shown = set(self.rowids)
        return sum(self._is_shown(rowid, shown) for rowid in rowids)

    def _is_shown(self, rowid: int, shown: set[int]) -> bool:
        at: int | None = rowid
        while at is not None and at not in shown:
            at = self.parents.get(at)
        return at is not None

    def group_of(self, entry: int) -> int:
        """Return the number of the group that an entry is in."""
        return bisect_right(self.groups, entry, key=lambda span: span.start) - 1

    def lines(self, row_height: int) -> int:
        """Return the height of the whole list in lines."""
        return self._heading * len(self.groups) + len(self.rowids) * row_height

    @property
    def _heading(self) -> int:
        return HEADING_LINES if self.headed else 0

    def top(self, entry: int, row_height: int) -> int:
        """Return the first line of an entry."""
        return self._heading * (self.group_of(entry) + 1) + entry * row_height

    def at_line(self, line: int, row_height: int) -> tuple[int, int | None, int]:
        """Return what is on a line.

        Returns:
            The group's number, the entry (None on a heading), and the line within either.
        """
        heading = self._heading
        number = max(0, bisect_right(
            range(len(self.groups)), line,
            key=lambda n: heading * n + self.groups[n].start * row_height,
        ) - 1)
        within = line - heading * number - self.groups[number].start * row_height
        if within < heading:
            return number, None, within
        entry, part = divmod(within - heading, row_height)
        return number, self.groups[number].start + entry, part


def build_model(
    keys: ListKeys, folds: Mapping[int, bool], matching: Collection[int] | None = None,
    *, headed: bool = True,
) -> ListModel:
    """Arrange the sessions of a list.

    Args:
        keys: The sessions in the order of the sort.
        folds: By rowid, whether the user folded (True) or unfolded (False) the children.
        matching: The rowids that the filter leaves, or None without a filter.
        headed: Whether groups have headings.
    """
    parents = _linked(keys, matching)
    model = ListModel(whole=keys.whole, total=len(keys.rowids), headed=headed, parents=parents)
    below: dict[int, list[int]] = {}
    for rowid in keys.rowids if parents else ():
        parent = parents.get(rowid)
        if parent is not None:
            below.setdefault(parent, []).append(rowid)
    model.children = {rowid: len(found) for rowid, found in below.items()}
    model.folded = {
        rowid for rowid, count in model.children.items()
        if folds.get(rowid, count > FOLD_BEYOND and matching is None)
    }
    for number, roots in _grouped(keys, parents, matching).items():
        _add_group(model, keys.group_names[number], roots, below)
    model.matched = sum(group.sessions for group in model.groups)
    return model


def _linked(keys: ListKeys, matching: Collection[int] | None) -> dict[int, int]:
    if matching is None:
        return keys.parents
    return {
        child: parent for child, parent in keys.parents.items()
        if child in matching and parent in matching
    }


def _grouped(
    keys: ListKeys, parents: Mapping[int, int], matching: Collection[int] | None
) -> dict[int, list[int]]:
    """Return the threads' first sessions by group, both in the order of the list."""
    groups: dict[int, list[int]] = {}
    rowids, numbers = keys.rowids, keys.groups
    if matching is not None:
        chosen = [rowid in matching for rowid in rowids]
        rowids = array("q", compress(rowids, chosen))
        numbers = array("i", compress(numbers, chosen))
    if not parents:
        for rowid, number in zip(rowids, numbers, strict=True):
            if number in groups:
                groups[number].append(rowid)
            else:
                groups[number] = [rowid]
        return groups
    heads = set(parents.values())
    home = {r: n for r, n in zip(rowids, numbers, strict=True) if r in heads}
    placed: set[int] = set()
    for rowid, number in zip(rowids, numbers, strict=True):
        if rowid in parents or rowid in home:
            while rowid in parents:
                rowid = parents[rowid]
            if rowid in placed:
                continue
            placed.add(rowid)
            number = home[rowid]
        if number in groups:
            groups[number].append(rowid)
        else:
            groups[number] = [rowid]
    return groups


def _add_group(
    model: ListModel, name: str, roots: list[int], below: Mapping[int, list[int]]
) -> None:
    start, sessions = len(model.rowids), 0
    plain: list[int] = []
    for root in roots if below else ():
        if root in below:
            sessions += _add_plain(model, plain) + _add_thread(model, root, below)
            plain = []
        else:
            plain.append(root)
    sessions += _add_plain(model, plain if below else roots)
    model.groups.append(GroupSpan(name, start, len(model.rowids) - start, sessions))


def _add_plain(model: ListModel, roots: list[int]) -> int:
    """Add sessions that have nothing below them; return how many."""
    model.rowids.extend(roots)
    model.depths.extend(bytes(len(roots)))
    model.lasts.extend(bytes(len(roots)))
    model.rails.frombytes(bytes(2 * len(roots)))
    return len(roots)


def _add_thread(model: ListModel, root: int, below: Mapping[int, list[int]]) -> int:
    """Add a session and what is below it; return how many sessions that are."""
    sessions = 0
    waiting: list[tuple[int, int, int, int, bool]] = [(root, 0, 0, 0, True)]
    while waiting:
        rowid, depth, last, rails, shown = waiting.pop()
        sessions += 1
        if shown:
            model.rowids.append(rowid)
            model.depths.append(min(depth, 255))
            model.lasts.append(last)
            model.rails.append(rails)
        found = below.get(rowid)
        if not found:
            continue
        shown = shown and rowid not in model.folded
        bit = 1 << min(depth, MOST_RAILS) if depth and not last else 0
        for position, child in enumerate(reversed(found)):
            waiting.append((child, depth + 1, int(position == 0), rails | bit, shown))
    return sessions
