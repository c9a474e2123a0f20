from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest

from store.demo import make_demo
from store.engine.database import open_database
from store.queries.list_keys import all_keys
from store.queries.listing import ListQuery
from store.system.clock import system_clock
from tests.cli.conftest import Run

CONTRACT = {
    "id", "agent", "workspace_root", "model", "parent_id", "parent_message_id", "permissions",
    "metadata", "prompt_tokens", "completion_tokens", "reasoning_tokens", "cache_read",
    "cache_write", "total_tokens", "cost_usd", "created_at", "updated_at", "archived_at",
}  # fmt: skip
COMPUTED = {
    "title", "source", "lineage", "activity", "activity_from", "message_count", "hidden_count",
    "queued_count", "turn_count",
}  # fmt: skip


def source_ids(found: list[dict[str, object]]) -> list[object]:
    return [summary["source"]["id"] for summary in found]  # type: ignore[index]


def test_json_has_the_columns_and_what_is_computed(run: Run, demo: Path) -> None:
    found = run("sessions", "--json").json
    assert all(set(summary) == CONTRACT | COMPUTED for summary in found)
    first = found[0]
    assert first["title"] == "Retry loop in the sync worker"
    assert first["model"] == {"provider_id": "anthropic", "model_id": "claude-sonnet-4-5"}
    assert first["permissions"][0]["action"] == "allow"
    assert first["source"]["kind"] == "claude-code"
    assert first["lineage"] is None
    # Stored as running long ago, and nobody vouches for it.
    assert (first["activity"], first["activity_from"]) == ("interrupted", "guessed")
    assert (first["message_count"], first["hidden_count"], first["queued_count"]) == (11, 4, 1)
    assert first["turn_count"] == 4


def test_a_session_that_runs_by_its_file_alone_is_guessed_to_run(run: Run, home: Path) -> None:
    store = make_demo(home / "now.db", system_clock)
    first = run("sessions", "--json", "--store", store).json[0]
    assert first["title"] == "Retry loop in the sync worker"
    assert (first["activity"], first["activity_from"]) == ("running", "guessed")


def test_children_are_listed_with_their_lineage(run: Run, demo: Path) -> None:
    by_id = {summary["source"]["id"]: summary for summary in run("sessions", "--json").json}
    parent = by_id["retry-loop"]
    fork, subagent = by_id["backoff-fork"], by_id["retry-loop-explore"]
    assert fork["lineage"]["kind"] == "fork" and subagent["lineage"]["kind"] == "subagent"
    assert fork["lineage"]["parent_id"] == parent["id"] == subagent["parent_id"]
    assert fork["lineage"]["parent_message_id"] == fork["parent_message_id"] is not None


def test_order_is_newest_first(run: Run, demo: Path) -> None:
    keys = [(s["updated_at"], s["id"]) for s in run("sessions", "--json").json]
    assert keys == sorted(keys, reverse=True)


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["--archived", "only"], ["rate-limits"]),
        (["--agent", "pi"], ["broken-anchors"]),
        (["--source", "gemini"], ["ci-3-13", "murajaa"]),
        (["--workspace", "/home/mira/notes/"], ["weekly-review", "disk-full", "ryoko", "murajaa"]),
        (["--query", "Überlange zeilen"], ["lange-zeilen"]),
        (["--query", "100%"], []),
        (["--agent", "codex", "--workspace", "/home/mira/code/api"], ["postgres-move"]),
        (["--limit", "2"], ["retry-loop", "retry-loop-explore"]),
        (["--limit", "0"], []),
    ],
)
def test_filters(run: Run, demo: Path, arguments: list[str], expected: list[str]) -> None:
    assert source_ids(run("sessions", "--json", *arguments).json) == expected


@pytest.mark.parametrize(("query", "expected"), [
    ("agent:pi", ["broken-anchors"]), ("is:archived", ["rate-limits"]),
    ("workspace:notes agent:gemini", ["murajaa"]), ("title:anchors", ["broken-anchors"]),
    ("before:1999", []), ("file:worker.py agent:claude", None), ("tool:bash -agent:claude", None),
    ("is:idle agent:pi", ["broken-anchors"]), ("-is:idle agent:pi", []),
])
def test_query(run: Run, demo: Path, query: str, expected: list[str] | None) -> None:
    result = run("sessions", "--json", "--query", query)
    found = source_ids(result.json)
    assert result.code == 0
    if expected is None:
        assert 0 < len(found) < len(source_ids(run("sessions", "--json").json))
    else:
        assert found == expected


@pytest.mark.parametrize(("query", "words"), [
    ("agnt:pi", "There is no field `agnt:`"), ("after:someday", "someday is no date"),
    ("is:runing", "did you mean `is:running`?"), ("agent:", "`agent:` needs a value"),
    ("re:/(/", "The regular expression is wrong: missing ), unterminated subpattern"),
    ('"open', "The quote is not closed"), ("cost:>much", "much is no number"),
])
def test_a_query_that_cannot_be_read(run: Run, demo: Path, query: str, words: str) -> None:
    result = run("sessions", "--query", query)
    assert (result.code, result.out) == (2, "")
    assert words in result.err.splitlines()[-1]


def test_pages_of_a_query(run: Run, demo: Path) -> None:
    whole = source_ids(run("sessions", "--json", "--query", "workspace:api is:idle").json)
    result = run("sessions", "--json", "--query", "workspace:api is:idle", "--limit", "1")
    assert source_ids(result.json) == whole[:1] and "There are more" in result.err
    cursor = result.err.split()[-1]
    rest = run("sessions", "--json", "--query", "workspace:api is:idle", "--cursor", cursor)
    assert source_ids(rest.json) == whole[1:]
    last = run("sessions", "--json", "--query", "agent:pi", "--limit", "1")
    assert "more" not in last.err


def test_archived_sessions_are_excluded_by_default(run: Run, demo: Path) -> None:
    default = source_ids(run("sessions", "--json").json)
    every = source_ids(run("sessions", "--json", "--archived", "include").json)
    assert set(every) - set(default) == {"rate-limits"}


def test_pages_by_cursor_make_the_whole_list(run: Run, demo: Path) -> None:
    whole = source_ids(run("sessions", "--json").json)
    paged: list[object] = []
    arguments = ["--limit", "5"]
    while found := run("sessions", "--json", *arguments).json:
        paged += source_ids(found)
        cursor = f"{found[-1]['updated_at']}:{found[-1]['id']}"
        arguments = ["--limit", "5", "--cursor", cursor]
    assert paged == whole


def test_says_that_there_are_more(run: Run, demo: Path) -> None:
    result = run("sessions", "--limit", "1")
    assert len(result.out.splitlines()) == 1
    assert result.err.startswith("There are more. Continue with --cursor 1790000000000:ses_")
    assert "more" not in run("sessions").err


def test_empty_sessions_only_with_children(run: Run, demo: Path) -> None:
    insert = (
        "INSERT INTO chat_sessions(id, agent, model_json, parent_id, created_at, updated_at) "
        "VALUES (?, 'x', '{}', ?, 1, 1)"
    )
    with sqlite3.connect(demo) as connection:
        connection.executemany(insert, [("ses_parent", None), ("ses_child", "ses_parent")])
        connection.execute(
            "INSERT INTO chat_messages VALUES ('msg_1', 'ses_child', 'user', '{}', 1, 1)"
        )
    connection.close()
    found = run("sessions", "--json", "--agent", "x").json
    assert [summary["id"] for summary in found] == ["ses_parent", "ses_child"]
    with sqlite3.connect(demo) as connection:
        connection.execute("DELETE FROM chat_sessions WHERE id = 'ses_child'")
    connection.close()
    assert run("sessions", "--json", "--agent", "x").json == []


def test_lines_to_a_pipe_are_plain_and_whole(run: Run, demo: Path) -> None:
    out = run("sessions").out
    assert "\x1b" not in out
    line = next(line for line in out.splitlines() if "京都" in line)
    assert line.endswith("京都旅行の計画 🧳")
    assert "↳ explore: where tokens expire" in out
    assert "  ◐ needs approval\n" in out
    assert "  ✗ failed\n" in out and "  ✗ ~interrupted\n" in out


def test_an_empty_list_says_why(run: Run, demo: Path, tmp_path: Path) -> None:
    result = run("sessions", "--agent", "nobody")
    assert (result.code, result.out) == (0, "")
    assert result.err == "No matching sessions (21 in the store)\n"
    with sqlite3.connect(demo) as connection:
        connection.execute("DELETE FROM chat_sessions")
    connection.close()
    assert run("sessions").err == "The store has no sessions. Run `backscroll sync` first.\n"


def test_a_library_that_was_not_made_yet(run: Run) -> None:
    result = run("sessions", "--json")
    assert (result.code, result.json) == (0, [])
    assert result.err == "The library is empty. Run `backscroll sync` first.\n"


@pytest.mark.parametrize(
    "arguments",
    [["--limit", "x"], ["--limit", "-1"], ["--cursor", "abc"], ["--cursor", "1:"],
     ["--cursor", f"{2**63}:x"],
     ["--archived", "maybe"], ["--nonsense"], ["extra"]],
)
def test_wrong_usage_ends_with_2(run: Run, demo: Path, arguments: list[str]) -> None:
    result = run("sessions", *arguments)
    assert result.code == 2 and "usage: backscroll sessions" in result.err


def test_a_folder_is_found_by_either_of_its_names(run: Run, home: Path) -> None:
    real, link = home / "real", home / "link"
    real.mkdir()
    link.symlink_to(real)
    database = open_database(home / "names.db", create=True)
    for number, folder in enumerate((real, link, home / "realm")):
        database.connection.execute(
            "INSERT INTO chat_sessions(id, agent, workspace_root, model_json, metadata_json,"
            " created_at, updated_at) VALUES (?, 'a', ?, '{}', '{}', ?, ?)",
            (f"ses_{number:026d}", str(folder), number, number))
        database.connection.execute(
            "INSERT INTO chat_messages VALUES (?, ?, 'user', '{}', 1, 1)",
            (f"msg_{number:026d}", f"ses_{number:026d}"))
    for name in (real, link, f"{link}/"):
        found = run("sessions", "--json", "--store", home / "names.db", "--workspace", name).json
        assert [one["workspace_root"] for one in found] == [str(link), str(real)]
        keys = all_keys(database, ListQuery(workspace=str(name).rstrip("/")))
        assert sorted(keys.rowids) == [1, 2]
    database.close()


@pytest.mark.parametrize("field", ["tool:bash", "file:worker.py", "role:assistant"])
@pytest.mark.one_in(3)
def test_a_negated_field_of_parts_leaves_out_sessions_that_have_any(
    run: Run, demo: Path, field: str
) -> None:
    def ids(*query: str) -> set[str]:
        return {one["id"] for one in run("sessions", *query, "--json").json}

    every, having, lacking = ids(), ids("--query", field), ids("--query", f"-{field}")
    assert having
    assert lacking == every - having
    assert ids("--query", f"-{field} retry") == ids("--query", "retry") - having
