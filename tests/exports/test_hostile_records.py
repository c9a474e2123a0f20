"""One odd value in an original record costs that value, and no export to the record's agent."""

from __future__ import annotations

import json
import os
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from store.engine.database import Database, open_database
from store.errors import BackscrollError
from store.exports import kept_records
from store.exports.reading import read_session
from store.exports.registry import writer
from store.queries import sessions
from store.queries.originals import numbered_records
from store.sync.engine import Sync
from store.sync.settings import Settings
from tests.fuzz.looking import EVERYTHING
from tests.sources.odd_values import REMOVED, Step, steps_in
from tests.sources.samples import SAMPLES, Sample

AGENTS = ("claude-code", "codex", "gemini", "opencode", "pi", "qwen", "kimi",
          "continue", "cline", "openhands")
MANY = int(os.environ.get("BACKSCROLL_FUZZ", "300"))
"""Changes that are tried of each sample, drawn with a fixed seed; ``BACKSCROLL_FUZZ`` sets it."""
VALUES: tuple[Any, ...] = (REMOVED, None, 7, ["x"], {"x": []}, "x\x1b[2J", "")


def _changed(record: Any, steps: tuple[Step, ...], value: Any) -> bytes:
    record = json.loads(json.dumps(record))
    holder = record
    for step in steps[:-1]:
        holder = holder[step]
    if value is REMOVED:
        del holder[steps[-1]]
    else:
        holder[steps[-1]] = value
    return json.dumps(record).encode()


def _changes(db: Database, ids: list[str]) -> Iterator[tuple[str, int, bytes]]:
    """Yield changed records: each field where it stands first, and where it stands last."""
    first: dict[object, tuple[str, int, Any, tuple[Step, ...]]] = {}
    last = dict(first)
    for session_id in ids:
        for number, body in numbered_records(db, session_id):
            try:
                record = json.loads(body)
            except ValueError:
                continue
            for shape, steps in steps_in(record):
                if steps:
                    last[shape] = session_id, number, record, steps
                    first.setdefault(shape, last[shape])
    for session_id, number, record, steps in (*first.values(), *last.values()):
        for value in VALUES:
            yield session_id, number, _changed(record, steps, value)


@pytest.mark.parametrize("most", [50, pytest.param(MANY, marks=pytest.mark.long)])
@pytest.mark.parametrize("sample", [one for one in SAMPLES if one.kind in AGENTS],
                         ids=lambda sample: sample.name)
@pytest.mark.one_in(3)
def test_is_left_out_or_made_anew(
    sample: Sample, most: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    db = open_database(tmp_path / "store.db", create=True)
    Sync(db, Settings(helpers=0)).run([sample.copied(tmp_path)])
    ids = [row.id for row in sessions.page(db, EVERYTHING)]
    changes = list(_changes(db, ids))
    random.Random(sample.name).shuffle(changes)
    for session_id, number, body in changes[:most]:
        def records(
            given: Database, wanted: str,
            here: tuple[str, int, bytes] = (session_id, number, body),
        ) -> Iterator[tuple[int, bytes]]:  # fmt: skip
            for place, kept in numbered_records(given, wanted):
                yield place, here[2] if (wanted, place) == here[:2] else kept

        monkeypatch.setattr(kept_records, "numbered_records", records)
        try:
            for _ in writer(sample.kind)(read_session(db, session_id, "context")):
                pass
        except BackscrollError:
            pass
        except Exception as error:
            raise AssertionError(f"{session_id}, record {number}: {body!r}") from error
    db.close()
