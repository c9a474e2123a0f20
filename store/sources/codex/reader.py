"""One unit kept in memory: a thread's files; appended bytes are parsed once."""

from __future__ import annotations

from dataclasses import dataclass

from store.sources.base.drafts import LineageDraft, SessionDraft
from store.sources.base.json_lines import LINE_LIMIT
from store.sources.base.protocol import Fact, Problem
from store.sources.codex import facts as side_files
from store.sources.codex.assemble import session_draft, thread_id_of
from store.sources.codex.facts import Facts
from store.sources.codex.neighbours import ROLLOUT, Neighbours, told
from store.sources.codex.rollout import Rollout


@dataclass(slots=True)
class Earlier:
    """What is known of a thread from what lies before the place that it is read from.

    Attributes:
        answers: How many answers there were, less those of the context.
    """

    lineage: LineageDraft | None = None
    answers: int = 0


class ThreadReader:
    """Reads one thread.

    Attributes:
        facts: What side files tell of it; set by whoever reads them.
        rollouts: Its files by path.
        told: What the last ``build`` tells others.
        wants: What it looked for in vain.
        earlier: Set where the thread's file is not read from its beginning.
    """

    def __init__(self, neighbours: Neighbours, line_limit: int = LINE_LIMIT) -> None:
        """Start with nothing read.

        Args:
            neighbours: The other files of the same home.
            line_limit: Bytes of the longest line that is read.
        """
        self.facts: Facts | None = None
        self.rollouts: dict[str, Rollout] = {}
        self._neighbours = neighbours
        self._line_limit = line_limit
        self._missing: list[Problem] = []
        self.told: list[Fact] = []
        self.wants: set[str] = set()
        self.earlier: Earlier | None = None

    def rollout(self, path: str) -> Rollout:
        """Return what was read of one of the thread's files, to push bytes into."""
        if path not in self.rollouts:
            self.rollouts[path] = Rollout(path, self._line_limit)
        return self.rollouts[path]

    def restart(self, path: str) -> Rollout:
        """Forget what was read of a file that was replaced or cut, and return it empty."""
        self.rollouts.pop(path, None)
        return self.rollout(path)

    @property
    def problems(self) -> list[Problem]:
        """What could not be read so far; bases that ``build`` did not find."""
        found = [problem for rollout in self.rollouts.values() for problem in rollout.problems]
        return found + self._missing

    def build(self) -> list[SessionDraft]:
        """Return the session; none for a thread that has no message yet."""
        there = [rollout for rollout in self.rollouts.values() if rollout.lines]
        self._missing, self.told, self.wants = [], [], set()
        if not there:
            return []
        first = min(there, key=lambda rollout: rollout.key)
        thread = thread_id_of(first.path, first)
        gone = self._neighbours.gone_segments(thread, {rollout.key for rollout in there})
        segments = sorted([*there, *gone], key=lambda rollout: rollout.key)
        self.told = told(thread, segments) + side_files.told(thread, self.facts)
        answers = self.earlier.answers if self.earlier is not None else 0
        find = self._neighbours.find
        draft, missing = session_draft(thread, segments, self.facts, find, answers)
        self.wants = {ROLLOUT + key for key in missing}
        for key in missing:
            reason = f"the session {key} that this one goes on from is not there"
            self._missing.append(Problem(there[-1].path, 1, reason))
        if draft is None:
            return []
        if self.earlier is not None:
            draft.lineage = self.earlier.lineage
            return [draft]
        lineage = draft.lineage
        if lineage is not None and lineage.kind == "subagent":
            call = self._neighbours.call_of(lineage.parent_source_id, thread)
            if call is not None:
                lineage.parent_message_source_id, lineage.tool_call_id = call
        return [draft]
