from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from store.demo import make_demo
from store.engine.database import Database, open_database
from store.engine.schema import REQUIRED_COLUMNS
from store.engine.server.schema import SIDE_TABLES
from store.errors import BackscrollError, Refused
from store.exports.reading import read_session
from store.exports.registry import writer
from store.imports.reading import Imported, import_file
from tests.cli import hostile

DATA = Path(__file__).parents[1] / "data"
NOW = 1_790_000_000_000


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Database]:
    path = make_demo(tmp_path_factory.mktemp("demo") / "demo.db", lambda: NOW)
    database = open_database(path, write=False)
    yield database
    database.close()


@pytest.fixture
def target(db: Database) -> Database:
    return db


def all_ids(db: Database) -> list[str]:
    return [row[0] for row in db.connection.execute("SELECT id FROM chat_sessions ORDER BY id")]


def exported(db: Database, session_id: str, to: str = "jsonl") -> str:
    return "".join(writer(to)(read_session(db, session_id)))


def outcomes(db: Database, path: Path) -> list[Imported]:
    return list(import_file(db, path, clock=lambda: NOW))


def count(db: Database, table: str) -> int:
    return int(db.connection.execute(f"SELECT count(*) FROM {table}").fetchone()[0])


def rows(db: Database) -> list[Any]:
    """Return every row of the tables that an import may write."""
    return [db.connection.execute(f"SELECT * FROM {table} ORDER BY 1, 2").fetchall()
            for table in (*REQUIRED_COLUMNS, *SIDE_TABLES)]


@pytest.mark.parametrize("to", ["json", "jsonl"])
@pytest.mark.one_in(2)
def test_a_round_trip_is_identical_byte_for_byte(
    demo: Database, target: Database, tmp_path: Path, to: str
) -> None:
    for session_id in all_ids(demo):
        before = exported(demo, session_id, to)
        file = tmp_path / "export"
        file.write_text(before, encoding="utf-8")
        (result,) = outcomes(target, file)
        assert result.problems == [] and result.outcome == "added"
        assert exported(target, session_id, to) == before
    assert all_ids(target) == all_ids(demo)


def test_many_sessions_in_one_file_and_twice(
    demo: Database, target: Database, tmp_path: Path
) -> None:
    ids = [name for name in all_ids(demo) if "port" not in name][:5]
    file = tmp_path / "many.jsonl"
    file.write_text("".join(exported(demo, name) for name in ids), encoding="utf-8")
    assert [result.outcome for result in outcomes(target, file)] == ["added"] * 5
    changes = count(target, "changes")
    before = rows(target)
    again = outcomes(target, file)
    assert [result.outcome for result in again] == ["unchanged"] * 5
    assert count(target, "changes") == changes == 5
    assert rows(target) == before


def line(kind: str, **row: Any) -> str:
    return json.dumps({"type": kind, "data": row}) + "\n"


def session(name: str, **more: Any) -> str:
    row: dict[str, Any] = {
        "id": name, "agent": "test", "model": {}, "permissions": [], "metadata": {},
        "created_at": 1, "updated_at": 2,
    }
    return line("session", **(row | more))


def message(name: str, session_id: str, **more: Any) -> str:
    row: dict[str, Any] = {
        "id": name, "session_id": session_id, "role": "user", "metadata": {}, "created_at": 1,
        "updated_at": 2,
    }
    return line("message", **(row | more))


def part(name: str, message_id: str, session_id: str, **more: Any) -> str:
    row: dict[str, Any] = {
        "id": name, "message_id": message_id, "session_id": session_id, "index": 0,
        "type": "text", "data": {"type": "text", "text": "x"}, "created_at": 1, "updated_at": 2,
    }
    return line("part", **(row | more))


GOOD = session("ses_good") + message("msg_g", "ses_good") + part("prt_g", "msg_g", "ses_good")


@pytest.mark.parametrize(
    ("damage", "reason"),
    [
        ('{"type":"part","da\n', ":3: no JSON"),
        (b"\xff\xfe\n".decode("latin-1") + "\n", ":3: no JSON"),
        ('{"type":"event","data":{}}\n', ":3: neither a session, a message nor a part"),
        (part("prt_b", "msg_elsewhere", "ses_bad"), "1 parts belong to no message of the file"),
        (message("msg_x", "ses_good"), ":3: message of ses_good among those of ses_bad"),
        (part("prt_b", "msg_b", "ses_bad", index="0"), ":3: part without a proper index"),
        (part("prt_b", "msg_b", "ses_bad", created_at=2**70), "more than 64 bits"),
        (message("msg_b", "ses_bad"), "a message of this id belongs to another session"),
    ],
)
def test_damage_costs_the_session_it_lies_in(
    target: Database, tmp_path: Path, damage: str, reason: str
) -> None:
    file = tmp_path / "damaged.jsonl"
    file.write_text(session("ses_bad") + message("msg_b", "ses_bad") + damage + GOOD)
    bad, good = outcomes(target, file)
    assert bad.outcome == "refused" and reason in bad.problems[0]
    assert good.outcome == "added"
    assert all_ids(target) == ["ses_good"]
    assert count(target, "chat_messages") == count(target, "chat_parts") == 1


def test_a_session_that_differs_is_left_as_it_is(target: Database, tmp_path: Path) -> None:
    file = tmp_path / "one.jsonl"
    file.write_text(GOOD)
    outcomes(target, file)
    file.write_text(GOOD.replace('"text": "x"', '"text": "y"'))
    (result,) = outcomes(target, file)
    assert result.outcome == "refused"
    assert "in the store already, with other content" in result.problems[0]
    data = target.connection.execute("SELECT data_json FROM chat_parts").fetchall()
    assert data == [('{"type":"text","text":"x"}',)]


def test_rows_before_any_session_are_named(target: Database, tmp_path: Path) -> None:
    file = tmp_path / "headless.jsonl"
    file.write_text(message("msg_1", "ses_1") + GOOD)
    headless, good = outcomes(target, file)
    assert headless.problems == [f"{file}:1: message of ses_1 among those of no session"]
    assert good.outcome == "added"


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"", "is empty"),
        (b"[]", "import --to jsonl or --to json"),
        (b'{"session":{"id":', "is damaged"),
        (b'{"session":{}}', "is not a session export"),
        (b"\x00\x01binary", "has no session"),
    ],
)
def test_files_that_are_no_export(
    target: Database, tmp_path: Path, content: bytes, reason: str
) -> None:
    file = tmp_path / "file"
    file.write_bytes(content)
    with pytest.raises(Refused, match=reason):
        outcomes(target, file)


def test_a_line_that_is_too_long_costs_its_session(
    demo: Database, target: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("store.imports.reading.LONGEST_LINE", 1 << 20)
    monkeypatch.setattr("store.text.exact_json.LONGEST_LINE", 1 << 20)
    broken, whole = all_ids(demo)[:2]
    file = tmp_path / "export.jsonl"
    session, rest = exported(demo, broken).split("\n", 1)
    just_fits = '{"type": "later"}'.ljust(1 << 20)[:-1]
    # Twice and a half as long as is read at once.
    too_long = '{"type": "part", "data": "' + "x" * (5 << 19) + '"}'
    lines = [session, too_long, rest + exported(demo, whole) + just_fits, ""]
    file.write_text("\n".join(lines), encoding="utf-8")
    first, second = outcomes(target, file)
    assert (first.session_id, first.outcome) == (broken, "refused")
    assert first.problems == [f"{file}:2: longer than 1 MiB"]
    last = sum(text.count("\n") for text in lines) + len(lines) - 1
    assert (second.session_id, second.outcome) == (whole, "refused")
    assert second.problems == [f"{file}:{last}: neither a session, a message nor a part"]


def test_a_missing_file(target: Database, tmp_path: Path) -> None:
    with pytest.raises(BackscrollError, match="cannot be read: No such file"):
        outcomes(target, tmp_path / "missing")


def test_a_read_only_store_refuses(demo: Database, tmp_path: Path) -> None:
    with pytest.raises(Refused):
        outcomes(demo, tmp_path / "whatever")


def test_columns_of_another_form_become_metadata(target: Database, tmp_path: Path) -> None:
    file = tmp_path / "grida.jsonl"
    file.write_text(
        session("ses_1", title="T", mode="auto", model=None, workspace_id=None)
        + message("msg_1", "ses_1", hidden_at=7)
    )
    assert [result.outcome for result in outcomes(target, file)] == ["added"]
    (row,) = target.connection.execute("SELECT metadata_json, model_json FROM chat_sessions")
    assert json.loads(row[0]) == {"title": "T", "backscroll": {"columns": {"mode": "auto"}}}
    assert json.loads(row[1])["model_id"] == "unknown"
    (row,) = target.connection.execute("SELECT metadata_json FROM chat_messages")
    assert json.loads(row[0]) == {"hidden_at": 7}
    assert [result.outcome for result in outcomes(target, file)] == ["unchanged"]


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5)
    | st.floats(allow_nan=False, allow_infinity=False),
    lambda inner: st.lists(inner, max_size=3)
    | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=6,
)  # fmt: skip
OBJECTS = st.dictionaries(st.text(max_size=6), JSON, max_size=4)


@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture],
          deadline=None)
@given(st.lists(st.tuples(OBJECTS, st.lists(st.tuples(st.text(max_size=5), JSON), max_size=3)),
                max_size=4), OBJECTS)
def test_round_trips_of_arbitrary_content(
    tmp_path: Path, messages: list[tuple[Any, list[tuple[str, Any]]]], metadata: dict[str, Any]
) -> None:
    (tmp_path / "from.db").unlink(missing_ok=True)
    (tmp_path / "to.db").unlink(missing_ok=True)
    file = tmp_path / "made.jsonl"
    made = session("ses_1", metadata=metadata)
    for number, (facts, parts) in enumerate(messages):
        made += message(f"msg_{number}", "ses_1", metadata=facts, created_at=number)
        for index, (kind, data) in enumerate(parts):
            made += part(f"prt_{number}_{index}", f"msg_{number}", "ses_1", index=index,
                         type=kind, data=data)
    file.write_text(made)
    source = open_database(tmp_path / "from.db", create=True)
    target = open_database(tmp_path / "to.db", create=True)
    try:
        assert [result.problems for result in outcomes(source, file)] == [[]]
        first = exported(source, "ses_1")
        file.write_text(first, encoding="utf-8")
        assert [result.outcome for result in outcomes(target, file)] == ["added"]
        assert exported(target, "ses_1") == first
    finally:
        source.close()
        target.close()


def test_a_killed_import_leaves_no_half_session(target: Database, tmp_path: Path) -> None:
    file = tmp_path / "one.jsonl"
    file.write_text(GOOD)
    if target.server is None:
        target.connection.execute(
            "CREATE TRIGGER stop BEFORE INSERT ON chat_parts BEGIN SELECT RAISE(ABORT, 'no'); END")
    else:
        target.remote.script("ALTER TABLE chat_parts ADD CONSTRAINT stop CHECK (false) NOT VALID")
    (result,) = outcomes(target, file)
    assert result.outcome == "refused"
    assert count(target, "chat_sessions") == count(target, "chat_messages") == 0
    assert not target.connection.in_transaction


@pytest.mark.parametrize("name", [
    "../../../x", "/etc/passwd", "-x", "--yolo", "", ".", "a b", "a\n", "a\x00", "\x1b]0;x\x07",
    "é", "a/b", "a\\b", "x" * 300,
])  # fmt: skip
@pytest.mark.parametrize("place", [0, 1, 2])
def test_an_id_that_is_none_is_refused_with_the_reason(
    tmp_path: Path, db: Database, name: str, place: int
) -> None:
    """Of a session, a message or a part; the sessions beside it come in."""
    bad, good = hostile.session(), hostile.session()
    bad[place]["data"]["id"] = name
    hostile.write(tmp_path / "in.jsonl", good, bad, hostile.session())
    results = [*import_file(db, tmp_path / "in.jsonl")]
    assert [one.outcome for one in results] == ["added", "refused", "added"]
    assert "without a proper id: it may have letters" in results[1].problems[0]


def test_a_kind_of_another_type_is_named(db: Database) -> None:
    results = [*import_file(db, DATA / "hostile" / "import-type-list.jsonl")]
    assert [one.outcome for one in results] == ["added", "refused", "added"]
    with pytest.raises(Refused, match="has no session"):
        list(import_file(db, DATA / "hostile" / "type-list.jsonl"))


@pytest.mark.parametrize("value", [["x"], {"a": 1}, 2**63, -(2**63) - 1])
def test_a_value_that_no_column_holds_is_named(
    tmp_path: Path, db: Database, value: object
) -> None:
    names = {name for table in REQUIRED_COLUMNS.values() for name in table
             if not name.endswith("_json")}  # fmt: skip
    for name in sorted(names):
        bad = hostile.session()
        row = next((one["data"] for one in reversed(bad) if name in one["data"]), bad[0]["data"])
        (bad[-1]["data"] if name.startswith("tool_") else row)[name] = value
        hostile.write(tmp_path / "in.jsonl", bad)
        (result,) = import_file(db, tmp_path / "in.jsonl")
        assert result.outcome == "refused"
        assert f"without a proper {name}" in result.problems[0], result.problems
