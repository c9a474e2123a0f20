"""Text and addresses of any origin as HTML that shows them and does nothing."""

from __future__ import annotations

import re
from html import escape
from urllib.parse import urlsplit

from store.text.neutral import neutral

LONGEST_ADDRESS = 2_000
_ADDRESS = re.compile(r"https?://[^\s<>\"'`{}|\\^\[\]]+", re.IGNORECASE)
_AFTER = ".,;:!?'\")*_~"
"""What follows an address in a sentence and is no part of it."""
_SCHEMES = ("http", "https", "mailto")


def shown(text: object) -> str:
    """Return text as HTML, with its controls visible; also for attributes in quotes."""
    return escape(neutral(str(text)))


def safe_address(address: str) -> str | None:
    """Return an address that a page may link to; None for any other.

    Only ``http:``, ``https:`` and ``mailto:``, without a password or name before the host, and
    without anything that ``neutral`` replaces.
    """
    if len(address) > LONGEST_ADDRESS or neutral(address) != address or re.search(r"\s", address):
        return None
    try:
        parts = urlsplit(address)
    except ValueError:
        return None
    if parts.scheme.lower() not in _SCHEMES:
        return None
    if parts.scheme.lower() == "mailto":
        return address if parts.path and not parts.netloc else None
    return address if parts.hostname and "@" not in parts.netloc else None


def link(address: str, content: str) -> str:
    """Return a link, or only its content where the address is not safe.

    Args:
        address: As the session has it.
        content: HTML.
    """
    safe = safe_address(address)
    if safe is None:
        return content
    return f'<a href="{escape(safe)}" rel="noopener noreferrer nofollow">{content}</a>'


def linked(text: str) -> str:
    """Return plain text as HTML with the web addresses in it as links."""
    text = neutral(text)
    pieces, done = [], 0
    for found in _ADDRESS.finditer(text):
        address = found[0].rstrip(_AFTER)
        pieces += [escape(text[done : found.start()]), link(address, escape(address))]
        done = found.start() + len(address)
    return "".join([*pieces, escape(text[done:])])
