"""OpenHands: the genuine sample comes out as its EXPECTED.json says, and so do other events."""

from __future__ import annotations

import json
import os
import shutil
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from store.engine.database import open_database
from store.sources.base.drafts import MessageDraft, PartDraft, SessionDraft
from store.sources.base.values import iso_ms
from store.sources.openhands import OpenHandsSource
from store.sync.engine import Sync
from store.sync.targets import Target
from tests.sources import grown
from tests.sources.samples import DATA
from tests.sources.watched import reading

SAMPLE = DATA / "openhands" / "conversations"
EXPECTED = json.loads((DATA / "openhands" / "EXPECTED.json").read_text())
LONG_AGO_NS = 1_500_000_000 * 10**9
PARENT = "08fb19f625f34c2ab625d2117f3e864c"
CHILD = "c8d68f9cd0434332a84d2e195527ed2f"
KEYS = ("input", "output", "reasoning", "cache_read", "cache_write")


def each_session() -> pytest.MarkDecorator:
    return pytest.mark.parametrize("expected", EXPECTED, ids=[one["title"] for one in EXPECTED])


@pytest.fixture(scope="module")
def drafts(tmp_path_factory: pytest.TempPathFactory) -> dict[str, SessionDraft]:
    """The sample's sessions, as of a machine where the times of its files say no zone."""
    root = tmp_path_factory.mktemp("openhands") / "conversations"
    shutil.copytree(SAMPLE, root)
    for path in root.rglob("*.json"):
        os.utime(path, ns=(LONG_AGO_NS, LONG_AGO_NS))
    found, problems = grown.read_all(OpenHandsSource(), root)
    assert problems == []
    return found


def answers(draft: SessionDraft) -> list[MessageDraft]:
    return [one for one in draft.messages if one.role == "assistant"
            and not one.metadata.get("backscroll", {}).get("no_answer")]  # fmt: skip


def texts(draft: SessionDraft) -> list[str]:
    return [part.data["text"] for one in answers(draft) for part in one.parts
            if part.type == "text"]  # fmt: skip


def calls(draft: SessionDraft) -> list[dict[str, Any]]:
    found = []
    for part in grown.calls(draft.messages):
        said = grown.extra(part)
        call = {"id": part.tool_call_id, "name": part.type.removeprefix("tool-"),
                "status": said["status"]}  # fmt: skip
        if "exit_code" in said:
            call["exit_code"] = said["exit_code"]
            call["status"] = "failed_exit" if said["exit_code"] else said["status"]
        found.append(call)
    return found


def name_of(model: dict[str, Any]) -> str:
    return f"{model['provider_id']}/{model['model_id']}"


def test_just_the_conversations_expected(drafts: dict[str, SessionDraft]) -> None:
    assert drafts.keys() == {one["id"] for one in EXPECTED}


@each_session()
def test_session_row(drafts: dict[str, SessionDraft], expected: dict[str, Any]) -> None:
    draft = drafts[expected["id"]]
    assert (draft.title, draft.title_from) == (expected["title"], "first-prompt")
    assert draft.workspace_root == expected["workspace"]
    assert draft.model is not None and name_of(draft.model) == expected["model_configured"]
    assert draft.metadata["backscroll"]["status"] == expected["status"]
    assert draft.created_at == iso_ms(expected["created_local"])
    assert draft.updated_at == iso_ms(expected["updated_local"])
    kinds = Counter(json.loads(record)["kind"] for record in draft.records)
    assert kinds == expected["event_kinds"]
    assert (expected["base_state_torn"], expected["torn_events"]) == (None, [])
    state = {"error": "error"}.get(expected["status"])
    assert draft.metadata.get("activity", {}).get("state") == state


@each_session()
def test_what_was_said(drafts: dict[str, SessionDraft], expected: dict[str, Any]) -> None:
    draft = drafts[expected["id"]]
    assert grown.prompts(draft.messages) == expected["prompts"]
    assert texts(draft) == expected["assistant_texts"]
    assert len(answers(draft)) == expected["model_steps_in_events"]
    thoughts = [part for one in answers(draft) for part in one.parts if part.type == "reasoning"]
    assert len(thoughts) == expected["events_with_reasoning"]
    errors = [part.data["data"]["name"] for one in draft.messages for part in one.parts
              if part.type == "data-error"]  # fmt: skip
    assert errors == expected["errors"]
    compactions = [one for one in draft.messages if "compaction" in one.metadata]
    assert len(compactions) == expected["condensations"]
    gone = [one for one in draft.messages
            if one.metadata.get("backscroll", {}).get("compacted_away")]  # fmt: skip
    assert len(gone) == expected["forgotten_events_in_log"]
    grown.check_records(draft)


@each_session()
def test_calls(drafts: dict[str, SessionDraft], expected: dict[str, Any]) -> None:
    assert calls(drafts[expected["id"]]) == expected["tool_calls"]


@each_session()
def test_spending(drafts: dict[str, SessionDraft], expected: dict[str, Any]) -> None:
    draft = drafts[expected["id"]]
    used = [one for one in draft.messages if "usage" in one.metadata]
    wanted = [one for name, one in expected["tokens"].items() if not name.startswith("task:")]
    assert grown.tokens(draft.messages) == {key: sum(one[key] for one in wanted) for key in KEYS}
    assert len(used) == sum(one["requests"] for one in wanted)
    cost = sum(one.metadata.get("cost_usd", 0) for one in used)
    state = SAMPLE / expected["id"] / "base_state.json"
    if state.exists():
        metrics = json.loads(state.read_text())["stats"]["usage_to_metrics"]
        assert cost == pytest.approx(metrics["agent"]["accumulated_cost"])
    models = {name_of(one.metadata["model"]) for one in used}
    assert models == {name for one in wanted for name in one["models"]}


@each_session()
def test_lineage(drafts: dict[str, SessionDraft], expected: dict[str, Any]) -> None:
    link = drafts[expected["id"]].lineage
    assert (link.parent_source_id if link else None) == expected["parent"]
    assert link is None or link.kind == "subagent"


def test_a_subagent_is_linked_to_its_call_and_counted_once(tmp_path: Path) -> None:
    database = open_database(tmp_path / "library.db", create=True)
    Sync(database).run([Target(OpenHandsSource(), SAMPLE)])
    linked = database.connection.execute(
        "SELECT json_extract(data_json,"
        " '$.resultProviderMetadata.backscroll.child_session_id') FROM chat_parts"
        " WHERE type = 'tool-task'").fetchall()  # fmt: skip
    child = database.connection.execute(
        "SELECT id FROM chat_sessions WHERE json_extract(metadata_json, '$.source.id') = ?",
        (CHILD,)).fetchall()  # fmt: skip
    assert linked == child and len(child) == 1
    database.close()


def test_only_states_and_events_are_opened(tmp_path: Path) -> None:
    root = tmp_path / ".openhands" / "conversations"
    shutil.copytree(SAMPLE, root)
    for name in ("agent_settings.json", "mcp.json", "auth.json"):
        (root.parent / name).write_text('{"key": "sk-secret"}')
        (root / PARENT / name).write_text('{"key": "sk-secret"}')
    names = reading(Target(OpenHandsSource(), root)).names()
    assert "base_state.json" in names
    assert all(name == "base_state.json" or name.startswith("event-") for name in names
               if name.endswith((".json", ".lock", ".txt")))  # fmt: skip


# --- hand-made events -----------------------------------------------------------------------

NAME = "0123456789abcdef0123456789abcdef"


class Talk:
    """A conversation that grows."""

    def __init__(self, root: Path) -> None:
        self.root, self.folder, self.count = root, root / NAME, 0
        (self.folder / "events").mkdir(parents=True)
        self.state()

    def state(self, status: str = "idle", **stats: Any) -> None:
        data = {"id": NAME, "execution_status": status, "workspace": {"working_dir": "/w"},
                "agent": {"llm": {"model": "openai/m", "api_key": "sk-secret"}},
                "secret_registry": {"secret_sources": {"TOKEN": "sk-secret"}},
                "stats": {"usage_to_metrics": stats}}  # fmt: skip
        (self.folder / "base_state.json").write_text(json.dumps(data))

    def event(self, kind: str, zone: int | None = None, **data: Any) -> Path:
        name = f"{self.count:08x}-0000-4000-8000-000000000000"
        path = self.folder / "events" / f"event-{self.count:05}-{name}.json"
        stamp = grown.at(self.count).removesuffix("Z")
        path.write_text(json.dumps({"id": name, "timestamp": stamp, "kind": kind} | data))
        written = LONG_AGO_NS
        if zone is not None:
            written = (grown.ms(self.count) - zone * 1000) * 1_000_000
        os.utime(path, ns=(written, written))
        self.count += 1
        return path

    def prompt(self, *content: Any, zone: int | None = None) -> None:
        self.event("MessageEvent", zone, source="user",
                   llm_message={"role": "user", "content": list(content)})  # fmt: skip

    def call(self, name: str = "terminal", **data: Any) -> None:
        self.event("ActionEvent", source="agent", tool_name=name, tool_call_id="c", **data)

    def observe(self, words: str, **data: Any) -> None:
        observation = {"content": [text(words)], "is_error": False} | data
        self.event("ObservationEvent", tool_call_id="c", observation=observation)

    def read(self) -> SessionDraft:
        return grown.only(OpenHandsSource(), self.root)

    def part(self) -> PartDraft:
        return grown.call(self.read(), "c")


def text(words: str) -> dict[str, Any]:
    return {"type": "text", "text": words}


@pytest.fixture
def talk(tmp_path: Path) -> Iterator[Talk]:
    yield Talk(tmp_path / "conversations")


@pytest.mark.parametrize("zone", [0, 19_800, -12_600])
def test_the_zone_is_that_of_the_files(talk: Talk, zone: int) -> None:
    talk.prompt(text("hello"), zone=zone)
    talk.event("SystemPromptEvent")
    draft = talk.read()
    # The second one was copied: it takes the zone of the first.
    assert (draft.created_at, draft.updated_at) == (
        grown.ms(0) - zone * 1000, grown.ms(1) - zone * 1000)


def test_an_image_is_shown(talk: Talk) -> None:
    talk.prompt(text("see"), {"type": "image", "image_urls": ["data:image/gif;base64,QQ=="]})
    (_, file) = talk.read().messages[0].parts
    assert file.data == {"type": "file", "mediaType": "image/gif",
                         "url": "data:image/gif;base64,QQ=="}  # fmt: skip


def test_an_invalid_call_has_its_arguments_and_its_error(talk: Talk) -> None:
    talk.call("nope", tool_call={"id": "c", "name": "nope", "arguments": '{"a": '})
    talk.event("AgentErrorEvent", source="agent", tool_call_id="c", error="bad JSON")
    part = talk.part()
    assert (part.data["rawInput"], part.data["errorText"]) == ('{"a": ', "bad JSON")
    assert grown.extra(part)["status"] == "error"


def test_a_command_that_still_runs_has_no_exit_code(talk: Talk) -> None:
    talk.call(action={"command": "sleep 9", "kind": "TerminalAction"})
    talk.observe("...", exit_code=-1, timeout=True)
    part = talk.part()
    assert part.data["input"] == {"command": "sleep 9"}
    assert grown.extra(part) == {"status": "ok", "timeout": True}


def test_a_call_that_waits_for_its_confirmation(talk: Talk) -> None:
    talk.call(action={"command": "rm x"})
    talk.state("waiting_for_confirmation")
    draft = talk.read()
    assert grown.call(draft, "c").tool_state == "approval-requested"
    assert draft.metadata["activity"]["state"] == "waiting-approval"


@pytest.mark.parametrize(("status", "state"), [
    ("running", "running"), ("paused", "interrupted"), ("stuck", "error"), ("idle", None),
])  # fmt: skip
def test_activity(talk: Talk, status: str, state: str | None) -> None:
    talk.prompt(text("go"))
    talk.state(status)
    assert talk.read().metadata.get("activity", {}).get("state") == state


def test_a_condensation_hides_events_from_the_model_only(talk: Talk) -> None:
    talk.prompt(text("one"))
    talk.prompt(text("two"))
    names = [f"{0:08x}-0000-4000-8000-000000000000", "a-summary"]
    talk.event("Condensation", forgotten_event_ids=names, summary="said one")
    draft = talk.read()
    assert grown.prompts(draft.messages) == ["one", "two"]
    assert [one.metadata.get("backscroll") for one in draft.messages] == [
        {"compacted_away": True}, None, None]
    assert draft.messages[2].parts[0].data["data"]["summary"] == "said one"


def test_other_events_are_shown_or_kept(talk: Talk) -> None:
    talk.prompt(text("go"))
    talk.event("PauseEvent")
    talk.event("TokenEvent", tokens=[1])
    draft = talk.read()
    assert [one.role for one in draft.messages] == ["user", "system"]
    assert draft.messages[1].parts[0].data["data"]["name"] == "PauseEvent"
    assert len(draft.records) == 3


def test_what_no_answer_used_is_one_more_answer(talk: Talk) -> None:
    talk.prompt(text("go"))
    counts = {"prompt_tokens": 10, "completion_tokens": 4, "reasoning_tokens": 1,
              "cache_read_tokens": 3, "cache_write_tokens": 2}  # fmt: skip
    talk.state(agent={"model_name": "m", "accumulated_cost": 0.5,
                      "accumulated_token_usage": counts, "token_usages": []})  # fmt: skip
    (used,) = [one for one in talk.read().messages if "usage" in one.metadata]
    assert used.metadata["usage"] == {"input": 5, "output": 3, "reasoning": 1, "cache_read": 3,
                                      "cache_write": 2}  # fmt: skip
    assert (used.metadata["cost_usd"], used.metadata["model"]["model_id"]) == (0.5, "m")


def test_what_a_condensation_used_is_an_answer_of_its_own(talk: Talk) -> None:
    talk.prompt(text("go"))
    talk.event("Condensation", forgotten_event_ids=[], summary="s", llm_response_id="r")
    counts = {"prompt_tokens": 10, "completion_tokens": 4}
    talk.state(condenser={"model_name": "openai/m", "accumulated_token_usage": counts,
                          "token_usages": [{"response_id": "r", **counts}]})  # fmt: skip
    (used,) = [one for one in talk.read().messages if "usage" in one.metadata]
    assert (used.role, used.metadata["backscroll"]["initiator"]) == ("assistant", "condenser")
    assert used.metadata["usage"]["input"] == 10


def test_an_event_that_is_lost_comes_from_the_library(talk: Talk, tmp_path: Path) -> None:
    paths = [talk.event("PauseEvent")]
    talk.call(action={"command": "ls"})
    talk.observe("a.txt")
    paths += sorted((talk.folder / "events").iterdir())[-1:]
    database = open_database(tmp_path / "library.db", create=True)
    Sync(database).run([Target(OpenHandsSource(), talk.root)])
    said = "SELECT data_json FROM chat_parts ORDER BY id"
    before = database.connection.execute(said).fetchall()
    for path in paths:
        path.unlink()
    talk.prompt(text("more"))
    Sync(database).run([Target(OpenHandsSource(), talk.root)])
    after = database.connection.execute(said).fetchall()
    assert set(before) < set(after) and len(before) == 2
    database.close()


def test_nothing_secret_of_the_state_is_kept(talk: Talk, tmp_path: Path) -> None:
    talk.prompt(text("go"))
    database = open_database(tmp_path / "library.db", create=True)
    Sync(database).run([Target(OpenHandsSource(), talk.root)])
    dump = "\n".join(database.file.iterdump())
    assert "/w" in dump and "sk-secret" not in dump
    database.close()


def test_a_state_that_is_half_written_stays_as_it_was(talk: Talk) -> None:
    source = OpenHandsSource()
    talk.prompt(text("go"))
    state = talk.folder / "base_state.json"
    (unit,) = source.units(talk.root, [])
    follower = source.follower(talk.root, unit)
    follower.read(unit)
    state.write_bytes(b"")
    (unit,) = source.units_at(talk.root, [str(state)]) or []
    reading = follower.read(unit)
    assert [problem.path for problem in reading.problems] == [str(state)]
    assert reading.sessions[0].workspace_root == "/w"
    talk.prompt(text("more"))
    talk.state("finished")
    changed = str(talk.folder / "events")
    (unit,) = source.units_at(talk.root, [changed, str(state)]) or []
    reading = follower.read(unit)
    assert reading.problems == []
    assert grown.prompts(reading.sessions[0].messages) == ["go", "more"]


def test_a_torn_event_costs_only_itself(talk: Talk) -> None:
    talk.prompt(text("one"))
    talk.event("PauseEvent").write_text('{"id"')
    talk.prompt(text("two"))
    drafts, problems = grown.read_all(OpenHandsSource(), talk.root)
    assert grown.prompts(drafts[NAME].messages) == ["one", "two"]
    assert len(problems) == 1


def test_a_conversation_without_events_is_none(talk: Talk) -> None:
    assert grown.read_all(OpenHandsSource(), talk.root) == ({}, [])
    assert OpenHandsSource().recognise(talk.folder) == talk.folder


def test_where_it_looks(tmp_path: Path) -> None:
    home = Path("/home/mira")
    assert OpenHandsSource().default_roots({}, home) == [home / ".openhands/conversations"]
    base = {"OPENHANDS_PERSISTENCE_DIR": "/p"}
    assert OpenHandsSource().default_roots(base, home) == [Path("/p/conversations")]
    own = base | {"OPENHANDS_CONVERSATIONS_DIR": "/c"}
    assert OpenHandsSource().default_roots(own, home) == [Path("/c")]
    for path in (SAMPLE, SAMPLE.parent):
        assert OpenHandsSource().recognise(path) == SAMPLE
    assert OpenHandsSource().recognise(SAMPLE / PARENT) == SAMPLE / PARENT
    assert OpenHandsSource().recognise(tmp_path) is None
