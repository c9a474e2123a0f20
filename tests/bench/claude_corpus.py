"""A tree of Claude Code session files, the same for the same seed.

    python -m tests.bench.claude_corpus FOLDER --files 2000 --messages 100

Each session is one file below ``FOLDER/projects``: prompts, answers of one or more rows
that share an API message, tool calls with their results, thinking, and the notes that the
program writes around them.
"""

from __future__ import annotations

import argparse
import os
import random
import uuid
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import orjson

FIRST_SESSION_S = 1_790_000_000
SESSION_GAP_S = 1_800
PROSE = (
    "read write parse index cursor window render socket queue retry buffer stream token "
    "branch merge commit schema column value error trace assert build deploy cache layout "
    "the a of to in and for with that is on as it be by from or this when then so but"
)
WORDS = PROSE.split()
TOOLS = ("Bash", "Read", "Edit", "Grep")
PROJECTS = 20


@dataclass(slots=True)
class Conversation:
    """One session while it is made."""

    rng: random.Random
    name: str
    folder: str
    at_ms: int
    rows: list[dict[str, Any]] = field(default_factory=list)
    parent: str | None = None

    def prose(self, size: int) -> str:
        """Return about ``size`` characters of sentences."""
        words = self.rng.choices(WORDS, k=max(2, size // 6))
        lines = [" ".join(words[start : start + 14]) for start in range(0, len(words), 14)]
        return ".\n".join(lines)

    def row(self, kind: str, message: dict[str, Any], **more: Any) -> None:
        """Add a row below the one before it."""
        self.at_ms += self.rng.randint(200, 6_000)
        own = str(uuid.UUID(int=self.rng.getrandbits(128), version=4))
        time = datetime.fromtimestamp(self.at_ms / 1000, UTC).isoformat(timespec="milliseconds")
        self.rows.append({
            "parentUuid": self.parent, "isSidechain": False, "userType": "external",
            "cwd": self.folder, "sessionId": self.name, "version": "2.1.112",
            "gitBranch": "main", "type": kind, "message": message, "uuid": own,
            "timestamp": time.replace("+00:00", "Z"), **more,
        })  # fmt: skip
        self.parent = own

    def prompt(self) -> None:
        """Add what a person typed."""
        self.row("user", {"role": "user", "content": self.prose(180)})

    def answer(self, blocks: list[dict[str, Any]]) -> None:
        """Add one API message, one row a block."""
        rng = self.rng
        usage = {
            "input_tokens": rng.randint(2, 60), "output_tokens": rng.randint(20, 1_500),
            "cache_creation_input_tokens": rng.randint(0, 4_000),
            "cache_read_input_tokens": rng.randint(4_000, 90_000),
        }  # fmt: skip
        message_id = f"msg_{rng.getrandbits(96):024x}"
        request_id = f"req_{rng.getrandbits(80):020x}"
        for block in blocks:
            self.row("assistant", {
                "id": message_id, "type": "message", "role": "assistant",
                "model": "claude-sonnet-4-5", "content": [block], "usage": usage,
                "stop_reason": "tool_use" if blocks[-1]["type"] == "tool_use" else "end_turn",
            }, requestId=request_id)  # fmt: skip

    def call(self, size: int) -> None:
        """Add an answer that calls a tool, and the tool's result."""
        rng = self.rng
        call_id, tool = f"toolu_{rng.getrandbits(96):024x}", rng.choice(TOOLS)
        arguments = {
            "Bash": {"command": f"pytest -q tests/test_{rng.randint(0, 99)}.py"},
            "Read": {"file_path": f"{self.folder}/module_{rng.randint(0, 99)}.py"},
            "Edit": {"file_path": f"{self.folder}/m.py", "old_string": self.prose(120),
                     "new_string": self.prose(150)},
            "Grep": {"pattern": f"def {rng.choice(WORDS)}"},
        }[tool]  # fmt: skip
        blocks: list[dict[str, Any]] = []
        if rng.random() < 0.2:
            blocks.append({"type": "thinking", "thinking": self.prose(300), "signature": "s"})
        blocks.append({"type": "tool_use", "id": call_id, "name": tool, "input": arguments})
        self.answer(blocks)
        output = self.prose(size)
        self.row(
            "user",
            {"role": "user", "content": [{
                "type": "tool_result", "tool_use_id": call_id, "content": output,
                "is_error": rng.random() < 0.04}]},
            toolUseResult={"stdout": output, "stderr": "", "interrupted": False},
        )  # fmt: skip

    def turn(self, rows: int) -> None:
        """Add a prompt, calls, and a closing answer, about ``rows`` rows in all."""
        self.prompt()
        for _ in range(max(0, rows - 2) // 2):
            self.call(self.rng.choice((200, 600, 900, 2_400)))
        self.answer([{"type": "text", "text": self.prose(700)}])


def conversation(seed: int, number: int, rows: int) -> Conversation:
    """Return one session of about so many rows."""
    rng = random.Random(f"{seed}/{number}")
    name = str(uuid.UUID(int=rng.getrandbits(128), version=4))
    folder = f"/home/someone/code/project-{number % PROJECTS:02d}"
    made = Conversation(rng, name, folder, (FIRST_SESSION_S + number * SESSION_GAP_S) * 1000)
    while len(made.rows) < rows:
        made.turn(min(10, rows - len(made.rows)))
    return made


def lines(made: Conversation) -> Iterator[bytes]:
    """Yield the lines of a session's file."""
    snapshot = {"messageId": made.rows[0]["uuid"], "trackedFileBackups": {}}
    yield orjson.dumps({"type": "file-history-snapshot", "snapshot": snapshot})
    for row in made.rows:
        yield orjson.dumps(row)
    yield orjson.dumps({"type": "last-prompt", "lastPrompt": "…", "sessionId": made.name})


def make(folder: Path, files: int, rows: int, seed: int = 1) -> int:
    """Write the tree where it is not there whole yet.

    Args:
        folder: Takes the place of ``~/.claude``.
        files: Sessions.
        rows: Rows with a message, of each session.
        seed: Decides everything.

    Returns:
        Bytes of all session files.
    """
    done = folder / "made"
    wanted = f"4 {files} {rows} {seed}\n"
    if done.exists() and done.read_text().startswith(wanted):
        return int(done.read_text().split("\n")[1])
    total = 0
    for number in range(files):
        made = conversation(seed, number, rows)
        place = folder / "projects" / made.folder.replace("/", "-")
        place.mkdir(parents=True, exist_ok=True)
        path = place / f"{made.name}.jsonl"
        total += path.write_bytes(b"\n".join(lines(made)) + b"\n")
        os.utime(path, ns=(made.at_ms * 1_000_000,) * 2)
    done.write_text(f"{wanted}{total}\n")
    return total


def make_long(folder: Path, size: int, seed: int = 1) -> Path:
    """Write a tree of one session of at least so many bytes where it is not there whole yet.

    Returns:
        The session's file.
    """
    rng = random.Random(f"long/{seed}")
    name = str(uuid.UUID(int=rng.getrandbits(128), version=4))
    made = Conversation(rng, name, "/home/someone/code/long", FIRST_SESSION_S * 1000)
    path = folder / "projects" / made.folder.replace("/", "-") / f"{name}.jsonl"
    done, wanted = folder / "made", f"long 2 {size} {seed}\n"
    if done.exists() and done.read_text().startswith(wanted):
        return path
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("wb") as file:
        while file.tell() < size:
            made.turn(10)
            file.writelines(orjson.dumps(row) + b"\n" for row in made.rows)
            made.rows.clear()
    os.utime(path, ns=(made.at_ms * 1_000_000,) * 2)
    done.write_text(f"{wanted}{path.stat().st_size}\n")
    return path


def next_line(line: bytes, number: int) -> bytes:
    """Return an answer that follows the last line of a session's file."""
    above = orjson.loads(line)
    time = datetime.fromisoformat(above["timestamp"]) + timedelta(seconds=number + 1)
    return orjson.dumps({
        **above, "parentUuid": above["uuid"], "type": "assistant", "requestId": f"req_{number}",
        "uuid": str(uuid.uuid5(uuid.UUID(above["uuid"]), str(number))),
        "timestamp": time.isoformat(timespec="milliseconds").replace("+00:00", "Z"),
        "message": {
            "id": f"msg_next_{number}", "type": "message", "role": "assistant",
            "model": "claude-sonnet-4-5", "stop_reason": "end_turn",
            "content": [{"type": "text", "text": f"One more line, number {number}."}],
            "usage": {"input_tokens": 3, "output_tokens": 9},
        },
    }) + b"\n"  # fmt: skip


def main() -> None:
    """Make a tree from the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--files", type=int, default=2_000)
    parser.add_argument("--messages", type=int, default=100)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    print(make(options.folder, options.files, options.messages, options.seed), "bytes")


if __name__ == "__main__":
    main()
