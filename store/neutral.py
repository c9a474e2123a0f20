"""Makes text that comes from a session harmless to a terminal.

Escapes, C0 and C1 controls, bidi overrides and line separators become visible stand-ins.
The one place that decides this: drawing, copying and exporting all go through it.
"""

from __future__ import annotations

_KEPT = {0x09, 0x0A}
_BIDI_AND_SEPARATORS = (
    *range(0x202A, 0x202F), *range(0x2066, 0x206A), 0x200E, 0x200F, 0x061C, 0x2028, 0x2029, 0xFEFF,
)
_TABLE: dict[int, int] = {
    **{code: 0x2400 + code for code in range(0x20) if code not in _KEPT},
    0x7F: 0x2421,
    **{code: 0xFFFD for code in range(0x80, 0xA0)},
    **{code: 0xFFFD for code in _BIDI_AND_SEPARATORS},
    **{code: 0xFFFD for code in range(0xD800, 0xE000)},
}


def neutral(text: str) -> str:
    """Return the text with newlines and tabs kept and every other control made visible.

    A carriage return before a newline is dropped; lone surrogates become U+FFFD.
    """
    if text.isprintable():
        return text
    return text.replace("\r\n", "\n").translate(_TABLE)
