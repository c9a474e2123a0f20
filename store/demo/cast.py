"""The models, prices, places and prompts that the demo's scenes share."""

from __future__ import annotations

API = "/home/mira/code/api"
SITE = "/home/mira/code/site"
NOTES = "/home/mira/notes"
TOOLS = "/home/mira/code/tools"

SONNET = {"provider_id": "anthropic", "model_id": "claude-sonnet-4-5"}
OPUS = {"provider_id": "anthropic", "model_id": "claude-opus-4-5"}
HAIKU = {"provider_id": "anthropic", "model_id": "claude-haiku-4-5"}
CODEX = {"provider_id": "openai", "model_id": "gpt-5.2-codex", "variant": "high"}
GPT = {"provider_id": "openai", "model_id": "gpt-5.2"}
GEMINI = {"provider_id": "google", "model_id": "gemini-3-pro"}
GLM = {"provider_id": "zai", "model_id": "glm-5"}

SONNET_PRICE = (3.0, 15.0, 0.3, 3.75)
OPUS_PRICE = (5.0, 25.0, 0.5, 6.25)
HAIKU_PRICE = (1.0, 5.0, 0.1, 1.25)

SECOND, MINUTE, HOUR, DAY = 1.0, 60.0, 3600.0, 86400.0

CLAUDE_PROMPT = """\
You are a coding agent that works in the user's terminal.

Read before you edit. Run the tests that cover what you change. Say what you did in a few
sentences, and say plainly when something is not done.

Working directory: /home/mira/code/api
Platform: linux
"""


def claude_path(workspace: str, key: str) -> str:
    """Return where Claude Code would keep such a session."""
    return f"/home/mira/.claude/projects/{workspace.replace('/', '-')}/{key}.jsonl"
