"""Prompts typed while the agent works: each stands once, whatever traces it left."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pytest

from store.engine.database import open_database
from store.sources.base.drafts import SessionDraft
from store.sources.claude_code import ClaudeCodeSource
from store.sources.claude_code.neighbours import Neighbours
from store.sources.claude_code.reader import SessionReader
from store.sync.engine import Sync
from store.sync.targets import Target
from tests.sources.cases import case_drafts
from tests.sources.claude_rows import File, iso, read, read_one, said, shape, tool

QUEUED = {"type": "queued_command", "commandMode": "prompt"}


def begin(version: str = "2.1.260") -> File:
    file = File(version=version)
    file.user("start")
    file.assistant(tool("t1"), id="msg_1")
    return file


def queue(file: File, operation: str, content: Any = None, **fields: Any) -> None:
    if content is not None:
        fields["content"] = content
    file.at += 1
    file.note("queue-operation", operation=operation, timestamp=iso(file.at), **fields)


def loose(file: File, prompt: Any, **fields: Any) -> None:
    """Write an attachment without a uuid."""
    file.at += 1
    attachment = {**QUEUED, "prompt": prompt} | fields
    file.note("attachment", timestamp=iso(file.at), attachment=attachment)


def end(file: File) -> None:
    file.assistant("done", id="msg_2")


def prompts(draft: SessionDraft) -> list[str]:
    return [
        said(message)
        for message in draft.messages
        if message.metadata.get("origin") == "human" and "queued_at" not in message.metadata
    ]


def waiting(draft: SessionDraft) -> list[str]:
    return [said(m) for m in draft.messages if "queued_at" in m.metadata]


def test_a_note_that_was_written_twice_is_one_prompt(tmp_path: Path) -> None:
    for place in range(3):
        file = begin()
        queue(file, "enqueue", "one")
        queue(file, "remove", "one", reason="absorbed_mid_turn")
        loose(file, "two")
        file.lines.insert(place - 3, file.lines[place - 3])
        queue(file, "enqueue", "last")
        end(file)
        draft = read_one(file, tmp_path / str(place))
        assert prompts(draft) == ["start", "one", "two"] and waiting(draft) == ["last"]


@pytest.mark.parametrize(
    ("folder", "prompt"),
    [("70-absorbed", "ABSORBED use port 81"), ("05-queued", "also lint please")],
)
def test_a_prompt_typed_mid_turn(folder: str, prompt: str, tmp_path: Path) -> None:
    (draft,) = case_drafts(f"01-prompt-typed-mid-turn/{folder}", tmp_path)
    assert [role for role, _ in shape(draft)] == ["user", "assistant", "user", "assistant"]
    assert said(draft.messages[2]) == prompt
    assert draft.messages[2].metadata["origin"] == "human"


def test_a_prompt_that_waits(tmp_path: Path) -> None:
    (draft,) = case_drafts("02-prompt-still-waiting/74-waiting", tmp_path)
    assert (prompts(draft), waiting(draft)) == (["start the build"], ["WAITING in line"])
    assert "queued_at" in draft.messages[-1].metadata


def test_every_trace_gives_one_message(tmp_path: Path) -> None:
    file = begin()
    for number in range(5):
        queue(file, "enqueue", f"prompt {number}", commandUuid=f"c{number}")
    file.result("t1")
    queue(file, "remove", "prompt 0", reason="absorbed_mid_turn")
    queue(file, "remove", "prompt 1")
    queue(file, "remove", reason="absorbed_mid_turn", commandUuid="c2")
    queue(file, "remove", "prompt 3", reason="absorbed_mid_turn")
    loose(file, "prompt 3")
    queue(file, "remove")
    own = file.row("attachment", attachment={**QUEUED, "prompt": "prompt 4"})
    end(file)
    draft = read_one(file, tmp_path)
    assert prompts(draft) == ["start", *(f"prompt {number}" for number in range(5))]
    assert waiting(draft) == []
    assert draft.messages[-2].source_id == own
    assert all("hidden_at" not in message.metadata for message in draft.messages)
    assert len({message.source_id for message in draft.messages}) == len(draft.messages)


def test_the_records_of_a_prompt_are_all_of_its_traces(tmp_path: Path) -> None:
    file = begin()
    queue(file, "enqueue", "more")
    file.result("t1")
    queue(file, "remove")
    loose(file, "more")
    end(file)
    (message,) = [m for m in read_one(file, tmp_path).messages if said(m) == "more"]
    numbers = {*message.records, *(n for part in message.parts for n in part.records)}
    assert numbers == {2, 4, 5}


def test_a_result_may_stand_between_the_removal_and_the_attachment(tmp_path: Path) -> None:
    file = begin("2.1.183")
    queue(file, "enqueue", "what is 2+2?")
    queue(file, "remove")
    file.result("t1")
    file.row("attachment", attachment={**QUEUED, "prompt": "what is 2+2?"})
    end(file)
    assert prompts(read_one(file, tmp_path)) == ["start", "what is 2+2?"]


def test_the_same_words_twice_are_two_prompts(tmp_path: Path) -> None:
    file = begin()
    queue(file, "enqueue", "go on")
    queue(file, "enqueue", "go on")
    file.result("t1")
    queue(file, "remove", "go on", reason="absorbed_mid_turn")
    file.assistant(tool("t2"), id="msg_2")
    file.result("t2")
    queue(file, "dequeue")
    file.user("go on")
    queue(file, "enqueue", "go on")
    file.assistant("done", id="msg_3")
    draft = read_one(file, tmp_path)
    assert prompts(draft) == ["start", "go on", "go on"]
    assert waiting(draft) == ["go on"]


def test_of_equal_prompts_that_wait_only_the_sent_one_leaves(tmp_path: Path) -> None:
    file = begin()
    queue(file, "enqueue", "yes")
    queue(file, "enqueue", "yes")
    queue(file, "dequeue")
    file.user("yes")
    draft = read_one(file, tmp_path)
    assert (prompts(draft), waiting(draft)) == (["start", "yes"], ["yes"])


def test_what_went_elsewhere_is_no_message(tmp_path: Path) -> None:
    file = begin()
    queue(file, "enqueue", "back into the input")
    queue(file, "popAll", "back into the input")
    queue(file, "enqueue", "for the agent")
    queue(file, "remove", "for the agent", reason="delivered_to_agent")
    queue(file, "enqueue", "sent")
    file.user("sent")
    end(file)
    draft = read_one(file, tmp_path)
    assert (prompts(draft), waiting(draft)) == (["start", "sent"], [])


NOTICE = "<task-notification><task-id>b1</task-id><summary>Ready</summary></task-notification>"


@pytest.mark.parametrize("absorbed", [True, False])
def test_a_notification_in_the_queue_is_no_prompt(absorbed: bool, tmp_path: Path) -> None:
    file = begin()
    queue(file, "enqueue", NOTICE)
    if absorbed:
        queue(file, "remove", NOTICE, reason="absorbed_mid_turn")
    end(file)
    draft = read_one(file, tmp_path)
    assert (prompts(draft), waiting(draft)) == (["start"], [])
    notified = [m for m in draft.messages if m.metadata.get("origin") == "notification"]
    assert len(notified) == absorbed


def test_a_prompt_with_an_image(tmp_path: Path) -> None:
    image = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "AA"}}
    file = begin()
    queue(file, "enqueue", "look [Image #1]")
    file.result("t1")
    queue(file, "remove")
    loose(file, [{"type": "text", "text": "look [Image #1]"}, image])
    end(file)
    draft = read_one(file, tmp_path)
    assert prompts(draft) == ["start", "look [Image #1]|file"]


def test_lines_may_end_with_crlf(tmp_path: Path) -> None:
    file = begin()
    queue(file, "enqueue", "first\r\nsecond")
    file.result("t1")
    queue(file, "remove", "first\r\nsecond", reason="absorbed_mid_turn")
    queue(file, "enqueue", "later")
    folder = tmp_path / "p"
    path = file.write(folder)
    path.write_bytes(path.read_bytes().replace(b"\n", b"\r\n"))
    drafts, problems = read(folder)
    draft = drafts[file.session]
    assert problems == []
    assert (prompts(draft), waiting(draft)) == (["start", "first\r\nsecond"], ["later"])


def test_a_file_of_nothing_but_a_waiting_prompt(tmp_path: Path) -> None:
    file = File()
    queue(file, "enqueue", "anybody there?")
    draft = read_one(file, tmp_path)
    assert (waiting(draft), draft.created_at) == (["anybody there?"], file.at)
    assert draft.title == "anybody there?"


def test_a_prompt_hidden_by_a_rewind_goes_with_its_turn(tmp_path: Path) -> None:
    file = File()
    base = file.user("a")
    file.assistant("re a", id="msg_1")
    file.user("b")
    file.assistant(tool("t1"), id="msg_2")
    queue(file, "enqueue", "typed in b")
    file.result("t1")
    queue(file, "remove", "typed in b", reason="absorbed_mid_turn")
    file.assistant("re b", id="msg_3")
    file.user("c", parent=file.lines[1]["uuid"])
    file.assistant("re c", id="msg_4")
    assert base
    draft = read_one(file, tmp_path)
    assert [text for _, text in shape(draft)] == ["a", "re a", "c", "re c"]


@pytest.mark.parametrize("pairs", [1, 4])
def test_following_gives_what_reading_at_once_does(pairs: int, tmp_path: Path) -> None:
    file = begin()
    for number in range(pairs):
        queue(file, "enqueue", f"p{number}")
        queue(file, "remove")
        file.result("t1") if number == 0 else None
        file.row("attachment", attachment={**QUEUED, "prompt": f"p{number}"})
        file.assistant(tool(f"u{number}"), id=f"msg_a{number}")
        file.result(f"u{number}")
    end(file)
    whole, grown = (SessionReader("s", "s", Neighbours("/nowhere")) for _ in "ab")
    assert whole.main and grown.main
    for line in file.text().encode().splitlines(keepends=True):
        grown.main.push(line)
        grown.build()
    whole.main.push(file.text().encode())
    assert grown.build() == whole.build()


@pytest.mark.parametrize("way", ["dequeue", "absorbed", "attachment"])
def test_a_prompt_that_was_synced_while_it_waited_stands_once(way: str, tmp_path: Path) -> None:
    file = begin()
    queue(file, "enqueue", "meanwhile")
    file.result("t1")
    folder = tmp_path / "projects" / "-w"
    file.write(folder)
    db = open_database(tmp_path / "store.db", create=True)
    count = "SELECT count(*) FROM chat_parts WHERE json_extract(data_json, '$.text') = 'meanwhile'"
    count += " AND (SELECT json_extract(metadata_json, '$.queued_at') IS {} NULL"
    count += " FROM chat_messages m WHERE m.id = message_id)"

    def counted() -> tuple[int, int]:
        Sync(db).run([Target(ClaudeCodeSource(), tmp_path)])
        found = [db.connection.execute(count.format(word)).fetchone()[0] for word in ("", "NOT")]
        return found[0], found[1]

    assert counted() == (0, 1)
    if way == "dequeue":
        queue(file, "dequeue")
        file.user("meanwhile")
    else:
        queue(file, "remove", "meanwhile", reason="absorbed_mid_turn")
    if way == "attachment":
        file.row("attachment", attachment={**QUEUED, "prompt": "meanwhile"})
    end(file)
    file.write(folder)
    assert counted() == (1, 0)


def scramble(seed: int, length: int) -> File:
    """Make a session that queues, sends, takes back and rewinds at random."""
    chance = random.Random(seed)
    file = File(version=chance.choice(["2.1.80", "2.1.183", "2.1.260"]))
    file.user("start " + "x" * length)
    waiting: list[str] = []
    taken: list[str] = []
    for step in range(40):
        file.at += chance.choice([0, 1, 5])
        kind = chance.choice(["enqueue", "leave", "attach", "call", "ask", "say", "rewind"])
        if kind == "enqueue":
            waiting.append(chance.choice([f"p{step}", "go on", NOTICE]))
            queue(file, "enqueue", waiting[-1])
        elif kind == "leave" and waiting:
            prompt = waiting.pop(0)
            operation = chance.choice(["dequeue", "remove", "remove"])
            queue(file, operation, chance.choice([None, prompt]))
            if operation == "dequeue":
                file.user(prompt)
            elif chance.random() < 0.6:
                taken.append(prompt)
        elif kind == "attach" and taken:
            prompt = taken.pop(0)
            if chance.random() < 0.5:
                file.row("attachment", attachment={**QUEUED, "prompt": prompt})
            else:
                loose(file, prompt)
        elif kind == "call":
            call = chance.choice(["call_0", f"t{step}"])
            file.assistant(tool(call, command=str(step)), id=f"msg_{step}")
            file.result(call, "y" * length)
        elif kind == "ask":
            file.user(chance.choice([f"ask {step}", "go on"]))
        elif kind == "say":
            file.assistant("z" * length, id=f"msg_{step}")
        elif kind == "rewind":
            rows = [line["uuid"] for line in file.lines if line.get("uuid")]
            file.user(f"again {step}", parent=chance.choice(rows))
    return file


@pytest.mark.parametrize("length", [5, 120_000])
@pytest.mark.parametrize("seed", range(3))
@pytest.mark.one_in(3)
def test_a_library_that_follows_is_one_that_reads_at_once(
    seed: int, length: int, tmp_path: Path
) -> None:
    file = scramble(seed, length)
    lines = file.text().encode().splitlines(keepends=True)
    path = tmp_path / "projects" / "-w" / f"{file.session}.jsonl"
    path.parent.mkdir(parents=True)
    grown, fresh = (open_database(tmp_path / f"{n}.db", create=True) for n in "ab")
    target = Target(ClaudeCodeSource(), tmp_path)
    at, chance = 0, random.Random(seed)
    while at < len(lines):
        count = chance.choice([1, 2, 7])
        with path.open("ab") as out:
            out.write(b"".join(lines[at : at + count]))
        at += count
        Sync(grown).run([target])
    Sync(fresh).run([Target(ClaudeCodeSource(), tmp_path)])
    for table in ("chat_sessions", "chat_messages", "chat_parts"):
        one, other = (
            sorted(json.dumps(row) for row in db.connection.execute(f"SELECT * FROM {table}"))
            for db in (grown, fresh)
        )
        assert one == other


def test_a_shell_line_that_was_queued_is_one(tmp_path: Path) -> None:
    file = begin()
    queue(file, "enqueue", "ls -la")
    file.result("t1")
    queue(file, "remove", "ls -la")
    loose(file, "ls -la", commandMode="bash")
    end(file)
    line = read_one(file, tmp_path).messages[2]
    assert said(line) == "<bash-input>ls -la</bash-input>"
    assert line.metadata["origin"] == "shell"
    assert line.metadata["backscroll"]["shell"] == "ls -la"
