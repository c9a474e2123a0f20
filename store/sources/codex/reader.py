"""One unit kept in memory: a thread's files; appended bytes are parsed once."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass

from store.sources.base.drafts import LineageDraft, SessionDraft
from store.sources.base.growing import UnitReader
from store.sources.base.json_lines import LINE_LIMIT
from store.sources.base.prompt_history import inherited_prompts
from store.sources.base.protocol import FileStamp, Problem, Unit
from store.sources.codex import facts as side_files
from store.sources.codex.assemble import session_draft, thread_id_of
from store.sources.codex.facts import STAMP, Facts
from store.sources.codex.neighbours import ROLLOUT, Neighbours, base_fact, shared_facts
from store.sources.codex.rollout import Rollout, rollout_file


@dataclass(slots=True)
class Earlier:
    """What is known of a thread from what is before the place that it is read from.

    Attributes:
        answers: How many answers there were, less those of the context.
    """

    lineage: LineageDraft | None = None
    answers: int = 0


class ThreadReader(UnitReader):
    """Reads one thread.

    Attributes:
        facts: What side files say about it.
        rollouts: Its files by path.
        earlier: Set where the thread's file is not read from its beginning.
    """

    def __init__(
        self,
        neighbours: Neighbours,
        facts_of: Callable[[Unit], Facts | None],
        line_limit: int = LINE_LIMIT,
        *,
        is_copy: bool = False,
    ) -> None:
        """Start with nothing read.

        Args:
            neighbours: The other files of the same home.
            facts_of: Returns what side files say about a thread now.
            line_limit: Bytes of the longest line that is read.
            is_copy: Whether one of its files is a copy. The library has the thread's lines
                from the other one, so that the copy says nothing about them to others.
        """
        super().__init__()
        self._is_copy = is_copy
        self.facts: Facts | None = None
        self.rollouts: dict[str, Rollout] = {}
        self._neighbours = neighbours
        self._facts_of = facts_of
        self.line_limit = line_limit
        self._missing: list[Problem] = []
        self.earlier: Earlier | None = None

    def files(self) -> Collection[Rollout]:
        """Return the thread's files."""
        return self.rollouts.values()

    def file(self, path: str) -> Rollout | None:
        """Return what was read of one of the thread's files; None for the stamp of its facts."""
        if path.endswith(STAMP):
            return None
        if path not in self.rollouts:
            self.rollouts[path] = rollout_file(path, self.line_limit)
        return self.rollouts[path]

    def side(self, stamp: FileStamp) -> FileStamp | None:
        """Return the stamp of its facts, which are read with those of all threads."""
        return stamp

    def sessions(self, unit: Unit) -> list[SessionDraft]:
        """Return the thread, with what side files say about it now."""
        self.facts = self._facts_of(unit)
        return self.build()

    @property
    def problems(self) -> list[Problem]:
        """What could not be read so far; bases that ``build`` did not find."""
        return super().problems + self._missing

    def build(self) -> list[SessionDraft]:
        """Return the session; none for a thread that has no message yet."""
        there = [rollout for rollout in self.rollouts.values() if rollout.lines]
        self._missing, self.shared_facts, self.wants, self.looked = [], [], set(), []
        if not there:
            return []
        first = min(there, key=lambda rollout: rollout.key)
        thread = thread_id_of(first.path, first)
        gone = self._neighbours.gone_segments(thread, {rollout.key for rollout in there})
        segments = sorted([*there, *gone], key=lambda rollout: rollout.key)
        self.shared_facts = shared_facts(thread, segments)
        self.shared_facts += side_files.shared_facts(thread, self.facts)
        answers = self.earlier.answers if self.earlier is not None else 0
        draft, history = session_draft(
            thread, segments, self.facts, self._neighbours.find, self._neighbours.base, answers
        )
        self.wants = {ROLLOUT + key for key in history.missing}
        self.looked = [FileStamp.now(path) for path in history.ended]
        self.shared_facts += [base_fact(thread, *each) for each in history.passed.items()]
        for key in history.missing:
            reason = f"the session {key} that this one goes on from is not there"
            self._missing.append(Problem(there[-1].path, 1, reason))
        if draft is None:
            return []
        if self._is_copy:
            self.shared_facts = []
        if self.earlier is not None:
            draft.lineage = self.earlier.lineage
            return [draft]
        lineage = draft.lineage
        if lineage is not None and lineage.kind == "fork":
            self.shared_facts += inherited_prompts(lineage.parent_source_id, draft)
        if lineage is not None and lineage.kind == "subagent":
            call = self._neighbours.call_of(lineage.parent_source_id, thread)
            if call is not None:
                lineage.parent_message_source_id, lineage.tool_call_id = call
        return [draft]
