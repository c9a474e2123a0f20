"""``python -m tui.readme``: writes the tables of README.md that come from declarations."""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Sequence
from pathlib import Path

from store.system.streams import guard_streams
from tui.cli import COMMANDS
from tui.keys.registry import key_table

README = Path("README.md")


def command_table() -> str:
    """Return the Markdown table of the command line."""
    rows = [f"| `backscroll {name}` | {help} |" for name, (_, help) in COMMANDS.items()]
    return "\n".join(["| command | what it does |", "|---|---|", *rows]) + "\n"


def filled(text: str) -> str:
    """Return the README with its tables as the declarations have them now.

    Raises:
        ValueError: A pair of markers is missing.
    """
    for name, table in (("keys", key_table()), ("commands", command_table())):
        pattern = re.compile(f"(<!-- {name} -->\n).*?(<!-- /{name} -->)", re.DOTALL)
        if not pattern.search(text):
            raise ValueError(f"README.md has no markers for {name}")
        text = pattern.sub(lambda match, table=table: match[1] + table + match[2], text)  # type: ignore[misc]
    return text


def main(arguments: Sequence[str] | None = None) -> int:
    """Write the tables.

    Returns:
        The exit code.
    """
    parser = argparse.ArgumentParser(prog="python -m tui.readme", description=__doc__)
    parser.parse_args(arguments)
    README.write_text(filled(README.read_text(encoding="utf-8")), encoding="utf-8")
    return 0


if __name__ == "__main__":
    guard_streams()
    sys.exit(main())
