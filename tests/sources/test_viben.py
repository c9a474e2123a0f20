"""viben's folders: all spellings, all types of lines, tasks, files, damage, growth.

Expected values: read off the sample by hand with the published description of the format.
"""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from store.language.query import parse
from store.queries.details import timeline
from store.queries.originals import attachment
from store.search.running import sessions_with_hits
from store.sources.base.drafts import PartDraft, SessionDraft
from store.sources.registry import all_sources
from store.sources.viben import VibenSource
from tests.sources import grown

DATA = Path(__file__).parent.parent / "data" / "viben"
ROOT = DATA / ".viben"
MIXED, SNAKE, CAMEL = "20260224153000_hello-world", "20260224160000_hello-world", "legacy/main"
START = 1771918200000
DRAFTS, PROBLEMS = grown.read_all(VibenSource(), ROOT)
UNSETTLED = {"type": "tool_use", "toolUseId": "t", "toolName": "Bash", "toolInput": {"c": 1}}


@pytest.fixture
def viben(tmp_path: Path) -> Path:
    root = tmp_path / "home" / ".viben"
    shutil.copytree(ROOT, root)
    return root


def new_session(
    root: Path, lines: list[dict[str, Any]], name: str = "20270101000000_x", **config: Any
) -> Path:
    folder = root / "agents" / "bot" / ".agent_sessions" / name
    folder.mkdir(parents=True)
    text = "".join(f"{key}: {json.dumps(value)}\n" for key, value in config.items())
    (folder / "config.yaml").write_text(text or 'id: "x"\n')
    rows = [{"id": f"m{n}", "timestamp": f"2027-01-01T00:00:{n:02}Z", **row}
            for n, row in enumerate(lines)]  # fmt: skip
    grown.write_lines(folder / "messages.ui.jsonl", rows)
    return folder


def only(root: Path, folder: Path) -> SessionDraft:
    source = VibenSource()
    (unit,) = source.units(folder, [])
    (draft,) = source.read(folder, unit).sessions
    return draft


def shapes(draft: SessionDraft) -> list[tuple[str, list[str]]]:
    return [(m.role, [p.type for p in m.parts]) for m in draft.messages]


def part(draft: SessionDraft, kind: str) -> PartDraft:
    (found,) = [p for m in draft.messages for p in m.parts if p.type == kind]
    return found


def test_all_three_spellings_name_the_same() -> None:
    assert DRAFTS.keys() == {MIXED, SNAKE, CAMEL}
    for draft in DRAFTS.values():
        assert (draft.title, draft.title_from) == ("Hello world", "prompt")
        assert (draft.workspace_root, draft.created_at) == ("/home/u/proj", START)
        grown.check_records(draft)
    agents = {name: draft.metadata["backscroll"]["agent_id"] for name, draft in DRAFTS.items()}
    assert agents == {MIXED: "personal-assistant", SNAKE: "个人助手", CAMEL: "legacy"}
    assert DRAFTS[SNAKE].metadata["backscroll"]["task_count"] == 3
    assert DRAFTS[MIXED].updated_at == START + 7000


def test_only_the_torn_line_is_a_problem() -> None:
    ((path, line),) = [(problem.path, problem.line) for problem in PROBLEMS]
    assert path.endswith("legacy/.agent_sessions/main/messages.rollout.jsonl") and line == 3


def test_every_type_of_line() -> None:
    assert shapes(DRAFTS[SNAKE]) == [
        ("user", ["text", "file"]),
        ("assistant", ["text", "tool-Read", "data-plan", "data-question", "data-error",
                       "data-result"]),
    ]  # fmt: skip
    draft = DRAFTS[SNAKE]
    assert part(draft, "file").data["url"] == "file:///tmp/a.png"
    read = part(draft, "tool-Read")
    assert (read.tool_state, read.data["errorText"]) == ("output-error", "x")
    assert grown.extra(read)["status"] == "error"
    plan = part(draft, "data-plan").data["data"]
    assert plan["goal"] == "g" and plan["items"] == [{"content": "d", "status": "in_progress"}]
    assert part(draft, "data-question").data["data"]["questions"][0]["multiSelect"] is True
    assert part(draft, "data-error").data["data"] == {"name": "E1", "message": "boom"}
    result = part(draft, "data-result").data["data"]
    assert result == {"subtype": "success", "cost": 0.0023, "duration": 12500}


def test_what_lines_lack_comes_from_the_agents_events() -> None:
    draft = DRAFTS[MIXED]
    question = part(draft, "data-question").data["data"]
    assert question["question"] == "Which?" and question["tool_use_id"] == "tu_2"
    assert part(draft, "data-error").data["data"]["message"] == "boom"
    assert part(draft, "data-result").data["data"]["cost"] == 0.0023
    assert len(part(draft, "data-error").records) == 2
    assert draft.metadata["backscroll"]["sdk_session_id"].startswith("a9483be8")
    read = part(draft, "tool-Read")
    assert read.data["input"] == {"file_path": "/tmp/test.txt"}
    assert read.data["output"].startswith("File content Ünïcödé")
    assert read.updated_at - read.created_at == 1000


def test_a_task_and_what_it_made(tmp_path: Path) -> None:
    draft = DRAFTS[MIXED]
    assert {m.metadata["backscroll"]["task_id"] for m in draft.messages} == {
        "task_1708771800000_abc123"
    }
    assert draft.metadata["activity"] == {"state": "idle", "from": "stored",
                                          "since": START + 12000}  # fmt: skip
    (task,) = draft.metadata["backscroll"]["tasks"]
    assert task["prompt"] == "Please write a Hello World"
    made = part(draft, "file")
    assert made.data["filename"] == "output.html" and made.data["mediaType"] == "text/html"
    database = grown.synced(VibenSource(), ROOT, tmp_path / "library.db")
    (session,) = database.connection.execute(
        "SELECT id FROM chat_sessions WHERE json_extract(metadata_json, '$.source.id') = ?",
        (MIXED,),
    ).fetchone()
    assert attachment(database, session, grown.extra(made)["attachment"]) == b"<h1>hi</h1>\n"


def test_favourites_are_stars_and_tasks_select_messages(viben: Path, tmp_path: Path) -> None:
    assert "is_starred" not in DRAFTS[MIXED].metadata["backscroll"]
    task = viben / "tasks" / "task_1708771800000_abc123.yaml"
    task.write_text(task.read_text().replace("favorite: false", "favorite: true"))
    db = grown.synced(VibenSource(), viben, tmp_path / "library.db")
    by_task = sessions_with_hits(db, parse("task:abc123 role:user", now=0), None)
    ids = [step for step in by_task if step is not None][-1].ids
    starred = db.connection.execute(
        f"SELECT s.id, {db.form.source_id('s')} FROM chat_sessions s WHERE {db.form.starred('s')}")
    (found, name), = starred.fetchall()
    assert name == MIXED and found in ids
    (turn,) = timeline(db, found).turns
    assert (turn.task, turn.favorite) == ("task_1708771800000_abc123", True)
    marked = db.connection.execute(
        "SELECT role FROM chat_messages WHERE session_id = ?"
        " AND json_extract(metadata_json, '$.backscroll.favorite')", (found,)).fetchall()
    assert marked == [("user",)]
    assert turn.task_number == 1
    for words in ("task:other", "channel:abc123", "-task:abc123 role:user id:" + found):
        steps = sessions_with_hits(db, parse(words, now=0), None)
        assert [step for step in steps if step is not None][-1].ids == set()


def test_cost_is_counted_once() -> None:
    for name in (MIXED, SNAKE):
        costs = [m.metadata.get("cost_usd") for m in DRAFTS[name].messages]
        assert costs == [None, 0.0023]


def test_a_tasks_own_cost_counts_where_no_line_tells_it(viben: Path) -> None:
    (viben / "tasks" / "t.yaml").write_text('sessionId: "20270101000000_x"\ncost: 0.5\n')
    folder = new_session(viben, [{"type": "user", "taskId": "t"}, {"type": "text", "taskId": "t"}])
    assert [m.metadata.get("cost_usd") for m in only(viben, folder).messages] == [None, 0.5]


def test_older_sessions_are_read_from_what_was_sent_to_the_agent() -> None:
    draft = DRAFTS[CAMEL]
    assert [(m.role, grown.words(m)) for m in draft.messages] == [
        ("user", "你好"), ("assistant", "你好！"),
    ]  # fmt: skip
    assert draft.metadata["activity"]["state"] == "ended"


def test_calls_of_the_older_lines_are_paired(viben: Path) -> None:
    folder = new_session(viben, [])
    grown.write_lines(folder / "messages.rollout.jsonl", [
        {"role": "user", "content": "go", "timestamp": "2027-01-01T00:00:00Z"},
        {"role": "assistant", "content": "on it", "timestamp": "2027-01-01T00:00:01Z",
         "toolCalls": [{"id": "a", "name": "Bash", "input": {"command": "ls"}}]},
        {"role": "tool", "content": "x", "timestamp": "2027-01-01T00:00:02Z",
         "toolResult": {"toolUseId": "a", "output": "x", "isError": False}},
    ])  # fmt: skip
    draft = only(viben, folder)
    assert shapes(draft) == [("user", ["text"]), ("assistant", ["text", "tool-Bash"])]
    assert part(draft, "tool-Bash").data["output"] == "x"


def test_tasks_beside_one_another_are_turns_of_their_own(viben: Path) -> None:
    folder = new_session(viben, [
        {"type": "user", "taskId": "a", "content": "one"},
        {"type": "user", "taskId": "b", "content": "two"},
        {"type": "text", "taskId": "b", "content": "two!"},
        {"type": "text", "taskId": "a", "content": "one!"},
        {"type": "thinking", "taskId": "b", "content": "hm"},
    ])  # fmt: skip
    found = only(viben, folder)
    said = [(m.role, m.metadata["backscroll"]["task_id"], grown.words(m)) for m in found.messages]
    assert said == [
        ("user", "a", "one"), ("user", "b", "two"), ("assistant", "b", "two!"),
        ("assistant", "a", "one!"),
    ]  # fmt: skip
    assert [p.type for p in found.messages[2].parts] == ["text", "reasoning"]


def test_a_running_task_an_open_call_and_a_question_with_its_answer(viben: Path) -> None:
    (viben / "tasks" / "t.yaml").write_text('sessionId: "20270101000000_x"\nstatus: "running"\n')
    folder = new_session(viben, [
        {"type": "user", "taskId": "t"}, {**UNSETTLED, "taskId": "t"},
        {"type": "question", "taskId": "t", "toolUseId": "q", "questions": []},
        {"type": "tool_result", "taskId": "t", "toolUseId": "q", "toolOutput": "A"},
        {"type": "tool_result", "taskId": "t", "toolUseId": "lost", "toolOutput": "?"},
    ])  # fmt: skip
    draft = only(viben, folder)
    assert draft.metadata["activity"]["state"] == "running"
    assert part(draft, "tool-Bash").tool_state == "input-available"
    assert part(draft, "data-question").data["data"]["answer"] == "A"
    assert part(draft, "tool-unknown").data["output"] == "?"


def test_newer_tasks_lie_in_folders_of_their_own(viben: Path) -> None:
    task = viben / "tasks" / "01-01-fix" / "task.json"
    task.parent.mkdir()
    task.write_text(json.dumps({"sessionId": "20270101000000_x", "status": "human_review"}))
    draft = only(viben, new_session(viben, [{"type": "user", "taskId": "t"}]))
    assert draft.metadata["activity"]["state"] == "waiting-input"


def test_sessions_of_other_agents_with_the_same_name(viben: Path) -> None:
    for agent in ("bot", "other"):
        for name in ("main", "20270101000000_x"):
            folder = viben / "agents" / agent / ".agent_sessions" / name
            folder.mkdir(parents=True)
            (folder / "config.yaml").write_text("id: 1\n")
            (folder / "messages.ui.jsonl").write_text("")
    found = grown.read_all(VibenSource(), viben)[0]
    assert found.keys() >= {"bot/main", "other/main", "legacy/main", "20270101000000_x",
                            "other/20270101000000_x"}  # fmt: skip


def test_settings_of_the_agent_are_not_kept(viben: Path) -> None:
    agent = {"model": "openai/gpt-5", "apiKey": "sk-secret"}
    folder = new_session(viben, [{"type": "user"}], id="x", agentConfig=agent)
    (folder.parent.parent / "config.yaml").write_text('apiKey: "sk-secret"\n')
    draft = only(viben, folder)
    assert draft.model == {"provider_id": "openai", "model_id": "gpt-5"}
    assert b"sk-secret" not in b"".join(draft.records) and "sk-secret" not in str(draft.metadata)


def test_it_is_found_and_recognised(viben: Path, tmp_path: Path) -> None:
    source = VibenSource()
    assert source.default_roots({}, viben.parent) == [viben]
    agent = viben / "agents" / "legacy"
    session = agent / ".agent_sessions" / "main"
    for path, root in ((viben.parent, viben), (viben, viben), (agent, agent),
                       (session, session), (session / "messages.ui.jsonl", session)):  # fmt: skip
        assert source.recognise(path) == root
        assert [one.kind for one in all_sources() if one.recognise(path)] == ["viben"]
        assert "legacy/main" in grown.read_all(source, root)[0]
    assert source.recognise(tmp_path / "nothing") is None
    assert source.recognise(viben / "tasks") is None


def test_damage_costs_only_itself(viben: Path) -> None:
    main = viben / "agents" / "legacy" / ".agent_sessions" / "main"
    (main / "config.yaml").write_bytes(b"\xff\xfe nothing\n")
    (viben / "tasks" / "bad").mkdir()
    (viben / "tasks" / "bad" / "task.json").write_text("{torn")
    ui = viben / "agents" / "personal-assistant" / ".agent_sessions" / MIXED / "messages.ui.jsonl"
    with ui.open("a") as file:
        file.write('{"id":"n","type":"telepathy","thought":1}\n{"id":"torn","ty')
    (ui.parent / "messages.agent.jsonl").unlink()
    drafts, problems = grown.read_all(VibenSource(), viben)
    assert drafts.keys() == {MIXED, SNAKE, CAMEL}
    assert len(problems) == 4
    assert part(drafts[MIXED], "data-event").data["data"]["name"] == "telepathy"
    assert part(drafts[MIXED], "data-error").data["data"] == {"message": ""}


def test_a_session_without_settings_or_without_lines(viben: Path) -> None:
    bare = new_session(viben, [{"type": "user", "content": "still here"}])
    (bare / "config.yaml").unlink()
    empty = new_session(viben, [], "20270101000001_y", id="y", prompt="not begun")
    (empty / "messages.ui.jsonl").unlink()
    drafts, problems = grown.read_all(VibenSource(), viben)
    assert drafts["20270101000000_x"].title == "still here"
    assert drafts["20270101000000_x"].created_at == 1798761600000
    assert drafts["20270101000001_y"].title == "not begun"
    assert [p.path for p in problems if "without config.yaml" in p.reason] == [str(bare)]


def test_a_session_that_goes_away(viben: Path, tmp_path: Path) -> None:
    source = VibenSource()
    units = list(source.units(viben, []))
    shutil.rmtree(viben / "agents")
    assert units
    for unit in units:
        reading = source.read(viben, unit)
        assert reading.sessions == [] and reading.problems


def test_a_session_followed_reads_as_one_read_whole(viben: Path) -> None:
    folder = viben / "agents" / "personal-assistant" / ".agent_sessions" / MIXED
    grown.grows_like_a_whole(VibenSource, viben, folder / "messages.ui.jsonl")


def test_only_what_grew_is_listed(viben: Path) -> None:
    for number in range(20):
        new_session(viben, [{"type": "user"}], f"20270101000{number:03}_x")
    changed = viben / "agents" / "bot" / ".agent_sessions" / "20270101000007_x"
    source = VibenSource()
    units = source.units_at(viben, [str(changed / "messages.ui.jsonl")])
    assert units is not None
    assert [unit.key for unit in units] == ["agents/bot/.agent_sessions/20270101000007_x"]
    assert units[0] in list(source.units(viben, []))
    assert source.units_at(viben, [str(viben / "tasks" / "t.yaml")]) is None


def test_nothing_is_touched(viben: Path, tmp_path: Path) -> None:
    before = grown.snapshot(viben)
    database = grown.synced(VibenSource(), viben, tmp_path / "library.db")
    database.connection.close()
    VibenSource().recognise(viben)
    assert grown.snapshot(viben) == before
