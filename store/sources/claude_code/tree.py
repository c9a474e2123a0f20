"""The tree of rows: which are on the current branch, and when the others left it.

Source of the rules: the Claude Code format page, section 4. The file keeps everything;
the branch that is current ends in the last row (or in the one that a last-prompt note
names), and continues past a compaction by ``logicalParentUuid``.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence

from store.sources.claude_code.compaction import is_boundary, preserved_uuids, segment_ends
from store.sources.claude_code.origins import is_summary
from store.sources.claude_code.rows import Row, mapping, string


def abandoned(
    rows: Sequence[Row], leaf: str | None, *, goes_on: bool = False
) -> dict[str, int]:
    """Return the rows that a rewind left behind.

    Args:
        rows: The rows of one thread in file order.
        leaf: The uuid of the current tip, where a note names it.
        goes_on: Whether the first row has a parent, which is on the current branch too.

    Returns:
        For each such row's uuid the time (epoch ms) of the prompt that abandoned it; one
        value per rewind.
    """
    above = rows[0].parent if rows and goes_on else None
    if not rows or (leaf in (None, rows[-1].uuid) and _is_linear(rows, above)):
        return {}
    if not any(row.data.get("parentUuid") for row in rows):
        return {}  # whoever wrote this kept no tree: the file's order is all there is
    return _Tree(rows).abandoned(leaf)


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


class _Tree:
    """Indexes over the rows; positions stand for rows, -1 for none."""

    def __init__(self, rows: Sequence[Row]) -> None:
        self.rows = rows
        self.position = {row.uuid: index for index, row in enumerate(rows)}
        self.parents = [self._parent(index, row) for index, row in enumerate(rows)]
        self.prompt = [self._is_prompt(row) for row in rows]

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
        current = self._branch(self.position.get(leaf or "", len(self.rows) - 1))
        for index in sorted(current):
            if is_boundary(self.rows[index]):
                current.update(self._preserved(index))
        self._add_parallel(current)
        self._add_side_rows(current)
        hidden = [index for index in range(len(self.rows)) if index not in current]
        return self._times(hidden, current) if hidden else {}

    def _branch(self, tip: int) -> set[int]:
        """Walk from the tip to the root; where that is a loop, leave it."""
        branch: set[int] = set()
        index = tip
        while index >= 0:
            if index in branch:
                break
            branch.add(index)
            above = self.parents[index]
            if above in branch:
                above = self._past_preserved(index, branch)
            index = above
        return branch

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

    def _preserved(self, boundary: int) -> set[int]:
        """Return the rows that a compaction kept, though its own parent is elsewhere.

        The next prompt is attached to the summary in the file, and to these when it is sent.
        """
        row = self.rows[boundary]
        found = [self.position[uuid] for uuid in preserved_uuids(row) if uuid in self.position]
        head, tail = segment_ends(row)
        first = self.position.get(head or "", -1)
        index = self.position.get(tail or "", -1)
        if head is None and self._is_up_to(boundary):
            # Nothing names them: they are what came between the boundary's parent and it.
            first, index = self.parents[boundary], boundary - 1
        seen: set[int] = set()
        while index >= 0 and index not in seen and not is_boundary(self.rows[index]):
            seen.add(index)
            if index == first:
                break
            index = self.parents[index]
        return {*found, *(seen if first in seen else ())}

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

    def _add_side_rows(self, current: set[int]) -> None:
        """Add rows that are attached to the branch without being a turn of their own."""
        for index, row in enumerate(self.rows):
            if index in current or self.prompt[index] or row.type == "assistant":
                continue
            above = self.parents[index]
            if row.type == "user":
                beside = self.rows[above].has_result and not row.has_result
                if above in current and (beside or is_summary(row)):
                    current.add(index)
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
