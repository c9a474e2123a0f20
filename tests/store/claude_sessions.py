"""Claude Code session files of everything that happens in one, in any order, by a seed."""

from __future__ import annotations

import random
import uuid
from datetime import UTC, datetime
from typing import Any

import orjson

START_MS = 1_795_000_000_000
SESSION = "5e551017-0000-4000-8000-000000000000"
VERSION = "2.1.332"


class Made:
    """One session while it is made; ``lines`` are what its file holds.

    ``prices`` decides whether answers say what few say: an hour in the cache, fast mode.
    """

    def __init__(self, seed: str, prices: bool) -> None:
        self.rng, self.costs = random.Random(seed), random.Random(seed)
        self.prices = prices
        self.at = START_MS
        self.lines: list[bytes] = []
        self.rows: list[dict[str, Any]] = []
        self.waiting: list[str] = []
        self.unanswered: list[tuple[str, str]] = []
        self.count = 0

    def id(self) -> str:
        return str(uuid.UUID(int=self.rng.getrandbits(128), version=4))

    def words(self) -> str:
        self.count += 1
        return f"text {self.count} " + "word " * self.rng.choice((1, 5, 40))

    def time(self) -> str:
        self.at += self.rng.choice((0, 1, 250, 4_000))
        when = datetime.fromtimestamp(self.at / 1000, UTC)
        return when.isoformat(timespec="milliseconds").replace("+00:00", "Z")

    def row(self, kind: str, parent: str | None = None, **more: Any) -> dict[str, Any]:
        above = parent or (self.rows[-1]["uuid"] if self.rows else None)
        row = {
            "parentUuid": above, "isSidechain": False, "sessionId": SESSION, "cwd": "/work",
            "version": VERSION, "gitBranch": self.rng.choice(("main", "main", "main", "other")),
            "type": kind, "uuid": self.id(), "timestamp": self.time(), **more,
        }  # fmt: skip
        self.rows.append(row)
        self.lines.append(orjson.dumps(row))
        return row

    def note(self, kind: str, **more: Any) -> None:
        self.lines.append(orjson.dumps({"type": kind, "sessionId": SESSION, **more}))

    def prompt(self, parent: str | None = None) -> None:
        self.row("user", parent, message={"role": "user", "content": self.words()})

    def rewind(self) -> None:
        if self.rows:
            back = self.rng.choice((1, 2, 5, 30))
            self.prompt(self.rows[-min(back, len(self.rows))]["uuid"])

    def answer(self) -> None:
        rng, message = self.rng, f"msg_{self.rng.getrandbits(60):x}"
        for _ in range(rng.choice((1, 1, 2, 3))):
            block: dict[str, Any] = {"type": "text", "text": self.words()}
            if rng.random() < 0.5:
                call = f"toolu_{rng.getrandbits(60):x}"
                block = {"type": "tool_use", "id": call, "name": "Bash", "input": {"command": "x"}}
            row = self.row(
                "assistant", requestId=f"req_{message}",
                message={
                    "id": message, "role": "assistant", "content": [block],
                    "model": rng.choice(("claude-a", "claude-a", "claude-b", "<synthetic>")),
                    "usage": self.usage(),
                },
            )  # fmt: skip
            if block["type"] == "tool_use":
                self.unanswered.append((block["id"], row["uuid"]))

    def usage(self) -> dict[str, Any]:
        usage = {"input_tokens": 3, "output_tokens": self.rng.randrange(99)}
        hour = {"cache_creation": {"ephemeral_1h_input_tokens": 7}}
        more = self.costs.choice(({}, {}, {}, hour, {"speed": "fast"}))
        return usage | more if self.prices else usage

    def result(self) -> None:
        if self.unanswered:
            call, source = self.unanswered.pop(self.rng.choice((0, -1)))
            block = {"type": "tool_result", "tool_use_id": call, "content": self.words()}
            self.row("user", source, message={"role": "user", "content": [block]},
                     toolUseResult={"stdout": "out"}, sourceToolAssistantUUID=source)  # fmt: skip

    def turn(self) -> None:
        self.prompt()
        for _ in range(self.rng.choice((1, 2, 4))):
            self.answer()
            while self.unanswered and self.rng.random() < 0.95:
                self.result()

    def orphan(self) -> None:
        block = {"type": "tool_result", "tool_use_id": self.id(), "content": self.words()}
        self.row("user", message={"role": "user", "content": [block]})

    def compaction(self) -> None:
        last = self.rows[-1]["uuid"] if self.rows else None
        kept = self.rng.choice((None, self.rows[-min(3, len(self.rows))]["uuid"] if last else None))
        boundary = self.row(
            "system", subtype="compact_boundary", logicalParentUuid=last, content="compacted",
            compactMetadata={"trigger": "auto", "preTokens": 9, **(
                {"preservedSegment": {"headUuid": kept, "tailUuid": last}} if kept else {})},
        )  # fmt: skip
        boundary["parentUuid"] = None
        self.lines[-1] = orjson.dumps(boundary)
        self.row("user", isCompactSummary=True, message={"role": "user", "content": self.words()})

    def event(self) -> None:
        subtype = self.rng.choice(("turn_duration", "api_error", "local_command", "informational"))
        self.row("system", subtype=subtype, content=self.words(), durationMs=5, isMeta=False)

    def interrupt(self) -> None:
        self.row("user", message={"role": "user", "content": "[Request interrupted by user]"})

    def command(self) -> None:
        words = "<command-name>/do</command-name><command-args>it</command-args>"
        self.row("user", message={"role": "user", "content": words})

    def snapshot(self) -> None:
        tools = [{"name": self.rng.choice("abc"), "description": "does"}]
        self.row("attachment", attachment={
            "type": "prompt_snapshot", "systemPrompt": self.rng.choice("xyz"), "tools": tools,
        })  # fmt: skip

    def queue(self) -> None:
        operation = self.rng.choice(("enqueue", "dequeue", "remove", "popAll", "row"))
        if operation == "enqueue":
            self.waiting.append(self.words())
            self.note("queue-operation", operation="enqueue", content=self.waiting[-1],
                      timestamp=self.time())  # fmt: skip
        elif operation == "row" and self.waiting:
            self.row("attachment", attachment={
                "type": "queued_command", "prompt": self.waiting.pop(0)})  # fmt: skip
        elif operation == "popAll":
            self.waiting.clear()
            self.note("queue-operation", operation="popAll", timestamp=self.time())
        elif self.waiting:
            words = self.waiting.pop(0)
            self.note("queue-operation", operation=operation, content=words,
                      timestamp=self.time())  # fmt: skip
            if operation == "dequeue":
                self.row("user", message={"role": "user", "content": words})

    def notes(self) -> None:
        kind = self.rng.choice(
            ("ai-title", "custom-title", "summary", "last-prompt", "cost-state", "mode", "snapshot")
        )
        some = self.rng.choice(self.rows)["uuid"] if self.rows else self.id()
        if kind == "ai-title":
            self.note(kind, aiTitle=self.words())
        elif kind == "custom-title":
            self.note(kind, customTitle=self.words())
        elif kind == "summary":
            self.note(kind, summary=self.words(), leafUuid=some)
        elif kind == "last-prompt":
            last = self.rows[-1]["uuid"] if self.rows else some
            self.note(kind, leafUuid=self.rng.choice((last, last, last, some)))
        elif kind == "cost-state":
            usd = self.rng.random()
            side = usd * self.costs.random()
            self.note(kind, totalCostUSD=usd, startTime=self.rng.choice((1, 2)),
                      modelUsage={"claude-a": {"costUSD": usd - side},
                                  "claude-b": {"costUSD": side}})  # fmt: skip
        elif kind == "mode":
            self.note(kind, mode=self.words())
        else:
            self.note("file-history-snapshot", messageId=some)

    def damage(self) -> None:
        kind = self.rng.choice(("again", "other", "cut", "glued", "blank"))
        if kind == "blank" or not self.rows:
            self.lines.append(b"")
        elif kind == "again":
            self.lines.append(orjson.dumps(self.rng.choice(self.rows)))
        elif kind == "other":
            self.lines.append(orjson.dumps({**self.rng.choice(self.rows), "cwd": "/elsewhere"}))
        elif kind == "cut":
            self.lines.append(orjson.dumps(self.rows[-1])[:-9])
        else:
            self.prompt()
            self.lines[-2:] = [b"".join(self.lines[-2:])]


RARE = ("rewind", "orphan", "compaction", "damage", "interrupt", "command")
OFTEN = ("turn", "turn", "turn", "answer", "result", "event", "snapshot", "queue", "notes")


def session(seed: str, steps: int, rare: float) -> bytes:
    """Return the content of a session's file.

    Args:
        seed: Decides everything.
        steps: How much happens.
        rare: How often it is something that may reach far back, from 0 to 1.
    """
    made = Made(seed, rare > 0)
    for _ in range(steps):
        names = RARE if made.rng.random() < rare else OFTEN
        getattr(made, made.rng.choice(names))()
    return b"\n".join(made.lines) + b"\n"
