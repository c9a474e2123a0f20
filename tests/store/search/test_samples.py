"""Searches in the demo and in the samples of all sources find what is in their rows."""

from __future__ import annotations

import contextlib
import random
import re
from collections.abc import Iterator
from typing import Any

import orjson
import pytest

from store.demo import make_demo
from store.engine.database import Database, open_database
from store.errors import NotFound
from store.language.matching import fold
from store.language.query import parse
from store.queries.originals import attachment
from store.search.index.building import Indexer
from store.search.index.reading import Index, open_index
from store.search.running import Request, Run
from store.sync.engine import Sync
from store.sync.settings import Settings
from tests.sources.samples import SAMPLES

NOT_TEXT = ("data:",)
BLOCKS = {
    "text", "input_text", "output_text", "file", "image", "image-data", "image_url", "media",
    "content", "resource", "resource_link", "json", "error-text", "error-json", "tool_reference",
    "document", "audio", "base64", "url",
}  # fmt: skip
"""What a ``type`` says of a content block; any other one is the tool's own."""


def strings(value: Any) -> Iterator[str]:
    """Yield every string of a JSON value."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, list):
        for item in value:
            yield from strings(item)
    elif isinstance(value, dict):
        for name, item in value.items():
            if name != "type" or item not in BLOCKS:
                yield from strings(item)


def texts_of(db: Database, session_id: str, data: Any) -> list[str]:
    """Return all texts of a part, and of the side files that it names."""
    kind = data["type"]
    own = (data.get("resultProviderMetadata") or {}).get("backscroll") or {}
    if kind.startswith("tool-") or kind == "dynamic-tool":
        reason = (data.get("approval") or {}).get("reason")
        given = data.get("input") if data.get("input") is not None else data.get("rawInput")
        found = [*strings([given, data.get("output"), data.get("errorText"), reason])]
        structured = own.get("structured")
        listed = structured.get("files") or structured.get("fileEdits") if isinstance(
            structured, dict) else None
        found += [value for entry in listed or () if isinstance(entry, dict)
                  for name, value in entry.items()
                  if isinstance(value, str) and ("path" in name.lower() or name == "moved_to")]
    elif kind in ("text", "reasoning"):
        found = [*strings(data.get("text"))]
    else:
        found = [text for name, value in data.items() if name not in ("type", "id")
                 for text in strings(value)]
    names = own.get("attachment") or []
    for name in [names] if isinstance(names, str) else names:
        with contextlib.suppress(NotFound):
            found.append(attachment(db, session_id, name).decode("utf-8", "replace"))
    return [text for text in found if not text.startswith(NOT_TEXT)]


Texts = dict[tuple[str, int], list[str]]


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Database, Index, Texts]]:
    """The demo with all samples, its index, and the texts of each visible part."""
    path = make_demo(tmp_path_factory.mktemp("samples") / "store.db", lambda: 1_790_000_000_000)
    database = open_database(path, write=True)
    # One is so long that each search of it takes a while.
    database.connection.execute("DELETE FROM chat_sessions WHERE total_tokens > 10000000")
    Sync(database, Settings(helpers=0)).run([sample.target() for sample in SAMPLES])
    database.close()
    indexer = Indexer(path)
    while indexer.step() or not indexer.idle:
        indexer.look()
    indexer.close()
    index, db = open_index(path), open_database(path, write=False)
    assert index is not None
    rows = db.connection.execute(
        'SELECT m.id, p."index", p.session_id, p.data_json FROM chat_parts p'
        " JOIN chat_messages m ON m.id = p.message_id JOIN chat_sessions s ON s.id = m.session_id"
        f" WHERE {db.form.hidden_at('m')} IS NULL AND s.archived_at IS NULL"
        f" AND NOT {db.form.cancelled('m')} AND {db.form.fact('m', 'inherited_from')} IS NULL"
    ).fetchall()
    texts = {(row[0], row[1]): texts_of(db, row[2], orjson.loads(row[3])) for row in rows}
    yield db, index, texts
    db.close()
    index.close()


def words_of(texts: Texts, seed: int, count: int) -> Iterator[str]:
    """Yield pieces of texts, from within words too."""
    chosen = random.Random(seed)
    every = [text for several in texts.values() for text in several if text.strip()]
    for _ in range(count):
        word = chosen.choice(re.findall(r"[^\s\"]+", chosen.choice(every)) or ["x"])
        start = chosen.randrange(len(word))
        yield word[start : start + chosen.choice((3, 5, 9, 20))]


@pytest.mark.long
def test_finds_every_part_that_holds_a_word(store: tuple[Database, Index, Texts]) -> None:
    db, index, texts = store
    plain = {key: [fold(text) for text in several] for key, several in texts.items()}
    for word in words_of(texts, 5, 14):
        query = parse(f'in:prompt,text,reasoning,input,output "{word}"', now=0)
        wanted = " ".join(fold(word).split())
        if not wanted or query.problems:
            continue
        expected = {key for key, several in plain.items()
                    if any(wanted in " ".join(text.split()) for text in several)}
        for used in (index, None):
            *_, last = Run(db, Request(query, limit=10**6, helpers=True), used).steps()
            assert last is not None
            found = {(hit.message_id or "", hit.index) for hit in last.page.hits}
            found = {key for key in found if key in texts}
            assert found == expected, (word, found ^ expected)
