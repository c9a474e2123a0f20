"""Errors of PostgreSQL as the errors that functions over a ``Database`` know: SQLite's."""

from __future__ import annotations

import sqlite3

from store.engine.server.words import OF_THE_DRIVER, is_statement_mode, reason
from store.engine.server_url import ServerUrl

_CODES = {
    "55P03": sqlite3.SQLITE_BUSY, "40001": sqlite3.SQLITE_BUSY, "40P01": sqlite3.SQLITE_BUSY,
    "53100": sqlite3.SQLITE_FULL, "25006": sqlite3.SQLITE_READONLY, "42501": sqlite3.SQLITE_PERM,
    "53300": sqlite3.SQLITE_CANTOPEN, "XX001": sqlite3.SQLITE_CORRUPT,
    "57014": sqlite3.SQLITE_BUSY, "53200": sqlite3.SQLITE_BUSY, "58030": sqlite3.SQLITE_IOERR,
    "42P01": sqlite3.SQLITE_CANTOPEN, "3F000": sqlite3.SQLITE_CANTOPEN,
}  # fmt: skip
"""By SQLSTATE (PostgreSQL's manual, appendix A) what SQLite says of the same."""
_WORDS = {
    "42501": "does not let this role do that",
    "25006": "may only be read now",
}
"""Of statements that may write; ``words.reason`` is about reading."""
_LOST = ("08", "57P", "28", "25P03")
_OF_VALUES = ("22", "54")
"""Of values that a type, or an index of them, does not take: the second is of a text that is too
long for its index, or nested too deep."""
_OF_ROWS = {
    "23502": sqlite3.SQLITE_CONSTRAINT_NOTNULL, "23503": sqlite3.SQLITE_CONSTRAINT_FOREIGNKEY,
    "23505": sqlite3.SQLITE_CONSTRAINT_UNIQUE,
}  # fmt: skip


class ServerError(sqlite3.OperationalError):
    """An error of a server.

    Attributes:
        for_user: One line that names the server and says what is wrong with it.
        words: The same without the server.
        holder: The program, and its role, with the lock that was waited for; empty if unknown.
        is_lost: Whether the connection is gone.
        nothing_done: Whether it was gone before a transaction began.
        is_stale: Whether the statement must be prepared again.
    """

    for_user: str
    words: str
    holder: str = ""
    is_lost: bool = False
    nothing_done: bool = False
    is_stale: bool = False

    def name_holder(self, who: str) -> None:
        """Say who holds the lock that was waited for.

        Args:
            who: A program and its role.
        """
        said, self.holder = self.words, who
        self.words = f"is locked by {who}; wait until it is done, and try again"
        self.for_user = self.for_user.removesuffix(said) + self.words

    def name_wait(self, waits: str) -> None:
        """Say what was waited for in vain.

        Args:
            waits: For example ``waits for the table chat_sessions, which psql has locked``.
        """
        said = self.words
        self.words = f"{said}: it {waits}; wait until that is done, and try again"
        self.for_user = self.for_user.removesuffix(said) + self.words


class ServerRefusal(sqlite3.IntegrityError):
    """A change that a constraint of a table on a server forbids.

    Attributes:
        for_user: One line that names the server and says what is wrong.
    """

    for_user: str


class ServerMisfit(sqlite3.DataError):
    """A value that a server cannot hold.

    Attributes:
        for_user: One line that names the server and says what is wrong.
    """

    for_user: str


def mapped(error: BaseException, url: ServerUrl) -> BaseException:
    """Return the error of the store for an error of the driver.

    Args:
        error: The driver's error, or one of the system.
        url: The server, for the message; its passwords are left out.
    """
    state = str(getattr(error, "sqlstate", None) or "")
    said = url.without_secrets(str(error) or type(error).__name__)
    first = said.partition("\n")[0]  # What follows quotes the row.
    if state.startswith("23"):
        row = ServerRefusal(said)
        row.for_user = f"{url.named or url} refuses the change: {first}"
        row.sqlite_errorcode = _OF_ROWS.get(state, sqlite3.SQLITE_CONSTRAINT)
        return row
    if state.startswith(_OF_VALUES):
        value = ServerMisfit(said)
        value.for_user = f"{url.named or url} cannot hold a value: {first}"
        value.sqlite_errorcode = sqlite3.SQLITE_MISMATCH
        return value
    found = ServerError(said)
    words = _WORDS[state] + f": {said}" if state in _WORDS else url.without_secrets(reason(error))
    found.words, found.for_user = words, f"{url.named or url} {words}"
    found.is_lost = is_lost(error) and not is_statement_mode(error)
    found.is_stale = state == "26000" or type(error).__name__ == "InvalidCachedStatementError"
    code = sqlite3.SQLITE_CANTOPEN if found.is_lost else _CODES.get(state, sqlite3.SQLITE_ERROR)
    found.sqlite_errorcode = code
    return found


def interrupted() -> sqlite3.OperationalError:
    """Return what SQLite raises where a statement was broken off."""
    error = sqlite3.OperationalError("interrupted")
    error.sqlite_errorcode = sqlite3.SQLITE_INTERRUPT
    return error


def is_lost(error: BaseException) -> bool:
    """Return whether it was the connection that failed, so that a new one may serve."""
    state = getattr(error, "sqlstate", None)
    if isinstance(state, str):
        return state.startswith(_LOST)
    # The driver's own errors about a closed connection have no state.
    return isinstance(error, OSError) or type(error).__name__ in OF_THE_DRIVER
