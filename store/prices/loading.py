"""The table of prices: the package's lines, those of a file that was taken, the configuration's."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import datetime
from functools import cache
from pathlib import Path
from typing import Any

from store.errors import Refused
from store.prices.lines import BadPrices, checked_line, lines_of, written
from store.prices.table import Price, PriceTable
from store.system.clock import system_clock
from store.system.files import write_whole
from store.system.locations import data_dir, private_folder
from store.system.paths import read_regular
from store.text.exact_json import NotJson, decode, encode_for_output

PACKAGE = Path(__file__).with_name("prices.json")
_LARGEST_FILE = 64 << 20
"""Bytes; LiteLLM's table has 4 MB."""


def taken_path() -> Path:
    """Return where the file is kept that ``backscroll prices --update`` took."""
    return data_dir() / "prices.json"


def load_prices(
    laid_over: Mapping[str, Mapping[str, Any]] | None = None, data_file: Path | None = None
) -> PriceTable:
    """Return the table: the configuration's lines, those of a file that was taken, the package's.

    Lines of the configuration that do not fit are left out; ``load_config`` names them. A taken
    file that cannot be read is named in the table's ``problem``, and left out.

    Args:
        laid_over: ``config.prices``: lines in our form by id.
        data_file: The file that was taken; None takes the platform's place.
    """
    own = [price for name, line in (laid_over or {}).items() for price in _fitting(name, line)]
    path = data_file or taken_path()
    taken: list[Price] = []
    problem = None
    try:
        taken = read_prices(path)
    except FileNotFoundError:
        pass
    except (OSError, BadPrices) as error:
        problem = f"{path}: {error}"
    return PriceTable([own, taken, package_prices()], problem)


def _fitting(name: str, line: Mapping[str, Any]) -> Iterator[Price]:
    try:
        yield from list(checked_line(name, line, source="config.toml"))
    except BadPrices:
        return


@cache
def package_prices() -> tuple[Price, ...]:
    """Return the lines that the package brings."""
    return tuple(read_prices(PACKAGE))


def read_prices(path: Path, *, source: str = "", date: str = "") -> list[Price]:
    """Return the lines of a file in our form or LiteLLM's.

    Args:
        path: The file.
        source: Where lines come from that do not say it themselves.
        date: When those were taken from there.

    Raises:
        OSError: It cannot be read.
        BadPrices: It is no table of prices, or has a line that cannot be used.
    """
    content = read_regular(path, _LARGEST_FILE)
    try:
        value = decode(content)
    except NotJson as error:
        raise BadPrices(f"is no JSON: {error}") from None
    return lines_of(value, source=source, date=date)


def take_prices(path: Path, kept: Path | None = None) -> list[Price]:
    """Check a file of prices whole, keep its lines (0600), and return them.

    Args:
        path: The file, in our form or LiteLLM's.
        kept: Where they are kept; None takes the platform's place.

    Raises:
        Refused: The file cannot be read, or one of its entries cannot be used; it is named.
            What was kept before stays.
    """
    day = datetime.fromtimestamp(system_clock() / 1000).date().isoformat()
    try:
        lines = read_prices(path, source=path.name[:200], date=day)
    except OSError as error:
        raise Refused(f"{path} cannot be read: {error.strerror or error}") from error
    except BadPrices as error:
        raise Refused(f"{path}: {error}. Nothing was changed.") from error
    place = kept or taken_path()
    private_folder(place.parent)
    write_whole(place, [encode_for_output(written(lines)), "\n"], replace=True)
    return lines
