"""URLs of servers: what is shown of them, and what the driver gets."""

from __future__ import annotations

import pickle
from pathlib import Path

import pytest

from store.engine.server_url import Root, ServerTrouble, ServerUrl, as_root, server_url, without
from store.sync import roots


def read(name: str) -> ServerUrl:
    url = server_url(name)
    assert url is not None
    return url


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("postgresql://host/db", "postgresql://host/db"),
        ("postgres://me@host:5433/db", "postgresql://me@host:5433/db"),
        ("postgresql+asyncpg://me:pw@host/db", "postgresql://me@host/db"),
        ("POSTGRESQL+psycopg://:pw@host/db", "postgresql://host/db"),
        ("postgresql:///db?host=/run/pg&password=pw", "postgresql:///db?host=/run/pg"),
        ("postgresql://me:p@w@h1:1,h2:2/db", "postgresql://me@h1:1,h2:2/db"),
        ("service=team password=pw", "postgresql://?service=team"),
        ("host=db port=5433 user=me password='p@w x' dbname=hub", "postgresql://me@db:5433/hub"),
        ("host=h password=pw;", "postgresql://h"),
        ("host=/run/pg dbname=db password = pw", "postgresql:///db?host=/run/pg"),
        ("jdbc:postgresql://h/db?user=me&password=pw", "postgresql://h/db?user=me"),
        ("jdbc:postgresql:db?password=pw", "postgresql:///db"),
        ("jdbc:postgresql:/?user=me&password=pw", "postgresql:///?user=me"),
        ("application_name=x host=h password=pw", "postgresql://h"),
        ("connect_timeout=3 password=pw user=me host=h", "postgresql://me@h"),
        ("target_session_attrs=any password=pw", "postgresql://?target_session_attrs=any"),
        ("new_word='a b' host=h password=pw", "postgresql://h?new_word=a+b"),
        ("postgresql://h/db?scram_client_key=pw&oauth_client_secret=pw", "postgresql://h/db"),
        ("postgresql://h/db?options=-capp.password%3Dpw&schema=x", "postgresql://h/db?schema=x"),
        ("postgresql://h/db?passwrd=pw&pasword=pw&zz=1&Paswd=pw", "postgresql://h/db?zz=1"),
        ("postgresql://h/db?passwd=pw&PGPASSWORD=pw&PassPhrase=pw", "postgresql://h/db"),
        (
            "postgresql://me@h/db?options=-csearch_path%3Dteam&ssl=require&connect_timeout=3",
            "postgresql://me@h/db?options=-csearch_path%3Dteam&sslmode=require",
        ),
        (
            "postgresql://h/db?options=-c%20app.password%3Dpw%20-csearch_path%3Dteam",
            "postgresql://h/db?options=-csearch_path%3Dteam",
        ),
        ("host=h options='--my.token=a\\ pw'", "postgresql://h"),
    ],
)
def test_no_password_is_shown(name: str, shown: str) -> None:
    url = read(name)
    assert (str(url), url.fault) == (shown, None)
    assert "pw" not in repr(url) and "p@w" not in repr(url)
    assert read(shown) == url and str(read(shown)) == shown
    assert pickle.loads(pickle.dumps(url)) == url


def test_the_driver_gets_the_password() -> None:
    assert read("postgres://me:p%2Fw@host/db").dsn == "postgresql://me:p%2Fw@host/db"
    assert read("postgresql:///db?password=pw").dsn == "postgresql:///db?password=pw"


@pytest.mark.parametrize(
    "name",
    ["postgresql://me:p/w@host/db", "postgresql://me:p?w@host/db", "postgresql://me:p#w@host/db",
     "postgresql://me:p#w", "postgresql://[host/db", "host=db password='p w", "host=me me:p",
     "host=me;port=1;password=p", "dbname=postgresql://me:p@host/db",
     "dbname='postgresql://me:p@host/db'", "postgresql:///?dbname=postgresql://me:p@host/db",
     "host=me,password=p", "host=me&password=p", "postgresql://h/db?user=me;password=p",
     "pgsql://me:p@host/db", "postgressql+asyncpg://me:p@host/db", "postgresql:/me:p@host/db",
     "mysql://me:p@host/db"],
)  # fmt: skip
def test_what_cannot_be_told_apart_is_not_shown(name: str) -> None:
    url = read(name)
    others = not name.startswith(("postgresql://", "jdbc:")) and "=" not in name
    scheme = name.partition(":")[0] if others else "postgresql"
    assert (str(url), url.dsn) == (f"{scheme}://…", "")
    assert url.fault is not None
    assert "me" not in url.text and "host" not in url.text


@pytest.mark.parametrize(
    "name", ["me:p@host/db", "me:p@host", "me:p@10.0.0.1:5432", "me:p?w#@[::1]:5432/db"])
def test_a_login_without_a_scheme_is_not_shown(name: str) -> None:
    url = read(name)
    assert (url.text, url.dsn) == ("postgresql://…", "")
    assert url.fault is not None and url.fault.startswith("has no scheme")
    assert server_url(f"./{name}") is None


def test_other_names_are_paths() -> None:
    for name in ("state.db", "sqlite:///x", "mysql://h/db", "postgresql.db", "", "year=2026",
                 "a=b c", "year=2026/host=h.db", "new_word='a host=h", "c:/a:b@c",
                 "sqlite+aiosqlite:////a:b@c", "file:///a:b@c"):  # fmt: skip
        assert server_url(name) is None
    assert as_root("~/x") == Path("~/x").expanduser()


def test_words_of_others_lose_the_password() -> None:
    url = read("postgresql://me:p%40ss@host/db?sslpassword=other")
    trouble = ServerTrouble(url, "said p%40ss or p@ss or other")
    assert str(trouble) == "postgresql://me@host/db said *** or *** or ***"
    assert trouble.reason == "said *** or *** or ***"
    url = read("postgresql://me@h/db?options=-c%20app.token%3Din%5C%20it%20-c%20x.passcode%3Dnumber")
    assert str(ServerTrouble(url, "said number or in it")).endswith(" said *** or ***")


def test_a_child_gets_passwords_by_its_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    given: list[Root] = [read("postgresql://me:pw@host/db"), Path("/x")]
    variables = roots.passwords_for_child(given)
    assert roots.passwords_for_child([Path("/x")]) == {}
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    url, path = roots.roots_from_arguments([str(root) for root in given])
    assert path == Path("/x")
    assert isinstance(url, ServerUrl) and url.dsn == "postgresql://me:pw@host/db"
    (again,) = roots.roots_from_arguments(["postgresql://me@host/db"])
    assert isinstance(again, ServerUrl) and again.dsn == "postgresql://me@host/db"


@pytest.mark.parametrize(("secret", "words", "shown"), [
    ("a", "password authentication: a", "password authentication: ***"),
    ("pass", "password for u:pass@h", "password for u:***@h"),
    ("s3cret!", "xs3cret!x", "x***x"), ("!", "no!", "no***"), ("", "as it is", "as it is"),
])
def test_a_password_is_hidden_and_not_told_by_what_is_left(
    secret: str, words: str, shown: str
) -> None:
    assert without(words, secret) == shown
