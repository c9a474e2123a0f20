"""Hides passwords of URLs and of ``host=… password=…`` in text for people and logs.

Misplaced ones too: as the port, in the query, with characters that end the URL early, or in a
URL where something else was expected.
"""

from __future__ import annotations

HIDDEN = "***"
SECRET_NAME = (
    r"(?:\w*pass(?:word|wd|phrase|code)?|\w*pwd|\w*secret|\w*token|\w*api_?key|scram_\w+_key)")
"""Of a parameter or a setting whose value is not shown, in any case of letters."""
# Compiled when a text may have a URL, which nothing has that is shown first.
_URL = r"\b[A-Za-z][A-Za-z0-9+.-]*:/{1,2}"
_USER = rf"({_URL}[^\s:@/]*:)\S*(@)"
_PORT = rf"({_URL}[^\s:@/,\[\]]+:)(?!\d+(?:[/?#,\s'\"]|$))[^\s@/?#'\",*]+"
_KEY = rf"(?i)(\b{SECRET_NAME}(?:\s*=\s*|%3D))"
_PAIR = _KEY + r"""('(?:[^'\\]|\\.)*'?[^\s&;'",]*|"[^"]*"?|(?:\\+.|[^\s&;'",\\])+)"""
_BARE = r"(?i)(\bpostgres(?:ql)?(?::|//)[^\s:@/]*:)\S*(@)"
_THIN = r"(?i)(\bjdbc:[a-z]+:[a-z]*:@?[^\s:@/]*/)[^\s@]*(?=@)"
_QUERY = r"(?i)([?&;](?:\w*pass(?:word|wd)?|pwd|secret|token)=)[^\s&;'\"]+"


def masked(text: str) -> str:
    """Return a text with the passwords of its URLs and logins replaced by ``***``."""
    if "=" not in text and ":" not in text:
        return text
    import re  # Here, as above: what is shown first has none of these.

    if "=" in text:
        text = re.sub(_PAIR, rf"\1{HIDDEN}", text)
    if "jdbc:" in text:
        text = re.sub(_THIN, rf"\1{HIDDEN}", text)
    if "postgres" in text:
        text = re.sub(_BARE, rf"\1{HIDDEN}\2", text)
    if ":/" not in text:
        return text
    text = re.sub(_USER, rf"\1{HIDDEN}\2", text)
    text = re.sub(_PORT, rf"\1{HIDDEN}", text)
    return re.sub(_QUERY, rf"\1{HIDDEN}", text)


def secrets_in(text: str) -> list[str]:
    """Return the values of parameters and settings that ``masked`` hides, without their quotes."""
    import re

    found = [pair[2] for pair in re.finditer(_PAIR, text)]
    return [re.sub(r"\\(.)", r"\1", each.strip("'\"")) for each in found]
