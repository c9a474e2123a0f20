from __future__ import annotations

import json
from pathlib import Path

from tests.cli.conftest import Run, configure


def kept(home: Path) -> Path:
    return home / ".local" / "share" / "backscroll" / "prices.json"


def test_every_line_has_its_source_and_date(run: Run, home: Path) -> None:
    lines = run("prices", "--json").json["prices"]
    assert all(line["source"] and line["date"] and line["from"] == "package" for line in lines)
    head, *out = run("prices").out.splitlines()
    assert head.split() == ["input", "output", "read", "write", "5m", "write", "1h", "date", "from"]
    opus = next(line for line in out if line.startswith("claude-opus-5-5 "))
    assert opus.split()[1:7] == ["4", "20", "0.2", "5", "8", "2026-11-28"]


def test_which_line_a_model_has(run: Run) -> None:
    found = run("prices", "claude-sonnet-4-5-20250929", "azure/eu/gpt-5.5", "--json")
    assert found.code == 0
    dated, azure = found.json["models"]
    assert [line["tier"] for line in dated["lines"]] == ["standard", "batch"]
    assert {line["id"] for line in dated["lines"]} == {"claude-sonnet-4-5"}
    assert azure["lines"][0]["input"] == 5.5 and azure["lines"][0]["cache_write_5m"] is None
    assert azure["lines"][0]["above"]["272000"]["input"] == 11


def test_an_unknown_model_has_no_line(run: Run) -> None:
    found = run("prices", "claude-opus-5-5", "mock-1\x1b[31m")
    assert found.code == 1
    assert "claude-opus-5-5 fast" in found.out
    assert found.err == "No price is known for 'mock-1\\x1b[31m'.\n"
    found = run("prices", "Sonnet-4")
    assert found.code == 1
    assert found.err.startswith("No price is known for 'Sonnet-4'. There are claude-sonnet-4")
    found = run("prices", "mock-1", "--json")
    assert (found.code, found.json) == (1, {"models": [{"model": "mock-1", "lines": []}]})


def test_the_configuration_lays_over_and_its_mistakes_are_named(run: Run, home: Path) -> None:
    path = configure(home, '[prices.mock-1]\ninput = 1\noutput = 2\n[prices.odd]\ninput = "x"\n')
    found = run("prices", "mock-1", "--json")
    (line,) = found.json["models"][0]["lines"]
    assert (line["input"], line["output"], line["cache_read"], line["from"]) == (
        1, 2, None, "config",
    )  # fmt: skip
    assert f"{path}:5: prices.odd.input: a number is needed" in found.err


def test_a_newer_file_is_taken(run: Run, home: Path, tmp_path: Path) -> None:
    file = tmp_path / "new.json"
    entry = {"litellm_provider": "anthropic", "mode": "chat", "input_cost_per_token": 9e-06,
             "output_cost_per_token": 1e-05}  # fmt: skip
    file.write_text(json.dumps({"claude-opus-5-5": entry}))
    found = run("prices", "--update", file)
    assert (found.code, found.out) == (0, "")
    assert found.err == f"Took the prices of 1 model from {file}.\n"
    (line, *_) = run("prices", "claude-opus-5-5", "--json").json["models"][0]["lines"]
    assert (line["input"], line["from"], line["source"]) == (9, "file", "new.json")
    assert kept(home).stat().st_mode & 0o777 == 0o600
    # What is printed can be taken again.
    listed = tmp_path / "listed.json"
    before = run("prices", "--json")
    listed.write_text(before.out)
    assert run("prices", "--update", listed).code == 0
    after = run("prices", "claude-opus-5-5", "--json").json["models"][0]["lines"]
    assert (after[0]["input"], after[0]["source"]) == (9, "new.json")


def test_a_file_that_cannot_be_used_changes_nothing(run: Run, home: Path, tmp_path: Path) -> None:
    file = tmp_path / "new.json"
    file.write_text('{"prices": [{"id": "good", "input": 1}, {"id": "ba\\u001bd", "input": -1}]}')
    found = run("prices", "--update", file)
    assert (found.code, found.out) == (1, "")
    assert f"{file}: ba\\x1bd: input: must be 0 to 100,000 dollars" in found.err
    assert "Nothing was changed." in found.err
    assert not kept(home).exists()
    found = run("prices", "--update", tmp_path / "nowhere.json")
    assert found.code == 1 and "cannot be read: No such file" in found.err


def test_a_damaged_file_is_named_and_the_package_is_used(run: Run, home: Path) -> None:
    kept(home).parent.mkdir(parents=True)
    kept(home).write_text("{")
    found = run("prices", "gpt-5.5")
    assert found.code == 0 and str(kept(home)) in found.err
