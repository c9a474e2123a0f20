from __future__ import annotations

import pytest

from store.engine.server_url import server_url
from store.errors import NotFound
from store.text.masking import masked


@pytest.mark.parametrize("url", [
    "postgresql://u:secret@h/db", "postgresql://u:sec/secret@h/db", "postgresql://u:se@secret@h",
    "postgresql://:secret@h", "postgresql:/u:secret@h/db", "postgresql://h:secret/db",
    "postgresql://h/db?password=secret&x=1", "postgresql://h/db?x=1&sslpassword=secret",
    "mysql://u:secret@h/db", "https://u:secret@h/x", "postgresql+asyncpg://u:secret@h/db",
    "postgresql://u:secret", "redis://h/0?token=secret", "postgresql://u:s%40secret@h:5432/db",
    "POSTGRES://u:secret@h", "postgresql://u:secret@[::1]:5432/db",
])  # fmt: skip
def test_a_password_is_hidden_wherever_it_stands(url: str) -> None:
    for text in (url, f"no session '{url}'", f"--bogus={url}; see --help", f"{url} and {url}"):
        assert "secret" not in masked(text)
        assert "secret" not in str(NotFound(text))
    assert masked(url).partition(":")[0] == url.partition(":")[0]
    found = server_url(url)
    assert found is None or "secret" not in str(found)


@pytest.mark.parametrize("text", [
    "host=h password=secret", "host=h password = 'my secret' user=u", "PASSWORD=secret host=h",
    "jdbc:postgresql://u:secret@h/db", "jdbc:postgresql://h/db?user=u&password=secret",
    "postgresql://h/db?passwd=secret", "service=x sslpassword=secret", "host=h passwd='a\\'secret'",
    "jdbc:postgresql://h/db?user=u&PGPASSWORD=secret", "jdbc:oracle:thin:u/secret@h",
    "Host=h;pwd=secret", "postgresql:u:secret@h/db", "postgres:u:secret@h",
    "postgresql//u:secret@h", "postgresql://h/db?oauth_token=secret",
    "host=h password=a\\ secret user=u",
    "postgresql://h/db?options=-c%20app.password%3Dsecret", "host=h scram_server_key=secret",
    "options=-capp.api_key=secret host=h", "postgresql://h/db?pgpwd=secret",
    "host=h options='-c app.token=secret -c search_path=x'", "mysql://u:secret@h/db",
    "postgresql://h/db?options=--app.db_password%3Dmy%5C%20secret%20-csearch_path%3Dx",
    "postgresql://h/db;password=secret", "jdbc:postgresql://h/db?user=u;password=secret",
    "postgressql://u:secret@h/db", "pgsql://u:secret@h/db",
])  # fmt: skip
def test_other_forms_of_a_login_are_masked_too(text: str) -> None:
    for words in (text, f"no file {text!r}", f"{text} cannot be opened"):
        assert "secret" not in masked(words), masked(words)
    found = server_url(text)
    assert found is None or "secret" not in f"{found} {found.fault}"


@pytest.mark.parametrize("text", [
    "postgresql://u@h:5432/db?x=1", "https://example.com/a:b/c", "file:///home/x/a:b",
    "http://localhost:8080/x", "http://localhost:8080", "C:/work", "12:30 and a@b.c",
    "postgresql://h1:5432,h2:5433/db", "http://[::1]:80/x", "no session 'abc'",
    "write user:password@host:port", "its password as %2F", "password authentication failed",
    "postgres:15@sha256:ab", "postgres:public:table",
])  # fmt: skip
def test_other_text_stays(text: str) -> None:
    assert masked(text) == text


def test_a_port_that_is_none_is_a_fault() -> None:
    found = server_url("postgresql://h:secret/db")
    assert found is not None and found.fault is not None and "port is not a number" in found.fault
    for fine in ("postgresql://h1:5432,h2:5433/db", "postgresql://u:p@[::1]:5432/db",
                 "postgresql://u@h/db", "postgresql:///db"):  # fmt: skip
        read = server_url(fine)
        assert read is not None and read.fault is None
