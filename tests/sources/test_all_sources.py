"""What holds for every source there is, each tried on its own samples."""

from __future__ import annotations

import json
import os
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from store.config import SourceSettings
from store.engine.database import Database, open_database
from store.ids import derived_session_id
from store.resume.registry import AGENTS
from store.sources.base.drafts import SessionDraft
from store.sources.base.protocol import LINEAGES, TELLS
from store.sources.registry import all_sources, source
from store.sync.engine import Sync
from store.sync.settings import Settings
from store.sync.targets import Target, classify, default_targets
from store.system.locations import library_path
from tests.cli.conftest import Run, home, run
from tests.sources import grown
from tests.sources.samples import FIRST, SAMPLES, Sample, path_of

__all__ = ["home", "run"]
STATES = {
    "input-streaming", "input-available", "approval-requested", "approval-responded",
    "output-available", "output-error", "output-denied",
}  # fmt: skip
HOMES = {kind: sample.home for kind, sample in FIRST.items() if sample.home is not None}
"""Where each program keeps its sessions; a hub has no usual place."""
KINDS = [source.kind for source in all_sources()]


class Read(NamedTuple):
    """A sample that was synced twice, and how its files were before."""

    sample: Sample
    target: Target
    database: Database
    drafts: dict[str, SessionDraft]
    before: dict[str, Any]
    written: list[int]


@pytest.fixture(scope="module", params=SAMPLES, ids=lambda sample: sample.name)
def read(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Read]:
    folder = tmp_path_factory.mktemp("sample")
    sample: Sample = request.param
    target = sample.copied(folder)
    before = grown.snapshot(folder)
    database = open_database(tmp_path_factory.mktemp("library") / "library.db", create=True)
    written = []
    for _ in range(2):
        sync = Sync(database, Settings(helpers=0))
        sync.run([target])
        written.append(len(sync.changed))
    drafts, _ = grown.read_all(target.source, path_of(target))
    yield Read(sample, target, database, drafts, before, written)
    database.close()


def rows(database: Database, sql: str) -> list[dict[str, Any]]:
    cursor = database.file.cursor()
    cursor.row_factory = sqlite3.Row
    return [dict(row) for row in cursor.execute(sql).fetchall()]


def test_every_source_has_a_sample() -> None:
    assert set(FIRST) == set(KINDS)


@pytest.mark.one_in(3)
def test_a_second_sync_changes_nothing(read: Read) -> None:
    assert read.written[0] > 0 and read.written[1] == 0


def test_nothing_of_it_is_touched(read: Read) -> None:
    list(read.target.source.watch_paths(path_of(read.target)))
    top = Path(next(iter(read.before)))
    assert grown.snapshot(top) == read.before


def test_sessions_say_where_they_are_from(read: Read) -> None:
    found = rows(read.database, "SELECT * FROM chat_sessions")
    assert len(found) == len(read.drafts) > 0
    for row in found:
        metadata = json.loads(row["metadata_json"])
        origin = metadata["source"]
        assert origin["kind"] == read.target.source.kind
        assert derived_session_id(origin["kind"], origin["id"]) == row["id"]
        assert os.path.exists(origin["path"])
        assert Path(origin["path"]).is_relative_to(path_of(read.target))
        assert metadata.get("title", "x").strip() and row["agent"]
        assert row["workspace_root"] is None or row["workspace_root"].startswith("/")
        # A source's own word, of which one may be later than the other.
        assert row["created_at"] > 0 and row["updated_at"] > 0


def test_most_sessions_have_a_workspace(read: Read) -> None:
    found = rows(read.database, "SELECT workspace_root FROM chat_sessions")
    assert any(row["workspace_root"] for row in found) or not read.sample.workspace


def test_messages_stand_in_the_sources_order(read: Read) -> None:
    for name, draft in read.drafts.items():
        session_id = derived_session_id(read.target.source.kind, name)
        found = read.database.connection.execute(
            "SELECT json_extract(metadata_json, '$.source.id') FROM chat_messages"
            " WHERE session_id = ? ORDER BY created_at, id", (session_id,),
        )  # fmt: skip
        assert [row[0] for row in found] == [message.source_id for message in draft.messages]


def test_parts_have_the_shapes_of_the_ai_sdk(read: Read) -> None:
    for row in rows(read.database, "SELECT * FROM chat_parts"):
        data = json.loads(row["data_json"])
        assert row["type"] == data["type"]
        assert (row["tool_call_id"], row["tool_state"]) == (
            data.get("toolCallId"), data.get("state") if "toolCallId" in data else None
        )  # fmt: skip
        check_part(data)


def check_part(data: dict[str, Any]) -> None:
    kind = data["type"]
    if kind in ("text", "reasoning"):
        assert isinstance(data["text"], str)
    elif kind == "file":
        assert data["mediaType"] and isinstance(data["url"], str)
    elif kind.startswith("data-"):
        assert len(kind) > len("data-") and "data" in data
    elif kind == "dynamic-tool" or kind.startswith("tool-"):
        assert data.get("toolName") if kind == "dynamic-tool" else len(kind) > len("tool-")
        check_call(data)
    else:
        assert kind in ("step-start", "source-url", "source-document")


def check_call(data: dict[str, Any]) -> None:
    state = data["state"]
    assert isinstance(data["toolCallId"], str) and data["toolCallId"]
    assert state in STATES
    assert state == "input-streaming" or "input" in data or "rawInput" in data
    assert ("output" in data) == (state == "output-available")
    assert ("errorText" in data) == (state == "output-error")
    if state == "output-error":
        assert isinstance(data["errorText"], str)
    if state.startswith("approval-") or state == "output-denied":
        assert data["approval"]["id"]
    if state == "output-denied":
        assert data["approval"]["approved"] is False


def test_calls_stand_in_answers_and_roles_are_known(read: Read) -> None:
    found = rows(read.database, "SELECT DISTINCT m.role, p.tool_call_id IS NOT NULL AS called"
                 " FROM chat_messages m JOIN chat_parts p ON p.message_id = m.id")  # fmt: skip
    assert {row["role"] for row in found} <= {"user", "assistant", "system"}
    assert {row["role"] for row in found if row["called"]} <= {"assistant"}


def test_usage_is_never_negative(read: Read) -> None:
    for row in rows(read.database, "SELECT metadata_json FROM chat_messages"):
        usage = json.loads(row["metadata_json"] or "{}").get("usage", {})
        assert set(usage) <= set(grown.BUCKETS)
        assert all(type(count) is int and count >= 0 for count in usage.values())
    for row in rows(read.database, "SELECT * FROM chat_sessions"):
        counts = [value for name, value in row.items() if "tokens" in name]
        assert counts and all(count is None or count >= 0 for count in counts)


@pytest.fixture
def found_at_home(home: Path) -> Path:
    """A home folder with each program's sample in its usual place."""
    for kind, place in HOMES.items():
        target = FIRST[kind].copied(home.parent / "samples")
        (home / place).parent.mkdir(parents=True, exist_ok=True)
        os.rename(path_of(target), home / place)
    return home


HELD = {
    "thoughts": "SELECT 1 FROM chat_parts WHERE type = 'reasoning'",
    "tokens": "SELECT 1 FROM chat_sessions WHERE total_tokens > 0",
    "cost": "SELECT 1 FROM chat_sessions WHERE cost_usd > 0",
    "files": "SELECT 1 FROM chat_parts"
    " WHERE type = 'file' OR instr(data_json, '\"type\":\"file\"')",
    "rewinds": "SELECT 1 FROM chat_messages WHERE metadata_json ->> '$.hidden_at' IS NOT NULL",
    "compactions": "SELECT 1 FROM chat_parts WHERE type = 'data-compaction'",
    **{
        f"{kind}s": "SELECT 1 FROM chat_sessions"
        f" WHERE metadata_json ->> '$.lineage.kind' = '{kind}'"
        for kind in ("fork", "continuation", "subagent")
    },
}
"""What each name of ``TELLS`` and ``LINEAGES`` means."""


@pytest.mark.parametrize("sample", SAMPLES, ids=lambda sample: sample.name)
def test_a_long_first_line_is_recognised(sample: Sample, tmp_path: Path) -> None:
    target = sample.copied(tmp_path)
    files = (path for path in path_of(target).rglob("*.jsonl") if path.stat().st_size)
    for path in sorted(path for path in files if target.source.recognise(path))[:3]:
        root = target.source.recognise(path)
        start, rest = path.read_bytes().split(b"{", 1)
        path.write_bytes(start + b"{" + b" " * 400_000 + rest)
        assert target.source.recognise(path) == root


@pytest.mark.parametrize("kind", KINDS)
def test_the_documented_tables_say_what_samples_hold(kind: str, tmp_path: Path) -> None:
    assert HELD.keys() == {*TELLS, *LINEAGES}
    database = open_database(tmp_path / "library.db", create=True)
    Sync(database, Settings(helpers=0)).run([one.target() for one in SAMPLES if one.kind == kind])
    held = {name for name, sql in HELD.items() if rows(database, f"{sql} LIMIT 1")}
    database.close()
    assert held == set(source(kind).tells)


def test_samples_are_found_in_the_usual_places(found_at_home: Path) -> None:
    targets = default_targets(SourceSettings(), all_sources(), {}, found_at_home)
    assert {t.source.kind: t.root for t in targets} == {
        kind: found_at_home / place for kind, place in HOMES.items()
    }


@pytest.mark.parametrize(
    ("kind", "variable"), [(one.kind, name) for one in all_sources() for name in one.variables]
)
def test_the_documented_variables_name_a_place(kind: str, variable: str) -> None:
    home, one = Path("/home/user"), source(kind)
    values = ("/else/where", "sqlite:////else/where")
    named = [one.default_roots({variable: value}, home) for value in values]
    assert any(set(roots) - set(one.default_roots({}, home)) for roots in named)


def test_a_source_without_a_usual_place_says_what_to_name() -> None:
    home = Path("/home/user")
    unplaced = [one for one in all_sources() if not one.default_roots({}, home)]
    assert unplaced and all("name its" in one.places for one in unplaced)


def test_agents_to_go_on_in_have_the_names_of_their_sources() -> None:
    labels = {one.kind: one.label for one in all_sources()}
    assert {agent.kind: agent.label for agent in AGENTS.values()}.items() <= labels.items()


@pytest.mark.parametrize("kind", HOMES)
@pytest.mark.one_in(3)
def test_each_can_be_switched_off(found_at_home: Path, kind: str) -> None:
    settings = SourceSettings(disabled=[kind])
    targets = default_targets(settings, all_sources(), {}, found_at_home)
    assert {t.source.kind for t in targets} == set(HOMES) - {kind}
    settings = SourceSettings(enabled=[kind])
    targets = default_targets(settings, all_sources(), {}, found_at_home)
    assert {t.source.kind for t in targets} == {kind}


@pytest.mark.parametrize("sample", SAMPLES, ids=lambda sample: sample.name)
def test_other_places_can_be_named(sample: Sample, tmp_path: Path) -> None:
    place = sample.copied(tmp_path).root
    settings = SourceSettings(paths={sample.kind: [str(place)]})
    (target,) = default_targets(settings, all_sources(), {}, tmp_path / "home")
    assert (target.source.kind, target.root) == (sample.kind, place)
    classified = classify(place, all_sources())
    assert isinstance(classified, Target)
    assert (classified.source.kind, classified.root) == (sample.kind, place)


def test_the_command_lists_each(found_at_home: Path, run: Run, tmp_path: Path) -> None:
    named = {kind: FIRST[kind].copied(tmp_path / "named").root for kind in KINDS
             if kind not in HOMES}  # fmt: skip
    config = found_at_home / ".config" / "backscroll" / "config.toml"
    config.parent.mkdir(parents=True)
    paths = "".join(f'{kind} = ["{path}"]\n' for kind, path in named.items())
    config.write_text(f'[sources]\ndisabled = ["pi"]\n[sources.paths]\n{paths}')
    assert run("sync").code == 0
    listed = run("sources", "--json", "--problems").json
    places = {place["kind"]: place for place in listed if place["found"]}
    assert set(places) == set(KINDS)
    for kind, place in places.items():
        path = named[kind] if kind in named else found_at_home / HOMES[kind]
        assert place["path"] == str(path) and place["files"] > 0
        assert place["size_bytes"] > 0 and place["changed_at"] > 0
        assert place["enabled"] == (kind != "pi")
        assert (place["sessions"] > 0) == (kind != "pi")
        assert len(place["problem_list"]) == place["problems"]
    assert {kind for kind, place in places.items() if place["problems"]} == {
        "y-agent", "viben", "zed"}
    kinds = {session["source"]["kind"] for session in run("sessions", "--json").json}
    assert kinds == set(KINDS) - {"pi"}


@pytest.mark.long
def test_the_command_lists_kinds_that_it_does_not_know(found_at_home: Path, run: Run) -> None:
    """A library that a later version synced names kinds that this one cannot read."""
    assert run("sync").code == 0
    database = open_database(library_path())
    database.connection.execute("UPDATE source_units SET kind = 'tomorrow' WHERE kind = 'pi'")
    database.close()
    (place,) = [p for p in run("sources", "--json").json if p["kind"] == "tomorrow"]
    root = found_at_home / HOMES["pi"]
    assert place == {
        "kind": "tomorrow", "label": "tomorrow", "path": str(root), "found": True,
        "enabled": False, "files": 0, "sessions": 3, "size_bytes": 0, "changed_at": None,
        "problems": 0,
    }
    assert "tomorrow" in run("sources").out
