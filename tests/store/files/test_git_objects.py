"""Objects of a repository: loose, packed with deltas, damaged."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from store.files.git_objects import NoObject, Repository


def git(folder: Path, *arguments: str) -> str:
    names = {"GIT_AUTHOR_NAME": "x", "GIT_AUTHOR_EMAIL": "x", "GIT_COMMITTER_NAME": "x",
             "GIT_COMMITTER_EMAIL": "x", "GIT_CONFIG_GLOBAL": "/dev/null"}
    done = subprocess.run(["git", *arguments], cwd=folder, check=True, capture_output=True,
                          text=True, env={**os.environ, **names})
    return done.stdout.strip()


@pytest.mark.skipif(shutil.which("git") is None, reason="needs git")
def test_packs_with_deltas_are_read(tmp_path: Path) -> None:
    git(tmp_path, "init", "-q")
    (tmp_path / "src").mkdir()
    rows = [f"line {number} of a file that is long enough\n" for number in range(400)]
    commits, texts = [], []
    for number in range(5):
        rows[number * 50] = f"changed in {number}\n"
        texts.append("".join(rows).encode())
        (tmp_path / "src" / "a.txt").write_bytes(texts[-1])
        git(tmp_path, "add", "-A")
        git(tmp_path, "commit", "-qm", "x")
        commits.append(git(tmp_path, "rev-parse", "HEAD"))
    git(tmp_path, "gc", "-q")
    assert not [each for each in (tmp_path / ".git/objects").iterdir() if len(each.name) == 2]
    repository = Repository(tmp_path / ".git")
    assert [repository.file_at(commit, "src/a.txt") for commit in commits] == texts
    assert repository.file_at(commits[0], "src/nothing") is None
    assert repository.file_at(commits[0], "src/a.txt/x") is None
    pack = next((tmp_path / ".git/objects/pack").glob("*.pack"))
    body = bytearray(pack.read_bytes())
    pack.chmod(0o600)
    for place in range(40, len(body), 97):
        body[place] ^= 0xFF
    pack.write_bytes(body)
    with pytest.raises(NoObject):
        Repository(tmp_path / ".git").file_at(commits[0], "src/a.txt")


@pytest.mark.parametrize("name", ["", "../../x", "0" * 40, "HEAD", "G" * 40])
def test_what_is_not_there_is_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(NoObject):
        Repository(tmp_path).read(name)
