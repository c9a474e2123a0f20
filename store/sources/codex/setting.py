"""What holds for the responses that follow: model, effort, folder, turn, system prompt."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from typing import Any

from store.sources.base.values import mapping, string


@dataclass(slots=True)
class Setting:
    """The setting as of the last line.

    Attributes:
        cwd: The thread's folder; a response from another one names it.
        agent: The subagent that answers, where it is one.
        prompts: System prompts by digest.
    """

    cwd: str | None = None
    agent: str | None = None
    provider: str = "openai"
    model: str | None = None
    effort: str | None = None
    tier: str | None = None
    folder: str | None = None
    turn: str | None = None
    prompt: str | None = None
    prompts: dict[str, str] = field(default_factory=dict)

    def take_meta(self, payload: dict[str, Any]) -> None:
        """Follow a ``session_meta``."""
        self.provider = string(payload.get("model_provider")) or self.provider
        given = payload.get("base_instructions", payload.get("instructions"))
        text = string(mapping(given).get("text")) or string(given)
        if text:
            digest = hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
            self.prompts[digest] = text
            self.prompt = digest

    def take(self, said: dict[str, Any]) -> None:
        """Follow a ``turn_context`` or thread settings."""
        mode = mapping(mapping(said.get("collaboration_mode")).get("settings"))
        self.model = string(said.get("model")) or string(mode.get("model")) or self.model
        self.effort = string(said.get("effort")) or string(mode.get("reasoning_effort"))
        self.folder = string(said.get("cwd")) or self.folder
        self.provider = string(said.get("model_provider_id")) or self.provider
        if "service_tier" in said:
            self.tier = string(said["service_tier"])

    def usage_details(self) -> dict[str, str]:
        """Return the tier that a response is served in, where it is not the usual one.

        What the program calls fast is OpenAI's priority processing.
        """
        tier = "priority" if self.tier == "fast" else self.tier
        return {"tier": tier[:64]} if tier and tier not in ("default", "auto", "standard") else {}

    def model_ref(self) -> dict[str, Any] | None:
        """Return the model as messages name it."""
        if self.model is None:
            return None
        found = {"provider_id": self.provider, "model_id": self.model}
        return {**found, "variant": self.effort} if self.effort else found

    def described(self) -> dict[str, Any]:
        """Return the metadata of a response that begins now."""
        metadata: dict[str, Any] = {}
        model = self.model_ref()
        if model:
            metadata["model"] = model
        if self.agent:
            metadata["agent"] = self.agent
        if self.prompt:
            metadata["system_prompt_digest"] = self.prompt
        extra: dict[str, Any] = {}
        if self.turn:
            extra["turn_id"] = self.turn
        if self.folder and self.folder != self.cwd:
            extra["cwd"] = self.folder
        if extra:
            metadata["backscroll"] = extra
        return metadata
