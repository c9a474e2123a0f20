"""The sample of every source: which root to read, and which program wrote it."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import NamedTuple

from store.sources.registry import source
from store.sync.targets import Target

DATA = Path(__file__).parent.parent / "data"


class Sample(NamedTuple):
    """A sample.

    Attributes:
        kind: The source's kind.
        root: Relative to the folder of all samples.
    """

    kind: str
    root: str

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
    Sample("claude-code", "claude-code/home/.claude"),
    Sample("codex", "codex/home"),
    Sample("codex", "codex/0.171.0"),
    Sample("codex", "codex/0.98.0"),
    Sample("opencode", "opencode"),
    Sample("opencode", "opencode/legacy"),
    Sample("gemini", "gemini"),
    Sample("gemini", "gemini_rewritten"),
    Sample("gemini", "gemini_0_20"),
    Sample("pi", "pi/sessions"),
    Sample("pi", "pi/1.6.0"),
    Sample("copilot", "copilot"),
    Sample("copilot", "copilot_forked"),
    Sample("aider", "aider/.aider.chat.history.md"),
    Sample("aider", "aider_lines/.aider.chat.history.md"),
    Sample("y-agent", "y-agent/data"),
    Sample("hub", "hub/hub.db"),
    Sample("lionagi", "lionagi/state.db"),
    Sample("viben", "viben/.viben"),
)
