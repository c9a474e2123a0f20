"""Other counters' figures of the same files, as they printed them, where they are right.

``tests/data/other_counters.json`` is what ccusage and tokscale printed, by sample set; which of
these differ from ours and why is in ``docs/statistics.md``.
"""

from __future__ import annotations

import json
import re
from collections import defaultdict
from pathlib import Path
from typing import Any

import pytest

from store.engine.database import open_database
from store.sync.engine import Sync
from tests.cli.conftest import Run
from tests.counted.sets import SETS
from tests.sources.samples import DATA

PRINTED: dict[str, Any] = json.loads((DATA / "other_counters.json").read_text())
PAGE = Path(__file__).parents[2] / "docs" / "statistics.md"
RIGHT = {
    "ccusage": {
        "claude-code/home/.claude", "codex/0.98.0", "codex/0.58.0", "codex/0.36.0",
        "opencode/legacy", "gemini", "gemini_rewritten", "gemini_0_20", "copilot",
    },
    "tokscale": {
        "claude-code/home/.claude", "codex/0.98.0", "codex/0.58.0", "codex/0.36.0", "opencode",
        "opencode/legacy", "gemini", "gemini_rewritten", "gemini_0_20", "pi/sessions",
    },
}
"""The sets of which a counter says what we say."""
BY_ROOT = {sample.root: sample for sample in SETS}
PRICED = ("gpt-5.5", "gpt-5", "gemini-2.5-flash", "claude-sonnet-4-5", "claude-sonnet-4",
          "claude-haiku-4-5")  # fmt: skip
"""Models without told costs in these sets, of which ccusage has a price."""


@pytest.fixture(scope="module")
def libraries(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    made = {}
    for root in sorted(set().union(*(printed["sets"] for printed in PRINTED.values()))):
        folder = tmp_path_factory.mktemp("set")
        made[root] = folder / "library.db"
        db = open_database(made[root], create=True)
        Sync(db).run([BY_ROOT[root].copied(folder)])
        db.close()
    return made


def plain(model: str) -> str:
    return re.sub(r"-20\d{6}$", "", model)


def printed(tool: str, root: str) -> dict[str, dict[str, float]]:
    """Return what a tool printed by model; reasoning is a part of output where it says so."""
    found: dict[str, dict[str, float]] = {}
    for model, row in PRINTED[tool]["sets"][root]["models"].items():
        found[plain(model)] = {name: row.get(name) or 0 for name in
                               ("input", "output", "reasoning", "cache_read", "cache_write")}
        found[plain(model)]["usd"] = row["usd"] or 0
    return found


def ours(run: Run, library: Path) -> dict[str, dict[str, float]]:
    found: defaultdict[str, defaultdict[str, float]] = defaultdict(lambda: defaultdict(float))
    for row in run("--store", library, "stats", "--by", "model", "--json").json["groups"]:
        one = found[plain(row["group"])]
        for name, tokens in row["spent"].items():
            one[name] += tokens
        one["usd"] += row["cost_usd"] or 0
    return {model: dict(one) for model, one in found.items() if any(one.values())}


def tokens(row: dict[str, float], *, with_reasoning: bool) -> list[float]:
    output = row["output"] + (row["reasoning"] if with_reasoning else 0)
    return [row["input"], output, row["cache_read"], row["cache_write"]]


def same(one: dict[str, dict[str, float]], other: dict[str, dict[str, float]]) -> bool:
    """Return whether the tokens are the same, by model.

    Some counters put reasoning into output, others leave it out or apart.
    """
    if one.keys() != other.keys():
        return False
    return all(
        tokens(row, with_reasoning=True) == tokens(other[model], with_reasoning=True)
        or tokens(row, with_reasoning=False) == tokens(other[model], with_reasoning=False)
        for model, row in one.items()
    )


CASES = [(tool, root) for tool, each in PRINTED.items() for root in each["sets"]]


@pytest.mark.parametrize(("tool", "root"), CASES)
@pytest.mark.one_in(3)
def test_tokens_where_others_are_right(
    run: Run, libraries: dict[str, Path], tool: str, root: str
) -> None:
    found = ours(run, libraries[root])
    assert same(found, printed(tool, root)) == (root in RIGHT[tool])


@pytest.mark.parametrize("root", sorted(RIGHT["ccusage"]))
def test_estimates_are_those_of_ccusage(
    run: Run, libraries: dict[str, Path], root: str
) -> None:
    theirs = printed("ccusage", root)
    for model, row in ours(run, libraries[root]).items():
        if model in PRICED:
            assert row["usd"] == pytest.approx(theirs[model]["usd"], abs=1e-6), model


def test_the_page_has_every_set() -> None:
    page = " ".join(PAGE.read_text().split())
    for printed_by in PRINTED.values():
        assert f" {printed_by['version']}" in page
    missing = [root for _, root in CASES if f"| `{root}` |" not in page]
    assert missing == []
