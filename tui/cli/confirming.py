"""Asks for confirmation on the command line."""

from __future__ import annotations

import sys
from collections.abc import Iterable

from store.errors import Refused
from tui.cli.output import Printer


def confirm(lines: Iterable[str], question: str, *, otherwise: str) -> None:
    """Show on stderr what is about to happen, and ask for confirmation.

    Args:
        lines: The lines to show; they are neutralised.
        question: The question, answered with y or n.
        otherwise: The error message if the answer is no.

    Raises:
        Refused: The answer is no, or there is no terminal to ask on.
    """
    printer = Printer(sys.stderr)
    for line in lines:
        printer.line(printer.paint(line))
    if not sys.stdin or not sys.stdin.isatty():
        raise Refused(f"{otherwise}: there is no terminal to ask on. Use --yes to confirm.")
    sys.stderr.write(f"{question} [y/N] ")
    sys.stderr.flush()
    if sys.stdin.readline().strip().lower() not in ("y", "yes"):
        raise Refused(otherwise)
