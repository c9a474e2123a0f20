"""``file-mutations.jsonl``: what y-agent's tools did to files, with hashes and without contents.

One line a call that changed a file, of all sessions of the folder: ``tool_call_id``,
``session_id``, ``operation`` (create_or_modify, create, modify, delete, move), ``absolute_path``,
``destination_path``, ``before_hash`` and ``after_hash`` (``sha256:HEX``), ``is_new_file``.
Source: ``file_mutation.rs`` and ``mutation_event_journal.rs`` of the program.
"""

from __future__ import annotations

import os
import zlib
from dataclasses import dataclass, field
from typing import Any

from store.sources.base.databases import record_bytes
from store.sources.base.drafts import PartDraft, SessionDraft
from store.sources.base.json_lines import LineError, parse_value
from store.sources.base.protocol import Problem
from store.sources.base.values import mapping, string
from store.system.paths import open_regular

NAME = "file-mutations.jsonl"
_MOST_BYTES = 64 << 20
"""Of a longer journal, the end is read."""
_KEPT = ("operation", "absolute_path", "destination_path", "before_hash", "after_hash",
         "is_new_file")  # fmt: skip

Event = dict[str, Any]


@dataclass(slots=True)
class Journal:
    """The events of all sessions of a folder.

    Attributes:
        events: By session, in order.
    """

    events: dict[str, list[Event]] = field(default_factory=dict)
    stamp: tuple[str, int, int] = ("", 0, 0)

    def read(self, folder: str, problems: list[Problem]) -> None:
        """Read the journal of a folder, where it moved since the last time.

        Args:
            folder: The data folder.
            problems: Takes what is damaged; a torn last line is none.
        """
        path = os.path.join(folder, NAME)
        try:
            with open_regular(path) as file:
                status = os.fstat(file.fileno())
                stamp = path, status.st_size, status.st_mtime_ns
                if stamp == self.stamp:
                    return
                file.seek(max(0, status.st_size - _MOST_BYTES))
                body = file.readall()
        except FileNotFoundError:
            self.events, self.stamp = {}, ("", 0, 0)
            return
        except OSError as error:
            problems.append(Problem(path, 0, error.strerror or str(error)))
            return
        self.events, self.stamp = {}, stamp
        *lines, _torn = body.split(b"\n")
        for number, line in enumerate(lines[1 if status.st_size > _MOST_BYTES else 0:], 1):
            try:
                event = mapping(parse_value(line)) if line.strip() else {}
            except LineError as error:
                problems.append(Problem(path, number, str(error)))
                continue
            name = string(event.get("session_id"))
            if name is not None:
                self.events.setdefault(name, []).append(event)

    def sign(self, session_id: str) -> tuple[int, int] | None:
        """Return what differs when a session has other events; None without any."""
        events = self.events.get(session_id)
        return (len(events), zlib.crc32(repr(events[-1]).encode())) if events else None


def add_mutations(draft: SessionDraft, events: list[Event], records: list[bytes]) -> None:
    """Note at each call what the journal says that it did to files.

    Args:
        draft: The session.
        events: Its events.
        records: Takes the originals.
    """
    calls: dict[str, PartDraft] = {
        part.tool_call_id: part for message in draft.messages for part in message.parts
        if part.tool_call_id is not None
    }
    for event in events:
        part = calls.get(str(event.get("tool_call_id")))
        if part is None:
            continue
        kept = {key: event[key] for key in _KEPT if event.get(key) is not None}
        bag = part.data.setdefault("resultProviderMetadata", {}).setdefault("backscroll", {})
        bag.setdefault("file_mutations", []).append(kept)
        part.records = (*part.records, len(records))
        records.append(record_bytes({"file": NAME, **event}))
