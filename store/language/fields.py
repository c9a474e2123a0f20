"""The fields of the query language, each declared once."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Kind = Literal["name", "text", "choice", "date", "number"]
"""What a field's value is.

A ``name`` fits where a word of it begins with the value, a ``text`` where the value is
anywhere in it, a ``choice`` is one of the field's own values.
"""
Level = Literal["session", "part"]
"""What a field is about: a session as a whole, or a part of it such as one tool call."""


@dataclass(frozen=True, slots=True)
class Field:
    """A field, such as ``agent:``.

    Attributes:
        name: As it is written before the colon.
        kind: What its value is.
        help: What it selects, in a few words.
        example: A query with it.
        level: Whether it is about sessions or about parts.
        choices: The values of a ``choice``, each with its meaning; for other kinds, suggestions.
        aliases: Other names of it.
        every: Whether the field given twice asks for both values; else either is enough.
    """

    name: str
    kind: Kind
    help: str
    example: str
    level: Level = "session"
    choices: tuple[tuple[str, str], ...] = ()
    aliases: tuple[str, ...] = ()
    every: bool = False


_DATES = (
    ("today", "since midnight"), ("yesterday", "the day before"), ("3d", "three days ago"),
    ("2w", "two weeks ago"), ("this week", "since Monday"), ("last week", "the week before"),
    ("this month", "since the first"), ("last month", "the month before"),
    ("2026-11-01", "a day"), ("2026-11", "a month"),
)  # fmt: skip

_FIELDS = (
    Field("agent", "name", "The agent, by its name", "agent:codex"),
    Field("source", "name", "The kind of source that the session was read from", "source:gemini"),
    Field("model", "text", "The model of the session", "model:opus"),
    Field("workspace", "text", "The folder of the session; ~ is your home folder",
          "workspace:~/code/api", aliases=("folder", "dir")),
    Field("branch", "text", "The git branch", "branch:main"),
    Field("project", "text", "The project, where the agent has projects", "project:harbour"),
    Field("account", "text", "The account, where the agent has accounts", "account:ada"),
    Field("owner", "name", "Whose session it is, in a store that several people share",
          "owner:ada"),
    Field("role", "choice", "Who sent the message", "role:user", level="part", choices=(
        ("user", "what was sent to the agent"), ("assistant", "what the agent sent"),
        ("system", "instructions"),
    )),
    Field("tool", "name", "The tool of a call", "tool:bash", level="part"),
    Field("title", "text", "The title of the session", 'title:"retry loop"', every=True),
    Field("file", "text", "A file that a call read, wrote or edited", "file:src/*.py",
          level="part", aliases=("path",)),
    Field("task", "text", "The task that a message belongs to, where its agent has tasks",
          "task:task_17", level="part"),
    Field("channel", "text", "The channel that a message was sent through", "channel:review",
          level="part"),
    Field("status", "name", "The status that the agent itself gives the session, or a task of it",
          "status:failed"),
    Field("tag", "name", "A tag of the session", "tag:work", every=True),
    Field("label", "text", "The text of a label in the session", "label:todo", every=True),
    Field("id", "text", "The id of a session, a message or a source's session, or its beginning",
          "id:ses_0199"),
    Field("after", "date", "At this time or later", "after:2026-11-01", choices=_DATES,
          aliases=("since",), every=True),
    Field("before", "date", "Earlier than this time", 'before:"last week"', choices=_DATES,
          aliases=("until",), every=True),
    Field("cost", "number", "The cost in US dollars", "cost:>0.5", every=True, choices=(
        (">1", "more than one dollar"), ("<0.1", "less than ten cents"),
    )),
    Field("tokens", "number", "The tokens of the session", "tokens:>=10k", every=True, choices=(
        (">100k", "more than 100,000"), (">1M", "more than a million"), ("<10k", "fewer"),
    )),
    Field("is", "choice", "A state", "is:running", every=True, choices=(
        ("error", "a call that failed; in the list, a session that ended in an error"),
        ("denied", "a call that the user refused"),
        ("running", "a session whose agent is working"),
        ("waiting", "a session that waits for approval or input"),
        ("archived", "an archived session"),
        ("starred", "a session with a star"),
        ("fork", "a fork of another session"),
        ("subagent", "a session that another one started"),
        ("hidden", "what a rewind has hidden"),
        ("waiting-approval", "a session that waits for approval"),
        ("waiting-input", "a session that waits for an answer"),
        ("queued", "a session with a queued prompt"),
        ("retrying", "a session that tries a request again"),
        ("interrupted", "a session that was interrupted"),
        ("ended", "a session that was ended"),
        ("idle", "a session that does nothing now"),
        ("unknown", "a session whose state is not known"),
    )),
    Field("in", "choice", "Where the words are looked for", "in:prompt", level="part", choices=(
        ("prompt", "what a person typed"), ("text", "what the agent answered"),
        ("reasoning", "what the agent thought"), ("input", "what a tool was given"),
        ("output", "what a tool returned"), ("title", "titles of sessions"),
    )),
)  # fmt: skip

FIELDS: dict[str, Field] = {field.name: field for field in _FIELDS}
"""Every field by its name."""
BY_ANY_NAME: dict[str, Field] = {
    name: field for field in _FIELDS for name in (field.name, *field.aliases)
}
"""Every field by its name and its aliases."""
PART_STATES = frozenset(("error", "denied", "hidden"))
"""Values of ``is:`` that are about a part; all others are about the session."""
NAMES = ", ".join(FIELDS)
"""All names, for a message."""
