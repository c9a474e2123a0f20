"""What ``backscroll stats --sizes`` prints: what the store takes on the disk."""

from __future__ import annotations

import argparse
import re
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from store.engine.database import Database
from store.text import figures
from store.upkeep.server_sizes import ServerSizes, server_sizes
from store.upkeep.sizes import Sizes, sizes
from tui.cli.output import Printer, UsageError, home_path, print_json
from tui.cli.stores import needs_store, store_for_reading
from tui.cli.working import showing

_INDEXED = {"words": "words", "newest": "the newest messages"}
"""What the indexes of searches are of, by their names in ``ServerSizes.search``."""


class StoreOrSizes(argparse.Action):
    """``--store PATH`` names the store; ``--store`` alone is the same as ``--sizes``."""

    def __call__(
        self, parser: argparse.ArgumentParser, namespace: argparse.Namespace,
        values: str | Sequence[Any] | None, option_string: str | None = None,
    ) -> None:
        """Take the option, with its path or without.

        Args:
            parser: Of the command.
            namespace: Takes ``store`` or ``sizes``.
            values: The path; None without one.
            option_string: As it was typed.
        """
        if values is None:
            namespace.sizes = True
        else:
            namespace.store = values


def print_sizes(options: argparse.Namespace) -> int:
    """Print what the store takes, and return the exit code."""
    if options.sessions:
        raise UsageError("--sizes is about the whole store, not about a session")
    for name in ("query", "csv", "format", "windows", "since", "until", "today", "live", "limit"):
        if getattr(options, name):
            raise UsageError(f"--sizes and --{name} do not go together")
    with store_for_reading(options) as opened, showing() as shown:
        database = needs_store(opened)
        found = sizes(database, shown) if database.server is None else server_sizes(database, shown)
    if isinstance(found, ServerSizes):
        if options.json:
            print_json(_server_json(database, found))
        else:
            _print_server(database, found)
    elif options.json:
        print_json(_json(database, found))
    else:
        _print(database, found)
    return 0


def _server_json(database: Database, found: ServerSizes) -> dict[str, Any]:
    return {
        "path": database.name, "form": database.form.name,
        "tables": [asdict(table) for table in found.tables], "total": found.total,
        "database": found.database, "rows": {one.name: one.rows for one in found.tables},
        "settings": dict(found.settings), "search": dict(found.search),
    }  # fmt: skip


def _print_server(database: Database, found: ServerSizes) -> None:
    whole = [] if found.database is None else [
        (figures.size(found.database), "the whole database")]
    _print_tables(database, [
        ("tables", [(figures.size(one.size),
                     f"{_plain(one.place)}  {figures.size(one.indexes)} of it indexes")
                    for one in found.tables]),
        ("space", [(figures.size(found.total), "together"), *whole]),
        ("rows", [(f"{'about ' if one.is_estimate else ''}{one.rows:,}", one.name)
                  for one in found.tables]),
        ("search", [("there" if there else "missing", f"index of {_INDEXED.get(name, name)}")
                    for name, there in found.search.items()]),
        ("settings", [(value, name) for name, value in found.settings.items()]),
    ])


def _json(database: Database, found: Sizes) -> dict[str, Any]:
    return {
        "path": str(database.path), "form": database.form.name,
        "files": [
            {"path": str(file.path), "what": file.what, "size": file.size,
             "mode": f"{file.mode:04o}"} for file in found.files
        ],
        "total": found.total, "wal": _wal(found), "free_in_file": found.free_in_file,
        "free_on_disk": found.free_on_disk, "rows": dict(found.rows),
        "pragmas": dict(found.pragmas), "events": None if found.events is None else {
            "count": found.events[0], "size": found.events[1]},
    }  # fmt: skip


def _wal(found: Sizes) -> int:
    return sum(one.size for one in found.files if one.what == "its write-ahead log")


def _print(database: Database, found: Sizes) -> None:
    _print_tables(database, [
        ("files", [
            (figures.size(file.size), f"{file.path.name}  {file.what}") for file in found.files
        ]),
        ("space", [
            (figures.size(found.total), "together"),
            *((figures.size(size), f"of it {figures.count_of(count, 'event')} of the log")
              for count, size in [found.events or (0, 0)] if found.events is not None),
            (figures.size(found.free_in_file), "empty pages, which `backscroll vacuum` gives back"),
            (figures.size(found.free_on_disk), "free on the disk"),
        ]),
        ("rows", [(f"{count:,}", name) for name, count in found.rows.items()]),
        ("settings", [(str(value), name) for name, value in found.pragmas.items()]),
    ])


def _print_tables(
    database: Database, tables: Sequence[tuple[str, Sequence[tuple[str, str]]]]
) -> None:
    printer = Printer()
    printer.line(printer.paint(home_path(database.name), "title"))
    for head, rows in tables:
        printer.line(printer.paint(head, "bold"))
        for value, name in rows:
            printer.line(printer.paint(f"  {value:>12}  {name}"))


def _plain(place: str) -> str:
    """Return a table's name as people write it, without quotes that it does not need."""
    return re.sub(r'"([a-z_][a-z0-9_]*)"', r"\1", place)
