"""The sample of every source: which root to read, and which program wrote it."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import NamedTuple

from store.sources.registry import source
from store.sync.targets import Target

DATA = Path(__file__).parent.parent / "data"


class Sample(NamedTuple):
    """A sample, and what holds for it alone.

    Attributes:
        kind: The source's kind.
        root: Relative to the folder of all samples.
        home: Where the program keeps its sessions, below the home folder; of the first sample
            of a kind, None where there is no usual place.
        workspace: Whether any of its sessions names a folder.
        ids: The fields that name a record, where it is read without them too.
        values: How many kinds of values its records have at least.
    """

    kind: str
    root: str
    home: str | None = None
    workspace: bool = True
    ids: tuple[str, ...] = ()
    values: int = 16

    @property
    def name(self) -> str:
        return f"{self.kind}: {self.root}"

    def target(self, folder: Path = DATA) -> Target:
        return Target(source(self.kind), folder / self.root)

    def copied(self, folder: Path) -> Target:
        """Return the root of a copy of the sample, with all that lies beside it."""
        top = Path(self.root).parts[0]
        if not (folder / top).exists():
            shutil.copytree(DATA / top, folder / top)
        return self.target(folder)


def path_of(target: Target) -> Path:
    """Return the root of a target that is a file or folder."""
    assert isinstance(target.root, Path)
    return target.root


SAMPLES = (
    Sample("claude-code", "claude-code/home/.claude", home=".claude"),
    Sample("codex", "codex/home", home=".codex"),
    Sample("codex", "codex/0.171.0"),
    Sample("codex", "codex/0.98.0"),
    Sample("opencode", "opencode", home=".local/share/opencode"),
    Sample("opencode", "opencode/legacy"),
    Sample("kilo", "kilo", home=".local/share/kilo"),
    Sample("gemini", "gemini", home=".gemini", ids=("id",)),
    Sample("gemini", "gemini_rewritten"),
    Sample("gemini", "gemini_0_20"),
    Sample("pi", "pi/sessions", home=".pi/agent/sessions", ids=("id", "parentId")),
    Sample("pi", "pi/1.6.0", ids=("id", "parentId")),
    Sample("copilot", "copilot", home=".copilot", ids=("id",)),
    Sample("copilot", "copilot_forked", ids=("id",)),
    Sample("copilot-chat", "copilot-chat/User", home=".config/Code/User", ids=("requestId",)),
    Sample("cursor", "cursor/home/.cursor", home=".cursor"),
    Sample("cursor", "cursor/home/.config/Cursor/User"),
    Sample("crush", "crush/home/mira/code/api/.crush/crush.db", home=".crush/crush.db"),
    Sample("llm", "llm", home=".config/io.datasette.llm", workspace=False),
    Sample("llm", "llm/old-0.27.1", workspace=False),
    Sample("kiro", "kiro/home/.kiro/sessions", home=".kiro/sessions"),
    Sample("kiro", "kiro/home/.local/share/amazon-q"),
    Sample("kiro", "kiro/home/.local/share/kiro-cli"),
    Sample("vibe", "vibe/session", home=".vibe/logs/session"),
    Sample("gptme", "gptme/logs", home=".local/share/gptme/logs"),
    Sample("swe-agent", "swe-agent", home=".config/mini-swe-agent"),
    Sample("droid", "droid/sessions", home=".factory/sessions", ids=("id", "parentId")),
    Sample("kimi", "kimi/kimi-code/sessions", home=".kimi-code/sessions", ids=("id", "uuid")),
    Sample("amp", "amp/threads", home=".local/share/amp/threads", ids=("messageId",)),
    Sample("continue", "continue/sessions", home=".continue/sessions", ids=("sessionId",)),
    Sample("cline", "cline/sdk", home=".cline/data", ids=("id",)),
    Sample("cline", "cline/legacy"),
    Sample("cline", "cline/vscode/User/globalStorage/rooveterinaryinc.roo-cline"),
    Sample("cline", "cline/vscode/User/globalStorage/kilocode.kilo-code"),
    Sample("goose", "goose/sessions", home=".local/share/goose/sessions", ids=("id",)),
    Sample("qwen", "qwen/qwen", home=".qwen", ids=("uuid", "parentUuid")),
    Sample("qwen", "qwen/legacy-0.1.4", workspace=False, ids=("id",)),
    Sample("zed", "zed", home=".local/share/zed", ids=("id",)),
    Sample("openhands", "openhands/conversations", home=".openhands/conversations", ids=("id",)),
    Sample("aider", "aider/.aider.chat.history.md", home=".aider.chat.history.md"),
    Sample("aider", "aider_lines/.aider.chat.history.md"),
    Sample("y-agent", "y-agent/data", home=".local/state/y-agent/data", ids=("message_id",)),
    Sample("hub", "hub/hub.db"),
    # Its sessions name a project, and this one has no path.
    Sample("lionagi", "lionagi/state.db", home=".lionagi/state.db", workspace=False),
    Sample("viben", "viben/.viben", home=".viben", ids=("id",)),
    Sample("openai-agents", "openai-agents/agents.db", workspace=False),
    Sample("openai-agents", "openai-agents/advanced.db", workspace=False),
    Sample("langgraph", "langgraph/checkpoints.sqlite", workspace=False),
    Sample("chatgpt", "chatgpt/folder", workspace=False),
    Sample("claude-ai", "claude-ai/folder", workspace=False),
)
MORE = (
    Sample("codex", "codex/0.20.0"),
    Sample("codex", "codex/0.36.0"),
    Sample("codex", "codex/0.58.0"),
    Sample("opencode", "opencode/0.5.29"),
    Sample("kimi", "kimi/0.10.0/sessions"),
    Sample("kimi", "kimi/2.1.0/sessions"),
    Sample("chatgpt", "chatgpt/export.zip"),
    Sample("claude-ai", "claude-ai/data-2026-11-20-10-00-00-batch-0000.zip"),
    Sample("claude-code", "damaged/nul"),
    Sample("claude-code", "damaged/glued"),
    Sample("copilot", "damaged/copilot"),
    *(
        Sample(kind, str(root.relative_to(DATA)))
        for kind, folder in (
            ("claude-code", ".claude"), ("codex", ".codex"), ("gemini", ".gemini"),
            ("viben", ".viben"), ("copilot", ".copilot"), ("pi", "sessions"),
            ("claude-code", "claude"), ("gemini", "17-gemini-hidden-summary"),
        )
        for root in sorted((DATA / "cases").rglob(folder))
        if folder != "sessions" or root.parent.parent.name == "cases"
    ),
)  # fmt: skip
"""Further versions, forms and cases, for the properties that hold for every sample set."""
FIRST = {sample.kind: sample for sample in reversed(SAMPLES)}
"""The one of each kind that is tried where one is enough."""
