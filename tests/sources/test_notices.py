"""What programs and other agents say reads as text, its point first."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from store.sources.base.notices import is_context, review, told
from tests.sources import codex_lines
from tests.sources.claude_rows import File, read_one

TASK = (
    "<task-notification>\n<task-id>b1</task-id>\n<tool-use-id>toolu_1</tool-use-id>\n"
    "<status>completed</status>\n<summary>Command &quot;make &amp;&amp; test&quot; completed"
    "</summary>\n<result>All &lt;ok&gt;\ntwo</result>\n</task-notification>\nRead the output."
)
TASK_TOLD = (
    'Command "make && test" completed\nAll <ok>\ntwo\n\ntask id: b1\ntool use id: toolu_1\n'
    "status: completed\nRead the output."
)
FINDINGS = {
    "findings": [
        {"title": "[P1] Bad", "body": "why\nthis", "priority": 1, "code_location": {
            "absolute_file_path": "/a.py", "line_range": {"start": 1, "end": 3}}},
        {"title": "[P2] Other", "body": "", "code_location": None},
    ],
    "overall_correctness": "patch is incorrect",
    "overall_explanation": "It breaks.",
}  # fmt: skip
REVIEW = (
    "It breaks.\npatch is incorrect\n\n- [P1] Bad (/a.py:1-3)\n  why\n  this\n\n- [P2] Other"
)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (TASK, TASK_TOLD),
        ('<teammate-message teammate_id="a" color="blue" summary="Look">\nat a <b> &amp; c\n'
         "</teammate-message>", "Look\nat a <b> & c\n\nteammate id: a"),
        ('Another Claude session sent a message:\n<teammate-message teammate_id="a">\n'
         '{"type":"idle_notification","from":"a","summary":"did &amp; done"}\n'
         '</teammate-message>\n\n<teammate-message teammate_id="b">two</teammate-message>',
         "did & done\n\ntype: idle_notification\nfrom: a\nteammate id: a\ntwo\n\nteammate id: b\n"
         "Another Claude session sent a message:"),
        ('<subagent_notification>\n{"agent_id":"x","status":{"completed":"All &amp; done"}}\n'
         "</subagent_notification>", "All & done\n\nagent id: x"),
        ('{"type":"x","message":"hi"}', "hi\n\ntype: x"),
        ("<channel source='slack'>ping</channel>", "ping\n\nsource: slack"),
        ("<a>unclosed", "<a>unclosed"),
        ('<teammate-message teammate_id="a">{"type":"task_assignment","subject":"Fix &amp; go",'
         '"description":"soon"}</teammate-message>',
         "Fix & go\nsoon\n\ntype: task_assignment\nteammate id: a"),
        ("[SYSTEM NOTIFICATION - NOT USER INPUT]\nNo person wrote this.\n<task-notification>"
         "<summary>Done</summary></task-notification>",
         "Done\n[SYSTEM NOTIFICATION - NOT USER INPUT]\nNo person wrote this."),
        ("words <a>b</a>", "words <a>b</a>"),
        ("", ""),
    ],
)  # fmt: skip
def test_the_point_comes_first(text: str, expected: str) -> None:
    assert told(text) == expected


def test_hostile_blocks_cost_no_more_than_their_length() -> None:
    for text in ("<a>" * 100_000, "<a></a>" * 100_000, "<a " + "b='" * 100_000, "{" * 100_000,
                 " " * 100_000 + "<a", ("x" * 200 + "\n") * 1000 + ":"):  # fmt: skip
        assert isinstance(told(text), str)


def test_reviews_are_words() -> None:
    assert review(json.dumps(FINDINGS)) == REVIEW
    assert review('{"findings": []}') is None
    assert review("It is fine.") is None


def test_a_review_within_a_notice_is_words() -> None:
    results = f"<results>{json.dumps(FINDINGS)}</results>"
    text = f"<user_action><action>review</action>{results}</user_action>"
    assert told(text).startswith(REVIEW)


def test_the_text_of_injected_files_comes_before_its_heading() -> None:
    text = "# AGENTS.md instructions for /w\n\n<INSTRUCTIONS>\nBe good\n</INSTRUCTIONS>"
    assert told(text) == "Be good\n# AGENTS.md instructions for /w"
    assert told("<skill>\n<name>x</name>\nbody\n</skill>") == "body\n\nname: x"


def test_which_blocks_are_context() -> None:
    assert is_context("<session-start-hook>x</session-start-hook>")
    assert is_context("\n<environment_context>x")
    assert is_context("<skill>x</skill>")
    assert is_context("# AGENTS.md instructions for /w\n\n<INSTRUCTIONS>x</INSTRUCTIONS>")
    assert not is_context("<div>x</div>") and not is_context("# Title")


def test_claude_notices_and_context(tmp_path: Path) -> None:
    file = File()
    file.user("<session-start-hook>\nremember &amp; go\n</session-start-hook>", isMeta=True)
    file.user("go")
    file.user(TASK, origin={"kind": "task-notification"})
    file.row("attachment", attachment={"type": "queued_command", "prompt": TASK,
                                       "commandMode": "task-notification"})  # fmt: skip
    file.user("# Skill\n<example>x &amp; y</example>", isMeta=True)
    texts = [part.data["text"] for m in read_one(file, tmp_path).messages for part in m.parts]
    assert texts == [
        "remember & go", "go", TASK_TOLD, TASK_TOLD, "# Skill\n<example>x &amp; y</example>",
    ]  # fmt: skip


def test_codex_reviews(tmp_path: Path) -> None:
    lines = codex_lines.Lines(codex_lines.thread_id(1))
    lines.user("review it")
    lines.says(json.dumps(FINDINGS))
    lines.event("exited_review_mode", review_output=FINDINGS)
    action = "<user_action>\n<context>User started a review.</context>\n<action>review</action>\n"
    lines.user(f"{action}<results>\nIt &amp; breaks.\n</results>\n</user_action>", event=False)
    draft = codex_lines.read_one(lines, tmp_path)
    _, said, left, told_of = draft.messages
    assert said.parts[0].data["text"] == REVIEW
    assert left.parts[0].data["data"] == {"name": "exited_review_mode", "details": REVIEW}
    assert told_of.metadata["origin"] == "notification"
    assert told_of.parts[0].data["text"].startswith("It & breaks.")
    assert draft.title == "review it"
