from __future__ import annotations

import re

from store.engine.database import Database
from tests.exports.exporting import exported


def test_reads_as_a_document(demo: Database) -> None:
    text = exported(demo, "retry-loop", "markdown", "display")
    assert text.startswith("# Retry loop in the sync worker\n\n- agent: claude-code\n")
    assert "\n## You · " in text and "\n## Assistant · " in text
    assert "**Bash** `pytest -q tests/sync` (failed, exit 1, 3.2 s)" in text
    assert "> *Reasoning:* " in text
    assert text.endswith("*4 hidden messages are omitted.*\n")
    assert "far too much" not in text


def test_hidden_messages_are_marked(demo: Database) -> None:
    text = exported(demo, "retry-loop", "markdown", "hidden")
    assert len(re.findall(r"^## .* \(hidden\)$", text, re.MULTILINE)) == 4


def test_long_output_says_how_much_is_left_out(demo: Database) -> None:
    assert "*80 more lines.*" in exported(demo, "search-page", "markdown", "display")


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
