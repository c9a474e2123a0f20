"""Errors that a user reads: one line that names the thing and the way out."""

from __future__ import annotations

from collections.abc import Sequence

MOST_CHOICES = 5
"""How many of the matches are listed."""


LONGEST_VALUE = 80
"""Characters that a message repeats of a value that is too long, such as an id."""
_LONGEST_WORD = 400
"""Characters from which a value, quoted or without a space, is too long; paths are shorter."""
_LONGEST_MESSAGE = 4_000


def with_short_values(message: str) -> str:
    """Return an error's message with what is too long to be read cut, and "…" in its place."""
    if len(message) <= LONGEST_VALUE:
        return message
    import re

    most = LONGEST_VALUE - 1
    one, more = r"(?:(?!\1)[^\\]|\\.)", _LONGEST_WORD - most
    quoted = rf"""(?<!\w)(['"])({one}{{{most}}}){one}{{{more},}}\1(?!\w)"""
    message = re.sub(quoted, r"\1\2…\1", message, flags=re.DOTALL)
    message = re.sub(rf"(\S{{{most}}})\S{{{more},}}", r"\1…", message)
    half = _LONGEST_MESSAGE // 2
    return message if len(message) <= _LONGEST_MESSAGE else f"{message[:half]}…{message[-half:]}"


class BackscrollError(Exception):
    """An error with a message for the user; the command line ends with 1 on it.

    Passwords of URLs in the message are hidden, and long values cut.
    """

    def __init__(self, *words: object) -> None:
        """Take the message."""
        from store.text.masking import masked

        super().__init__(*(
            with_short_values(masked(word)) if isinstance(word, str) else word for word in words))


class StoreError(BackscrollError):
    """A file or URL that cannot serve as a store."""


class Refused(BackscrollError):
    """A verb that is not possible now; the message is the reason."""


class Invalid(Refused, ValueError):
    """A value that a call cannot take; the message names it and what is possible."""


class NotFound(BackscrollError):
    """No session, message or part has the name that was given."""


def no_session(name: str) -> NotFound:
    """Return the error for a session that the store does not have."""
    return NotFound(f"No session with id {name!r}. Run `backscroll sessions` to list them.")


def no_message(name: str, session_id: str) -> NotFound:
    """Return the error for a message that a session does not have."""
    return NotFound(
        f"No message with id {name!r} in session {session_id}."
        f" Run `backscroll show {session_id} --json` to list them."
    )


class Choice:
    """One of several matches of a name.

    Attributes:
        id: Names it and nothing else.
        at: When it changed last, epoch ms.
        details: What tells it from the others, such as its agent, path and title.
    """

    __slots__ = ("at", "details", "id")

    def __init__(self, id: str, at: int, details: tuple[str, ...]) -> None:
        """Take what it is.

        Args:
            id: Names it and nothing else.
            at: When it changed last, epoch ms.
            details: What tells it from the others.
        """
        self.id, self.at, self.details = id, at, details


def _day(at: int) -> str:
    """Return the day of a time in epoch ms, in UTC; the number where the calendar has none."""
    from datetime import UTC, datetime

    try:
        return datetime.fromtimestamp(at / 1000, UTC).date().isoformat()
    except (OverflowError, ValueError, OSError):
        return str(at)


class Ambiguous(NotFound):
    """A name that matches several sessions or messages.

    Attributes:
        name: What was asked for.
        noun: What it fits, such as "sessions".
        choices: The newest of them, newest first.
        more: Whether it fits others too.
    """

    def __init__(self, name: str, noun: str, choices: Sequence[Choice], *, more: bool) -> None:
        """Name the matches.

        Args:
            name: What was asked for.
            noun: What it fits, such as "sessions".
            choices: The newest of them, newest first.
            more: Whether it fits others too.
        """
        from store.text.neutral import neutral_line

        name = with_short_values(name)
        self.name, self.noun, self.choices, self.more = name, noun, tuple(choices), more
        # A session may name any path: it is one line in whatever tells of it.
        details = [", ".join((_day(one.at), *map(neutral_line, one.details))) for one in choices]
        named = [f"{one.id} ({told})" for one, told in zip(choices, details, strict=True)]
        super().__init__(f"{name} matches several {noun}: {', '.join([*named, *['...'] * more])}")
