"""Gemini CLI: what the sample lacks, made by hand after the format page."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from store.engine.database import open_database
from store.sources.base.protocol import Problem
from store.sources.gemini import GeminiSource
from store.sync.engine import Sync
from store.sync.targets import Target
from tests.sources.grown import (
    at,
    call,
    calls,
    check_records,
    extra,
    grows_like_a_whole,
    ms,
    only,
    prompts,
    read_all,
    tokens,
    visible,
    words,
    write_lines,
)

DATA = Path(__file__).parent.parent / "data" / "gemini"
SID = "aaaaaaaa-0000-4000-8000-000000000001"
OTHER = "bbbbbbbb-0000-4000-8000-000000000002"
NAME = "session-2026-11-27T10-00-aaaaaaaa.jsonl"


def meta(session: str = SID, second: int = 0, **more: Any) -> dict[str, Any]:
    return {"sessionId": session, "projectHash": "h", "startTime": at(second),
            "lastUpdated": at(second), "kind": "main"} | more  # fmt: skip


def user(name: str, text: Any, second: int) -> dict[str, Any]:
    content = [{"text": text}] if isinstance(text, str) else text
    return {"id": name, "timestamp": at(second), "type": "user", "content": content}


def gemini(name: str, text: Any, second: int, **more: Any) -> dict[str, Any]:
    tokens = {"input": 10, "output": 3, "cached": 4, "thoughts": 2, "tool": 0, "total": 15}
    return {"id": name, "timestamp": at(second), "type": "gemini", "content": text,
            "tokens": tokens, "model": "gemini-3"} | more  # fmt: skip


def context(second: int) -> dict[str, Any]:
    return user("d04923d38bb0f6017037e74183378ef4", "<session_context>\nhere", second)


def replaced(messages: list[Any], second: int) -> dict[str, Any]:
    return {"$set": {"messages": messages, "lastUpdated": at(second)}}


def project(tmp_path: Path, slug: str = "code") -> Path:
    folder = tmp_path / ".gemini" / "tmp" / slug
    (folder / "chats").mkdir(parents=True, exist_ok=True)
    (folder / ".project_root").write_text("/home/mira/code")
    return folder


def session(tmp_path: Path, *rows: Any, name: str = NAME, end: str = "\n") -> Path:
    return write_lines(project(tmp_path) / "chats" / name, rows, end=end)


def root(tmp_path: Path) -> Path:
    return tmp_path / ".gemini"


def test_default_roots(tmp_path: Path) -> None:
    found = GeminiSource().default_roots({"GEMINI_CLI_HOME": "/else"}, tmp_path)
    assert found == [Path("/else/.gemini"), tmp_path / ".gemini"]
    assert GeminiSource().default_roots({}, tmp_path) == [tmp_path / ".gemini"]


def test_recognised_by_content(tmp_path: Path) -> None:
    source = GeminiSource()
    path = session(tmp_path, meta(), user("u", "hi", 1))
    for place in (root(tmp_path), root(tmp_path) / "tmp", path.parent.parent, path.parent, path):
        assert source.recognise(place) == place
        assert only(source, place).source_id == SID
    other = write_lines(tmp_path / "other" / "x.jsonl", [{"type": "session", "id": "x"}])
    assert source.recognise(other) is None
    assert source.recognise(other.parent) is None
    assert source.recognise(tmp_path / "missing") is None


def test_the_older_single_object(tmp_path: Path) -> None:
    rows = [user("u", "old words", 1), gemini("g", "old answer", 2)]
    body = meta() | {"messages": rows}
    del body["kind"]
    path = project(tmp_path, "9f" * 32) / "chats" / NAME.replace(".jsonl", ".json")
    path.write_text(json.dumps(body))
    assert GeminiSource().recognise(path) == path
    draft = only(GeminiSource(), root(tmp_path))
    assert [words(m) for m in draft.messages] == ["old words", "old answer"]
    assert tokens(draft.messages) == {
        "input": 6, "output": 3, "reasoning": 2, "cache_read": 4, "cache_write": 0,
    }  # fmt: skip
    check_records(draft)


def test_an_older_session_with_half_of_a_surrogate_pair_is_read(tmp_path: Path) -> None:
    path = project(tmp_path, "9f" * 32) / "chats" / NAME.replace(".jsonl", ".json")
    path.write_text(json.dumps(meta() | {"messages": [user("u", "cut \ud83d here", 1)]}))
    assert words(only(GeminiSource(), root(tmp_path)).messages[0]) == "cut \ufffd here"


def test_an_old_object_that_became_a_log_is_one_session(tmp_path: Path) -> None:
    rows = [user("u", "one", 1), gemini("g", "two", 2)]
    old = project(tmp_path) / "chats" / NAME.replace(".jsonl", ".json")
    old.write_text(json.dumps(meta() | {"messages": rows}))
    session(tmp_path, meta(), *rows, user("u2", "three", 3))
    draft = only(GeminiSource(), root(tmp_path))
    assert [words(m) for m in draft.messages] == ["one", "two", "three"]
    assert tokens(draft.messages)["output"] == 3


@pytest.mark.parametrize("started", [0, 20])
def test_a_fork_made_by_hand_is_told_by_its_first_turn(tmp_path: Path, started: int) -> None:
    """It has a name of its own, its original's records, and maybe its original's time."""
    rows = [user("c", "<session_context>", 0), user("u", "one", 1), gemini("g", "re one", 2)]
    session(tmp_path, meta(), *rows, user("u2", "two", 3), gemini("g2", "re two", 4))
    own = OTHER
    header = meta() | {"sessionId": own, "startTime": at(started)}
    write_lines(
        project(tmp_path) / "chats" / NAME.replace("aaaaaaaa", "bbbbbbbb"),
        [header, *rows, user("u3", "mine", 30), gemini("g3", "re mine", 31)],
    )
    other = meta() | {"sessionId": "cccccccc-0000-4000-8000-000000000003"}
    write_lines(
        project(tmp_path) / "chats" / NAME.replace("aaaaaaaa", "cccccccc"),
        [other, rows[0], user("x", "another", 5), gemini("y", "re another", 6)],
    )
    drafts, problems = read_all(GeminiSource(), root(tmp_path))
    assert problems == []
    fork = drafts[own]
    assert fork.lineage is not None
    assert (fork.lineage.kind, fork.lineage.parent_source_id) == ("fork", SID)
    assert fork.lineage.parent_message_source_id == "g"
    inherited = {words(m): m.inherited_from for m in fork.messages if words(m)}
    assert inherited["one"] == "u" and inherited["re one"] == "g"
    assert inherited["mine"] is None and inherited["re mine"] is None
    assert [name for name, draft in drafts.items() if draft.lineage] == [own]


def test_workspace_of_a_hashed_folder(tmp_path: Path) -> None:
    folder = project(tmp_path, "3f6a25c2d4")
    (folder / ".project_root").unlink()
    registry = root(tmp_path) / "projects.json"
    registry.write_text(json.dumps({"projects": {"/home/mira/x": "3f6a25c2d4"}}))
    write_lines(folder / "chats" / NAME, [meta(), user("u", "hi", 1)])
    assert only(GeminiSource(), root(tmp_path)).workspace_root == "/home/mira/x"
    registry.write_text("{")
    assert only(GeminiSource(), root(tmp_path)).workspace_root is None
    write_lines(
        folder / "chats" / NAME,
        [meta(), user("c", "<session_context>\n- **Workspace Directories:**\n  - /w\n", 1)],
    )
    assert only(GeminiSource(), root(tmp_path)).workspace_root == "/w"


def test_a_path_that_a_later_session_tells_is_every_sessions(tmp_path: Path) -> None:
    folder = project(tmp_path, hashlib.sha256(b"/home/mira/code").hexdigest())
    (folder / ".project_root").unlink()
    write_lines(folder / "chats" / NAME, [meta(), user("u", "hi", 1), gemini("g", "ho", 2)])
    library, target = tmp_path / "library.db", Target(GeminiSource(), root(tmp_path))
    database = open_database(library, create=True)
    Sync(database).run([target])

    def folders() -> list[tuple[str | None]]:
        return database.connection.execute("SELECT workspace_root FROM chat_sessions").fetchall()

    assert folders() == [(None,)]
    write_lines(
        folder / "chats" / NAME.replace("aaaaaaaa", "bbbbbbbb"),
        [meta(OTHER), user("v", "read /home/mira/code/src/a.py", 1), gemini("h", "ho", 2)],
    )
    Sync(database).run([target])
    assert folders() == [("/home/mira/code",)] * 2
    again = Sync(database)
    again.run([target])
    assert again.summary.read == 0
    database.close()


def test_a_later_resume_leaves_a_skeleton(tmp_path: Path) -> None:
    session(tmp_path, meta(), replaced([context(0)], 0), user("u", "one", 1),
            gemini("g", "two", 2), user("u2", "three", 30))  # fmt: skip
    session(tmp_path, meta(second=20), replaced([context(20)], 20),
            name="session-2026-11-27T10-09-aaaaaaaa.jsonl")  # fmt: skip
    draft = only(GeminiSource(), root(tmp_path))
    assert prompts(visible(draft)) == ["one", "three"]
    assert len(visible(draft)) == len(draft.messages) == 4


def test_a_resume_in_the_same_minute_hides_nothing_while_it_starts(tmp_path: Path) -> None:
    path = session(tmp_path, meta(), replaced([context(0)], 0), user("u", "one", 1),
                   gemini("g", "two", 2), meta(second=10), replaced([context(10)], 10))  # fmt: skip
    assert len(visible(only(GeminiSource(), root(tmp_path)))) == 3
    restored = gemini("g", [{"text": "two"}], 11)
    del restored["tokens"], restored["model"]
    with path.open("a") as file:
        file.write(json.dumps(replaced([context(10), user("u", "one", 11), restored], 11)) + "\n")
    draft = only(GeminiSource(), root(tmp_path))
    assert len(visible(draft)) == 3
    assert tokens(draft.messages)["output"] == 3
    assert draft.messages[2].metadata["model"]["model_id"] == "gemini-3"


def test_one_id_may_stand_for_a_turn_and_its_result(tmp_path: Path) -> None:
    called = {"functionCall": {"id": "c1", "name": "read_file", "args": {"path": "a"}}}
    response = {"functionResponse": {"id": "c1", "name": "read_file",
                                     "response": {"output": "text of a"}}}  # fmt: skip
    turn = gemini("same", [{"text": "look"}, called], 2)
    session(tmp_path, meta(), user("u", "one", 1),
            replaced([user("u", "one", 1), turn, user("same", [response], 3)], 4))  # fmt: skip
    draft = only(GeminiSource(), root(tmp_path))
    assert [m.role for m in draft.messages] == ["user", "assistant"]
    part = call(draft, "c1")
    assert (part.tool_state, part.data["output"]) == ("output-available", "text of a")
    assert tokens(draft.messages)["output"] == 3


def test_rewinds_are_batches_of_their_own(tmp_path: Path) -> None:
    session(tmp_path, meta(), user("u1", "one", 1), gemini("g1", "a", 2), user("u2", "two", 3),
            gemini("g2", "b", 4), {"$rewindTo": "u2"}, user("u3", "three", 6),
            gemini("g3", "c", 7), {"$rewindTo": "u3"}, user("u4", "four", 9))  # fmt: skip
    draft = only(GeminiSource(), root(tmp_path))
    hidden = {m.source_id: m.metadata.get("hidden_at") for m in draft.messages}
    assert hidden == {"u1": None, "g1": None, "u2": ms(4) + 1, "g2": ms(4) + 1,
                      "u3": ms(7) + 1, "g3": ms(7) + 1, "u4": None}  # fmt: skip


def test_an_unknown_rewind_drops_everything(tmp_path: Path) -> None:
    session(tmp_path, meta(), user("u1", "one", 1), {"$rewindTo": "nowhere"},
            user("u2", "two", 3))  # fmt: skip
    assert prompts(visible(only(GeminiSource(), root(tmp_path)))) == ["two"]


def test_compress_is_a_compaction_and_hides_nothing(tmp_path: Path) -> None:
    kept = user("u2", "two", 3)
    summary = user("s", "<state_snapshot>\nwhat was done\n</state_snapshot>", 5)
    session(tmp_path, meta(), user("u1", "one", 1), gemini("g1", "a", 2), kept,
            replaced([summary, gemini("ack", "Got it.", 5, tokens=None), kept], 5),
            user("u3", "three", 6))  # fmt: skip
    draft = only(GeminiSource(), root(tmp_path))
    assert prompts(visible(draft)) == ["one", "two", "three"]
    compaction = next(m for m in draft.messages if m.source_id == "s")
    data = compaction.parts[0].data
    assert data["type"] == "data-compaction"
    assert data["data"]["tail_start_id"] == "u2"
    assert "what was done" in data["data"]["summary"]


def test_another_history_hides_what_it_leaves_out(tmp_path: Path) -> None:
    notice = {"id": "n", "timestamp": at(3), "type": "info", "content": "resumed"}
    session(tmp_path, meta(), user("u1", "one", 1), gemini("g1", "a", 2), notice,
            replaced([user("x1", "saved", 4), gemini("x2", "saved answer", 4)], 5))  # fmt: skip
    draft = only(GeminiSource(), root(tmp_path))
    assert [m.source_id for m in visible(draft)] == ["n", "x1", "x2"]
    assert {m.metadata.get("hidden_at") for m in draft.messages[:2]} == {ms(5)}


def test_notices_errors_and_unknown_records(tmp_path: Path) -> None:
    rows = [
        {"id": "i", "timestamp": at(1), "type": "info", "content": "update there is"},
        {"id": "e", "timestamp": at(2), "type": "error", "content": [{"text": "quota"}]},
        {"id": "n", "timestamp": at(3), "type": "hologram", "content": 7, "extra": True},
        {"$future": 1},
        user("p", [{"text": "see"}, {"inlineData": {"mimeType": "image/png", "data": "QUJD"}},
                   {"odd": 1}], 4),
    ]  # fmt: skip
    session(tmp_path, meta(), *rows)
    draft = only(GeminiSource(), root(tmp_path))
    info, error, unknown, prompt = draft.messages
    assert info.parts[0].data["data"] == {"name": "info", "details": "update there is"}
    assert error.parts[0].data == {"type": "data-error", "data": {"message": "quota"}}
    assert unknown.parts[0].data["data"]["details"]["extra"] is True
    assert [part.type for part in prompt.parts] == ["text", "file", "data-event"]
    assert prompt.parts[1].data["url"] == "data:image/png;base64,QUJD"
    check_records(draft)


@pytest.mark.parametrize(
    ("status", "error", "told"),
    [
        ("cancelled", "[Operation Cancelled] Reason: User did not allow tool call", "denied"),
        ("cancelled", "[Operation Cancelled] Reason: User cancelled", "interrupted"),
        ("error", "boom", "error"),
    ],
)
def test_failed_calls(tmp_path: Path, status: str, error: str, told: str) -> None:
    response = {"functionResponse": {"id": "c", "name": "edit", "response": {"error": error}}}
    made = {"id": "c", "name": "edit", "args": {}, "status": status, "timestamp": at(3),
            "result": [response]}  # fmt: skip
    session(tmp_path, meta(), gemini("g", "", 2, toolCalls=[made]))
    part = call(only(GeminiSource(), root(tmp_path)), "c")
    assert (part.tool_state, part.data["errorText"]) == ("output-error", error)
    assert extra(part)["status"] == told


def test_a_killed_run_leaves_an_open_call_and_a_lone_prompt(tmp_path: Path) -> None:
    made = {"id": "c", "name": "run_shell_command", "args": {"command": "sleep 9"},
            "status": "executing"}  # fmt: skip
    session(tmp_path, meta(), user("u", "go", 1), gemini("g", "", 2, toolCalls=[made]),
            user("u2", "lost", 3))  # fmt: skip
    draft = only(GeminiSource(), root(tmp_path))
    assert call(draft, "c").tool_state == "input-available"
    assert "output" not in call(draft, "c").data
    assert draft.messages[-1].source_id == "u2"


def test_shell_lines_and_expanded_files(tmp_path: Path) -> None:
    ran = "I ran the following shell command:\n```sh\nls -1\n```\n\nThis produced: x"
    expanded = user("e", "@a.txt\n--- Content from referenced files ---\nlong", 2)
    session(tmp_path, meta(), user("s", ran, 1), expanded | {"displayContent": "@a.txt what"})
    shell, prompt = only(GeminiSource(), root(tmp_path)).messages
    assert shell.metadata == {"origin": "shell", "backscroll": {"shell": "ls -1"}}
    assert prompt.metadata["backscroll"]["display"] == "@a.txt what"


def test_torn_and_damaged_lines_cost_themselves(tmp_path: Path) -> None:
    path = session(tmp_path, meta(), user("u", "one", 1), gemini("g", "two", 2))
    with path.open("ab") as file:
        file.write(b'{"id":\n\xff\xfe\n' + json.dumps(user("u2", "three", 3)).encode() + b"\n")
        file.write(b'{"id":"torn","ti')
    drafts, problems = read_all(GeminiSource(), root(tmp_path))
    assert prompts(drafts[SID].messages) == ["one", "three"]
    assert sorted(problem.line for problem in problems) == [4, 5, 7]
    assert any(problem.reason.startswith("unfinished last line") for problem in problems)


def test_files_that_are_no_sessions_are_told(tmp_path: Path) -> None:
    session(tmp_path, meta(), user("u", "one", 1))
    chats = project(tmp_path) / "chats"
    (chats / "session-2026-01-01T00-00-cccccccc.json").write_text("[1")
    (chats / "session-2026-01-01T00-00-dddddddd.jsonl").write_text('{"a":1}\n')
    (chats / "session-2026-01-01T00-00-eeeeeeee.jsonl").write_text("")
    drafts, problems = read_all(GeminiSource(), root(tmp_path))
    assert list(drafts) == [SID]
    assert len(problems) == 2


def test_a_file_that_went_away_costs_itself(tmp_path: Path) -> None:
    path = session(tmp_path, meta(), user("u", "one", 1))
    source = GeminiSource()
    (unit,) = source.units(root(tmp_path), [])
    path.unlink()
    reading = source.read(root(tmp_path), unit)
    assert reading.sessions == []
    assert [problem.path for problem in reading.problems] == [str(path)]


def test_imported_copies_are_known_as_copies(tmp_path: Path) -> None:
    rows = [user("u", "one", 1), gemini("g", "two", 2)]
    session(tmp_path, meta(), context(0), *rows, user("later", "three", 3))
    session(tmp_path, meta(OTHER, 30), context(30), *rows, user("new", "other way", 31),
            gemini("g9", "nine", 32), name="session-1795773600000-bbbbbbbb.jsonl")  # fmt: skip
    drafts, problems = read_all(GeminiSource(), root(tmp_path))
    assert problems == []
    copy = drafts[OTHER]
    assert copy.lineage is not None
    assert (copy.lineage.kind, copy.lineage.parent_source_id) == ("fork", SID)
    assert copy.lineage.parent_message_source_id == "g"
    assert [m.source_id for m in copy.messages if m.inherited_from] == ["u", "g"]
    own = [m for d in drafts.values() for m in d.messages if m.inherited_from is None]
    assert tokens(own)["output"] == 6


def test_saved_outputs_and_checkpoints(tmp_path: Path) -> None:
    folder = project(tmp_path)
    outputs = folder / "tool-outputs" / f"session-{SID}"
    outputs.mkdir(parents=True)
    (outputs / "shell_c1.txt").write_text("all of it")
    text = "cut; the full output is in /x/tool-outputs/shell_c1.txt"
    response = {"functionResponse": {"id": "c", "name": "s", "response": {"output": text}}}
    made = {"id": "c", "name": "s", "args": {}, "status": "success", "result": [response]}
    session(tmp_path, meta(), user("u", "one", 1), gemini("g", "two", 2, toolCalls=[made]),
            user("u2", "three", 3))  # fmt: skip
    saved = [{"role": "user", "parts": [{"text": "one"}]},
             {"role": "model", "parts": [{"text": "two"}]}]  # fmt: skip
    (folder / "checkpoint-my%20tag.json").write_text(json.dumps({"history": saved}))
    (folder / "checkpoint-nobody.json").write_text("{")
    (folder / "logs.json").write_text(
        json.dumps([{"sessionId": SID, "type": "user", "message": "/chat save my tag"},
                    {"sessionId": SID, "type": "user", "message": "/chat save my%20tag"},
                    {"sessionId": SID, "type": "user", "message": "/chat save gone"}])
    )  # fmt: skip
    draft = only(GeminiSource(), root(tmp_path))
    assert extra(calls(draft.messages)[0])["attachment"] == "shell_c1.txt"
    assert [a.name for a in draft.attachments] == ["shell_c1.txt", "checkpoint-my%20tag.json"]


def test_a_checkpoint_names_the_message_it_ends_with(tmp_path: Path) -> None:
    folder = project(tmp_path)
    session(tmp_path, meta(), user("u", "one", 1), gemini("g", "two", 2), user("v", "three", 3))
    saved = [{"role": "user", "parts": [{"text": "one"}]},
             {"role": "model", "parts": [{"text": "two"}]}]  # fmt: skip
    (folder / "checkpoint-tag.json").write_text(json.dumps({"history": saved}))
    (folder / "logs.json").write_text(
        json.dumps([{"sessionId": SID, "type": "user", "message": "/chat save tag"}])
    )
    draft = only(GeminiSource(), root(tmp_path))
    assert draft.metadata["backscroll"]["checkpoints"] == [
        {"tag": "tag", "entries": 2, "message_source_id": "g", "attachment": "checkpoint-tag.json"}
    ]
    assert [a.name for a in draft.attachments] == ["checkpoint-tag.json"]


def test_restore_points_are_named_by_their_calls(tmp_path: Path) -> None:
    folder = project(tmp_path)
    made = {"id": "c", "name": "write_file", "args": {"file_path": "/w/my-file.txt"},
            "status": "success", "timestamp": at(9), "result": []}  # fmt: skip
    other = made | {"id": "d", "args": {"file_path": "/w/else.txt"}}
    session(tmp_path, meta(), gemini("g", "", 7, toolCalls=[made, other]))
    (folder / "checkpoints").mkdir()
    for second in ("06", "08", "30"):
        name = f"2026-11-27T10-00-{second}_000Z-my-file.txt-write_file.json"
        (folder / "checkpoints" / name).mkdir()  # Opening it would fail.
    (folder / "checkpoints" / "other.json").write_text("")
    draft = only(GeminiSource(), root(tmp_path))
    assert extra(call(draft, "c"))["restore_point"] == (
        "2026-11-27T10-00-08_000Z-my-file.txt-write_file.json"
    )
    assert "restore_point" not in extra(call(draft, "d"))


def test_a_restore_point_concerns_the_sessions_of_its_time(tmp_path: Path) -> None:
    folder = project(tmp_path)
    made = {"id": "c", "name": "write_file", "args": {"file_path": "/w/a.txt"},
            "status": "success", "timestamp": at(9), "result": []}  # fmt: skip
    now = session(tmp_path, meta(), gemini("g", "", 7, toolCalls=[made]))
    written = datetime.fromisoformat("2026-11-27T10:00:20+00:00").timestamp()
    os.utime(now, (written, written))
    other = now.with_name("session-2026-11-20T10-00-bbbbbbbb.jsonl")
    other.write_text(now.read_text().replace(SID, "bbbbbbbb" + SID[8:]))
    earlier = datetime.fromisoformat("2026-11-20T11:00:00+00:00").timestamp()
    os.utime(other, (earlier, earlier))
    source = GeminiSource()
    before = {unit.key: unit.stamps for unit in source.units(root(tmp_path), [])}
    (folder / "checkpoints").mkdir()
    point = folder / "checkpoints" / "2026-11-27T10-00-08_000Z-a.txt-write_file.json"
    point.write_text("{}")
    moved = [unit for unit in source.units(root(tmp_path), []) if before[unit.key] != unit.stamps]
    assert [unit.key for unit in moved] == [f"{folder.name}/{SID[:8]}"]
    listed = source.units_at(root(tmp_path), [str(point)]) or []
    assert [unit for unit in listed if before[unit.key] != unit.stamps] == moved
    (draft,) = source.read(root(tmp_path), moved[0]).sessions
    assert extra(call(draft, "c"))["restore_point"] == point.name


def test_secrets_beside_the_sessions_are_not_opened(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    session(tmp_path, meta(), user("u", "one", 1))
    for name in ("oauth_creds.json", "google_accounts.json", "settings.json"):
        (root(tmp_path) / name).mkdir()  # Opening a folder would fail.
    assert only(GeminiSource(), root(tmp_path)).source_id == SID


@pytest.mark.parametrize("step", [None, 997])
def test_a_session_followed_is_a_session_read(tmp_path: Path, step: int | None) -> None:
    home = tmp_path / "home"
    shutil.copytree(DATA, home)
    for name in ("7ab9a0fa", "65f4571c", "bfff4525", "47bb34e5"):
        path = home / "tmp/project/chats" / f"session-2026-11-27T22-38-{name}.jsonl"
        grows_like_a_whole(GeminiSource, home, path, step=step)


def test_a_poll_reads_the_session_that_grew(tmp_path: Path) -> None:
    home = tmp_path / "home"
    shutil.copytree(DATA, home)
    path = home / "tmp/project/chats/session-2026-11-27T22-38-7ab9a0fa.jsonl"
    child = home / "tmp/project/chats/47bb34e5-aedc-4965-af6d-fb94565753d3/x.jsonl"
    source = GeminiSource()
    found = source.units_at(home, [str(path), str(child)])
    assert found is not None
    assert sorted(unit.key for unit in found) == ["project/47bb34e5", "project/7ab9a0fa"]
    assert source.units_at(home, [str(home / "tmp/project/logs.json")]) == []
    everything = source.units_at(home, [str(home / "tmp/project/chats")])
    assert everything is not None and len(everything) == 5


def test_a_file_that_was_replaced_is_read_anew(tmp_path: Path) -> None:
    path = session(tmp_path, meta(), user("u", "one", 1), gemini("g", "two", 2))
    source = GeminiSource()
    (unit,) = source.units(root(tmp_path), [])
    follower = source.follower(root(tmp_path), unit)
    assert len(follower.read(unit).sessions[0].messages) == 2
    session(tmp_path, meta(), user("v", "else", 1))
    (unit,) = source.units(root(tmp_path), [])
    assert prompts(follower.read(unit).sessions[0].messages) == ["else"]
    assert path.exists()


def test_files_beside_the_sessions_that_cannot_be_read_are_told(tmp_path: Path) -> None:
    session(tmp_path, meta(), user("u", "go", 1), gemini("g", "done", 2))
    folder = project(tmp_path)
    (folder / "checkpoint-tag.json").write_text("[]")
    (folder / ".project_root").unlink(missing_ok=True)
    for name in (".project_root", "logs.json"):
        (folder / name).mkdir()
    drafts, problems = read_all(GeminiSource(), root(tmp_path))
    assert list(drafts) == [SID]
    assert set(problems) == {
        Problem(str(folder / name), 0, "not a regular file")
        for name in (".project_root", "logs.json")
    }
