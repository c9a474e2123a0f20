"""The formats that ``export --to`` knows: one entry each, their code loaded when used."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib import import_module

from store.errors import Refused
from store.exports.reading import SessionReading

Writer = Callable[[SessionReading], Iterator[str]]


@dataclass(frozen=True, slots=True)
class Format:
    """One format.

    Attributes:
        name: As in ``--to``.
        help: What comes out, in a few words.
        suffix: The usual end of such a file's name.
        whole: Whether it holds every row, hidden ones too, unless a view is asked for.
        writer: ``module:function`` of its ``Writer``.
        context: Whether it is always made of the context view.
    """

    name: str
    help: str
    suffix: str
    whole: bool
    writer: str
    context: bool = False


FORMATS = {
    format.name: format
    for format in (
        Format("json", "every row, as one document", ".json", True,
               "store.exports.json_export:write_json"),
        Format("jsonl", "every row, one a line; what import reads", ".jsonl", True,
               "store.exports.jsonl:write_jsonl"),
        Format("ui-messages", "the AI SDK's UIMessage array", ".json", False,
               "store.exports.ui_messages:write_ui_messages"),
        Format("markdown", "a readable document", ".md", False,
               "store.exports.markdown:write_markdown"),
        Format("claude-code", "a session file that Claude Code resumes", ".jsonl", False,
               "store.exports.claude_code.chain:write_claude_code", context=True),
        Format("codex", "a rollout that Codex resumes", ".jsonl", False,
               "store.exports.codex.rollout:write_codex", context=True),
        Format("opencode", "a session that opencode imports", ".json", False,
               "store.exports.opencode.session_file:write_opencode"),
        Format("gemini", "a session file that Gemini CLI resumes", ".jsonl", False,
               "store.exports.gemini.session_file:write_gemini", context=True),
    )
}  # fmt: skip


def writer(name: str) -> Writer:
    """Return the writer of a format.

    Raises:
        Refused: There is no such format; the message names those there are.
    """
    if name not in FORMATS:
        raise Refused(f"there is no format {name!r}; there are {', '.join(FORMATS)}")
    module, function = FORMATS[name].writer.split(":")
    found: Writer = getattr(import_module(module), function)
    return found
