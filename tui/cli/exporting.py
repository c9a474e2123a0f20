"""Arguments and notes that ``show`` and ``export`` share."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from tui.cli.output import NAME_HELP, UsageError, note

if TYPE_CHECKING:
    from store.exports.reading import SessionReading, View


def add_view_arguments(parser: argparse.ArgumentParser, *, several: bool = False) -> None:
    """Declare the session and the view.

    Args:
        parser: Of the command.
        several: Whether it takes several sessions, as ``sessions``.
    """
    if several:
        parser.add_argument(
            "sessions", metavar="SESSION", nargs="*", default=[], help=NAME_HELP)
    else:
        parser.add_argument("session", metavar="SESSION", help=NAME_HELP)
    parser.add_argument("--hidden", action="store_true", help="include hidden messages")
    parser.add_argument(
        "--context", action="store_true",
        help="only what the model would be sent now: the summary of a compaction and what follows",
    )  # fmt: skip


def view_of(options: argparse.Namespace, *, whole: bool = False) -> View:
    """Return the requested view.

    Args:
        options: The options, with ``hidden`` and ``context``.
        whole: Whether the default is the view of every row.

    Raises:
        UsageError: Both options were given.
    """
    if options.hidden and options.context:
        raise UsageError("--hidden and --context exclude each other: hidden messages are not sent")
    if options.context:
        return "context"
    if whole:
        return "all"
    return "hidden" if options.hidden else "display"


def tell_left_out(reading: SessionReading) -> None:
    """Print on stderr how many hidden messages were left out."""
    count = sum(each.hidden_left_out for each in (reading, *reading.further))
    if count:
        messages = "message" if count == 1 else "messages"
        note(f"{count} hidden {messages} omitted. Use --hidden to include them.")
