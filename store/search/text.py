"""What of a session is searched: the texts of a part, each with the place it is in.

The index, the verification of its candidates, the scan without an index, and the excerpts all
read a part through ``sections``, so they agree on what can be found.

Not searched: names of tools (``tool:`` asks for them), names of JSON members, numbers, encoded
bytes (``data:`` URLs, base64), and what a source notes about a call beside its output, but for the
names of the files that it changed.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Literal, NamedTuple, get_args

from store.conversation.touched import PATHS
from store.engine.database import Database
from store.engine.values import text as as_text
from store.rows import is_tool_type
from store.system.compression import DamagedFrame, unpack_frame
from store.text.stored_json import DamagedJson, loads

Where = Literal["prompt", "text", "reasoning", "input", "output", "title"]
"""``prompt`` is what a person typed, ``text`` what else was said; ``input`` and ``output`` are
those of tool calls; ``title`` is a session's."""
PLACES: tuple[Where, ...] = get_args(Where)

LONGEST_FILE = 8 * 1024 * 1024
"""Bytes of a side file that are searched, from its start."""

SideFile = Callable[[str], str | None]
"""Returns the text of a side file of the part's session; None where it has none of that name."""

_NOT_TYPED = frozenset({"meta", "notification"})
"""Origins of user messages that no person typed."""
_BLOCKS = frozenset({
    "text", "input_text", "output_text", "file", "image", "image-data", "image_url", "media",
    "content", "resource", "resource_link", "json", "error-text", "error-json", "tool_reference",
    "document", "audio", "base64", "url",
})
"""Types of content blocks, which are no text of the session."""
_PATHS = ("path", *PATHS, "moved_to", "movePath", "move_path")
_SURROGATE = re.compile("[\ud800-\udfff]")
_ENCODED = re.compile(r"[A-Za-z0-9+/=_-]{1000,}\s*")


class Section(NamedTuple):
    """One text of a part.

    Attributes:
        where: The place it is in.
        text: As the session holds it, not neutralised.
    """

    where: Where
    text: str


def no_side_file(_name: str) -> None:
    """Return None: a reader of side files for where there are none."""


def sections(
    data: Mapping[str, Any], role: str, origin: object, side_file: SideFile = no_side_file
) -> list[Section]:
    """Return the texts of a part that are searched, in the order in which they are shown.

    Args:
        data: The part, decoded with ``decode_part``.
        role: The role of its message.
        origin: ``metadata_json.origin`` of its message.
        side_file: Reads the side files that the part names (see ``side_file_reader``).
    """
    kind = data.get("type")
    kind = kind if isinstance(kind, str) else ""
    typed = not isinstance(origin, str) or origin not in _NOT_TYPED
    said: Where = "prompt" if role == "user" and typed else "text"
    if kind in ("text", "reasoning"):
        where: Where = "reasoning" if kind == "reasoning" else said
        found = [Section(where, _joined(data.get("text")))]
    elif is_tool_type(kind):
        given = data.get("input")
        found = [
            Section("input", _joined(data.get("rawInput") if given is None else given)),
            Section("input", "\n".join(_listed_files(data))),
            Section("output", _output(data)),
        ]
    else:
        where = "output" if kind == "data-error" else said
        members = [value for name, value in data.items() if name not in ("type", "id")]
        found = [Section(where, _joined(members))]
    for name in side_file_names(data):
        found.append(Section("output" if is_tool_type(kind) else said, side_file(name) or ""))
    return [section for section in found if section.text]


def decode_part(kind: str, data_json: str) -> Mapping[str, Any]:
    """Return a part's ``data_json`` decoded; where that is no JSON object, as one text.

    Args:
        kind: The row's ``type``, which wins over the one in the JSON.
        data_json: The row's JSON.
    """
    try:
        value = loads(data_json)
    except DamagedJson:
        value = data_json
    if not isinstance(value, dict):
        return {"type": kind, "text": value}
    return value if value.get("type") == kind else value | {"type": kind}


def tool_of(data: Mapping[str, Any]) -> str | None:
    """Return the name of the tool that a part calls; None for other parts."""
    kind = data.get("type")
    if not isinstance(kind, str) or not is_tool_type(kind):
        return None
    return kind[5:] if kind.startswith("tool-") else str(data.get("toolName") or "")


def extras_of(data: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return what the source noted about a call: ``resultProviderMetadata.backscroll``."""
    metadata = data.get("resultProviderMetadata")
    own = metadata.get("backscroll") if isinstance(metadata, Mapping) else None
    return own if isinstance(own, Mapping) else {}


def side_file_names(data: Mapping[str, Any]) -> list[str]:
    """Return the names of the side files that hold the whole output of a call."""
    names = extras_of(data).get("attachment")
    # No row has a name that is no UTF-8; a part may hold anything.
    return [name for name in (names if isinstance(names, list) else [names])
            if isinstance(name, str) and not _SURROGATE.search(name)]


def side_file_reader(db: Database, session_id: str) -> SideFile:
    """Return a reader of a session's side files, for ``sections``.

    Files that are no text give None. Of long files the first ``LONGEST_FILE`` bytes are given.
    """
    if db.form.name != "own":
        return no_side_file

    def read(name: str) -> str | None:
        row = db.connection.execute(
            "SELECT media_type, body FROM attachments WHERE session_id = $1 AND name = $2",
            {"1": session_id, "2": name},
        ).fetchone()
        if row is None or not _is_text(as_text(row[0]) or ""):
            return None
        try:
            return unpack_frame(row[1])[:LONGEST_FILE].decode("utf-8", "replace")
        except DamagedFrame:
            return None  # `show` and the inspector report the damage.

    return read


def _is_text(media_type: str) -> bool:
    return media_type.startswith("text/") or media_type in (
        "application/json", "image/svg+xml", "application/xml", "application/javascript",
    )  # fmt: skip


def _listed_files(data: Mapping[str, Any]) -> Iterator[str]:
    """Yield the files that the source lists beside a call as changed by it."""
    structured = extras_of(data).get("structured")
    if isinstance(structured, Mapping):
        files = structured.get("files") or structured.get("fileEdits")
        for entry in files if isinstance(files, list) else ():
            if isinstance(entry, Mapping):
                yield from (value for name in _PATHS if isinstance(value := entry.get(name), str))


def _output(data: Mapping[str, Any]) -> str:
    approval = data.get("approval")
    reason = approval.get("reason") if isinstance(approval, Mapping) else None
    return _joined([data.get("output"), data.get("errorText"), reason])


def _joined(value: Any) -> str:
    return value if isinstance(value, str) and _readable(value) else "\n".join(_strings(value))


def _strings(value: Any) -> Iterator[str]:
    """Yield the strings of a JSON value, in their order, without those that are no text.

    ``loads`` has bounded how deep the value is.
    """
    if isinstance(value, str):
        if _readable(value):
            yield value
    elif isinstance(value, dict):
        for name, member in value.items():
            if not (name == "type" and isinstance(member, str) and member in _BLOCKS):
                yield from _strings(member)
    elif isinstance(value, list):
        for item in value:
            yield from _strings(item)


def _readable(value: str) -> bool:
    return bool(value) and not value.startswith("data:") and not (
        len(value) >= 1000 and _ENCODED.fullmatch(value))
