"""What of a session leaves the machine: whose it is, its secrets masked, its ids where taken."""

from __future__ import annotations

import re
import zlib
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from store.copying.masked_texts import masked_bytes, masked_json
from store.copying.rows import (
    MESSAGES,
    METADATA,
    PARTS,
    SESSIONS,
    SessionRows,
    Values,
    metadata_of,
)
from store.engine.schema import REQUIRED_COLUMNS
from store.ids import derived_tail
from store.sharing.masks import Masking, Masks
from store.sync.blocks import packed, unpacked
from store.sync.jsontext import json_text
from store.system.compression import unpack_frame

OWNER = "owner"
"""Key of a session's metadata: the name of the person whose session it is."""
_STRUCTURE = frozenset({
    "id", "session_id", "message_id", "parent_id", "parent_message_id", "role", "type",
    "tool_state",
})  # fmt: skip
"""Columns that say how rows belong together; they hold no text."""
_ID = re.compile(r"\b(?:ses|msg|prt)_[0-9A-Za-z]{26}\b")
_STAMPED = len("ses_") + 12
"""Characters of an id before its tail."""


def with_owner(rows: SessionRows, owner: str) -> SessionRows:
    """Return a session with its owner's name.

    Args:
        rows: The session.
        owner: The name.
    """
    metadata = {**metadata_of(rows.session[METADATA]), OWNER: owner}
    session = (*rows.session[:METADATA], json_text(metadata), *rows.session[METADATA + 1 :])
    return replace(rows, session=session)


def masked(rows: SessionRows, masking: Masking) -> SessionRows:
    """Return a session with the secrets in all its texts masked, its original records too.

    The same session gives the same masks each time.

    Args:
        rows: The session.
        masking: What is masked.
    """
    masks = Masks(masking)
    tables = dict(rows.tables)
    session = _masked_row(masks, REQUIRED_COLUMNS[SESSIONS], rows.session)
    for name in (MESSAGES, PARTS):
        columns = REQUIRED_COLUMNS[name]
        tables[name] = [_masked_row(masks, columns, row) for row in tables[name]]
    tables["original_records"] = [
        _masked_block(masks, row) for row in sorted(tables["original_records"])]
    tables["attachments"] = _masked_files(masks, sorted(tables["attachments"]))
    prompts = {digest: masks.mask(body) for digest, body in rows.prompts.items()}
    return _with_prompts(SessionRows(session, tables, prompts), rows.prompts)


def _masked_row(masks: Masks, columns: tuple[str, ...], row: Values) -> Values:
    return tuple(
        value if column in _STRUCTURE or not isinstance(value, str)
        else masked_json(masks, value) if column.endswith("_json")
        else masks.mask_member(column, value)
        for column, value in zip(columns, row, strict=True)
    )


def _masked_block(masks: Masks, row: Values) -> Values:
    session_id, first, count, checksum, body = row
    records = unpacked(count, body)
    shown = [masked_bytes(masks, record) for record in records]
    if shown == records:
        return row
    raw = b"\n".join(shown)
    return session_id, first, count, zlib.crc32(raw), packed(raw)


def _masked_files(masks: Masks, rows: list[Values]) -> list[Values]:
    """Return files masked, with the names that the masked parts have for them."""
    found = dict[str, Values]()
    for session_id, name, media_type, size, body in rows:
        shown = masks.mask(name)
        number = 2
        while shown in found:
            shown, number = f"{masks.mask(name)} ({number})", number + 1
        raw = unpack_frame(body)
        masked_raw = masked_bytes(masks, raw)
        if masked_raw != raw:
            size, body = len(masked_raw), packed(masked_raw)
        found[shown] = (session_id, shown, media_type, size, body)
    return list(found.values())


def _with_prompts(rows: SessionRows, before: Mapping[str, str]) -> SessionRows:
    """Return a session whose masked prompts have digests of their own.

    Stores keep a prompt once by its digest, and another person's may not be masked the same.
    """
    renamed = {
        digest: derived_tail("masked", digest, body)
        for digest, body in rows.prompts.items() if body != before[digest]
    }
    if not renamed:
        return rows
    def with_digest(row: Values) -> Values:
        text = row[3]
        if '"system_prompt_digest"' in text:
            found = metadata_of(text)
            if (new := renamed.get(str(found.get("system_prompt_digest")))) is not None:
                text = json_text({**found, "system_prompt_digest": new})
        return (*row[:3], text, *row[4:])

    tables = {**rows.tables, MESSAGES: [with_digest(row) for row in rows.tables[MESSAGES]]}
    prompts = {renamed.get(digest, digest): body for digest, body in rows.prompts.items()}
    return SessionRows(rows.session, tables, prompts)


def other_id(session_id: str, *names: str) -> str:
    """Return the id that a session or message has where its own one is another person's.

    Args:
        session_id: Its own id.
        names: Whose it is.
    """
    return session_id[:_STAMPED] + derived_tail("shared", *names, session_id)


def renamed(
    rows: SessionRows, names: tuple[str, ...], others: Callable[[str], str]
) -> SessionRows:
    """Return a session with other ids, in every row and JSON that names them.

    Args:
        rows: The session.
        names: Whose it is; the ids depend on it.
        others: Returns the id of another session that this one names, such as its parent.
    """
    own = {rows.id, *(row[0] for row in rows.tables[MESSAGES]),
           *(row[0] for row in rows.tables[PARTS])}
    new = {one: other_id(one, *names) for one in own}

    return pointing(rows, new, others)


def pointing(
    rows: SessionRows, ids: Mapping[str, str], others: Callable[[str], str] = str
) -> SessionRows:
    """Return a session in which other ids are named, in every row and JSON.

    Args:
        rows: The session.
        ids: The new ids by the old ones.
        others: Returns the id to name for one of a session that is not among them.
    """
    def name(old: str) -> str:
        return ids.get(old) or (others(old) if old.startswith("ses_") else old)

    def turned(value: Any) -> Any:
        if type(value) is not str:
            return value
        if value in ids:
            return ids[value]
        if "ses_" in value or "msg_" in value or "prt_" in value:
            return _ID.sub(lambda found: name(found[0]), value)
        return value

    return SessionRows(
        tuple(turned(value) for value in rows.session),
        {table: [tuple(turned(value) for value in row) for row in found]
         for table, found in rows.tables.items()},
        rows.prompts)
