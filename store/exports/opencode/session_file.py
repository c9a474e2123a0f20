"""A session as the JSON document that ``opencode import`` reads."""

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
"""The newest version whose import was tried."""
_INDENT = "  "


@dataclass(frozen=True, slots=True)
class OpencodeFile:
    """A session file for opencode.

    Attributes:
        session_id: The new session's id there, which ``opencode --session`` takes.
        cwd: The folder that the session belongs to; import it from there.
        document: ``{info, messages}``.
        prompt: The last prompt where nothing answered it and it was left out.
    """

    session_id: str
    cwd: str
    document: dict[str, Any]
    prompt: str | None = None

    @property
    def lines(self) -> list[str]:
        """The document as text, one message a line; empty where it has no message."""
        messages = self.document["messages"]
        if not messages:
            return []
        return [*document_lines(self.document)]


def write_opencode(reading: SessionReading) -> Iterator[str]:
    """Yield a file for ``opencode import``, one message a line."""
    made = opencode_file(reading)
    reading.agent_id = made.session_id if made.lines else None
    for line in document_lines(made.document):
        yield f"{line}\n"


def document_lines(document: dict[str, Any]) -> Iterator[str]:
    """Yield a document as lines of text without their newlines."""
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
    """Turn a session into one that opencode imports.

    Its own time is the time of the export, as a fork's is: what it holds is older than it,
    which is how copies differ from what is added later.

    Args:
        reading: The session.
        cwd: The folder; None takes the session's workspace.
        hand_over_prompt: Whether a last prompt that nothing answered is left out, to be
            given to the program as its prompt.
        clock: Returns the present as epoch ms.
    """
    now, reading = clock(), typed(reading)
    ids, session = Ids(reading.export_id, now), reading.session
    made = Messages(ids, session, KeptRecords(reading.db, "opencode"))
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
    """Return a prompt that is text alone; one with files cannot be given on a command line."""
    texts = [part.get("text") for part in parts if part["type"] == "text"]
    whole = len(texts) == len(parts) and not any(part.get("synthetic") for part in parts)
    return "\n\n".join(str(text) for text in texts) if whole and texts else None


def _version(session: Row) -> str:
    metadata = session["metadata"] if isinstance(session["metadata"], dict) else {}
    source = metadata.get("source")
    kind = source.get("kind") if isinstance(source, dict) else None
    version = metadata.get("version")
    return version if kind == "opencode" and isinstance(version, str) else VERSION
