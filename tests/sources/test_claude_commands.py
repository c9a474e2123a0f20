"""Slash commands, titles, call ids and rows without ids or parents."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.sources.cases import case_drafts
from tests.sources.claude_rows import File, read, read_one, said, shape, tool


def command(name: str, args: str = "", *, message_first: bool = True) -> str:
    message, called = f"<command-message>{name}</command-message>", (
        f"<command-name>/{name}</command-name>")
    first, second = (message, called) if message_first else (called, message)
    return f"{first}\n{second}" + (f"\n<command-args>{args}</command-args>" if args else "")


def turns(draft: Any) -> list[str]:
    return [said(m) for m in draft.messages if m.metadata.get("origin") == "human"]


def test_a_command_with_arguments_is_a_prompt(tmp_path: Path) -> None:
    (draft,) = case_drafts("06-slash-command-with-arguments/08-slash-first", tmp_path)
    assert draft.title == "/review the login module"
    assert turns(draft) == ["/review the login module", "thanks"]


@pytest.mark.parametrize("message_first", [True, False])
@pytest.mark.parametrize("args", ["", "the <b> & c", "two\nlines"])
def test_a_command_that_is_expanded_is_a_prompt(
    args: str, message_first: bool, tmp_path: Path
) -> None:
    file = File()
    file.user(command("my:check", args, message_first=message_first))
    file.user([{"type": "text", "text": "Check it."}], isMeta=True)
    file.assistant("ok", id="msg_1")
    file.user("next")
    draft = read_one(file, tmp_path)
    assert turns(draft) == [f"/my:check {args}".strip(), "next"]
    assert draft.title == " ".join(f"/my:check {args}".split())


def test_a_command_without_an_answer_yet(tmp_path: Path) -> None:
    file = File()
    file.user(command("fix", "it"))
    assert turns(read_one(file, tmp_path)) == ["/fix it"]


@pytest.mark.parametrize("name", ["model", "compact"])
@pytest.mark.parametrize("follows", ["output", "answer", "nothing"])
def test_a_local_command_is_no_prompt(name: str, follows: str, tmp_path: Path) -> None:
    file = File()
    file.user("<local-command-caveat>Caveat</local-command-caveat>", isMeta=True)
    file.user(command(name, "opus", message_first=False))
    if follows == "output":
        file.user("<local-command-stdout>Set</local-command-stdout>")
    file.user("real work") if follows != "answer" else file.assistant("x", id="msg_0")
    draft = read_one(file, tmp_path)
    assert turns(draft) == ["real work"] * (follows != "answer")
    assert draft.title == ("real work" if follows != "answer" else f"/{name} opus")


def test_a_command_of_its_own_with_output_is_local(tmp_path: Path) -> None:
    file = File()
    file.user(command("weather", "here", message_first=False))
    file.user("<local-command-stdout>rain</local-command-stdout>")
    file.user("why?")
    assert turns(read_one(file, tmp_path)) == ["why?"]


def test_a_skill_that_the_agent_loads_is_no_prompt(tmp_path: Path) -> None:
    file = File()
    file.user("make a pdf")
    file.user(
        '<command-message>The "pdf" skill is loading</command-message>\n'
        "<command-name>pdf</command-name>"
    )
    file.user([{"type": "text", "text": "Base directory"}], isMeta=True)
    file.assistant("ok", id="msg_1")
    assert turns(read_one(file, tmp_path)) == ["make a pdf"]


@pytest.mark.parametrize(
    ("case", "titles"),
    [
        ("11-continuation-title/09-continued", ["now print the tide table", "show the moon"]),
        ("14-hook-output-in-title/23-hooks", ["fix the test"]),
        ("04-codex-ide-wrapper/01-ide-context", ["Rename the parser to lexer"]),
        ("04-codex-ide-wrapper/57-ide-multi", ["first ask"]),
    ],
)
def test_titles_are_the_persons_requests(case: str, titles: list[str], tmp_path: Path) -> None:
    drafts = case_drafts(case, tmp_path)
    assert sorted(draft.title or "" for draft in drafts) == titles


def test_the_summary_of_a_continuation_is_no_prompt(tmp_path: Path) -> None:
    for draft in case_drafts("11-continuation-title/09-continued", tmp_path):
        assert len(turns(draft)) == 1
        assert draft.messages[0].parts[0].type == "data-compaction"


def test_what_stands_around_a_prompt_comes_after_it(tmp_path: Path) -> None:
    (draft,) = case_drafts("14-hook-output-in-title/23-hooks", tmp_path)
    (prompt,) = [m for m in draft.messages if m.metadata.get("origin") == "human"]
    assert [part.data.get("text") or part.data["data"] for part in prompt.parts] == [
        "fix the test",
        {"name": "user-prompt-submit-hook", "details": "branch is main"},
    ]


@pytest.mark.parametrize(
    "text",
    [
        "<system-reminder>\nx\n</system-reminder>\nfix it",
        "fix it\n\n<system-reminder>\nx <b>y</b>\n</system-reminder>",
        "<ide_opened_file>a.py</ide_opened_file><session-start-hook>r</session-start-hook>fix it",
        "<user-prompt-submit-hook>a</user-prompt-submit-hook>\r\nfix it\r\n",
    ],
)
def test_wrappers_are_no_title(text: str, tmp_path: Path) -> None:
    file = File()
    file.user(text)
    file.assistant("ok", id="msg_1")
    draft = read_one(file, tmp_path)
    assert draft.title == "fix it"
    assert said(draft.messages[0]).split("|")[0].strip() == "fix it"


def test_call_ids_may_start_anew_in_each_answer(tmp_path: Path) -> None:
    (draft,) = case_drafts("16-call-ids-repeated", tmp_path)
    outputs = [p.data["output"] for m in draft.messages for p in m.parts if p.tool_call_id]
    assert outputs == ["out one", "out two", "out three"]


def test_results_of_equal_ids_go_to_the_answer_that_they_follow(tmp_path: Path) -> None:
    file = File()
    file.user("go")
    first = file.assistant(tool("call_0", command="1"), id="msg_1")
    second = file.assistant(tool("call_0", command="2"), id="msg_2", parent=first)
    file.result("call_0", "of one", parent=first, sourceToolAssistantUUID=first)
    file.result("call_0", "of two", parent=second)
    third = file.assistant(tool("call_0", command="3"), tool("call_1", command="4"), id="msg_3")
    file.result("call_1", "of four", parent=third)
    file.result("call_0", "of three")
    draft = read_one(file, tmp_path)
    found = [(p.data["input"]["command"], p.data["output"])
             for m in draft.messages for p in m.parts if p.tool_call_id]
    assert found == [("1", "of one"), ("2", "of two"), ("3", "of three"), ("4", "of four")]


def test_a_result_before_its_call_waits_for_its_own_answer(tmp_path: Path) -> None:
    file = File()
    file.user("go")
    file.assistant(tool("call_0"), id="msg_1")
    file.result("call_0", "one")
    file.result("call_0", "two", sourceToolAssistantUUID="later")
    file.assistant(tool("call_0"), id="msg_2", uuid="later")
    draft = read_one(file, tmp_path)
    outputs = [p.data["output"] for m in draft.messages for p in m.parts if p.tool_call_id]
    assert outputs == ["one", "two"]


@pytest.mark.parametrize("without", [("parentUuid",), ("uuid",), ("uuid", "parentUuid")])
def test_rows_without_ids_are_in_file_order(without: tuple[str, ...], tmp_path: Path) -> None:
    file = File(version="1.0.20")
    for number in range(3):
        file.user(f"q{number}")
        file.assistant(tool("t", command=str(number)), id=f"msg_{number}")
        file.result("t", f"r{number}")
        file.assistant(f"a{number}", id=f"msg_{number}b")
    for line in file.lines:
        for key in without:
            del line[key]
    draft = read_one(file, tmp_path)
    assert [text for _, text in shape(draft)] == [
        text for number in range(3) for text in (f"q{number}", "tool-Bash", f"a{number}")
    ]
    outputs = [p.data["output"] for m in draft.messages for p in m.parts if p.tool_call_id]
    assert outputs == ["r0", "r1", "r2"]
    assert len({message.source_id for message in draft.messages}) == len(draft.messages)


def test_an_event_without_an_id_is_shown(tmp_path: Path) -> None:
    file = File()
    file.user("go")
    file.row("system", subtype="informational", content="blocked by a hook")
    del file.lines[-1]["uuid"]
    assert shape(read_one(file, tmp_path))[1] == ("system", "blocked by a hook")


@pytest.mark.parametrize(
    ("text", "origin"),
    [
        ("Stop hook feedback:\n- failed", "meta"),
        ("Caveat: The messages below were generated by the user while running local commands.",
         "meta"),
        ('Another Claude session sent a message:\n<teammate-message teammate_id="a">hi'
         "</teammate-message>", "notification"),
        ("Another thing", "human"),
    ],
)  # fmt: skip
def test_words_of_programs_are_no_prompts(text: str, origin: str, tmp_path: Path) -> None:
    file = File()
    file.user(text)
    draft = read_one(file, tmp_path)
    assert draft.messages[0].metadata["origin"] == origin


IMAGE = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "AA"}}
REMINDER = {"type": "text", "text": "<system-reminder>x</system-reminder>"}


@pytest.mark.parametrize("blocks", [
    [REMINDER, IMAGE],
    [{"type": "text", "text": "This session is being continued from a previous conversation."},
     {"type": "text", "text": "go on with x"}],
])
def test_what_a_person_sent_beside_fixed_text_is_a_prompt(
    blocks: list[dict[str, Any]], tmp_path: Path
) -> None:
    file = File()
    file.user(blocks)
    assert len(turns(read_one(file, tmp_path))) == 1


def test_null_parents_everywhere_are_no_rewinds(tmp_path: Path) -> None:
    file = File()
    for number in range(3):
        file.user(f"q{number}", parent=None)
        file.assistant(f"a{number}", id=f"msg_{number}", parent=None)
    assert len(shape(read_one(file, tmp_path))) == 6


def test_some_rows_without_parents_hide_nothing(tmp_path: Path) -> None:
    file = File()
    file.user("q0")
    file.assistant("a0", id="msg_0")
    file.user("q1")
    file.assistant("a1", id="msg_1")
    del file.lines[2]["parentUuid"]
    drafts, _ = read(file.write(tmp_path))
    assert len(shape(drafts[file.session])) == 4


def test_a_rewind_to_the_first_prompt_still_hides(tmp_path: Path) -> None:
    file = File()
    file.user("q0")
    file.assistant("a0", id="msg_0")
    file.user("instead", parent=None)
    file.assistant("a1", id="msg_1")
    assert [text for _, text in shape(read_one(file, tmp_path))] == ["instead", "a1"]


WRAPPED = (
    "<ide_opened_file>a.py</ide_opened_file>\n<user-prompt-submit-hook>main</user-prompt-submit"
    "-hook>\n<system-reminder>r</system-reminder>\n"
)


@pytest.mark.parametrize("apart", [False, True])
@pytest.mark.parametrize(
    ("text", "origin", "shown"),
    [
        (command("review", "the parser"), "human", "/review the parser"),
        ("<bash-input>ls</bash-input>", "shell", "<bash-input>ls</bash-input>"),
        ("<task-notification><summary>done</summary></task-notification>", "notification", "done"),
        (command("model", "opus"), "command", command("model", "opus")),
    ],
)
def test_what_programs_put_before_a_command_changes_nothing(
    text: str, origin: str, shown: str, apart: bool, tmp_path: Path
) -> None:
    file = File()
    blocks = [{"type": "text", "text": WRAPPED}, {"type": "text", "text": text}]
    file.user(blocks if apart else WRAPPED + text)
    file.assistant("ok", id="msg_1")
    message = read_one(file, tmp_path).messages[0]
    assert message.metadata["origin"] == origin
    assert [part.data.get("text", part.type) for part in message.parts] == [
        shown, *["data-event"] * 3,
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("<bash-stdout>a &amp;&amp; &lt;b&gt;</bash-stdout><bash-stderr></bash-stderr>",
         "a && <b>"),
        ("<bash-stdout>out\n</bash-stdout><bash-stderr>err &quot;x&quot;\n</bash-stderr>",
         'out\nerr "x"'),
        # Earlier versions wrote what was printed as it was.
        ("<bash-stdout>if a < b: &amp;</bash-stdout>", "if a < b: &amp;"),
        ("<bash-stdout>a & &lt;</bash-stdout>", "a & &lt;"),
        ("<bash-stdout>&copy; &amp;amp;</bash-stdout>", "&copy; &amp;amp;"),
        ("<bash-stdout></bash-stdout><bash-stderr></bash-stderr>", ""),
        ("<bash-stdout>a</bash-stdout> and more", "<bash-stdout>a</bash-stdout> and more"),
        ("<local-command-stdout>Set &amp; done</local-command-stdout>", "Set & done"),
    ],
)
def test_what_a_command_printed_is_text(text: str, shown: str, tmp_path: Path) -> None:
    file = File()
    file.user(text)
    file.row("system", subtype="local_command", content=text)
    assert [said for _, said in shape(read_one(file, tmp_path))] == [shown or "text"] * 2


def test_a_shell_line_is_the_one_that_was_typed(tmp_path: Path) -> None:
    file = File()
    file.user("<bash-input>grep &quot;a&quot; b &amp;&amp; ls</bash-input>")
    assert read_one(file, tmp_path).messages[0].metadata["backscroll"] == {
        "shell": 'grep "a" b && ls'}
