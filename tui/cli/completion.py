"""Print a script that completes commands, options and files in a shell.

Add the line for your shell to its start file, or save the script in the folder that the shell
reads completions from.
"""

from __future__ import annotations

import argparse
import sys
from typing import Any

from tui.words.commands import COMMANDS

EXAMPLES = (
    ('eval "$(backscroll completion bash)"', "in ~/.bashrc"),
    ('eval "$(backscroll completion zsh)"', "in ~/.zshrc, after compinit"),
    ("backscroll completion fish | source", "in ~/.config/fish/config.fish"),
)
SHELLS = ("bash", "zsh", "fish")

def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument("shell", choices=SHELLS, help="the shell")


def run(options: argparse.Namespace) -> int:
    """Print the script."""
    import shtab

    sys.stdout.write(shtab.complete(whole_parser(), options.shell).rstrip("\n") + "\n")
    return 0


class _CompletedParser(argparse.ArgumentParser):
    """A parser whose arguments say whether they name a file or a folder."""

    def add_argument(self, *args: Any, **options: Any) -> argparse.Action:
        """Declare an argument; the name of its value tells what completes it."""
        import shtab

        action = super().add_argument(*args, **options)
        if action.metavar in ("PATH", "FILE", "SOURCE"):
            vars(action)["complete"] = shtab.FILE
        elif action.metavar == "FOLDER":
            vars(action)["complete"] = shtab.DIRECTORY
        return action


def whole_parser() -> argparse.ArgumentParser:
    """Return one parser of all commands, whose arguments say what completes them."""
    from tui.cli import add_arguments as add_all
    from tui.cli import command_module

    parser = _CompletedParser(prog="backscroll")
    parser.add_argument("--store", metavar="PATH", help="use this store instead of your library")
    parser.add_argument("--demo", action="store_true", help="open the demo")
    parser.add_argument("--version", action="store_true", help="print the version")
    commands = parser.add_subparsers(metavar="COMMAND", parser_class=_CompletedParser)
    for name, (_, help) in COMMANDS.items():
        add_all(commands.add_parser(name, help=help), command_module(name))
    described = commands.add_parser("help", help="describe a command")
    described.add_argument("command", nargs="?", choices=tuple(COMMANDS))
    return parser
