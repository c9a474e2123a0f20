"""What models cost, read once and again after the config or the taken file changed."""

from __future__ import annotations

import os
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

from store.config import quick_config
from store.system.locations import config_path

if TYPE_CHECKING:
    from store.prices.table import PriceTable


def price_table() -> PriceTable:
    """Return the table of prices with the config laid over; not for the event loop, as it reads."""
    from store.prices.loading import taken_path

    config, taken = config_path(), taken_path()
    return _read(config, _stamp(config), taken, _stamp(taken))


@lru_cache(maxsize=1)
def _read(config: Path, changed: int, taken: Path, taken_at: int) -> PriceTable:
    from store.prices.loading import load_prices

    return load_prices(quick_config(config).prices, taken)


def _stamp(path: Path) -> int:
    try:
        return os.stat(path).st_mtime_ns
    except OSError:
        return 0
