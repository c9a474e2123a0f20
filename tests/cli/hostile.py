"""Values that a session may hold to make a program do something, and sessions that hold them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

AGENTS = {"claude-code": "claude", "codex": "codex", "gemini": "gemini", "opencode": "opencode",
          "pi": "pi", "qwen": "qwen", "kimi": "kimi", "continue": "cn",
          "cline": "cline", "openhands": "openhands"}  # fmt: skip
VALUES = (
    "--dangerously-skip-permissions", '--settings={"hooks":{"Stop":[{"command":"touch pwned"}]}}',
    "--yolo", "-y", "-", "--", "-- --yolo", "--resume=x", "-c\nshell=true", "@/etc/passwd",
    "'; touch pwned #\n$(touch pwned2)`touch pwned3`", "latest", "5", "update", "mcp", "../../../x",
    "/etc/passwd", " --yolo", "\u202e--yolo\u2069", "x\u0000\u001b[31my", "\u001b]0;EVIL\u0007",
    "\u009b31m", "a\rb", "\udc80", "%s%n", "$HOME", "~root", "-P/tmp; touch pwned", "",
)  # fmt: skip
PROMPTS = (*VALUES, "plain words", "two\nlines\tand a tab", "x" * 200_000)
_NUMBER = iter(range(1, 1_000_000))


def session(
    *, kind: str = "claude-code", source_id: str = "11111111-2222-4333-8444-555555555555",
    path: str = "/etc/passwd", workspace: str | None = None, title: str = "A title",
    model: str = "m", prompt: str = "go on", answered: bool = True,
) -> list[dict[str, Any]]:
    """Return the lines of one exported session that ends with a person's prompt."""
    stamp = f"{next(_NUMBER):012x}AAAAAAAAAAAAAA"
    times = {"created_at": 1_790_000_000_000, "updated_at": 1_790_000_000_000}
    lines: list[dict[str, Any]] = [{"type": "session", "data": {
        "id": f"ses_{stamp}", **times, "agent": kind, "workspace_root": workspace,
        "model": {"provider_id": model, "model_id": model},
        "metadata": {"title": title, "source": {"kind": kind, "id": source_id, "path": path}},
    }}]  # fmt: skip
    said = [("user", "hello"), ("assistant", "an answer")] if answered else []
    for place, (role, text) in enumerate([*said, ("user", prompt)]):
        ids = {"session_id": f"ses_{stamp}", "created_at": times["created_at"] + place,
               "updated_at": times["updated_at"] + place}  # fmt: skip
        message = f"msg_{place:03}{stamp[3:]}"
        lines.append({"type": "message", "data": {
            "id": message, **ids, "role": role,
            "metadata": {"origin": "human", "model": {"provider_id": model, "model_id": model}},
        }})  # fmt: skip
        lines.append({"type": "part", "data": {
            "id": f"prt_{place:03}{stamp[3:]}", "message_id": message, **ids, "index": 0,
            "type": "text", "data": {"type": "text", "text": text},
        }})  # fmt: skip
    return lines


def write(path: Path, *sessions: list[dict[str, Any]]) -> list[str]:
    """Write sessions to a file that ``import`` reads, and return their ids."""
    lines = [line for one in sessions for line in one]
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return [str(one[0]["data"]["id"]) for one in sessions]
