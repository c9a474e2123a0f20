"""The file of statistics equals a full count after syncs in any order, recordings and verbs."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from store.engine.database import Database, in_transaction, open_database
from store.errors import NotFound, Refused
from store.ids import IdMinter
from store.stats.checking import check
from store.stats.keeping import Counter
from store.stats.statistics import open_rollups
from store.sync.engine import Sync
from store.sync.forget import forget
from store.sync.settings import Settings
from store.verbs.fork import fork
from store.verbs.rewind import rewind
from store.verbs.shelf import archive
from tests.sources.samples import SAMPLES
from tests.store.recording import VECTORS, record
from tests.store.stats.test_rollups_property import PRICES, asked, full_count

pytestmark = pytest.mark.long

LATER = 1_900_000_000_000
"""When no session of a sample runs any more, epoch ms."""


@pytest.mark.parametrize("seed", [1])
def test_syncs_in_any_order(tmp_path: Path, seed: int) -> None:
    chance = random.Random(seed)
    db = open_database(tmp_path / "library.db", create=True)
    targets = [sample.copied(tmp_path / str(place)) for place, sample in enumerate(SAMPLES)]
    chance.shuffle(targets)
    counter = Counter(db.path)
    for target in [*targets, targets[0]]:
        Sync(db, Settings(helpers=0)).run([target])
        for _ in range(chance.randrange(3)):
            counter.look()
            counter.step()
        if chance.random() < 0.2:
            counter.close()
            counter = Counter(db.path)
    ids = [row[0] for row in db.connection.execute("SELECT id FROM chat_sessions ORDER BY id")]
    for session in chance.sample(ids, 6):
        do_something(db, session, chance)
    # A reader is right before the keeper has caught up.
    true = full_count(db)
    with open_rollups(db, PRICES) as stats:
        assert asked(db, stats, random.Random(seed)) == asked(db, true, random.Random(seed))
    true.connection.close()
    counter.look()
    counter.resume()
    while counter.step() or not counter.idle:
        counter.look()
        counter.resume()
    counter.close()
    db.close()
    assert check(tmp_path / "library.db") == []


def do_something(db: Database, session: str, chance: random.Random) -> None:
    messages = db.connection.execute(
        "SELECT id FROM chat_messages WHERE session_id = ? ORDER BY created_at, id", (session,)
    ).fetchall()
    try:
        if chance.random() < 0.3:
            forget(db, [session])
        elif chance.random() < 0.4:
            in_transaction(db, archive, [session], now=LATER)
        elif chance.random() < 0.5 and messages:
            in_transaction(db, rewind, session, messages[0][0], now=LATER)
        elif messages:
            in_transaction(db, fork, session, chance.choice(messages)[0],
                           ids=IdMinter(lambda: LATER), now=LATER)  # fmt: skip
    except (Refused, NotFound):
        pass


def test_recordings_are_followed(db: Database) -> None:
    counter = Counter(db.path)
    for _, vector in sorted(VECTORS.items()):
        record(db, vector["chunks"], sdk=vector.get("sdk", 6))
        counter.look()
        counter.step()
    true = full_count(db)
    with open_rollups(db, PRICES) as stats:
        found = asked(db, stats, random.Random(1))
    assert found == asked(db, true, random.Random(1))
    true.connection.close()
    while counter.step() or not counter.idle:
        counter.look()
        counter.resume()
    counter.close()
    db.close()
    assert check(db.path) == []
