"""What is masked on the screen while a screen is shown to others; nothing until it is turned on.

The app turns it on and off. What draws a session's texts asks ``shown`` and ``shown_value``; the
guard masks what was forgotten, row by row.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, overload

    from store.sharing.masks import Masking, Masks

_masks: Masks | None = None
_row_masks: Masks | None = None
"""For rows, which may begin within a path: they leave the names in paths alone."""


def mask_view(masking: Masking | None) -> None:
    """Mask what is drawn from now on; None shows it as it is.

    Raises:
        BadRule: An own rule cannot be used.
    """
    global _masks, _row_masks
    if masking is None:
        _masks = _row_masks = None
        return
    from dataclasses import replace

    from store.sharing.masks import Masks

    _masks, _row_masks = Masks(masking), Masks(replace(masking, home=False))


def view_masking() -> Masking | None:
    """Return what is masked in what is drawn; None where nothing is."""
    return None if _masks is None else _masks.masking


def is_view_masked() -> bool:
    """Return whether what is drawn is masked."""
    return _masks is not None


if TYPE_CHECKING:

    @overload
    def shown(text: str) -> str: ...
    @overload
    def shown(text: str | None) -> str | None: ...


def shown(text: str | None) -> str | None:
    """Return a text as it is drawn."""
    return text if _masks is None or not text else _masks.mask(text)


def shown_value(value: dict[str, Any]) -> dict[str, Any]:
    """Return an object of JSON as it is drawn."""
    if _masks is None:
        return value
    masked: dict[str, Any] = _masks.mask_json(value)
    return masked


def shown_json(text: str) -> str:
    """Return JSON in a text as it is drawn: the same where nothing of it is masked."""
    if _masks is None:
        return text
    from store.text.exact_json import NotJson, decode, encode

    try:
        value = decode(text)
    except NotJson:
        return _masks.mask(text)
    masked = _masks.mask_json(value)
    return text if masked == value else encode(masked)


def covered(text: str) -> str:
    """Return a row of the screen in which dots of the same number cover what is masked."""
    if _row_masks is None or len(text) < 8:
        return text
    for secret in _row_masks.find(text):
        text = text[: secret.start] + "•" * (secret.end - secret.start) + text[secret.end :]
    return text
