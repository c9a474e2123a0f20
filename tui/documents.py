"""``python -m tui.documents``: writes the tables of ``docs/`` that come from declarations."""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from store.config import described
from store.exports.registry import FORMATS
from store.system.streams import guard_streams
from tui.cli import COMMANDS
from tui.keys.registry import key_table


def command_table() -> str:
    """Return the Markdown table of the command line."""
    rows = [f"| `backscroll {name}` | {help} |" for name, (_, help) in COMMANDS.items()]
    return "\n".join(["| command | what it does |", "|---|---|", *rows]) + "\n"


def setting_table() -> str:
    """Return the Markdown table of the settings."""
    rows = [
        f"| `{one.name}` | {one.type} | {f'`{one.default}`' if one.default else ''}"
        f" | {one.sentence.replace('``', '`')} |"
        for one in described()
    ]
    return "\n".join(["| setting | value | default | what it does |", "|---|---|---|---|", *rows,
                      ""])  # fmt: skip


def format_table() -> str:
    """Return the Markdown table of the export formats."""
    rows = [f"| `{format.name}` | {format.help} |" for format in FORMATS.values()]
    return "\n".join(["| format | what it is |", "|---|---|", *rows]) + "\n"


TABLES: dict[str, tuple[str, Callable[[], str]]] = {
    "keys": ("docs/keys.md", key_table),
    "commands": ("docs/command-line.md", command_table),
    "formats": ("docs/command-line.md", format_table),
    "settings": ("docs/settings.md", setting_table),
}
"""The page and the table of each marker."""


def filled(text: str, name: str, table: str) -> str:
    """Return a page with its table as the declarations have it now.

    Args:
        text: The page.
        name: The marker: the table is between ``<!-- name -->`` and ``<!-- /name -->``.
        table: The table.

    Raises:
        ValueError: A marker is missing.
    """
    pattern = re.compile(f"(<!-- {name} -->\n).*?(<!-- /{name} -->)", re.DOTALL)
    if not pattern.search(text):
        raise ValueError(f"the page has no markers for {name}")
    return pattern.sub(lambda match: match[1] + table + match[2], text)


def main(arguments: Sequence[str] | None = None) -> int:
    """Write the tables.

    Args:
        arguments: The command line; the process's by default.

    Returns:
        The exit code.
    """
    parser = argparse.ArgumentParser(prog="python -m tui.documents", description=__doc__)
    parser.parse_args(arguments)
    for marker, (name, table) in TABLES.items():
        page = Path(name)
        written = filled(page.read_text(encoding="utf-8"), marker, table())
        page.write_text(written, encoding="utf-8")
    return 0


if __name__ == "__main__":
    guard_streams()
    sys.exit(main())
