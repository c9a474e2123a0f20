"""lionagi's ``state.db``: branches, forks of each kind, statuses, damage, growth.

Expected values: the sample's README and a reading of its rows by hand.
"""

from __future__ import annotations

import json
import random
import sqlite3
from contextlib import closing
from operator import methodcaller
from pathlib import Path
from typing import Any

import pytest

from store.engine.database import open_database
from store.ids import derived_session_id
from store.sources.base.drafts import SessionDraft
from store.sources.lionagi import LionagiSource
from store.sources.registry import all_sources
from store.sync.engine import Sync
from store.sync.settings import Settings
from store.sync.targets import Target
from tests.sources import grown, row_sources

FILE = Path(__file__).parent.parent / "data" / "lionagi" / "state.db"
NOTES = "b9d51ec7-45d0-4f9c-973e-ee983492d1ff"
FLOW = "9fcd6a94-5707-4442-87e4-72bca97c9ea4"
CODEX = "97401104-ef5d-4a26-8af6-ce44ca440588"
EMPTY = "ae934aee-616b-46c7-b3e3-3438a6fa5d33"
MAIN = "0675b28b-72fb-4d49-8f12-2f80ff3ee3ed"
SPLIT = "e89fd644-e2af-4049-8324-d8a6030dac62"
CLONE = "ab729f2c-fd55-49f8-92ff-244aadb6d91a"
ADR, ADR2 = "6ad8738f-b902-5fcc-91c7-7caf4abc036a", "b409d032-fd14-51d3-a8d6-ad4efcf2fd4c"
R1 = "649a0907-5159-4d93-baa4-741051114fb0"
MAIN_IDS = ["f3ea1628", "9507e484", "63ed748c", "d9535b5b", "204ad673", "a4c30469", "7d555b1f"]


@pytest.fixture(scope="module")
def sample(tmp_path_factory: pytest.TempPathFactory) -> dict[str, SessionDraft]:
    file = row_sources.copied(FILE, tmp_path_factory.mktemp("lionagi"))
    drafts, problems = grown.read_all(LionagiSource(), file)
    assert problems == []
    return drafts


@pytest.fixture
def state(tmp_path: Path) -> Path:
    folder = tmp_path / ".lionagi"
    folder.mkdir()
    return row_sources.copied(FILE, folder)


def ids(draft: SessionDraft) -> list[str]:
    return [message.source_id[:8] for message in draft.messages]


def originals(draft: SessionDraft) -> list[str | None]:
    return [m.inherited_from and m.inherited_from[:8] for m in draft.messages]


def answer(text: str, branch: str, at: float, name: str) -> tuple[Any, ...]:
    content = json.dumps({"assistant_response": text})
    return (name, at, '{"lion_class": "lionagi.protocols.messages.assistant_response.Assistant'
            'Response"}', content, branch, "user", "assistant", 3)  # fmt: skip


def add_messages(connection: sqlite3.Connection, *rows: tuple[Any, ...]) -> None:
    connection.executemany(
        "INSERT INTO messages(id, created_at, node_metadata, content, sender, recipient, role,"
        " lion_class) VALUES (?, ?, ?, ?, ?, ?, ?, ?)", rows,
    )  # fmt: skip


def append(connection: sqlite3.Connection, branch: str, *names: str) -> None:
    for name in names:
        connection.execute(
            "UPDATE progressions SET collection = json_insert(collection, '$[#]', ?)"
            " WHERE id = (SELECT progression_id FROM branches WHERE id = ?)", (name, branch),
        )  # fmt: skip


def grow(connection: sqlite3.Connection) -> None:
    add_messages(connection, answer("more", R1, 1790003700.0, "new"))
    append(connection, R1, "new")


def add_branch(
    connection: sqlite3.Connection, name: str, metadata: Any, collection: list[str]
) -> None:
    connection.execute(
        "INSERT INTO progressions(id, created_at, collection) VALUES (?, 1, ?)",
        (f"p-{name}", json.dumps(collection)),
    )
    connection.execute(
        "INSERT INTO branches(id, created_at, node_metadata, name, session_id, progression_id)"
        " VALUES (?, 1790000030.0, ?, ?, ?, ?)", (name, json.dumps(metadata), name, NOTES,
                                                  f"p-{name}"),
    )  # fmt: skip


def test_each_branch_is_a_thread_and_the_first_is_the_session(
    sample: dict[str, SessionDraft],
) -> None:
    assert sample.keys() == {NOTES, FLOW, CODEX, EMPTY, SPLIT, CLONE, ADR, ADR2, R1}
    branches = {d.metadata["backscroll"]["branch"]["name"] for d in sample.values()}
    assert branches == {"main", "fork-of-main", "flow-clone", "adr-fork", "adr-fork-2", "planner",
                        "r1", "codex"}  # fmt: skip
    for draft in sample.values():
        grown.check_records(draft)


def test_the_first_branch(sample: dict[str, SessionDraft]) -> None:
    draft = sample[NOTES]
    assert ids(draft) == MAIN_IDS
    assert [m.role for m in draft.messages] == [
        "system", "user", "assistant", "assistant", "user", "assistant", "assistant",
    ]  # fmt: skip
    assert all((m.metadata.get("origin") == "human") == (m.role == "user")
               for m in draft.messages)
    assert grown.words(draft.messages[1]) == "Write release notes for 2.4.0"
    own = draft.messages[1].metadata["backscroll"]["instruction"]
    assert own == {"prompt_context": [{"tag": "v2.4.0"}]}
    assert len(grown.words(draft.messages[-1])) > 60_000
    assert "日本語" in grown.words(draft.messages[4])
    log, write = grown.calls(draft.messages)
    assert log.data["input"] == {"range": "v2.3.0..v2.4.0", "n": 20}
    assert log.data["output"]["commits"][0]["subject"] == "fix: ümlaut"
    assert grown.extra(log)["status"] == "ok" and len(log.records) == 2
    assert write.data["output"] == "error: permission denied: NOTES.md"
    assert (write.tool_state, grown.extra(write)["status"]) == ("output-available", "error")
    assert log.updated_at - log.created_at == 1000


def test_a_stored_fork_has_copies(sample: dict[str, SessionDraft]) -> None:
    draft = sample[SPLIT]
    assert draft.lineage is not None
    assert (draft.lineage.kind, draft.lineage.parent_source_id) == ("fork", NOTES)
    assert draft.lineage.parent_message_source_id == sample[NOTES].messages[-1].source_id
    assert originals(draft) == ["f3ea1628", *MAIN_IDS, None, None]
    states = [part.tool_state for part in grown.calls(draft.messages)]
    assert states == ["output-available", "output-available"]
    assert grown.words(draft.messages[-1]) == "Shorter: one bug fix."
    assert draft.model == {"provider_id": "openai", "model_id": "gpt-5-mini"}
    models = [m.metadata["model"]["model_id"] for m in draft.messages if m.role == "assistant"]
    assert models == ["claude-sonnet-4-6"] * 4 + ["gpt-5-mini"]


def test_a_clone_that_stores_only_what_is_new(sample: dict[str, SessionDraft]) -> None:
    draft = sample[CLONE]
    assert ids(draft) == ["da75bc91", *MAIN_IDS, "99baf4b0", "e78649d4"]
    assert originals(draft) == ["f3ea1628", *MAIN_IDS, None, None]
    assert draft.lineage is not None and draft.lineage.kind == "fork"
    assert [part.tool_state for part in grown.calls(draft.messages)] == ["output-available"] * 2
    times = [message.created_at for message in draft.messages]
    assert times == sorted(times)


def test_forks_that_point_at_a_place(sample: dict[str, SessionDraft]) -> None:
    assert ids(sample[ADR]) == [*MAIN_IDS[:4], "1db02727", "1149096d"]
    assert originals(sample[ADR]) == [*MAIN_IDS[:4], None, None]
    assert ids(sample[ADR2]) == [*MAIN_IDS[:4], "1db02727", "663c9e92"]
    first, second = sample[ADR].lineage, sample[ADR2].lineage
    assert first is not None and first.parent_source_id == NOTES
    assert first.parent_message_source_id == sample[NOTES].messages[3].source_id
    assert second is not None and second.parent_source_id == ADR
    assert second.parent_message_source_id == sample[ADR].messages[4].source_id


def test_agents_of_a_flow_and_system_messages_out_of_the_list(
    sample: dict[str, SessionDraft],
) -> None:
    flow, agent = sample[FLOW], sample[R1]
    assert [grown.words(m) for m in flow.messages if m.role != "assistant"] == [
        "Plan.", "planner: go",
    ]  # fmt: skip
    assert flow.messages[0].role == "system"
    assert agent.lineage is not None
    assert (agent.lineage.kind, agent.lineage.parent_source_id) == ("subagent", FLOW)
    (call,) = grown.calls(agent.messages)
    assert (call.type, call.tool_state) == ("tool-bash", "input-available")


def test_statuses_and_signals(sample: dict[str, SessionDraft]) -> None:
    states = {name: draft.metadata["activity"]["state"] for name, draft in sample.items()}
    assert states[NOTES] == states[EMPTY] == states[CLONE] == "ended"
    assert states[FLOW] == states[R1] == "running" and states[CODEX] == "error"
    assert all(d.metadata["activity"]["from"] == "stored" for d in sample.values())
    activity = sample[FLOW].metadata["activity"]
    assert (activity["pid"], activity["host"]) == (99999, "example")
    own = sample[FLOW].metadata["backscroll"]
    assert own["current_phase"] == "executing" and own["signal_count"] == 3
    assert [one["kind"] for one in own["signals"]] == ["NodeStarted", "NodeCompleted",
                                                       "NodeStarted"]  # fmt: skip
    changes = [c["status"] for c in sample[CODEX].metadata["backscroll"]["status_changes"]]
    assert changes == ["running", "failed"]


def events(draft: SessionDraft) -> list[tuple[str, str]]:
    """Each event's message and name."""
    return [(message.source_id[:8], part.data["data"]["name"]) for message in draft.messages
            for part in message.parts if part.type == "data-event"]


def test_signals_and_changes_of_status_are_lines(
    sample: dict[str, SessionDraft], state: Path
) -> None:
    last = sample[FLOW].messages[-1].source_id[:8]
    names = [name for _, name in events(sample[FLOW])]
    assert names == ["signal NodeStarted", "signal NodeCompleted", "signal NodeStarted",
                     "status running"]
    assert events(sample[NOTES])[-1] == (MAIN_IDS[-1], "status running to completed")
    assert events(sample[FLOW])[-1][0] == last
    part = sample[CODEX].messages[-1].parts[-1]
    assert part.data["data"] == {"name": "status running to failed", "details": {
        "summary": "RuntimeError: boom ☠", "code": "run.failed.exception", "source": "executor",
        "metadata": {"exc": "RuntimeError"}}}
    assert part.created_at == 1795816604028
    record = json.loads(sample[CODEX].records[part.records[0]])
    assert (record["table"], record["status"]) == ("status_transitions", "failed")
    (only,) = sample[EMPTY].messages
    assert only.role == "system" and [part.type for part in only.parts] == ["data-event"] * 2
    for name in (SPLIT, CLONE, ADR, ADR2, R1):
        assert events(sample[name]) == []

    def control(connection: sqlite3.Connection) -> None:
        connection.execute(
            "INSERT INTO session_controls(id, session_id, verb, payload, created_at, result)"
            " VALUES ('c1', ?, 'pause', '{\"why\": \"lunch\"}', 1790000010.5, 'null')", (NOTES,))
        connection.execute("UPDATE session_signals SET payload = '[1, 2]', ts = 'soon'")

    row_sources.written(state, control)
    drafts, problems = grown.read_all(LionagiSource(), state)
    assert problems == []
    (found,) = [part for message in drafts[NOTES].messages for part in message.parts
                if part.data.get("data", {}).get("name") == "control pause"]
    assert found.data["data"]["details"] == {"payload": {"why": "lunch"}}
    assert events(drafts[FLOW])[0][1] == "signal NodeStarted"


def test_names(sample: dict[str, SessionDraft]) -> None:
    names = {key: (draft.title, draft.title_from) for key, draft in sample.items()}
    assert names[NOTES] == ("Release notes 2.4.0 ✓", "user-label")
    assert names[FLOW] == ("fix the flaky test", "name")
    assert names[CODEX] == ("codex · 9740 · 14:13", "agent")
    assert names[EMPTY] == ("lint", "show")
    assert names[ADR] == ("Release notes 2.4.0 ✓ · adr-fork", "branch")


def test_an_import_with_an_unknown_class_and_a_pruned_body(
    sample: dict[str, SessionDraft],
) -> None:
    draft = sample[CODEX]
    assert draft.lineage is not None and draft.lineage.kind == "fork"
    assert draft.lineage.parent_source_id == "ca50d5b6-0863-5533-bc2b-b3b75938e163"
    unknown, pruned = draft.messages[2:]
    assert unknown.role == "system" and unknown.metadata["backscroll"]["role"] == "tool"
    assert unknown.parts[0].data["data"]["details"] == {"anything": ["goes", 1, None]}
    assert pruned.role == "assistant"
    assert pruned.parts[0].data["data"]["name"] == "pruned"
    assert pruned.parts[0].data["data"]["details"]["original_bytes"] == 99999


def test_what_a_run_used_counts_once_for_all_its_branches(
    sample: dict[str, SessionDraft], state: Path, tmp_path: Path
) -> None:
    used = {name: grown.tokens(draft.messages) for name, draft in sample.items()}
    assert used[NOTES]["input"] == 12345 and used[NOTES]["output"] == 678
    assert sum(sum(buckets.values()) for buckets in used.values()) == 12345 + 678
    database = grown.synced(LionagiSource(), state, tmp_path / "library.db")
    rows = database.connection.execute("SELECT sum(total_tokens), sum(cost_usd), count(parent_id)"
                                       " FROM chat_sessions").fetchone()  # fmt: skip
    assert rows == (13023, 0.0421, 5)
    (copies,) = database.connection.execute(
        "SELECT count(*) FROM chat_messages WHERE session_id = ?"
        " AND json_extract(metadata_json, '$.inherited_from') IS NOT NULL",
        (derived_session_id("lionagi", CLONE),),
    ).fetchone()
    assert copies == 8


def test_a_fork_of_a_fork_finds_its_calls_by_the_whole_chain(state: Path) -> None:
    def fork(connection: sqlite3.Connection) -> None:
        rows = connection.execute(
            "SELECT id, node_metadata, content, role, lion_class FROM messages WHERE id LIKE"
            " '980a6804%' OR id LIKE '088816e2%'"
        ).fetchall()
        for name, metadata, content, role, kind in rows:
            copy = json.loads(metadata) | {"clone_from": name}
            values = (f"second-{name}", 1790000031.0, json.dumps(copy), content, role, kind)
            connection.execute(
                "INSERT INTO messages(id, created_at, node_metadata, content, role, lion_class)"
                " VALUES (?, ?, ?, ?, ?, ?)", values,
            )  # fmt: skip
        names = [f"second-{row[0]}" for row in sorted(rows, key=lambda row: row[4])]
        add_branch(connection, "second", {"clone_from": {"id": SPLIT, "progression": []}}, names)

    row_sources.written(state, fork)
    drafts, problems = grown.read_all(LionagiSource(), state)
    assert problems == []
    (call,) = grown.calls(drafts["second"].messages)
    assert call.tool_state == "output-available"
    assert drafts["second"].lineage is not None
    assert drafts["second"].lineage.parent_source_id == SPLIT


def test_a_clone_of_a_clone_loses_no_turn(state: Path) -> None:
    lost = [f"copy-{number}" for number in range(9)]
    system = "da75bc91-62f7-48ba-8946-7d25e9ec52cf"

    def clone(connection: sqlite3.Connection) -> None:
        rows = connection.execute("SELECT id FROM messages WHERE id LIKE '99baf4b0%'"
                                  " OR id LIKE 'e78649d4%' ORDER BY created_at")  # fmt: skip
        listed = [system, *lost, *(row[0] for row in rows.fetchall())]
        add_messages(connection, answer("third", "third", 1790000040.0, "own"))
        add_branch(connection, "third", {"clone_from": {"id": CLONE, "progression": listed}},
                   ["own"])  # fmt: skip

    row_sources.written(state, clone)
    drafts, problems = grown.read_all(LionagiSource(), state)
    assert problems == []
    assert ids(drafts["third"]) == ["da75bc91", *MAIN_IDS, "99baf4b0", "e78649d4", "own"]
    assert originals(drafts["third"])[-1] is None
    assert drafts["third"].lineage is not None
    assert drafts["third"].lineage.parent_message_source_id == drafts[CLONE].messages[-1].source_id


def test_the_place_of_a_fork_may_be_in_columns(state: Path) -> None:
    """The design record calls that a future migration."""
    before = grown.read_all(LionagiSource(), state)[0]

    def promote(connection: sqlite3.Connection) -> None:
        for name, kind in (("parent_branch_id", "TEXT"), ("forked_at_ord", "INTEGER")):
            connection.execute(f"ALTER TABLE branches ADD COLUMN {name} {kind}")
            connection.execute(
                f"UPDATE branches SET {name} = json_extract(node_metadata, '$.{name}'),"
                f" node_metadata = json_remove(node_metadata, '$.{name}')"
                " WHERE json_valid(node_metadata)"
            )

    row_sources.written(state, promote)
    after, problems = grown.read_all(LionagiSource(), state)
    assert problems == []
    assert ids(after[ADR]) == ids(before[ADR]) and originals(after[ADR]) == originals(before[ADR])


def test_a_circle_of_forks_ends(state: Path) -> None:
    def circle(connection: sqlite3.Connection) -> None:
        add_branch(connection, "a", {"parent_branch_id": "b", "forked_at_ord": 9}, [])
        add_branch(connection, "b", {"parent_branch_id": "a", "forked_at_ord": 9}, [])

    row_sources.written(state, circle)
    drafts, _ = grown.read_all(LionagiSource(), state)
    assert drafts["a"].messages == drafts["b"].messages == []


def test_orphans_and_odd_rows_cost_only_themselves(state: Path) -> None:
    def spoil(connection: sqlite3.Connection) -> None:
        connection.execute("DELETE FROM sessions WHERE id = ?", (CODEX,))
        connection.execute("UPDATE messages SET content = '{torn' WHERE id LIKE '9507e484%'")
        connection.execute("DELETE FROM messages WHERE id LIKE '204ad673%'")
        connection.execute("DELETE FROM branches WHERE id = ?", (ADR,))
        connection.execute("UPDATE branches SET progression_id = 'none' WHERE id = ?", (R1,))

    row_sources.written(state, spoil)
    drafts, problems = grown.read_all(LionagiSource(), state)
    reasons = [problem.reason for problem in problems]
    assert f"1 branches of session {CODEX}, which is not there" in reasons
    assert f"session {FLOW}: branch {R1} has no progression" in reasons
    assert any("holds no JSON object" in reason for reason in reasons)
    assert any("1 messages of branch" in reason for reason in reasons)
    assert any("forked from a branch that is not there" in reason for reason in reasons)
    assert drafts.keys() == {NOTES, FLOW, EMPTY, SPLIT, CLONE, ADR2, R1}
    assert ids(drafts[NOTES]) == [name for name in MAIN_IDS if name != "204ad673"]
    assert drafts[NOTES].messages[1].parts[0].type == "data-event"


def test_keys_of_models_are_not_kept(state: Path) -> None:
    row_sources.written(state, lambda c: c.execute(
        "UPDATE branches SET node_metadata = json_set(node_metadata,"
        " '$.chat_model.endpoint.config.default_headers.x', 'sk-secret')"
    ))  # fmt: skip
    drafts, _ = grown.read_all(LionagiSource(), state)
    assert b"sk-secret" in state.read_bytes() and drafts
    for draft in drafts.values():
        assert b"sk-secret" not in b"".join(draft.records)
        assert "sk-secret" not in json.dumps(draft.metadata)


def test_where_it_is_found(state: Path, tmp_path: Path) -> None:
    source = LionagiSource()
    assert source.default_roots({}, tmp_path) == [state]
    named = {"LIONAGI_STATE_DB_URL": "sqlite+aiosqlite:////data/my%20state.db?x=1"}
    assert source.default_roots(named, tmp_path) == [Path("/data/my state.db"), state]
    named = {"LIONAGI_STATE_DB_URL": "postgresql://host/db"}
    assert source.default_roots(named, tmp_path) == [state]
    assert source.recognise(state.parent) == state.parent
    assert [one.kind for one in all_sources() if one.recognise(state)] == ["lionagi"]


def test_nothing_is_touched(state: Path, tmp_path: Path) -> None:
    row_sources.check_untouched(LionagiSource(), state, tmp_path / "library.db")


def test_embeddings_and_bookmarks_say_nothing(
    state: Path, sample: dict[str, SessionDraft]
) -> None:
    row_sources.written(state, methodcaller(
        "executescript", "UPDATE messages SET embedding = '[0.123456789]';"
        " UPDATE sessions SET first_msg_id = 'zz', last_msg_id = NULL;"))
    drafts, problems = grown.read_all(LionagiSource(), state)
    assert problems == [] and drafts.keys() == sample.keys()
    for name, draft in drafts.items():
        assert ids(draft) == ids(sample[name]) and "0.123456789" not in repr(draft)


def test_a_writer_is_seen_and_left_alone(state: Path) -> None:
    moved = row_sources.check_live(LionagiSource(), state, grow)
    assert [unit.key for unit in moved] == [f"state.db/{FLOW}"]


def test_what_a_killed_writer_left_is_read(state: Path) -> None:
    row_sources.check_killed(LionagiSource, state, grow)


def test_each_kind_of_write_moves_its_session_alone(state: Path) -> None:
    source = LionagiSource()
    source.units_at(state, [str(state)])
    for change in (
        f"UPDATE sessions SET user_label = 'x' WHERE id = '{FLOW}'",
        f"INSERT INTO session_signals(id, session_id, seq, kind, ts) VALUES ('s', '{FLOW}', 4,"
        " 'NodeCompleted', 1)",
        f"UPDATE branches SET status = 'completed' WHERE id = '{R1}'",
        "UPDATE messages SET content = '{\"assistant_response\": \"Plan: isolate the time..\"}'"
        " WHERE id LIKE '1664499a%'",
    ):
        row_sources.written(state, methodcaller("execute", change))
        moved = source.units_at(state, [str(state)])
        assert moved is not None and [unit.key for unit in moved] == [f"state.db/{FLOW}"], change
        assert source.units_at(state, [str(state)]) == []


def test_a_poll_of_many_sessions_reads_the_one_that_grew(
    state: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("store.sources.lionagi.source._LARGE", 0)

    def many(connection: sqlite3.Connection) -> None:
        connection.executemany(
            "INSERT INTO sessions(id, created_at, updated_at, progression_id, status)"
            " SELECT ?, 1, 1, progression_id, 'completed' FROM sessions WHERE id = ?",
            ((f"s{number}", EMPTY) for number in range(500)),
        )

    row_sources.written(state, many)
    source = LionagiSource()
    assert len(source.units_at(state, [str(state)]) or ()) == 504
    row_sources.written(state, grow)
    assert [unit.key for unit in source.units_at(state, [str(state)]) or ()] == [f"state.db/{FLOW}"]


def test_a_locked_one_is_read_later(
    state: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    row_sources.check_locked(LionagiSource, state, tmp_path / "library.db", monkeypatch)


def test_damaged_and_missing_databases(state: Path) -> None:
    row_sources.check_damaged(LionagiSource, state)


def test_one_that_goes_away(state: Path, tmp_path: Path) -> None:
    row_sources.check_disappears(LionagiSource, state, tmp_path / "library.db")


@pytest.mark.parametrize("seed", range(5))
def test_some_rows_of_messages_go_and_nothing_is_lost(state: Path, seed: int) -> None:
    """Of a call the request or the response may be gone, or the message that copies stand for."""
    library = open_database(state.parent / "library.db", create=True)
    target = Target(LionagiSource(), state)
    said = "SELECT m.id, m.role, p.data_json FROM chat_messages m" \
           " LEFT JOIN chat_parts p ON p.message_id = m.id ORDER BY m.id, p.id"
    Sync(library, Settings(helpers=0)).run([target])
    before = library.connection.execute(said).fetchall()
    with closing(sqlite3.connect(state)) as connection, connection:
        rows = [row[0] for row in connection.execute("SELECT rowid FROM messages ORDER BY rowid")]
        gone = random.Random(seed).sample(rows, 1 + 7 * seed)
        connection.execute("PRAGMA foreign_keys = OFF")
        connection.executemany("DELETE FROM messages WHERE rowid = ?", [(row,) for row in gone])
    Sync(library, Settings(helpers=0)).run([target])
    assert library.connection.execute(said).fetchall() == before
    marked = "SELECT count(*) FROM chat_messages WHERE json_extract(metadata_json, ?) = 1"
    assert library.connection.execute(marked, ("$.source.gone",)).fetchone() != (0,)
    library.connection.execute("UPDATE source_units SET stamp_json = json_set(stamp_json,"
                               " '$[1]', json('[]'))")  # fmt: skip
    Sync(library, Settings(helpers=0, keep_deleted=False)).run([target])
    assert len(library.connection.execute(said).fetchall()) < len(before)
    library.close()
