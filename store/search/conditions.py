"""What a query asks of a message, a part and a title; the rest of it is asked of sessions."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from store.conversation.outcomes import outcome_of
from store.conversation.touched import SHELLS, is_absolute, plain_name, resolved, touched
from store.language.matching import TermMatcher, fold
from store.language.query import Condition, Filter, Query
from store.language.values import value_test
from store.rows import is_tool_type
from store.search.text import PLACES, Where, tool_of
from store.text.stored_json import as_dict

NOTES: Mapping[str, str] = {"task": "task_id", "channel": "channel"}
"""Fields of what a source notes of a message, and their keys in ``metadata_json.backscroll``."""


@dataclass(frozen=True, slots=True)
class Conditions:
    """A query, ready to be tested.

    Attributes:
        terms: Those that must match.
        unwanted: Those that must not.
        places: Where words may match.
        hidden: Whether hidden messages are searched, and no others.
        after: The earliest time of a hit, epoch ms.
        before: The time that a hit is earlier than, epoch ms.
        sessions: The query with only what is asked of sessions.
        roles: Conditions on roles.
        notes: Conditions on what sources note of messages: their task, their channel.
        tools: Conditions on names of tools.
        calls: Conditions on calls: files and states.
    """

    terms: tuple[TermMatcher, ...]
    unwanted: tuple[TermMatcher, ...]
    places: frozenset[Where]
    hidden: bool
    after: int
    before: int
    sessions: Query
    roles: tuple[Condition, ...]
    notes: tuple[Condition, ...]
    tools: tuple[Condition, ...]
    calls: tuple[Condition, ...]

    @property
    def titles(self) -> bool:
        """Whether titles are searched."""
        of_parts = self.roles or self.notes or self.tools or self.calls or self.hidden
        return not of_parts and "title" in self.places

    @property
    def parts(self) -> bool:
        """Whether parts are searched; a search by filters of sessions alone finds sessions."""
        asked = (self.terms or self.roles or self.notes or self.tools or self.calls
                 or self.hidden)
        return bool(asked or self.limited) and self.places != {"title"}

    @property
    def limited(self) -> bool:
        """Whether only some places are searched."""
        return len(self.places) < len(PLACES)

    @property
    def of_messages(self) -> bool:
        """Whether something is asked of messages beside their texts, so that not all fit."""
        timed = self.after > -(2**63) or self.before < 2**63
        return bool(self.roles or self.notes or self.hidden or timed)

    def in_time(self, at: int) -> bool:
        """Return whether a hit of this time is wanted."""
        return self.after <= at < self.before

    def role_fits(self, role: str) -> bool:
        """Return whether parts of messages of this role are wanted."""
        return all(_holds(each, partial(_is, role)) for each in self.roles)

    def notes_fit(self, metadata: Mapping[str, Any]) -> bool:
        """Return whether parts of a message with this metadata are wanted."""
        return all(_holds(each, partial(_is_noted, metadata)) for each in self.notes)

    def tool_fits(self, kind: str, data: Mapping[str, Any] | None = None) -> bool:
        """Return whether a part is wanted by its tool.

        Args:
            kind: The row's ``type``.
            data: The decoded part; without it, a part that may be wanted is.
        """
        if not self.tools:
            return True
        if not is_tool_type(kind):
            return all(each.negated for each in self.tools)
        name = tool_of(data if data is not None else {"type": kind})
        if kind == "dynamic-tool" and data is None:
            return True
        return all(_holds(each, lambda one: _names(name or "", one)) for each in self.tools)

    def kind_fits(self, kind: str) -> bool:
        """Return whether parts of this type may be wanted, as far as the type tells."""
        if any(not each.negated for each in self.calls) and not (
            is_tool_type(kind) or kind in ("data-error", "data-event")
        ):
            return False
        return self.tool_fits(kind)

    def call_fits(self, data: Mapping[str, Any], workspace: str | None) -> bool:
        """Return whether a part is wanted by its state and the files that it touched.

        Args:
            data: The decoded part.
            workspace: The folder of the session.
        """
        return all(_holds(each, lambda one: _call_test(data, workspace, one))
                   for each in self.calls)


def conditions_of(query: Query) -> Conditions:
    """Return what a query asks, ready to be tested."""
    by_field: dict[str, list[Condition]] = {}
    for condition in query.conditions:
        by_field.setdefault(condition.field, []).append(condition)
    states = [each for each in by_field.get("is", ()) if each.level == "part"]
    hidden = any(not each.negated and all(one.value == "hidden" for one in each.filters)
                 for each in states)
    calls = [each for each in states if any(one.value != "hidden" for one in each.filters)]
    moved = {id(one) for field in ("role", "tool", "file", "in", "after", "before", *NOTES)
             for each in by_field.get(field, ()) for one in each.filters}
    moved |= {id(one) for each in states for one in each.filters}
    places = {place for place in PLACES if all(
        _holds(each, partial(_is, place)) for each in by_field.get("in", ())
    )}
    times = {name: [float(one.value) for each in by_field.get(name, ()) for one in each.filters]
             for name in ("after", "before")}
    return Conditions(
        terms=tuple(TermMatcher(each) for each in query.terms if not each.negated),
        unwanted=tuple(TermMatcher(each) for each in query.terms if each.negated),
        places=frozenset(places),
        hidden=hidden,
        after=int(max(times["after"], default=-(2**63))),
        before=int(min(times["before"], default=2**63)),
        sessions=replace(query, terms=(), filters=tuple(
            one for one in query.filters if id(one) not in moved)),
        roles=tuple(by_field.get("role", ())),
        notes=tuple(each for field in NOTES for each in by_field.get(field, ())),
        tools=tuple(by_field.get("tool", ())),
        calls=(*by_field.get("file", ()), *calls),
    )


def _is_noted(metadata: Mapping[str, Any], wanted: Filter) -> bool:
    value = as_dict(metadata.get("backscroll")).get(NOTES[wanted.field])
    return isinstance(value, str) and (
        value_test(wanted.field, wanted.operator, str(wanted.value))(value))


def _is(value: str, wanted: Filter) -> bool:
    return wanted.value == value


def file_needles(conditions: Conditions, workspaces: Iterable[str]) -> list[str]:
    """Return names of files that each hit has in its text, as ``file:`` asks for them.

    Args:
        conditions: What a query asks.
        workspaces: The folders of all sessions; a name in one of them may be in no text, as
            paths are compared whole.
    """
    found = []
    for condition in conditions.calls:
        if condition.field == "file" and not condition.negated and len(condition.filters) == 1:
            path = str(condition.filters[0].value).replace("\\", "/").rstrip("/")
            name = path.rpartition("/")[2].strip()
            if name not in ("", ".", "..", "~") and not set("*?") & set(name):
                found.append(name)
    folders = [fold(folder) for folder in workspaces] if found else []
    return [name for name in found if not any(fold(name) in folder for folder in folders)]


def _holds(condition: Condition, test: Callable[[Filter], bool]) -> bool:
    return any(map(test, condition.filters)) is not condition.negated


def _names(tool: str, wanted: Filter) -> bool:
    """Return whether a tool is meant: a word of its name begins with the value.

    The name of a shell means the shells of all agents, which have other names for it.
    """
    value = str(wanted.value)
    if wanted.operator == ":" and plain_name(value) in SHELLS and plain_name(tool) in SHELLS:
        return True
    return value_test("tool", wanted.operator, value)(tool)


def _call_test(data: Mapping[str, Any], workspace: str | None, wanted: Filter) -> bool:
    if wanted.field == "file":
        return any(_is_file(path, wanted) for path in files_of(data, workspace))
    if wanted.value == "error" and data.get("type") == "data-error":
        return True
    kind = data.get("type")
    if not isinstance(kind, str) or not is_tool_type(kind):
        return False
    return outcome_of(data).status == {"error": "failed"}.get(str(wanted.value), wanted.value)


def files_of(data: Mapping[str, Any], workspace: str | None) -> Iterator[str]:
    """Yield the files that a part read, wrote or edited, as whole paths where that is known.

    Args:
        data: The decoded part.
        workspace: The folder of the session.
    """
    found = touched(data)
    if found is None:
        return
    # Only a folder that the call itself names is in the text that the index knows.
    given = data.get("input")
    named = isinstance(given, Mapping) and found.folder in given.values()
    for file in found.files:
        if file.kind != "search":
            for path in filter(None, (file.path, file.moved_to)):
                yield resolved(path, found.folder if named else "", workspace)


def _is_file(path: str, wanted: Filter) -> bool:
    """Return whether a path is the file that is looked for, or is in that folder."""
    value = str(wanted.value).removeprefix("./")
    value = resolved(value) + "/" * value.endswith("/") if is_absolute(value) else value
    return value_test("file", wanted.operator, value)(path)
