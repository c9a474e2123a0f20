"""Each agent is told whose words a row holds, and reasoning never becomes an answer."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from store.engine.database import Database
from store.exports.reading import read_session
from store.exports.registry import writer
from store.queries.sessions import resolve
from store.resume.registry import AGENTS, plan
from store.sources.claude_code import ClaudeCodeSource
from store.sync.engine import Sync
from store.sync.settings import Settings
from store.sync.targets import Target
from tests.exports import claude_checker
from tests.exports.kimi_checker import have_used_kimi
from tests.store.talks import Talk, make_store

NOTICE = "<task-notification>\n<status>completed</status>\n</task-notification>"
IMAGE = {"type": "file", "mediaType": "image/png", "url": "data:image/png;base64,AAAA",
         "filename": "shot [1].png"}  # fmt: skip
THOUGHT = {"type": "reasoning", "text": "SECRET THOUGHT"}


@pytest.fixture
def talk(tmp_path: Path) -> Iterator[Talk]:
    database = make_store(tmp_path / "talk.db", "own")
    yield Talk(database)
    database.close()


def lines(db: Database, session: str, to: str) -> list[Any]:
    reading = read_session(db, session, "context")
    text = "".join(writer(to)(reading))
    if to == "openhands":
        text = "".join(reading.beside.values())
    documents = {"opencode": "messages", "continue": "history"}
    found: list[Any] = json.loads(text)[documents[to]] if to in documents else [
        json.loads(line) for line in text.splitlines()
    ]
    return found


def noticed(talk: Talk, origin: str, text: str = NOTICE) -> str:
    session = talk.session(workspace_root="/w")
    talk.message(session, "user", "one")
    talk.message(session, "assistant", "two")
    talk.message(session, "user", text, origin=origin)
    talk.message(session, "assistant", "three")
    return session


def claude_rows(tmp_path: Path, *rows: dict[str, Any]) -> Path:
    name = "11111111-2222-4333-8444-555555555555"
    folder = tmp_path / ".claude" / "projects" / "-w"
    folder.mkdir(parents=True)
    parent, written = None, []
    for number, row in enumerate(rows):
        line = {"sessionId": name, "cwd": "/w", "version": "2.1.332", "isSidechain": False,
                "userType": "external", "uuid": f"00000000-0000-4000-8000-{number:012}",
                "parentUuid": parent, "timestamp": f"2026-11-27T10:00:{number:02}.000Z", **row}
        parent = line["uuid"]
        written.append(json.dumps(line))
    (folder / f"{name}.jsonl").write_text("\n".join(written) + "\n")
    return tmp_path / ".claude"


def said(text: str) -> dict[str, Any]:
    return {"type": "assistant", "message": {
        "id": f"msg_{text}", "type": "message", "role": "assistant", "model": "claude-x",
        "content": [{"type": "text", "text": text}],
        "usage": {"input_tokens": 1, "output_tokens": 1}}}  # fmt: skip


@pytest.mark.parametrize("row", [
    {"type": "user", "origin": {"kind": "task-notification"},
     "message": {"role": "user", "content": NOTICE}},
    {"type": "user", "message": {"role": "user", "content": NOTICE}},
    {"type": "attachment", "attachment": {
        "type": "queued_command", "prompt": NOTICE, "commandMode": "task-notification",
        "origin": {"kind": "task-notification"}}},
], ids=["marked", "older", "queued"])  # fmt: skip
def test_a_notification_of_claude_code_is_no_input_of_the_user_again(
    talk: Talk, tmp_path: Path, row: dict[str, Any]
) -> None:
    asked = {"type": "user", "origin": {"kind": "human"},
             "message": {"role": "user", "content": "one"}}  # fmt: skip
    home = claude_rows(tmp_path, asked, said("two"), row, said("three"))
    Sync(talk.db, Settings(helpers=0)).run([Target(ClaudeCodeSource(), home)])
    session = resolve(talk.db, "11111111").id
    reading = read_session(talk.db, session, "context")
    text = "".join(writer("claude-code")(reading))
    made = claude_checker.check(text, reading.export_id)
    assert [line.get("origin") for line in made] == [
        None, None, {"kind": "task-notification"}, None,
    ]  # fmt: skip
    assert made[2]["message"]["content"] == NOTICE


@pytest.mark.parametrize("origin", ["meta", "notification"])
def test_what_another_agents_program_said_is_marked(talk: Talk, origin: str) -> None:
    session = noticed(talk, origin)
    mark = {"meta": ("isMeta", True), "notification": ("origin", {"kind": "task-notification"})}
    key, value = mark[origin]
    assert [line.get(key) for line in lines(talk.db, session, "claude-code")[:4]] == [
        None, None, value, None,
    ]  # fmt: skip
    wrapped = f"<not_from_user>\n{NOTICE}\n</not_from_user>"
    rollout = lines(talk.db, session, "codex")
    typed = [one["payload"]["message"] for one in rollout
             if one["payload"].get("type") == "user_message"]  # fmt: skip
    assert typed == ["one"] and wrapped in json.dumps(rollout).replace("\\n", "\n")
    gemini = lines(talk.db, session, "gemini")
    assert gemini[3]["content"] == [{"text": wrapped}]
    texts = [part for one in lines(talk.db, session, "opencode") for part in one["parts"]
             if part["type"] == "text"]  # fmt: skip
    assert [part.get("synthetic") for part in texts] == [None, None, True, None]
    (aside,) = (one for one in lines(talk.db, session, "pi") if one["type"] == "custom_message")
    assert aside["content"] == [{"type": "text", "text": wrapped}] and aside["display"] is False


@pytest.mark.parametrize("agent", AGENTS)
def test_it_is_never_handed_over_as_a_prompt(
    talk: Talk, agent: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    session = noticed(talk, "notification")
    talk.message(session, "user", NOTICE, origin="notification")
    have_used_kimi(tmp_path)
    made = plan(talk.db, resolve(talk.db, session), {}, tmp_path, agent)
    assert made.prompt is None and made.command == made.base


@pytest.mark.parametrize("agent", AGENTS)
def test_reasoning_is_left_out_or_sent_as_reasoning(talk: Talk, agent: str) -> None:
    session = talk.session(workspace_root="/w")
    talk.message(session, "user", "one")
    talk.message(session, "assistant", parts=[THOUGHT, {"type": "text", "text": "The answer"}])
    talk.message(session, "user", "two")
    talk.message(session, "assistant", parts=[THOUGHT])
    talk.message(session, "user", "three")
    talk.message(session, "assistant", "done")
    found = lines(talk.db, session, agent)
    where = {"gemini": "thoughts", "opencode": "reasoning", "qwen": '"thought": true',
             "kimi": '"type": "think"',
             "continue": '"reasoning":',
             "openhands": '"reasoning_content":'}.get(agent)  # fmt: skip
    for line in found:
        text = json.dumps(line)
        if "SECRET" in text:
            assert where is not None and where in text
            content = line.get("content", "")
            assert "SECRET" not in json.dumps(content)
            assert all("SECRET" not in json.dumps(part) for part in line.get("parts", ())
                       if part["type"] != "reasoning")  # fmt: skip
    assert "The answer" in json.dumps(found)


def test_an_image_is_between_its_tags_for_codex(talk: Talk) -> None:
    session = talk.session(workspace_root="/w")
    talk.message(session, "user", parts=[{"type": "text", "text": "look"}, IMAGE])
    talk.message(session, "assistant", "done")
    payloads = [line["payload"] for line in lines(talk.db, session, "codex")]
    assert payloads[1]["content"] == [
        {"type": "input_text", "text": "look"},
        {"type": "input_text", "text": "<image name=[shot  1 .png]>"},
        {"type": "input_image", "image_url": IMAGE["url"]},
        {"type": "input_text", "text": "</image>"},
    ]
    assert payloads[2] == {"type": "user_message", "message": "look", "images": [IMAGE["url"]]}


@pytest.mark.parametrize("text", ["/usr/bin/x crashes", "? why", "<session_context>\nx"])
def test_gemini_sends_a_prompt_that_begins_like_its_commands(talk: Talk, text: str) -> None:
    session = talk.session(workspace_root="/w")
    talk.message(session, "user", text)
    talk.message(session, "assistant", "done")
    assert lines(talk.db, session, "gemini")[1]["content"] == [
        {"text": f"<prompt>\n{text}\n</prompt>"},
    ]  # fmt: skip
