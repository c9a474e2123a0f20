"""One unit kept in memory: a session's file, its agents' files and its side files.

``SessionReader`` parses appended bytes once; ``build`` makes the drafts of all that was
read so far. A one-shot read and a live follower use it alike.
"""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Collection
from dataclasses import dataclass, field, replace
from typing import Any

from store.sources.base.drafts import LineageDraft, SessionDraft
from store.sources.base.growing import Changed, UnitReader
from store.sources.base.json_lines import LINE_LIMIT
from store.sources.base.protocol import Fact, FileStamp, Problem, Unit
from store.sources.base.titles import first_prompt, shortened
from store.sources.claude_code.agents import ROWS, RUN_MARK, agent_key, agent_source_id, helper_of
from store.sources.claude_code.assemble import ThreadBuilder, add_notes, build_thread, session_draft
from store.sources.claude_code.forks import find_origin, mark_inherited
from store.sources.claude_code.messages import Call, Thread
from store.sources.claude_code.neighbours import AGENTS, Neighbours
from store.sources.claude_code.rows import Row, mapping, string
from store.sources.claude_code.shared_facts import shared_facts, wanted_facts
from store.sources.claude_code.sidechains import calls_of_sidechains, split_sidechains
from store.sources.claude_code.sidefiles import SideFiles, is_rows
from store.sources.claude_code.titles import is_name_taken_back, title_of
from store.sources.claude_code.transcript import Transcript


class _Calls:
    """The calls of a unit's threads, and the agents and workflow runs that their results name.

    Not only the agent tools start agents: a skill may run in one, a workflow in many.
    """

    def __init__(self) -> None:
        self._added: list[tuple[str, Thread]] = []
        self._sessions: dict[int, str] = {}
        self._by_id: dict[str, Call] = {}
        self._of_agent: dict[str, Call] = {}
        self._of_run: dict[str, Call] = {}

    def add(self, session: str, thread: Thread) -> None:
        """Add a thread; most sessions have no agents, and its calls are never asked for."""
        self._added.append((session, thread))

    def _look(self) -> None:
        """Look at the calls of the threads that were added."""
        for session, thread in self._added:
            for call in thread.calls:
                self._look_at(session, call)
        self._added.clear()

    def _look_at(self, session: str, call: Call) -> None:
        self._sessions[id(call)] = session
        self._by_id.setdefault(call.id, call)
        extra = mapping(call.part.data.get("resultProviderMetadata")).get("backscroll")
        result = mapping(mapping(extra).get("structured"))
        for started, key in ((self._of_agent, "agentId"), (self._of_run, "runId")):
            name = string(result.get(key))
            if name:
                started.setdefault(name, call)

    def that_started(self, agent_id: str, run: str, call_id: str | None) -> Call | None:
        """Return the call that started an agent, or the workflow's run that it is of.

        Args:
            agent_id: The agent.
            run: Its workflow's run; empty where it is of none.
            call_id: The call's id, where the agent's meta file names it.
        """
        self._look()
        named = self._by_id.get(call_id) if call_id else None
        by_result = self._of_agent.get(agent_id) or self._of_run.get(run)
        if by_result is not None and (named is None or named.id == by_result.id):
            return by_result
        return named

    def session_of(self, call: Call) -> str:
        """Return the session that a call is in."""
        self._look()
        return self._sessions[id(call)]


@dataclass(slots=True)
class _Child:
    """A subagent's draft before its parent is known."""

    draft: SessionDraft
    agent_id: str
    call: Call | None = None
    call_id: str | None = None
    meta: dict[str, Any] = field(default_factory=dict)


@dataclass(slots=True)
class Earlier:
    """What is known of a session from what is before the place that it is read from.

    Attributes:
        created_at: When its own rows begin, where it comes from another session.
    """

    lineage: LineageDraft | None = None
    created_at: int | None = None


class SessionReader(UnitReader):
    """Reads one session and its subagents; nothing else is touched.

    Attributes:
        session_id: The file's name, which is the session's id.
        main: The session's own file; None where only agents' files are left.
        agents: The agents' files by ``agent_key``.
        side_files: Titles, agents' meta files, ``tool-results/``.
        earlier: Set where the session's file is not read from its beginning.
        path: The session's own file.
    """

    def __init__(
        self,
        session_id: str,
        path: str | None,
        neighbours: Neighbours,
        line_limit: int = LINE_LIMIT,
    ) -> None:
        """Start with nothing read.

        Args:
            session_id: The session's id.
            path: Its own file, where it has one.
            neighbours: The other files of its folder.
            line_limit: Bytes of the longest line that is read.
        """
        super().__init__()
        self.session_id = session_id
        self.main = Transcript(path, line_limit) if path is not None else None
        self.agents: dict[str, Transcript] = {}
        self.side_files = SideFiles()
        self.earlier: Earlier | None = None
        self.path = path
        self._builders: defaultdict[str, ThreadBuilder] = defaultdict(ThreadBuilder)
        self._neighbours = neighbours
        self._line_limit = line_limit
        self._sides: dict[str, FileStamp] = {}
        self._had_main: bool | None = None
        self._searches = True

    def files(self) -> Collection[Transcript]:
        """Return the files of rows."""
        return [*([self.main] if self.main is not None else ()), *self.agents.values()]

    def file(self, path: str) -> Transcript | None:
        """Return what was read of a file of rows; None for a side file."""
        return self.transcript(path) if is_rows(path) else None

    def transcript(self, path: str) -> Transcript:
        """Return what was read of one of the unit's ``.jsonl`` files, to push bytes into."""
        if self.main is not None and path == self.main.path:
            return self.main
        agent_id = agent_key(path)
        if agent_id not in self.agents:
            self.agents[agent_id] = Transcript(path, self._line_limit)
        return self.agents[agent_id]

    def side(self, stamp: FileStamp) -> FileStamp | None:
        """Read a side file where it is new or moved.

        Raises:
            Changed: It cannot be read any more; what it held before would stay.
        """
        path = stamp.path
        known = self._sides.get(path)
        if known == stamp:
            return stamp
        read = self.side_files.take(path)
        if known is not None and (not read or self.side_files.is_damaged(path)):
            raise Changed
        if not read:
            return None
        self._sides[path] = stamp
        return stamp

    def take(self, unit: Unit) -> None:
        """Read what the unit's files hold more than the last time.

        Raises:
            Changed: A side file went away, or the session's own file came or went.
        """
        paths = {stamp.path for stamp in unit.stamps}
        name = unit.key.rpartition("/")[2] + ROWS
        has_main = any(os.path.basename(path) == name for path in paths)
        if not self._sides.keys() <= paths or self._had_main not in (None, has_main):
            raise Changed
        self._had_main = has_main
        super().take(unit)

    def outline(self, unit: Unit) -> list[SessionDraft]:
        """Return the sessions as a first look tells them.

        The beginnings of all other files of the folder, which tell forks of some versions, would
        take a third of its time.
        """
        self._searches = False
        return super().outline(unit)

    def sessions(self, unit: Unit) -> list[SessionDraft]:
        """Return the session and its subagents."""
        return self.build()

    @property
    def problems(self) -> list[Problem]:
        """What could not be read so far, of all files."""
        return super().problems + self.side_files.problems

    def build(self) -> list[SessionDraft]:
        """Return the session and its subagents, the parent first.

        A file without any row gives no session, unless it has subagents. The messages
        of the last call are extended, so its drafts change: do not keep them.
        """
        calls = _Calls()
        children: list[_Child] = []
        main = self._build_main(calls, children)
        self.shared_facts += [
            Fact(AGENTS + self.session_id, agent_source_id(agent_id, self.session_id), agent_id)
            for agent_id in sorted(self.agents)
        ]
        gone = self._read_gone(calls)
        for agent_id, transcript in sorted(self.agents.items()):
            if transcript.rows:
                children.append(self._build_agent(agent_id, transcript, calls))
        for child in [*children, *gone]:
            self._link(child, calls)
        drafts = [child.draft for child in children]
        if main.messages or (drafts and self.main is not None):
            if not main.messages and drafts:
                main.created_at = min(draft.created_at for draft in drafts)
                main.updated_at = max(draft.updated_at for draft in drafts)
                main.workspace_root = main.workspace_root or drafts[0].workspace_root
            return [main, *drafts]
        return drafts

    def _build_main(self, calls: _Calls, children: list[_Child]) -> SessionDraft:
        transcript = self.main if self.main is not None else Transcript("")
        rows, chains = list(transcript.rows), dict[str, list[Row]]()
        if transcript.has_sidechains:
            rows, chains = split_sidechains(rows)
        thread = self._builders[transcript.path].build(
            rows, transcript.leaf, transcript.context_rows, transcript.times_changed
        )
        draft = session_draft(self.session_id, transcript.path, rows, thread, transcript.records)
        add_notes(draft, transcript)
        calls.add(self.session_id, thread)
        matched = calls_of_sidechains(chains, thread) if chains else {}
        for root, chain in chains.items():
            children.append(self._build_sidechain(root, chain, matched.get(root)))
        if rows or transcript.notes:
            named = self.side_files.title
            draft.title, draft.title_from = title_of(
                transcript, rows, draft.messages, named, self._neighbours, self.session_id
            )
            draft.tells_title = is_name_taken_back(transcript, named)
        if self.earlier is not None:
            folder, summaries = self._neighbours.folder, transcript.summaries
            facts = shared_facts(self.session_id, folder, rows, summaries, transcript.seldom)
            self.shared_facts = list(facts)
            draft.lineage = self.earlier.lineage
            if self.earlier.created_at is not None:
                draft.created_at = self.earlier.created_at
        else:
            self._find_origin(draft, thread, rows, transcript)
        draft.archived_at = self.side_files.archived_at
        draft.attachments += self.side_files.attachments
        return draft

    def _find_origin(
        self, draft: SessionDraft, thread: Thread, rows: list[Row], transcript: Transcript
    ) -> None:
        """Say where the session comes from, and what may tell more of that."""
        origin = find_origin(
            rows, self.session_id, self._neighbours, search=self._searches
        ) if rows else None  # fmt: skip
        lacks = origin is not None and self._neighbours.lacks(origin.parent)
        missing = origin.parent if origin is not None and lacks else None
        self.wants = set(wanted_facts(self.session_id, rows, missing))
        parent = origin.parent if origin is not None else None
        end = origin.end if origin is not None else 0
        ended = self._neighbours.that_end_in(rows, self.session_id, parent, end)
        self.looked = [FileStamp.now(path) for path in ended]
        folder = self._neighbours.folder
        self.shared_facts = list(shared_facts(self.session_id, folder, rows, transcript.summaries))
        if origin is not None:
            draft.lineage = mark_inherited(thread, rows, origin, self._neighbours)
            own = [row.at for row in rows if row.number >= origin.end]
            draft.created_at = own[0] if own else draft.updated_at

    def is_origin_settled(self) -> bool:
        """Return whether rows that are appended can no longer tell that the session is a fork."""
        assert self.main is not None
        return not self._neighbours.may_become_fork(self.main.rows, self.session_id)

    def _read_gone(self, calls: _Calls) -> list[_Child]:
        """Take the calls of threads of the session whose files are gone; return its agents.

        What is left of the session is linked to them, and they are in the library.
        """
        if self.main is None and self.agents:
            transcript = self._transcript_of_gone("", self._neighbours.content(self.session_id))
            rows, _ = split_sidechains(transcript.rows)
            calls.add(self.session_id, build_thread(rows, transcript.leaf))
        found: list[_Child] = []
        gone = self._neighbours.gone_agents(self.session_id, self.agents.keys())
        for agent_id, content in gone.items():
            if content:
                path = f"{agent_source_id(agent_id, self.session_id)}, gone"
                self._builders.pop(path, None)
                transcript = self._transcript_of_gone(path, content)
                found.append(self._build_agent(agent_id, transcript, calls))
        return found

    def _transcript_of_gone(self, path: str, content: bytes) -> Transcript:
        transcript = Transcript(path, self._line_limit)
        transcript.push(content)
        transcript.finish()
        return transcript

    def _build_sidechain(self, root: str, rows: list[Row], call: Call | None) -> _Child:
        """Build a subagent of an old version from its rows in the session's file."""
        assert self.main is not None
        numbers = {row.number: index for index, row in enumerate(rows)}
        own = [self.main.records[row.number] for row in rows]
        moved = [replace(row, number=numbers[row.number]) for row in rows]
        thread = build_thread(moved, None)
        draft = session_draft(
            f"sidechain-{root}:{self.session_id}", self.main.path, moved, thread, own
        )
        draft.title, draft.title_from = first_prompt(thread.messages), "first-prompt"
        return _Child(draft, root, call)

    def _build_agent(self, agent_id: str, transcript: Transcript, calls: _Calls) -> _Child:
        meta = self.side_files.meta.get(agent_id, {})
        thread = self._builders[transcript.path].build(
            transcript.rows, transcript.leaf, changed=transcript.times_changed
        )
        source_id = agent_source_id(agent_id, self.session_id)
        draft = session_draft(
            source_id, transcript.path, transcript.rows, thread, transcript.records
        )
        add_notes(draft, transcript)
        calls.add(source_id, thread)
        draft.title, draft.title_from = first_prompt(thread.messages), "first-prompt"
        if draft.title == "Warmup":
            draft.metadata["backscroll"]["warmup"] = True
        description = string(meta.get("description"))
        if description:
            draft.title, draft.title_from = shortened(description), "description"
        return _Child(draft, agent_id, None, string(meta.get("toolUseId")), meta)

    def _link(self, child: _Child, calls: _Calls) -> None:
        """Link a subagent to the call that started it, both ways."""
        agent_id, _, run = child.agent_id.partition(RUN_MARK)
        call = child.call or calls.that_started(agent_id, run, child.call_id)
        draft = child.draft
        call_id = call.id if call is not None else child.call_id
        draft.lineage = LineageDraft("subagent", self.session_id, None, call_id)
        extra = draft.metadata["backscroll"]
        agent_type = string(child.meta.get("agentType"))
        if call is not None and calls.session_of(call) != draft.source_id:
            draft.lineage.parent_source_id = calls.session_of(call)
            draft.lineage.parent_message_source_id = call.message.source_id
            data = call.part.data
            result = data.setdefault("resultProviderMetadata", {})
            result.setdefault("backscroll", {}).setdefault(
                "child_session_source_id", draft.source_id
            )
            given = mapping(data.get("input"))
            agent_type = agent_type or string(given.get("subagent_type"))
            if draft.title_from == "first-prompt" and string(given.get("description")):
                draft.title, draft.title_from = shortened(given["description"]), "description"
        extra["agent_id"] = agent_id
        helper = helper_of(agent_id)
        if helper is not None:
            extra["helper"] = helper
        if run:
            extra["workflow_run"] = run
        if agent_type:
            extra["agent_type"] = agent_type
            for message in draft.messages:
                if message.role == "assistant":
                    message.metadata["agent"] = agent_type
        for name, key in (("spawn_depth", "spawnDepth"), ("request_shape", "requestShape")):
            if key in child.meta:
                extra[name] = child.meta[key]

