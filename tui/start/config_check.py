"""What only the app can say of a config: whether the names in it exist."""

from __future__ import annotations

from collections.abc import Collection, Iterator

from store.config import Config, Mistake, line_of
from store.system.paths import read_regular
from tui.keys.clashes import clashes
from tui.keys.registry import BY_ID

CHOSEN_BY_ITSELF = ("auto", "dark", "light")


def mistakes_of(config: Config, themes: Collection[str]) -> list[Mistake]:
    """Return what is wrong in a config, that reading it could not know included.

    Args:
        config: As it was read.
        themes: Names of the themes that there are.
    """
    found = list(config.mistakes)
    text = _text_of(config)
    for name in config.keys:
        if name not in BY_ID:
            at = line_of(text, ("keys", name))
            found.append(Mistake(config.path, at, f"keys: there is no command {name}"))
    found += [
        Mistake(config.path, line_of(text, ("keys", clash.named)), f"keys: {clash.reason}")
        for clash in clashes(config.keys)
    ]
    found += [
        Mistake(config.path, line_of(text, ("sources", *where)), f"there is no source {kind}")
        for where, kind in _unknown_sources(config)
    ]
    if config.masks.rules:
        # Only here: the rules that are built in would be loaded at each start.
        from store.sharing.settings import mistakes_in

        found += mistakes_in(config)
    theme = config.ui.theme
    if theme is not None and theme not in themes and theme not in CHOSEN_BY_ITSELF:
        at = line_of(text, ("ui", "theme"))
        found.append(Mistake(config.path, at, f"ui.theme: there is no theme {theme}"))
    return found


def _unknown_sources(config: Config) -> Iterator[tuple[tuple[str, ...], str]]:
    """Yield where a kind of source is named that there is not, and the kind."""
    settings = config.sources
    named: list[tuple[tuple[str, ...], str]] = []
    named += [(("enabled",), kind) for kind in settings.enabled]
    named += [(("disabled",), kind) for kind in settings.disabled]
    named += [(("paths", kind), kind) for kind in settings.paths]
    if named:
        # Only here: to know the sources takes loading them all.
        from store.sources.registry import all_sources

        known = {source.kind for source in all_sources()}
        yield from ((where, kind) for where, kind in named if kind not in known)


def _text_of(config: Config) -> str:
    """Return the file's text for its line numbers; nothing where it cannot be read again."""
    try:
        return read_regular(config.path).decode("utf-8")
    except (OSError, UnicodeDecodeError):
        return ""
