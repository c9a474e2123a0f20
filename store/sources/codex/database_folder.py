"""Where the databases of a Codex home are: mostly in it, elsewhere where its user wants so.

Source: the Codex format page, section 3.1: ``CODEX_SQLITE_HOME``, or ``sqlite_home`` of
``config.toml``. That file may hold what is nobody's business, so it is only opened where a
home lacks its databases, and only that setting is looked at.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from store.sources.base.values import string
from store.sources.codex.facts import newest
from store.system.paths import expanded, open_regular, resolved
from store.text.toml_text import NotToml, parse_toml

CONFIG = "config.toml"
_CONFIG_LIMIT = 1 << 20


def named_home(environment: Mapping[str, str]) -> Path | None:
    """Return ``CODEX_HOME``; None where it names nothing."""
    named = environment.get("CODEX_HOME", "").strip()
    return expanded(named) if named else None


def database_folder(home: Path, environment: Mapping[str, str], user_home: Path) -> Path:
    """Return the folder with a home's databases.

    Args:
        home: A Codex home.
        environment: Says it only of the home that Codex itself would take by it.
        user_home: The user's home folder.
    """
    named = environment.get("CODEX_SQLITE_HOME", "").strip()
    in_use = named_home(environment) or user_home / ".codex"
    if named and resolved(in_use) == resolved(home):
        return expanded(named)
    configured = _configured(home) if newest(home, "state") is None else None
    return home if configured is None else home / configured


def _configured(home: Path) -> Path | None:
    try:
        with open_regular(str(home / CONFIG)) as file:
            body = file.read(_CONFIG_LIMIT)
    except OSError:
        return None
    if b"sqlite_home" not in body:
        return None
    try:
        named = string(parse_toml(body.decode("utf-8", "replace")).get("sqlite_home"))
    except NotToml:
        return None
    return expanded(named) if named else None
