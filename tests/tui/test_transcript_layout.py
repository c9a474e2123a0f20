from __future__ import annotations

import json
import re
from dataclasses import replace
from typing import Any

import pytest

from store.queries.transcript import Child
from store.rows import MessageRow, PartRow
from store.text.figures import moment
from tests.tui.seeded import START, text, tool
from tui.kit.lines import width_of
from tui.transcript.item import Around, Item, Setting
from tui.transcript.layout import PartBlock, lay_out
from tui.transcript.skeleton import HIDDEN, INHERITED, QUEUED
from tui.transcript.strips import setting_for
from tui.words.messages import clock_time


def block_of(
    part: dict[str, Any] | None, role: str = "assistant", width: int = 70,
    metadata: dict[str, Any] | None = None, setting: Setting | None = None, **item: Any,
) -> PartBlock:
    row = None if part is None else PartRow(
        "prt_1", "msg_1", "ses_1", 0, part["type"], json.dumps(part), part.get("toolCallId"),
        part.get("state"), START, START + 3200,
    )
    message = MessageRow("msg_1", "ses_1", role, "{}", None, START, START)
    own = {name: item.pop(name) for name in ("level", "pages") if name in item}
    around = Around(**{"gap": False, **item})
    given = Item(row, message, part or {}, metadata or {}, around, **own)
    return lay_out(given, setting or Setting(
        width=width, measure=60, root="/srv/api", now=START + 10_000_000))


def shown(block: PartBlock) -> list[str]:
    lines = []
    for line in block.lines:
        right = "".join(text for text, _ink in line.right)
        lines.append((line.text + ("  " + right if right else "")).rstrip())
    return lines


def test_a_prompt_has_its_name_its_time_and_its_own_lines() -> None:
    block = block_of(text("one\n  two *not bold*"), "user", heads=True)
    assert shown(block)[0].startswith("You  ")
    assert shown(block)[1:] == ["one", "  two *not bold*"]
    assert block.bar == "user"


def test_a_head_names_another_agent_and_what_its_agent_keeps() -> None:
    setting = Setting(width=70, measure=60, agent="build")

    def head(role: str, **metadata: Any) -> str:
        block = block_of(text("Hi"), role, heads=True, metadata=metadata, setting=setting)
        return shown(block)[0].rsplit("  ", 1)[0]

    assert head("user", agent="build") == "You" and head("user", agent=7) == "You"
    assert head("user", agent="plan\x1b") == "You  plan␛"
    assert head("assistant", agent="plan") == "Assistant  plan"
    assert head("user", snapshot_id="snap-1") == "You  snapshot"
    assert head("assistant", snapshot_id="snap-1") == "Assistant"
    assert head("user", backscroll={"checkpoint": {"turn": 1}}) == "You  checkpoint"
    assert head("user", backscroll={"favorite": True}) == "You ★"
    call = tool("Edit", {"file_path": "a"}, "ok")
    call["resultProviderMetadata"] = {"backscroll": {"restore_point": "point"}}
    assert "checkpoint" in shown(block_of(call))[0]


@pytest.mark.parametrize(("later", "told"), [
    (0, ""), (999, ""), (60_000, clock_time(START + 60_000)),
    (90_000_000, moment(START + 90_000_000)[:16]),
])
def test_an_event_shows_its_own_time_where_it_came_later(later: int, told: str) -> None:
    data = {"type": "data-event", "data": {"name": "signal NodeStarted", "details": {"op": "1"}}}
    at = START + later
    row = PartRow("prt_1", "msg_1", "ses_1", 0, "data-event", json.dumps(data), None, None, at, at)
    message = MessageRow("msg_1", "ses_1", "assistant", "{}", None, START, START)
    setting = Setting(width=70, measure=60)
    (line,) = lay_out(Item(row, message, data, {}, Around(gap=False)), setting).lines
    assert line.text == "▸ signal NodeStarted  op: 1"
    assert "".join(text for text, _ in line.right) == told


def test_an_answer_is_markdown_with_facts_of_its_message() -> None:
    words = ("# Plan\n\nDo *this*, `that`:\n\n1. one\n2. two\n   - inner\n\n> said\n\n"
             "```py\nx = 1\n```")
    block = block_of(text(words), heads=True, metadata={
        "model": {"provider_id": "anthropic", "model_id": "claude-sonnet-4-5-20250929"},
        "usage": {"output": 1700, "reasoning": 100},
    })
    lines = shown(block)
    assert lines[0].endswith("sonnet-4.5  1.8k out")
    assert lines[1:] == [
        "Plan", "Do this, that:", "", "  1. one", "  2. two", "     · inner", "", "│ said", "",
        "  x = 1",
    ]
    assert ("this", "text italic") in block.lines[2].runs
    assert ("that", "tool") in block.lines[2].runs


def test_a_table_gives_way_to_the_width() -> None:
    words = "| a | b |\n|---|---|\n| " + "long " * 20 + "| x |"
    block = block_of(text(words), width=40)
    assert all(len(line) <= 40 for line in shown(block))
    assert "".join(shown(block)).count("long") == 20


def test_a_link_says_where_it_leads_and_entities_bring_no_controls() -> None:
    block = block_of(text("see [here](https://example.org/x) &#x202e;evil"))
    assert "here (https://example.org/x)" in shown(block)[0]
    assert "\u202e" not in shown(block)[0]


def test_reasoning_is_its_first_line_until_it_is_opened() -> None:
    part = {"type": "reasoning", "text": "**First** I look.\nThen I act.",
            "providerMetadata": {"backscroll": {"duration_ms": 6000}}}
    folded = block_of(part)
    assert shown(folded) == ["▸ thought for 6 s  First I look. Then I act."]
    assert folded.folded
    opened = block_of(part, level="whole")
    assert shown(opened) == ["▾ thought for 6 s", "  First I look. Then I act."]


def test_a_notification_is_its_words() -> None:
    said = '<teammate-message teammate_id="a">\nlook at a <b and c> d\n</teammate-message>'
    block = block_of(text(said), "user", metadata={"origin": "notification"})
    assert [line.split("  ")[:2] for line in shown(block)] == [
        ["▸ notification", "look at a <b and c> d"]
    ]


def test_a_command_says_what_it_ran_and_how_it_ended() -> None:
    output = "Exit code 1\n" + "\n".join(f"line {n}" for n in range(20))
    part = tool("Bash", {"command": "pytest -q", "description": "x"}, output,
                state="output-error", status="error", exit_code=1, duration_ms=3200)
    block = block_of(part)
    assert shown(block) == [
        "▾ Bash pytest -q  ✗ exit 1  3.2 s", "  … 16 earlier lines", "  line 16", "  line 17",
        "  line 18", "  line 19",
    ]
    assert block.bar == "error"
    assert len(block_of(part, level="whole").lines) == 21
    assert shown(block_of(part, level="off")) == ["▸ Bash pytest -q  ✗ exit 1  3.2 s"]


def test_a_file_that_was_read_is_one_line_with_its_length() -> None:
    part = tool("Read", {"file_path": "/srv/api/src/a.py"}, "     1→import x\n     2→y",
                status="ok", duration_ms=100)
    assert shown(block_of(part)) == ["▸ Read src/a.py  ✔ 0.1 s  2 lines"]
    assert shown(block_of(part, level="whole"))[1:] == ["      1  import x", "      2  y"]


def test_an_edit_is_a_diff_with_numbers() -> None:
    patch = [{"oldStart": 41, "newStart": 41, "oldLines": 2, "newLines": 3,
              "lines": [" def f():", "-    old", "+    new", "+    more"]}]
    part = tool("Edit", {"file_path": "/srv/api/a.py", "old_string": "old", "new_string": "new"},
                "ok", duration_ms=200, structured={"structuredPatch": patch})
    block = block_of(part)
    assert shown(block) == [
        "▾ Edit a.py  +2 -1  ✔ 0.2 s", "  41   def f():", "  42 -     old", "  42 +     new",
        "  43 +     more",
    ]
    assert [line.ground for line in block.lines] == ["", "", "removed", "added", "added"]


def test_an_edit_without_a_patch_is_compared() -> None:
    given = {"file_path": "a.py", "old_string": "a\nb\nc", "new_string": "a\nB\nc"}
    part = tool("Edit", given, "ok")
    assert shown(block_of(part))[1:] == ["    a", "  - b", "  + B", "    c"]


def test_a_patch_text_is_a_diff() -> None:
    text_ = "*** Begin Patch\n*** Update File: a.py\n@@\n x\n-y\n+z\n*** End Patch"
    lines = shown(block_of(tool("apply_patch", {"input": text_}, "Done")))
    assert lines[0].startswith("▾ apply_patch")
    assert [line.strip() for line in lines[1:]] == ["… Update File: a.py", "…", "x", "- y", "+ z"]


def test_a_written_file_is_added_lines() -> None:
    part = tool("Write", {"file_path": "/srv/api/n.py", "content": "a\nb\n"}, "ok", duration_ms=1)
    assert shown(block_of(part)) == ["▾ Write n.py  +2  ✔ 1 ms", "  1 + a", "  2 + b"]


def test_todos_are_a_check_list() -> None:
    todos = [{"content": "One", "status": "completed"}, {"content": "Two", "status": "in_progress"},
             {"content": "Three", "status": "pending"}]
    block = block_of(tool("TodoWrite", {"todos": todos}, "ok", duration_ms=100))
    assert shown(block) == ["▾ TodoWrite 1 of 3 done  Two  ✔ 0.1 s", "  ✔ One", "  ◐ Two",
                            "  ○ Three"]
    why = {"plan": [{"step": "One", "status": "pending"}], "explanation": "Tests\nfirst"}
    block = block_of(tool("update_plan", why, "ok", duration_ms=100))
    assert shown(block) == ["▾ update_plan 0 of 1 done  Tests first  ✔ 0.1 s", "  ○ One"]


def test_a_subagent_call_opens_its_session() -> None:
    setting = Setting(width=70, measure=60, children=[
        Child("ses_child", "explore", "call_1", "subagent")])
    part = tool("Task", {"description": "where tokens expire", "subagent_type": "explore",
                         "prompt": "x"}, "In auth.", duration_ms=48_000)
    block = block_of(part, setting=setting)
    assert shown(block)[0] == "▾ Task explore: where tokens expire  ✔ 48 s  opens ↳"
    assert block.lines[0].fold == "child"
    elsewhere = Child("ses_child", "explore", "call_1", "subagent", "msg_2")
    block = block_of(part, setting=replace(setting, children=[elsewhere]))
    assert "opens" not in shown(block)[0]


def test_a_denied_call_and_one_without_result() -> None:
    denied = {**tool("Bash", {"command": "git push"}, state="output-denied", status="denied"),
              "approval": {"id": "1", "approved": False, "reason": "Not now."}}
    assert shown(block_of(denied)) == ["▾ Bash git push  ✗ denied", "  Not now."]
    waiting = tool("Bash", {"command": "ls"}, state="approval-requested")
    assert shown(block_of(waiting))[0].startswith("▸ Bash ls  ◐ waits for approval")
    open_ = tool("Bash", {"command": "ls"}, state="input-available")
    assert shown(block_of(open_)) == ["▸ Bash ls  ○ no result"]
    running = Setting(width=70, measure=60, now=START + 7000)
    assert shown(block_of(open_, setting=running)) == ["▸ Bash ls  ⠴ running  7 s"]


@pytest.mark.parametrize(("name", "given", "line"), [
    ("Grep", {"pattern": "TODO", "path": "/srv/api/src"}, "Grep TODO  in src"),
    ("WebFetch", {"url": "https://example.org", "prompt": "p"}, "WebFetch https://example.org"),
    ("mcp__files__stat", {"path": "/srv/api/x"}, "files stat x"),
    ("shell", {"command": ["bash", "-lc", "ls -l"]}, "shell ls -l"),
    ("run_command", {"argv": ["rm", "-rf", "x"]}, "run_command rm -rf x"),
    ("Odd", {"alpha": 1, "beta": [2, 3]}, "Odd alpha: 1, beta: 2 3"),
    ("exec", "raw words", "exec raw words"),
])
def test_no_call_shows_raw_json(name: str, given: Any, line: str) -> None:
    assert shown(block_of(tool(name, given, "")))[0][2:].startswith(line)


def test_data_parts_say_what_they_are() -> None:
    compaction = {"type": "data-compaction", "data": {
        "summary": "All is well.", "auto": True, "pre_tokens": 168_000, "post_tokens": 412}}
    assert "compacted  168k to 412 tokens  by itself" in shown(block_of(compaction))[0]
    assert shown(block_of(compaction, level="whole"))[1] == "All is well."
    error = {"type": "data-error", "data": {"message": "Overloaded", "status": 529}}
    assert shown(block_of(error)) == ["✗ error  529", "  Overloaded"]
    retry = {"type": "data-retry", "data": {"attempt": 2, "max_attempts": 10, "delay_ms": 500,
                                            "message": "busy"}}
    assert shown(block_of(retry)) == ["✗ retry  try 2 of 10  busy  again after 0.5 s"]
    image = {"type": "file", "mediaType": "image/png", "url": "data:image/png;base64," + "A" * 4000}
    assert shown(block_of(image, "user")) == ["image image/png  3.0 kB"]
    unknown = {"type": "data-weather", "data": {"a": 1}}
    assert shown(block_of(unknown))[0].startswith("▾ data-weather  unknown part")
    assert '"a": 1' in "\n".join(shown(block_of(unknown)))


def test_hidden_messages_are_one_line_until_they_are_opened() -> None:
    closed = block_of(text("gone"), "user", hidden=(4, START), flags=HIDDEN, gap=True)
    assert len(closed.lines) == 2
    assert "4 messages hidden by a rewind at" in closed.lines[1].text
    assert closed.lines[1].fold == "hidden"
    opened = block_of(text("gone"), "user", hidden=(4, START), flags=HIDDEN, gap=True,
                      opened=True, heads=True)
    assert opened.dimmed and shown(opened)[-1] == "gone"
    assert "H hides them" in opened.lines[1].text


def test_copied_messages_say_where_they_come_from() -> None:
    setting = Setting(width=70, measure=60, parent="The trunk")
    block = block_of(text("a"), "user", first_inherited=True, flags=INHERITED, gap=True,
                     setting=setting)
    assert "from The trunk" in block.lines[1].text
    assert block.dimmed and block.top == 3


def test_a_queued_prompt_is_marked() -> None:
    block = block_of(text("then\nthat"), "user", flags=QUEUED)
    assert shown(block)[0].startswith(" queued   then that")


def test_nothing_is_capped_silently() -> None:
    block = block_of(text("word " * 40_000))
    assert block.lines[-1].fold == "more"
    assert "more lines" in block.lines[-1].text
    output = "\n".join(f"row {n}" for n in range(5000))
    part = tool("Bash", {"command": "x"}, output)
    whole = block_of(part, level="whole")
    assert len(whole.lines) == 2002
    assert "3,000 more lines" in whole.lines[-1].text
    assert len(block_of(part, level="whole", pages=3).lines) == 5001
    long_line = block_of(tool("Bash", {"command": "x"}, "y" * 20_000))
    assert "19,796 more characters" in long_line.lines[-1].text


def test_session_text_cannot_steer_the_terminal() -> None:
    part = tool("Bash", {"command": "printf '\x1b]0;x\x07'"}, "\x1b[31mred\x1b[0m\x1b]0;t\x07")
    words = "\n".join(shown(block_of(part)))
    assert "\x1b" not in words and "\x07" not in words and "red" in words


@pytest.mark.parametrize("width", [40, 58, 62, 66, 80, 130])
@pytest.mark.parametrize("level", ["short", "whole"])
@pytest.mark.one_in(3)
def test_no_line_is_wider_than_its_room(width: int, level: Any) -> None:
    words = "Some **bold** words, 漢字 and `code`, that go on for a while and wrap. " * 6
    setting = replace(setting_for(width), children=[
        Child("ses_child", "explore", "t", "subagent")])
    todos = [{"content": words, "status": "pending"}]
    parts: list[dict[str, Any]] = [
        text(words + "\n\n- " + words + "\n  - " + words + "\n\n> " + words),
        text("| a | b |\n|---|---|\n| " + words + " | " + words + " |"),
        {"type": "reasoning", "text": words},
        {"type": "data-error", "data": {"message": words}},
        {"type": "data-compaction", "data": {"summary": words, "pre_tokens": 9, "auto": True}},
        {"type": "data-odd", "data": {"x": words}},
        {"type": "data-event", "data": {"name": words}},
        {"type": "data-retry", "data": {"message": words}},
        {"type": "data-plan", "data": {"plan": words}},
        tool("Bash", {"command": words}, words),
        tool("Task", {"prompt": words}, words, call="t"),
        tool("Task", {"prompt": words}, words, call="u"),
        tool("TodoWrite", {"todos": todos}, "ok"),
        tool("Edit", {"file_path": words, "old_string": words, "new_string": words + "x"}, "ok"),
        tool("ExitPlanMode", {"plan": words}, "ok"),
        tool("Read", {"file_path": "/a" * 90}, words),
    ]
    for part in parts:
        for metadata in ({}, {"origin": "meta"}, {"backscroll": {"error": words}}):
            block = block_of(part, setting=setting, level=level, heads=True, metadata=metadata,
                             last=True, new_day=True, hidden=(3, START), opened=True)
            for line in block.lines:
                taken = width_of(line.runs) + width_of(line.right)
                assert taken <= max(setting.width, 24), (part["type"], line)


def test_long_code_is_coloured_at_its_start_and_whole() -> None:
    from tui.kit.highlight import code_lines

    code = "\n".join(f"value_{n} = 'text {n}'" for n in range(2000))
    lines = code_lines(code, "python")
    assert "\n".join("".join(text for text, _ink in line) for line in lines) == code
    assert ("'text 0'", "ok") in lines[0] or any(ink == "ok" for _text, ink in lines[0])
    assert lines[-1] == [("value_1999 = 'text 1999'", "text")]
    assert code_lines("a b", "no-such-language") == [[("a b", "text")]]


def test_markup_that_the_parser_drops_is_shown_as_it_stands() -> None:
    words = "> " * 400 + "deep"
    assert "deep" in "".join(shown(block_of(text(words))))
    assert "".join(shown(block_of(text("[" * 5000)))).count("[") == 5000


def test_what_a_command_printed_keeps_its_columns_in_narrow_panes() -> None:
    table = ("NAME                 READY   STATUS    RESTARTS   AGE\n"
             "api-7d9c             1/1     Running   0          3d" + " " * 60)
    block = block_of(tool("Bash", {"command": "kubectl get pods"}, table), width=32, level="whole")
    assert shown(block)[1:] == [
        "  NAME                 READY   S", "  TATUS    RESTARTS   AGE",
        "  api-7d9c             1/1     R", "  unning   0          3d",
    ]
    assert [line.soft for line in block.lines[1:]] == [False, True, False, True]
    needle = block.hits(re.compile("STATUS"))
    assert needle.starts == [1]


def test_code_keeps_its_columns_in_narrow_panes() -> None:
    words = "```py\nvalue = {'one': 1,    'two': 2,    'three': 3}\n```"
    assert shown(block_of(text(words), width=24))[:3] == [
        "  value = {'one': 1,", "  'two': 2,    'three':", "  3}"]


@pytest.mark.parametrize(("trigger", "name"), [
    ({"source": "schedule"}, "Schedule"), ({"source": "mcp-event"}, "MCP event"),
    ({"source": "api"}, "API"), ({"source": "self-schedule"}, "Self-schedule"),
    ({"source": "nightly_job"}, "Nightly job"), ({}, "Trigger"), ({"source": 3}, "Trigger"),
    (None, "You"), ("schedule", "You"),
])
def test_a_triggered_message_names_its_source(trigger: Any, name: str) -> None:
    block = block_of(text("go"), "user", heads=True, metadata={"trigger": trigger})
    assert block.lines[0].runs[0] == (name, "user bold")


def test_what_the_user_said_during_an_answer_reads_as_theirs() -> None:
    block = block_of({"type": "steering-message", "id": "s", "parts": [
        {"type": "text", "text": "use tabs\n[b]please[/b]"},
        {"type": "file", "mediaType": "image/png", "url": "data:image/png;base64,AAAA"}, 3]})
    assert shown(block) == ["You  sent while it worked", "use tabs", "[b]please[/b]",
                            "image/png  3 B"]
    assert block.bar == "user"
    assert shown(block_of({"type": "steering-message", "id": "s"})) == [
        "You  sent while it worked"]


def test_a_part_of_a_provider_goes_by_its_kind() -> None:
    block = block_of({"type": "custom", "kind": "openai.web", "providerMetadata": {"p": {"k": 1}}})
    assert shown(block)[0].lstrip("▸ ").startswith("openai.web")


def test_a_chunk_that_was_kept_says_why() -> None:
    block = block_of({"type": "data-event", "data": {
        "name": "unknown-chunk", "reason": "chunk of unknown type media-frame",
        "chunks": [{"type": "media-frame"}]}})
    assert "unknown-chunk" in shown(block)[0]
    assert "chunk of unknown type media-frame" in shown(block)[0]
