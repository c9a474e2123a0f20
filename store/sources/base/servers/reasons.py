"""What went wrong with a server, in words that follow its URL."""

from __future__ import annotations

import os
import re

_WORDS = {
    "28P01": "refuses the login",
    "28000": "refuses the login",
    "3D000": "cannot be opened",
    "57P03": "is starting up or shutting down",
    "57P01": "closed the connection",
    "57P02": "closed the connection",
    "42501": "may not be read by this user",
    "57014": "took too long to answer",
    "55P03": "is locked by another program",
    "53300": "takes no more connections",
}
"""By SQLSTATE (PostgreSQL's manual, appendix A)."""
_NUMBER = re.compile(r"\[Errno (\d+)\]")


def reason(error: BaseException) -> str:
    """Return one line; the server's own words are part of it where they help."""
    state = getattr(error, "sqlstate", None)
    said = _first_line(str(error))
    if isinstance(state, str):
        if state.startswith("08"):
            return f"closed the connection: {said}"
        return f"{_WORDS.get(state, 'cannot be read')}: {said}"
    if isinstance(error, TimeoutError):
        return "does not answer"
    if isinstance(error, OSError):
        return f"cannot be reached: {_of_system(error)}"
    return f"cannot be read: {said or type(error).__name__}"


def is_of_password(error: BaseException) -> bool:
    """Return whether the server wanted another password, or one at all."""
    return getattr(error, "sqlstate", None) == "28P01"


def _of_system(error: OSError) -> str:
    found = _NUMBER.search(str(error))
    number = error.errno if error.errno is not None else int(found[1]) if found else None
    if number is not None and number > 0:
        return os.strerror(number)
    return _first_line(error.strerror or str(error)) or type(error).__name__


def _first_line(text: str) -> str:
    return text.strip().partition("\n")[0]
