"""A file in another form is one problem that says so, not one for each line or session."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable
from pathlib import Path

import pytest

from store.engine.database import open_database
from store.sync.engine import Sync
from store.sync.problems import problems
from store.sync.settings import Settings
from tests.sources.samples import FIRST, SAMPLES, path_of


def _packed(body: bytes) -> bytes:
    return gzip.compress(body)


def _wide(body: bytes) -> bytes:
    return body.decode().encode("utf-16")


def _pretty(body: bytes) -> bytes:
    lines = (json.dumps(json.loads(line), indent=2) for line in body.splitlines() if line)
    return "\n".join(lines).encode()


def _empty(body: bytes) -> bytes:
    return b""


def _garbage(body: bytes) -> bytes:
    return bytes(range(256)) * 20


def _image(body: bytes) -> bytes:
    return b"\x89PNG\r\n\x1a\n" + _garbage(body)


@pytest.mark.parametrize(
    ("root", "name", "change"),
    [
        *((FIRST["claude-code"].root, "history.jsonl", how) for how in (_packed, _wide, _pretty)),
        ("cline/legacy", "taskHistory.json", _empty),
        *((kind, "conversations.json", how) for kind in ("chatgpt/folder", "claude-ai/folder")
          for how in (_packed, _wide, _garbage)),
        ("pi/sessions", "2026-11-27T22-27-45-796Z_01a21f1f-2a04-71ed-bc04-9eae727ff70c.jsonl",
         _image),
        # A file that several sessions need.
        ("copilot-chat/User", "3a089eef2da8c309bde147b34aeda90d/workspace.json", _garbage),
        ("claude-code/home/.claude", "1015307c-21fa-4b78-921a-e845ea7074f7/custom-title.json",
         _packed),
    ],
)  # fmt: skip
def test_one_problem(
    root: str, name: str, change: Callable[[bytes], bytes], tmp_path: Path
) -> None:
    (sample,) = (each for each in SAMPLES if each.root == root)
    target = sample.copied(tmp_path)
    top = path_of(target)
    (path,) = (each for each in top.rglob(Path(name).name) if each.match(f"*/{name}"))
    path.write_bytes(change(path.read_bytes()))
    database = open_database(tmp_path / "library.db", create=True)
    Sync(database, Settings(helpers=0)).run([target])
    found = [problem.reason for problem in problems(database) if problem.path == str(path)]
    database.close()
    assert len(found) == 1, found
