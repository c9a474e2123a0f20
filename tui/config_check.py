"""What only the app can say of a config: whether the commands and themes it names exist."""

from __future__ import annotations

from collections.abc import Collection

from store.config import Config, Mistake, line_of
from tui.commands.registry import BY_ID

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
    theme = config.ui.theme
    if theme is not None and theme not in themes and theme not in CHOSEN_BY_ITSELF:
        at = line_of(text, ("ui", "theme"))
        found.append(Mistake(config.path, at, f"ui.theme: there is no theme {theme}"))
    return found


def _text_of(config: Config) -> str:
    """Return the file's text for its line numbers; nothing where it cannot be read again."""
    try:
        return config.path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        return ""
