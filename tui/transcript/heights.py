"""How many lines each part takes, and the sums of them that scrolling needs."""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Sequence
from itertools import accumulate


class Heights:
    """Line counts by part; change, sum and find take logarithmic time (a Fenwick tree)."""

    def __init__(self, heights: Iterable[int] = ()) -> None:
        """Build the index over line counts in order."""
        self._heights = array("i", heights)
        self._tree = array("q", [0])
        self._tree.extend(array("q", self._heights))
        self.total = sum(self._heights)
        tree, count = self._tree, len(self._heights)
        for node in range(1, count + 1):
            parent = node + (node & -node)
            if parent <= count:
                tree[parent] += tree[node]

    def __len__(self) -> int:
        """Return how many parts there are."""
        return len(self._heights)

    def __getitem__(self, part: int) -> int:
        """Return the lines of one part."""
        return self._heights[part]

    def append(self, height: int) -> None:
        """Add a part at the end."""
        self._heights.append(height)
        node = len(self._heights)
        value, step, low = height, 1, node & -node
        while step < low:
            value += self._tree[node - step]
            step <<= 1
        self._tree.append(value)
        self.total += height

    def first(self, count: int) -> Heights:
        """Return the index over the first parts; the nodes of a prefix are a prefix of the nodes.

        Args:
            count: How many parts it has.
        """
        found = Heights()
        found._heights, found._tree = self._heights[:count], self._tree[: count + 1]
        found.total = self.above(count)
        return found

    def cut(self, count: int) -> None:
        """Remove all parts but the first ``count``."""
        self.total -= sum(self._heights[count:])
        del self._heights[count:]
        # A node only sums up parts before its own number, so the nodes that are left stay right.
        del self._tree[count + 1:]

    def set(self, part: int, height: int) -> None:
        """Change the lines of one part."""
        delta = height - self._heights[part]
        if not delta:
            return
        self._heights[part] = height
        self.total += delta
        node, count = part + 1, len(self._heights)
        while node <= count:
            self._tree[node] += delta
            node += node & -node

    def set_from(self, start: int, heights: Sequence[int]) -> None:
        """Change the lines of successive parts, of many at once."""
        if len(heights) * len(self._heights).bit_length() < len(self._heights):
            for part, height in enumerate(heights, start):
                self.set(part, height)
            return
        self._heights[start: start + len(heights)] = array("i", heights)
        sums = array("q", accumulate(self._heights, initial=0))
        self._tree = array("q", [0])
        self._tree.extend(sums[node] - sums[node & (node - 1)] for node in range(1, len(sums)))
        self.total = sums[-1]

    def above(self, part: int) -> int:
        """Return how many lines are above a part."""
        total = 0
        while part:
            total += self._tree[part]
            part &= part - 1
        return total

    def find(self, line: int) -> tuple[int, int]:
        """Return the part that holds a line, and which line of it that is."""
        count = len(self._heights)
        if not count:
            return 0, 0
        if line >= self.total:
            return count - 1, max(0, self._heights[-1] - 1)
        part, step = 0, 1 << (count.bit_length() - 1)
        while step:
            if part + step <= count and self._tree[part + step] <= line:
                part += step
                line -= self._tree[part]
            step >>= 1
        return min(part, count - 1), line
