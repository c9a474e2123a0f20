"""Record a UI message stream of the AI SDK into the store, as it arrives.

Reads UI message chunks from stdin, as JSON lines or as server-sent events, and prints the
session's id, alone on the first line, before it reads anything. A line may also be a whole
UIMessage ({"role", "parts", ...}), which is stored as it is.

A line that is no chunk is named on stderr and passed over. A chunk that the SDK's reader
would refuse, or does not know, is kept as a data part; the rest of the answer is recorded.
[DONE] ends a message; what comes next is another stream's. With --session, a stream that
begins in its middle goes on with the message of a run that broke off.

A user's message that comes while an answer streams waits behind it. Lines {"queue": message},
{"fire": id} and {"cancel": id} say so themselves; null stands for the message that has waited
longest.
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


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument("--session", metavar="ID", help="go on with this session")
    parser.add_argument("--agent", metavar="NAME", default="unknown",
                        help="who runs, in a new session")
    parser.add_argument("--user", metavar="TEXT", help="store this user message first")
    parser.add_argument("--workspace", metavar="FOLDER", default=None,
                        help="the folder of a new session (default: the current one)")
    policy = SavePolicy()
    parser.add_argument("--save-on", choices=("chunk", "step", "turn"), default=policy.save_on,
                        help="when it is saved (default: %(default)s)")
    parser.add_argument("--save-buffer-ms", type=int, default=policy.save_buffer_ms,
                        metavar="MS", help="how long chunks may wait (default: %(default)s)")
    parser.add_argument("--save-buffer-size", type=int, default=policy.save_buffer_size,
                        metavar="BYTES", help="how many may wait (default: %(default)s)")
    parser.add_argument("--sdk", type=int, choices=(6, 7), default=6,
                        help="whose reader is followed where the two disagree")
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
    """Leave through ``finally``, so that what waits is saved."""
    raise SystemExit(128 + number)
