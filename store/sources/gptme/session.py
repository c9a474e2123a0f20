"""The files of a conversation's folder to its session: history, what was taken back, forks.

Source: the gptme format page, section "Branches, undo, fork, compaction". A fork is a copy of the
folder under another name; the command that made it is in the events of both.
"""

from __future__ import annotations

import json
import os
import re
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from store.sources.base.databases import record_bytes
from store.sources.base.drafts import LineageDraft, SessionDraft
from store.sources.base.growing import LINES, Depends, GrowingFile, entries_of
from store.sources.base.json_lines import Record, read_head, records_of
from store.sources.base.protocol import Fact, FileStamp, Library, NoLibrary, Problem
from store.sources.base.titles import FIRST_PROMPT, first_prompt, shortened
from store.sources.base.values import iso_ms, mapping, named_model, string
from store.sources.gptme.conversation import Line, Talk, lines_of
from store.system.paths import expanded, open_regular, read_regular

KIND = "gptme"
MAIN, LOSSLESS, EVENTS = f"conversation{LINES}", f"lossless{LINES}", f"events{LINES}"
CONFIG, BRANCHES, STORED = "config.toml", "branches", "files"
_EVENTS_OF, _FORKED = "events-of:", "forked-to:"
"""Begin the facts of what a conversation's events tell, for itself and for its forks."""
_BEGINS = "begins:"
"""Begins the fact of which prompt a conversation without events begins with."""
_HEAD = 256 * 1024
"""How far into a file its first message is looked for."""
_DATED = re.compile(r"\d{4}-\d\d-\d\d-")
"""Begins the names that the program makes; a fork has the name that a person gave it."""
_SUBAGENT = "-subagent-"
_FORK = "/fork "
_NO_LIBRARY = NoLibrary()
_QUARTER_S, _LARGEST_ZONE_S, _APART_S = 900, 14 * 3600, 120


class Folder(NamedTuple):
    """The files of a conversation.

    Attributes:
        path: The folder.
        main: What the model sees.
        lossless: All that was said, where that was compacted.
        branches: What was copied before something was taken back, by name.
        events: What happened; empty without the file.
        chat: The settings of the conversation; of no other table.
        stored: Copies of files, by the beginning of their names.
        beginnings: What the conversations beside it begin with.
    """

    path: str
    main: GrowingFile
    lossless: GrowingFile | None
    branches: Mapping[str, GrowingFile]
    events: list[Record]
    chat: dict[str, Any]
    stored: Mapping[str, bytes]
    beginnings: Beginnings


@dataclass(frozen=True, slots=True)
class Happened:
    """What a conversation's events tell.

    Attributes:
        zone: The zone of the lines' times, in seconds; None where it is not known.
        forks: The names that it was forked to, each with the number of the event.
    """

    zone: int | None = None
    forks: Mapping[str, int] = field(default_factory=dict)


def chat_of(body: bytes | None, path: str, problems: list[Problem]) -> dict[str, Any]:
    """Return the ``[chat]`` table of a conversation's settings; keys of others are left alone.

    Args:
        body: The file; None where there is none.
        path: Its path, for problems.
        problems: Takes what is wrong with it.
    """
    if body is None:
        return {}
    try:
        return mapping(tomllib.loads(body.decode("utf-8", "replace")).get("chat"))
    except (tomllib.TOMLDecodeError, RecursionError):
        # The reason would quote the file, which may hold keys.
        problems.append(Problem(path, 0, "no TOML"))
        return {}


def session_draft(folder: Folder, library: Library, depends: Depends) -> SessionDraft | None:
    """Return the session of a folder; None where nothing was said in it.

    Args:
        folder: Its files.
        library: Has the conversations whose files are gone.
        depends: Takes what it tells others, and would want to know of them.
    """
    name = os.path.basename(folder.path)
    happened = _happened(name, folder.events, library, depends)
    records = list(folder.main.records)
    main = lines_of(folder.main.lines, happened.zone)
    if main and main[-1].is_command:
        # It is taken away again at once, and the command done.
        main.pop()
    history, summaries, forgotten = main, frozenset[str](), frozenset[str]()
    if folder.lossless is not None and folder.lossless.lines:
        whole = lines_of(folder.lossless.lines, happened.zone, len(records))
        records += folder.lossless.records
        forgotten = _keys(whole) - _keys(main)
        history, summaries = _whole(whole, main)
    for branch in folder.branches.values():
        lines = lines_of(branch.lines, happened.zone, len(records))
        records += branch.records
        history = _with_branch(history, lines)
    talk = Talk(folder.stored, {digest: nth for nth, digest in enumerate(
        folder.stored, len(records))})  # fmt: skip
    records += [record_bytes({"file": digest}) for digest in folder.stored]
    talk.take(history, forgotten, summaries)
    if not any(one.role != "system" for one in talk.found):
        return None
    times = [line.at for line in history if line.at and not line.is_quiet]
    draft = SessionDraft(
        name, os.path.join(folder.path, MAIN), KIND, min(times, default=0), max(times, default=0),
        workspace_root=_workspace(folder), messages=talk.found, records=records,
        tells_title=bool(folder.chat),
    )  # fmt: skip
    title = string(folder.chat.get("name"))
    draft.title = shortened(title) if title else first_prompt(draft.messages)
    draft.title_from = "name" if title else FIRST_PROMPT if draft.title else None
    models = [one.metadata["model"] for one in draft.messages if "model" in one.metadata]
    draft.model = models[-1] if models else named_model(folder.chat.get("model"))
    extra = {key: folder.chat[key] for key in ("workspace", "tool_format")
             if string(folder.chat.get(key))}  # fmt: skip
    draft.metadata["backscroll"] = extra
    activity = _activity(draft, main)
    if activity is not None:
        draft.metadata["activity"] = activity
    _link(draft, folder, happened, library, depends)
    return draft


def _activity(draft: SessionDraft, main: list[Line]) -> dict[str, Any] | None:
    """Return what the end of the conversation says; an answer is written when it is whole."""
    said = [line for line in main if not line.is_quiet]
    if not said:
        return None
    last, since = said[-1], draft.updated_at
    shown = next((one for one in reversed(draft.messages) if "hidden_at" not in one.metadata
                  and one.role != "system"), None)  # fmt: skip
    if shown is not None and "aborted_at" in shown.metadata.get("backscroll", {}):
        return {"state": "interrupted", "from": "stored", "since": since}
    if last.data.get("role") == "assistant":
        return None
    return {"state": "running", "from": "guessed", "since": since}


def _keys(lines: list[Line]) -> frozenset[str]:
    return frozenset(line.key for line in lines)


def _whole(whole: list[Line], main: list[Line]) -> tuple[list[Line], frozenset[str]]:
    """Return the history of a compacted conversation, and which of its lines are summaries.

    Args:
        whole: The history that was kept.
        main: What the model sees: first the summary, then what it kept, then what came since.
    """
    known = _keys(whole)
    said = [line for line in main if not line.is_quiet]
    kept = next((place for place, line in enumerate(said) if line.key in known), min(1, len(said)))
    summaries = [line for line in said[:kept] if line.key not in known]
    away = _keys(summaries)
    since = [line for line in main if line.key not in known | away]
    at = summaries[0].at if summaries else 0
    place = max((nth for nth, line in enumerate(whole, 1) if line.at <= at), default=len(whole))
    return [*whole[:place], *summaries, *whole[place:], *since], away


def _with_branch(history: list[Line], branch: list[Line]) -> list[Line]:
    """Return the history with those lines of a branch that are not on it, as taken back.

    Args:
        history: The lines so far.
        branch: The lines as they were before some were taken back.
    """
    known = {line.key: place for place, line in enumerate(history)}
    before, left = -1, dict[int, list[Line]]()
    for line in branch:
        if line.key in known:
            before = max(before, known[line.key])
        elif not line.is_quiet:
            left.setdefault(before, []).append(line)
    found: list[Line] = []
    for place in range(-1, len(history)):
        found += [history[place]] if place >= 0 else []
        lines = left.get(place, [])
        went_on = next((line.at for line in history[place + 1 :] if not line.hidden_at), 0)
        at = max(went_on, max((line.at for line in lines), default=0) + (not went_on), 1)
        found += [line._replace(hidden_at=at) for line in lines]
    return found


def _happened(
    name: str, events: list[Record], library: Library, depends: Depends
) -> Happened:
    """Return what events tell, or told when they were there."""
    if not events:
        told = [json.loads(fact.value) for fact in library.facts(_EVENTS_OF + name)]
        return Happened(*told[0]) if told else Happened()
    zone: int | None = None
    forks: dict[str, int] = {}
    for nth, event in enumerate(events):
        message = mapping(mapping(event.data.get("payload")).get("message"))
        if zone is None:
            zone = _zone(message.get("timestamp"), event.data.get("ts"))
        content = message.get("content")
        if isinstance(content, str) and content.startswith(_FORK):
            target = content.removeprefix(_FORK).strip()
            sequence = event.data.get("seq")
            forks.setdefault(target, sequence if type(sequence) is int else nth)
    depends.facts.append(Fact(_EVENTS_OF + name, name, json.dumps([zone, forks])))
    own = forks.get(name)
    depends.facts += [Fact(_FORKED + target, name, json.dumps([at, own]))
                      for target, at in forks.items() if target != name]  # fmt: skip
    return Happened(zone, forks)


def _zone(local: object, stamp: object) -> int | None:
    """Return the zone of a line's time by the event that wrote it, in seconds."""
    if not isinstance(local, str) or not isinstance(stamp, str):
        return None
    here, there = iso_ms(local, utc=True), iso_ms(stamp, utc=True)
    if here is None or there is None:
        return None
    apart = (here - there) / 1000
    zone = round(apart / _QUARTER_S) * _QUARTER_S
    return zone if abs(zone) <= _LARGEST_ZONE_S and abs(apart - zone) <= _APART_S else None


def _workspace(folder: Folder) -> str | None:
    """Return the project's folder: where the link leads, which is never followed."""
    try:
        target = os.readlink(os.path.join(folder.path, "workspace"))
        if os.path.isabs(target):
            return target
    except OSError:
        pass
    said = string(folder.chat.get("workspace"))
    return str(expanded(said)) if said is not None and said.startswith(("/", "~")) else said


def _link(
    draft: SessionDraft, folder: Folder, happened: Happened, library: Library, depends: Depends
) -> None:
    """Say what the conversation was forked from; those that it shares are copies."""
    name, above = draft.source_id, os.path.dirname(folder.path)
    parent, sign, _ = name.partition(_SUBAGENT)
    if sign and parent:
        path = os.path.join(above, parent, MAIN)
        depends.looked.append(FileStamp.now(path))
        if os.path.isfile(path):
            draft.lineage = LineageDraft("subagent", parent)
            return
    if name in happened.forks:
        depends.wants.add(_FORKED + name)
        found = _forked_from(name, above, library, depends)
        theirs = _ids_of(found, above, happened.zone, library, depends) if found else frozenset()
    elif folder.events:
        return
    else:
        found, theirs = _begun_alike(draft, folder, library, depends)
    if found is None:
        return
    copied = [one for one in draft.messages if one.source_id in theirs]
    for message in copied:
        message.inherited_from = message.source_id
    shown = [one.source_id for one in copied if "hidden_at" not in one.metadata]
    draft.lineage = LineageDraft("fork", found, shown[-1] if shown else None)


def _begun_alike(
    draft: SessionDraft, folder: Folder, library: Library, depends: Depends
) -> tuple[str | None, frozenset[str]]:
    """Return the conversation that one without events is a copy of, and its messages' ids.

    Its first messages are the same; it ended where this one went on, or the program named it.

    Args:
        draft: The conversation.
        folder: Its files.
        library: Knows how those began whose files are gone.
        depends: Takes how this one does, and what it would want to know.
    """
    name, above = draft.source_id, os.path.dirname(folder.path)
    ids = [one.source_id for one in draft.messages
           if one.role != "system" and "hidden_at" not in one.metadata]  # fmt: skip
    if not ids:
        return None, frozenset()
    fact = _BEGINS + ids[0]
    depends.facts.append(Fact(fact, name, json.dumps([len(ids), ids[-1]])))
    depends.wants.add(fact)
    told = {one.session: json.loads(one.value) for one in library.facts(fact)}
    told.pop(name, None)
    for other in folder.beginnings.alike(above, ids[0], name):
        said = _said_in(os.path.join(above, other, MAIN), depends)
        told |= {other: [len(said), said[-1]]} if said else {}
    others = sorted((count, last, other) for other, (count, last) in told.items())
    ended = [other for _, last, other in others if last in ids[:-1]]
    if ended:
        return ended[-1], _ids_of(ended[-1], above, None, library, depends)
    for _, last, other in others:
        if _DATED.match(other) and not _DATED.match(name):
            theirs = _ids_of(other, above, None, library, depends)
            if ids[-1] == last or ids[-1] not in theirs:
                return other, theirs
    return None, frozenset()


class Beginnings:
    """Which message each conversation begins with; read once while none comes or goes."""

    def __init__(self) -> None:
        """Start with none read."""
        self._folders: dict[str, tuple[FileStamp, dict[str, str | None]]] = {}

    def alike(self, above: str, first: str, name: str) -> list[str]:
        """Return the names of other conversations that begin with a message.

        Args:
            above: The folder of all conversations.
            first: The message's id.
            name: The conversation that they are other than.
        """
        stamp = FileStamp.now(above)
        known = self._folders.get(above)
        if known is None or known[0] != stamp:
            before = known[1] if known is not None else {}
            known = stamp, {entry.name: before.get(entry.name) for entry in entries_of(above)}
            self._folders[above] = known
        found = known[1]
        for each in [other for other, told in found.items() if told is None and other != name]:
            found[each] = _first_in(os.path.join(above, each, MAIN))
        found[name] = first
        return [other for other, told in found.items() if told == first and other != name]


def _first_in(path: str) -> str | None:
    """Return which message a conversation begins with; None where it is not there, or empty."""
    try:
        with open_regular(path) as file:
            said = _said(records_of(read_head(file, _HEAD)))
    except OSError:
        return None
    return said[0] if said else None


def _said_in(path: str, depends: Depends) -> list[str]:
    depends.looked.append(FileStamp.now(path))
    try:
        return _said(records_of(read_regular(path)))
    except OSError:
        return []


def _said(records: Iterable[dict[str, Any]]) -> list[str]:
    """Return the ids of what a person and the model said."""
    lines = lines_of([Record(nth, nth, data) for nth, data in enumerate(records)], None)
    return [line.key for line in lines if line.data.get("role") in ("user", "assistant")]


def _forked_from(name: str, above: str, library: Library, depends: Depends) -> str | None:
    """Return the conversation that has the fork's command, and was not forked after it itself."""
    depends.looked.append(FileStamp.now(above))
    told = {fact.session: json.loads(fact.value) for fact in library.facts(_FORKED + name)}
    for entry in entries_of(above):
        path = os.path.join(entry.path, EVENTS)
        if entry.name == name or entry.is_symlink() or not os.path.isfile(path):
            continue
        depends.looked.append(FileStamp.now(path))
        forks = _forks_in(path)
        if name in forks:
            told[entry.name] = [forks[name], forks.get(entry.name)]
    fits = sorted((at, other) for other, (at, own) in told.items()
                  if other != name and (own is None or own < at))  # fmt: skip
    return fits[0][1] if fits else None


def _forks_in(path: str) -> dict[str, int]:
    """Return the forks that a conversation's events tell, read line by line where they may be."""
    try:
        body = read_regular(path)
    except OSError:
        return {}
    lines = b"\n".join(line for line in body.split(b"\n") if _FORK.encode() in line)
    nothing = Depends()
    records = [Record(nth, nth, data) for nth, data in enumerate(records_of(lines))]
    return dict(_happened("", records, _NO_LIBRARY, nothing).forks)


def _ids_of(
    name: str, above: str, zone: int | None, library: Library, depends: Depends
) -> frozenset[str]:
    """Return the ids of a conversation's messages."""
    branches = os.path.join(above, name, BRANCHES)
    depends.looked.append(FileStamp.now(branches))
    paths = [os.path.join(above, name, MAIN), os.path.join(above, name, LOSSLESS), *(
        entry.path for entry in entries_of(branches) if entry.name.endswith(LINES))]
    # Of what is gone, the library knows the messages.
    found = {one.name for one in library.messages(name)}
    for each in paths:
        depends.looked.append(FileStamp.now(each))
        try:
            data = records_of(read_regular(each))
        except OSError:
            continue
        records = [Record(nth, nth, one) for nth, one in enumerate(data)]
        found |= _keys(lines_of(records, zone))
    return frozenset(found)
