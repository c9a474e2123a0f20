"""mini-SWE-agent and SWE-agent: the samples come out exactly as their EXPECTED.json says."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path
from typing import Any

import pytest

from store.engine.database import open_database
from store.sources.base.drafts import SessionDraft
from store.sources.swe_agent import SweAgentSource
from store.sources.swe_agent.mini import task_in
from store.sync.engine import Sync
from store.sync.settings import Settings
from store.sync.targets import Target
from tests.sources import grown
from tests.sources.samples import DATA
from tests.sources.watched import reading

SAMPLE = DATA / "swe-agent"
EXPECTED = json.loads((SAMPLE / "EXPECTED.json").read_text())
READ, PROBLEMS = grown.read_all(SweAgentSource(), SAMPLE)
DRAFTS = {os.path.basename(one.path): one for one in READ.values()}
ALL = [pytest.param(DRAFTS[one["file"]], one, id=one["file"]) for one in EXPECTED["sessions"]]
MINI = [pytest.param(DRAFTS[one["file"]], one, id=one["file"])
        for one in EXPECTED["sessions"] if "mini" in one["format"]]  # fmt: skip
STEPS = [pytest.param(DRAFTS[one["file"]], one, id=one["file"])
         for one in EXPECTED["sessions"] if one["format"] == "swe-agent"]  # fmt: skip
QUIET = ("system prompt", "exit", "instructions")


def calls(draft: SessionDraft) -> list[dict[str, Any]]:
    found = []
    for one in draft.messages:
        for part in grown.calls([one]):
            extra = part.data.get("resultProviderMetadata", {}).get("backscroll", {})
            status = "submit" if extra.get("submitted") else extra.get("status", "no result")
            own = str(part.tool_call_id).startswith(f"{one.source_id}:")
            call = {"id": None if own else part.tool_call_id,
                    "name": part.type.removeprefix("tool-"), "status": status}  # fmt: skip
            code = extra.get("returncode", extra.get("exit_code"))
            found.append(call | ({"exit_code": code} if code is not None else {}))
    return found


def notes(draft: SessionDraft) -> list[dict[str, Any]]:
    return [
        {"kind": part.data["data"]["name"], "text": part.data["data"]["details"]["text"]}
        for one in draft.messages if one.role == "system" for part in one.parts
        if part.data["data"]["name"] not in QUIET
    ]


def test_just_the_sessions_expected() -> None:
    assert PROBLEMS == []
    assert DRAFTS.keys() == {one["file"] for one in EXPECTED["sessions"]}


@pytest.mark.parametrize(("draft", "expected"), ALL)
def test_session_row(draft: SessionDraft, expected: dict[str, Any]) -> None:
    extra = draft.metadata["backscroll"]
    assert extra["format"] == expected["format"]
    assert draft.title == expected["task"]
    assert grown.prompts(draft.messages) == [expected["task"]]
    assert extra["exit_status"] == expected["exit_status"]
    assert extra["submission"] == expected["submission"]
    assert extra["api_calls"] == expected["api_calls"]
    models = {"{provider_id}/{model_id}".format(**one.metadata["model"])
              for one in draft.messages if "model" in one.metadata}  # fmt: skip
    assert [*models] == expected["models"]
    assert grown.tokens(draft.messages) == expected["tokens"]
    costs = sum(one.metadata.get("cost_usd", 0.0) for one in draft.messages)
    assert costs == expected.get("cost", 0.0)
    state = draft.metadata.get("activity", {}).get("state")
    ended_well = expected["exit_status"].lower() == "submitted"
    assert state == (None if ended_well else "error")
    grown.check_records(draft)


@pytest.mark.parametrize(("draft", "expected"), MINI)
def test_a_run_of_mini(draft: SessionDraft, expected: dict[str, Any]) -> None:
    assert expected["prompts"] == grown.prompts(draft.messages)
    assert draft.workspace_root == expected["workspace"]
    if expected["created_ms"] is not None:
        assert (draft.created_at, draft.updated_at) == (
            expected["created_ms"], expected["updated_ms"])
    else:
        # Only the API's own word says when its answers were made.
        assert draft.created_at == draft.updated_at == 1_795_863_468_000
    answers = [one for one in draft.messages if one.role == "assistant" and one.parts]
    assert len(answers) == expected["assistant_messages"]
    assert calls(draft) == expected["tool_calls"]
    told = [{**one, "text": one["text"][:len(other["text"])]}
            for one, other in zip(notes(draft), expected["notes"], strict=True)]  # fmt: skip
    assert told == expected["notes"]
    counted = [one for one in draft.messages if "usage" in one.metadata]
    assert len(counted) == expected["requests_with_usage"]


@pytest.mark.parametrize(("draft", "expected"), STEPS)
def test_a_run_of_swe_agent(draft: SessionDraft, expected: dict[str, Any]) -> None:
    answers = [one for one in draft.messages if one.role == "assistant" and one.parts]
    assert len(answers) == expected["steps"]
    assert [grown.words(one) for one in answers] == expected["thoughts"]
    assert calls(draft) == expected["tool_calls"]
    assert draft.workspace_root == "/testbed"
    assert "demo" not in repr(draft.messages)
    assert not [one for one in draft.records if b'"query"' in one]


def test_the_failed_answer_is_in_its_note() -> None:
    first = next(one for one in DRAFTS["format-errors.traj.json"].messages
                 if one.role == "system" and "answer" in repr(one.parts))  # fmt: skip
    assert first.parts[0].data["data"]["details"]["answer"] == "No tool here."


# --- trajectories made by hand --------------------------------------------------------------


def mini(*messages: dict[str, Any], template: str = "{{task}}", format_: str = "1.1",
         **info: Any) -> dict[str, Any]:  # fmt: skip
    config = {"agent": {"instance_template": template}, "model": {"model_name": "p/m"},
              "environment": {"cwd": "/testbed", "env": {"KEY": "sk-secret"}}}
    return {"trajectory_format": f"mini-swe-agent-{format_}", "messages": list(messages),
            "info": {"config": config, "exit_status": "Submitted", **info}}


def user(content: str, **more: Any) -> dict[str, Any]:
    return {"role": "user", "content": content, **more}


def answer(content: str, at: float, command: str | None = None, **usage: Any) -> dict[str, Any]:
    extra = {"timestamp": at, "response": {"usage": usage}, "cost": 0.25}
    made: dict[str, Any] = {"role": "assistant", "content": content, "extra": extra}
    if command is not None:
        made["tool_calls"] = [{"id": "c", "function": {
            "name": "bash", "arguments": json.dumps({"command": command})}}]
    return made


def tool(code: int, **extra: Any) -> dict[str, Any]:
    return {"role": "tool", "tool_call_id": "c", "content": "not JSON {",
            "extra": {"returncode": code, "raw_output": "out", **extra}}


def write(path: Path, data: object) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(data))
    return path


def only(root: Path) -> SessionDraft:
    return grown.only(SweAgentSource(), root)


def test_the_environment_may_hold_secrets_and_is_not_kept(tmp_path: Path) -> None:
    write(tmp_path / "a.traj.json", mini(user("go"), answer("ok", 1_795_863_461.5)))
    draft = only(tmp_path)
    assert draft.workspace_root == "/testbed" and "sk-secret" not in repr(draft)
    assert draft.created_at == 1_795_863_461_500
    assert draft.messages[1].metadata["cost_usd"] == 0.25


def test_a_run_that_goes_on(tmp_path: Path) -> None:
    write(tmp_path / "a.traj.json", mini(
        user("go"), answer("x", 1_795_863_461.0, "ls"), exit_status=""))  # fmt: skip
    draft = only(tmp_path)
    assert draft.metadata["activity"]["state"] == "running"
    assert calls(draft)[0]["status"] == "no result"


def test_the_raw_output_counts_and_what_went_wrong(tmp_path: Path) -> None:
    write(tmp_path / "a.traj.json", mini(
        user("go"), answer("x", 1_795_863_461.0, "ls"), tool(0), {**tool(-1), "tool_call_id": "d"}))
    draft = only(tmp_path)
    assert grown.call(draft, "c").data["output"] == "out"
    assert grown.call(draft, "d").tool_state == "output-error"
    write(tmp_path / "a.traj.json", mini(
        user("go"), answer("x", 1_795_863_461.0, "sleep"), tool(-1, exception_info="timed out")))
    assert grown.call(only(tmp_path), "c").data["errorText"] == "timed out"


@pytest.mark.parametrize(("after", "status"), [
    ({"role": "exit", "content": "", "extra": {}}, "interrupted"),
    (user("no", extra={"interrupt_type": "UserRejection"}), "denied"),
])  # fmt: skip
def test_what_was_not_run(tmp_path: Path, after: dict[str, Any], status: str) -> None:
    write(tmp_path / "a.traj.json", mini(
        user("go"), answer("x", 1_795_863_461.0, "ls"),
        tool(-1, exception_info="action was not executed"), after))  # fmt: skip
    assert [one["status"] for one in calls(only(tmp_path))] == [status]


def test_a_rejection_is_of_all_calls_of_an_answer(tmp_path: Path) -> None:
    both = answer("x", 1_795_863_461.0, "ls")
    both["tool_calls"].append({"id": "d", "function": {"name": "bash", "arguments": "{}"}})
    not_run = tool(-1, exception_info="action was not executed")
    write(tmp_path / "a.traj.json", mini(
        user("go"), both, not_run, {**not_run, "tool_call_id": "d"},
        user("no", extra={"interrupt_type": "UserRejection"})))  # fmt: skip
    assert [one["status"] for one in calls(only(tmp_path))] == ["denied", "denied"]


def test_usage_of_both_apis(tmp_path: Path) -> None:
    write(tmp_path / "a.traj.json", mini(
        user("go"),
        answer("x", 1_795_863_461.0, prompt_tokens=100, completion_tokens=20,
               prompt_tokens_details={"cached_tokens": 60}, cache_creation_input_tokens=10),
        answer("y", 1_795_863_462.0, input_tokens=50, output_tokens=9,
               input_tokens_details={"cached_tokens": 20},
               output_tokens_details={"reasoning_tokens": 4})))  # fmt: skip
    assert grown.tokens(only(tmp_path).messages) == {
        "input": 60, "output": 25, "reasoning": 4, "cache_read": 80, "cache_write": 10}


def test_a_trajectory_of_version_1(tmp_path: Path) -> None:
    at = {"timestamp": 1_795_863_461.0}
    write(tmp_path / "a.traj.json", mini(
        user("go", **at),
        {"role": "assistant", "content": "THOUGHT: look\n\n```bash\nls\n```", **at},
        user("<returncode>2</returncode>\n<output>\nbad\n</output>", **at),
        {"role": "assistant", "content": "no command", **at},
        user("Please always provide EXACTLY ONE action", **at),
        {"role": "assistant", "content": "end\n```bash\necho COMPLETE\n```", **at},
        user("the patch", **at), format_="1", mini_version="1.17.3"))  # fmt: skip
    draft = only(tmp_path)
    assert grown.prompts(draft.messages) == ["go"]
    assert [(one["status"], one.get("exit_code")) for one in calls(draft)] == [
        ("error", 2), ("submit", None)]
    assert grown.calls(draft.messages)[0].data["errorText"] == "bad"
    assert grown.words(draft.messages[1]) == "THOUGHT: look"
    assert [one.role for one in draft.messages] == [
        "user", "assistant", "assistant", "system", "assistant", "system"]


@pytest.mark.parametrize(("text", "template", "task"), [
    ("Solve: fix it\n\nRules", "Solve: {{task}}\n\nRules\n", "fix it"),
    ("Solve: fix it\n\nOn Linux. Rules", "Solve: {{ task }}\n\nOn {{system}}. Rules", "fix it"),
    ("{% a %}".join(("", "Do x")), "{% if a %}Do {{task}}{% endif %}", "x"),
    ("fix it", "{{task}}", "fix it"), ("other words", "Solve: {{task}} now", "other words"),
    ("no template", "", "no template"),
])  # fmt: skip
def test_the_task_in_the_words_that_the_model_got(text: str, template: str, task: str) -> None:
    assert task_in(text, template) == task


def test_each_run_of_an_overwritten_file_is_a_session(tmp_path: Path) -> None:
    path = write(tmp_path / "runs" / "last_mini_run.traj.json",
                 mini(user("first"), answer("x", 1_795_863_461.0)))
    database = open_database(tmp_path / "library.db", create=True)

    def titles() -> list[str]:
        Sync(database, Settings(helpers=0)).run([Target(SweAgentSource(), path.parent)])
        return [title for (title,) in database.connection.execute(
            "SELECT json_extract(metadata_json, '$.title') FROM chat_sessions"
            " ORDER BY created_at")]  # fmt: skip

    assert titles() == ["first"]
    write(path, mini(user("first"), answer("x", 1_795_863_461.0), answer("y", 1_795_863_462.0)))
    assert titles() == ["first"]
    write(path, mini(user("second"), answer("x", 1_795_863_500.0)))
    assert titles() == ["first", "second"]
    database.close()


def test_a_half_written_file_waits(tmp_path: Path) -> None:
    path = write(tmp_path / "a.traj.json", mini(user("go"), answer("x", 1_795_863_461.0)))
    body = path.read_text()
    source = SweAgentSource()
    (unit,) = source.units(tmp_path, [])
    follower = source.follower(tmp_path, unit)
    assert follower.read(unit).sessions
    path.write_text(body[:100])
    (unit,) = source.units_at(tmp_path, [str(path)]) or []
    torn = follower.read(unit)
    assert torn.sessions == [] and len(torn.problems) == 1
    path.write_text(body)
    (unit,) = source.units_at(tmp_path, [str(path)]) or []
    assert follower.read(unit).sessions


def step(action: str, **more: Any) -> dict[str, Any]:
    return {"action": action, "observation": "seen", "thought": "hm", "query": ["long"], **more}


def test_older_and_repeated_runs_of_swe_agent(tmp_path: Path) -> None:
    write(tmp_path / "u" / "e" / "i" / "i.traj", {
        "attempts": [
            {"trajectory": [step("ls\n", state='{"working_dir": "/r"}', messages=["old"])]},
            {"trajectory": [step("", response="just talk", thought=""), step("submit")]},
        ],
        "history": [{"role": "user", "content": "demo", "is_demo": True},
                    {"role": "user", "content": "Fix it"}],
        "info": {"exit_status": "submitted (exit_cost)", "model_stats": {
            "tokens_sent": 9, "tokens_received": 2, "instance_cost": 0.5}}})  # fmt: skip
    draft = only(tmp_path)
    assert (draft.title, draft.workspace_root) == ("Fix it", "/r")
    assert [one["name"] for one in calls(draft)] == ["ls", "submit"]
    assert "activity" not in draft.metadata
    assert grown.tokens(draft.messages)["input"] == 9
    assert draft.messages[-1].metadata["cost_usd"] == 0.5
    assert not [one for one in draft.records if b"long" in one or b"old" in one or b"demo" in one]


def test_where_it_looks_and_what_it_leaves_alone(tmp_path: Path) -> None:
    home = Path("/home/mira")
    assert SweAgentSource().default_roots({}, home) == [home / ".config/mini-swe-agent"]
    moved = {"MSWEA_GLOBAL_CONFIG_DIR": "/m"}
    assert SweAgentSource().default_roots(moved, home) == [Path("/m")]
    root = tmp_path / ".config" / "mini-swe-agent"
    shutil.copytree(SAMPLE, root)
    (root / ".env").write_text("KEY=secret")
    (root / "interactive_history.txt").write_text("typed")
    found = reading(Target(SweAgentSource(), root))
    assert not found.names() & {".env", "interactive_history.txt"}
    assert SweAgentSource().recognise(tmp_path / ".config") == root.parent
    one = root / "handmade.traj"
    assert SweAgentSource().recognise(one) == one
    other = write(tmp_path / "other.traj.json", {"messages": []})
    assert SweAgentSource().recognise(other) is None
