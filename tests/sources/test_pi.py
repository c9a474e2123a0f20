"""pi: the genuine sample, and what it lacks made by hand after the format page."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from store.sources.base.values import epoch_ms
from store.sources.pi import PiSource
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
    snapshot,
    synced,
    tokens,
    visible,
    words,
    write_lines,
)

DATA = Path(__file__).parent.parent / "data" / "pi"
TOOLS = "01a21f1f-2a04-71ed-bc04-9eae727ff70c"
FAILED = "01a21f1f-3775-7311-ba27-de7c297dac8d"
FORK = "01a21f1f-3f53-736d-9537-3c24509a560f"
COST = {"input": 0.1, "output": 0.1, "cacheRead": 0, "cacheWrite": 0.05, "total": 0.25}
SID = "01a21f1f-0000-7000-8000-000000000001"


def header(**more: Any) -> dict[str, Any]:
    return {"type": "session", "version": 3, "id": SID, "timestamp": at(0), "cwd": "/w"} | more


def entry(name: str, parent: str | None, second: int, kind: str, /, **more: Any) -> dict[str, Any]:
    return {"type": kind, "id": name, "parentId": parent, "timestamp": at(second)} | more


def user(name: str, parent: str | None, second: int, text: Any) -> dict[str, Any]:
    return entry(
        name,
        parent,
        second,
        "message",
        message={"role": "user", "content": text, "timestamp": ms(second)},
    )


def answer(name: str, parent: str | None, second: int, *blocks: Any, **more: Any) -> dict[str, Any]:
    content = [{"type": "text", "text": b} if isinstance(b, str) else b for b in blocks]
    message = {"role": "assistant", "content": content, "provider": "p", "model": "m",
               "usage": {"input": 3, "output": 2, "cacheRead": 1, "cacheWrite": 4,
                         "totalTokens": 10, "cost": COST},
               "stopReason": "stop", "api": "a", "timestamp": ms(second)} | more  # fmt: skip
    return entry(name, parent, second, "message", message=message)


def result(name: str, parent: str, second: int, call_id: str, text: str, **more: Any) -> Any:
    message = {"role": "toolResult", "toolCallId": call_id, "toolName": "bash",
               "content": [{"type": "text", "text": text}], "isError": False,
               "timestamp": ms(second)} | more  # fmt: skip
    return entry(name, parent, second, "message", message=message)


def bash(call_id: str, command: str = "ls") -> dict[str, Any]:
    return {"type": "toolCall", "id": call_id, "name": "bash", "arguments": {"command": command}}


def session(tmp_path: Path, *rows: Any, end: str = "\n") -> Path:
    name = f"2026-11-27T10-00-00-000Z_{SID}.jsonl"
    return write_lines(tmp_path / "sessions" / "--w--" / name, rows, end=end)


def test_default_roots(tmp_path: Path) -> None:
    usual = tmp_path / ".pi/agent/sessions"
    assert PiSource().default_roots({}, tmp_path) == [usual]
    named = {"PI_CODING_AGENT_DIR": "/a", "PI_CODING_AGENT_SESSION_DIR": "/s"}
    assert PiSource().default_roots(named, tmp_path) == [Path("/s"), Path("/a/sessions"), usual]


def test_recognised_by_content(tmp_path: Path) -> None:
    source = PiSource()
    home = tmp_path / ".pi"
    shutil.copytree(DATA / "sessions", home / "agent" / "sessions")
    sessions = home / "agent" / "sessions"
    project = sessions / "--home-user-project--"
    for place in (home, home / "agent", sessions):
        assert source.recognise(place) == sessions
    assert source.recognise(project) == project
    (first, *_) = sorted(project.iterdir())
    assert source.recognise(first) == first
    assert only(source, first).source_id == TOOLS
    other = write_lines(tmp_path / "x.jsonl", [{"type": "user", "id": "x"}])
    assert source.recognise(other) is None
    assert source.recognise(tmp_path / "missing") is None


def test_the_sample(tmp_path: Path) -> None:
    drafts, problems = read_all(PiSource(), DATA / "sessions")
    assert problems == []
    assert set(drafts) == {TOOLS, FAILED, FORK}
    draft = drafts[TOOLS]
    assert (draft.title, draft.title_from) == ("MOCK:pitools edit", "first-prompt")
    assert draft.workspace_root == "/home/user/project"
    assert draft.model == {"provider_id": "mock", "model_id": "mock-1", "variant": "medium"}
    assert draft.created_at == epoch_ms("2026-11-27T22:27:45.796Z")
    assert draft.updated_at == epoch_ms("2026-11-27T22:27:47.662Z")
    assert prompts(draft.messages) == ["MOCK:pitools edit", "MOCK:hello2 more"]
    assert [m.role for m in draft.messages] == ["user", *["assistant"] * 4, "user", "assistant"]
    assert len(draft.records) == 14
    for each in drafts.values():
        check_records(each)


def test_calls_of_the_sample() -> None:
    drafts, _ = read_all(PiSource(), DATA / "sessions")
    told = [
        (p.tool_call_id, p.type, p.tool_state, extra(p)["status"], extra(p).get("exit_code"))
        for p in calls(drafts[TOOLS].messages)
    ]
    assert told == [
        ("call_pitools_0_0", "tool-bash", "output-available", "ok", 0),
        ("call_pitools_1_0", "tool-read", "output-available", "ok", None),
        ("call_pitools_1_1", "tool-bash", "output-error", "error", 3),
        ("call_pitools_2_0", "tool-edit", "output-error", "error", None),
    ]
    first = call(drafts[TOOLS], "call_pitools_0_0")
    assert (first.data["input"], first.data["output"]) == ({"command": "ls -1"}, "a.txt\nb.txt\n")
    assert extra(first)["duration_ms"] == 14
    answered = drafts[TOOLS].messages[1]
    assert answered.parts[0].data["text"] == "Look first."
    assert answered.metadata["backscroll"] == {
        "finish_reason": "toolUse", "response_id": "chatcmpl-mock1", "effort": "medium",
    }  # fmt: skip


def test_usage_of_a_fork_is_counted_once() -> None:
    drafts, _ = read_all(PiSource(), DATA / "sessions")
    fork = drafts[FORK]
    assert fork.lineage is not None
    assert (fork.lineage.kind, fork.lineage.parent_source_id) == ("fork", TOOLS)
    assert fork.lineage.parent_message_source_id == "293f383c"
    copies = [m for m in fork.messages if m.inherited_from is not None]
    assert [m.inherited_from for m in copies] == [m.source_id for m in drafts[TOOLS].messages]
    assert prompts(fork.messages)[-1] == "MOCK:hello2 in fork"
    every = {"input": 988 + 192 + 164 + 136 + 276, "output": 60 + 25 + 40 + 15 + 12,
             "reasoning": 0, "cache_read": 512 + 1408 + 1536 + 1664 + 1024,
             "cache_write": 0}  # fmt: skip
    assert tokens(drafts[TOOLS].messages) == every
    own = [m for m in fork.messages if m.inherited_from is None]
    assert tokens(own) == {"input": 276, "output": 12, "reasoning": 0, "cache_read": 1024,
                           "cache_write": 0}  # fmt: skip
    assert drafts[TOOLS].messages[1].metadata["cost_usd"] == 0.0040176000000000005


def test_a_failed_request_is_an_error() -> None:
    drafts, _ = read_all(PiSource(), DATA / "sessions")
    prompt, failed = drafts[FAILED].messages
    assert words(prompt) == "MOCK:err400 x"
    assert failed.parts[0].data == {
        "type": "data-error", "data": {"message": "400 mock: invalid request"},
    }  # fmt: skip


def test_abandoned_branches_are_hidden_one_batch_per_branch_point(tmp_path: Path) -> None:
    session(
        tmp_path, header(),
        user("u1", None, 1, "one"), answer("a1", "u1", 2, "two"),
        user("x1", "a1", 3, "first way"), answer("x2", "x1", 4, "nothing"),
        user("y1", "a1", 5, "second way"), answer("y2", "y1", 6, "nothing too"),
        user("u2", "a1", 7, "third way"), answer("a2", "u2", 8, "good"),
        user("z1", "a2", 9, "left later"),
        entry("s", "a2", 10, "branch_summary", fromId="z1", summary="It was left."),
        user("u3", "s", 11, "on"),
    )  # fmt: skip
    draft = only(PiSource(), tmp_path / "sessions")
    assert [m.source_id for m in visible(draft)] == ["u1", "a1", "u2", "a2", "s", "u3"]
    hidden = {m.source_id: m.metadata["hidden_at"] for m in draft.messages
              if "hidden_at" in m.metadata}  # fmt: skip
    assert hidden == {"x1": ms(7), "x2": ms(7), "y1": ms(7), "y2": ms(7), "z1": ms(10)}
    summary = next(m for m in draft.messages if m.source_id == "s")
    assert summary.metadata == {"origin": "meta", "backscroll": {"branch_summary_of": "z1"}}
    assert tokens(draft.messages)["output"] == 8


def test_branching_from_the_beginning(tmp_path: Path) -> None:
    session(tmp_path, header(), user("u1", None, 1, "one"), answer("a1", "u1", 2, "two"),
            user("u2", None, 3, "anew"))  # fmt: skip
    draft = only(PiSource(), tmp_path / "sessions")
    assert [m.source_id for m in visible(draft)] == ["u2"]
    assert {m.metadata["hidden_at"] for m in draft.messages[:2]} == {ms(3)}
    assert draft.title == "anew"


def test_a_chain_that_breaks_at_a_left_out_label(tmp_path: Path) -> None:
    parent = f"/x/--w--/2026-11-27T09-00-00-000Z_{TOOLS}.jsonl"
    session(tmp_path, header(timestamp=at(20), parentSession=parent), user("u1", None, 1, "one"),
            answer("a1", "u1", 2, "two"), user("u2", "gone", 4, "three"),
            answer("a2", "u2", 5, "four"), user("u3", "a2", 21, "five"))  # fmt: skip
    draft = only(PiSource(), tmp_path / "sessions")
    assert [m.source_id for m in visible(draft)] == ["u2", "a2", "u3"]
    assert [m.source_id for m in draft.messages] == ["u1", "a1", "u2", "a2", "u3"]
    assert draft.metadata["backscroll"]["broken_at"] == "gone"
    assert draft.lineage is not None
    assert (draft.lineage.kind, draft.lineage.parent_message_source_id) == ("fork", "a2")


def test_a_new_session_from_another_without_copies(tmp_path: Path) -> None:
    parent = f"/x/2026-11-27T09-00-00-000Z_{TOOLS}.jsonl"
    session(tmp_path, header(parentSession=parent), user("u1", None, 1, "one"))
    draft = only(PiSource(), tmp_path / "sessions")
    assert draft.lineage is not None
    assert (draft.lineage.kind, draft.lineage.parent_source_id) == ("continuation", TOOLS)


@pytest.mark.parametrize("named", [None, "/elsewhere/--w--/{}", "/elsewhere/--other--/{}"])
def test_a_fork_made_by_hand_is_told_by_its_entries(tmp_path: Path, named: str | None) -> None:
    """It kept its parent's time, and may not name it."""
    rows = [user("u1", None, 1, "one"), answer("a1", "u1", 2, {"type": "text", "text": "re one"}),
            user("u2", "a1", 3, "two")]  # fmt: skip
    parent = f"2026-11-27T10-00-00-000Z_{SID}.jsonl"
    other = "--other--" if named and "other" in named else "--w--"
    write_lines(tmp_path / other / parent, [header(), *rows])
    own = SID[:-1] + "2"
    more = {"parentSession": named.format(parent)} if named else {}
    write_lines(
        tmp_path / "--w--" / f"2026-11-27T10-00-00-000Z_{own}.jsonl",
        [header(id=own, **more), *rows[:2], user("u3", "a1", 9, "mine"),
         answer("a3", "u3", 10, {"type": "text", "text": "re mine"})],
    )  # fmt: skip
    drafts, problems = read_all(PiSource(), tmp_path)
    assert problems == []
    fork = drafts[own]
    assert fork.lineage is not None and drafts[SID].lineage is None
    assert (fork.lineage.kind, fork.lineage.parent_source_id) == ("fork", SID)
    assert fork.lineage.parent_message_source_id == "a1"
    assert [m.inherited_from for m in fork.messages] == ["u1", "a1", None, None]


def test_compaction_keeps_its_tail(tmp_path: Path) -> None:
    session(
        tmp_path, header(), user("u1", None, 1, "one"), answer("a1", "u1", 2, "two"),
        entry("m", "a1", 3, "model_change", provider="q", modelId="n"),
        user("u2", "m", 4, "three"), answer("a2", "u2", 5, "four"),
        entry("c", "a2", 6, "compaction", summary="All so far.", firstKeptEntryId="m",
              tokensBefore=900), user("u3", "c", 7, "five"),
    )  # fmt: skip
    draft = only(PiSource(), tmp_path / "sessions")
    compaction = next(m for m in draft.messages if m.source_id == "c")
    assert compaction.parts[0].data["data"] == {
        "summary": "All so far.", "tail_start_id": "u2", "auto": True, "pre_tokens": 900,
    }  # fmt: skip
    assert draft.model == {"provider_id": "p", "model_id": "m"}
    assert len(visible(draft)) == 6


def test_names_labels_and_notes_of_extensions(tmp_path: Path) -> None:
    session(
        tmp_path, header(), user("u1", None, 1, "one"),
        entry("n", "u1", 2, "session_info", name="My  session"),
        entry("l", "n", 3, "label", targetId="u1", label="start"),
        entry("x", "l", 4, "custom", customType="ext", data={"a": 1}),
        entry("cm", "x", 5, "custom_message", customType="ext", content="Injected", display=True),
        entry("h", "cm", 6, "hologram", depth=3),
        entry("o", "h", 7, "message", message={"role": "oracle", "content": "?"}),
    )  # fmt: skip
    draft = only(PiSource(), tmp_path / "sessions")
    assert (draft.title, draft.title_from) == ("My session", "session-name")
    assert draft.metadata["backscroll"]["labels"] == {"u1": "start"}
    assert [(m.source_id, m.role, m.metadata.get("origin")) for m in draft.messages] == [
        ("u1", "user", "human"), ("cm", "user", "meta"), ("h", "system", None),
        ("o", "system", None),
    ]  # fmt: skip
    assert draft.messages[2].parts[0].data["data"] == {"name": "hologram", "details": {"depth": 3}}
    check_records(draft)
    used = [n for m in draft.messages for n in (*m.records, *(k for p in m.parts
                                                              for k in p.records))]  # fmt: skip
    assert sorted(used) == list(range(len(draft.records)))


def test_shell_lines(tmp_path: Path) -> None:
    ran = {"role": "bashExecution", "command": "ls", "output": "a", "exitCode": 2,
           "cancelled": False, "truncated": False, "excludeFromContext": True}  # fmt: skip
    session(tmp_path, header(), entry("b", None, 1, "message", message=ran))
    typed, printed = only(PiSource(), tmp_path / "sessions").messages
    assert typed.metadata == {"origin": "shell", "backscroll": {"shell": "ls"}}
    assert printed.metadata["backscroll"] == {
        "output": True, "exit_code": 2, "not_in_context": True,
    }  # fmt: skip
    assert (words(typed), words(printed)) == ("ls", "a")


def test_images_reasoning_and_aborts(tmp_path: Path) -> None:
    image = {"type": "image", "data": "QUJD", "mimeType": "image/jpeg"}
    thinking = {"type": "thinking", "thinking": "hm", "thinkingSignature": "sig"}
    session(tmp_path, header(), user("u", None, 1, [{"type": "text", "text": "see"}, image]),
            answer("a", "u", 2, thinking, bash("c"), stopReason="aborted",
                   errorMessage="Request was aborted"),
            result("r", "a", 3, "c", "partly\n\nCommand aborted", isError=True),
            result("r2", "r", 4, "c", "again"), answer("a2", "r2", 5, bash("d")),
            result("r3", "a2", 6, "d", "x", content=[image]))  # fmt: skip
    draft = only(PiSource(), tmp_path / "sessions")
    assert draft.messages[0].parts[1].data == {
        "type": "file", "mediaType": "image/jpeg", "url": "data:image/jpeg;base64,QUJD",
    }  # fmt: skip
    aborted = draft.messages[1]
    assert aborted.metadata["backscroll"]["aborted_at"] == ms(2)
    assert aborted.parts[0].data["providerMetadata"] == {"pi": {"thinkingSignature": "sig"}}
    assert [part.type for part in aborted.parts] == ["reasoning", "tool-bash"]
    assert extra(call(draft, "c"))["status"] == "interrupted"
    assert call(draft, "d").data["output"][0]["type"] == "file"


def test_diffs_and_results_without_calls(tmp_path: Path) -> None:
    diff = "--- a\n+++ a\n@@ -1,2 +1,2 @@\n-x\n+y\n z\n"
    edit = {"type": "toolCall", "id": "e", "name": "edit", "arguments": {"path": "a"}}
    session(tmp_path, header(), answer("a", None, 1, edit),
            result("r", "a", 2, "e", "done", details={"diff": diff}),
            result("o", "r", 3, "nobody", "left over"))  # fmt: skip
    draft = only(PiSource(), tmp_path / "sessions")
    assert extra(call(draft, "e"))["structured"]["structuredPatch"][0]["lines"] == [
        "-x",
        "+y",
        " z",
    ]
    assert call(draft, "nobody").data["output"] == "left over"
    check_records(draft)


def test_version_one_is_a_line(tmp_path: Path) -> None:
    old = {"type": "session", "id": SID, "timestamp": at(0), "cwd": "/w", "provider": "p",
           "modelId": "m", "thinkingLevel": "high",
           "branchedFrom": f"/x/2026_{TOOLS}.jsonl"}  # fmt: skip
    rows: list[Any] = [old]
    for second, message in enumerate(
        ({"role": "user", "content": "one"}, {"role": "assistant", "content": []}), 1
    ):
        rows.append({"type": "message", "timestamp": at(second), "message": message})
    rows.append({"type": "compaction", "timestamp": at(3), "summary": "s",
                 "firstKeptEntryIndex": 1, "tokensBefore": 5})  # fmt: skip
    session(tmp_path, *rows)
    draft = only(PiSource(), tmp_path / "sessions")
    assert [m.source_id for m in draft.messages] == ["line-2", "line-3", "line-4"]
    assert len(visible(draft)) == 3
    assert draft.messages[2].parts[0].data["data"]["tail_start_id"] == "line-2"
    assert draft.model == {"provider_id": "p", "model_id": "m", "variant": "high"}
    assert draft.lineage is not None and draft.lineage.parent_source_id == TOOLS


def test_a_killed_run_and_damage(tmp_path: Path) -> None:
    path = session(tmp_path, header(), user("u", None, 1, "one"), answer("a", "u", 2, bash("c")))
    with path.open("ab") as file:
        file.write(b"{no json}\n" + json.dumps(user("u", "a", 3, "same id")).encode() + b"\n")
        file.write(b'{"type":"mess')
    drafts, problems = read_all(PiSource(), tmp_path / "sessions")
    draft = drafts[SID]
    assert call(draft, "c").tool_state == "input-available"
    assert [m.source_id for m in draft.messages] == ["u", "a", "line-5"]
    assert [problem.line for problem in problems] == [6, 4]


def test_other_files_are_left_alone(tmp_path: Path) -> None:
    path = session(tmp_path, header(), user("u", None, 1, "one"))
    (path.parent / "auth.json").mkdir()
    (path.parent / "empty.jsonl").write_text("")
    (path.parent / "other.jsonl").write_text('{"type":"other"}\n')
    drafts, problems = read_all(PiSource(), tmp_path / "sessions")
    assert list(drafts) == [SID]
    assert [Path(problem.path).name for problem in problems] == ["other.jsonl"]


def test_a_file_that_went_away_costs_itself(tmp_path: Path) -> None:
    path = session(tmp_path, header(), user("u", None, 1, "one"))
    source = PiSource()
    (unit,) = source.units(tmp_path / "sessions", [])
    path.unlink()
    reading = source.read(tmp_path / "sessions", unit)
    assert (reading.sessions, len(reading.problems)) == ([], 1)
    assert source.units_at(tmp_path / "sessions", [str(path)]) == []


@pytest.mark.parametrize("step", [None, 501])
def test_a_session_followed_is_a_session_read(tmp_path: Path, step: int | None) -> None:
    root = tmp_path / "sessions"
    shutil.copytree(DATA / "sessions", root)
    for path in sorted(root.rglob("*.jsonl")):
        grows_like_a_whole(PiSource, root, path, step=step)


def test_a_poll_reads_the_session_that_grew(tmp_path: Path) -> None:
    root = tmp_path / "sessions"
    shutil.copytree(DATA / "sessions", root)
    (path, *_) = sorted(root.rglob("*.jsonl"))
    found = PiSource().units_at(root, [str(path)])
    assert found is not None and [unit.key for unit in found] == [f"{path.parent.name}/{path.stem}"]
    folder = PiSource().units_at(root, [str(path.parent)])
    assert folder is not None and len(folder) == 3


def test_source_is_untouched(tmp_path: Path) -> None:
    before = snapshot(DATA)
    database = synced(PiSource(), DATA / "sessions", tmp_path / "store.db")
    spent = database.connection.execute(
        "SELECT sum(output) FROM (SELECT json_extract(metadata_json, '$.usage.output') AS output "
        "FROM chat_messages WHERE json_extract(metadata_json, '$.inherited_from') IS NULL)"
    ).fetchone()[0]
    database.close()
    assert spent == 60 + 25 + 40 + 15 + 12 + 12
    assert snapshot(DATA) == before
