"""Every query returns the same on PostgreSQL as on SQLite, of the same rows."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

import pytest

from store.activity import presence
from store.demo import make_demo
from store.engine.database import Database, open_database
from store.engine.opening import open_target
from store.errors import BackscrollError
from store.exports.reading import read_session
from store.exports.registry import FORMATS, Format, writer
from store.files.history import checkpoints_of
from store.imports.reading import import_file
from store.language.query import parse
from store.prices.loading import load_prices
from store.queries import (
    activities,
    chosen,
    compare,
    context,
    context_usage,
    counting,
    details,
    exchange,
    inspection,
    known_values,
    lineage,
    list_keys,
    listing,
    messages,
    originals,
    places,
    refresh,
    sessions,
    shared_answers,
    summaries,
    summary,
    touches,
    transcript,
    tree_facts,
    user_marks,
    windows,
    workspaces,
)
from store.queries.list_options import GROUPS, SHELVES, SORTS
from store.queries.listing_filter import ListFilterTest
from store.recorder.reading import read_ui_message
from store.replay.log import log_page
from store.replay.reading import answers_page, place_before, timed_page
from store.resume.planning import draft_prompt
from store.sync.engine import Sync
from store.sync.problems import problems
from store.sync.settings import Settings
from tests.sources.postgres_server import Server
from tests.sources.samples import SAMPLES
from tests.store.engines import fill, new_server_store

NOW = 1_795_900_000_000
QUERIES = (
    "agent:claude-code", "agent:*code*", "source:codex", "model:opus", "branch:main", "title:re",
    "tag:bug", "label:a", "workspace:/w*", "id:ses_0", "is:starred", "is:fork", "is:subagent",
    "is:archived", "is:hidden", "is:running", "is:idle", "cost:>0.1", "tokens:<1000",
    "before:2026-11-01", "after:2026-11-01", "-agent:codex", "fix", "-fix agent:codex",
    "status:failed", "-status:completed", "project:harbour", "account:ada", "owner:ada",
)  # fmt: skip


class Pair:
    """Two stores with the same rows."""

    def __init__(self, file: Database, server: Database) -> None:
        self.file, self.server = file, server
        self.ids = [row[0] for row in file.connection.execute(
            "SELECT id FROM chat_sessions ORDER BY id").fetchall()]

    def same(self, question: Callable[[Database], Any], name: object = "") -> None:
        assert question(self.server) == question(self.file), (name, question)


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory, postgres: Server) -> Iterator[Pair]:
    path = make_demo(tmp_path_factory.mktemp("demo") / "demo.db", lambda: NOW)
    yield from opened(path, postgres)


@pytest.fixture(scope="module")
def samples(tmp_path_factory: pytest.TempPathFactory, postgres: Server) -> Iterator[Pair]:
    folder = tmp_path_factory.mktemp("samples")
    path = folder / "samples.db"
    database = open_database(path, create=True)
    for sample in SAMPLES:
        Sync(database, Settings(helpers=0)).run([sample.copied(folder)])
    database.close()
    yield from opened(path, postgres)


def opened(path: Path, postgres: Server) -> Iterator[Pair]:
    file = open_database(path, write=False)
    url = new_server_store(postgres)
    writing = open_target(url, write=True)
    fill(writing, file)
    # Else the server would plan as for empty tables; its own process does it every minute.
    writing.connection.execute("ANALYZE")
    writing.close()
    server = open_target(url)
    yield Pair(file, server)
    file.close()
    server.close()


def names_of(db: Database) -> dict[int, str]:
    """Return the ids of all sessions by their numbers, which the engines choose."""
    return dict(db.connection.execute(
        f"SELECT {db.sql.rowid()}, id FROM chat_sessions").fetchall())


def key_names(db: Database, keys: list_keys.ListKeys | None) -> object:
    if keys is None:
        return None
    names = names_of(db)
    return (
        [names[each] for each in keys.rowids], list(keys.groups), keys.group_names,
        {names[child]: names[parent] for child, parent in keys.parents.items()}, keys.whole,
    )


def rows(db: Database) -> list[listing.ListRow]:
    ids = list(names_of(db).values())
    found = sorted(activities.rows(db, [], ids, NOW).values(), key=lambda row: row.id)
    for row in found:
        row.rowid = 0
    return found


def filtered(query: str, db: Database) -> set[str]:
    names = names_of(db)
    found = ListFilterTest(parse(query, now=NOW)).matching(db, list(names), NOW)
    return {names[each] for each in found}


def of_list(pair: Pair) -> None:
    for sort, group, shelf in product(SORTS, GROUPS, SHELVES):
        query = listing.ListQuery(sort, group, shelf, helpers=True)
        pair.same(lambda db, q=query: key_names(db, activities.keys(db, q, NOW)), query)  # type: ignore[misc]
        pair.same(lambda db, q=query: key_names(db, list_keys.first_keys(db, q, 10)), query)  # type: ignore[misc]
    folder = pair.file.connection.execute(
        "SELECT workspace_root FROM chat_sessions WHERE workspace_root <> ''").fetchone()[0]
    of_folder = listing.ListQuery(workspace=folder)
    pair.same(lambda db: key_names(db, list_keys.all_keys(db, of_folder)))
    pair.same(rows)
    pair.same(listing.has_sessions)
    pair.same(problems)
    pair.same(partial(problems, kind="codex"))
    pair.same(lambda db: listing.upper_bound(db) >= len(pair.ids))
    pair.same(lambda db: [row.id for row in activities.recently_active(db, NOW)])
    pair.same(lambda db: sorted(chosen.by_id(db, pair.ids)))
    pair.same(lambda db: workspaces.names_of(db, folder))
    for words in QUERIES:
        pair.same(partial(filtered, words), words)


def of_pages(pair: Pair) -> None:
    filters = [sessions.SessionFilter(archived=shelf) for shelf in ("exclude", "include", "only")]
    filters += [sessions.SessionFilter(query=words) for words in ("fix", "FIX", "é", "100%")]
    filters += [sessions.SessionFilter(agent="codex", archived="include"),
                sessions.SessionFilter(source="claude-code", skip_empty=True, helpers=False),
                sessions.SessionFilter(workspace="")]  # fmt: skip
    filters += [sessions.SessionFilter(fields=parse(query, now=NOW).session_conditions)
                for query in QUERIES]  # fmt: skip
    for each in filters:
        pair.same(lambda db, f=each: sessions.page(db, f, limit=-1), each)  # type: ignore[misc]
        pair.same(lambda db, f=each: sessions.total(db, f), each)  # type: ignore[misc]
    second = sessions.page(pair.file, filters[1], limit=3)[-1]
    at = (second.updated_at, second.id)
    pair.same(lambda db: sessions.page(db, filters[1], before=at, limit=5))
    pair.same(lambda db: list(summaries.summaries(db, filters[1], now=NOW)))
    pair.same(lineage.families)
    pair.same(known_values.known_values)
    pair.same(summary.totals)
    pair.same(lambda db: shared_answers.shared_answers(db))
    pair.same(lambda db: shared_answers.shared_answers(db, pair.ids[:20]))


class Noting:
    """A connection that keeps the statements it is given."""

    def __init__(self, connection: Any) -> None:
        self.connection, self.asked = connection, list[tuple[str, Any]]()

    def execute(self, sql: str, values: Any = ()) -> Any:
        self.asked.append((sql, values))
        return self.connection.execute(sql, values)


def plans(db: Database, read: Callable[[Database], object]) -> list[str]:
    """Return how the engine finds what a query reads, for each of its statements."""
    real = db.connection
    noting = db.connection = Noting(real)  # type: ignore[assignment]
    read(db)
    db.connection = real
    explain = "EXPLAIN" if db.server is not None else "EXPLAIN QUERY PLAN"
    return ["\n".join(str(row[-1]) for row in real.execute(f"{explain} {sql}", values).fetchall())
            for sql, values in noting.asked]  # fmt: skip


def test_copies_of_answers_are_found_by_their_index(url: str, tmp_path: Path) -> None:
    def read(db: Database) -> object:
        return shared_answers.shared_answers(db, ["ses_a"])

    file = open_database(tmp_path / "library.db", create=True)
    server = open_target(url)
    assert "m USING INDEX chat_messages_answer (<expr>=?)" in plans(file, read)[1]
    assert "SCAN" not in plans(file, read)[1]
    server.remote.script("SET enable_seqscan = off")
    found = plans(server, read)[1]
    # By its condition, not with all that the index has.
    assert re.search(r"chat_messages_answer.*\n +Index Cond: \(COALESCE", found, re.IGNORECASE)
    assert "Filter: (COALESCE" not in found
    file.close()
    server.close()


def context_of(db: Database, session_id: str) -> object:
    found = context_usage.ContextUsage()
    context_usage.add_page(db, found, context.context_ids(db, session_id))
    context_usage.add_system(db, found)
    return found


def replayed(db: Database, session_id: str) -> list[object]:
    """Read what a replay does, by pages."""
    found: list[object] = [log_page(db, session_id, 0, 9)]
    for message_id in context.visible_ids(db, session_id)[-2:]:
        found.append(place_before(db, session_id, message_id, 1))
    for read in (timed_page, partial(answers_page, prices=load_prices())):
        after: transcript.Keyset | None = None
        while True:
            page, after = read(db, session_id, after, 3)
            found += page
            if after is None:
                break
    return found


OF_SESSIONS: tuple[Callable[[Database, str], object], ...] = (
    replayed,
    sessions.get, context.context_ids, context_of, transcript.outline_page, transcript.children,
    transcript.last_usage, transcript.extent, lineage.family, lineage.siblings, lineage.root_of,
    details.overview, details.timeline, touches.touches, tree_facts.labels_of,
    tree_facts.last_message, user_marks.user_marks, originals.attachments, exchange.exchange,
    user_marks.starred_by_source, checkpoints_of,
    lambda db, name: sessions.resolve(db, name[:24]),
    lambda db, name: messages.page(db, name, limit=999),
    lambda db, name: messages.page(db, name, limit=20, shown_only=True),
    lambda db, name: messages.last(db, name, limit=7),
    lambda db, name: counting.counts(db, [name]),
    lambda db, name: windows.opening(db, name, name, None, at_end=True),
    lambda db, name: windows.opening(db, name, None, None, at_end=False),
    lambda db, name: refresh.facts(db, name, NOW, context.visible_ids(db, name)),
    lambda db, name: refresh.end_after(db, name, None, 50, [], 5),
    lambda db, name: list(originals.numbered_records(db, name)),
    lambda db, name: originals.record_count(db, name),
    lambda db, name: inspection.linked(db, name),
    lambda db, name: windows.window_at_start(db, name, 20),
    lambda db, name: [draft_prompt(db, row) for row in (sessions.get(db, name),) if row],
    lambda db, name: details.tool_calls(db, context.visible_ids(db, name)),
    lambda db, name: transcript.matches(db, context.visible_ids(db, name)[:200], "the"),
    lambda db, name: tree_facts.node_facts(db, lineage.family(db, name, helpers=True)),
    lambda db, name: compare.compare(db, name, name) if context.visible_ids(db, name) else None,
)


OF_LIBRARIES: tuple[Callable[[Database, str], object], ...] = (
    lambda db, name: presence.presence(db, [name], NOW),
)  # fmt: skip
"""What is asked of a library alone, and of no host's store."""


def of_sessions(pair: Pair, ids: list[str]) -> None:
    more = OF_LIBRARIES if pair.file.form.name == "own" else ()
    for name, question in product(ids, OF_SESSIONS + more):
        pair.same(lambda db, n=name, q=question: q(db, n), name)  # type: ignore[misc]
    for name in ids:
        for message, parts in messages.page(pair.file, name, limit=3):
            keys = [(name, message.id, -1), (name, message.id, 0), (name, "", 0)]
            pair.same(lambda db, k=keys: places.place_facts(db, k), message)  # type: ignore[misc]
            pair.same(lambda db, m=message.id: read_ui_message(db, m), message)  # type: ignore[misc]
            pair.same(lambda db, m=message.id: originals.records_of_message(db, m), message)  # type: ignore[misc]
            for part in parts[:2]:
                pair.same(lambda db, n=name, p=part.id: inspection.part_detail(db, n, p), part)  # type: ignore[misc]
                pair.same(lambda db, p=part.id: originals.records_of_part(db, p), part)  # type: ignore[misc]


def exports(pair: Pair, ids: list[str]) -> None:
    for name in ids:
        pair.same(lambda db, n=name: rows_read(db, n), name)  # type: ignore[misc]
        for format in FORMATS.values():
            pair.same(lambda db, n=name, f=format: export_of(db, n, f), (name, format.name))  # type: ignore[misc]


def rows_read(db: Database, name: str) -> object:
    reading = read_session(db, name)
    return reading.session, list(reading.messages), reading.hidden_left_out, reading.queued


def export_of(db: Database, name: str, format: Format) -> object:
    reading = read_session(db, name)
    reading.export_id = "0b54ce9e-57a4-4a7e-9d8c-0d7b1f9f3c11"
    try:
        written = "".join(writer(format.name)(reading))
        # Some write when they were made, and ids of their own.
        varies = (
            r"backscroll-\w+|T\d\d:\d\d:[\d.]+Z|\b17\d{11}\b"
            r"|\b(ses|msg|prt)_\w+|[0-9a-f]{8}-[0-9a-f-]{27}")
        return re.sub(varies, "", written), reading.remarks
    except BackscrollError as error:
        return str(error)


def imports(pair: Pair, ids: list[str], folder: Path, postgres: Server) -> None:
    """What is exported as lines and imported on a server is what was exported."""
    server = open_target(new_server_store(postgres), write=True)
    for name in ids:
        path = folder / "one.jsonl"
        path.write_text("".join(writer("jsonl")(read_session(pair.file, name))))
        (first,), (again,) = (list(import_file(server, path, clock=lambda: NOW)) for _ in range(2))
        assert (first.problems, first.outcome, again.outcome) == ([], "added", "unchanged")
        assert rows_read(server, name) == rows_read(pair.file, name)
    server.close()


def test_exports_and_imports_of_the_demo(demo: Pair, tmp_path: Path, postgres: Server) -> None:
    exports(demo, demo.ids[1:3])
    imports(demo, demo.ids[1:3], tmp_path, postgres)


def test_lists_and_pages_of_the_demo(demo: Pair) -> None:
    of_list(demo)
    of_pages(demo)


def test_sessions_of_the_demo(demo: Pair) -> None:
    of_sessions(demo, demo.ids[1:4])


@pytest.mark.long
def test_all_samples(samples: Pair) -> None:
    of_list(samples)
    of_pages(samples)
    of_sessions(samples, samples.ids[::6])
    exports(samples, samples.ids[::6])
