"""System prompts: each is stored once, under its SHA-256."""

from __future__ import annotations

from collections.abc import Iterable

from store.engine.database import Database


def digest_of(body: str) -> str:
    """Return the SHA-256 of a system prompt's UTF-8 bytes, as hex."""
    import hashlib  # It loads OpenSSL, which a browser that only reads does without.

    return hashlib.sha256(body.encode("utf-8", "surrogatepass")).hexdigest()


def put(db: Database, body: str) -> str:
    """Store a system prompt and return its digest, for ``metadata.system_prompt_digest``."""
    digest = digest_of(body)
    put_all(db, [(digest, body)])
    return digest


def put_all(db: Database, prompts: Iterable[tuple[str, str]]) -> None:
    """Store system prompts whose digests are already known."""
    db.connection.executemany(
        "INSERT INTO system_prompts (digest, body) VALUES (?, ?) ON CONFLICT (digest) DO NOTHING",
        [(digest, _storable(body)) for digest, body in prompts],
    )


def get(db: Database, digest: str) -> str | None:
    """Return the system prompt with a digest, or None.

    A host's file may have no such table, or one with other columns.
    """
    if db.server is None or db.form.name != "own":
        looked_for = db.sql.has_columns("system_prompts", "digest", "body")
        if len(db.connection.execute(looked_for).fetchall()) < 2:
            return None
    row = db.connection.execute(
        "SELECT body FROM system_prompts WHERE digest = $1", {"1": digest}
    ).fetchone()
    return None if row is None else str(row[0])


def _storable(body: str) -> str:
    """Return text that SQLite accepts: lone surrogates are replaced by ``?``."""
    return body.encode("utf-8", "replace").decode("utf-8")
