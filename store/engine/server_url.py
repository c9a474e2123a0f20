"""URLs of database servers that contain sessions.

A password in a URL is kept apart from the text that is shown, stored and compared; only the
driver gets it.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeAlias
from urllib.parse import parse_qsl, unquote, urlencode, urlsplit

from store.errors import StoreError
from store.system.paths import expanded

SCHEMES = ("postgresql", "postgres")
_SECRET = ("password", "sslpassword")
_HIDDEN = "***"
_SSL_MODES = {"true": "require", "1": "require", "false": "disable", "0": "disable"}
_NOT_FOR_US = frozenset((
    "async_fallback", "channel_binding", "client_encoding", "command_timeout", "connect_timeout",
    "fallback_application_name", "application_name", "gssencmode", "keepalives",
    "keepalives_count", "keepalives_idle", "keepalives_interval", "prepared_statement_cache_size",
    "prepared_statement_name_func", "statement_cache_size", "timeout",
))  # fmt: skip
"""Parameters of libpq's and SQLAlchemy's URLs that the server would refuse as settings."""


@dataclass(frozen=True, slots=True)
class ServerUrl:
    """A database on a server.

    Attributes:
        text: The URL without its password; what is shown and stored.
        dsn: The URL as the driver takes it.
        fault: Why it cannot be used, or None.
    """

    text: str
    dsn: str = field(repr=False, compare=False)
    fault: str | None = field(default=None, compare=False)

    def __str__(self) -> str:
        """Return the URL without its password."""
        return self.text

    @property
    def has_password(self) -> bool:
        """Whether the URL contains a password."""
        return bool(_secrets_of(self.dsn))

    def without_secrets(self, words: str) -> str:
        """Return a text with this URL's passwords replaced by ``***``."""
        for secret in _secrets_of(self.dsn):
            words = words.replace(secret, _HIDDEN)
        return words


Root: TypeAlias = Path | ServerUrl
"""Where a source's sessions are: a file or folder, or a database on a server."""


class ServerTrouble(StoreError):
    """A server cannot be read, or has no sessions.

    Attributes:
        reason: The message without the URL.
    """

    def __init__(self, url: ServerUrl, reason: str) -> None:
        """Make the error; passwords are removed from the reason."""
        self.reason = url.without_secrets(reason)
        super().__init__(f"{url} {self.reason}")


def server_url(name: str) -> ServerUrl | None:
    """Return a parsed URL such as ``postgresql://user@host/database``; None for other names.

    SQLAlchemy's spelling with a driver (``postgresql+asyncpg://``) is accepted too.
    """
    scheme, slashes, rest = name.strip().partition("://")
    if not slashes or scheme.lower().partition("+")[0] not in SCHEMES:
        return None
    try:
        parts = urlsplit(f"postgresql://{rest}")
    except ValueError:
        return _faulty("is not a valid URL")
    user, _, hosts = parts.netloc.rpartition("@")
    if "@" in parts.path or parts.fragment or (not user and "@" in parts.query):
        # Any text shown of it may contain part of the password.
        return _faulty("cannot be read: write / ? # @ of its password as %2F %3F %23 %40")
    if any(not _is_port(host) for host in hosts.split(",")):
        # It may be "host:password" instead of "user:password@host".
        return _faulty("cannot be read: its port is not a number; write user:password@host:port")
    options = _options(parts.query)
    shown = [(key, value) for key, value in options if key not in _SECRET]
    where = f"{hosts}{parts.path}"
    login = user.partition(":")[0]
    text = f"postgresql://{login}@{where}" if login else f"postgresql://{where}"
    dsn = f"postgresql://{user}@{where}" if user else f"postgresql://{where}"
    return ServerUrl(text + _query(shown), dsn + _query(options))


def as_root(name: str | Path) -> Root:
    """Return the root for a path or URL named by a user; ``~`` is expanded."""
    url = server_url(name) if isinstance(name, str) else None
    return url if url is not None else expanded(name)


def _is_port(host: str) -> bool:
    """Return whether a host has no port or a valid one."""
    name, colon, port = host.rpartition(":")
    return not colon or name.count("[") > name.count("]") or port == "" or port.isdecimal()


def _faulty(fault: str) -> ServerUrl:
    return ServerUrl("postgresql://…", "", fault)


def _options(query: str) -> list[tuple[str, str]]:
    found = []
    for key, value in parse_qsl(query, keep_blank_values=True):
        if key == "ssl":
            key, value = "sslmode", _SSL_MODES.get(value.lower(), value)
        if key.strip() not in _NOT_FOR_US:
            found.append((key.strip(), value))
    return found


def _query(options: list[tuple[str, str]]) -> str:
    return "?" + urlencode(options, safe="/") if options else ""


def _secrets_of(dsn: str) -> list[str]:
    """Return the passwords of a URL, encoded and decoded, the longest first."""
    if not dsn:
        return []
    parts = urlsplit(dsn)
    password = parts.netloc.rpartition("@")[0].partition(":")[2]
    found = {password, unquote(password)}
    found |= {value for key, value in parse_qsl(parts.query) if key in _SECRET}
    return sorted((one for one in found if one), key=len, reverse=True)
