from __future__ import annotations

import contextlib
import csv
import io
import json
import os
import re
import sqlite3
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from store.stats.__main__ import main as keep_statistics
from store.stats.figures import Figures
from store.stats.statistics import DIMENSIONS
from store.stats.windows import FIVE_HOURS_MS, WEEK_MS, Window
from tests.cli.conftest import Result, Run, configure
from tests.store.talks import START, Talk, make_store
from tests.tui.terminals import on_a_terminal
from tui.cli import main, stats
from tui.words.status_line import PLACEHOLDERS, Shown, status_line

SUMS = ("turns", "answers", "copies", "total", "told_answers", "estimated_answers",
        "covered_answers", "unknown_answers", "calls", "failed", "denied", "tool_ms", "active_ms")
DAY_MS = 86_400_000


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


@pytest.mark.parametrize("by", [each for each in DIMENSIONS if each != "tool"])
@pytest.mark.one_in(2)
def test_rows_add_up_to_the_total(run: Run, demo: Path, by: str) -> None:
    for more in ((), ("--limit", "2")):
        value = run("stats", "--by", by, "--json", *more).json
        rows = [*value["groups"], *([value["others"]] if value["others"] else [])]
        for name in SUMS:
            assert sum(row[name] for row in rows) == value["spent"][name], name
        for bucket, tokens in value["spent"]["spent"].items():
            assert sum(row["spent"][bucket] for row in rows) == tokens
        cost = sum(row["cost_usd"] or 0 for row in rows)
        assert cost == pytest.approx(value["spent"]["cost_usd"], abs=1e-4)


def test_tools_have_all_calls(run: Run, demo: Path) -> None:
    value = run("stats", "--by", "tool", "--json").json
    for name in ("calls", "failed", "denied", "tool_ms"):
        assert sum(row[name] for row in value["groups"]) == value["spent"][name] > 0
    calls = [row["calls"] for row in value["groups"]]
    assert calls == sorted(calls, reverse=True)


# Stores made by hand


@pytest.fixture
def talk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Talk:
    """A library with an answer that tells its cost, one to estimate, one of an unknown model."""
    path = tmp_path / "library.db"
    monkeypatch.setenv("BACKSCROLL_STORE", str(path))
    made = Talk(make_store(path, "own"))
    session = made.session("=HYPERLINK(\"http://x\")\x1b]0;EVIL\x07\nsecond", agent="claude-code")
    made.message(session, "assistant", usage={"input": 1000, "output": 10}, cost_usd=0.5,
                 model={"model_id": "told-1"})  # fmt: skip
    made.message(session, "assistant", usage={"input": 1_000_000}, model={
        "provider_id": "anthropic", "model_id": "claude-sonnet-4-5-20250929"})  # fmt: skip
    other = made.session("@SUM(1)", agent="codex")
    made.now += 3 * DAY_MS
    made.message(other, "assistant", usage={"input": 70}, model={"model_id": "=unheard"})
    return made


def by_model(run: Run, *more: str) -> dict[str, Any]:
    value = run("stats", "--by", "model", "--json", *more).json
    return {row["group"]: row for row in value["groups"]} | {"all": value["spent"]}


def test_what_is_unknown_is_null_and_a_sum_says_what_it_covers(run: Run, talk: Talk) -> None:
    rows = by_model(run)
    told, guess = rows["told-1"], rows["claude-sonnet-4-5-20250929"]
    assert (told["cost_usd"], told["told_usd"], told["estimated_usd"]) == (0.5, 0.5, None)
    assert guess["cost_usd"] == guess["estimated_usd"] > 0 and guess["told_usd"] is None
    unknown = rows["=unheard"]
    assert unknown["cost_usd"] is unknown["told_usd"] is unknown["estimated_usd"] is None
    assert (unknown["covered_answers"], unknown["unknown_answers"]) == (0, 1)
    assert (rows["all"]["covered_answers"], rows["all"]["answers"]) == (2, 3)
    out = run("stats").out
    (line,) = [line for line in out.splitlines() if "=unheard" in line]
    assert line.split()[-2:] == ["of", "0/1"] and "unknown" in line and "0.0" not in line
    assert "of 2 of 3 answers, $0.500 told by agents" in out.splitlines()[-1]
    assert all("≈" in line for line in out.splitlines() if line.startswith(("claude", "all")))


def test_only_unknown_costs_are_no_cost(run: Run, talk: Talk) -> None:
    value = run("stats", "--query", "agent:codex", "--json").json
    assert value["spent"]["cost_usd"] is None and value["spent"]["answers"] == 1
    assert "unknown cost of 1 answer" in run("stats", "--query", "agent:codex").out
    assert run("stats", "--query", "agent:codex", "--format", "{cost}|{usd}").out == "unknown|\n"


def test_cells_of_csv_are_no_formulas(run: Run, talk: Talk) -> None:
    for by, name in (("session", "label"), ("model", "group")):
        rows = list(csv.DictReader(io.StringIO(run("stats", "--by", by, "--csv").out)))
        for row in rows:
            assert not any(cell.startswith(("=", "+", "-", "@", "\t", "\r"))
                           for cell in row.values())  # fmt: skip
            assert "\n" not in row[name] and "\x1b" not in row[name]
    assert {"'=unheard", "told-1"} <= {row["group"] for row in rows}
    (unknown,) = [row for row in rows if row["group"] == "'=unheard"]
    assert unknown["cost_usd"] == "" and unknown["input"] == "70"
    assert run("stats", "--by", "all", "--csv").out.count("\n") == 2
    assert run("stats", "--query", "title:none", "--csv").out.startswith("group,label,sessions,")


def test_a_session_has_its_family_beside_it(run: Run, talk: Talk) -> None:
    parent = talk.session()
    talk.message(parent, "assistant", usage={"input": 10}, cost_usd=0.75)
    lineage = {"lineage": {"kind": "subagent"}}
    child = talk.session("Helper", parent_id=parent, metadata_json=json.dumps(lineage))
    talk.message(child, "assistant", usage={"input": 30}, cost_usd=0.25)
    value = run("stats", parent, child, "--json").json
    assert value["spent"]["cost_usd"] == 1.0 and value["families"][child] is None
    found = value["families"][parent]
    assert (found["spent"]["cost_usd"], found["spent"]["total"]) == (1.0, 40)
    assert [(one["id"], one["kind"], one["share"]) for one in found["members"]] == [
        (parent, None, 0.75), (child, "subagent", 0.25)]
    assert run("stats", parent, "--json").json["spent"]["cost_usd"] == 0.75
    assert "with the 1 session below it  $1.00 of 2 answers" in run("stats", parent).out


def day(moment: int) -> str:
    return datetime.fromtimestamp(moment / 1000, UTC).strftime("%Y-%m-%d")


def test_spans_and_queries(run: Run, talk: Talk) -> None:
    first, last = START, talk.now

    def answers(*more: str) -> int:
        found: int = run("stats", "--json", *more).json["spent"]["answers"]
        return found

    assert answers("--until", day(last)) == 2
    assert answers("--since", day(last)) == 1
    assert answers("--since", day(first), "--until", day(last + DAY_MS)) == 3
    assert answers("--until", day(first)) == 0
    assert answers("--query", "model:sonnet") == 1
    assert answers("--query", "-agent:codex") == 2
    assert answers("--query", f"after:{day(last)}") == 1
    value = run("stats", "--by", "day", "--json", "--since", day(first)).json
    assert [row["group"] for row in value["groups"]] == [day(first), day(last)]
    assert value["since"] == value["groups"][0]["start"] == value["groups"][0]["end"] - DAY_MS
    names = run("stats", "--by", "day").out.splitlines()
    assert [line.split()[0] for line in names[1:3]] == [day(first), day(last)]


def test_days_and_months_of_the_configuration(run: Run, talk: Talk, home: Path) -> None:
    # The first two answers are at 22:13 UTC on 14 November, the third three days later.
    configure(home, '[stats]\nzone = "Asia/Tokyo"\nmonth_starts = 16\n')
    value = run("stats", "--by", "day", "--json").json
    assert [row["group"] for row in value["groups"]] == ["2023-11-15", "2023-11-18"]
    assert value["zone"] == "Asia/Tokyo"
    value = run("stats", "--by", "month", "--json").json
    assert [row["group"] for row in value["groups"]] == ["2023-10-16", "2023-11-16"]
    begun = run("stats", "--by", "month", "--json", "--since", "2023-11-16").json["groups"]
    assert [row["answers"] for row in begun] == [1]


@pytest.mark.parametrize(("arguments", "reason"), [
    (("--since", "whenever"), "is not a date"),
    (("--until", "2026-13-45"), "is not a date"),
    (("--query", "nosuchfield:x model:"), "model"),
    (("--json", "--csv"), "do not go together"),
    (("--json", "--live"), "do not go together"),
    (("--today", "--since", "3d"), "does not go with"),
    (("--format", "{nope}"), "no placeholder {nope}. There are: cost, usd,"),
    (("--format", "{cost.__class__}"), "no placeholder {cost.__class__}"),
    (("--format", "{cost!r}"), "no placeholder {cost}"),
    (("--format", "{cost:>9}"), "no placeholder {cost}"),
    (("--format", "{"), "write {{ for a brace"),
    (("--limit", "-1"), "not a number"),
])  # fmt: skip
def test_what_cannot_be_meant_is_refused(
    run: Run, demo: Path, arguments: tuple[str, ...], reason: str
) -> None:
    refused = run("stats", *arguments)
    assert refused.code == 2 and reason in refused.err and not refused.out


# Lines for a status bar


def at(moment: int, run: Run, monkeypatch: pytest.MonkeyPatch, *arguments: str) -> Result:
    monkeypatch.setattr(stats, "system_clock", lambda: moment)
    return run("stats", *arguments)


def test_a_line_about_today(run: Run, talk: Talk, monkeypatch: pytest.MonkeyPatch) -> None:
    talk.db.connection.execute("UPDATE chat_sessions SET updated_at = ?", (talk.now,))
    now = talk.now + 1000
    assert at(now, run, monkeypatch, "--live").out == "unknown 70\n"
    text = "{answers} {{of}} {model} {unknown}/{covered} {sessions}"
    for way in (("--today",), ("--live",)):
        assert at(now, run, monkeypatch, *way, "--format", text).out == "1 {of} =unheard 1/0 1\n"
    assert at(now + DAY_MS, run, monkeypatch, "--live").out == "$0 0\n"


def test_windows(
    run: Run, talk: Talk, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    talk.message(talk.session(agent="codex"), "assistant", usage={"input": 5}, rate_limits=[
        {"used_percent": 62.4, "window_minutes": 299, "resets_at": talk.now + 3_600_000}])
    talk.db.connection.execute("UPDATE chat_sessions SET updated_at = ?", (talk.now,))
    now = talk.now + 60_000
    found = at(now, run, monkeypatch, "--windows", "--json").json["windows"]
    assert [(one["agent"], one["name"], one["recorded"]) for one in found] == [
        ("claude-code", "week", False), ("codex", "5 hours", True), ("codex", "week", False)]
    assert found[1]["used_percent"] == 62.4 and found[1]["spent"]["answers"] == 2
    assert found[1]["usd_per_hour"] is None and found[0]["usd_per_hour"] > 0
    configure(home, '[stats]\nzone = "Asia/Tokyo"\n')
    out = at(now, run, monkeypatch, "--windows").out
    ends = datetime.fromtimestamp(talk.now / 1000 + 3599, ZoneInfo("Asia/Tokyo"))
    assert f"until {ends:%Y-%m-%d %H:%M}, 58m left (as its server said at" in out
    assert "codex 5 hours  62% used" in out and "guessed from the first request" in out
    assert at(now, run, monkeypatch, "--windows", "--csv").out.count("\n") == 4
    text = "{window_used} {window_left} {week_left}"
    assert at(now, run, monkeypatch, "--live", "--format", text).out == "62% 58m ~6d 23h\n"
    assert "No window" in at(now + 90 * DAY_MS, run, monkeypatch, "--windows").out


def test_values_are_one_harmless_line() -> None:
    evil = "x\x1b]0;EVIL\x07\n#[bg=red]" + "y" * 500
    window = Window(evil, FIVE_HOURS_MS, 0, 1)
    week = Window("a", WEEK_MS, 0, 10**9, recorded=True)
    for name in PLACEHOLDERS:
        line = status_line(f"{{{name}}}", Shown(Figures(), [evil], [window, week], 1))
        assert line.isprintable() and len(line) <= 60
    assert status_line("{window_cost} {week_used}", Shown(Figures())) == "- -"


def test_the_help_names_every_placeholder() -> None:
    told = (stats.__doc__ or "").partition("Its placeholders")[2].partition("--live")[0]
    words = set(told.replace(",", " ").replace(";", " ").replace(".", " ").split())
    assert PLACEHOLDERS.keys() <= words


# Stores as they come


def test_no_library_yet(run: Run) -> None:
    assert run("stats").code == 1
    assert run("stats", "--live").out == "$0 0\n"


@pytest.mark.parametrize("form", ["own", "contract", "grida"])
def test_a_store_without_sessions(run: Run, tmp_path: Path, form: str) -> None:
    path = tmp_path / "empty.db"
    make_store(path, form).close()
    value = run("stats", "--store", path, "--json").json
    assert (value["groups"], value["spent"]["cost_usd"], value["spent"]["answers"]) == ([], None, 0)
    out = run("stats", "--store", path).out.splitlines()
    assert len(out) == 2 and out[1].split()[0] == "all"
    assert run("stats", "--store", path, "--windows", "--json").json["windows"] == []


def test_a_long_count_tells_a_terminal_how_far_it_is(
    run: Run, demo: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert run("stats").err == ""
    for name in ("_QUIET_S", "_TOLD_EVERY_S", "_LONG_S"):
        monkeypatch.setattr(stats, name, 0.0)
    assert run("stats").err == ""
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    told = run("stats")
    total = json.loads(run("stats", "--json").out)["coverage"]["total"]
    assert f"counting 1 of {total:,} sessions" in told.err
    assert f"counting {total - 1:,} of {total:,} sessions" in told.err
    assert "While the browser is open it keeps the counts" in told.err.splitlines()[-1]


def test_a_damaged_file_of_statistics_is_counted_anew(run: Run, demo: Path) -> None:
    true = run("stats", "--by", "day", "--json").out
    assert keep_statistics([str(demo), "--once"]) == 0
    assert run("stats", "--by", "day", "--json").out == true
    path = demo.with_name(demo.name + ".stats")
    with contextlib.closing(sqlite3.connect(path)) as file:
        (page,) = file.execute(
            "SELECT rootpage FROM sqlite_master WHERE name = 'spent'").fetchone()
    with path.open("r+b") as written:
        written.seek((page - 1) * 4096)
        written.write(b"\xff" * 4096)
    found = run("stats", "--by", "day", "--json")
    assert (found.code, found.out, path.exists()) == (0, true, False)


def test_a_store_that_cannot_be_written(run: Run, talk: Talk, tmp_path: Path) -> None:
    path = tmp_path / "library.db"
    talk.db.close()
    path.chmod(0o400)
    for by in ("model", "family"):
        assert run("stats", "--store", path, "--by", by, "--json").json["spent"]["answers"] == 3


def test_a_host_s_store_is_only_read(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "host.db"
    talk = Talk(make_store(path, "contract"))
    talk.message(talk.session(), "assistant", usage={"input": 5}, cost_usd=0.25)
    talk.db.close()
    before = path.read_bytes()
    value = run("stats", "--store", path, "--by", "session", "--json").json
    assert [row["cost_usd"] for row in value["groups"]] == [0.25]
    assert path.read_bytes() == before


def test_while_another_process_writes(run: Run, talk: Talk) -> None:
    db = talk.db.connection
    session = talk.session()
    db.execute("BEGIN IMMEDIATE")
    talk.message(session, "assistant", usage={"input": 9})
    assert run("stats", "--json").json["spent"]["answers"] == 3
    db.execute("COMMIT")
    assert run("stats", "--json").json["spent"]["answers"] == 4


def test_of_a_damaged_file(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "odd.db"
    with sqlite3.connect(path) as made:
        made.execute("CREATE TABLE other (x)")
    made.close()
    assert run("stats", "--store", path).code == 1


def test_a_table_fits_80_columns(talk: Talk, tmp_path: Path) -> None:
    talk.db.close()
    environment = {**os.environ, "HOME": str(tmp_path), "PYTHONPATH": os.pathsep.join(sys.path)}
    command = [sys.executable, "-m", "tui", "stats", "--by", "session"]
    with on_a_terminal(command, environment, (80, 24)) as terminal:
        terminal.wait_for_end()
        text = terminal.received.decode()
    lines = text.replace("\r", "").splitlines()
    assert all(len(re.sub(r"\x1b\[\d*m", "", line)) <= 80 for line in lines)
    assert "\x07" not in text and "HYPERLINK" in text


def test_a_real_process_prints_the_line(talk: Talk, tmp_path: Path) -> None:
    talk.db.close()
    environment = {**os.environ, "HOME": str(tmp_path), "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run([sys.executable, "-m", "tui", "stats", "--live"], capture_output=True,
                          text=True, check=False, env=environment)  # fmt: skip
    assert (done.returncode, done.stdout, done.stderr) == (0, "$0 0\n", "")
    assert main(["stats", "--format", "a\x1bb {answers}"]) == 0
