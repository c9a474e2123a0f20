"""The tree of rows: which are on the current branch, and when the others left it.

Source of the rules: the Claude Code format page, section 4. The file keeps everything;
the branch that is current ends in the last row (or in the one that a last-prompt note
names), and continues past a compaction by ``logicalParentUuid``.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, field

from store.sources.claude_code.compaction import (
    anchor_of,
    is_boundary,
    names_all,
    preserved_uuids,
    segment_ends,
)
from store.sources.claude_code.origins import is_summary
from store.sources.claude_code.rows import Row, mapping, string


@dataclass(frozen=True, slots=True)
class Branches:
    """What the tree of a thread says.

    Attributes:
        left: For the uuid of each row that a rewind left behind the time (epoch ms) of the
            prompt that abandoned it; one value per rewind.
        kept: For the uuid of each compaction's boundary those of the rows that it preserved,
            in the order of the next request.
    """

    left: dict[str, int] = field(default_factory=dict)
    kept: dict[str, list[str]] = field(default_factory=dict)


def branches_of(rows: Sequence[Row], leaf: str | None, *, goes_on: bool = False) -> Branches:
    """Return what rewinds left behind, and what compactions kept.

    Args:
        rows: The rows of one thread in file order.
        leaf: The uuid of the current tip, where a note names it.
        goes_on: Whether the first row has a parent, which is on the current branch too.
    """
    above = rows[0].parent if rows and goes_on else None
    if not rows or (leaf in (None, rows[-1].uuid) and _is_linear(rows, above)):
        return Branches()
    tree = _Tree(rows)
    if not any(row.data.get("parentUuid") for row in rows):
        # Whoever wrote this kept no tree: the file's order is all there is.
        return Branches({}, tree.kept())
    return Branches(tree.abandoned(leaf), tree.kept())


def abandoned(
    rows: Sequence[Row], leaf: str | None, *, goes_on: bool = False
) -> dict[str, int]:
    """Return the rows that a rewind left behind, as ``Branches.left`` has them.

    Args:
        rows: The rows of one thread in file order.
        leaf: The uuid of the current tip, where a note names it.
        goes_on: Whether the first row has a parent, which is on the current branch too.
    """
    return branches_of(rows, leaf, goes_on=goes_on).left


def _is_linear(rows: Sequence[Row], above: str | None) -> bool:
    previous = above
    for row in rows:
        if row.beside:
            continue
        if row.parent != previous:
            return False
        previous = row.uuid
    return True


def is_queued_prompt(row: Row) -> bool:
    """Return whether an attachment row is a prompt that was sent while the agent worked."""
    return mapping(row.data.get("attachment")).get("type") == "queued_command"


@dataclass(frozen=True, slots=True)
class _Segment:
    """What a compaction kept: its rows, and the row that it is attached to when it is sent."""

    rows: list[int]
    anchor: int


class _Tree:
    """Indexes over the rows; positions stand for rows, -1 for none."""

    def __init__(self, rows: Sequence[Row]) -> None:
        self.rows = rows
        self.position = {row.uuid: index for index, row in enumerate(rows)}
        self.parents = [self._parent(index, row) for index, row in enumerate(rows)]
        self.prompt = [self._is_prompt(row) for row in rows]
        self.segments: dict[int, _Segment] = {}
        self._begins: dict[int, int] = {}
        self._anchors: dict[int, int] = {}
        for index, row in enumerate(rows):
            if is_boundary(row):
                self._take_segment(index)

    def _parent(self, index: int, row: Row) -> int:
        """Return the parent's position; where it is missing, the row before it in the file."""
        if row.parent is None:
            logical = string(row.data.get("logicalParentUuid"))
            # A compaction leaves no earlier turn behind, whether it names the last one or not.
            begins = is_boundary(row) or (row.type == "user" and is_summary(row))
            missing = index - 1 if begins else -1
            return self.position.get(logical, missing) if logical else missing
        found = self.position.get(row.parent)
        return index - 1 if found is None or found == index else found

    def _is_prompt(self, row: Row) -> bool:
        """Return whether a row begins a turn: a user's words, not results or what was put in."""
        if row.type == "attachment":
            return is_queued_prompt(row) and not row.beside
        if row.type != "user" or row.data.get("isMeta") or row.has_result:
            return False
        return not is_summary(row)

    def abandoned(self, leaf: str | None) -> dict[str, int]:
        tip = self.position.get(leaf or "", len(self.rows) - 1)
        current, within = self._branch(tip)
        last = max(current)
        for index in sorted(current):
            if index in self.segments and index not in within:
                current.update(self.segments[index].rows)
        self._add_parallel(current)
        self._add_side_rows(current, last)
        hidden = [index for index in range(len(self.rows)) if index not in current]
        return self._times(hidden, current) if hidden else {}

    def kept(self) -> dict[str, list[str]]:
        return {
            self.rows[index].uuid: [self.rows[each].uuid for each in segment.rows]
            for index, segment in self.segments.items() if segment.rows
        }  # fmt: skip

    def _branch(self, tip: int) -> tuple[set[int], set[int]]:
        """Walk from the tip to the root; where that is a loop, leave it.

        Returns:
            The rows, and the compactions that were reached through what they kept: the branch
            has as much of that as was walked through.
        """
        branch, within = set[int](), set[int]()
        index = tip
        while index >= 0 and index not in branch:
            branch.add(index)
            above = self.parents[index]
            boundary = self._begins.get(index, tip)
            if boundary < tip and self.segments[boundary].anchor not in branch:
                above = self.segments[boundary].anchor
                within.add(boundary)
            elif above in branch:
                above = self._past_preserved(index, branch)
            index = above
        return branch, within

    def _past_preserved(self, boundary: int, branch: set[int]) -> int:
        """Return where the history continues above a boundary whose parent was preserved.

        The head's own parent is before the segment, unless the file was written
        anew with the segment relinked: then the row before it in the file.
        """
        head, _ = segment_ends(self.rows[boundary])
        if head not in self.position:
            return -1
        above = self.parents[self.position[head]]
        if above not in branch:
            return above
        before = self.position[head] - 1
        while before in branch:
            before -= 1
        return before

    def _take_segment(self, boundary: int) -> None:
        """Note what a compaction kept, and where that is attached when it is sent.

        The next prompt is attached to the summary in the file, and to the last row that was
        kept when it is sent; the first one is attached to the anchor.
        """
        row = self.rows[boundary]
        kept = self._preserved(boundary)
        head, tail = segment_ends(row)
        if head is None and not self._is_up_to(boundary):
            self.segments[boundary] = _Segment(kept, -1)
            return
        anchor = self.position.get(anchor_of(row) or "", -1)
        if anchor < boundary:
            anchor = next(
                (index for index in range(boundary + 1, min(boundary + 4, len(self.rows)))
                 if self.rows[index].parent == row.uuid and is_summary(self.rows[index])),
                boundary)  # fmt: skip
        self.segments[boundary] = _Segment(kept, anchor)
        if kept:
            self._begins[kept[0]] = self._anchors[anchor] = boundary

    def _preserved(self, boundary: int) -> list[int]:
        """Return the rows that a compaction kept, in their order.

        Its boundary names all of them, or only the first and the last. Where it names none,
        they are what came between its parent and it.
        """
        row = self.rows[boundary]
        named = [self.position[uuid] for uuid in preserved_uuids(row) if uuid in self.position]
        head, tail = segment_ends(row)
        first, index = self.position.get(head or "", -1), self.position.get(tail or "", -1)
        if head is None and self._is_up_to(boundary):
            first, index = self.parents[boundary], boundary - 1
        if names_all(row) or index < 0:
            return named
        found: dict[int, None] = {}
        while index >= 0 and index not in found and index < boundary:
            if head is None and index == first:
                break
            found[index] = None
            if index == first:
                break
            index = self._above(index)
        return list(reversed(found)) if index == first else named

    def _above(self, index: int) -> int:
        """Return what a row was sent after, where earlier compactions kept something."""
        above = self.parents[index]
        if index in self._begins:
            return self.segments[self._begins[index]].anchor
        if above in self._anchors:
            return self.segments[self._anchors[above]].rows[-1]
        return above

    def _is_up_to(self, boundary: int) -> bool:
        """Return whether a boundary's summary covers what came before a point, not all."""
        uuid = self.rows[boundary].uuid
        return any(
            row.parent == uuid
            and mapping(row.data.get("summarizeMetadata")).get("direction") == "up_to"
            for row in self.rows[boundary + 1 : boundary + 4]
        )

    def _add_parallel(self, current: set[int]) -> None:
        """Add what parallel calls hide: rows of the same API message, and results below them."""
        messages = {
            self.rows[index].message_id for index in current if self.rows[index].type == "assistant"
        }
        for index, row in enumerate(self.rows):
            # An id may be on several branches: only rows that are attached to this one are of it.
            if (
                row.type == "assistant"
                and row.message_id in messages
                and self.parents[index] in current
            ):
                current.add(index)
        for index, row in enumerate(self.rows):
            above = self.parents[index]
            if (
                row.type == "user"
                and above in current
                and self.rows[above].type == "assistant"
                and row.has_result
            ):
                current.add(index)

    def _add_side_rows(self, current: set[int], last: int) -> None:
        """Add rows that are attached to the branch without being a turn of their own.

        A compaction is such a row where nothing of the branch came after it; else what came
        was attached to a row before it, by a rewind.

        Args:
            current: The rows of the branch.
            last: The last one of those that were walked through.
        """
        for index, row in enumerate(self.rows):
            if index in current or self.prompt[index] or row.type == "assistant":
                continue
            above = self.parents[index]
            if row.type == "user":
                beside = self.rows[above].has_result and not row.has_result
                summary = is_summary(row) and (index > last or is_boundary(self.rows[above]))
                if above in current and (beside or summary):
                    current.add(index)
            elif is_boundary(row) and index < last and above >= 0:
                continue
            elif above in current or above < 0:
                current.add(index)

    def _times(self, hidden: list[int], current: set[int]) -> dict[str, int]:
        """Give each hidden row the time of the first later prompt that took its place."""
        prompts: dict[int, list[int]] = {}
        for index in range(len(self.rows)):
            if self.prompt[index]:
                prompts.setdefault(self.parents[index], []).append(index)
        visible = [index for index in sorted(current) if self.prompt[index]]
        fork_at: dict[int, int] = {}
        for index in hidden:
            above = self.parents[index]
            forked = len(prompts.get(above, ())) > (1 if self.prompt[index] else 0)
            fork_at[index] = index if forked else fork_at.get(above, -1)
        by_rewind: dict[int, int] = {}
        taken: set[int] = set()
        times: dict[str, int] = {}
        for index in hidden:
            rewind = self._successor(index, fork_at, prompts, visible)
            if rewind not in by_rewind:
                at = self.rows[rewind].at
                while at in taken:
                    at += 1
                taken.add(at)
                by_rewind[rewind] = at
            times[self.rows[index].uuid] = by_rewind[rewind]
        return times

    def _successor(
        self, index: int, fork_at: dict[int, int], prompts: dict[int, list[int]], visible: list[int]
    ) -> int:
        """Return the prompt that abandoned a row: the first later sibling of it or above it."""
        candidates = []
        fork, seen = fork_at[index], set[int]()
        while fork >= 0 and fork not in seen:
            seen.add(fork)
            siblings = prompts[self.parents[fork]]
            place = bisect_right(siblings, index)
            if place < len(siblings):
                candidates.append(siblings[place])
            fork = fork_at.get(self.parents[fork], -1)
        if not candidates:
            place = bisect_right(visible, index)
            candidates = visible[place : place + 1] or [len(self.rows) - 1]
        return min(candidates)
