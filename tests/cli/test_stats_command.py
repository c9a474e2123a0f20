from __future__ import annotations

from pathlib import Path

from tests.cli.conftest import Run


def test_json_has_what_was_spent_and_what_is_in_context(run: Run, demo: Path) -> None:
    (newest,) = run("sessions", "--json", "--limit", "1").json
    value = run("stats", newest["id"], "--by", "agent", "--json").json
    assert value["context"].keys() == {newest["id"]}
    assert value["by"] == "agent" and [g["group"] for g in value["groups"]] == [newest["agent"]]
    assert value["spent"]["total"] == sum(value["spent"]["spent"].values()) > 0


def test_a_table_for_people(run: Run, demo: Path) -> None:
    lines = run("stats", "--by", "agent").out.splitlines()
    assert lines[0].split()[:2] == ["sessions", "answers"]
    assert lines[-2].startswith("all") and "copies of others and not counted again" in lines[-1]


def test_unknown_sessions_are_refused(run: Run, demo: Path) -> None:
    refused = run("stats", "ses_nothing")
    assert refused.code == 1 and "ses_nothing" in refused.err
