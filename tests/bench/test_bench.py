"""The bench's generators give the same rows each time, and its table says what was met."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import orjson
import pytest

from store.engine.database import open_database
from store.queries import list_keys, listing
from store.queries.listing import ListQuery
from store.sources.claude_code import ClaudeCodeSource
from store.sources.codex import CodexSource
from store.sources.opencode import OpencodeSource
from store.sync.engine import Sync
from store.sync.settings import Settings
from store.sync.targets import Target
from tests.bench import claude_corpus, corpora, long_session, many_sessions, search_store
from tests.bench.kept import generator_key, kept_store
from tests.bench.report import Limits, Line, p95, table

TABLES = ("chat_sessions", "chat_messages", "chat_parts")


def _rows(path: Path) -> dict[str, list[tuple[object, ...]]]:
    connection = sqlite3.connect(path)
    try:
        return {
            name: connection.execute(f"SELECT * FROM {name} ORDER BY rowid").fetchall()
            for name in TABLES
        }
    finally:
        connection.close()


@pytest.mark.parametrize(
    ("maker", "size", "counts"),
    [
        (many_sessions, 400, (400, 2_400, 2_400)),
        (long_session, 400, (3, 10 + 100 + 25, 40 + 400 + 100)),
        pytest.param(search_store, 900, (3, 237, 900), marks=pytest.mark.long),
    ],
)
def test_a_store_is_the_same_each_time(
    tmp_path: Path, maker: object, size: int, counts: tuple[int, int, int]
) -> None:
    made = []
    for name in ("one.db", "two.db"):
        maker.write(tmp_path / name, size)  # type: ignore[attr-defined]
        made.append(_rows(tmp_path / name))
    assert made[0] == made[1]
    assert tuple(len(made[0][name]) for name in TABLES) == counts


@pytest.mark.long
def test_stores_of_all_sizes_have_the_same_newest_parts(tmp_path: Path) -> None:
    newest = []
    for size in (500, 900):
        search_store.write(tmp_path / f"{size}.db", size)
        parts = _rows(tmp_path / f"{size}.db")["chat_parts"]
        newest.append(sorted(parts)[:400])
    assert newest[0] == newest[1] and len(newest[0]) == 400


@pytest.mark.parametrize("corpus", [corpora.CLAUDE, corpora.CODEX], ids=lambda each: each.kind)
def test_a_tree_of_session_files_is_the_same_each_time(
    corpus: corpora.Corpus, tmp_path: Path
) -> None:
    trees = []
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        corpus.make(tmp_path / name, 3, 20)
        root = tmp_path / name
        trees.append({path.relative_to(root): path.read_bytes() for path in root.rglob("*.jsonl")})
    assert trees[0] == trees[1]
    assert len(trees[0]) == 3


def test_all_trees_hold_the_same_messages(tmp_path: Path) -> None:
    counts = []
    for corpus, source in (
        (corpora.CLAUDE, ClaudeCodeSource()),
        (corpora.CODEX, CodexSource()),
        (corpora.OPENCODE, OpencodeSource()),
    ):
        root = tmp_path / corpus.kind
        root.mkdir()
        corpus.make(root, 3, 20)
        database = open_database(tmp_path / f"{corpus.kind}.db", create=True)
        summary = Sync(database, Settings(helpers=0)).run([Target(source, root)])
        assert (summary.new, summary.problems) == (3, 0)
        counts.append([
            database.connection.execute(f"SELECT count(*) FROM {name}").fetchone()[0]
            for name in TABLES
        ])  # fmt: skip
        database.close()
    assert counts[0] == counts[1] == counts[2]


def test_a_long_session_is_the_same_each_time_and_grows_at_its_end(tmp_path: Path) -> None:
    bodies = [claude_corpus.make_long(tmp_path / name, 30_000).read_bytes() for name in "ab"]
    assert bodies[0] == bodies[1]
    assert len(bodies[0]) >= 30_000
    last = orjson.loads(bodies[0].splitlines()[-1])
    more = orjson.loads(claude_corpus.next_line(bodies[0].splitlines()[-1], 0))
    assert more["parentUuid"] == last["uuid"] != more["uuid"]
    assert more["timestamp"] > last["timestamp"]


def test_the_list_has_the_order_that_the_bench_waits_for(tmp_path: Path) -> None:
    path = tmp_path / "list.db"
    many_sessions.write(path, 400)
    database = open_database(path, write=False)
    keys = list_keys.all_keys(database, ListQuery())
    rows = listing.rows_of(database, list(keys.rowids))
    in_groups = sorted(range(len(keys.rowids)), key=lambda entry: keys.groups[entry])
    titles = [rows[keys.rowids[entry]].title or "" for entry in in_groups[:30]]
    database.close()
    wanted = [many_sessions.title_start(many_sessions.shown_number(at, 400)) for at in range(30)]
    assert [title.split()[0] for title in titles] == wanted
    assert len(keys.rowids) == many_sessions.active(400) == 360
    assert wanted[:2] == ["#0000000", "#0000040"]
    assert wanted[10] == "#0000001"


def test_the_ends_of_a_session_are_known(tmp_path: Path) -> None:
    path = tmp_path / "long.db"
    long_session.write(path, 400)
    rows = [row for row in _rows(path)["chat_parts"] if row[2] == long_session.SESSION]
    assert "Begin-of-400 " in str(rows[0][5])
    assert "End-of-400 " in str(rows[-1][5])
    assert rows[-1][1] == long_session.LAST_MESSAGE
    assert len(str(rows[200][5])) > 1_000_000


def test_a_kept_store_is_made_once_and_again_for_another_key(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    made: list[str] = []

    def keep(key: str) -> Path:
        def make(path: Path) -> None:
            made.append(key)
            path.write_text(key)

        return kept_store("things", key, make)

    first = keep("a")
    assert keep("a") == first
    second = keep("b")
    assert made == ["a", "b"]
    assert not first.exists()
    assert second.read_text() == "b"
    assert list(second.parent.iterdir()) == [second]


def test_the_key_differs_for_another_maker() -> None:
    assert generator_key(many_sessions) == generator_key(many_sessions)
    assert generator_key(many_sessions) != generator_key(long_session)


@pytest.mark.parametrize(
    ("figure", "floor", "limits", "met"),
    [
        (13.0, 10.0, Limits(ratio=1.3), True),
        (13.1, 10.0, Limits(ratio=1.3), False),
        (13.0, 10.0, Limits(ratio=1.3, value=12), False),
        (69.0, 10.0, Limits(over=60), True),
        (71.0, 10.0, Limits(over=60), False),
        (16.0, None, Limits(value=16), True),
        (16.0, None, Limits(), None),
    ],
)
def test_a_line_is_met_when_every_limit_is_kept(
    figure: float, floor: float | None, limits: Limits, met: bool | None
) -> None:
    line = Line("x", "a thing", figure, "ms", floor, limits)
    assert line.met is met
    assert line.as_json()["met"] is met


def test_the_ratio_of_paired_rounds_wins() -> None:
    line = Line("x", "a thing", 16.0, "s", 10.0, Limits(ratio=1.5), paired=1.4)
    assert (line.ratio, line.met) == (1.4, True)


def test_the_table() -> None:
    drawn = table([
        Line("a", "start", 1_234.5, "ms", 1_000.0, Limits(ratio=1.2)),
        Line("b", "memory", 90.0, "MB", 40.0, Limits(over=60)),
        Line("c", "key", 4.321, "ms", None, Limits(value=16)),
    ])
    assert drawn.splitlines() == [
        "| what   | figure   | floor    | ratio or more | at most | met |",
        "|--------|----------|----------|---------------|---------|-----|",
        "| start  | 1,234 ms | 1,000 ms | x1.23         | x1.2    | NO  |",
        "| memory | 90.0 MB  | 40.0 MB  | +50.0 MB      | +60 MB  | yes |",
        "| key    | 4.32 ms  |          |               | 16 ms   | yes |",
    ]


@pytest.mark.parametrize(
    ("values", "wanted"), [(list(range(1, 101)), 95), ([3.0], 3.0), (list(range(20, 0, -1)), 19)]
)
def test_p95_is_the_nearest_rank(values: list[float], wanted: float) -> None:
    assert p95(values) == wanted
