"""System prompts: each body is stored once, under its SHA-256."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable

from store.engine.database import Database


def digest_of(body: str) -> str:
    """Return the SHA-256 of a system prompt in UTF-8, as hex."""
    return hashlib.sha256(body.encode("utf-8", "surrogatepass")).hexdigest()


def put(db: Database, body: str) -> str:
    """Keep a system prompt and return its digest, for ``metadata.system_prompt_digest``."""
    digest = digest_of(body)
    put_all(db, [(digest, body)])
    return digest


def put_all(db: Database, prompts: Iterable[tuple[str, str]]) -> None:
    """Keep system prompts under digests that are known already."""
    db.connection.executemany(
        "INSERT INTO system_prompts (digest, body) VALUES (?, ?) ON CONFLICT (digest) DO NOTHING",
        [(digest, _storable(body)) for digest, body in prompts],
    )


def get(db: Database, digest: str) -> str | None:
    """Return the system prompt with this digest; None where its body was not kept.

    A host's file may have no such table, or one of another shape: then nothing was kept.
    """
    columns = {row[1] for row in db.connection.execute("PRAGMA table_info(system_prompts)")}
    if not {"digest", "body"} <= columns:
        return None
    row = db.connection.execute(
        "SELECT body FROM system_prompts WHERE digest = $1", {"1": digest}
    ).fetchone()
    return None if row is None else str(row[0])


def _storable(body: str) -> str:
    """Return text that SQLite takes: a lone surrogate becomes a stand-in."""
    return body.encode("utf-8", "replace").decode("utf-8")
