"""Who is let in: one-time links, the visitors that used one, and the names that are answered to."""

from __future__ import annotations

import hmac
import ipaddress
import secrets
import socket
from typing import NamedTuple

SECRET_BYTES = 32
MOST_VISITORS = 64
"""Browsers that are let in before the one that came first has to take a new link."""


class Visitor(NamedTuple):
    """A browser that has used a link.

    Attributes:
        cookie: What it sends with each request.
        key: What its pages name to open the terminal. A cookie is sent to every port of a host,
            so that another server on this machine could learn it; the key stays in the storage
            of the page's own origin.
    """

    cookie: str
    key: str


class Gate:
    """One-time links and visitors; all of it is only in this process's memory."""

    def __init__(self) -> None:
        """Start without a link and without visitors."""
        self._token: str | None = None
        self._visitors: list[Visitor] = []

    def new_token(self) -> str:
        """Return the token of a new link; an unused one before it is no longer valid."""
        self._token = secrets.token_urlsafe(SECRET_BYTES)
        return self._token

    def exchange(self, token: str) -> Visitor | None:
        """Return a new visitor for the token of the present link, which is then used up.

        None for any other token.
        """
        if self._token is None or not same(token, self._token):
            return None
        self._token = None
        visitor = Visitor(secrets.token_urlsafe(SECRET_BYTES), secrets.token_urlsafe(SECRET_BYTES))
        self._visitors = [*self._visitors, visitor][-MOST_VISITORS:]
        return visitor

    def visitor(self, cookie: str) -> Visitor | None:
        """Return the visitor with a cookie, None where nobody has it."""
        known = [visitor for visitor in self._visitors if same(cookie, visitor.cookie)]
        return known[0] if known else None


def same(given: str, wanted: str) -> bool:
    """Return whether two secrets are equal, in a time that does not depend on where they differ."""
    return hmac.compare_digest(given.encode("utf-8", "replace"), wanted.encode())


def is_loopback(address: str) -> bool:
    """Return whether an address, or each address that a name has, is of this machine alone."""
    try:
        found = {entry[4][0] for entry in socket.getaddrinfo(address, None)}
    except OSError:
        return False
    return bool(found) and all(
        ipaddress.ip_address(str(one).partition("%")[0]).is_loopback for one in found)


def is_any(address: str) -> bool:
    """Return whether an address means every network of this machine."""
    try:
        return ipaddress.ip_address(address).is_unspecified
    except ValueError:
        return False


def shown_host(address: str) -> str:
    """Return how a URL names an address."""
    return f"[{address}]" if ":" in address else address


def names_of(listened: str, reached: str, port: int) -> frozenset[str]:
    """Return the ``Host`` headers that are answered.

    A page of another site that has its name resolve to this machine sends that name, and is
    refused (DNS rebinding).

    Args:
        listened: The address or name of ``--listen``.
        reached: The address that the connection came in on.
        port: The port.
    """
    mapped = ipaddress.ip_address(reached.partition("%")[0])
    if isinstance(mapped, ipaddress.IPv6Address) and mapped.ipv4_mapped is not None:
        reached = str(mapped.ipv4_mapped)
    names = {reached}
    if is_any(listened):
        names.add(socket.gethostname().lower())
    else:
        names.add(listened.lower())
    if is_loopback(reached):
        names.add("localhost")
    return frozenset(f"{shown_host(name)}:{port}" for name in names) | (
        frozenset(shown_host(name) for name in names) if port == 80 else frozenset())
