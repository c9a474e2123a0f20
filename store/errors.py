"""Errors that a user reads: one line that names the thing and the way out."""

from __future__ import annotations


class BackscrollError(Exception):
    """An error with a message for the user; the command line ends with 1 on it."""


class StoreError(BackscrollError):
    """A file or URL that cannot serve as a store."""


class Refused(BackscrollError):
    """A verb that is not possible now; the message is the reason."""


class NotFound(BackscrollError):
    """A session, message or part that no id, source id or prefix names."""
