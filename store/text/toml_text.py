"""Reads TOML that anybody may have written."""

from __future__ import annotations

from typing import Any


class NotToml(ValueError):
    """A text is no TOML, or has a value that cannot be held; the message says where."""


def parse_toml(text: str) -> dict[str, Any]:
    """Return the tables of a TOML text.

    Raises:
        NotToml: It is none, is nested too deeply, or has a number that is too long.
    """
    # Imported here: most people have no file to read.
    import tomllib

    try:
        return tomllib.loads(text)
    except RecursionError as error:
        raise NotToml("it is nested too deeply") from error
    except ValueError as error:
        raise NotToml(str(error)) from error
