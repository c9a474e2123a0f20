"""Rewinds, compactions, forks, resumes, and trees that are not whole."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from store.sources.base.drafts import SessionDraft
from store.sources.claude_code.transcript import SAME_UUID
from tests.sources.claude_rows import START, File, call, iso, read, read_one, said, shape, tool

NIL = "00000000-0000-0000-0000-000000000000"


def hidden(draft: SessionDraft) -> dict[str, int]:
    return {
        said(message): message.metadata["hidden_at"]
        for message in draft.messages
        if "hidden_at" in message.metadata
    }


def turn(file: File, text: str, number: int, **fields: Any) -> str:
    file.user(text, **fields)
    return file.assistant(f"re {text}", id=f"msg_{number}")


def test_rewind_hides_what_it_left(tmp_path: Path) -> None:
    file = File()
    base = turn(file, "a", 1)
    turn(file, "b", 2)
    turn(file, "c", 3)
    turn(file, "d", 4, parent=base)
    file.note("last-prompt", leafUuid=NIL, explicit=True)
    draft = read_one(file, tmp_path)
    assert [text for _, text in shape(draft)] == ["a", "re a", "d", "re d"]
    at = START + 7000
    assert hidden(draft) == {"b": at, "re b": at, "c": at, "re c": at}
    assert [said(m) for m in draft.messages] == ["a", "re a", "b", "re b", "c", "re c", "d", "re d"]


def test_each_rewind_is_one_batch(tmp_path: Path) -> None:
    file = File()
    base = turn(file, "a", 1)
    turn(file, "b1", 2)
    second = turn(file, "b2", 3, parent=base)
    turn(file, "c1", 4)
    turn(file, "c2", 5, parent=second)
    turn(file, "b3", 6, parent=base)
    draft = read_one(file, tmp_path)
    assert [text for _, text in shape(draft)] == ["a", "re a", "b3", "re b3"]
    first, inner, outer = START + 5000, START + 9000, START + 11000
    assert hidden(draft) == {
        "b1": first,
        "re b1": first,
        "b2": outer,
        "re b2": outer,
        "c1": inner,
        "re c1": inner,
        "c2": outer,
        "re c2": outer,
    }


def test_rewind_to_the_beginning(tmp_path: Path) -> None:
    file = File()
    turn(file, "a", 1)
    turn(file, "b", 2, parent=None)
    draft = read_one(file, tmp_path)
    assert shape(draft) == [("user", "b"), ("assistant", "re b")]
    assert hidden(draft) == {"a": START + 3000, "re a": START + 3000}
    assert draft.title == "b"


def test_last_prompt_names_the_current_leaf(tmp_path: Path) -> None:
    file = File()
    base = turn(file, "a", 1)
    kept = turn(file, "b", 2)
    turn(file, "c", 3, parent=base)
    file.note("last-prompt", leafUuid=kept)
    draft = read_one(file, tmp_path)
    assert [text for _, text in shape(draft)] == ["a", "re a", "b", "re b"]
    assert set(hidden(draft)) == {"c", "re c"}
    file.user("d", parent=kept)
    assert [text for _, text in shape(read_one(file, tmp_path))][-1] == "d"


def test_missing_parent_goes_on_with_the_row_before(tmp_path: Path) -> None:
    file = File()
    turn(file, "a", 1)
    turn(file, "b", 2, parent="gone")
    draft = read_one(file, tmp_path)
    assert [text for _, text in shape(draft)] == ["a", "re a", "b", "re b"]
    assert hidden(draft) == {}


def test_loops_and_rows_that_are_their_own_parent(tmp_path: Path) -> None:
    file = File()
    file.user("a", uuid="u1", parent="u3")
    file.assistant("b", id="msg_1")
    file.user("c", uuid="u3")
    file.user("d", uuid="u4", parent="u4")
    draft = read_one(file, tmp_path)
    assert [text for _, text in shape(draft)] == ["a", "b", "c", "d"]


def test_doubled_rows_count_once(tmp_path: Path) -> None:
    file = File()
    turn(file, "a", 1)
    turn(file, "b", 2)
    file.lines += file.lines[:]
    draft = read_one(file, tmp_path)
    assert [text for _, text in shape(draft)] == ["a", "re a", "b", "re b"]
    assert len(draft.records) == 8


def test_other_content_under_a_known_uuid_is_told(tmp_path: Path) -> None:
    file = File()
    first = file.user("the first words")
    file.assistant("a", id="msg_1")
    file.user("other words", uuid=first, parent=None)
    drafts, problems = read(file.write(tmp_path))
    assert [text for _, text in shape(drafts[file.session])] == [
        "the first words", "a", "other words",
    ]  # fmt: skip
    assert [(problem.line, problem.reason) for problem in problems] == [(3, SAME_UUID)]


def test_rows_that_all_have_one_uuid_are_in_file_order(tmp_path: Path) -> None:
    file = File()
    for number in range(3):
        file.user(f"ask {number}", uuid="same", parent="same")
        file.assistant(f"answer {number}", id=f"msg_{number}", uuid="same", parent="same")
    file.lines += file.lines[-2:]
    file.user("last", parent="same")
    drafts, _ = read(file.write(tmp_path))
    assert [text for _, text in shape(drafts[file.session])] == [
        "ask 0", "answer 0", "ask 1", "answer 1", "ask 2", "answer 2", "last",
    ]  # fmt: skip


def compacted(file: File, head: str, anchor: str, tail: str) -> None:
    segment = {"headUuid": head, "anchorUuid": anchor, "tailUuid": tail}
    file.row(
        "system",
        uuid="boundary",
        parent=None,
        subtype="compact_boundary",
        logicalParentUuid=file.last,
        compactMetadata={
            "trigger": "manual",
            "preTokens": 900,
            "postTokens": 90,
            "preservedSegment": segment,
        },
    )
    file.user("the summary", uuid="summary", isCompactSummary=True)


@pytest.mark.parametrize("form", ["no logical parent", "an unknown one", "no boundary"])
def test_a_compaction_leaves_no_turn_behind(form: str, tmp_path: Path) -> None:
    file = File()
    turn(file, "a", 1)
    parent: dict[str, Any] = {"parent": None}
    if form != "no boundary":
        named = {"logicalParentUuid": "gone"} if form == "an unknown one" else {}
        file.row("system", subtype="compact_boundary", **named, **parent)
        parent = {}
    file.user("the summary", isCompactSummary=True, **parent)
    turn(file, "b", 2)
    draft = read_one(file, tmp_path)
    assert [text for _, text in shape(draft)] == ["a", "re a", "data-compaction", "b", "re b"]


def test_compaction_with_a_preserved_tail(tmp_path: Path) -> None:
    file = File()
    turn(file, "a", 1)
    head = file.user("b")
    tail = file.assistant("re b", id="msg_2")
    compacted(file, head, "summary", tail)
    turn(file, "c", 3)
    draft = read_one(file, tmp_path)
    assert [text for _, text in shape(draft)] == [
        "a",
        "re a",
        "b",
        "re b",
        "data-compaction",
        "c",
        "re c",
    ]
    message = draft.messages[4]
    assert (message.role, message.source_id) == ("system", "boundary")
    assert message.parts[0].data["data"] == {
        "summary": "the summary",
        "tail_start_id": head,
        "auto": False,
        "trigger": "manual",
        "pre_tokens": 900,
        "post_tokens": 90,
    }
    assert message.parts[0].records == (4, 5)


def test_segment_that_was_relinked_makes_no_loop(tmp_path: Path) -> None:
    file = File()
    turn(file, "a", 1)
    head = file.user("b", parent="summary")
    tail = file.assistant("re b", id="msg_2")
    compacted(file, head, "summary", tail)
    turn(file, "c", 3, parent=tail)
    draft = read_one(file, tmp_path)
    assert [text for _, text in shape(draft)] == [
        "a",
        "re a",
        "b",
        "re b",
        "data-compaction",
        "c",
        "re c",
    ]


def test_summary_without_boundary(tmp_path: Path) -> None:
    file = File(version="1.0.0")
    file.user("earlier", isCompactSummary=True)
    turn(file, "a", 1)
    draft = read_one(file, tmp_path)
    assert draft.messages[0].parts[0].data["data"]["summary"] == "earlier"
    assert draft.messages[0].parts[0].data["data"]["tail_start_id"] is None
    assert draft.title == "a"


def test_fork_after_a_compaction_takes_zeroed_usage_from_its_parent(tmp_path: Path) -> None:
    parent = File()
    turn(parent, "a", 1)
    head = parent.user("b")
    tail = parent.assistant("re b", id="msg_2", output=18)
    compacted(parent, head, "summary", tail)
    parent.row("system", uuid="took", subtype="turn_duration", durationMs=1)
    parent.write(tmp_path)
    fork = File(session="2222")
    zeroed = {
        "input_tokens": 0,
        "output_tokens": 0,
        "cache_read_input_tokens": 0,
        "cache_creation_input_tokens": 0,
    }
    fork.row("system", uuid="boundary", subtype="compact_boundary", logicalParentUuid=tail)
    fork.user("the summary", uuid="summary", isCompactSummary=True)
    fork.user("b", uuid=head)
    fork.assistant("re b", id="msg_2", usage=zeroed, requestSessionId=parent.session)
    fork.row("system", uuid="took", subtype="turn_duration", durationMs=1)
    fork.user("new")
    fork.assistant("re new", id="msg_9")
    fork.write(tmp_path)
    drafts, problems = read(tmp_path)
    draft = drafts["2222"]
    assert problems == []
    assert draft.lineage is not None
    assert (draft.lineage.kind, draft.lineage.parent_source_id) == ("fork", parent.session)
    assert draft.lineage.parent_message_source_id == "msg_2"
    assert [m.inherited_from for m in draft.messages] == ["boundary", head, "msg_2", None, None]
    assert draft.messages[2].metadata["usage"]["output"] == 18
    assert draft.created_at == START + 6000
    assert drafts[parent.session].lineage is None


def test_fork_of_a_fork_names_the_nearest(tmp_path: Path) -> None:
    file = File(session="3333")
    file.user("a")
    file.assistant("re a", id="msg_1", requestSessionId="1111")
    file.user("b")
    file.assistant("re b", id="msg_2", requestSessionId="2222")
    file.user("c")
    draft = read_one(file, tmp_path)
    assert draft.lineage is not None
    assert draft.lineage.parent_source_id == "2222"
    assert [m.inherited_from is not None for m in draft.messages] == [True] * 4 + [False]


def test_branch_command(tmp_path: Path) -> None:
    file = File()
    origin = {"sessionId": "0000", "messageUuid": "x"}
    file.user("a", forkedFrom=origin)
    file.assistant("re a", id="msg_1", forkedFrom=origin)
    file.user("unanswered", forkedFrom=origin)
    file.note("custom-title", customTitle="other way")
    file.user("b")
    draft = read_one(file, tmp_path)
    assert draft.lineage is not None
    assert (draft.lineage.kind, draft.lineage.parent_source_id) == ("fork", "0000")
    assert [m.inherited_from is not None for m in draft.messages] == [True, True, True, False]
    assert draft.title == "other way"


def test_what_the_branch_command_says_is_no_copy(tmp_path: Path) -> None:
    parent = File(session="0000")
    file = File()
    mark: dict[str, Any] = {"forkedFrom": {"sessionId": "0000"}}
    for each, marks in ((parent, {}), (file, mark)):
        each.user("a", uuid="row-a", **marks)
        each.assistant("re a", id="msg_1", uuid="row-re-a", **marks)
    file.row("system", subtype="local_command", content="<command-name>/branch</command-name>")
    file.row("system", subtype="local_command", content="Branched session")
    file.user("b")
    parent.write(tmp_path)
    file.write(tmp_path)
    draft = read(tmp_path)[0][file.session]
    assert draft.lineage is not None
    assert draft.lineage.parent_message_source_id == "msg_1"
    assert [m.inherited_from for m in draft.messages] == ["row-a", "msg_1", None, None, None]


@pytest.mark.parametrize("parent_is_there", [True, False])
def test_a_fork_ends_where_its_parent_did(tmp_path: Path, parent_is_there: bool) -> None:
    """Only answers are marked: copied prompts and commands after the last are told by uuid."""
    parent, fork = File(session="1111"), File(session="2222")
    mark: dict[str, Any] = {"requestSessionId": "1111"}
    for each, marks in ((parent, {}), (fork, mark)):
        each.user("a", uuid="row-a")
        each.assistant("re a", id="msg_1", uuid="row-re-a", **marks)
        each.user("[Request interrupted by user]", uuid="row-stop", interruptedMessageId="msg_1")
        each.row("system", uuid="row-cmd", subtype="local_command", content="copied command")
        each.user("never answered", uuid="row-b")
    fork.row("system", subtype="local_command", content="own command")
    fork.user("own")
    fork.assistant("re own", id="msg_2")
    if parent_is_there:
        parent.write(tmp_path)
    fork.write(tmp_path)
    draft = read(tmp_path)[0]["2222"]
    inherited = [m.inherited_from for m in draft.messages]
    copied: list[str | None] = ["row-a", "msg_1", "row-stop"]
    copied += ["row-cmd", "row-b"] if parent_is_there else [None, None]
    assert inherited == [*copied, None, None, None]
    assert draft.lineage is not None
    assert draft.lineage.parent_message_source_id == copied[4 if parent_is_there else 2]


def copy_of(file: File, session: str, *, rows: int, restamped: bool = False) -> File:
    """Fork as versions without marks did: the same uuids under the new session's id."""
    fork = File(session=session, version=file.version)
    fork.at, fork.last = file.at + 500, file.lines[rows - 1]["uuid"]
    for line in file.lines[:rows]:
        stamp = iso(fork.at) if restamped else line["timestamp"]
        fork.lines.append({**line, "sessionId": session, "timestamp": stamp})
    return fork


@pytest.mark.parametrize("doubled", [False, True])
@pytest.mark.parametrize(("version", "restamped"), [("1.0.128", True), ("2.1.251", False)])
def test_forks_without_marks_are_known_by_their_uuids(
    tmp_path: Path, version: str, restamped: bool, doubled: bool
) -> None:
    first = File(session="1111", version=version)
    turn(first, "a", 1)
    fork = copy_of(first, "2222", rows=2, restamped=restamped)
    turn(fork, "in the fork", 2)
    nested = copy_of(fork, "3333", rows=4, restamped=restamped)
    turn(nested, "in the fork of the fork", 3)
    first.at = nested.at + 1000
    turn(first, "on in the first", 4)
    later = copy_of(first, "4444", rows=4, restamped=restamped)
    turn(later, "in the later fork", 5)
    alone = File(session="5555", version=version)
    turn(alone, "a", 6)
    for file in (first, fork, nested, later, alone):
        if doubled:
            file.lines += file.lines[:2]
        file.write(tmp_path)
    drafts, problems = read(tmp_path)
    assert problems == []
    parents = {key: draft.lineage and draft.lineage.parent_source_id
               for key, draft in drafts.items()}
    assert parents == {"1111": None, "2222": "1111", "3333": "2222", "4444": "1111", "5555": None}
    inherited = [m.inherited_from is not None for m in drafts["3333"].messages]
    assert inherited == [True] * 4 + [False] * 2
    lineage = drafts["3333"].lineage
    assert lineage is not None
    assert (lineage.kind, lineage.parent_message_source_id) == ("fork", "msg_2")


def test_a_fork_without_marks_after_a_compaction(tmp_path: Path) -> None:
    parent = File(session="1111", version="2.1.251")
    turn(parent, "a", 1)
    tail = parent.last
    start = len(parent.lines)
    parent.row("system", parent=None, subtype="compact_boundary", logicalParentUuid=tail)
    parent.user("the summary", isCompactSummary=True)
    turn(parent, "b", 2)
    fork = copy_of(parent, "2222", rows=len(parent.lines))
    del fork.lines[:start]
    turn(fork, "c", 3)
    # The beginning is longer than what is looked into for other forks.
    parent.lines[0]["padding"] = "x" * 200_000
    parent.write(tmp_path)
    fork.write(tmp_path)
    draft = read(tmp_path)[0]["2222"]
    assert draft.lineage is not None
    assert (draft.lineage.kind, draft.lineage.parent_source_id) == ("fork", "1111")
    assert [m.inherited_from is not None for m in draft.messages] == [True] * 3 + [False] * 2


def test_old_resume_goes_on_in_a_new_file(tmp_path: Path) -> None:
    files = []
    for number in (1, 2, 3):
        file = File(session=f"s{number}", version="1.0.62")
        for turn_number in range(1, number + 1):
            file.at = START + turn_number * 10_000
            file.user(f"q{turn_number}")
            file.assistant(f"a{turn_number}", id=f"msg_{turn_number}")
        file.write(tmp_path)
        files.append(file)
    drafts, problems = read(tmp_path)
    assert problems == []
    assert drafts["s1"].lineage is None
    second, third = drafts["s2"], drafts["s3"]
    assert second.lineage is not None and third.lineage is not None
    assert (second.lineage.kind, second.lineage.parent_source_id) == ("continuation", "s1")
    assert third.lineage.parent_source_id == "s2"
    assert [m.inherited_from for m in third.messages] == [
        "s2-row-1",
        "msg_1",
        "s2-row-3",
        "msg_2",
        None,
        None,
    ]
    own = [m for d in drafts.values() for m in d.messages if m.inherited_from is None]
    assert sum(m.metadata["usage"]["output"] for m in own if m.role == "assistant") == 30


def test_titles_by_precedence(tmp_path: Path) -> None:
    file = File(version="1.0.128")
    leaf = turn(file, "the first prompt", 1)
    path = file.write(tmp_path)

    def title() -> tuple[str | None, str | None]:
        drafts, _ = read(path)
        draft = drafts[file.session]
        return draft.title, draft.title_from

    assert title() == ("the first prompt", "first-prompt")
    other = File(session="other", version="1.0.128")
    other.lines.append({"type": "summary", "summary": "of another file", "leafUuid": leaf})
    other.lines.append({"type": "summary", "summary": "of nobody", "leafUuid": "none"})
    other.write(tmp_path)
    assert title() == ("of another file", "summary")
    file.lines.insert(0, {"type": "summary", "summary": "own", "leafUuid": leaf})
    file.write(tmp_path)
    assert title() == ("own", "summary")
    file.note("ai-title", aiTitle="by a model")
    file.note("ai-title", aiTitle="by a model, later")
    file.write(tmp_path)
    assert title() == ("by a model, later", "ai-title")
    side = tmp_path / file.session
    side.mkdir()
    (side / "custom-title.json").write_text('{"customTitle":"by hand","by":"user"}')
    assert title() == ("by hand", "custom-title")
    file.note("custom-title", customTitle="by hand, noted")
    file.write(tmp_path)
    assert title() == ("by hand, noted", "custom-title")


@pytest.mark.parametrize(
    ("content", "title"),
    [
        ("<ide_opened_file>The user opened a.md</ide_opened_file>\nfix  it", "fix it"),
        (
            [
                {"type": "text", "text": "<ide_selection>lines\nof b</ide_selection>"},
                {"type": "text", "text": "explain this"},
            ],
            "explain this",
        ),
        ('<teammate-message teammate_id="a">\nlook here</teammate-message>', "look here"),
        ("<b>bold</b> words", "<b>bold</b> words"),
    ],
)
def test_a_title_is_what_was_said(content: Any, title: str, tmp_path: Path) -> None:
    file = File()
    file.user(content)
    file.assistant("a", id="msg_1")
    assert read_one(file, tmp_path).title == title


def test_archive_mark(tmp_path: Path) -> None:
    file = File()
    turn(file, "a", 1)
    path = file.write(tmp_path)
    side = tmp_path / file.session
    side.mkdir()
    (side / "archived.json").write_text('{"archived":true,"at":"2026-11-27T22:17:40.685Z"}')
    drafts, _ = read(path)
    assert drafts[file.session].archived_at == 1795817860685
    (side / "archived.json").write_text('{"archived":false,"at":"2026-11-27T22:17:40.685Z"}')
    assert read(path)[0][file.session].archived_at is None


def agent(
    folder: Path, agent_id: str, *lines: str, version: str = "2.1.332", meta: str = ""
) -> None:
    file = File(version=version)
    file.user(lines[0], isSidechain=True, agentId=agent_id)
    for number, line in enumerate(lines[1:]):
        block: Any = tool(line, "Agent", prompt="deeper") if line.startswith("toolu") else line
        file.assistant(block, id=f"msg_{agent_id}_{number}", isSidechain=True, agentId=agent_id)
    file.write(folder, f"agent-{agent_id}")
    if meta:
        (folder / f"agent-{agent_id}.meta.json").write_text(meta)


def test_nested_agents(tmp_path: Path) -> None:
    file = File()
    file.user("go")
    file.assistant(tool("toolu_1", "Agent", prompt="p", description="d"), id="msg_1")
    path = file.write(tmp_path)
    folder = tmp_path / file.session / "subagents"
    meta = '{"agentType":"Plan","toolUseId":"%s","spawnDepth":%d}'
    agent(folder, "one", "p", "toolu_2", meta=meta % ("toolu_1", 1))
    agent(folder, "two", "deeper", "done", meta=meta % ("toolu_2", 2))
    drafts, problems = read(path)
    assert problems == []
    one, two = (drafts[f"agent-{name}:{file.session}"] for name in ("one", "two"))
    assert one.lineage is not None and two.lineage is not None
    assert (one.lineage.parent_source_id, one.lineage.tool_call_id) == (file.session, "toolu_1")
    assert one.lineage.parent_message_source_id == "msg_1"
    assert (two.lineage.parent_source_id, two.lineage.tool_call_id) == (one.source_id, "toolu_2")
    part = one.messages[1].parts[0]
    extra = part.data["resultProviderMetadata"]["backscroll"]
    assert extra == {"child_session_source_id": two.source_id}
    assert (one.title, one.metadata["backscroll"]["spawn_depth"]) == ("d", 1)
    assert one.messages[1].metadata["agent"] == "Plan"


def test_agents_of_a_workflow(tmp_path: Path) -> None:
    file = File()
    file.user("go")
    file.assistant(tool("toolu_1", "Workflow", script="phase('x')"), id="msg_1")
    started = {"status": "async_launched", "taskId": "t", "runId": "wf_1", "summary": "s"}
    file.result("toolu_1", "Workflow launched in background.", started)
    path = file.write(tmp_path)
    runs = tmp_path / file.session / "subagents" / "workflows"
    meta = '{"agentType":"workflow-subagent","spawnDepth":1}'
    for run, agents in (("wf_1", "ab"), ("wf_2", "a")):
        (runs / run).mkdir(parents=True)
        (runs / run / "journal.jsonl").write_text('{"type":"started","agentId":"a"}\n')
        for agent_id in agents:
            agent(runs / run, agent_id, f"{agent_id} of {run}", "done", meta=meta)
    drafts, problems = read(path)
    assert problems == []
    of_call, of_run = {}, {}
    for draft in drafts.values():
        if draft.source_id != file.session:
            assert draft.lineage is not None
            assert draft.lineage.parent_source_id == file.session
            of_call[draft.title] = draft.lineage.tool_call_id
            of_run[draft.title] = draft.metadata["backscroll"]["workflow_run"]
            assert draft.metadata["backscroll"]["agent_type"] == "workflow-subagent"
    assert of_call == {"a of wf_1": "toolu_1", "b of wf_1": "toolu_1", "a of wf_2": None}
    assert of_run == {"a of wf_1": "wf_1", "b of wf_1": "wf_1", "a of wf_2": "wf_2"}
    extra = drafts[file.session].messages[1].parts[0].data["resultProviderMetadata"]["backscroll"]
    assert extra["child_session_source_id"] == f"agent-a@wf_1:{file.session}"
    alone, _ = read(runs / "wf_1" / "agent-b.jsonl")
    assert list(alone) == [f"agent-b@wf_1:{file.session}"]


def test_agent_of_a_skill(tmp_path: Path) -> None:
    file = File()
    file.user("go")
    file.assistant(tool("toolu_1", "Skill", skill="check"), id="msg_1")
    file.result("toolu_1", "done", {"status": "forked", "agentId": "abc", "result": "done"})
    path = file.write(tmp_path)
    agent(tmp_path / file.session / "subagents", "abc", "p", "done")
    child = read(path)[0][f"agent-abc:{file.session}"]
    assert child.lineage is not None
    assert child.lineage.tool_call_id == "toolu_1"


def test_agent_beside_its_session(tmp_path: Path) -> None:
    file = File(version="2.0.77")
    file.user("go")
    file.assistant(tool("toolu_1", "Task", prompt="p", subagent_type="Explore"), id="msg_1")
    file.result("toolu_1", "done", {"status": "completed", "agentId": "abc", "content": []})
    file.write(tmp_path)
    agent(tmp_path, "abc", "p", "done", version="2.0.77")
    agent(tmp_path, "fff", "Warmup", "ok", version="2.0.77")
    drafts, _ = read(tmp_path)
    child, warm = (drafts[f"agent-{name}:{file.session}"] for name in ("abc", "fff"))
    assert child.lineage is not None and warm.lineage is not None
    assert child.lineage.tool_call_id == "toolu_1"
    assert child.metadata["backscroll"]["agent_type"] == "Explore"
    assert warm.lineage.tool_call_id is None
    assert warm.lineage.parent_source_id == file.session
    assert warm.metadata["backscroll"]["warmup"] is True
    alone, _ = read(tmp_path / "agent-abc.jsonl")
    assert list(alone) == [child.source_id]


def test_inline_sidechains(tmp_path: Path) -> None:
    file = File(version="1.0.128")
    file.user("go")
    calls = [tool(f"t{n}", "Task", prompt=f"p{n}", description=f"d{n}") for n in (1, 2)]
    top = file.assistant(*calls, id="msg_1")
    for number in (2, 1):
        root = file.user(f"p{number}", parent=None, isSidechain=True)
        file.assistant("inner", id=f"msg_in{number}", isSidechain=True)
        assert root
    file.result("t1", "one", parent=top)
    file.result("t2", "two")
    draft_of, problems = read(file.write(tmp_path))
    assert problems == []
    assert [text for _, text in shape(draft_of[file.session])] == ["go", "tool-Task|tool-Task"]
    children = [d for d in draft_of.values() if d.source_id != file.session]
    assert [(d.title, d.lineage and d.lineage.tool_call_id) for d in children] == [
        ("d2", "t2"),
        ("d1", "t1"),
    ]
    assert [len(d.records) for d in children] == [2, 2]
    assert [m.parts[0].records for m in children[1].messages] == [(0,), (1,)]


def replayed(*turns: int, again: int) -> File:
    """Return a session whose first turns were played again on a branch of their own."""
    file = File()
    for count in (len(turns), again):
        file.last = None
        for number in range(1, count + 1):
            file.user(f"q{number}")
            file.assistant(f"a{number}", id=f"msg_{number}", requestId=f"req_{number}")
    return file


def test_a_message_id_that_stands_on_two_branches(tmp_path: Path) -> None:
    draft = read_one(replayed(1, 2, again=3), tmp_path)
    assert [text for _, text in shape(draft)] == ["q1", "a1", "q2", "a2", "q3", "a3"]
    hidden = [said(message) for message in draft.messages if "hidden_at" in message.metadata]
    assert hidden == ["q1", "a1", "q2", "a2"]
    answers = [message.answer for message in draft.messages if message.role == "assistant"]
    assert [answer and answer.id for answer in answers] == [
        "msg_1", "msg_2", "msg_1", "msg_2", "msg_3"
    ]  # fmt: skip


def test_an_answer_that_is_written_again_below_its_prompt_stands_once(tmp_path: Path) -> None:
    file = File()
    prompt = file.user("q1")
    file.assistant("a1", tool("t1"), id="msg_1", requestId="req_1")
    file.assistant("a1", tool("t1"), id="msg_1", requestId="req_1", parent=prompt)
    file.lines[-1]["parentUuid"] = file.lines[-2]["uuid"]
    file.result("t1", "done")
    draft = read_one(file, tmp_path)
    assert shape(draft) == [("user", "q1"), ("assistant", "a1|tool-Bash")]
    assert call(draft, "t1").data["output"] == "done"


def test_a_gateway_without_requests_answers_anew_after_a_result(tmp_path: Path) -> None:
    file = File()
    file.user("q1")
    for given in (10, 400):
        usage = {"input_tokens": given, "output_tokens": 5}
        file.assistant(tool("call_1"), id="msg_same", usage=usage)
        file.result("call_1")
    draft = read_one(file, tmp_path)
    used = [m.metadata["usage"]["input"] for m in draft.messages if m.role == "assistant"]
    assert used == [10, 400]
