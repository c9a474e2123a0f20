"""Hides passwords of URLs in text for people and logs.

Misplaced ones too: as the port, in the query, with characters that end the URL early, or in a
URL where something else was expected.
"""

from __future__ import annotations

import re

HIDDEN = "***"
_URL = r"\b[A-Za-z][A-Za-z0-9+.-]*:/{1,2}"
_USER = re.compile(rf"({_URL}[^\s:@/]*:)\S*(@)")
_PORT = re.compile(rf"({_URL}[^\s:@/,\[\]]+:)(?!\d+(?:[/?#,\s'\"]|$))[^\s@/?#'\",*]+")
_QUERY = re.compile(r"([?&;](?:\w*pass(?:word|wd)?|pwd|secret|token)=)[^\s&;'\"]+", re.IGNORECASE)


def masked(text: str) -> str:
    """Return a text with the passwords of its URLs replaced by ``***``."""
    if ":/" not in text:
        return text
    text = _USER.sub(rf"\1{HIDDEN}\2", text)
    text = _PORT.sub(rf"\1{HIDDEN}", text)
    return _QUERY.sub(rf"\1{HIDDEN}", text)
