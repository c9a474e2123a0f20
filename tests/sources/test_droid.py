"""Factory Droid: the genuine sample comes out exactly as its EXPECTED.json says."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from store.sources.base.drafts import MessageDraft, PartDraft, SessionDraft
from store.sources.droid import DroidSource
from tests.sources import grown
from tests.sources.samples import DATA

SAMPLE = DATA / "droid" / "sessions"
EXPECTED = json.loads((DATA / "droid" / "EXPECTED.json").read_text())
DRAFTS, PROBLEMS = grown.read_all(DroidSource(), SAMPLE)
SESSIONS = [pytest.param(DRAFTS[one["id"]], one, id=one["id"][:8]) for one in EXPECTED["sessions"]]
FORK, FORKED = "d95f7bf8-4c00-43b5-a239-e78155ab07f3", "293b8a1d-2baa-436d-9795-9af21c70eeda"
COMPRESSED, TERMINAL = (
    "a91c2a02-8975-455c-a487-356ddbb18498", "121c4565-7f2a-46ea-9f2f-2ddb94cc54e4")
WORKER, CALLER = "9ceec997-4f4f-4458-9f52-8f3744d132a5", "a145e4e3-cbc3-476d-b0eb-493c61498ea7"
AT = "2026-11-28T10:40:00.000Z"


def prompts(messages: list[MessageDraft]) -> list[str]:
    return [
        "\n".join(part.data["text"] for part in one.parts if part.type == "text")
        for one in messages if one.metadata.get("origin") == "human"
    ]  # fmt: skip


def parts(draft: SessionDraft, kind: str) -> list[PartDraft]:
    return [part for one in draft.messages for part in one.parts if part.type == kind]


def texts(draft: SessionDraft, kind: str = "text") -> list[str]:
    return [part.data["text"] for one in draft.messages if one.role == "assistant"
            for part in one.parts if part.type == kind and part.data["text"]]  # fmt: skip


def calls(draft: SessionDraft) -> list[dict[str, Any]]:
    words = {"ok": "done"}
    found = []
    for part in (part for one in draft.messages for part in one.parts if part.tool_call_id):
        extra = part.data.get("resultProviderMetadata", {}).get("backscroll", {})
        status = extra.get("status", "no result")
        call = {"id": part.tool_call_id, "name": part.type.removeprefix("tool-"),
                "status": words.get(status, status)}  # fmt: skip
        if extra.get("exit_code"):
            call["exit_code"] = extra["exit_code"]
        found.append(call)
    return found


def tokens(draft: SessionDraft) -> dict[str, int]:
    found = dict.fromkeys(("input", "output", "reasoning", "cache_read", "cache_write"), 0)
    for one in draft.messages:
        for key, value in one.metadata.get("usage", {}).items():
            found[key] += value
    return found


def test_just_the_sessions_expected() -> None:
    assert PROBLEMS == []
    assert DRAFTS.keys() == {one["id"] for one in EXPECTED["sessions"]}


@pytest.mark.parametrize(("draft", "expected"), SESSIONS)
def test_session_row(draft: SessionDraft, expected: dict[str, Any]) -> None:
    assert draft.workspace_root == expected["workspace"]
    assert (draft.created_at, draft.updated_at) == (expected["created_ms"], expected["updated_ms"])
    assert (draft.archived_at is not None) == expected["archived"]
    assert draft.metadata["backscroll"].get("tags", []) == expected["tags"]
    assert draft.model is not None and draft.model["model_id"] == expected["settings_model"]
    if expected["title"] is None:
        assert draft.title_from in ("first-prompt", None)
    else:
        assert (draft.title, draft.title_from) == (expected["title"], expected["title_from"])


@pytest.mark.parametrize(("draft", "expected"), SESSIONS)
def test_what_was_said(draft: SessionDraft, expected: dict[str, Any]) -> None:
    assert prompts(draft.messages) == expected["prompts"]
    own = [one for one in draft.messages if one.inherited_from is None]
    assert prompts(own) == expected["own_prompts"]
    assert len(texts(draft)) == expected["assistant_texts"]
    assert len(texts(draft, "reasoning")) == expected["reasoning_texts"]
    assert len(parts(draft, "file")) == expected["images"]
    notices = [part.data["data"]["message"] for part in parts(draft, "data-error")]
    assert notices == expected["notices"]
    injected = [one for one in draft.messages
                if one.metadata.get("origin") in ("meta", "notification")]  # fmt: skip
    assert len(injected) == expected["hidden_llm_only"]
    models = [one.metadata["model"]["model_id"] for one in draft.messages
              if "model" in one.metadata and one.parts]  # fmt: skip
    assert list(dict.fromkeys(models)) == expected["models"]
    grown.check_records(draft)


@pytest.mark.parametrize(("draft", "expected"), SESSIONS)
def test_calls_and_compaction(draft: SessionDraft, expected: dict[str, Any]) -> None:
    assert calls(draft) == expected["tool_calls"]
    summaries = [part.data["data"]["summary"] for part in parts(draft, "data-compaction")]
    assert summaries == ([] if expected["compaction"] is None else [expected["compaction"]])


@pytest.mark.parametrize(("draft", "expected"), SESSIONS)
def test_tokens_are_the_sessions_own(draft: SessionDraft, expected: dict[str, Any]) -> None:
    assert tokens(draft) == expected["tokens"]


@pytest.mark.parametrize(("draft", "expected"), SESSIONS)
def test_lineage(draft: SessionDraft, expected: dict[str, Any]) -> None:
    told = expected["lineage"]
    if told is None:
        assert draft.lineage is None
        return
    assert draft.lineage is not None
    assert (draft.lineage.kind, draft.lineage.parent_source_id) == (told["kind"], told["parent"])
    assert draft.lineage.tool_call_id == told.get("tool_use")
    assert draft.lineage.parent_message_source_id == told.get("at")
    copied = [one for one in draft.messages if one.inherited_from is not None]
    # A line with results alone is in the drafts of their calls.
    lines = {number for one in copied for part in one.parts for number in part.records}
    assert len(lines) == told.get("copied_messages", 0)


def test_how_each_session_ended() -> None:
    states = {one["id"][:8]: DRAFTS[one["id"]].metadata.get("activity", {}).get("state")
              for one in EXPECTED["sessions"]}  # fmt: skip
    assert states == {
        "121c4565": None, "293b8a1d": None, "3a99e3dd": None, "51b2684f": None, "9ceec997": None,
        "a145e4e3": None, "a91c2a02": None, "d73cf15d": "error", "d95f7bf8": None,
        "e356ac97": None, "554fb080": "running", "65f7d212": None, "6cd4c21b": "running",
    }


def test_the_call_of_a_helper_names_its_session() -> None:
    (call,) = parts(DRAFTS[CALLER], "tool-Task")
    extra = call.data["resultProviderMetadata"]["backscroll"]
    assert extra["child_session_source_id"] == WORKER


# --- hand-made files ------------------------------------------------------------------------


def line(kind: str, name: str | None = None, **more: Any) -> bytes:
    data = {"type": kind} | ({"id": name} if name else {}) | {"timestamp": AT} | more
    return json.dumps(data).encode() + b"\n"


def said(name: str, role: str, *blocks: dict[str, Any] | str, **more: Any) -> bytes:
    content = [{"type": "text", "text": one} if isinstance(one, str) else one for one in blocks]
    return line("message", name, message={"role": role, "content": content} | more)


def made(folder: Path, name: str, *lines: bytes, start: dict[str, Any] | None = None,
         settings: dict[str, Any] | None = None) -> None:  # fmt: skip
    folder.mkdir(parents=True, exist_ok=True)
    header = json.dumps({"type": "session_start", "id": name, "cwd": "/w", "title": "New Session",
                         "version": 2} | (start or {})).encode()  # fmt: skip
    (folder / f"{name}.jsonl").write_bytes(header + b"\n" + b"".join(lines))
    if settings is not None:
        (folder / f"{name}.settings.json").write_text(json.dumps(settings))


def read(root: Path) -> dict[str, SessionDraft]:
    drafts, problems = grown.read_all(DroidSource(), root)
    assert problems == []
    return drafts


def result(call: str, text: str, failed: bool = False) -> dict[str, Any]:
    return {"type": "tool_result", "tool_use_id": call, "is_error": failed, "content": text}


def test_words_beside_a_result_and_a_reminder_of_an_older_version(tmp_path: Path) -> None:
    reminder = "<system-reminder>\nToday is Friday\n</system-reminder>"
    made(tmp_path / "p", "one",
         said("m1", "user", reminder, "find it"),
         said("m2", "assistant", {"type": "tool_use", "id": "c", "name": "Read", "input": {}}),
         said("m3", "user", result("c", "text"), "and quickly"),
         line("message", "m4", message={"role": "user", "content": "a plain string"}))
    draft = read(tmp_path)["one"]
    assert prompts(draft.messages) == ["find it", "and quickly", "a plain string"]
    assert draft.title == "find it"
    assert [one.source_id for one in draft.messages] == ["m1:context", "m1", "m2", "m3:said", "m4"]
    assert calls(draft) == [{"id": "c", "name": "Read", "status": "done"}]


def test_a_line_that_was_written_twice_is_one_message(tmp_path: Path) -> None:
    asked, answer = said("m1", "user", "go"), said("m2", "assistant", "yes")
    made(tmp_path, "one", asked, asked, answer, answer, said("m3", "user", "go"))
    draft = read(tmp_path)["one"]
    assert [one.source_id for one in draft.messages] == ["m1", "m2", "m3"]
    grown.check_records(draft)


def test_a_refused_call_is_denied(tmp_path: Path) -> None:
    made(tmp_path, "one",
         said("m2", "assistant", {"type": "tool_use", "id": "c", "name": "Execute", "input": {}}),
         said("m3", "user", result("c", "Tool execution cancelled by user", failed=True)))
    (call,) = parts(read(tmp_path)["one"], "tool-Execute")
    assert (call.tool_state, call.data["approval"]["approved"]) == ("output-denied", False)


def test_a_result_before_its_call_and_one_without(tmp_path: Path) -> None:
    made(tmp_path, "one",
         said("m1", "user", result("c", "early"), result("lost", "nobody asked")),
         said("m2", "assistant", {"type": "tool_use", "id": "c", "name": "LS", "input": {"a": 1}}))
    draft = read(tmp_path)["one"]
    assert [(one["id"], one["name"], one["status"]) for one in calls(draft)] == [
        ("lost", "unknown", "done"), ("c", "LS", "done")]
    (call,) = parts(draft, "tool-LS")
    assert (call.data["input"], call.data["output"]) == ({"a": 1}, "early")


def test_a_side_question_is_under_its_parent_without_its_copies(tmp_path: Path) -> None:
    first = said("m1", "user", "the prompt"), said("m2", "assistant", "the answer")
    made(tmp_path / "-w", "parent", *first)
    made(tmp_path / "btw", "side", *first, said("m3", "user", "by the way"),
         start={"parent": "parent", "callingSessionId": "parent", "title": "/btw"})
    side = read(tmp_path)["side"]
    assert side.lineage is not None
    assert (side.lineage.kind, side.lineage.parent_source_id) == ("subagent", "parent")
    assert [one.inherited_from for one in side.messages] == ["m1", "m2", None]


def test_what_follows_a_compression_counts_what_it_spent_itself(tmp_path: Path) -> None:
    spent = {"inputTokens": 100, "outputTokens": 30, "thinkingTokens": 10, "cacheReadTokens": 5}
    more = {"inputTokens": 140, "outputTokens": 50, "thinkingTokens": 15, "cacheReadTokens": 5}
    made(tmp_path, "old", said("m1", "user", "begin"), settings={"tokenUsage": spent})
    made(tmp_path, "new", line("compaction_state", "s", summaryText="So far"),
         said("m2", "user", "go on"), start={"parent": "old"}, settings={"tokenUsage": more})
    drafts = read(tmp_path)
    assert drafts["new"].lineage is not None and drafts["new"].lineage.kind == "continuation"
    assert tokens(drafts["new"]) == {
        "input": 40, "output": 15, "reasoning": 5, "cache_read": 0, "cache_write": 0}


def test_a_title_that_comes_later_is_read_again(tmp_path: Path) -> None:
    root = tmp_path / "sessions"
    shutil.copytree(SAMPLE / "-home-mira-code-api", root / "p")
    source = DroidSource()
    (unit,) = (one for one in source.units(root, []) if one.key.endswith(TERMINAL))
    follower = source.follower(root, unit)
    assert follower.read(unit).sessions[0].title == "Terminal talk"
    path = root / "p" / f"{TERMINAL}.jsonl"
    path.write_bytes(path.read_bytes().replace(b"Terminal talk", b"A longer, better title"))
    (unit,) = (one for one in source.units(root, []) if one.key.endswith(TERMINAL))
    draft = follower.read(unit).sessions[0]
    assert draft.title == "A longer, better title"
    assert [one.source_id for one in draft.messages] == [
        one.source_id for one in DRAFTS[TERMINAL].messages]


@pytest.mark.parametrize("body", [b"", b"{", b"[]", b'{"tokenUsage": 3}', b"\xff\xfe"])
def test_damaged_settings_cost_themselves(tmp_path: Path, body: bytes) -> None:
    made(tmp_path, "one", said("m1", "user", "hello"), settings={})
    (tmp_path / "one.settings.json").write_bytes(body)
    drafts, problems = grown.read_all(DroidSource(), tmp_path)
    assert prompts(drafts["one"].messages) == ["hello"]
    assert [problem.path for problem in problems] == (
        [] if body in (b"[]", b'{"tokenUsage": 3}') else [str(tmp_path / "one.settings.json")])


def test_accounts_and_keys_are_never_opened(tmp_path: Path) -> None:
    home = tmp_path / ".factory"
    shutil.copytree(SAMPLE, home / "sessions")
    for name in ("auth.json", "settings.json", "config.json", "mcp.json"):
        (home / name).write_text("{}")
        (home / name).chmod(0)
    source = DroidSource()
    root = source.recognise(home)
    assert root == home / "sessions"
    stamps = [stamp.path for unit in source.units(root, []) for stamp in unit.stamps]
    assert all(path.startswith(str(home / "sessions")) for path in stamps)
    assert not [path for path in stamps if path.endswith(".bak")]


def test_where_it_looks(tmp_path: Path) -> None:
    home = Path("/home/mira")
    assert DroidSource().default_roots({}, home) == [home / ".factory/sessions"]
    moved = DroidSource().default_roots({"FACTORY_HOME_OVERRIDE": str(tmp_path)}, home)
    assert moved == [tmp_path / ".factory/sessions", home / ".factory/sessions"]
