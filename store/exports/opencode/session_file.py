"""Makes the JSON document for ``opencode import``."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from store.exports.agent_file import title_of
from store.exports.kept_records import KeptRecords
from store.exports.opencode.ids import Ids
from store.exports.opencode.messages import Messages
from store.exports.reading import Row, SessionReading
from store.exports.typed import typed
from store.system.clock import Clock, system_clock
from store.text.exact_json import encode_for_output

VERSION = "1.18.33"
"""The newest version whose import was tested."""
_INDENT = "  "


@dataclass(frozen=True, slots=True)
class OpencodeFile:
    """A session file for opencode.

    Attributes:
        session_id: The new session's id: the argument of ``opencode --session``.
        cwd: The session's folder, from which to import it.
        document: ``{info, messages}``.
        prompt: An unanswered last prompt that is not in the document; None otherwise.
    """

    session_id: str
    cwd: str
    document: dict[str, Any]
    prompt: str | None = None

    @property
    def lines(self) -> list[str]:
        """The document as text, one message per line; empty without messages."""
        messages = self.document["messages"]
        if not messages:
            return []
        return [*document_lines(self.document)]


def write_opencode(reading: SessionReading) -> Iterator[str]:
    """Yield a file for ``opencode import``, one message per line."""
    made = opencode_file(reading)
    reading.agent_id = made.session_id if made.lines else None
    for line in document_lines(made.document):
        yield f"{line}\n"


def document_lines(document: dict[str, Any]) -> Iterator[str]:
    """Yield a document's lines without newlines."""
    messages = document["messages"]
    yield f'{{"info":{encode_for_output(document["info"])},"messages":['
    for place, message in enumerate(messages, start=1):
        yield f"{_INDENT}{encode_for_output(message)}{',' if place < len(messages) else ''}"
    yield "]}"


def opencode_file(
    reading: SessionReading,
    *,
    cwd: str | None = None,
    hand_over_prompt: bool = False,
    clock: Clock = system_clock,
) -> OpencodeFile:
    """Return a session as a document that opencode imports.

    Its creation time is the time of the export, like a fork's, so that copied messages are
    older than the session and new ones are not.

    Args:
        reading: The session.
        cwd: The folder; None for the session's workspace.
        hand_over_prompt: Whether to leave out an unanswered last prompt, to pass it on the
            command line.
        clock: Returns the current time as epoch ms.
    """
    now, reading = clock(), typed(reading)
    ids, session = Ids(reading.export_id, now), reading.session
    made = Messages(ids, session, KeptRecords(reading, "opencode"))
    for item in reading.messages:
        made.add(item)
    messages, prompt = made.messages, None
    if hand_over_prompt and messages and messages[-1]["info"]["role"] == "user":
        prompt = _typed(messages[-1]["parts"])
        messages = messages[:-1] if prompt is not None else messages
    folder = cwd or session["workspace_root"] or "/"
    info = {
        "id": ids.session,
        "slug": f"backscroll-{ids.session[-6:].lower()}",
        "projectID": "global",
        "directory": folder,
        "title": title_of(session) or "Untitled",
        "version": _version(session),
        "time": {"created": now, "updated": now},
    }
    return OpencodeFile(ids.session, folder, {"info": info, "messages": messages}, prompt)


def _typed(parts: list[dict[str, Any]]) -> str | None:
    """Return a text-only prompt; None with files, which a command line cannot pass."""
    texts = [part.get("text") for part in parts if part["type"] == "text"]
    whole = len(texts) == len(parts) and not any(part.get("synthetic") for part in parts)
    return "\n\n".join(str(text) for text in texts) if whole and texts else None


def _version(session: Row) -> str:
    metadata = session["metadata"] if isinstance(session["metadata"], dict) else {}
    source = metadata.get("source")
    kind = source.get("kind") if isinstance(source, dict) else None
    version = metadata.get("version")
    return version if kind == "opencode" and isinstance(version, str) else VERSION
