"""Record a UI message stream of the AI SDK from stdin.

Reads UI message chunks, as JSON lines or server-sent events. Prints the id of the session on the
first line before it reads anything. A line may also be a whole UIMessage ({"role", "parts",
...}), which is stored unchanged.

Lines that are not chunks are reported on stderr and skipped. Chunks that the SDK would refuse or
does not know are stored as data parts. [DONE] ends a message. With --session, a stream without a
start continues the message of an interrupted run.

A user's message is queued while an answer streams. The lines {"queue": message}, {"fire": id}
and {"cancel": id} control the queue; null is the message that has waited longest.
"""

from __future__ import annotations

import argparse
import os
import signal
import sys
from types import FrameType
from typing import NoReturn

from store.engine.database import Database
from store.recorder.direct import DirectRecorder, insist
from store.recorder.policy import SavePolicy
from store.recorder.recording import Recording
from tui.cli.output import UsageError, note
from tui.cli.stores import store_for_writing

EXAMPLES = (
    ("my-agent | backscroll record --agent mine", "a new session from a stream"),
    ("my-agent | backscroll record --session 4f1c --user 'Go on'", "more of a session"),
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument("--session", metavar="ID", help="add to this session")
    parser.add_argument("--agent", metavar="NAME", default="unknown",
                        help="the agent of a new session (default: %(default)s)")
    parser.add_argument("--user", metavar="TEXT", help="store this user message first")
    parser.add_argument("--workspace", metavar="FOLDER", default=None,
                        help="the folder of a new session (default: the current one)")
    policy = SavePolicy()
    parser.add_argument("--save-on", choices=("chunk", "step", "turn"), default=policy.save_on,
                        help="when to save (default: %(default)s)")
    parser.add_argument("--save-buffer-ms", type=int, default=policy.save_buffer_ms,
                        metavar="MS", help="save after this time (default: %(default)s)")
    parser.add_argument("--save-buffer-size", type=int, default=policy.save_buffer_size,
                        metavar="BYTES", help="save after this many bytes (default: %(default)s)")
    parser.add_argument("--sdk", type=int, choices=(6, 7), default=6,
                        help="the AI SDK version to follow (default: %(default)s)")
    parser.add_argument("--keep-going", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--verbose", action="store_true",
                        help="name chunks of unknown types on stderr")


def run(options: argparse.Namespace) -> int:
    """Record until the end of stdin."""
    try:
        policy = SavePolicy(options.save_on, options.save_buffer_size, options.save_buffer_ms)
    except ValueError as error:
        raise UsageError(str(error)) from error
    signal.signal(signal.SIGTERM, _end)
    with store_for_writing(options) as database:
        _record(options, database, policy)
    return 0


def _record(options: argparse.Namespace, database: Database, policy: SavePolicy) -> None:
    recorder: DirectRecorder | None = None

    def tell(line: int, reason: str) -> None:
        note(f"record: line {line}: {reason}" if line else f"record: {reason}")

    def problem(reason: str) -> None:
        tell(recorder.line if recorder else 0, reason)

    def unknown(kind: str) -> None:
        if options.verbose:
            problem(f"chunk of unknown type {kind}")

    recording = Recording(policy=policy, sdk=options.sdk,
                          problem=problem, unknown=unknown)
    workspace = os.path.abspath(options.workspace or os.getcwd())
    session_id = insist(database, lambda: recording.start(
        options.session, agent=options.agent, workspace=workspace), problem)
    recorder = DirectRecorder(database, recording, tell)
    try:
        if options.user is not None:
            recorder.say(options.user)
        sys.stdout.write(f"{session_id}\n")
        sys.stdout.flush()
        recorder.pump(sys.stdin.fileno())
    finally:
        recorder.close()


def _end(number: int, frame: FrameType | None) -> NoReturn:
    """Exit through ``finally``, so that buffered changes are saved."""
    raise SystemExit(128 + number)
