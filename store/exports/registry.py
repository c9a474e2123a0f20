"""The formats of ``export --to``; their modules are imported when used."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib import import_module
from typing import Any

from store.errors import Refused
from store.exports.reading import Row, SessionReading, View
from store.exports.typed import milliseconds
from store.system.files import plain_name

Writer = Callable[[SessionReading], Iterator[str]]


@dataclass(frozen=True, slots=True)
class Format:
    """An export format.

    Attributes:
        name: As in ``--to``.
        help: A short description of the output, for ``--help`` and ``docs/command-line.md``.
        suffix: The suffix of such a file.
        whole: Whether it includes every row by default, also hidden ones.
        writer: ``module:function`` of its ``Writer``.
        view: The view that it always uses; None where one may be chosen.
        named: ``module:function`` that returns the required file name, from the export's id
            and the session's ``created_at`` (epoch ms); with folders where a session is one.
        masked: Whether it is meant for other people, and secrets are masked by default.
        details: Further text for ``--help``, after ``help`` and a comma.
        several: Whether a file may hold several sessions.
        pictures: Whether it shows the pictures of a session.
    """

    name: str
    help: str
    suffix: str
    whole: bool
    writer: str
    view: View | None = None
    named: str | None = None
    masked: bool = False
    details: str = ""
    several: bool = False
    pictures: bool = False


FORMATS = {
    format.name: format
    for format in (
        Format("json", "every row, as one document", ".json", True,
               "store.exports.json_export:write_json",
               details='{"session": row, "messages": [{"message": row, "parts": [row, ...]}, ...]};'
               " a row is by column name, its JSON columns decoded and without the suffix _json"),
        Format("jsonl", "every row, one a line", ".jsonl", True,
               "store.exports.jsonl:write_jsonl",
               details='as {"type": "session", "message" or "part", "data": row}; for import'),
        Format("ui-messages", "the AI SDK's UIMessage array", ".json", False,
               "store.exports.ui_messages:write_ui_messages"),
        Format("markdown", "a readable document", ".md", False,
               "store.exports.markdown:write_markdown", masked=True,
               details="secrets masked; with its facts as front matter, and long outputs folded"),
        Format("asciicast", "a recording that plays the session in a terminal", ".cast", False,
               "store.exports.asciicast:write_asciicast", masked=True,
               details="secrets masked; asciicast v2, for `asciinema play FILE`"),
        Format("html", "one page, opened in a browser", ".html", False,
               "store.exports.html.page:write_html", masked=True, several=True, pictures=True,
               details="secrets masked; with pictures, folds, search, and dark and light; several"
               " sessions make one page"),
        Format("claude-code", "a session file that Claude Code resumes", ".jsonl", False,
               "store.exports.claude_code.chain:write_claude_code", view="resumed",
               details="with the messages that the model would be sent now; if --out is a folder,"
               " it is named by the session's UUID"),
        Format("codex", "a rollout that Codex resumes", ".jsonl", False,
               "store.exports.codex.rollout:write_codex", view="context",
               named="store.exports.codex.rollout:file_name",
               details="with the same messages as claude-code"),
        Format("opencode", "a session that opencode imports", ".json", False,
               "store.exports.opencode.session_file:write_opencode",
               details="as a new one, with `opencode import FILE`"),
        Format("gemini", "a session file that Gemini CLI resumes", ".jsonl", False,
               "store.exports.gemini.session_file:write_gemini", view="resumed",
               named="store.exports.gemini.session_file:file_name",
               details="with the same messages as claude-code; put it into the project's chats"
               " folder: if --out is that folder, it gets the right name"),
        Format("pi", "a session file that pi resumes", ".jsonl", False,
               "store.exports.pi.session_file:write_pi", view="resumed",
               named="store.exports.pi.session_file:file_name",
               details="with the same messages as claude-code; for `pi --session FILE`"),
        Format("qwen", "a session file that Qwen Code resumes", ".jsonl", False,
               "store.exports.qwen.session_file:write_qwen", view="resumed",
               details="with the same messages as claude-code; put it into the project's chats"
               " folder: if --out is that folder, it gets the right name"),
        Format("kimi", "a session that Kimi Code resumes", ".jsonl", False,
               "store.exports.kimi:write_kimi", view="resumed",
               named="store.exports.kimi:wire_name",
               details="with the same messages as claude-code; with --out and a workspace's folder"
               " of sessions it is a folder there, otherwise the conversation alone"),
        Format("continue", "a session file that Continue resumes", ".json", False,
               "store.exports.continue_dev:write_continue", view="resumed",
               details="with the same messages as claude-code; put it into the folder of sessions"
               " (if --out is that folder, it gets the right name), for `cn --fork ID`"),
        Format("cline", "a session that Cline's CLI resumes", ".json", False,
               "store.exports.cline:write_cline", view="resumed",
               named="store.exports.cline:messages_name",
               details="with the same messages as claude-code; with --out and Cline's folder of"
               " sessions it is a folder there, otherwise the messages alone"),
        Format("openhands", "a conversation that OpenHands resumes", ".json", False,
               "store.exports.openhands:write_openhands", view="resumed",
               named="store.exports.openhands:state_name",
               details="with the same messages as claude-code; put it into the folder of"
               " conversations: if --out is that folder, it gets the right name and its events"),
    )
}  # fmt: skip


def writer(name: str) -> Writer:
    """Return the writer of a format.

    Raises:
        Refused: There is no such format; the message lists the formats.
    """
    if name not in FORMATS:
        raise Refused(f"no format named {name!r}; known: {', '.join(FORMATS)}")
    found: Writer = _loaded(FORMATS[name].writer)
    return found


def file_name(format: Format, export_id: str, session: Row) -> str:
    """Return the name for a new file of a format.

    Args:
        format: The format.
        export_id: The id of the session in the new file.
        session: The session's row.
    """
    if format.named is not None:
        return str(_loaded(format.named)(export_id, milliseconds(session["created_at"])))
    name = export_id if format.view else plain_name(str(session["id"]))
    return f"{name}{format.suffix}"


def _loaded(place: str) -> Any:
    module, function = place.split(":")
    return getattr(import_module(module), function)
