"""Go on with a session in its agent: `claude --resume`, `codex resume`, `opencode -s`.

The agent is the session's own, or the one that --in names. A session that is as that agent
has it is resumed as it is. A fork, a rewound session and one of another agent are first
written to a new session file of the agent's; no file of the agent's is ever changed. Where
the last message is a prompt that nothing answered, it is handed over as the prompt.

A session that was not read from an agent's files on this machine (an import, another
program's store, another machine's) may name any folder and prompt: the command is shown,
and started after a yes; without a terminal to ask on, --yes is needed.

--print only prints the command (and, where a file is needed, writes that file, whose
path it says on stderr). --json prints {"command", "before", "cwd", "path", "writes_file",
"prompt", "withheld", "doubt"} and does nothing; "before" is a command to run first, or null.
"""

from __future__ import annotations

import argparse
import os
from pathlib import Path

from store.errors import Refused
from store.queries.sessions import resolve
from store.resume.planning import ResumePlan, note_exported, start, with_prompt, write_file
from store.resume.registry import AGENTS, plan
from tui.cli.confirming import confirm
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
    parser.add_argument("--no-prompt", action="store_true",
                        help="do not hand over the prompt at the session's end")
    parser.add_argument("--print", action="store_true", help="only print the command")
    parser.add_argument("--yes", action="store_true", help="do not ask")
    add_json(parser)


def run(options: argparse.Namespace) -> int:
    """Resume it."""
    with working(options) as work:
        row = resolve(work.database, options.session)
        made = plan(work.database, row, os.environ, Path.home(), options.agent)
        if options.no_prompt:
            made = with_prompt(made, None)
        if options.json:
            print_json(_described(made))
            return 0
        if made.withheld:
            raise Refused(f"the prompt cannot be handed over: {made.withheld}; --no-prompt goes on"
                          " without it")  # fmt: skip
        if options.print:
            _write(work, row.id, made)
            printer = Printer()
            printer.line(printer.paint(made.shown()))
            return 0
        _refuse_missing(work, row.id, made)
        if made.doubt and not options.yes:
            confirm(_facts(made), "Start it?", otherwise="nothing was started")
        _write(work, row.id, made)
    return start(made)


def _described(made: ResumePlan) -> dict[str, object]:
    return {
        "command": list(made.command),
        "before": None if made.before is None else list(made.before),
        "cwd": made.cwd,
        "path": str(made.path),
        "writes_file": made.file is not None,
        "prompt": made.prompt,
        "withheld": made.withheld,
        "doubt": made.doubt,
    }


def _facts(made: ResumePlan) -> list[str]:
    """Return what is shown before the question: all that a session could have a say in."""
    variables = [f"{name}={value}" for name, value in made.variables.items()]
    lines = [
        f"Look before you start this session: {made.doubt}.",
        f"  command      {made.shown(folder=False)}",
        f"  folder       {made.shown_cwd}",
        f"  environment  {', '.join(['yours', *variables])}",
    ]
    if made.file is not None and made.file.lines:
        lines.append(f"  new file     {made.path}")
    return lines


def _refuse_missing(work: Work, session_id: str, made: ResumePlan) -> None:
    if made.program is None:
        _write(work, session_id, made)
        written = made.file is not None and bool(made.file.lines)
        raise Refused(
            f"{made.started} is not on PATH; install it, then run: {made.shown()}"
            + (f" (the session file is {made.path})" if written else "")
        )
    if not Path(made.cwd).is_dir():
        raise Refused(
            f"the session's folder {made.cwd} is not there; make it, or run: {made.shown()}"
        )


def _write(work: Work, session_id: str, made: ResumePlan) -> None:
    if made.file is None or not made.file.lines:
        return
    write_file(made)
    work.do(note_exported, session_id, made)
    note(f"written to {made.path}")
