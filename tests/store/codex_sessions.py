"""Codex rollouts of everything that happens in one, in any order, by a seed."""

from __future__ import annotations

import json
import random
from typing import Any

from tests.sources.codex_lines import Lines, thread_id

THREAD = thread_id(7)
NAME = f"rollout-2026-11-27T22-33-23-{THREAD}.jsonl"


class Made:
    """One rollout while it is made."""

    def __init__(self, seed: str) -> None:
        self.rng, self.tiers = random.Random(seed), random.Random(seed)
        self.has_turns = self.rng.random() < 0.7
        self.tells = self.rng.random() < 0.3
        start = 0 if self.rng.random() < 0.7 else None
        self.lines = Lines(THREAD, start, base_instructions={"text": "be good"})
        self.count = self.total = 0
        self.open: list[str] = []

    def words(self) -> str:
        self.count += 1
        return f"text {self.count} " + "word " * self.rng.choice((1, 5, 60))

    def turn(self) -> None:
        lines, rng = self.lines, self.rng
        turn = thread_id(1000 + self.count)
        if self.has_turns:
            lines.event("task_started", turn_id=turn)
        lines.add("turn_context", {"turn_id": turn, "cwd": rng.choice(("/w", "/w", "/v")),
                                   "model": rng.choice("aab"), "effort": rng.choice("xy")})
        if self.tiers.random() < 0.2:
            tier = self.tiers.choice(("fast", "default", None))
            settings = {"model": "a", "service_tier": tier}
            lines.event("thread_settings_applied", thread_settings=settings)
        lines.user(self.words(), event=rng.random() < 0.9)
        for _ in range(rng.choice((1, 2, 4))):
            self.response()
        if self.has_turns and rng.random() < 0.9:
            kind = rng.choice(("task_complete", "task_complete", "turn_aborted"))
            lines.event(kind, turn_id=turn)

    def response(self) -> None:
        lines, rng = self.lines, self.rng
        text = self.words()
        if rng.random() < 0.3:
            lines.item("reasoning", summary=[{"type": "summary_text", "text": self.words()}])
        if self.tells:
            lines.event("agent_message", message=text)
        if not self.tells or rng.random() < 0.9:
            lines.says(text)
        calls = [lines.call("shell", command="x") for _ in range(rng.choice((0, 1, 1, 2)))]
        self.count += 1
        if self.has_turns:
            lines.usage(f"resp_{self.count}", given=100 + self.count)
        else:
            self.tokens()
        for call in calls:
            if rng.random() < 0.95:
                lines.output(call, self.words())
            else:
                self.open.append(call)
        if self.has_turns and rng.random() < 0.7:
            lines.event("token_count", info=None, rate_limits=self.limits())

    def tokens(self) -> None:
        self.total += 10
        used = {"input_tokens": 9, "output_tokens": 1, "total_tokens": 10}
        total = {**used, "total_tokens": self.total}
        info = {"total_token_usage": total, "last_token_usage": used}
        self.lines.event("token_count", info=info, rate_limits=self.limits())

    def limits(self) -> dict[str, Any]:
        """Return what the server says about the plan's windows."""
        used = self.rng.randrange(100)
        ends = {"resets_in_seconds": 60} if used % 2 else {"resets_at": self.lines.at // 1000 + 60}
        return {"primary": {"used_percent": used, "window_minutes": 300, **ends}}

    def late(self) -> None:
        if self.open:
            self.lines.output(self.open.pop(0), self.words())

    def orphan(self) -> None:
        self.count += 1
        self.lines.output(f"nowhere_{self.count}", self.words())

    def rewind(self) -> None:
        self.lines.event("thread_rolled_back", num_turns=self.rng.choice((1, 1, 3)))

    def compaction(self) -> None:
        self.lines.add("compacted", {"message": self.words()})

    def error(self) -> None:
        self.lines.event("error", message=self.words())


RARE = ("late", "orphan", "rewind", "compaction", "error")


def session(seed: str, steps: int, rare: float) -> bytes:
    """Return the content of a rollout; see ``claude_sessions.session``."""
    made = Made(seed)
    for _ in range(steps):
        name = made.rng.choice(RARE) if made.rng.random() < rare else "turn"
        getattr(made, name)()
    lines = [json.dumps(line).encode() for line in made.lines.lines]
    for _ in range(round(steps * rare / 4)):
        damage = made.rng.choice((b"", b'{"type":"x', b"[1]"))
        lines.insert(made.rng.randrange(1, len(lines)), damage)
    return b"\n".join(lines) + b"\n"
