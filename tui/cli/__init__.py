"""The command line: each command is one module with ``add_arguments`` and ``run``.

Exit codes: 0; 1 when something was refused or not found, with the reason on stderr; 2 for
wrong usage. Modules of commands are imported only when the command is run.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Sequence
from importlib import import_module
from typing import TYPE_CHECKING, NoReturn, Protocol, cast

from store.system.streams import NAMES, guard_streams, silence_streams
from store.text.likeness import nearest
from tui.kit.glyphs import ascii_only
from tui.words.commands import COMMANDS, near_command

if TYPE_CHECKING:
    import argparse
    import sqlite3

    from store.errors import Ambiguous

_HELP = """\
usage: backscroll [TARGET] [--store PATH] [--read-only] [--demo]
       backscroll COMMAND ...

Without a command, opens the browser on your library, updated with the sessions of your agents.
TARGET opens something else: a store (a SQLite file with the three tables), an agent's file or
folder, the postgresql:// URL of a hub or of lionagi, or a project folder.

options:
  --store PATH          use this store instead of your library (also $BACKSCROLL_STORE)
  --read-only           change nothing: no verb, no sync, nothing remembered
  --demo                open the demo
  --version             print the version
  -h, --help            print this help

commands (see backscroll COMMAND --help):
{commands}

{examples}"""

_EXAMPLES = (
    ("backscroll", "your sessions"),
    ("backscroll .", "the sessions of this project folder"),
    ("backscroll ~/backup/.claude", "an agent's folder, without adding it to your library"),
    ("backscroll --demo", "have a look around"),
    ("backscroll help sessions", "what a command does"),
)

USAGE, FAILED, INTERRUPTED = 2, 1, 130


class Command(Protocol):
    """The interface of a command's module; its docstring is the text of ``--help``.

    Attributes:
        EXAMPLES: Command lines for ``--help``, each with what it does.
    """

    EXAMPLES: Sequence[tuple[str, str]]

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        """Declare the command's arguments."""
        ...

    def run(self, options: argparse.Namespace) -> int:
        """Run the command and return the exit code."""
        ...


def command_in(arguments: Sequence[str]) -> str | None:
    """Return the command in a command line, or None; ``--store X`` may come first."""
    rest = list(arguments[1:] if arguments[:1] == ["help"] else arguments)
    while rest and rest[0].startswith("--store"):
        rest = rest[1:] if "=" in rest[0] else rest[2:]
    return rest[0] if rest and rest[0] in COMMANDS else None


_WITH_QUERY = ("search", "sessions", "stats")
_LEFT_OUT = re.compile(r"-(?!h\Z)[^\s\d-]")


def main(argv: Sequence[str]) -> int:
    """Run one command and return the exit code.

    Args:
        argv: The command line without the program's name.
    """
    guard_streams(ascii_only)
    try:
        code = _run(argv)
        sys.stdout.flush()
        sys.stderr.flush()
        return code
    except BrokenPipeError:
        # The reader closed the pipe, which is not an error.
        silence_streams()
        return 0
    except OSError as error:
        from tui.start.problems import of_file

        silence_streams()
        print(f"backscroll: {of_file(error)}", file=sys.stderr)
        silence_streams()
        return FAILED


def _run(argv: Sequence[str]) -> int:
    name = command_in(argv)
    if name is None:
        return _without_command(argv)
    arguments = [name, "--help"] if argv[0] == "help" else list(argv)
    arguments.remove(name)
    command = command_module(name)
    parser = command_parser(name, command)
    if name in _WITH_QUERY:
        # A query may begin with what it leaves out; with a space it is no option.
        arguments = [f" {each}" if _LEFT_OUT.match(each) else each for each in arguments]
    try:
        options, unknown = parser.parse_known_args(arguments)
        if unknown:
            parser.error(_unknown_arguments(parser, unknown))
    except SystemExit as end:
        return int(end.code or 0)
    options.parser, options.arguments = parser, arguments
    return _guarded(command, options)


def _without_command(argv: Sequence[str]) -> int:
    """Print help or the version if requested; anything else is wrong usage."""
    if argv[:1] == ["help"] and argv[1:] and argv[1] not in ("help", "version", "-h", "--help"):
        near = near_command(argv[1])
        hint = f" Did you mean `backscroll help {near}`?" if near else " See `backscroll --help`."
        print(f"backscroll: no command is called {argv[1]!r}.{hint}", file=sys.stderr)
        return USAGE
    if "--version" in argv or argv[:1] == ["version"]:
        from backscroll import __version__

        print(f"backscroll {__version__}")
        return 0
    if any(argument in ("-h", "--help", "help") for argument in argv):
        print(_HELP.format(commands=_command_lines(), examples=_example_lines(_EXAMPLES)))
        return 0
    print("backscroll: no command given. See backscroll --help.", file=sys.stderr)
    return USAGE


def _command_lines() -> str:
    return "\n".join(f"  {name:<12} {help}" for name, (_, help) in COMMANDS.items())


def _example_lines(examples: Sequence[tuple[str, str]]) -> str:
    width = max(len(line) for line, _ in examples)
    return "\n".join(["examples:", *(f"  {line:<{width}}  {does}" for line, does in examples)])


def command_parser(name: str, command: Command) -> argparse.ArgumentParser:
    """Return the parser of a command's arguments.

    Args:
        name: The command.
        command: Its module.
    """
    import argparse

    from store.errors import with_short_values

    class Parser(argparse.ArgumentParser):
        def error(self, message: str) -> NoReturn:
            super().error(with_short_values(message))

    parser = Parser(
        prog=f"backscroll {name}",
        description=command.__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    add_arguments(parser, command)
    parts = (parser.epilog, _example_lines(command.EXAMPLES))
    parser.epilog = "\n\n".join(filter(None, parts))
    return parser


def add_arguments(parser: argparse.ArgumentParser, command: Command) -> None:
    """Declare the arguments of a command, and those that every command has.

    A command with ``add_store`` declares ``--store`` in its own way.
    """
    parser.set_defaults(store=os.environ.get("BACKSCROLL_STORE") or None)
    getattr(command, "add_store", _add_store)(parser)
    command.add_arguments(parser)


def _add_store(parser: argparse.ArgumentParser) -> None:
    help = "the store (default: $BACKSCROLL_STORE or your library)"
    parser.add_argument("--store", metavar="PATH", help=help)


def command_module(name: str) -> Command:
    """Import the module of a command."""
    return cast(Command, import_module(COMMANDS[name][0]))


def _unknown_arguments(parser: argparse.ArgumentParser, unknown: Sequence[str]) -> str:
    """Return which arguments a command does not have, and the option that may be meant."""
    reason = f"unrecognized arguments: {' '.join(unknown)}"
    first = unknown[0].partition("=")[0]
    near = nearest(first, re.findall(r"--[a-z-]+", parser.format_usage()))
    return f"{reason}. Did you mean {near}?" if near and first.startswith("-") else reason


def _guarded(command: Command, options: argparse.Namespace) -> int:
    """Run a command and return the exit code; an error becomes one line on stderr."""
    import sqlite3

    from store.errors import Ambiguous, BackscrollError, with_short_values
    from tui.cli.output import UsageError
    from tui.start.lock_notes import lock_notes
    from tui.start.problems import of_file
    from tui.start.wanted import BrowserWanted

    if options.store is not None and "=" in options.store:
        from tui.cli.stores import note_left_out

        note_left_out(options.store)
    try:
        with lock_notes((options.store, *options.arguments)):
            code = command.run(options)
        sys.stdout.flush()
        return code
    except UsageError as error:
        options.parser.print_usage(sys.stderr)
        print(f"{options.parser.prog}: error: {with_short_values(str(error))}", file=sys.stderr)
        return USAGE
    except (BrokenPipeError, BrowserWanted):
        raise
    except KeyboardInterrupt:
        return INTERRUPTED
    except sqlite3.Error as error:
        return _failed(str(_explained(error, options.store)))
    except Ambiguous as error:
        return _ambiguous(error)
    except BackscrollError as error:
        return _failed(str(error))
    except OSError as error:
        if error.filename == NAMES["stdout"]:
            raise  # The output is still buffered; main discards it and reports the error.
        return _failed(of_file(error))
    except UnicodeEncodeError as error:
        no_text = next(filter(_is_no_text, options.arguments), None)
        if no_text is None:
            return _unforeseen(options.parser.prog, error)
        return _failed(f"{no_text} is not valid UTF-8")
    except Exception as error:
        return _unforeseen(options.parser.prog, error)


def _failed(reason: str) -> int:
    from store.errors import with_short_values

    print(f"backscroll: {with_short_values(reason)}", file=sys.stderr)
    return FAILED


def _ambiguous(error: Ambiguous) -> int:
    """Print the matches of an ambiguous name, each with its id; return the exit code."""
    from tui.cli.output import home_path, local_time

    lines = [f"{error.name} matches several {error.noun}. Name one by its id:"]
    for choice in error.choices:
        details = (" ".join(home_path(each).split()) for each in choice.details)
        lines.append("  ".join((f"  {choice.id}", local_time(choice.at), *details)))
    return _failed("\n".join([*lines, *["  ... and more"] * error.more]))


def _is_no_text(argument: str) -> bool:
    """Return whether an argument contains bytes that are not text, as file names may."""
    try:
        argument.encode()
    except UnicodeEncodeError:
        return True
    return False


def _explained(error: sqlite3.Error, store: str | None) -> Exception:
    from pathlib import Path

    from store.engine.transactions import explained
    from store.system.locations import library_path

    return explained(error, Path(store or library_path()))


def _unforeseen(command: str, error: Exception) -> int:
    """Report an unexpected error in one line; the traceback goes to the log."""
    from tui.start.problems import keep, reason

    log = keep(f"{command} failed", error)
    where = f". Details are in {log}" if log else ""
    print(f"backscroll: this should not happen: {reason(error)}{where}", file=sys.stderr)
    return FAILED
