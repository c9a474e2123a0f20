"""Runs fast-resume and Backscroll in turn on the same sessions, and prints their first rows.

    python -m tests.bench.peers [--venv DIR] [--files 2000] [--rounds 15]

fast-resume (PyPI) is installed into a virtual environment of its own, the first time it is
needed, and Backscroll into another one as pipx and uv do: from a wheel, by a pip of today. Both
read the same seeded tree of Claude Code sessions in a home folder of their own; each has its index
or library complete before it is timed. Beside them runs the interpreter alone, before which no
program of ours can begin. Not a part of the bench's table, as it needs another program.
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
ROOT = Path(__file__).parents[2]
LEAVINGS = 5
"""How often the browser is run at most, on a machine too busy to let it come to rest."""
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


def our_wheel(folder: Path) -> Path:
    """Return our program as this checkout has it, installed from a wheel by the newest pip.

    Args:
        folder: Of the virtual environment.

    Raises:
        CalledProcessError: It could not be installed.
    """
    pip = [str(folder / "bin" / "python"), "-m", "pip", "install", "-q"]
    program = folder / "bin" / "backscroll"
    print(f"installing {ROOT} into {folder}", file=sys.stderr)
    if not program.exists():
        subprocess.run([sys.executable, "-m", "venv", str(folder)], check=True)
        subprocess.run([*pip, "--upgrade", "pip"], check=True)
        subprocess.run([*pip, str(ROOT)], check=True)
    else:
        subprocess.run([*pip, "--force-reinstall", "--no-deps", str(ROOT)], check=True)
    return program


def main() -> int:
    """Print the table; return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--venv", type=Path, default=cache_dir() / "bench" / PEER)
    parser.add_argument("--files", type=int, default=2_000)
    parser.add_argument("--rounds", type=int, default=15)
    asked = parser.parse_args()
    try:
        program, own = installed(asked.venv), our_wheel(asked.venv.with_name("backscroll"))
    except (subprocess.CalledProcessError, OSError) as error:
        print(f"cannot be installed: {error}", file=sys.stderr)
        return 1
    with tempfile.TemporaryDirectory() as folder, clean_environment() as clean:
        home = Path(folder)
        tree = cache_dir() / "bench" / f"claude-{asked.files}x{MESSAGES}"
        claude_corpus.make(tree, asked.files, MESSAGES)
        shutil.copytree(tree, home / ".claude", copy_function=_linked)
        environment = clean | {"HOME": folder, "FAST_RESUME_THEME": "dark"}
        peer = [str(program), "--no-images"]
        # With its own bytecode, which pip has compiled.
        del environment["PYTHONPYCACHEPREFIX"]
        ours = [str(own)]
        _first_runs(peer, ours, environment)
        title = _newest_title(ours, environment)
        _leave_screen(ours, environment, home)
        elsewhere = {"XDG_STATE_HOME": str(home / "elsewhere")}
        alone = [str(own.with_name("python")), "-c", f"import os; os.write(2, {title.encode()!r})"]
        programs = {
            PEER: (peer, environment), "interpreter": (alone, environment),
            "backscroll": (ours, environment), "no screen": (ours, environment | elsewhere),
        }
        _print(programs, asked.rounds, title)
    return 0


def _leave_screen(ours: list[str], environment: Mapping[str, str], home: Path) -> None:
    """Run the browser until it is at rest, and quit, as somebody who starts it again has done.

    Args:
        ours: The program.
        environment: Its variables.
        home: Where its state folder is.

    Raises:
        RuntimeError: It kept no picture of its screen.
    """
    for _ in range(LEAVINGS):
        with Answering(ours, environment) as terminal:
            terminal.quiet(LEFT_AFTER_S)
            terminal.send(b"\x11")
            while terminal.process.poll() is None:
                terminal.pump(0.05)
        state = Path(environment.get("XDG_STATE_HOME", home / ".local" / "state"))
        if any(state.rglob("*.screen")):
            return
    raise RuntimeError("the browser kept no picture of its screen")


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
    for name in list(programs)[1:]:
        pairs = zip(found[name], found[PEER], strict=True)
        ratio = statistics.median(own.seconds / other.seconds for own, other in pairs)
        print(f"{name} / {PEER}, pair by pair: x{ratio:.2f}")


if __name__ == "__main__":
    sys.exit(main())
