"""All sources there are.

A source is imported when it is asked for: a helper of a sync needs one of them, and all take a
tenth of a second.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import overload

from store.errors import NotFound, StoreError
from store.sources.base.protocol import Program, Source

_CLASSES = {
    "claude-code": ("store.sources.claude_code", "ClaudeCodeSource"),
    "codex": ("store.sources.codex", "CodexSource"),
    "opencode": ("store.sources.opencode", "OpencodeSource"),
    "kilo": ("store.sources.opencode", "KiloSource"),
    "crush": ("store.sources.crush", "CrushSource"),
    "llm": ("store.sources.llm", "LlmSource"),
    "goose": ("store.sources.goose", "GooseSource"),
    "zed": ("store.sources.zed", "ZedSource"),
    "openhands": ("store.sources.openhands", "OpenHandsSource"),
    "kiro": ("store.sources.kiro", "KiroSource"),
    "vibe": ("store.sources.vibe", "VibeSource"),
    "gptme": ("store.sources.gptme", "GptmeSource"),
    "droid": ("store.sources.droid", "DroidSource"),
    "kimi": ("store.sources.kimi", "KimiSource"),
    "amp": ("store.sources.amp", "AmpSource"),
    "continue": ("store.sources.continue_dev", "ContinueSource"),
    "cline": ("store.sources.cline", "ClineSource"),
    "qwen": ("store.sources.qwen", "QwenSource"),
    "gemini": ("store.sources.gemini", "GeminiSource"),
    "pi": ("store.sources.pi", "PiSource"),
    "copilot": ("store.sources.copilot", "CopilotSource"),
    "copilot-chat": ("store.sources.copilot_chat", "CopilotChatSource"),
    "cursor": ("store.sources.cursor", "CursorSource"),
    "aider": ("store.sources.aider", "AiderSource"),
    "y-agent": ("store.sources.y_agent", "YAgentSource"),
    "hub": ("store.sources.hub", "HubSource"),
    "lionagi": ("store.sources.lionagi", "LionagiSource"),
    "viben": ("store.sources.viben", "VibenSource"),
    "openai-agents": ("store.sources.openai_agents", "OpenaiAgentsSource"),
    "langgraph": ("store.sources.langgraph", "LanggraphSource"),
    "chatgpt": ("store.sources.chatgpt", "ChatgptSource"),
    "claude-ai": ("store.sources.claude_ai", "ClaudeAiSource"),
    "swe-agent": ("store.sources.swe_agent", "SweAgentSource"),
}
"""Module and class of each kind, in the order in which they are asked what a path is."""


class _OneOfEach(Sequence[Source]):
    """One of each source, each made when it is looked at."""

    def __init__(self) -> None:
        self._made: list[Source] = []

    def __len__(self) -> int:
        return len(_CLASSES)

    @overload
    def __getitem__(self, at: int) -> Source: ...
    @overload
    def __getitem__(self, at: slice) -> tuple[Source, ...]: ...
    def __getitem__(self, at: int | slice) -> Source | tuple[Source, ...]:
        if isinstance(at, slice):
            return tuple(self)[at]
        kinds = list(_CLASSES)
        while len(self._made) <= range(len(kinds))[at]:
            self._made.append(source(kinds[len(self._made)]))
        return self._made[at]


def all_sources() -> Sequence[Source]:
    """Return one of each source, in the order in which they are asked what a path is."""
    return _OneOfEach()


@cache
def programs() -> Mapping[str, Program]:
    """Return the program of each kind of source that has one."""
    return {each.kind: each.program for each in all_sources() if each.program is not None}


def source(kind: str) -> Source:
    """Return the source of a kind.

    Raises:
        NotFound: When there is none; the message names those there are.
    """
    if kind not in _CLASSES:
        raise NotFound(f"no source {kind!r}; there are: {', '.join(sorted(_CLASSES))}")
    module, name = _CLASSES[kind]
    made: Source = getattr(import_module(module), name)()
    return made


def has(one: Source) -> bool:
    """Return whether a source is what another process finds by its kind."""
    return one.kind in _CLASSES and type(source(one.kind)) is type(one)


def recognised(path: Path, sources: Iterable[Source]) -> tuple[Source, Path] | None:
    """Return the source that a file or folder is of, with its root; None where it is of none.

    Raises:
        StoreError: It may not be looked at.
    """
    denied: OSError | None = None
    try:
        if not path.exists():
            return None
        if path.is_dir():
            os.scandir(path).close()
    except OSError as error:
        denied, sources = error, ()
    for each in sources:
        try:
            root = each.recognise(path)
        except OSError as error:
            denied = denied or error  # Another source may not look there.
            continue
        if root is not None:
            return each, Path(root)
    if denied is not None:
        way_out = "; check its permissions" if isinstance(denied, PermissionError) else ""
        why = f"{denied.strerror or denied}{way_out}"
        raise StoreError(f"{denied.filename or path} cannot be read: {why}") from denied
    return None
