from __future__ import annotations

import json
import re
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from store.engine.database import Database, open_database
from store.exports.markdown import _closed, _tool
from store.exports.reading import read_session
from store.exports.registry import writer
from tests.exports.exporting import exported
from tests.hostile import hostile_store
from tests.tui.seeded import tool


def test_reads_as_a_document(demo: Database) -> None:
    text = exported(demo, "retry-loop", "markdown", "display")
    assert text.startswith(
        '---\ntitle: "Retry loop in the sync worker"\nagent: "claude-code"\n')
    assert "\n---\n\n# Retry loop in the sync worker\n\n## You · " in text
    assert "\n## You · " in text and "\n## Assistant · " in text
    assert "**Bash** `pytest -q tests/sync` (failed, exit 1, 3.2 s)" in text
    assert "> *Reasoning:* " in text
    assert text.endswith(
        "\n*1 waiting prompt is left out, not sent yet.*\n\n*4 hidden messages are omitted.*\n")
    assert "waiting prompt" not in exported(demo, "retry-loop", "markdown", "all")
    assert "far too much" not in text


def test_hidden_messages_are_marked(demo: Database) -> None:
    text = exported(demo, "retry-loop", "markdown", "hidden")
    assert len(re.findall(r"^## .* \(hidden\)$", text, re.MULTILINE)) == 4


def test_the_front_matter_has_the_facts(demo: Database) -> None:
    text = exported(demo, "retry-loop", "markdown", "display")
    matter = text.split("---\n")[1]
    facts = dict(line.split(": ", 1) for line in matter.splitlines())
    assert list(facts) == ["title", "agent", "model", "workspace", "branch", "started", "ended",
                           "turns", "tokens", "cost_usd", "session"]  # fmt: skip
    assert facts["cost_usd"] == "0.4021" and facts["turns"] == "4"
    assert facts["workspace"] == '"/home/mira/code/api"' and facts["branch"] == '"main"'
    began, ended = (datetime.fromisoformat(facts[name]) for name in ("started", "ended"))
    assert (ended - began).total_seconds() == 280.0


def test_the_front_matter_holds_any_text(tmp_path: Path) -> None:
    words = 'a: "b"\n---\n# c\n- *d* \\ {e} [f] & !g | > % @ \u2028 \x1b'
    database = open_database(hostile_store(tmp_path / "h.db", [words]), write=False)
    for (one,) in database.connection.execute("SELECT id FROM chat_sessions").fetchall():
        text = "".join(writer("markdown")(read_session(database, one, "display")))
        start, matter, rest = text.split("---\n", 2)
        assert start == "" and rest.startswith("\n# ")
        for line in matter.splitlines():
            name, value = line.split(": ", 1)
            if value[0] == '"':
                assert isinstance(json.loads(value), str)
            else:
                assert re.fullmatch(r"[\d.:T+-]+", value), line
            assert name.isidentifier()
    database.close()


def test_long_output_is_folded_and_says_how_much_is_left_out(demo: Database) -> None:
    text = exported(demo, "search-page", "markdown", "display")
    assert "\n<details>\n<summary>120 lines</summary>\n\n```\n" in text
    assert "\n```\n\n</details>\n" in text
    part = {"type": "tool-Bash", "input": {}, "state": "output-available",
            "output": "\n".join(map(str, range(480)))}
    long = "".join(_tool(part, None))
    assert "<summary>480 lines</summary>" in long and "\n399\n```\n\n*80 more lines.*" in long
    assert "<details>" not in "".join(_tool({**part, "output": "a\nb"}, None))


def test_a_fence_left_open_is_closed() -> None:
    assert _closed("a\n```py\nx") == "a\n```py\nx\n```"
    assert _closed("~~~~\n```\nx\n~~~") == "~~~~\n```\nx\n~~~\n~~~~"
    for whole in ("a", "```\nx\n```", "````\n```\n````", "``` a`b ```", "    ```"):
        assert _closed(whole) == whole


def test_controls_are_neutral(demo: Database) -> None:
    text = exported(demo, "odd-text", "markdown", "display")
    assert "\x1b" not in text and "\u202e" not in text and "␛[31mred" in text


def test_code_cannot_break_out_of_its_fence() -> None:
    from store.exports.markdown import _fenced

    assert _fenced("a\n````\nb") == "\n`````\na\n````\nb\n`````\n"


def test_a_compaction_is_a_divider_with_its_summary(demo: Database) -> None:
    text = exported(demo, "search-page", "markdown", "display")
    assert "*The conversation was compacted here. Its summary:*\n\nThe search page" in text


def test_a_part_of_an_unknown_kind_is_shown(demo: Database) -> None:
    text = exported(demo, "odd-text", "markdown", "display")
    assert '**data-weather-report**\n\n```json\n{"city":"Bern"' in text


def test_words_sent_during_an_answer_are_quoted_and_triggers_named() -> None:
    from store.exports.markdown import _message, _other
    from store.exports.reading import MessageReading

    part = {"type": "steering-message", "parts": [
        {"type": "text", "text": "use tabs\nplease"}, {"type": "file"}, 3]}
    assert "".join(_other("steering-message", part)) == (
        "\n**You**, sent while it worked:\n\n> use tabs\n> please\n")
    row = {"role": "user", "created_at": None, "metadata": {"trigger": {"source": "webhook"}}}
    assert "".join(_message(MessageReading(row, []), None)) == "\n## Webhook · \n"


@pytest.mark.parametrize(("given", "written"), [
    (tool("ask_followup_question", {"question": "Which?"}, "<answer>\nBlue\n</answer>"),
     "\n> **You:** Which?  Blue\n"),
    (tool("ask_question", {"question": "Which?", "options": ["Red", "Blue"]}, "Blue"),
     "\n> **You:** Which?  Blue\n"),
    (tool("AskUserQuestion", {"questions": [{"question": "Which?"}]},
          'User has answered your questions: "Which?"="Blue". You can now continue with it.'),
     '\n> **You:** Which?  Blue\n\n```\nUser has answered your questions: "Which?"="Blue". '
     "You can now continue with it.\n```\n"),
    (tool("bash", {"command": "echo"}, "<answer>Blue</answer>"),
     "\n```\n<answer>Blue</answer>\n```\n"),
])  # fmt: skip
def test_answers_to_questions_are_the_persons_words(given: dict[str, Any], written: str) -> None:
    assert "".join(list(_tool(given, None))[1:]) == written
