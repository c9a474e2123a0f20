"""Mistral Vibe: the genuine samples of both stores come out as EXPECTED.json says."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from store.engine.database import open_database
from store.sources.base.drafts import MessageDraft, SessionDraft
from store.sources.vibe import VibeSource
from store.sync.engine import Sync
from store.sync.settings import Settings
from store.sync.targets import Target
from tests.sources import grown
from tests.sources.samples import DATA
from tests.sources.watched import reading, watched

SAMPLE = DATA / "vibe" / "session"
EXPECTED = json.loads((DATA / "vibe" / "EXPECTED.json").read_text())
DRAFTS, PROBLEMS = grown.read_all(VibeSource(), SAMPLE)
ALL = [pytest.param(DRAFTS[one["id"]], one, id=one["id"][:8]) for one in EXPECTED["sessions"]]
UNIFIED = [pytest.param(DRAFTS[one["id"]], one, id=one["id"][:8])
           for one in EXPECTED["sessions"] if one["store"] == "unified"]  # fmt: skip
LONG, RENAMED = "829fdee0-94c2-18b5-83ea-bacb5930e5b6", "8a14e90f-4636-f693-af9b-ad9c5922d6ad"
ORIGINAL, COPY = "a07de210-0054-4547-845f-73c103b012e3", "addce0ac-beb6-4a8e-892f-ab263d43b2d2"


def answers(draft: SessionDraft) -> list[MessageDraft]:
    return [one for one in grown.visible(draft) if one.role == "assistant"
            and any(part.type == "text" for part in one.parts)]  # fmt: skip


def texts(draft: SessionDraft, kind: str = "text") -> list[str]:
    return [part.data["text"] for one in grown.visible(draft) if one.role == "assistant"
            for part in one.parts if part.type == kind]  # fmt: skip


def calls(draft: SessionDraft, *, exits: bool) -> list[dict[str, Any]]:
    found = []
    for part in grown.calls(grown.visible(draft)):
        extra = part.data.get("resultProviderMetadata", {}).get("backscroll", {})
        call = {"id": part.tool_call_id, "name": part.type.removeprefix("tool-"),
                "status": extra.get("status", "no result")}  # fmt: skip
        found.append(call | ({"exit_code": extra.get("exit_code")} if exits else {}))
    return found


def test_just_the_sessions_expected() -> None:
    assert len(EXPECTED["sessions"]) == EXPECTED["session_count"]
    assert DRAFTS.keys() == {one["id"] for one in EXPECTED["sessions"]}
    assert len(PROBLEMS) == sum(one["torn_lines"] for one in EXPECTED["sessions"]) == 0


@pytest.mark.parametrize(("draft", "expected"), ALL)
def test_session_row(draft: SessionDraft, expected: dict[str, Any]) -> None:
    assert draft.workspace_root == expected["workspace"]
    assert (draft.created_at, draft.updated_at) == (expected["created_ms"], expected["updated_ms"])
    assert draft.metadata.get("git_branch") == expected["git_branch"]
    models = {one.metadata["model"]["model_id"] for one in draft.messages
              if "model" in one.metadata}  # fmt: skip
    assert draft.model is not None
    assert [*(models | {draft.model["model_id"]})] == expected["models"]
    assert expected["store"] in ("legacy", "unified")
    assert ("unified" in draft.path) == (expected["store"] == "unified")
    if expected["store"] == "legacy":
        assert os.path.basename(os.path.dirname(draft.path)) == expected["folder"]
    if expected["title"] is None:
        assert (draft.title, draft.title_from) == (expected["preview"], "first-prompt")
    else:
        by_hand = expected.get("title_source") == "manual"
        assert (draft.title, draft.title_from) == (
            expected["title"], "user" if by_hand else "title")


@pytest.mark.parametrize(("draft", "expected"), ALL)
def test_what_was_said_and_called(draft: SessionDraft, expected: dict[str, Any]) -> None:
    assert grown.prompts(grown.visible(draft)) == expected["prompts"]
    assert len(answers(draft)) == expected["assistant_messages"]
    assert calls(draft, exits=expected["store"] == "unified") == expected["tool_calls"]
    grown.check_records(draft)


@pytest.mark.parametrize(("draft", "expected"), UNIFIED)
def test_what_only_the_unified_store_tells(draft: SessionDraft, expected: dict[str, Any]) -> None:
    states = [{"text": "".join(part.data["text"] for part in one.parts if part.type == "text"),
               "state": one.metadata.get("backscroll", {}).get("finish_reason", "ok")}
              for one in answers(draft)]  # fmt: skip
    assert states == expected["answers"]
    assert texts(draft, "reasoning") == expected["reasoning"]
    assert (draft.archived_at is not None) == expected["archived"]
    extra = draft.metadata["backscroll"]
    assert (extra["status"], extra["last_turn"]) == (expected["status"], expected["last_turn"])
    assert (draft.title_from == "user") == (expected["title_source"] == "manual")
    marks = [part.data["data"]["name"] for one in draft.messages for part in one.parts
             if one.role == "system" and part.type == "data-event"]  # fmt: skip
    assert marks == expected["checkpoints"]
    parent = draft.lineage.parent_source_id if draft.lineage is not None else None
    assert parent == expected["parent"]


@pytest.mark.parametrize(("draft", "expected"), ALL)
def test_tokens_and_copies(draft: SessionDraft, expected: dict[str, Any]) -> None:
    none = dict.fromkeys(grown.BUCKETS, 0)
    assert grown.tokens(draft.messages) == (expected["tokens"] or none)
    copied = [one for one in draft.messages if one.inherited_from is not None]
    assert len(copied) == expected.get("copied_messages", 0)


def test_going_on_in_the_older_store_is_a_continuation() -> None:
    copy = DRAFTS[COPY]
    assert copy.lineage is not None
    assert (copy.lineage.kind, copy.lineage.parent_source_id) == ("continuation", ORIGINAL)
    assert DRAFTS[ORIGINAL].lineage is None
    assert [one.metadata["origin"] for one in copy.messages if one.role == "user"] == [
        "human", "human"]


def test_how_each_session_ended() -> None:
    states = {key[:8]: one.metadata["activity"]["state"] for key, one in DRAFTS.items()
              if "activity" in one.metadata}  # fmt: skip
    assert states == {"83b99204": "error"}
    (error,) = [part for one in DRAFTS["83b99204-43b9-c048-1262-c8b2b8c9517a"].messages
                for part in one.parts if part.type == "data-error"]  # fmt: skip
    assert error.data["data"]["name"] == "model_stream_failed"


def test_a_long_output_names_the_file_with_all_of_it() -> None:
    (call,) = grown.calls(DRAFTS[LONG].messages)
    (attached,) = DRAFTS[LONG].attachments
    assert grown.extra(call)["attachment"] == attached.name == "bash-call_v9_0_0_12_f4ad.json"
    assert len(attached.body) == 23021


def test_no_secret_is_opened(tmp_path: Path) -> None:
    root = tmp_path / ".vibe" / "logs" / "session"
    shutil.copytree(SAMPLE, root)
    for place in (root.parent.parent / ".env", root.parent.parent / "config.toml",
                  root / ".session_index.json", root / "active" / "x.lock",
                  root / "plugins" / "SKILL.md"):  # fmt: skip
        place.parent.mkdir(exist_ok=True)
        place.write_text("secret")
    found = reading(Target(VibeSource(), root))
    assert not found.names() & {
        ".env", "config.toml", ".session_index.json", "x.lock", "SKILL.md", "runtime-state.json"}


def test_where_it_looks(tmp_path: Path) -> None:
    home = Path("/home/mira")
    assert VibeSource().default_roots({}, home) == [home / ".vibe/logs/session"]
    assert VibeSource().default_roots({"VIBE_HOME": "/v"}, home) == [Path("/v/logs/session")]
    root = tmp_path / ".vibe" / "logs" / "session"
    shutil.copytree(SAMPLE, root)
    for path in (tmp_path, tmp_path / ".vibe", tmp_path / ".vibe/logs", root):
        assert VibeSource().recognise(path) == root
    for path in (root / "unified" / LONG, root / "session_20261128_104750_addce0ac"):
        assert VibeSource().recognise(path) == path
        assert len(grown.read_all(VibeSource(), path)[0]) == 1
    assert VibeSource().recognise(tmp_path.parent / "nowhere") is None


# --- sessions made by hand ------------------------------------------------------------------

AT = 1_795_862_640_000


def entry(name: str, type_: str = "message", **more: Any) -> dict[str, Any]:
    return {"id": name, "type": type_, "createdAt": AT, "updatedAt": AT,
            "generationStatus": "completed", **more}


def said(name: str, words: str, role: str = "user", **more: Any) -> dict[str, Any]:
    return entry(name, role=role, content=[{"type": "text", "text": words}], **more)


def effect(name: str, **state: Any) -> dict[str, Any]:
    return entry(name, "effect", detail={"toolName": "file_system.bash", "input": {}}, state=state)


class Made:
    """A session of the unified store."""

    def __init__(self, root: Path, name: str = "one") -> None:
        self.folder = root / "unified" / name
        self.name, self.root, self._sequence = name, root, 1
        for below in ("generations", "chunks", "journal"):
            (self.folder / below).mkdir(parents=True)
        self.meta()
        self.write([])

    def meta(self, **more: Any) -> None:
        data = {"session_id": self.name, "environment": {"working_directory": "/w"},
                "config": {"model_name": "m"}, **more}
        (self.folder / "meta.json").write_text(json.dumps(data))

    def envelope(self, **more: Any) -> dict[str, Any]:
        session = {"id": self.name, "createdAt": AT, "updatedAt": AT, "status": {"type": "idle"}}
        return {"session": session | more.pop("session", {}), "history": {"entries": []}, **more}

    def write(self, entries: list[Any], *, inline: bool = False, **more: Any) -> None:
        """Write a generation and let ``CURRENT`` name it."""
        self._sequence += 1
        name = f"{self._sequence:016}"
        place = self.folder / "generations" / name
        place.mkdir()
        state = self.envelope(**more)
        if inline:
            state["history"]["entries"] = entries
        (place / "projection-state.json").write_text(json.dumps({"snapshot": state}))
        chunks = [] if inline else [f"c{self._sequence}a", f"c{self._sequence}b"]
        for chunk, part in zip(chunks, (entries[:1], entries[1:]), strict=False):
            (self.folder / "chunks" / f"{chunk}.json").write_text(json.dumps(part))
        self.segment = self.folder / "journal" / f"{name}.jsonl"
        self.segment.write_text("")
        (place / "manifest.json").write_text(json.dumps({
            "projection_state": {"path": "projection-state.json", "chunks": chunks},
            "recovery_journal_segment": {"path": f"journal/{name}.jsonl"}}))
        (self.folder / "CURRENT").write_text(json.dumps({
            "store_format": "mistral.vibe.unified-session-store/v1", "generation": name}))

    def journal(self, *operations: dict[str, Any], type_: str = "projection_delta") -> None:
        self._sequence += 1
        record = {"sequence": self._sequence, "type": type_, "payload": {"delta": operations}}
        with self.segment.open("a") as file:
            file.write(json.dumps(record) + "\n")

    def read(self) -> SessionDraft:
        return grown.read_all(VibeSource(), self.root)[0][self.name]


@pytest.fixture
def made(tmp_path: Path) -> Made:
    return Made(tmp_path / "session")


def append(one: dict[str, Any]) -> dict[str, Any]:
    return {"op": "append_entry", "entry": one}


def test_a_session_that_is_in_the_journal_alone(made: Made) -> None:
    made.journal(append(said("u", "go")), append(effect("e", status="in_progress")))
    made.journal({"op": "set_envelope", "state": made.envelope(
        session={"status": {"type": "running"}}, latestTurn={"status": "in_progress"})})
    draft = made.read()
    assert grown.prompts(draft.messages) == ["go"]
    assert calls(draft, exits=False)[0]["status"] == "no result"
    assert draft.metadata["activity"]["state"] == "running"
    made.journal({"op": "replace_entry", "id": "e", "entry": effect(
        "e", status="completed", output={"structured_content": {"stdout": "x", "returncode": 0}})})
    made.journal(append(said("core", "never shown")), type_="core_input")
    assert calls(made.read(), exits=True) == [
        {"id": "e", "name": "file_system.bash", "status": "ok", "exit_code": 0}]


def test_entries_may_stand_in_the_snapshot_itself(made: Made) -> None:
    made.write([said("u", "go"), said("a", "ok", "assistant")], inline=True)
    assert grown.prompts(made.read().messages) == ["go"]


def test_all_entries_may_be_set_anew(made: Made) -> None:
    made.write([said("u", "go"), said("a", "ok", "assistant")])
    made.journal({"op": "set_history_entries", "entries": [said("u2", "other")]})
    assert grown.prompts(made.read().messages) == ["other"]


@pytest.mark.parametrize(("state", "status"), [
    ({"status": "failed", "error": {"code": "tool_denied"}}, "denied"),
    ({"status": "failed", "error": {"code": "tool_failed", "message": "no"}}, "error"),
    ({"status": "failed", "error": {"code": "tool_cancelled"}}, "interrupted"),
    ({"status": "completed", "output": {"structured_content": {"returncode": 3}}}, "ok"),
    ({}, "no result"),
])  # fmt: skip
def test_states_of_calls(made: Made, state: dict[str, Any], status: str) -> None:
    made.write([said("u", "go"), effect("e", **state)])
    assert calls(made.read(), exits=False)[0]["status"] == status


def test_an_answer_that_was_cut_off_stays(made: Made) -> None:
    made.write([said("u", "go"), said("a", "half of", "assistant", outcome={
        "type": "discarded", "cause": "interrupt"})], latestTurn={"status": "interrupted"})
    draft = made.read()
    assert texts(draft) == ["half of"]
    assert answers(draft)[0].metadata["backscroll"]["finish_reason"] == "interrupt"
    assert draft.metadata["activity"]["state"] == "interrupted"


def test_what_a_compaction_took_from_the_model_is_still_shown(made: Made) -> None:
    made.write([said("u", "go"), said("a", "ok", "assistant"), entry(
        "c", "checkpoint", kind="compaction", details={"summary": "so far"}), said("u2", "on")])
    draft = made.read()
    assert grown.prompts(draft.messages) == ["go", "on"]
    away = [one.source_id for one in draft.messages
            if one.metadata.get("backscroll", {}).get("compacted_away")]  # fmt: skip
    assert away == ["u", "a"]


REWIND = entry("r", "checkpoint", kind="rewind", details={"entryId": "u2"})


@pytest.mark.parametrize("removed", [
    {"op": "remove_entries", "ids": ["u2", "a2", "other", None]},
    {"op": "set_history_entries", "entries": [said("u", "go"), said("a", "ok", "assistant")]},
])  # fmt: skip
def test_what_a_rewind_took_away_is_hidden(made: Made, removed: dict[str, Any]) -> None:
    made.write([said("u", "go"), said("a", "ok", "assistant"), said("u2", "wrong")])
    made.journal(append(said("a2", "no", "assistant")), removed, append(REWIND),
                 append(said("u3", "right")))  # fmt: skip
    draft = made.read()
    assert grown.prompts(grown.visible(draft)) == ["go", "right"]
    hidden = [one for one in draft.messages if "hidden_at" in one.metadata]
    assert [grown.words(one) for one in hidden] == ["wrong", "no"]


def test_the_journal_is_applied_in_its_own_order(made: Made) -> None:
    made.write([said("u", "go")])
    made.journal(append(said("u2", "on")))
    made.journal({"op": "remove_entries", "ids": ["u2"]}, append(said("u3", "right")))
    first, second = made.segment.read_text().splitlines()
    made.segment.write_text(f"{second}\n{first}\n")
    assert grown.prompts(grown.visible(made.read())) == ["go", "right"]


def test_what_a_rewind_took_away_comes_from_the_library(made: Made, tmp_path: Path) -> None:
    database = open_database(tmp_path / "library.db", create=True)
    made.write([said("u", "go"), said("a", "ok", "assistant"), said("u2", "wrong")])

    def shown() -> list[tuple[str, bool]]:
        Sync(database, Settings(helpers=0)).run([Target(VibeSource(), made.root)])
        return [(name, hidden is not None) for name, hidden in database.connection.execute(
            "SELECT json_extract(metadata_json, '$.source.id'), json_extract(metadata_json,"
            " '$.hidden_at') FROM chat_messages ORDER BY created_at, id")]  # fmt: skip

    assert shown() == [("u", False), ("a", False), ("u2", False)]
    made.write([said("u", "go"), said("a", "ok", "assistant"), REWIND, said("u3", "right")])
    expected = [("u", False), ("a", False), ("u2", True), ("r", False), ("u3", False)]
    assert shown() == expected
    made.write([said("u", "go"), said("a", "ok", "assistant"), REWIND, said("u3", "right"),
                said("a3", "done", "assistant")])  # fmt: skip
    assert shown() == [*expected, ("a3", False)]
    database.close()


def test_a_fork_copies_under_new_ids(made: Made) -> None:
    made.write([said("u", "go"), said("a", "ok", "assistant"), said("u2", "go")])
    fork = Made(made.root, "two")
    fork.meta(parent_session_id="one")
    fork.write([said("imported-1", "go"), said("imported-2", "ok", "assistant"), said("u9", "on")])
    draft = fork.read()
    assert draft.lineage is not None
    assert (draft.lineage.kind, draft.lineage.parent_source_id) == ("fork", "one")
    assert [one.inherited_from for one in draft.messages] == ["u", "a", None]


def test_a_child_is_a_subagent(made: Made) -> None:
    made.write([said("u", "go")])
    made.meta(child_sessions=[{"session_id": "two"}])
    child = Made(made.root, "two")
    child.meta(parent_session_id="one")
    child.write([said("u", "look")])
    draft = child.read()
    assert draft.lineage is not None and draft.lineage.kind == "subagent"


def test_prompts_that_wait_are_queued(made: Made) -> None:
    made.write([said("u", "go")], turnQueue={"items": [
        {"id": "q", "content": [{"type": "text", "text": "later"}]},
        {"id": "r", "params": {"message": "then"}}, {"id": "s"}]})
    waiting = made.read().messages[-3:]
    assert [one.metadata["queued_at"] for one in waiting] == [AT] * 3
    assert grown.prompts(waiting) == ["later", "then", ""]
    assert all(one.parts for one in waiting)


def test_an_archived_session(made: Made) -> None:
    made.write([said("u", "go")])
    made.meta(archived_at="2026-11-28T10:44:00+00:00", title="Named", title_source="manual")
    draft = made.read()
    assert draft.archived_at == 1_795_862_640_000
    assert (draft.title, draft.title_from) == ("Named", "user")


@pytest.mark.parametrize("damage", [
    lambda made: next(made.folder.glob("chunks/*b.json")).write_text('[{"id": "x"'),
    lambda made: next(made.folder.glob("chunks/*b.json")).unlink(),
    lambda made: made.segment.write_text('{"sequence": 9, "type": "proj'),
])  # fmt: skip
def test_damage_costs_itself(made: Made, damage: Callable[[Made], object]) -> None:
    made.write([said("u", "go"), said("a", "ok", "assistant")])
    for old in made.folder.glob("chunks/c2*"):
        old.unlink()
    damage(made)
    drafts, problems = grown.read_all(VibeSource(), made.root)
    assert grown.prompts(drafts["one"].messages) == ["go"] and len(problems) == 1


def test_chunks_are_read_once_and_damage_is_told_each_time(made: Made) -> None:
    made.write([said("u", "go"), said("a", "ok", "assistant")])
    next(made.folder.glob("chunks/c3b.json")).write_text("[{")
    source = VibeSource()
    (unit,) = source.units(made.root, [])
    follower = source.follower(made.root, unit)
    follower.read(unit)
    made.journal(append(said("a2", "more", "assistant")))
    (unit,) = source.units_at(made.root, [str(made.segment)]) or []
    with watched() as found:
        reading_ = follower.read(unit)
    assert len(reading_.sessions[0].messages) == 2 and len(reading_.problems) == 1
    assert "c3a.json" not in found.names() and "c3b.json" in found.names()


def test_a_snapshot_that_cannot_be_read_leaves_what_was_there(made: Made) -> None:
    made.write([said("u", "go")])
    (made.folder / "CURRENT").write_text('{"generation": "nowh')
    drafts, problems = grown.read_all(VibeSource(), made.root)
    assert drafts == {} and len(problems) == 1


def test_the_journal_is_followed(made: Made) -> None:
    made.write([said("u", "go")])
    source = VibeSource()
    (unit,) = source.units(made.root, [])
    follower = source.follower(made.root, unit)
    assert len(follower.read(unit).sessions[0].messages) == 1
    made.journal(append(said("a", "ok", "assistant")))
    (unit,) = source.units_at(made.root, [str(made.segment)]) or []
    assert len(follower.read(unit).sessions[0].messages) == 2
    made.write([said("u", "go"), said("a", "ok", "assistant"), said("u2", "on")])
    (unit,) = source.units_at(made.root, [str(made.folder / "CURRENT")]) or []
    assert len(follower.read(unit).sessions[0].messages) == 3


# --- older folders made by hand -------------------------------------------------------------


def older(root: Path, stamp: str, name: str, *rows: dict[str, Any], **meta: Any) -> Path:
    folder = root / f"session_{stamp}_{name[:8]}"
    grown.write_lines(folder / "messages.jsonl", rows)
    told = {"session_id": name, "start_time": "2026-11-28T10:44:00+00:00", **meta}
    (folder / "meta.json").write_text(json.dumps(told))
    return folder


def test_a_session_that_was_brought_into_the_new_store_is_there_once(made: Made) -> None:
    made.write([said("u", "go")])
    older(made.root, "20260101_100000", "one", {"role": "user", "content": "go"})
    drafts, problems = grown.read_all(VibeSource(), made.root)
    assert problems == [] and "unified" in drafts["one"].path


def test_states_and_origins_of_older_lines(tmp_path: Path) -> None:
    use = [{"id": one, "function": {"name": "bash", "arguments": "{}"}} for one in "abc"]
    older(tmp_path, "20260101_100000", "one",
          {"role": "user", "content": "go", "message_id": "u"},
          {"role": "user", "content": "told", "message_id": "i", "injected": True},
          {"role": "assistant", "tool_calls": use, "message_id": "x", "reasoning_content": "hm"},
          {"role": "tool", "content": "<user_cancellation>no</user_cancellation>",
           "tool_call_id": "b"}, {"role": "tool", "content": "fine", "tool_call_id": "a"})
    draft = grown.only(VibeSource(), tmp_path)
    assert grown.prompts(draft.messages) == ["go"]
    assert [one["status"] for one in calls(draft, exits=False)] == [
        "ok", "interrupted", "no result"]
    assert draft.metadata["activity"]["state"] == "running"


def test_of_several_copies_each_is_under_the_one_it_went_on_from(tmp_path: Path) -> None:
    rows = [{"role": "user", "content": str(nth), "message_id": f"m{nth}"} for nth in range(4)]
    for nth, name in enumerate(("first", "second", "third")):
        older(tmp_path, f"2026010{nth + 1}_100000", name, *rows[: nth + 2])
    drafts, _ = grown.read_all(VibeSource(), tmp_path)
    links = {name: one.lineage and one.lineage.parent_source_id for name, one in drafts.items()}
    assert links == {"first": None, "second": "first", "third": "second"}
    assert [one.inherited_from for one in drafts["third"].messages] == ["m0", "m1", "m2", None]


def test_an_older_session_depends_on_none_that_begins_otherwise(tmp_path: Path) -> None:
    names = [f"session_20261128_10440{nth}_{nth:08x}" for nth in range(3)]
    for name, first in zip(names, "aab", strict=True):
        grown.write_lines(tmp_path / name / "messages.jsonl", [
            {"role": "user", "content": "go", "message_id": first},
            {"role": "assistant", "content": "ok", "message_id": f"{first}2"}])  # fmt: skip
        (tmp_path / name / "meta.json").write_text(json.dumps({"session_id": name}))
    source = VibeSource()
    readings = {unit.key: source.read(tmp_path, unit) for unit in source.units(tmp_path, [])}
    others = {key: {Path(one.path).parent.name for one in reading.looked} - {Path(key).name}
              for key, reading in readings.items()}  # fmt: skip
    assert [*others.values()] == [set(), {names[0]}, set()]
