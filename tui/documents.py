"""``python -m tui.documents``: writes the tables of the pages that come from declarations."""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from store.config import described
from store.exports.registry import FORMATS
from store.language.fields import FIELDS
from store.prices.loading import package_prices
from store.resume.own_sessions import OWN_SESSIONS
from store.resume.registry import AGENTS
from store.sources.base.protocol import LINEAGES, TELLS, ServerSource, Source
from store.sources.registry import all_sources
from store.system.streams import guard_streams
from tui.keys.registry import key_table
from tui.words.commands import COMMANDS


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


def source_table() -> str:
    """Return the Markdown table of the sources, with the variables that name their places."""
    rows = [
        f"| {source.label} | `{source.kind}` | {places} |" for source, places in _usual_places()
    ]
    return "\n".join(["| program | kind | where it looks |", "|---|---|---|", *rows]) + "\n"


def program_table() -> str:
    """Return the Markdown table of what is read, and what can be done with it."""
    rows = [
        f"| {source.label} | {places} | {_told(source, TELLS)} | {_told(source, LINEAGES)} |"
        f" {'yes' if source.live else 'no'} | {_goes_on(source.kind)} |"
        for source, places in _usual_places(variables=False)
    ]
    heads = ["| program | where it looks | beside turns and calls | lineage | live | go on |",
             "|---|---|---|---|---|---|"]  # fmt: skip
    return "\n".join([*heads, *rows, _OWN_PROGRAM]) + "\n"


def _told(source: Source, names: Sequence[str]) -> str:
    return ", ".join(name for name in names if name in source.tells) or "-"


def _goes_on(kind: str) -> str:
    """Return in words which sessions the program can go on with."""
    if kind in AGENTS:
        return "any session"
    return "its own" if kind in OWN_SESSIONS else "-"


_OWN_PROGRAM = (
    "| your own program | any SQLite file with the [three tables](docs/hosts.md)"
    " | all of these | all of these | yes | - |"
)


def _usual_places(*, variables: bool = True) -> Iterator[tuple[Source, str]]:
    """Yield each source with where it looks; those last whose place must be named."""
    roots = {one: one.default_roots({}, Path("~")) for one in all_sources()}
    for source, paths in sorted(roots.items(), key=lambda item: not item[1]):
        names = [source.places] if source.places else [f"`{path}`" for path in paths]
        names += [f"`{name}`" for name in source.variables if variables]
        if isinstance(source, ServerSource) and paths:
            names.append("or a PostgreSQL URL that you name")
        yield source, ", ".join(names)


def field_table() -> str:
    """Return the Markdown table of the fields of queries."""
    rows = []
    for field in FIELDS.values():
        names = " ".join(f"`{name}:`" for name in (field.name, *field.aliases))
        values = ", ".join(f"`{value}`" for value, _ in field.choices)
        about = f"{field.help}: {values}" if field.kind == "choice" else field.help
        rows.append(f"| {names} | {field.kind} | {about} | `{field.example}` |")
    return "\n".join(["| field | kind | what it selects | example |", "|---|---|---|---|", *rows,
                      ""])  # fmt: skip


def price_table() -> str:
    """Return the Markdown table of the pages that the package's prices come from."""
    lines = package_prices()
    rows = []
    for source in dict.fromkeys(line.source for line in lines):
        models = list(dict.fromkeys(line.pattern for line in lines if line.source == source))
        day = max(line.date for line in lines if line.source == source)
        some = ", ".join(f"`{model}`" for model in models[:3])
        rows.append(f"| <{source}> | {len(models)} | {some} | {day} |")
    return "\n".join(["| page | ids | such as | date |", "|---|---|---|---|", *rows, ""])


TABLES: dict[str, tuple[str, Callable[[], str]]] = {
    "keys": ("docs/keys.md", key_table),
    "commands": ("docs/command-line.md", command_table),
    "formats": ("docs/command-line.md", format_table),
    "sources": ("docs/sources.md", source_table),
    "programs": ("README.md", program_table),
    "settings": ("docs/settings.md", setting_table),
    "fields": ("docs/search.md", field_table),
    "prices": ("docs/prices.md", price_table),
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
