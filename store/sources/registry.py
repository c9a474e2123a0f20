"""All sources there are."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path

from store.errors import NotFound, StoreError
from store.sources.aider import AiderSource
from store.sources.amp import AmpSource
from store.sources.base.protocol import Program, Source
from store.sources.chatgpt import ChatgptSource
from store.sources.claude_ai import ClaudeAiSource
from store.sources.claude_code import ClaudeCodeSource
from store.sources.cline import ClineSource
from store.sources.codex import CodexSource
from store.sources.continue_dev import ContinueSource
from store.sources.copilot import CopilotSource
from store.sources.copilot_chat import CopilotChatSource
from store.sources.crush import CrushSource
from store.sources.cursor import CursorSource
from store.sources.droid import DroidSource
from store.sources.gemini import GeminiSource
from store.sources.goose import GooseSource
from store.sources.gptme import GptmeSource
from store.sources.hub import HubSource
from store.sources.kimi import KimiSource
from store.sources.kiro import KiroSource
from store.sources.langgraph import LanggraphSource
from store.sources.lionagi import LionagiSource
from store.sources.llm import LlmSource
from store.sources.openai_agents import OpenaiAgentsSource
from store.sources.opencode import KiloSource, OpencodeSource
from store.sources.openhands import OpenHandsSource
from store.sources.pi import PiSource
from store.sources.qwen import QwenSource
from store.sources.swe_agent import SweAgentSource
from store.sources.vibe import VibeSource
from store.sources.viben import VibenSource
from store.sources.y_agent import YAgentSource
from store.sources.zed import ZedSource


def all_sources() -> tuple[Source, ...]:
    """Return one of each source, in the order in which they are asked what a path is."""
    return (
        ClaudeCodeSource(),
        CodexSource(),
        OpencodeSource(),
        KiloSource(),
        CrushSource(),
        LlmSource(),
        GooseSource(),
        ZedSource(),
        OpenHandsSource(),
        KiroSource(),
        VibeSource(),
        GptmeSource(),
        DroidSource(),
        KimiSource(),
        AmpSource(),
        ContinueSource(),
        ClineSource(),
        QwenSource(),
        GeminiSource(),
        PiSource(),
        CopilotSource(),
        CopilotChatSource(),
        CursorSource(),
        AiderSource(),
        YAgentSource(),
        HubSource(),
        LionagiSource(),
        VibenSource(),
        OpenaiAgentsSource(),
        LanggraphSource(),
        ChatgptSource(),
        ClaudeAiSource(),
        SweAgentSource(),
    )


@cache
def programs() -> Mapping[str, Program]:
    """Return the program of each kind of source that has one."""
    return {each.kind: each.program for each in all_sources() if each.program is not None}


def source(kind: str) -> Source:
    """Return the source of a kind.

    Raises:
        NotFound: When there is none; the message names those there are.
    """
    found = {each.kind: each for each in all_sources()}
    if kind not in found:
        raise NotFound(f"no source {kind!r}; there are: {', '.join(sorted(found))}")
    return found[kind]


def recognised(path: Path, sources: Iterable[Source]) -> tuple[Source, Path] | None:
    """Return the source that a file or folder is of, with its root; None where it is of none.

    Raises:
        StoreError: It may not be looked at.
    """
    try:
        if not path.exists():
            return None
        if path.is_dir():
            os.scandir(path).close()
        for each in sources:
            root = each.recognise(path)
            if root is not None:
                return each, Path(root)
    except OSError as error:
        way_out = "; check its permissions" if isinstance(error, PermissionError) else ""
        raise StoreError(f"{path} cannot be read: {error.strerror or error}{way_out}") from error
    return None
