"""Write one session to stdout or to a file.

Formats:
  json         {"session": row, "messages": [{"message": row, "parts": [row, ...]}, ...]}
               rows by column name; JSON columns decoded and named without _json
  jsonl        {"type": "session"|"message"|"part", "data": row}, one a line; import reads it
  ui-messages  the AI SDK's UIMessage array
  markdown     a readable document
  claude-code  a session file that Claude Code resumes, made of what the model would be
               sent now; a folder given as --out gets it under its session's UUID
  codex        a rollout that Codex resumes, made of the same
  opencode     a session that `opencode import FILE` takes, as a new one
  gemini       a session file that Gemini CLI resumes, of the context too; it belongs in the
               project's chats folder, under the name that a folder as --out gives it
  pi           a session file that pi resumes with `pi --session FILE`, of the context too

json and jsonl hold every row. The others leave hidden messages out, and say how many on
stderr, unless --hidden; messages that still wait to be sent are in json and jsonl only.
"""

from __future__ import annotations

import argparse
import sys
import uuid
from collections.abc import Iterable
from pathlib import Path

from store.errors import Refused
from store.exports.reading import SessionReading, read_session
from store.exports.registry import FORMATS, Format, file_name, writer
from store.queries.sessions import resolve
from store.system.files import AlreadyThere, write_whole
from store.system.locations import library_path
from store.system.paths import expanded
from tui.cli.exporting import add_view_arguments, tell_left_out, view_of
from tui.cli.output import note
from tui.cli.stores import needs_store, store_for_reading


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    add_view_arguments(parser)
    parser.add_argument("--to", choices=tuple(FORMATS), required=True, help="the format")
    parser.add_argument("--out", type=Path, metavar="PATH", help="a new file, or a folder for it")
    parser.add_argument("--force", action="store_true", help="replace the file if it is there")


def run(options: argparse.Namespace) -> int:
    """Write it."""
    format = FORMATS[options.to]
    view = "context" if format.context else view_of(options, whole=format.whole)
    write = writer(format.name)
    with store_for_reading(options) as opened:
        database = needs_store(opened)
        session_id = resolve(database, options.session).id
        database.connection.execute("BEGIN")
        reading = read_session(database, session_id, view)
        if format.context and options.out is not None and _is_uuid(options.out.stem[-36:]):
            reading.export_id = options.out.stem[-36:]
        pieces = write(reading)
        if options.out is None:
            for piece in pieces:
                sys.stdout.write(piece)
        else:
            path = _path(options.out, reading, format)
            _write(path, pieces, replace=options.force)
            note(f"written to {path}")
        tell_left_out(reading)
        for remark in reading.remarks:
            note(remark)
        ours = database.form.name == "own"
    if ours and reading.agent_id is not None:
        _remember(options, format.name, reading.agent_id, session_id)
    return 0


def _remember(options: argparse.Namespace, kind: str, agent_id: str, session_id: str) -> None:
    """Let sync link what the agent goes on with; a store that cannot be written goes without."""
    from store.engine.database import in_transaction
    from store.engine.opening import open_target
    from store.exports.noting import note_export

    database = open_target(options.store or library_path(), write=True)
    try:
        if database.read_only is None:
            in_transaction(database, note_export, kind, agent_id, session_id)
    finally:
        database.close()


def _is_uuid(text: str) -> bool:
    try:
        return str(uuid.UUID(text)) == text
    except ValueError:
        return False


def _path(out: Path, reading: SessionReading, format: Format) -> Path:
    out = expanded(out)
    name = file_name(format, reading.export_id, reading.session)
    return out / name if out.is_dir() else out



def _write(path: Path, pieces: Iterable[str], *, replace: bool) -> None:
    try:
        write_whole(path, pieces, replace=replace)
    except AlreadyThere as error:
        raise Refused(f"{error}; --force replaces it") from error
