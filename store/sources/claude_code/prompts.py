"""System prompts and tool catalogues, where prompt_snapshot attachments bring them."""

from __future__ import annotations

from hashlib import sha256
from typing import Any

from store.sources.claude_code.rows import string


class Prompts:
    """What the snapshots of a thread have told so far.

    Attributes:
        digest: SHA-256 (hex) of the newest system prompt.
        bodies: All prompts by digest.
        tools: The newest tool catalogue, ``[{name, description?, input_schema?}]``.
    """

    def __init__(self) -> None:
        """Start with nothing known."""
        self.digest: str | None = None
        self.bodies: dict[str, str] = {}
        self.tools: list[dict[str, Any]] = []
        self._known: object = None

    def take(self, attachment: dict[str, Any]) -> None:
        """Take one prompt_snapshot attachment."""
        prompt = attachment.get("systemPrompt")
        if prompt and prompt != self._known:
            self._known = prompt
            blocks = prompt if isinstance(prompt, list) else [prompt]
            body = "\n\n".join(block for block in blocks if isinstance(block, str))
            self.digest = sha256(body.encode("utf-8", "replace")).hexdigest()
            self.bodies[self.digest] = body
        tools = attachment.get("tools")
        if isinstance(tools, list) and tools:
            self.tools = [_tool(tool) for tool in tools if isinstance(tool, dict)]


def _tool(tool: dict[str, Any]) -> dict[str, Any]:
    schema = tool.get("schema")
    schema = schema if isinstance(schema, dict) else {}
    found = {
        "name": string(tool.get("name")) or string(schema.get("name")) or "unknown",
        "description": string(tool.get("description")) or string(schema.get("description")),
        "input_schema": schema.get("input_schema"),
    }
    return {key: value for key, value in found.items() if value is not None}
