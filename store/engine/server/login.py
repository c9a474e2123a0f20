"""What a URL, a service and the environment say about a login, as the driver takes it.

Source: PostgreSQL's manual, "Database Connection Control Functions", "The Connection Service
File" and "The Password File". What the URL says comes first, then its service, then the
environment, which the driver reads by itself.
"""

from __future__ import annotations

import os
import re
import ssl
import stat
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import zip_longest
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, unquote, urlencode, urlsplit

from store.engine.dialect import quoted
from store.engine.server.addresses import Addresses
from store.engine.server_url import FOR_THE_DRIVER, UNDERSTOOD, ServerTrouble, ServerUrl, without
from store.system.paths import expanded, read_regular

SETTINGS = {"application_name": "backscroll", "standard_conforming_strings": "on"}
"""Of each connection, whatever the role and its database have; poolers know these two."""
_UNVERIFIED = "no-verify"
"""node-postgres' word for TLS whose certificate may be anybody's."""
_SYSTEM_FOLDERS = ("/etc/postgresql-common", "/etc")
_TARGETS = ("any", "read-write", "read-only", "primary", "standby", "prefer-standby")
"""What ``target_session_attrs`` may be."""
_OPEN_TO_OTHERS = stat.S_IRWXG | stat.S_IRWXO
_TLS_FILES = ("sslrootcert", "sslcert", "sslkey", "sslcrl")
_NO_PASSWORD = " (none is in the URL, and none is kept; ~/.pgpass and PGPASSWORD serve as well)"
_NO_NAMED_FILE = " (none is in the URL, and there is no file {}; PGPASSWORD serves as well)"
_NONE_IN_FILE = " (none is in the URL, and {} has none for this login; PGPASSWORD serves as well)"
_NAMES = re.compile(r'"((?:[^"]|"")*)"|\'((?:[^\']|\'\')*)\'|([^\s,"\'][^,]*)')
"""Of a search path: in double quotes, in single ones, or in none."""
_NO_FILE = os.path.join(os.devnull, "none")
"""A password file that is not there."""


@dataclass(frozen=True, slots=True)
class Login:
    """How a database is connected to.

    Attributes:
        arguments: For ``asyncpg.connect``.
        search_path: As ``SET search_path`` takes it; empty for the server's own.
        secret: The password, to keep it out of messages.
        password_hint: What to say where the server refuses the password, or wants one; empty
            where the URL or its service has it.
        addresses: Those of hosts that are not looked up, by the host's name.
    """

    arguments: dict[str, Any] = field(repr=False)
    search_path: str
    secret: str = field(default="", repr=False)
    password_hint: str = ""
    addresses: Addresses = field(default_factory=dict)

    def without_secrets(self, words: str) -> str:
        """Return a text without the password."""
        return without(words, self.secret)


def login_of(url: ServerUrl) -> Login:
    """Return how a URL's database is connected to.

    Raises:
        ServerTrouble: The URL cannot be used, or names a service or a file that is not there.
    """
    if url.fault is not None:
        raise ServerTrouble(url, url.fault)
    found = _resolved(url, os.environ)
    _require_target(
        url, found.get("target_session_attrs") or os.environ.get("PGTARGETSESSIONATTRS"))
    _require_files(url, found, os.environ)
    hosts, ports = _listed(found.get("host")), _listed(found.get("port"))
    addresses = _listed(found.get("hostaddr") or os.environ.get("PGHOSTADDR"))
    names = hosts or addresses
    known: dict[str, list[str]] = {}
    if addresses and hosts and _verifies_names(found):
        # A certificate is of the name.
        for host, address in zip(hosts, addresses, strict=False):
            known.setdefault(host, []).extend([address] if address else [])
    elif addresses:
        hosts = [address or name for address, name in zip_longest(addresses, names, fillvalue="")]
    arguments: dict[str, Any] = {"dsn": _dsn(found)}
    if hosts:
        arguments["host"] = hosts
    if ports:
        arguments["port"] = _ports(url, ports, len(hosts))
    user, database = found.get("user"), found.get("dbname") or found.get("database")
    if user:
        arguments["user"] = user
    if database:
        arguments["database"] = database
    password, hint = found.get("password") or found.get("passwd"), ""
    if not password and (password := os.environ.get("PGPASSWORD")):
        hint = " (the password is that of PGPASSWORD)"
    if not password:
        file = _password_file(found, os.environ)
        is_named = bool(found.get("passfile") or os.environ.get("PGPASSFILE"))
        hint = _NO_NAMED_FILE.format(file) if is_named else _NO_PASSWORD
        if os.path.exists(file):
            # The driver would print a warning, or fail at a line that is none.
            arguments["passfile"] = _NO_FILE
            hint = _NONE_IN_FILE.format(file)
        if _is_open_to_others(file):
            hint = f" ({file} is not used: others may read it; chmod 600 mends that)"
        elif password := _of_file(file, found, names, ports, os.environ):
            hint = f" (the password is that of {file})"
    if password:
        arguments["password"] = password
    if found.get("sslmode") == _UNVERIFIED:
        arguments["ssl"] = _unverified()
    elif found.get("sslrootcert") == "system":
        arguments["ssl"] = ssl.create_default_context()
    path = [one.strip() for one in found.get("schema", "").split(",") if one]
    path = path or schemas_of(found.get("search_path", ""))
    return Login(
        arguments, ", ".join(map(quoted, path)), password or "", hint, known,
    )  # fmt: skip


def _verifies_names(found: Mapping[str, str]) -> bool:
    mode = found.get("sslmode") or os.environ.get("PGSSLMODE")
    return mode == "verify-full" or found.get("sslrootcert") == "system"


def schemas_of(search_path: str) -> list[str]:
    """Return the names of the schemas on a search path, as the server knows them."""
    return [
        found[1].replace('""', '"') if found[1] is not None else
        found[2].replace("''", "'") if found[2] is not None else found[3].strip().lower()
        for found in _NAMES.finditer(search_path)
    ]


def url_address(url: ServerUrl) -> str:
    """Return the hosts and ports of a URL, without what does not tell servers apart."""
    found = _resolved(url, os.environ)
    hosts = found.get("hostaddr") or found.get("host") or os.environ.get("PGHOST", "localhost")
    return f"{hosts.lower()}:{found.get('port') or os.environ.get('PGPORT', '5432')}"


def _resolved(url: ServerUrl, environment: Mapping[str, str]) -> dict[str, str]:
    """Return the parameters of a URL and its service, by libpq's names."""
    parts = urlsplit(url.dsn)
    login, _, hosts = parts.netloc.rpartition("@")
    user, _, password = login.partition(":")
    found = {"user": unquote(user), "password": unquote(password)}
    found |= _hosts(hosts) | {"dbname": unquote(parts.path.removeprefix("/"))}
    found = {key: value for key, value in found.items() if value}
    found |= {key: value for key, value in parse_qsl(parts.query) if key in UNDERSTOOD}
    service = found.get("service") or environment.get("PGSERVICE")
    if not service:
        return found
    return {**_service(url, service, found.get("servicefile"), environment), **found}


def _hosts(text: str) -> dict[str, str]:
    """Return ``host`` and ``port`` of a URL's hosts, each a list with commas."""
    names, ports = [], []
    for one in text.split(",") if text else ():
        bracket = one.rfind("]")
        name, colon, port = one.rpartition(":") if one.rfind(":") > bracket else (one, "", "")
        names.append(unquote(name).strip("[]"))
        ports.append(port)
    return {"host": ",".join(names), "port": ",".join(ports) if any(ports) else ""}


def _listed(text: str | None) -> list[str]:
    return text.split(",") if text else []


def _ports(url: ServerUrl, ports: list[str], hosts: int) -> int | list[int]:
    """Return a port for all hosts, or one for each.

    Raises:
        ServerTrouble: One is no number.
    """
    if any(port and not port.isdecimal() for port in ports):
        raise ServerTrouble(url, "cannot be read: its port is not a number")
    found = [int(port or os.environ.get("PGPORT", "5432")) for port in ports]
    return found * hosts if len(found) == 1 and hosts > 1 else found if hosts > 1 else found[0]


def _dsn(found: Mapping[str, str]) -> str:
    """Return a URL with those parameters alone that only the driver understands."""
    left = {key: value for key, value in found.items() if key in FOR_THE_DRIVER and value}
    options = left.get("options") or os.environ.get("PGOPTIONS")
    if options:
        left["options"] = options
    if left.get("sslmode") == _UNVERIFIED:
        del left["sslmode"]
    if left.get("sslrootcert") == "system":
        left.pop("sslrootcert")
        left.pop("sslmode", None)
    return f"postgresql://?{urlencode(left)}" if left else "postgresql://"


def _unverified() -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return context


def _service(
    url: ServerUrl, name: str, file: str | None, environment: Mapping[str, str]
) -> dict[str, str]:
    """Return the parameters of a service.

    Args:
        url: For the error.
        name: The service.
        file: The file that the URL names, or None.
        environment: Names other files.

    Raises:
        ServerTrouble: No file has it.
    """
    own = file or environment.get("PGSERVICEFILE")
    folder = environment.get("PGSYSCONFDIR")
    folders = [folder] if folder else _SYSTEM_FOLDERS
    files = [expanded(own) if own else Path.home() / ".pg_service.conf"]
    files += [Path(one) / "pg_service.conf" for one in folders]
    for path in files:
        found = _section(path, name)
        if found is not None:
            return found
    raise ServerTrouble(url, f"cannot be read: no service {name!r} in {files[0]}")


def _section(path: Path, name: str) -> dict[str, str] | None:
    """Return the parameters of a section of a service file; None where there is none."""
    found: dict[str, str] | None = None
    try:
        lines = read_regular(path).decode("utf-8", "replace").splitlines()
    except OSError:
        return None
    for line in map(str.strip, lines):
        if line.startswith("["):
            if found is not None:
                return found
            found = {} if line == f"[{name}]" else None
        elif found is not None and line and not line.startswith("#"):
            key, equals, value = line.partition("=")
            if equals and value.strip():
                found.setdefault(key.strip(), value.strip())
    return found


def _require_target(url: ServerUrl, target: str | None) -> None:
    """Raise where ``target_session_attrs`` is another word; the driver's error has none of them.

    Raises:
        ServerTrouble: It is.
    """
    if target and target not in _TARGETS:
        raise ServerTrouble(url, (
            f"cannot be read: target_session_attrs is {target}, which is none of"
            f" {', '.join(_TARGETS)}"))


def _require_files(
    url: ServerUrl, found: Mapping[str, str], environment: Mapping[str, str]
) -> None:
    """Raise unless the files of TLS that are named are there.

    Args:
        url: For the error.
        found: The parameters of the URL and its service.
        environment: Names what the URL does not.

    Raises:
        ServerTrouble: One is not there; the driver's error would not name it.
    """
    if found.get("sslmode") in ("disable", _UNVERIFIED):
        return
    for name in _TLS_FILES:
        path = found.get(name) or environment.get(f"PG{name.upper()}")
        if path and path != "system" and not os.path.exists(path):
            raise ServerTrouble(
                url, f"cannot be connected to: there is no file {path}, which {name} names")


def _password_file(found: Mapping[str, str], environment: Mapping[str, str]) -> Path:
    named = found.get("passfile") or environment.get("PGPASSFILE")
    return expanded(named) if named else Path.home() / ".pgpass"


def _is_open_to_others(file: Path) -> bool:
    try:
        return file.is_file() and bool(file.stat().st_mode & _OPEN_TO_OTHERS)
    except OSError:
        return False


def _of_file(
    file: Path, found: Mapping[str, str], hosts: list[str], ports: list[str],
    environment: Mapping[str, str],
) -> str | None:
    """Return the password that the password file has for a login; None where it has none.

    Args:
        file: The password file.
        found: The parameters of the URL and its service.
        hosts: Their names, not their addresses.
        ports: One for all, or one for each.
        environment: Names what the URL does not.
    """
    try:
        if not file.is_file():
            return None
        lines = read_regular(file).decode("utf-8", "replace").splitlines()
    except OSError:
        return None
    user = found.get("user") or environment.get("PGUSER") or _system_user()
    database = found.get("dbname") or found.get("database") or environment.get("PGDATABASE") or user
    hosts = hosts or _listed(environment.get("PGHOST")) or ["localhost"]
    ports = ports or _listed(environment.get("PGPORT")) or ["5432"]
    for place, host in enumerate(hosts):
        port = ports[place] if place < len(ports) else ports[0]
        # A socket in the usual folder is localhost to psql, and to the driver any socket is.
        names = {host, "localhost"} if host.startswith("/") else {host}
        for entry in map(_fields, lines):
            if len(entry) == 5 and not entry[0].startswith("#") and all(
                own in ("*", *asked) for own, asked in
                zip(entry, (names, {port or "5432"}, {database}, {user}), strict=False)
            ):  # fmt: skip
                return entry[4]
    return None


def _system_user() -> str:
    from getpass import getuser

    try:
        return getuser()
    except (KeyError, OSError):
        return ""


def _fields(line: str) -> list[str]:
    """Return the fields of a password file's line; a backslash escapes ``:`` and itself."""
    return list(_split(line))


def _split(line: str) -> Iterator[str]:
    field, letters = "", iter(line)
    for letter in letters:
        if letter == "\\":
            field += next(letters, "")
        elif letter == ":":
            yield field
            field = ""
        else:
            field += letter
    yield field
