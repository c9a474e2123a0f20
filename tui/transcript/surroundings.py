"""The surroundings of a part: hidden runs, neighbours, the newest message."""

from __future__ import annotations

from bisect import bisect_right

from tui.transcript.item import Around
from tui.transcript.measures import hidden_runs, newest_message
from tui.transcript.skeleton import HIDDEN, INHERITED, QUEUED, SILENT, Skeleton
from tui.words.messages import same_day

_ASIDES = frozenset({"meta", "notification"})
_EVENTS = frozenset({"data-event", "data-retry"})
_LOOK_AHEAD = 12


class Surroundings:
    """A skeleton with its runs of hidden messages, each open or closed.

    Attributes:
        show_hidden: Whether hidden runs are open.
        turned_runs: All messages of the runs for which the opposite holds.
    """

    def __init__(self) -> None:
        """Start with nothing."""
        self.skeleton = Skeleton()
        self.at_start = self.at_end = True
        self.show_hidden = False
        self.turned_runs: set[str] = set()
        self._turned_starts: set[int] = set()
        self._runs: list[tuple[int, int]] = []
        self._run_starts: list[int] = []
        self._newest = -1

    def _find_runs(self) -> None:
        self._runs = hidden_runs(self.skeleton)
        self._run_starts = [start for start, _stop in self._runs]
        self._newest = newest_message(self.skeleton) if self.at_end else -1
        self._find_turned()

    def _find_turned(self) -> None:
        """Find the turned runs by their messages, some of which may be new or gone."""
        self._turned_starts = set()
        if not self.turned_runs:
            return
        skeleton, turned = self.skeleton, self.turned_runs
        turned = turned.difference(
            name for name, flags in zip(skeleton.message_ids, skeleton.flags, strict=True)
            if not flags & HIDDEN)
        for start, stop in self._runs:
            ids = skeleton.message_ids[start: stop + 1]
            if not turned.isdisjoint(ids):
                self._turned_starts.add(start)
                turned = turned.union(ids)
        self.turned_runs = turned

    def sure(self) -> range:
        """Return the parts that will look the same once the whole session is known.

        The heading and the end of a part depend on its neighbours, and a hidden run may go on.
        """
        skeleton, start, stop = self.skeleton, 0, len(self.skeleton)
        if not self.at_start and stop:
            while start < stop - 1 and skeleton.type_of(start) in SILENT:
                start += 1
            run = self.run_of(start)
            start = start + 1 if run is None else skeleton.parts_of(run[1]).stop
        if not self.at_end and stop:
            run = self.run_of(stop - 1)
            first = skeleton.first[skeleton.message[stop - 1] if run is None else run[0]]
            stop = first if run is not None or stop - first <= _LOOK_AHEAD else stop - 1
        return range(min(start, stop), stop)

    def run_of(self, part: int) -> tuple[int, int] | None:
        """Return first and last message of the hidden run that a part is in, None without one."""
        message = self.skeleton.message[part]
        if not self.skeleton.flags[message] & HIDDEN:
            return None
        return self._runs[bisect_right(self._run_starts, message) - 1]

    def run_opened(self, run: tuple[int, int]) -> bool:
        """Return whether a hidden run is open."""
        return self.show_hidden != (run[0] in self._turned_starts)

    def around(self, part: int) -> Around:
        """Return the surroundings of a part."""
        skeleton = self.skeleton
        message = skeleton.message[part]
        parts = skeleton.parts_of(message)
        run = self.run_of(part)
        begins_run = run is not None and part == skeleton.first[run[0]]
        flags = skeleton.flags[message]
        return Around(
            flags, self._heads(part), self._gap(part),
            new_day=part == parts.start and not flags & QUEUED and self._new_day(message),
            hidden=self._hidden_fact(run) if run is not None and begins_run else None,
            opened=run is not None and self.run_opened(run),
            first_inherited=bool(flags & INHERITED) and part == parts.start and (
                message == 0 and self.at_start
                or message > 0 and not skeleton.flags[message - 1] & INHERITED),
            last=part == parts.stop - 1, newest=message == self._newest,
        )

    def _hidden_fact(self, run: tuple[int, int]) -> tuple[int, int]:
        return run[1] - run[0] + 1, self.skeleton.hidden_at[run[0]]

    def _new_day(self, message: int) -> bool:
        created = self.skeleton.created
        if message == 0:
            return self.at_start
        return not same_day(created[message - 1], created[message])

    def _before(self, part: int) -> int | None:
        """Return the part above, None where there is none."""
        part -= 1
        while part >= 0 and self.skeleton.type_of(part) in SILENT:
            part -= 1
        return part if part >= 0 else None

    def _heads(self, part: int) -> bool:
        skeleton, name = self.skeleton, self.skeleton.type_of(part)
        message = skeleton.message[part]
        before = self._before(part)
        begins = before is None or skeleton.message[before] != message
        if skeleton.roles[message] != "assistant":
            return begins
        if name == "text":
            return begins or before is None or skeleton.type_of(before) != "text"
        if name == "reasoning" and begins:
            following = skeleton.parts_of(message)[:_LOOK_AHEAD]
            return all(skeleton.type_of(other) != "text" for other in following)
        return False

    def _gap(self, part: int) -> bool:
        before = self._before(part)
        if before is None or self.run_of(before) != self.run_of(part):
            return True
        kind = self._kind(part)
        return kind == "" or kind != self._kind(before)

    def _kind(self, part: int) -> str:
        """Return the group of parts without empty lines between them, "" for a part on its own."""
        skeleton = self.skeleton
        message = skeleton.message[part]
        if skeleton.flags[message] & QUEUED:
            return "queued"
        name = skeleton.type_of(part)
        if skeleton.is_tool(part) or name == "reasoning":
            return "work"
        if name in _EVENTS or (
            skeleton.origins[message] in _ASIDES and skeleton.roles[message] != "assistant"
        ):
            return "aside"
        if skeleton.is_prose(part) and part != skeleton.first[message]:
            before = self._before(part)
            if before is not None and skeleton.is_prose(before):
                return f"prose {message}" if skeleton.roles[message] != "assistant" else ""
        return f"prose {message}" if skeleton.roles[message] == "user" else ""
