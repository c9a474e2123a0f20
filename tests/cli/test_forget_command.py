from __future__ import annotations

from pathlib import Path

from tests.cli.conftest import Run


def test_removes_a_session_with_its_subagents(run: Run, demo: Path) -> None:
    gone = run("forget", "retry-loop", "--yes", "--json").json["forgotten"]
    assert len(gone) == 2
    left = {summary["source"]["id"] for summary in run("sessions", "--json").json}
    assert "retry-loop" not in left and "retry-loop-explore" not in left
    assert "backoff-fork" in left


def test_several_or_none(run: Run, demo: Path) -> None:
    result = run("forget", "weekly-review", "nope")
    assert result.code == 1 and "nope" in result.err
    assert run("show", "weekly-review").code == 0
    result = run("forget", "weekly-review", "newsletter", "--yes")
    assert result.code == 0 and result.out.count("forgotten  ses_") == 2


def test_no_sync_brings_it_back(run: Run, claude_home: Path) -> None:
    run("sync")
    assert len(run("sessions", "--json").json) == 1
    assert run("forget", "11111111", "--yes").code == 0
    assert run("sync").code == 0
    assert run("sessions", "--json").json == []


def test_without_a_name_is_wrong_usage(run: Run, demo: Path) -> None:
    assert run("forget").code == 2
