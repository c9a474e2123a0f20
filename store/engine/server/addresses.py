"""Addresses of hosts that are not looked up, because a URL names them (``hostaddr``).

The driver knows one name of a host: it connects to it, and compares it with the certificate. So
its event loop answers with the address where it asks for that of a name.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from contextvars import ContextVar
from typing import Any, TypeAlias

Addresses: TypeAlias = Mapping[str, Sequence[str]]
"""By the name of a host."""
_NONE: Addresses = {}
_KNOWN: ContextVar[Addresses] = ContextVar("addresses", default=_NONE)


def use(addresses: Addresses) -> None:
    """Use addresses of hosts for what this task connects to from now on."""
    _KNOWN.set(addresses)


class AddressLoop(asyncio.SelectorEventLoop):
    """An event loop that looks up no host whose address is known."""

    async def getaddrinfo(self, host: Any, port: Any, **hints: Any) -> Any:
        """Return what the system says of a host, or of its addresses where these are known.

        Args:
            host: Its name.
            port: The port.
            hints: As of ``socket.getaddrinfo``.
        """
        found: list[Any] = []
        for one in _KNOWN.get().get(host) or (host,):
            found += await super().getaddrinfo(one, port, **hints)
        return found
