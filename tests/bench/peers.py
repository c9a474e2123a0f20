"""Runs fast-resume and Backscroll in turn on the same sessions, and prints their first rows.

    python -m tests.bench.peers [--venv DIR] [--files 2000] [--rounds 15]

fast-resume (PyPI) is installed into a virtual environment of its own, the first time it is
needed. Both read the same seeded tree of Claude Code sessions in a home folder of their own;
each has its index or library complete before it is timed. Not a part of the bench's table, as it
needs another program.
"""

from __future__ import annotations

import argparse
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

import pyte

from store.system.locations import cache_dir
from tests.bench import claude_corpus
from tests.bench.terminal import COLUMNS, LINES, PATIENCE_S, Terminal, clean_environment

PEER = "fast-resume"
MESSAGES = 100
NEEDLE = 12
"""Characters of a title that are looked for on the screen."""
RESTED_S = 0.3
LEFT_AFTER_S = 3.0
_OPENED_WITH = {b"\x1b]11;?": b"\x1b]11;rgb:1414/1616/1b1b\x1b\\", b"\x1b[5n": b"\x1b[0n"}
"""What a terminal answers to the questions that the peer asks at its start."""


class Answering(Terminal):
    """A terminal that answers the peer's questions, too."""

    def pump(self, seconds: float) -> bool:
        """Read one chunk, waiting so long for it; say whether there was one."""
        if not super().pump(seconds):
            return False
        for question, answer in _OPENED_WITH.items():
            if question in self.log[-1][1]:
                os.write(self._master, answer)
        return True


class Run(NamedTuple):
    """When a list was on the screen.

    Attributes:
        seconds: From the start of the process to the chunk that completed the title.
        peak: Most memory of the process by then, in MB.
    """

    seconds: float
    peak: float


def timed(command: list[str], environment: Mapping[str, str], title: str) -> Run:
    """Start a program, and return when a title was on its screen.

    Args:
        command: The program.
        environment: Its variables.
        title: What the first row begins with.

    Raises:
        RuntimeError: It did not come.
    """
    screen = pyte.Screen(COLUMNS, LINES)
    stream = pyte.ByteStream(screen)
    drawn = 0
    with Answering(command, environment) as terminal:
        deadline = time.perf_counter() + PATIENCE_S
        while time.perf_counter() < deadline:
            if not terminal.pump(0.05) and terminal.process.poll() is not None:
                break
            for arrived, data in terminal.log[drawn:]:
                stream.feed(data)
                drawn += 1
                if any(title in row for row in screen.display):
                    return Run(arrived - terminal.started, _peak(terminal.process.pid))
    raise RuntimeError(f"{title!r} was not shown by {command[0]}")


def _peak(process: int) -> float:
    """Return the most memory that a process has had, in MB; 0 without a /proc."""
    told = Path(f"/proc/{process}/status")
    rows = told.read_text().splitlines() if told.exists() else []
    return next((int(row.split()[1]) / 1024 for row in rows if row.startswith("VmHWM:")), 0.0)


def installed(folder: Path) -> Path:
    """Return the peer's program, installed into a virtual environment where it is missing.

    Args:
        folder: Of the environment.

    Raises:
        CalledProcessError: It could not be installed.
    """
    program = folder / "bin" / "fr"
    if not program.exists():
        print(f"installing {PEER} into {folder}", file=sys.stderr)
        subprocess.run([sys.executable, "-m", "venv", str(folder)], check=True)
        subprocess.run([str(folder / "bin" / "pip"), "install", "-q", PEER], check=True)
    return program


def main() -> int:
    """Print the table; return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--venv", type=Path, default=cache_dir() / "bench" / PEER)
    parser.add_argument("--files", type=int, default=2_000)
    parser.add_argument("--rounds", type=int, default=15)
    asked = parser.parse_args()
    try:
        program = installed(asked.venv)
    except (subprocess.CalledProcessError, OSError) as error:
        print(f"{PEER} cannot be installed: {error}", file=sys.stderr)
        return 1
    with tempfile.TemporaryDirectory() as folder, clean_environment() as clean:
        home = Path(folder)
        tree = cache_dir() / "bench" / f"claude-{asked.files}x{MESSAGES}"
        claude_corpus.make(tree, asked.files, MESSAGES)
        shutil.copytree(tree, home / ".claude", copy_function=_linked)
        environment = clean | {"HOME": folder, "FAST_RESUME_THEME": "dark"}
        peer = [str(program), "--no-images"]
        ours = [str(Path(sys.executable).with_name("backscroll"))]
        _first_runs(peer, ours, environment)
        title = _newest_title(ours, environment)
        _leave_screen(ours, environment)
        elsewhere = {"XDG_STATE_HOME": str(home / "elsewhere")}
        programs = {
            PEER: (peer, environment), "backscroll": (ours, environment),
            "no screen": (ours, environment | elsewhere),
        }
        _print(programs, asked.rounds, title)
    return 0


def _leave_screen(ours: list[str], environment: Mapping[str, str]) -> None:
    """Run the browser until it is at rest, and quit, as somebody who starts it again has done."""
    with Answering(ours, environment) as terminal:
        terminal.quiet(LEFT_AFTER_S)
        terminal.send(b"\x11")
        while terminal.process.poll() is None:
            terminal.pump(0.05)


def _linked(source: str, target: str) -> None:
    try:
        os.link(source, target)
    except OSError:
        shutil.copy2(source, target)


def _first_runs(peer: list[str], ours: list[str], environment: Mapping[str, str]) -> None:
    """Have both read all sessions."""
    for command in ([peer[0], "--list", "--limit", "1"], [*ours, "sync"]):
        subprocess.run(
            command, env=dict(environment), check=True, stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL)


def _newest_title(ours: list[str], environment: Mapping[str, str]) -> str:
    """Return what both lists begin with: the first words of the newest session."""
    import orjson

    told = subprocess.run(
        [*ours, "sessions", "--json", "--limit", "1"], env=dict(environment), check=True,
        capture_output=True)
    title: str = orjson.loads(told.stdout)[0]["title"]
    return " ".join(title.split())[:NEEDLE].rstrip()


def _print(
    programs: Mapping[str, tuple[list[str], Mapping[str, str]]], rounds: int, title: str
) -> None:
    """Time all in turn, and print what they took.

    Args:
        programs: Commands and their variables by name; "no screen" is ours without the picture
            of the last screen.
        rounds: How often.
        title: What all lists begin with.
    """
    found: dict[str, list[Run]] = {name: [] for name in programs}
    for number in range(rounds + 1):
        for name, (command, environment) in programs.items():
            run = timed(command, environment, title)
            if number:  # The first round reads the files into memory.
                found[name].append(run)
            time.sleep(RESTED_S)
    print(f"{'':<12} {'first rows':>11} {'fastest':>9} {'memory by then':>15}")
    for name, runs in found.items():
        seconds = [run.seconds * 1_000 for run in runs]
        peak = statistics.median(run.peak for run in runs)
        print(f"{name:<12} {statistics.median(seconds):>8.1f} ms {min(seconds):>6.1f} ms"
              f" {peak:>12.1f} MB")
    for name in ("backscroll", "no screen"):
        pairs = zip(found[name], found[PEER], strict=True)
        ratio = statistics.median(own.seconds / other.seconds for own, other in pairs)
        print(f"{name} / {PEER}, pair by pair: x{ratio:.2f}")


if __name__ == "__main__":
    sys.exit(main())
