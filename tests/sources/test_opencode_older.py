"""Stores of older versions: a store for each project, parts inside messages, early tables."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from store.sources.base.drafts import PartDraft, SessionDraft
from store.sources.opencode import OpencodeSource
from tests.sources.opencode_rows import SAMPLE, START, Rows, read_store, text, texts

EARLY = SAMPLE.parent / "0.5.29"


@pytest.fixture
def early(tmp_path: Path) -> Path:
    root = tmp_path / "opencode"
    shutil.copytree(EARLY, root)
    return root


def titled(drafts: dict[str, SessionDraft], word: str) -> SessionDraft:
    (found,) = [draft for draft in drafts.values() if word in texts(draft)[0]]
    return found


def tools(draft: SessionDraft) -> list[PartDraft]:
    return [part for message in draft.messages for part in message.parts if part.tool_call_id]


def test_a_store_for_each_project_is_found_by_its_data_folder() -> None:
    source = OpencodeSource()
    assert source.recognise(EARLY) == EARLY
    storage = EARLY / "project" / "home-dev-proj" / "storage"
    assert source.recognise(storage) == storage
    assert list(source.watch_paths(EARLY)) == [storage / "session"]
    drafts, problems = read_store(EARLY)
    assert (len(drafts), problems) == (3, [])


def test_parallel_calls_of_version_0_5() -> None:
    drafts, _ = read_store(EARLY)
    draft = titled(drafts, "PARALLEL")
    assert texts(draft) == ["PARALLEL go", "Both now.", "Parallel done."]
    first, second = tools(draft)
    assert first.data["output"] == "one\n"
    assert (first.tool_state, second.tool_state) == ("output-available", "output-available")
    extras = [part.data["resultProviderMetadata"]["backscroll"] for part in (first, second)]
    assert [(extra["status"], extra["exit_code"]) for extra in extras] == [("ok", 0), ("error", 3)]
    usages = [m.metadata["usage"]["output"] for m in draft.messages if m.role == "assistant"]
    assert usages == [100]  # As the program counts it, with the reasoning in it.
    assert draft.workspace_root == "/home/dev/proj"
    assert draft.metadata["version"] == "0.5.29"


def test_the_system_prompt_of_an_answer_is_kept() -> None:
    drafts, _ = read_store(EARLY)
    draft = titled(drafts, "PARALLEL")
    digests = {m.metadata.get("system_prompt_digest") for m in draft.messages if m.role != "user"}
    (digest,) = digests
    assert draft.system_prompts[str(digest)].startswith("You are opencode, an interactive CLI")


def test_a_subagent_of_version_0_5_has_its_parent() -> None:
    drafts, _ = read_store(EARLY)
    parent, child = titled(drafts, "SPAWN"), titled(drafts, "Sub hello")
    assert child.lineage is not None
    assert (child.lineage.kind, child.lineage.parent_source_id) == ("subagent", parent.source_id)


def test_what_a_later_version_brought_over_is_read_once(early: Path) -> None:
    """The later version leaves the old files where they are."""
    name = titled(read_store(early)[0], "PARALLEL").source_id
    old = early / "project" / "home-dev-proj" / "storage" / "session"
    info = json.loads((old / "info" / f"{name}.json").read_text()) | {"title": "Brought over"}
    folder = early / "storage" / "session" / "global"
    folder.mkdir(parents=True)
    (early / "storage" / "message").mkdir()
    (folder / f"{name}.json").write_text(json.dumps(info))
    source = OpencodeSource()
    units = [unit for unit in source.units(early, []) if name in unit.key]
    assert [unit.stamps[0].path for unit in units] == [str(folder / f"{name}.json")]
    assert read_store(early)[0][name].title == "Brought over"


def test_a_part_that_is_added_makes_its_session_move(early: Path) -> None:
    source = OpencodeSource()
    before = {unit.key: unit for unit in source.units(early, [])}
    name = titled(read_store(early)[0], "PARALLEL").source_id
    folders = early / "project" / "home-dev-proj" / "storage" / "session" / "part" / name
    last = max(folders.iterdir())
    part = {"id": "prt_zz", "type": "text", "text": "more"}
    (last / "prt_zz.json").write_text(json.dumps(part))
    moved = [unit.key for unit in source.units(early, []) if before[unit.key] != unit]
    assert [key.rpartition("/")[2] for key in moved] == [name]
    assert texts(read_store(early)[0][name])[-1] == "more"


def first_form(root: Path) -> None:
    """Write a session as version 0.1.174 does."""
    base = root / "project" / "home-dev-proj" / "storage" / "session"
    (base / "info").mkdir(parents=True)
    (base / "message" / "ses_a").mkdir(parents=True)
    info = {"id": "ses_a", "version": "0.1.174", "title": "New Session - 2025-07-01T10:00:00.000Z",
            "time": {"created": START, "updated": START}}  # fmt: skip
    (base / "info" / "ses_a.json").write_text(json.dumps(info))
    cache = {"read": 5, "write": 0}
    tokens = {"input": 10, "output": 20, "reasoning": 3, "cache": cache}
    messages: list[dict[str, Any]] = [
        {
            "role": "user", "id": "msg_1",
            "parts": [
                {"type": "text", "text": "look"},
                {"type": "file", "mediaType": "image/png", "filename": "a.png", "url": "data:,"},
            ],
            "metadata": {"time": {"created": START + 10}, "sessionID": "ses_a", "tool": {}},
        },
        {
            "role": "assistant", "id": "msg_2",
            "parts": [
                {"type": "step-start"},
                {"type": "text", "text": "I look."},
                _invoked("c1", "bash", "result", {"command": "ls"}, result="a.txt\n"),
                _invoked("c2", "read", "result", {"filePath": "/no"}, result="File not found"),
                _invoked("c3", "bash", "call", {"command": "sleep 9"}),
            ],
            "metadata": {
                "time": {"created": START + 20, "completed": START + 900}, "sessionID": "ses_a",
                "tool": {
                    "c1": {"title": "ls", "exit": 2, "time": {"start": START + 30,
                                                              "end": START + 50}},
                    "c2": {"error": True, "message": "File not found", "title": "x",
                           "time": {"start": START + 60, "end": START + 61}},
                },
                "assistant": {
                    "system": ["one", "two"], "modelID": "m", "providerID": "p", "cost": 0.25,
                    "path": {"cwd": "/home/dev/proj", "root": "/home/dev/proj"}, "tokens": tokens,
                },
            },
        },
    ]  # fmt: skip
    for message in messages:
        path = base / "message" / "ses_a" / f"{message['id']}.json"
        path.write_text(json.dumps(message))


def _invoked(call_id: str, name: str, state: str, args: Any, **more: Any) -> dict[str, Any]:
    call = {"toolCallId": call_id, "toolName": name, "state": state, "args": args, **more}
    return {"type": "tool-invocation", "toolInvocation": call}


def test_messages_that_hold_their_parts(tmp_path: Path) -> None:
    first_form(tmp_path)
    drafts, problems = read_store(tmp_path)
    assert problems == []
    draft = drafts["ses_a"]
    assert (draft.title_from, draft.workspace_root) == ("placeholder", "/home/dev/proj")
    user, answer = draft.messages
    assert [part.type for part in user.parts] == ["text", "file"]
    assert user.parts[1].data["mediaType"] == "image/png"
    assert answer.created_at == START + 20
    assert answer.metadata["usage"] == {
        "input": 10, "output": 20, "reasoning": 3, "cache_read": 5, "cache_write": 0,
    }  # fmt: skip
    assert answer.metadata["cost_usd"] == 0.25
    assert answer.metadata["model"] == {"provider_id": "p", "model_id": "m"}
    ran, failed, running = tools(draft)
    assert (ran.type, ran.data["output"], ran.created_at) == ("tool-bash", "a.txt\n", START + 30)
    assert ran.data["resultProviderMetadata"]["backscroll"]["exit_code"] == 2
    assert (failed.tool_state, failed.data["errorText"]) == ("output-error", "File not found")
    assert (running.tool_state, running.data["input"]) == (
        "input-available", {"command": "sleep 9"},
    )  # fmt: skip


def test_rows_of_the_second_engine_without_their_number(tmp_path: Path) -> None:
    """Versions 1.14 and 1.15 have the table without ``seq``."""
    rows = Rows(tmp_path / "opencode.db")
    rows.connection.execute("DROP TABLE session_message")
    rows.connection.execute(
        "CREATE TABLE session_message (id text PRIMARY KEY, session_id text NOT NULL,"
        " type text NOT NULL, time_created integer NOT NULL, time_updated integer NOT NULL,"
        " data text NOT NULL)"
    )
    rows.session("ses_one")
    rows.message("ses_one", "user", text("one"))
    switched = {"id": "evt_1", "time": {"created": rows.now}, "agent": "plan"}
    rows.insert("session_message", id="evt_1", session_id="ses_one", type="agent-switched",
                time_created=rows.now, time_updated=rows.now, data=switched)  # fmt: skip
    drafts, problems = read_store(tmp_path)
    assert problems == []
    assert texts(drafts["ses_one"]) == ["one"]
    assert len(drafts["ses_one"].messages) == 2
    source = OpencodeSource()
    (before,) = source.units(tmp_path, [])
    rows.connection.execute("UPDATE session_message SET time_updated = time_updated + 5")
    (after,) = source.units(tmp_path, [])
    assert before != after
