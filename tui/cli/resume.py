"""Resume a session in its agent: `claude --resume`, `codex resume`, `opencode -s`.

--in resumes it in another agent. A session that is unchanged is resumed directly, by agents that
know only their own sessions too (Crush, Cursor's command line, droid, Goose, gptme, Kilo, Kiro,
llm, Mistral Vibe, OpenHands). A fork, a rewound session or one of another agent is first written to
a new session file; existing files are not changed. If the last message is a prompt without an
answer, it becomes the prompt; Cline and Kimi Code, which take none with a session, have it in the
file.

If the session was not read from an agent's files on this machine (an import, another program's
store), its folder and prompt may be anything: the command is shown first, and started when you
confirm it. Scripts use --yes.

--print prints the command, and writes the session file where one is needed, whose path is printed
on stderr. --json prints {"command", "before", "cwd", "path", "writes_file",
"prompt", "withheld", "doubt"} and does nothing; "before" is a command to run first, or null.

A store that you may only read will do. There is no note then of the session file, by which sync
would link the session that continues it.
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
from tui.cli.stores import store_for_notes
from tui.cli.verbs import Work, add_json, add_session

EXAMPLES = (
    ("backscroll resume 4f1c", "continue in the agent that wrote it"),
    ("backscroll resume 4f1c --in codex --print", "the command for another agent"),
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    add_session(parser)
    parser.add_argument(
        "--in",
        dest="agent",
        choices=tuple(AGENTS),
        help="the agent (default: the session's own)",
    )
    parser.add_argument("--no-prompt", action="store_true",
                        help="do not pass the prompt at the end of the session")
    parser.add_argument("--print", action="store_true", help="only print the command")
    parser.add_argument("--yes", action="store_true", help="do not ask")
    add_json(parser)


def run(options: argparse.Namespace) -> int:
    """Resume the session, or print the command."""
    with store_for_notes(options) as database:
        work = Work(database)
        row = resolve(work.database, options.session)
        made = plan(work.database, row, os.environ, Path.home(), options.agent)
        if options.no_prompt:
            made = with_prompt(made, None)
        if options.json:
            print_json(_described(made))
            return 0
        if made.withheld:
            raise Refused(f"the prompt cannot be passed: {made.withheld}. Use --no-prompt to start"
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
    """Return the lines to show for confirmation: everything a session's content can affect."""
    variables = [f"{name}={value}" for name, value in made.variables.items()]
    lines = [
        f"Check this command before you start it: {made.doubt}.",
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
            f"{made.started} is not on PATH. Install it, then run: {made.shown()}"
            + (f" (the session file is {made.path})" if written else "")
        )
    if not Path(made.cwd).is_dir():
        raise Refused(
            f"the folder of the session does not exist: {made.cwd}. Create it, or run:"
            f" {made.shown()}"
        )


def _write(work: Work, session_id: str, made: ResumePlan) -> None:
    if made.file is None or not made.file.lines:
        return
    write_file(made)
    if work.database.read_only is None:
        work.do(note_exported, session_id, made)
    note(f"written to {made.path}")
