"""Go on with a session in its agent: `claude --resume`, `codex resume`, `opencode -s`.

The agent is the session's own, or the one that --in names. A session that is as that agent
has it is resumed as it is. A fork, a rewound session and one of another agent are first
written to a new session file of the agent's; no file of the agent's is ever changed. Where
the last message is a prompt that nothing answered, it is handed over as the prompt.

--print only prints the command (and, where a file is needed, writes that file, whose
path it says on stderr). --json prints {"command", "cwd", "path", "writes_file"} and does
nothing.
"""

from __future__ import annotations

import argparse
import os
import shlex
import subprocess
from pathlib import Path

from store.errors import Refused
from store.queries.sessions import resolve
from store.resume.planning import ResumePlan, note_exported, write_file
from store.resume.registry import AGENTS, plan
from tui.cli.output import Printer, note, print_json
from tui.cli.verbs import Work, add_json, add_session, working


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    add_session(parser)
    parser.add_argument(
        "--in",
        dest="agent",
        choices=tuple(AGENTS),
        help="the agent to go on in; the session's own without it",
    )
    parser.add_argument("--print", action="store_true", help="only print the command")
    add_json(parser)


def run(options: argparse.Namespace) -> int:
    """Resume it."""
    with working(options) as work:
        row = resolve(work.database, options.session)
        made = plan(work.database, row, os.environ, Path.home(), options.agent)
        if options.json:
            print_json(
                {
                    "command": list(made.command),
                    "cwd": made.cwd,
                    "path": str(made.path),
                    "writes_file": made.file is not None,
                }
            )
            return 0
        _write(work, row.id, made)
    command = f"cd {shlex.quote(made.cwd)} && {shlex.join(made.command)}"
    if options.print:
        printer = Printer()
        printer.line(printer.paint(command))
        return 0
    if made.program is None:
        raise Refused(
            f"{made.started} is not on PATH; install it, then run: {command}"
            + (f" (the session file is {made.path})" if made.file else "")
        )
    if not Path(made.cwd).is_dir():
        raise Refused(f"the session's folder {made.cwd} is not there; make it, or run: {command}")
    return subprocess.run(made.command, cwd=made.cwd, check=False).returncode


def _write(work: Work, session_id: str, made: ResumePlan) -> None:
    if made.file is None or not made.file.lines:
        return
    write_file(made)
    work.do(note_exported, session_id, made)
    note(f"written to {made.path}")
