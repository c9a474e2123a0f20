"""``backscroll stats`` says what a second program counts in the agents' own files."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from store.engine.database import open_database
from store.sync.engine import Sync
from tests.cli.conftest import Run, configure
from tests.counted.answers import ANY_MODEL, BUCKETS, Counted, Sum, day_in, summed
from tests.counted.sets import MIRRORED, SETS, UNANSWERED, UNTIMED, counted_in
from tests.sources.samples import Sample

ZONE = "Pacific/Kiritimati"
"""Where the samples' evenings belong to the next day."""


@pytest.fixture
def library(home: Path) -> Path:
    configure(home, f'[stats]\nzone = "{ZONE}"\n')
    return home.parent / "library.db"


def told(groups: Iterable[dict[str, Any]]) -> dict[str, Sum]:
    """Return groups of ``--json`` as sums, those without a figure left out."""
    sums = {
        group["group"]: Sum(group["answers"], tuple(group["spent"][key] for key in BUCKETS),
                            group["told_usd"])
        for group in groups
    }  # fmt: skip
    return {name: one for name, one in sums.items() if one != Sum()}


def same(ours: dict[str, Sum], theirs: dict[str, Sum]) -> None:
    assert ours.keys() == theirs.keys()
    for name, one in theirs.items():
        assert (ours[name].answers, ours[name].tokens) == (one.answers, one.tokens), name
        assert ours[name].usd == pytest.approx(one.usd, abs=0.000_001), name


def check(
    run: Run, library: Path, found: list[Counted], agent: Callable[[Counted], str],
    *, days: bool = True,
) -> None:  # fmt: skip
    whole = run("--store", library, "stats", "--by", "day", "--json").json
    same(told([whole["spent"] | {"group": ""}]), summed(found, lambda one: ""))
    if days:
        same(told(whole["groups"]), summed(found, day_in(ZoneInfo(ZONE))))
    by_agent = run("--store", library, "stats", "--by", "agent", "--json").json
    same(told(by_agent["groups"]), summed(found, agent))
    by_model = told(run("--store", library, "stats", "--by", "model", "--json").json["groups"])
    models = summed(found, lambda one: one.model)
    if models.pop(ANY_MODEL, None):
        for one in (*by_model.values(), *models.values()):
            one.usd = None
    same(by_model, models)


@pytest.mark.parametrize("sample", SETS, ids=lambda sample: sample.name)
@pytest.mark.one_in(4)
def test_each_sample_set(sample: Sample, run: Run, library: Path, tmp_path: Path) -> None:
    target = sample.copied(tmp_path)
    found = counted_in(target)
    assert found
    db = open_database(library, create=True)
    Sync(db).run([target])
    db.close()
    if sample.kind in UNANSWERED:
        check_spent(run, library, found)
        return
    check(run, library, found, lambda one: sample.kind, days=sample.kind not in UNTIMED)


def check_spent(run: Run, library: Path, found: list[Counted]) -> None:
    """Compare tokens and costs alone, by day and by model."""
    for by, key in (("day", day_in(ZoneInfo(ZONE))), ("model", lambda one: one.model)):
        groups = run("--store", library, "stats", "--by", by, "--json").json["groups"]
        ours = {name: one for name, one in told(groups).items() if any(one.tokens) or one.usd}
        theirs = summed(found, key)
        for one in (*ours.values(), *theirs.values()):
            one.answers = 0
        same(ours, theirs)


def test_all_sets_in_one_library(run: Run, library: Path, tmp_path: Path) -> None:
    db = open_database(library, create=True)
    found: list[tuple[str, Counted]] = []
    for sample in SETS:
        if sample.kind in UNTIMED | UNANSWERED or sample.root in MIRRORED:
            continue
        target = sample.copied(tmp_path)
        found += [(sample.kind, one) for one in counted_in(target)]
        Sync(db).run([target])
    db.close()
    kinds = {id(one): kind for kind, one in found}
    check(run, library, [one for _, one in found], lambda one: kinds[id(one)])
