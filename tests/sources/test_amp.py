"""Amp: the genuine sample comes out exactly as its EXPECTED.json says."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path
from typing import Any

import pytest

from store.sources.amp import AmpSource
from store.sources.base.drafts import MessageDraft, PartDraft, SessionDraft
from tests.sources import grown
from tests.sources.samples import DATA

SAMPLE = DATA / "amp" / "threads"
EXPECTED = json.loads((DATA / "amp" / "EXPECTED.json").read_text())
THREADS = EXPECTED.get("sessions") or EXPECTED["threads"]
DRAFTS, PROBLEMS = grown.read_all(AmpSource(), SAMPLE)
SESSIONS = [pytest.param(DRAFTS[one["id"]], one, id=one["id"][11:15]) for one in THREADS]
KEYS = ("input", "output", "reasoning", "cache_read", "cache_write")
AT = 1_795_900_000_000


def prompts(draft: SessionDraft) -> list[str]:
    return ["\n".join(part.data["text"] for part in one.parts if part.type == "text")
            for one in draft.messages if one.metadata.get("origin") == "human"]  # fmt: skip


def texts(draft: SessionDraft, kind: str) -> int:
    return sum(part.type == kind and bool(part.data["text"]) for one in draft.messages
               if one.role == "assistant" for part in one.parts)  # fmt: skip


def all_calls(draft: SessionDraft) -> list[PartDraft]:
    return [part for one in draft.messages for part in one.parts if part.tool_call_id]


def calls(draft: SessionDraft) -> list[dict[str, Any]]:
    found = []
    for part in all_calls(draft):
        extra = part.data.get("resultProviderMetadata", {}).get("backscroll", {})
        status = {"ok": "done"}.get(extra.get("status"), extra.get("status", "interrupted"))
        call = {"id": part.tool_call_id, "name": part.type.removeprefix("tool-"), "status": status}
        if extra.get("exit_code"):
            call["exit_code"] = extra["exit_code"]
        if "child_session_source_id" in extra:
            call["child"] = extra["child_session_source_id"]
        found.append(call)
    return found


def tokens(messages: list[MessageDraft]) -> dict[str, int] | None:
    used = [one.metadata["usage"] for one in messages if "usage" in one.metadata]
    return {key: sum(usage[key] for usage in used) for key in KEYS} if used else None


def test_just_the_threads_expected() -> None:
    assert PROBLEMS == []
    assert DRAFTS.keys() == {one["id"] for one in THREADS}


@pytest.mark.parametrize(("draft", "expected"), SESSIONS)
def test_session_row(draft: SessionDraft, expected: dict[str, Any]) -> None:
    assert (draft.title, draft.title_from) == (expected["title"], expected["title_from"])
    assert draft.workspace_root == expected["workspace"]
    assert draft.metadata.get("git_branch") == expected["git_branch"]
    extra = draft.metadata["backscroll"]
    assert (extra["mode"], extra["client"]) == (expected["mode"], expected["client"])
    assert (draft.created_at, draft.updated_at) == (expected["created_ms"], expected["updated_ms"])


@pytest.mark.parametrize(("draft", "expected"), SESSIONS)
def test_what_was_said(draft: SessionDraft, expected: dict[str, Any]) -> None:
    assert prompts(draft) == expected["prompts"]
    assert texts(draft, "text") == expected["assistant_texts"]
    assert texts(draft, "reasoning") == expected["reasoning_texts"]
    assert sum(part.type == "file" for m in draft.messages for part in m.parts) == (
        expected["images"])
    models = [one.metadata["model"]["model_id"] for one in draft.messages
              if "model" in one.metadata]  # fmt: skip
    assert list(dict.fromkeys(models)) == expected["models"]
    assert len(draft.records) == expected["messages"] + 1
    grown.check_records(draft)


@pytest.mark.parametrize(("draft", "expected"), SESSIONS)
def test_calls(draft: SessionDraft, expected: dict[str, Any]) -> None:
    assert calls(draft) == expected["tool_calls"]


@pytest.mark.parametrize(("draft", "expected"), SESSIONS)
def test_tokens_are_counted_without_copies(draft: SessionDraft, expected: dict[str, Any]) -> None:
    own = [one for one in draft.messages if one.inherited_from is None]
    assert tokens(own) == expected["tokens"]
    naive = tokens(draft.messages) or dict.fromkeys(KEYS, 0)
    assert naive == expected["tokens_naive_with_copies"]


@pytest.mark.parametrize(("draft", "expected"), SESSIONS)
def test_lineage(draft: SessionDraft, expected: dict[str, Any]) -> None:
    told = expected["lineage"]
    if told is None:
        assert draft.lineage is None
        return
    assert draft.lineage is not None
    assert (draft.lineage.kind, draft.lineage.parent_source_id) == (told["kind"], told["parent"])
    parent = {one.source_id: one for one in DRAFTS[told["parent"]].messages}
    copied = [one for one in draft.messages if one.inherited_from is not None]
    for one in copied:
        original = parent[str(one.inherited_from)]
        assert [part.data for part in one.parts] == [part.data for part in original.parts]
    records = {number for one in copied for part in one.parts for number in part.records}
    assert len(records) == told.get("copied_messages", 0)


def test_how_each_thread_ended() -> None:
    states = {one["id"][11:15]: DRAFTS[one["id"]].metadata.get("activity", {}).get("state")
              for one in THREADS}  # fmt: skip
    assert states == {
        "1c6e": None, "2ac7": None, "556d": None, "5c4a": None, "6c99": None, "6d8a": None,
        "747f": None, "7c3b": "running", "8e0d": None, "97d3": None, "9e4e": "running",
        "e195": "running",
    }


def test_output_so_far_is_preliminary() -> None:
    (call,) = (part for one in DRAFTS.values() for part in all_calls(one)
               if part.data.get("preliminary"))  # fmt: skip
    assert call.data["output"] == "tick 1\ntick 2\ntick 3\ntick 4\n"
    assert "status" not in call.data["resultProviderMetadata"]["backscroll"]


def test_an_edit_has_its_hunks_and_a_diff_without_its_fence() -> None:
    call = next(part for one in DRAFTS.values() for part in all_calls(one)
                if part.type == "tool-edit_file")  # fmt: skip
    (hunk,) = call.data["resultProviderMetadata"]["backscroll"]["structured"]["structuredPatch"]
    assert hunk["lines"] == ["-alpha", "+ALPHA"]
    assert call.data["output"].startswith("Index: ") and "```" not in call.data["output"]


# --- hand-made threads ----------------------------------------------------------------------


def thread(folder: Path, *messages: dict[str, Any], name: str = "T-one", **more: Any) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{name}.json"
    path.write_text(json.dumps({"id": name, "created": AT, "v": 1, "messages": messages} | more))
    return path


def user(*blocks: dict[str, Any] | str, **more: Any) -> dict[str, Any]:
    content = [{"type": "text", "text": one} if isinstance(one, str) else one for one in blocks]
    return {"role": "user", "content": content} | more


def read(folder: Path) -> dict[str, SessionDraft]:
    drafts, problems = grown.read_all(AmpSource(), folder)
    assert problems == []
    return drafts


@pytest.mark.parametrize(
    ("run", "state", "status"),
    [
        ({"status": "cancelled"}, "output-error", "interrupted"),
        ({"status": "rejected-by-user", "reason": "no"}, "output-denied", "denied"),
        ({"status": "error", "error": {"message": "This tool call was rejected by the user with"
                                       " feedback: no"}}, "output-denied", "denied"),
        ({"status": "error", "error": "it broke"}, "output-error", "error"),
        ({"status": "something new"}, "output-error", "error"),
        ({"status": "done", "result": {"output": "x", "exitCode": 1}}, "output-available", "ok"),
        ({"status": "in-progress", "progress": {}}, "input-available", None),
    ],
)
def test_states_of_calls(
    tmp_path: Path, run: dict[str, Any], state: str, status: str | None
) -> None:
    thread(tmp_path, user("go"),
           {"role": "assistant", "content": [{"type": "tool_use", "id": "c", "name": "Bash",
                                              "input": {"cmd": "x"}}]},
           user({"type": "tool_result", "toolUseID": "c", "run": run}))
    (call,) = all_calls(read(tmp_path)["T-one"])
    extra = call.data["resultProviderMetadata"]["backscroll"]
    assert (call.tool_state, extra.get("status")) == (state, status)


def test_times_of_answers_from_march_on(tmp_path: Path) -> None:
    thread(tmp_path, user("go", meta={"sentAt": AT + 10}),
           {"role": "assistant", "content": [{"type": "text", "text": "yes"}],
            "usage": {"model": "m", "timestamp": "2026-11-30T00:00:00.500Z", "inputTokens": None,
                      "outputTokens": 3}})
    draft = read(tmp_path)["T-one"]
    answer = draft.messages[1]
    assert answer.created_at == draft.updated_at == 1_795_996_800_500
    assert answer.metadata["usage"] == {
        "input": 0, "output": 3, "reasoning": 0, "cache_read": 0, "cache_write": 0}


def test_a_half_written_thread_waits_and_the_copy_of_a_kill_is_ignored(tmp_path: Path) -> None:
    path = thread(tmp_path, user("first"))
    shutil.copy(path, tmp_path / "T-one.json.amptmp")
    source = AmpSource()
    (unit,) = source.units(tmp_path, [])
    follower = source.follower(tmp_path, unit)
    assert prompts(follower.read(unit).sessions[0]) == ["first"]
    whole = path.read_bytes()
    path.write_bytes(whole[:-9])
    (unit,) = source.units(tmp_path, [])
    reading = follower.read(unit)
    assert reading.sessions == [] and [one.path for one in reading.problems] == [str(path)]
    thread(tmp_path, user("first"), user("second"))
    os.utime(path, (AT / 1000, AT / 1000))
    (unit,) = source.units(tmp_path, [])
    assert prompts(follower.read(unit).sessions[0]) == ["first", "second"]


@pytest.mark.parametrize(("uri", "folder"), [
    ("file:///home/mira/my%20code/%E6%97%A5", "/home/mira/my code/日"),
    ("file:///C:/Users/mira/code", "C:/Users/mira/code"), ("https://x/y", None), (7, None),
    ("file://[", None),
])
def test_the_folder_of_a_uri(tmp_path: Path, uri: object, folder: str | None) -> None:
    thread(tmp_path, user("x"), env={"initial": {"trees": [{"uri": uri}]}})
    assert read(tmp_path)["T-one"].workspace_root == folder


def test_where_it_looks(tmp_path: Path) -> None:
    home = Path("/home/mira")
    assert AmpSource().default_roots({}, home) == [home / ".local/share/amp/threads"]
    named = AmpSource().default_roots({"XDG_DATA_HOME": str(tmp_path)}, home)
    assert named == [tmp_path / "amp/threads"]
    thread(tmp_path / "amp" / "threads", user("x"))
    (tmp_path / "amp" / "secrets.json").write_text("{}")
    for path in (tmp_path, tmp_path / "amp", tmp_path / "amp" / "threads"):
        assert AmpSource().recognise(path) == tmp_path / "amp" / "threads"
    assert AmpSource().recognise(tmp_path / "amp" / "secrets.json") is None
