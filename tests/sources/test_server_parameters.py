"""What is connected to for a URL: services, addresses, password files, TLS."""

from __future__ import annotations

import asyncio
import socket
import ssl
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, quote, urlsplit

import pytest

from store.engine.server.addresses import AddressLoop, use
from store.engine.server.login import login_of
from store.engine.server.words import reason
from store.engine.server_url import ServerTrouble
from store.errors import StoreError
from store.sources.hub import HubSource
from tests.sources.postgres_server import GUARDED, PASSWORD, Database
from tests.sources.server_rows import drafts_of, url_of

SERVICES = """
# of the team
[team]
host=db.example.org
port=6432
user = reader
dbname=hub
password=s3rv1ce
sslmode=require

[other]
dbname=other
"""


@pytest.fixture(autouse=True)
def empty_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in ("HOST", "HOSTADDR", "PORT", "USER", "DATABASE", "PASSWORD", "PASSFILE", "SERVICE",
                 "SERVICEFILE", "SYSCONFDIR", "SSLMODE", "OPTIONS"):  # fmt: skip
        monkeypatch.delenv(f"PG{name}", raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / ".pg_service.conf").write_text(SERVICES)
    return tmp_path


def arguments(name: str) -> dict[str, Any]:
    found = dict(login_of(url_of(name)).arguments)
    given = dict(parse_qsl(urlsplit(found.pop("dsn")).query))
    return {**found, **given}


TEAM = {
    "host": ["db.example.org"], "port": 6432, "user": "reader", "database": "hub",
    "password": "s3rv1ce", "sslmode": "require",
}  # fmt: skip


@pytest.mark.parametrize("name", [
    "service=team", "postgresql:///?service=team", "postgresql://?service=team",
    " service = 'team'", "postgres:///?service=team&application_name=x",
    "service=team connect_timeout=3",
])  # fmt: skip
def test_a_service_in_every_form(name: str) -> None:
    assert arguments(name) == TEAM
    assert "s3rv1ce" not in str(url_of(name)) and "team" in str(url_of(name))


def test_the_url_comes_before_its_service_and_that_before_the_environment(
    monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PGPASSWORD", "of-the-environment")
    assert arguments("service=team dbname=mine user=me") == TEAM | {
        "database": "mine", "user": "me"}  # fmt: skip
    assert arguments("postgresql://h:1/db?service=other") == {
        "host": ["h"], "port": 1, "database": "db", "password": "of-the-environment"}  # fmt: skip


def test_services_of_other_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PGSERVICE", "team")
    assert arguments("postgresql://") == TEAM
    assert arguments("postgresql:///mine") == TEAM | {"database": "mine"}
    file = tmp_path / "mine.conf"
    file.write_text("[team]\nhost=elsewhere\n")
    monkeypatch.setenv("PGSERVICEFILE", str(file))
    assert arguments("postgresql://") == {"host": ["elsewhere"]}
    system = tmp_path / "system"
    system.mkdir()
    (system / "pg_service.conf").write_text("[all]\nhost=of-all\n")
    monkeypatch.setenv("PGSYSCONFDIR", str(system))
    assert arguments("service=all") == {"host": ["of-all"]}
    with pytest.raises(ServerTrouble, match="no service 'none' in .*mine.conf"):
        login_of(url_of("service=none"))


@pytest.mark.parametrize(
    ("name", "found"),
    [
        ("postgresql://h/db?hostaddr=10.0.0.1", {"host": ["10.0.0.1"], "database": "db"}),
        ("hostaddr=10.0.0.1 dbname=db", {"host": ["10.0.0.1"], "database": "db"}),
        ("postgresql://h/db?hostaddr=10.0.0.1&sslmode=verify-full",
         {"host": ["h"], "database": "db", "sslmode": "verify-full"}),
        ("postgresql://h1:1,h2:2/db", {"host": ["h1", "h2"], "port": [1, 2], "database": "db"}),
        ("postgresql://h1,h2/db?port=5", {"host": ["h1", "h2"], "port": [5, 5], "database": "db"}),
        ("postgresql://[::1]:7/db", {"host": ["::1"], "port": 7, "database": "db"}),
        ("host=::1 port=7 dbname=db", {"host": ["::1"], "port": 7, "database": "db"}),
        ("host=/run/pg dbname='a b' user=o\\'neil",
         {"host": ["/run/pg"], "database": "a b", "user": "o'neil"}),
        ("postgresql://%2Frun%2Fpg/db", {"host": ["/run/pg"], "database": "db"}),
        ("postgresql:///?host=/run/pg&dbname=db&user=me",
         {"host": ["/run/pg"], "database": "db", "user": "me"}),
        ("jdbc:postgresql://h:1/db?user=me&password=pw&ssl=true",
         {"host": ["h"], "port": 1, "database": "db", "user": "me", "password": "pw",
          "sslmode": "require"}),
        ("postgresql://h/db?passwd=pw", {"host": ["h"], "database": "db", "password": "pw"}),
        ("postgresql://h/db?options=-csearch_path%3Dx&nonsense=1&keepalives=1",
         {"host": ["h"], "database": "db", "options": "-csearch_path=x"}),
        ("postgresql://", {}),
    ],
)  # fmt: skip
def test_what_the_driver_gets(name: str, found: dict[str, Any]) -> None:
    assert arguments(name) == found


def test_a_host_whose_name_is_verified_is_not_looked_up(monkeypatch: pytest.MonkeyPatch) -> None:
    twice = "postgresql://h.invalid:1,h.invalid:2,i:3/db?hostaddr=10.0.0.1,10.0.0.2,"
    found = login_of(url_of(f"{twice}&sslmode=verify-full"))
    assert found.arguments["host"] == ["h.invalid", "h.invalid", "i"]
    assert found.addresses == {"h.invalid": ["10.0.0.1", "10.0.0.2"], "i": []}
    found = login_of(url_of(twice))
    assert (found.arguments["host"], found.addresses) == (["10.0.0.1", "10.0.0.2", "i"], {})
    monkeypatch.setenv("PGSSLMODE", "verify-full")
    assert login_of(url_of(twice)).arguments["host"] == ["h.invalid", "h.invalid", "i"]

    async def look_up(host: str) -> list[Any]:
        use({"h.invalid": ["10.0.0.1", "::1"]})
        return [each[4][:2] for each in await asyncio.get_running_loop().getaddrinfo(
            host, 5, type=socket.SOCK_STREAM)]  # fmt: skip

    with asyncio.Runner(loop_factory=AddressLoop) as runner:
        assert runner.run(look_up("h.invalid")) == [("10.0.0.1", 5), ("::1", 5)]
        assert runner.run(look_up("127.0.0.2")) == [("127.0.0.2", 5)]


def test_options_of_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PGOPTIONS", "-c search_path=x")
    assert arguments("postgresql://h/db")["options"] == "-c search_path=x"
    assert arguments("postgresql://h/db?options=-cjit%3Doff")["options"] == "-cjit=off"


def test_a_target_that_no_server_has(
    hub_server: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    said = "target_session_attrs is primery, which is none of"
    with pytest.raises(ServerTrouble, match=said):
        login_of(url_of("postgresql://h/db?target_session_attrs=primery"))
    with pytest.raises(ServerTrouble, match="no server of the kind that target_session_attrs asks"):
        HubSource()._servers.moment(url_of(hub_server.url + "&target_session_attrs=standby"))
    monkeypatch.setenv("PGTARGETSESSIONATTRS", "primery")
    with pytest.raises(ServerTrouble, match=said):
        login_of(url_of("postgresql://h/db"))
    assert arguments("postgresql://h/db?target_session_attrs=any")["host"] == ["h"]


def test_tls_that_verifies_nothing() -> None:
    found = arguments("postgresql://h/db?sslmode=no-verify")
    context = found.pop("ssl")
    assert isinstance(context, ssl.SSLContext) and context.verify_mode == ssl.CERT_NONE
    assert found == {"host": ["h"], "database": "db"}
    found = arguments("postgresql://h/db?sslrootcert=system")
    assert found.pop("ssl").verify_mode == ssl.CERT_REQUIRED


def test_a_file_of_tls_that_is_not_there_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("sslrootcert", "sslcert"):
        with pytest.raises(ServerTrouble, match=f"no file /none, which {name} names"):
            login_of(url_of(f"postgresql://h/db?{name}=/none"))
    assert arguments("postgresql://h/db?sslrootcert=/none&sslmode=disable")["host"] == ["h"]
    monkeypatch.setenv("PGSSLROOTCERT", str(tmp_path / "gone"))
    with pytest.raises(ServerTrouble, match="gone, which sslrootcert names"):
        login_of(url_of("postgresql://h/db"))


@pytest.mark.parametrize(("code", "said"), [
    (62, "of another name"), (64, "of another name"), (18, "sslrootcert names the authority"),
    (10, "cannot be verified"), (23, "cannot be verified"),
])
def test_why_a_certificate_is_refused(code: int, said: str) -> None:
    error = ssl.SSLCertVerificationError(1, "refused")
    error.verify_code, error.verify_message = code, "why."
    assert said in reason(error) and "(why)" in reason(error)
    # One that has expired or was taken back is not of another authority.
    assert ("sslrootcert" in reason(error)) == (code == 18)


def test_files_of_tls_that_are_no_certificate(tmp_path: Path) -> None:
    file = tmp_path / "none.crt"
    file.write_text("none")
    url = url_of(f"postgresql://127.0.0.1:1/db?sslmode=require&sslcert={file}&sslkey={file}")
    with pytest.raises(ServerTrouble, match="the files of sslcert and sslkey cannot be used"):
        HubSource()._servers.moment(url)


def test_a_schema_is_searched() -> None:
    assert login_of(url_of("postgresql://h/db?schema=team")).search_path == '"team"'
    assert login_of(url_of("jdbc:postgresql://h/db?currentSchema=a,b")).search_path == '"a", "b"'
    assert login_of(url_of("postgresql://h/db?schema=a%22;drop")).search_path == '"a"";drop"'
    path = 'search_path="A""b, c", Team ,"$user"; DROP SCHEMA x'
    assert login_of(url_of(f"postgresql://h/db?{quote(path, safe='=')}")).search_path == (
        '"A""b, c", "team", "$user", "; drop schema x"')


def test_what_is_not_understood_is_named() -> None:
    assert url_of("postgresql://h/db?nonsense=1&pool=2&host=x&keepalives=0").left_out == (
        "the parameters nonsense, pool are not understood and left out")  # fmt: skip
    assert url_of("service=team sslmode=no-verify schema=x").left_out == ""
    asked = "postgresql://h/db?channel_binding={}&gssencmode={}"
    assert url_of(asked.format("require", "require")).left_out == (
        "the parameters channel_binding, gssencmode are not understood and left out")
    assert url_of(asked.format("prefer", "disable")).left_out == ""


PGPASS = """# host:port:database:user:password
h:5432:db:me:first
h:*:*:me:sec\\:ond\\\\
localhost:*:db:me:socket
*:*:*:any:last
"""


@pytest.mark.parametrize(
    ("name", "password"),
    [
        ("postgresql://me@h/db", "first"), ("postgresql://me@h:1/db", "sec:ond\\"),
        ("postgresql://me@/db?host=/run/pg", "socket"), ("postgresql://any@x/db", "last"),
        ("postgresql://me@h/db?hostaddr=10.0.0.1", "first"), ("postgresql://me:own@h/db", "own"),
        ("postgresql://nobody@h/db", None),
    ],
)
def test_the_password_file(name: str, password: str | None, tmp_path: Path) -> None:
    file = tmp_path / ".pgpass"
    file.write_text(PGPASS)
    file.chmod(0o600)
    assert arguments(name).get("password") == password
    said = f"the password is that of {file}" if password else (
        f"none is in the URL, and {file} has none for this login; PGPASSWORD serves as well")
    hint = login_of(url_of(name)).password_hint
    assert hint == ("" if password == "own" else f" ({said})")
    file.chmod(0o644)
    assert arguments(name).get("password") == ("own" if password == "own" else None)
    hint = login_of(url_of(name)).password_hint
    assert hint == ("" if password == "own" else (
        f" ({file} is not used: others may read it; chmod 600 mends that)"))
    # The driver would look there too, and print a warning.
    passfile = arguments(name).get("passfile")
    assert password == "own" or (passfile and not Path(passfile).exists())
    file.chmod(0o600)
    moved = file.rename(tmp_path / "elsewhere")
    assert arguments(f"{name}{'&' if '?' in name else '?'}passfile={moved}").get(
        "password") == password  # fmt: skip


def test_a_password_file_with_anything_in_it_is_no_trouble(
    hub_server: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
    recwarn: pytest.WarningsRecorder,
) -> None:
    url = url_of(hub_server.guarded_url.replace(quote(PASSWORD, safe=""), ""))
    file = tmp_path / "pw"
    monkeypatch.setenv("PGPASSFILE", str(file))
    for words in ("no line of five\n\n", f"*:*:*:{GUARDED}:wrong", "\0\n"):
        file.write_text(words)
        file.chmod(0o600)
        with pytest.raises(StoreError, match="refuses the login: password authentication failed"):
            HubSource()._servers.moment(url)
    file.unlink()
    with pytest.raises(StoreError, match=f"failed .*and there is no file {file}; PGPASSWORD"):
        HubSource()._servers.moment(url)
    file.mkdir(0o700)
    with pytest.raises(StoreError, match="has none for this login"):
        HubSource()._servers.moment(url)
    monkeypatch.setenv("PGPASSWORD", "wrong")
    with pytest.raises(StoreError, match=r"failed .* \(the password is that of PGPASSWORD\)"):
        HubSource()._servers.moment(url)
    assert not recwarn.list


def test_a_service_and_a_password_file_open_a_database(
    hub_server: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = hub_server.server.folder
    (tmp_path / ".pg_service.conf").write_text(
        f"[sample]\nhost={folder}\nuser={GUARDED}\ndbname={hub_server.name}\n"
    )
    with pytest.raises(StoreError, match="refuses the login: .*pgpass"):
        login = url_of("service=sample")
        HubSource()._servers.moment(login)
    file = tmp_path / ".pgpass"
    escaped = PASSWORD.replace("\\", "\\\\").replace(":", "\\:")
    file.write_text(f"{folder}:*:*:{GUARDED}:{escaped}\n")
    file.chmod(0o600)
    assert len(drafts_of(HubSource(), url_of("service=sample"))[0]) == 5
    monkeypatch.setenv("PGSERVICE", "sample")
    assert len(drafts_of(HubSource(), url_of("postgresql://"))[0]) == 5
    hub_server.execute("ALTER SCHEMA public RENAME TO team")
    assert len(drafts_of(HubSource(), url_of("service=sample schema=team"))[0]) == 5
