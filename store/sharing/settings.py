"""What is masked by the config: its choices, and its own rules with what is wrong in them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from store.errors import Refused
from store.sharing.masks import BadRule, Masking, checked_rule
from store.system.paths import read_regular

if TYPE_CHECKING:
    from store.config import Config, MaskSettings, Mistake


def masking_of(settings: MaskSettings) -> Masking:
    """Return what ``[masks]`` asks for; a rule that cannot be used fails when masks are made."""
    return Masking(
        emails=settings.emails, home=settings.home, own_rules=settings.rules,
        let_through=frozenset(settings.let_through))


def mistakes_in(config: Config) -> list[Mistake]:
    """Return the own rules that cannot be used, with their lines in the file."""
    from store.config import Mistake, line_of

    found: list[Mistake] = []
    for name, pattern in config.masks.rules.items():
        try:
            checked_rule(name, pattern)
        except BadRule as error:
            try:
                text = read_regular(config.path).decode("utf-8")
            except (OSError, UnicodeDecodeError):
                text = ""  # It was read a moment ago; the mistake is reported without its line.
            at = line_of(text, ("masks", "rules", name))
            found.append(Mistake(config.path, at, f"masks.rules: {error}"))
    return found


def checked_masking(config: Config) -> Masking:
    """Return what ``[masks]`` asks for.

    Raises:
        Refused: ``[masks]`` has a mistake: to share with a rule left out would let through what
            the rule is for.
    """
    wrong = [each for each in config.mistakes if "masks" in each.reason] + mistakes_in(config)
    if wrong:
        raise Refused(f"{wrong[0]}. Mend the config, or use --no-mask.")
    return masking_of(config.masks)
