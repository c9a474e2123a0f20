"""Shared by the commands that change sessions: arguments, the transaction, the output."""

from __future__ import annotations

import argparse
import sqlite3
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Concatenate, ParamSpec, TypeVar

from store.engine.database import Database, in_transaction
from store.engine.transactions import POLL_S, Patience
from store.queries.messages import get, resolve_message
from store.queries.sessions import resolve
from store.system.clock import system_clock
from tui.cli.output import NAME_HELP, Printer, print_json
from tui.cli.stores import store_for_writing
from tui.cli.working import showing

P = ParamSpec("P")
T = TypeVar("T")


def add_session(parser: argparse.ArgumentParser) -> None:
    """Declare the SESSION argument."""
    parser.add_argument("session", metavar="SESSION", help=NAME_HELP)


def add_sessions(parser: argparse.ArgumentParser) -> None:
    """Declare one or more SESSION arguments."""
    parser.add_argument("sessions", metavar="SESSION", nargs="+", help=NAME_HELP)


def add_message(parser: argparse.ArgumentParser) -> None:
    """Declare the MESSAGE argument."""
    parser.add_argument("message", metavar="MESSAGE", help=NAME_HELP)


def add_json(parser: argparse.ArgumentParser) -> None:
    """Declare ``--json``."""
    parser.add_argument("--json", action="store_true", help="print a JSON object")


class Work:
    """The open store of a command that changes sessions.

    Attributes:
        now: Epoch ms, the same for all changes of the command.
    """

    def __init__(self, database: Database) -> None:
        """Work on an open store."""
        self.database = database
        self.now = system_clock()

    def session(self, name: str) -> str:
        """Return the id of the session that the user names."""
        return resolve(self.database, name).id

    def message(self, session_id: str, name: str) -> str:
        """Return the id of the message that the user names.

        A message of another session is returned too; the verb refuses it.
        """
        row = get(self.database, name) or resolve_message(self.database, session_id, name)
        return row.id

    def do(
        self, verb: Callable[Concatenate[Database, P], T], *args: P.args, **kwargs: P.kwargs
    ) -> T:
        """Run a verb in one transaction and return its result.

        It waits for other writers, and shows that it does.

        Args:
            verb: The function; its first argument is the store.
            args: Its further positional arguments.
            kwargs: Its keyword arguments.
        """
        patience = Patience()
        with showing() as show:
            while True:
                try:
                    return in_transaction(self.database, verb, *args, **kwargs)
                except sqlite3.OperationalError as error:
                    if not patience.lasts(error):
                        raise
                    who = getattr(error, "holder", "") or "another program"
                    show(f"waiting: {who} writes to the store", 0, 0)
                    time.sleep(POLL_S)


@contextmanager
def working(options: argparse.Namespace) -> Iterator[Work]:
    """Open the store that a command changes."""
    with store_for_writing(options) as database:
        yield Work(database)


def answer(options: argparse.Namespace, value: object, *words: str) -> None:
    """Print what was done, as JSON or as lines of text.

    Args:
        options: The command's options.
        value: What ``--json`` prints.
        words: The lines to print without ``--json``.
    """
    if options.json:
        print_json(value)
        return
    printer = Printer()
    for line in words:
        printer.line(printer.paint(line))
