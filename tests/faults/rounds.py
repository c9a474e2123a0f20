"""Rounds of faults: a kill at a random moment, a full disk, a clock that jumps."""

from __future__ import annotations

import contextlib
import json
import os
import random
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

from store.demo import make_demo
from store.system.clock import Clock, system_clock
from tests.faults.targets import EXPECTED_WHEN_FULL, NOW, TARGETS, Target

FAULTS = ("kill", "full", "clock")
_JUMPS_MS = (0, 1, -3_600_000, 86_400_000, -400 * 86_400_000, 4000 * 86_400_000)
_SURPRISED = 3
"""The exit code of work that ended in an error that no user should see."""


class Result(NamedTuple):
    """A round that went well.

    Attributes:
        acks: How much was acknowledged before the fault.
        ended: Whether the work had ended before.
    """

    acks: int
    ended: bool


class Rounds:
    """Runs rounds, each in a folder of its own."""

    def __init__(self, top: Path) -> None:
        """Make the library that all rounds begin with.

        Args:
            top: An empty folder for everything.
        """
        self.top = top
        for name in ("HOME", "XDG_DATA_HOME", "XDG_CONFIG_HOME", "XDG_CACHE_HOME",
                     "XDG_STATE_HOME"):
            os.environ[name] = str(top / "home")
        self.pristine = make_demo(top / "pristine.db", lambda: NOW)
        self._lasts: dict[str, float] = {}

    def one(self, name: str, fault: str, seed: int) -> Result:
        """Run a round and return what was acknowledged; what does not hold raises.

        Args:
            name: The target.
            fault: One of ``FAULTS``.
            seed: Decides all that is random.
        """
        rng = random.Random(f"{name} {fault} {seed}")
        folder = Path(tempfile.mkdtemp(prefix=f"{name}-", dir=self.top))
        try:
            target = TARGETS[name](folder, self.pristine, rng, _clock(fault, rng))
            if fault == "full":
                acks, ended = self._on_a_full_disk(target)
            elif fault == "clock":
                acks, ended = _run(target)
            else:
                acks, ended = self._killed(name, target)
            target.clock = system_clock
            target.check(acks)
            if target.library.exists():
                target.is_well()
            return Result(len(acks), ended)
        finally:
            shutil.rmtree(folder, ignore_errors=True)

    def _killed(self, name: str, target: Target) -> tuple[list[Any], bool]:
        started = time.monotonic()
        lasts = self._lasts.get(name, 0.5)
        found = _run(target, kill_after_s=target.rng.uniform(0, lasts))
        if found[1]:
            self._lasts[name] = (time.monotonic() - started) * 0.95
        else:
            self._lasts[name] = lasts * 1.02
        return found

    def _on_a_full_disk(self, target: Target) -> tuple[list[Any], bool]:
        """Run work on a disk that gets full, then make room again."""
        if _small_disk_works(self.top):
            return self._on_a_small_disk(target)
        largest = max((one.stat().st_size for one in target.folder.rglob("*")), default=0)
        return _run(target, largest_file=largest + target.rng.randrange(1, 600_000))

    def _on_a_small_disk(self, target: Target) -> tuple[list[Any], bool]:
        used = sum(one.stat().st_blocks * 512 for one in target.folder.rglob("*"))
        size = used + target.rng.randrange(40_000, 3_000_000)
        inside = {one.relative_to(target.folder): one.read_bytes()
                  for one in target.folder.rglob("*") if one.is_file()}
        with _mounted(target.folder, size):
            for path, content in inside.items():
                (target.folder / path).write_bytes(content)
                (target.folder / path).chmod(0o600)
            found = _run(target)
            kept = target.folder.with_name(f"{target.folder.name}-kept")
            shutil.copytree(target.folder, kept)
        shutil.rmtree(target.folder)
        kept.rename(target.folder)
        return found


def _clock(fault: str, rng: random.Random) -> Clock:
    if fault != "clock":
        return system_clock
    return lambda: system_clock() + rng.choice(_JUMPS_MS)


def _run(
    target: Target, *, kill_after_s: float | None = None, largest_file: int | None = None
) -> tuple[list[Any], bool]:
    """Run work in a process of its own; return what it acknowledged, and whether it ended.

    Args:
        target: The work.
        kill_after_s: When it is killed; None lets it end.
        largest_file: Bytes that a file may have; None for any.
    """
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.setpgid(0, 0)
        os.close(reading)
        _child(target, writing, largest_file, may_fail=kill_after_s is None)
    os.close(writing)
    with contextlib.suppress(OSError):
        os.setpgid(child, child)
    if kill_after_s is not None:
        time.sleep(kill_after_s)
        with contextlib.suppress(ProcessLookupError):
            os.killpg(child, signal.SIGKILL)
    with os.fdopen(reading, "rb") as file:
        lines = file.read().split(b"\n")
    _, status = os.waitpid(child, 0)
    code = os.waitstatus_to_exitcode(status)
    assert code in (0, -signal.SIGKILL), f"the work ended with {code}; see above"
    return [json.loads(line) for line in lines[:-1]], code == 0


def _child(target: Target, writing: int, largest_file: int | None, *, may_fail: bool) -> None:
    try:
        if largest_file is not None:
            signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
            resource.setrlimit(resource.RLIMIT_FSIZE, (largest_file, largest_file))
        sys.stdout = open(os.devnull, "w")  # noqa: SIM115 - until the process ends

        def ack(done: object) -> None:
            os.write(writing, json.dumps(done).encode() + b"\n")

        target.work(ack)
        code = 0
    except EXPECTED_WHEN_FULL as error:
        code = 0 if may_fail else _SURPRISED
        if code:
            print(f"{type(error).__name__}: {error}", file=sys.stderr, flush=True)
    except BaseException:
        traceback.print_exc()
        code = _SURPRISED
    os._exit(code)


_works: list[bool] = []


def _small_disk_works(top: Path) -> bool:
    """Return whether small file systems can be mounted here."""
    if not _works:
        place = top / "mounting"
        place.mkdir(exist_ok=True)
        try:
            with _mounted(place, 1 << 20):
                _works.append(True)
        except (OSError, subprocess.CalledProcessError):
            _works.append(False)
    return _works[0]


@contextlib.contextmanager
def _mounted(folder: Path, size: int) -> Iterator[None]:
    subprocess.run(
        ["mount", "-t", "tmpfs", "-o", f"size={size},mode=700", "tmpfs", str(folder)], check=True,
        capture_output=True)
    try:
        yield
    finally:
        subprocess.run(["umount", "-l", str(folder)], check=True, capture_output=True)


def run_rounds(
    names: list[str], faults: list[str], seed: int, goes_on: Callable[[int], bool]
) -> tuple[int, int, list[str]]:
    """Run rounds; return how many there were, how many were killed in the middle, what failed.

    Args:
        names: The targets.
        faults: The faults.
        seed: Of the first round.
        goes_on: Takes how many rounds of each were run; False ends it.
    """
    count, hit, failed, done = 0, 0, [], 0
    with tempfile.TemporaryDirectory(prefix="faults-") as top:
        rounds = Rounds(Path(top))
        while goes_on(done):
            for fault in faults:
                for name in names:
                    if not goes_on(done):
                        break
                    count += 1
                    try:
                        hit += not rounds.one(name, fault, seed + done).ended
                    except Exception:
                        failed.append(f"{name} {fault} --seed {seed + done}")
                        print(f"{failed[-1]}:\n{traceback.format_exc()}", flush=True)
            done += 1
    return count, hit, failed
