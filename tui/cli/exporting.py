"""What ``show`` and ``export`` share: which session, which view, what was left out."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from tui.cli.output import UsageError, note

if TYPE_CHECKING:
    from store.exports.reading import SessionReading, View


def add_view_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the session and the view."""
    parser.add_argument(
        "session", metavar="SESSION", help="its id, its source id, or the beginning of one"
    )
    parser.add_argument("--hidden", action="store_true", help="hidden messages too")
    parser.add_argument(
        "--context", action="store_true",
        help="what the model would be sent now: after a compaction its summary and the rest",
    )  # fmt: skip


def view_of(options: argparse.Namespace, *, whole: bool = False) -> View:
    """Return the view that was asked for.

    Args:
        options: With ``hidden`` and ``context``.
        whole: Whether every row is meant where nothing is asked for.

    Raises:
        UsageError: Both were asked for.
    """
    if options.hidden and options.context:
        raise UsageError("--hidden and --context do not go together: hidden is not sent")
    if options.context:
        return "context"
    if whole:
        return "all"
    return "hidden" if options.hidden else "display"


def tell_left_out(reading: SessionReading) -> None:
    """Say on stderr how many hidden messages were left out."""
    count = reading.hidden_left_out
    if count:
        messages = "message" if count == 1 else "messages"
        note(f"{count} hidden {messages} left out; --hidden shows them")
