"""URLs of database servers that contain sessions.

A password in a URL is kept apart from the text that is shown, stored and compared; only the
driver gets it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TypeAlias
from urllib.parse import parse_qsl, quote, unquote, urlencode, urlsplit

from store.errors import StoreError
from store.system.paths import expanded
from store.text.masking import HIDDEN, SECRET_NAME, masked, secrets_in

SCHEMES = ("postgresql", "postgres")
_SECRET = re.compile(rf"(?i){SECRET_NAME}")
_WITHIN = re.compile(rf"(?i)(?:^|\W){SECRET_NAME}\s*=|://[^@]*@")
"""A password that is named within another value, or a URL that may have one."""
_OF_OTHERS = re.compile(r"(?i)((?:jdbc:)?(?!sqlite|file)[a-z][\w+.-]+):/")
"""The scheme of a name that was meant for the URL of some server."""
_WITHOUT_SCHEME = re.compile(r"[^\s/\\:@]+:[^\s/\\@]+@[\w.\[-][^\s/\\@]*(?:/|$)")
"""A name that was meant for a URL, with a login and no scheme; a path begins with ``./`` then."""
_SETTING = re.compile(r"(?:(?:-c\s*|--)(?:\\.|[^\s\\])+|\S+)\s*", re.S)
"""One of a server's ``options``."""
MARK = "#server="
"""Before the identity of a database, in the name of one whose URL led to another one before."""
_SSL_MODES = {"true": "require", "1": "require", "false": "disable", "0": "disable"}
_NOT_FOR_US = frozenset((
    "async_fallback", "channel_binding", "client_encoding", "command_timeout", "connect_timeout",
    "fallback_application_name", "application_name", "gssencmode", "keepalives",
    "keepalives_count", "keepalives_idle", "keepalives_interval", "prepared_statement_cache_size",
    "prepared_statement_name_func", "statement_cache_size", "tcp_user_timeout", "timeout",
))  # fmt: skip
"""Parameters of libpq's and SQLAlchemy's URLs that change nothing of what is read."""
_PASSWORDS = ("password", "passwd", "sslpassword", "pgpassword")
_DEMANDS = {"channel_binding": "require", "gssencmode": "require"}
"""Values with which one of these asks for more safety, which the driver does not give."""
FOR_THE_DRIVER = frozenset((
    "krbsrvname", "gsslib", "options", "ssl_max_protocol_version", "ssl_min_protocol_version",
    "sslcert", "sslcrl", "sslkey", "sslmode", "sslnegotiation", "sslpassword", "sslrootcert",
    "target_session_attrs",
))  # fmt: skip
"""Parameters that the driver takes as they are."""
UNDERSTOOD = FOR_THE_DRIVER | frozenset((
    "database", "dbname", "host", "hostaddr", "passfile", "passwd", "password", "port", "schema",
    "search_path", "service", "servicefile", "user",
))  # fmt: skip
_RENAMED = {"currentschema": "schema", "username": "user", "pgpassword": "password"}
"""Parameters of other clients, and what PostgreSQL's own call them."""
_JDBC = re.compile(r"(?i)jdbc:postgresql:(?!//)/?")
_KEYWORD = re.compile(r"\s*(\w+)\s*=")
_PAIR = re.compile(r"\s*(\w+)\s*=\s*('(?:[^'\\]|\\.)*'|(?:[^\s'\\]|\\.)*)(?=\s|$)", re.S)


@dataclass(frozen=True, slots=True)
class ServerUrl:
    """A database on a server.

    Attributes:
        text: The URL without its password; what is shown and stored.
        dsn: The URL with its password; what is connected to.
        fault: Why it cannot be used, or None.
        named: The URL without its password as it was named now, where the library knows the
            database by another one; None where it is ``text``.
    """

    text: str
    dsn: str = field(repr=False, compare=False)
    fault: str | None = field(default=None, compare=False)
    named: str | None = field(default=None, compare=False)

    def __str__(self) -> str:
        """Return the URL without its password."""
        return self.text

    @property
    def has_password(self) -> bool:
        """Whether the URL contains a password."""
        return bool(_secrets_of(self.dsn))

    @property
    def left_out(self) -> str:
        """What to say of parameters that are not understood and have no effect; mostly nothing."""
        given = parse_qsl(urlsplit(self.dsn).query, keep_blank_values=True)
        names = list(dict.fromkeys(name for name, _ in given if name not in UNDERSTOOD))
        if not names:
            return ""
        what = "parameters" if len(names) > 1 else "parameter"
        verb = "are" if len(names) > 1 else "is"
        return f"the {what} {', '.join(names)} {verb} not understood and left out"

    def known_as(self, text: str) -> ServerUrl:
        """Return the same database under the URL by which a library knows it."""
        named = None if text == self.text else self.named or self.text
        return ServerUrl(text, self.dsn, self.fault, named)

    def without_secrets(self, words: str) -> str:
        """Return a text with this URL's passwords replaced by ``***``."""
        for secret in _secrets_of(self.dsn):
            words = without(words, secret)
        return words


_LONG = 6
"""Characters from which on a password is part of no other word by chance."""


def without(words: str, secret: str) -> str:
    """Return a text with a password replaced by ``***``.

    One that is short is replaced where it stands by itself: within other words, what is left of
    them would tell it.

    Args:
        words: The text.
        secret: The password; nothing is replaced where it is empty.
    """
    if not secret or len(secret) >= _LONG:
        return words.replace(secret, HIDDEN) if secret else words
    before = r"(?<!\w)" if secret[0].isalnum() else ""
    after = r"(?!\w)" if secret[-1].isalnum() else ""
    return re.sub(f"{before}{re.escape(secret)}{after}", HIDDEN, words)


Root: TypeAlias = Path | ServerUrl
"""Where a source's sessions are: a file or folder, or a database on a server."""


class ServerTrouble(StoreError):
    """A server cannot be read, or has no sessions.

    Attributes:
        reason: The message without the URL.
        is_refusal: Whether it refuses the login, so that trying often makes it worse.
    """

    def __init__(self, url: ServerUrl, reason: str, *, is_refusal: bool = False) -> None:
        """Make the error.

        Args:
            url: The server.
            reason: What is wrong; passwords of the URL are removed from it.
            is_refusal: Whether it refuses the login.
        """
        self.reason = url.without_secrets(reason)
        self.is_refusal = is_refusal
        super().__init__(f"{url.named or url} {self.reason}")


def server_url(name: str) -> ServerUrl | None:
    """Return a parsed URL such as ``postgresql://user@host/database``; None for other names.

    psql's other form (``service=team``, ``host=db dbname=hub``), SQLAlchemy's spelling with a
    driver (``postgresql+asyncpg://``) and JDBC's (``jdbc:postgresql://``, which leaves the slashes
    out where no host is named) are accepted too.
    """
    name, mark, identity = name.partition(MARK)
    if mark:
        found = server_url(name)
        return None if found is None else replace(found, text=f"{found}{mark}{identity}")
    if _is_of_pairs(name):
        return _from_pairs(name)
    scheme, slashes, rest = _JDBC.sub("postgresql:///", name.strip()).partition("://")
    scheme = scheme.lower().removeprefix("jdbc:")
    if not slashes or scheme.partition("+")[0] not in SCHEMES:
        if _WITHOUT_SCHEME.match(name.strip()):
            return _faulty(
                "has no scheme: write postgresql://user@host/database, or ./ before a path")
        other = _OF_OTHERS.match(name.strip())
        if other is not None and masked(name) != name:
            # A folder of that name would be made, with the password in it.
            return _faulty(
                "is no URL of a store: write postgresql://user@host/database", other[1].lower())
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
    return _made(user, f"{hosts}{parts.path}", parse_qsl(parts.query, keep_blank_values=True))


def _is_of_pairs(name: str) -> bool:
    """Return whether a name is made of pairs with a keyword that is known; the first may be new."""
    found = _KEYWORD.match(name)
    while found is not None and found[1] not in UNDERSTOOD and found[1] not in _NOT_FOR_US:
        pair = _PAIR.match(name, found.start())
        found = None if pair is None else _KEYWORD.match(name, pair.end())
    return found is not None


def _from_pairs(name: str) -> ServerUrl:
    """Return the URL for ``keyword=value`` pairs, as psql takes them."""
    pairs, end = list[tuple[str, str]](), 0
    while name[end:].strip():
        found = _PAIR.match(name, end)
        if found is None or _holds_more(*found.groups()):
            return _faulty(
                "cannot be read: write it as keyword=value, with spaces between two, and a value"
                " with spaces in '…'")
        value = found[2][1:-1] if found[2].startswith("'") else found[2]
        pairs.append((found[1], re.sub(r"\\(.)", r"\1", value)))
        end = found.end()
    values = dict(pairs)
    user, password = quote(values.pop("user", ""), safe=""), values.pop("password", "")
    login = f"{user}:{quote(password, safe='')}" if password else user
    host, where = values.get("host", ""), ""
    if host and "," not in host and not host.startswith(("/", "@")):
        port = values.pop("port", "")
        where = f"[{host}]" if ":" in host else quote(values["host"], safe="")
        where += f":{port}" if port else ""
        del values["host"]
    database = quote(values.pop("dbname", ""), safe="")
    return _made(login, f"{where}/{database}" if database else where, list(values.items()))


def _holds_more(name: str, value: str) -> bool:
    """Return whether a value may hold another one, such as the password of ``host=h;password=p``.

    Args:
        name: What it is of.
        value: As it was written.
    """
    return not value.startswith("'") and not _SECRET.fullmatch(name) and (
        ";" in value or "://" in value)


def _made(login: str, where: str, given: list[tuple[str, str]]) -> ServerUrl:
    """Return a URL of its parts.

    Args:
        login: The user, with a password where one is named.
        where: The hosts and the database.
        given: The parameters.
    """
    options = _options(given)
    shown = [(key, _without_secrets(value) if key == "options" else value)
             for key, value in options if not _SECRET.fullmatch(key) and not _is_mistyped(key)]
    shown = [(key, value) for key, value in shown if value or key != "options"]
    user = login.partition(":")[0]
    if any(map(_WITHIN.search, (unquote(user), unquote(where), *(value for _, value in shown)))):
        return _faulty("cannot be read: a password in it stands within another value")
    text = f"postgresql://{user}@{where}" if user else f"postgresql://{where}"
    dsn = f"postgresql://{login}@{where}" if login else f"postgresql://{where}"
    return ServerUrl(text + _query(shown), dsn + _query(options))


def _is_mistyped(name: str) -> bool:
    """Return whether a parameter that has no effect may have been meant for a password."""
    if name in UNDERSTOOD:
        return False
    from difflib import get_close_matches  # Few URLs have such a parameter.

    return bool(get_close_matches(name.lower(), _PASSWORDS, cutoff=0.7))


def _without_secrets(options: str) -> str:
    """Return the settings of a server's ``options``, without those that are passwords."""
    if masked(options) == options:
        return options
    # A word by itself may be the rest of a password with a space in it.
    return "".join(each for each in _SETTING.findall(options)
                   if each.startswith("-") and masked(each) == each).rstrip()


def as_root(name: str | Path) -> Root:
    """Return the root for a path or URL named by a user; ``~`` is expanded."""
    url = server_url(name) if isinstance(name, str) else None
    return url if url is not None else expanded(name)


def _is_port(host: str) -> bool:
    """Return whether a host has no port or a valid one."""
    name, colon, port = host.rpartition(":")
    return not colon or name.count("[") > name.count("]") or port == "" or port.isdecimal()


def _faulty(fault: str, scheme: str = "postgresql") -> ServerUrl:
    return ServerUrl(f"{scheme}://…", "", fault)


def _options(given: list[tuple[str, str]]) -> list[tuple[str, str]]:
    found = []
    for name, value in given:
        key = _RENAMED.get(name.strip().lower(), name.strip())
        if key == "ssl":
            key, value = "sslmode", _SSL_MODES.get(value.lower(), value)
        if key not in _NOT_FOR_US or value == _DEMANDS.get(key):
            found.append((key, value))
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
    for key, value in parse_qsl(parts.query):
        is_secret = _SECRET.fullmatch(key) or _is_mistyped(key)
        found |= {value} if is_secret else {*secrets_in(value)}
    return sorted((one for one in found if one), key=len, reverse=True)
