"""Keys of other keyboard layouts: a letter acts by its position, whatever it prints.

Only letters have twins: on those layouts the keys of punctuation hold other punctuation,
and the same character would then mean two things.
"""

from __future__ import annotations

_LATIN = "qwertyuiopasdfghjklzxcvbnmQWERTYUIOPASDFGHJKLZXCVBNM"
_LAYOUTS = (
    "йцукенгшщзфывапролдячсмитьЙЦУКЕНГШЩЗФЫВАПРОЛДЯЧСМИТЬ",  # Russian
    "йцукенгшщзфівапролдячсмитьЙЦУКЕНГШЩЗФІВАПРОЛДЯЧСМИТЬ",  # Ukrainian
    ";ςερτυθιοπασδφγηξκλζχψωβνμ:΅ΕΡΤΥΘΙΟΠΑΣΔΦΓΗΞΚΛΖΧΨΩΒΝΜ",  # Greek
)


def _twins() -> dict[str, tuple[str, ...]]:
    twins: dict[str, tuple[str, ...]] = {}
    for position, latin in enumerate(_LATIN):
        others = dict.fromkeys(layout[position] for layout in _LAYOUTS)
        twins[latin] = tuple(other for other in others if other.isalpha())
    return twins


TWINS: dict[str, tuple[str, ...]] = _twins()
"""For each Latin letter, what the same physical key prints on Cyrillic and Greek layouts."""


def with_twins(keys: tuple[str, ...]) -> tuple[str, ...]:
    """Return the keys and, after them, the twins of each that is a single letter."""
    found = dict.fromkeys(keys)
    for key in keys:
        for twin in TWINS.get(key, ()):
            found.setdefault(twin)
    return tuple(found)


_LATIN_OF = {twin: latin for latin, twins in TWINS.items() for twin in twins}


def latin(key: str) -> str:
    """Return the Latin letter on the same physical key; any other key as it is."""
    return _LATIN_OF.get(key, key)
