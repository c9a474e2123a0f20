"""Session files of versions up to 0.2x: one JSON object, rewritten whole."""

from __future__ import annotations

from typing import Any

import orjson

from store.sources.base.json_values import LineError, parse_json
from store.sources.base.values import string
from store.sources.gemini.session import Log


class NoSession(Exception):
    """A file that holds no session; the message is the reason."""


def legacy_log(path: str, body: bytes) -> tuple[Log, str | None]:
    """Return the older single object as the lines that it would be.

    Returns:
        The lines, and what had to be repaired to read the object, if anything.

    Raises:
        NoSession: It is none.
    """
    try:
        data, repaired = parse_json(body)
    except LineError as error:
        raise NoSession(str(error)) from error
    if not isinstance(data, dict) or not string(data.get("sessionId")):
        raise NoSession("no session of Gemini CLI")
    messages = data.pop("messages", None)
    rows: list[dict[str, Any]] = [data]
    rows += [row for row in messages if isinstance(row, dict)] if isinstance(messages, list) else []
    return Log(path, [orjson.dumps(row) for row in rows], list(enumerate(rows))), repaired
