"""aider: whose a line is, by how the program ends its own.

The history is genuine (0.86.2), cut: answers with headings and quotations, an edit whose
text holds such lines, a commit message of several lines, a prompt of several lines, and
thoughts between tags.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from store.sources.aider import AiderSource
from store.sources.base.drafts import SessionDraft
from tests.sources.grown import check_records, only, prompts, words

DATA = Path(__file__).parent.parent / "data" / "aider_lines"
TAG = "thinking-content-7bbeb8e1441453ad999a0bbba8a46d4b"


@pytest.fixture(scope="module")
def draft() -> SessionDraft:
    found = only(AiderSource(), DATA / ".aider.chat.history.md")
    check_records(found)
    return found


def answers(draft: SessionDraft) -> list[str]:
    return [words(message) for message in draft.messages if message.role == "assistant"]


def test_prompts_are_those_that_the_program_marked(draft: SessionDraft) -> None:
    assert prompts(draft.messages) == [
        "please [[ahi]]",
        "edit please [[aedit]]",
        "multi\n\n#### odd\n> line [[hi]]",
    ]


def test_answers_keep_their_headings_and_quotations(draft: SessionDraft) -> None:
    assert answers(draft) == [
        "Hello there\n\n> a quote line\n\n#### A heading of mine\n\nend",
        "I change it.\n\nhello.py\n```python\n<<<<<<< SEARCH\n=======\nprint('hi')\n"
        "#### not a prompt\n> not a tool line\n>>>>>>> REPLACE\n```\n\nDone.",
        "Hello **there** 🙂 — ok",
    ]


def test_a_message_of_several_lines_is_the_programs(draft: SessionDraft) -> None:
    told = next(
        part.data["data"] for message in draft.messages for part in message.parts
        if part.data.get("data", {}).get("commits")
    )  # fmt: skip
    assert told["commits"] == [
        {"hash": "771a295", "subject": "default answer"},
        {"hash": "7e49ac2", "subject": "I change it."},
    ]
    assert told["details"].endswith("\n```\n\nDone.")
    assert told["files"] == ["hello.py"]


def test_thoughts_are_no_words_of_the_answer(draft: SessionDraft) -> None:
    last = [message for message in draft.messages if message.role == "assistant"][-1]
    assert [(part.type, part.data["text"]) for part in last.parts] == [
        ("reasoning", "I greet."), ("text", "Hello **there** 🙂 — ok")]  # fmt: skip
    assert last.metadata["usage"]["input"] == 2800


def test_without_line_breaks_beginnings_are_trusted(tmp_path: Path) -> None:
    file = tmp_path / ".aider.chat.history.md"
    text = (DATA / file.name).read_text().replace("  \n", "\n")
    file.write_text(text)
    found = only(AiderSource(), file)
    assert prompts(found.messages)[:2] == ["please [[ahi]]", "A heading of mine"]
    check_records(found)
