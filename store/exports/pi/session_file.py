"""Makes the lines of a session file for pi: a header and one chain of entries.

Source: the pi section of the format page (a hand-made, cut fork was resumed), and pi's own
description of its files.
"""

from __future__ import annotations

from collections.abc import Iterator

from store.exports.agent_file import NamedFile, title_of, written
from store.exports.pi.entries import Entries, Entry
from store.exports.reading import SessionReading
from store.exports.turns import iso
from store.exports.typed import typed
from store.text.exact_json import encode_for_output

VERSION = 3
NOTE = "backscroll"
"""The ``customType`` of the entry that lists the copies; it is not sent to a model."""


def write_pi(reading: SessionReading) -> Iterator[str]:
    """Yield the lines of a session file, whose id is the reading's ``export_id``."""
    yield from written(pi_file(reading), reading)


def file_name(session_id: str, created_at: int) -> str:
    """Return the name of a session's file.

    Args:
        session_id: A UUID.
        created_at: Epoch ms.
    """
    return f"{iso(created_at).replace(':', '-').replace('.', '-')}_{session_id}.jsonl"


def pi_file(reading: SessionReading, *, cwd: str | None = None) -> NamedFile:
    """Return a session as a file that pi can resume.

    Args:
        reading: The session in its context view.
        cwd: The folder; None for the session's workspace.
    """
    reading = typed(reading)
    session = reading.session
    model = session["model"] if isinstance(session["model"], dict) else {}
    entries = Entries(reading, model)
    entries.take(reading.messages)
    header = {
        "type": "session",
        "version": VERSION,
        "id": reading.export_id,
        "timestamp": iso(session["created_at"]),
        "cwd": cwd or session["workspace_root"] or "/",
    }
    lines: list[str] = []
    if entries.made:
        chain = _chained([*entries.made, *_notes(reading, entries)])
        lines = [encode_for_output(line) for line in (header, *chain)]
    name = file_name(reading.export_id, session["created_at"])
    return NamedFile(reading.export_id, name, lines, entries.prompt)


def _chained(entries: list[Entry]) -> Iterator[Entry]:
    """Yield the entries, each with the previous one as its parent."""
    parent: str | None = None
    for entry in entries:
        head = {"type": entry["type"], "id": entry["id"], "parentId": parent}
        yield head | {key: value for key, value in entry.items() if key not in head}
        parent = entry["id"]


def _notes(reading: SessionReading, entries: Entries) -> Iterator[Entry]:
    """Yield entries for the session's name and the list of copies."""
    stamp = entries.made[-1]["timestamp"]
    taken = {entry["id"] for entry in entries.made}
    name = title_of(reading.session, given_only=True)
    if name:
        yield {"type": "session_info", "id": _free("0000000a", taken), "timestamp": stamp,
               "name": name}  # fmt: skip
    data = {"session": reading.session["id"], "copies": entries.copies}
    yield {"type": "custom", "id": _free("0000000b", taken), "timestamp": stamp,
           "customType": NOTE, "data": data}  # fmt: skip


def _free(wanted: str, taken: set[str]) -> str:
    while wanted in taken:
        wanted = f"{(int(wanted, 16) + 16) % (1 << 32):08x}"
    taken.add(wanted)
    return wanted
