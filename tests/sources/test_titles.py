"""Titles: the person's request, by one rule for every source."""

from __future__ import annotations

import sqlite3
from pathlib import Path
from typing import Any

import pytest

from store.sources.base.drafts import MessageDraft, SessionDraft
from store.sources.base.plain_parts import text_part
from store.sources.base.requests import prompt_parts, request_of, split_request
from store.sources.base.titles import TITLE_LENGTH, first_prompt
from store.sources.lionagi.session import title_of
from store.sync.prepared import prepare
from tests.sources.codex_lines import Lines, read

A = "019ae0a0-0000-7000-8000-00000000000a"
IDE = "# Context from my IDE setup:\n\n## Active file: a.ts\n\n## My request for Codex:\n"
NESTED = "<system-reminder>a <system-reminder x='1'>b</system-reminder> c</system-reminder>"


def message(text: str, origin: str | None = "human", **metadata: Any) -> MessageDraft:
    return MessageDraft("m", "user", 1, 1, {"origin": origin, **metadata}, [text_part(text, 1)])


@pytest.mark.parametrize(
    ("text", "request_"),
    [
        ("fix it", "fix it"),
        (f"{IDE}fix it\n", "fix it"),
        (f"{IDE}fix it\n".replace("\n", "\r\n"), "fix it"),
        (f"# Files mentioned by the user:\n\n## a.png: /x/a.png\n\n{IDE[30:]}fix it", "fix it"),
        (f"{IDE}fix it\n\n## My request for Codex:\nis a heading", "fix it\n\n## My request for"
         " Codex:\nis a heading"),
        (IDE, ""),
        ("# Context from my IDE setup:\nwithout a heading",
         "# Context from my IDE setup:\nwithout a heading"),
        ("# Files are too large\nfix it", "# Files are too large\nfix it"),
        ("<system-reminder>r</system-reminder>", ""),
        ("<system-reminder>r</system-reminder>fix<system-reminder>s</system-reminder>", "fix"),
        ("<ide_selection>a</ide_selection>\n<ide_diagnostics>b</ide_diagnostics> fix", "fix"),
        ("<user-prompt-submit-hook>x</user-prompt-submit-hook>fix", "fix"),
        ("<environment_context>\n<cwd>/w</cwd>\n</environment_context>\nfix", "fix"),
        ("<task>\nfix it\n</task>\n<environment_details>e</environment_details>", "fix it"),
        ("This session is being continued from a previous conversation that ran out", ""),
        ("Stop hook feedback:\n- failed", ""),
        (f"{NESTED}\nfix", "fix"),
        (f"fix {NESTED}", "fix"),
        (f"{NESTED}{NESTED}fix{NESTED}\n{NESTED}", "fix"),
        ("<system-reminder>a <system-reminder>b</system-reminder> fix", "fix"),
        ("fix <system-reminder>a</system-reminder> b</system-reminder>", "fix"),
        ("<system-reminder>a</system-reminder >fix", "<system-reminder>a</system-reminder >fix"),
        ("<new-diagnostics>a.ts: 1 error</new-diagnostics>\nfix", "fix"),
        ("fix\n<total_tokens>12 tokens left</total_tokens>", "fix"),
        ('<mcp-resource server="s" uri="u://x">r</mcp-resource>fix', "fix"),
        ("<mcp-resource> is what?", "<mcp-resource> is what?"),
        ("what does <system-reminder> mean?", "what does <system-reminder> mean?"),
        ("<div>fix this</div>", "<div>fix this</div>"),
    ],
)  # fmt: skip
def test_the_request_in_a_prompt(text: str, request_: str) -> None:
    assert request_of(text) == request_


def test_nothing_of_a_prompt_is_lost() -> None:
    split = split_request(f"<system-reminder>r</system-reminder>{IDE}fix it")
    assert split.request == "fix it"
    assert split.context == [
        ("system-reminder", "r"),
        ("ide context", "# Context from my IDE setup:\n\n## Active file: a.ts"),
    ]
    parts = prompt_parts([text_part(f"{IDE}fix", 1, 7), text_part("plain", 1, 8)])
    assert [part.type for part in parts] == ["text", "text", "data-event"]
    assert [part.records for part in parts] == [(7,), (8,), (7,)]


def test_what_a_block_says_is_kept_with_its_attributes() -> None:
    split = split_request(f'<mcp-resource server="s">r</mcp-resource>fix{NESTED}')
    assert split.context == [
        ("mcp-resource", 'server="s"\nr'),
        ("system-reminder", "a <system-reminder x='1'>b</system-reminder> c"),
    ]


def test_long_wrappers_cost_no_more_than_their_length() -> None:
    many = "<system-reminder>" * 20_000
    blocks = "".join(f"<{chr(97 + n % 26)}{'b' * (n % 50)}-hook>" for n in range(20_000))
    spaces = " " * 200_000
    for text in (
        f"{many}x</system-reminder>", f"fix {many}</system-reminder>", f"fix {blocks}</a-hook>",
        f"{blocks}</a-hook>", f"fix{spaces}x</a-hook>", f"<task>{spaces}x", f"{spaces}>",
        "<a-hook></a-hook>" * 20_000,
    ):  # fmt: skip
        assert split_request(text).request in text
        assert request_of(text) in text


@pytest.mark.parametrize(
    ("messages", "title"),
    [
        ([message("<system-reminder>r</system-reminder>", "meta"), message("fix")], "fix"),
        ([message("", "command", backscroll={"command": {"name": "/model", "args": "x"}}),
          message("fix")], "fix"),
        ([message("", "command", backscroll={"command": {"name": "/model", "args": "x"}})],
         "/model x"),
        ([message("", "shell", backscroll={"shell": "ls"})], "! ls"),
        ([message("<teammate-message id='a'>hello</teammate-message>", "notification")],
         "hello"),
        ([message("gone", hidden_at=5), message("fix")], "fix"),
        ([message("gone", hidden_at=5)], "gone"),
        ([message("a\n\n b")], "a b"),
        ([message("x" * 999)], "x" * (TITLE_LENGTH - 1) + "…"),
        ([message("long form", backscroll={"display": "/short"})], "/short"),
        ([], None),
    ],
)  # fmt: skip
def test_the_first_prompt(messages: list[MessageDraft], title: str | None) -> None:
    assert first_prompt(messages) == title


@pytest.mark.parametrize(
    ("title", "expected"),
    [
        ("Codex's own", ("Codex's own", "title")),
        (f"{IDE}shown in the list", ("shown in the list", "title")),
        (f"{IDE}ask", ("ask", "first-prompt")),
        ("", ("ask", "first-prompt")),
        (None, ("ask", "first-prompt")),
    ],
)
def test_codex_has_a_title_of_its_own(
    title: str | None, expected: tuple[str, str], tmp_path: Path
) -> None:
    lines = Lines(A)
    lines.turn(f"{IDE}ask", "done", "r1")
    lines.write(tmp_path)
    with sqlite3.connect(tmp_path / "state_5.sqlite") as database:
        database.execute("CREATE TABLE threads (id TEXT, title TEXT)")
        database.execute("INSERT INTO threads VALUES (?, ?)", (A, title))
    database.close()
    drafts, _ = read(tmp_path)
    assert (drafts[A].title, drafts[A].title_from) == expected
    (prompt,) = [m for m in drafts[A].messages if m.metadata.get("origin") == "human"]
    assert [part.data.get("text") for part in prompt.parts] == ["ask", None]


@pytest.mark.parametrize(
    ("row", "name"),
    [
        ({"user_label": " mine ", "show_play_name": "p"}, ("mine", "user-label")),
        ({"show_topic": "t", "show_play_name": "p", "agent_name": "a"}, ("p", "show")),
        ({"agent_name": "codex", "started_at": 1789913600.0}, ("codex · abcd · 14:13", "agent")),
        ({"agent_name": "codex", "name": "x"}, ("codex · abcd", "agent")),
        ({"name": "| Guidance: LION_SYSTEM_MESSAGE --- # Role Task: do it"}, ("do it", "name")),
        ({"name": "fix https://x/y"}, ("fix https://x/y", "name")),
        ({"name": "y" * 90}, ("y" * 79 + "…", "name")),
        ({"name": "Codex Session"}, ("ef1234567890", "id")),
        ({"name": "LION_SYSTEM_MESSAGE"}, ("ef1234567890", "id")),
        ({"name": "agent"}, ("ef1234567890", "id")),
    ],
)
def test_lionagi_names_its_runs(row: dict[str, Any], name: tuple[str, str]) -> None:
    assert title_of({"id": "abcd0000-0000-0000-0000-abcdef1234567890"[:24] + "ef1234567890",
                     **row}) == name  # fmt: skip


REMINDER = "<system-reminder>be careful</system-reminder>"


@pytest.mark.parametrize(
    ("title", "came", "shown"),
    [
        ("Made by a model", "title", ("Made by a model", "title")),
        (f"{REMINDER}\nfix it", "title", ("fix it", "title")),
        (f"{IDE}fix it", "name", ("fix it", "name")),
        (f"<task>\nfix {'x' * 3}", "title", ("fix xxx", "title")),
        (f"fix it {REMINDER}", "last-prompt", ("fix it", "last-prompt")),
        (REMINDER, "title", ("asked", "first-prompt")),
        ("<user-prompt-submit-hook>ran the", "title", ("asked", "first-prompt")),
        ("# Context from my IDE setup: ## Active f", "title", ("asked", "first-prompt")),
        ("This session is being continued from a previous conversation that", "title",
         ("asked", "first-prompt")),
        ("what does <system-reminder> mean?", "title",
         ("what does <system-reminder> mean?", "title")),
        ("<div>a  b</div>", "title", ("<div>a  b</div>", "title")),
        (REMINDER, "custom-title", (REMINDER, "custom-title")),
        (None, None, (None, None)),
    ],
)  # fmt: skip
def test_a_stored_title_is_the_request_too(
    title: str | None, came: str | None, shown: tuple[str | None, str | None]
) -> None:
    draft = SessionDraft(
        "s", "/s", "llm", 1, 1, title=title, title_from=came, messages=[message("asked")])
    metadata = prepare("llm", draft, keep_originals=False).metadata
    assert (metadata.get("title"), metadata.get("title_from")) == shown
