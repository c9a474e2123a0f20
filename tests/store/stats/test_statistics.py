from __future__ import annotations

import contextlib
import json
import shutil
from datetime import UTC, datetime, tzinfo
from pathlib import Path
from typing import Any, cast
from zoneinfo import ZoneInfo

import pytest

from store.engine.database import Database, in_transaction, open_database
from store.language.query import Query, parse
from store.prices.table import Above, Price, PriceTable
from store.sources.registry import source
from store.stats import narrowing, rollups
from store.stats.checking import check
from store.stats.narrowing import Narrowed
from store.stats.statistics import (
    ALWAYS,
    DIMENSIONS,
    Answer,
    Dimension,
    Span,
    Stack,
    context_tokens,
    counted_sessions,
    figures,
    longest_turns,
    open_rollups,
)
from store.sync.engine import Sync
from store.sync.settings import Settings
from store.sync.targets import Target
from store.verbs.fork import fork
from store.verbs.rewind import rewind
from tests.sources.samples import SAMPLES
from tests.store.counted import counted_by
from tests.store.stats.test_rollups import kept
from tests.store.talks import START, Talk, make_store

DATA = Path(__file__).parents[2] / "data"
PRICES = PriceTable([[Price(input=1.0, output=10.0, pattern="m"),
                      Price(input=2.0, output=20.0, cache_read=1.0, pattern="opus")]])  # fmt: skip


def asked(
    db: Database, by: Dimension | None = None, query: str = "", span: Span = ALWAYS,
    zone: tzinfo = UTC,
) -> Answer:  # fmt: skip
    with open_rollups(db, PRICES) as rollups:
        return figures(db, rollups, by=by, span=span, query=parse(query, now=START), zone=zone)


def totals(answer: Answer) -> dict[str, int]:
    return {group.key: group.figures.total for group in answer.groups}


@pytest.fixture(scope="module")
def samples(tmp_path_factory: pytest.TempPathFactory) -> Database:
    """A library of all samples."""
    folder = tmp_path_factory.mktemp("samples")
    db = open_database(folder / "library.db", create=True)
    for place, sample in enumerate(SAMPLES):
        Sync(db, Settings(helpers=0)).run([sample.copied(folder / str(place))])
    return db


def test_all_groups_add_up_to_the_whole(samples: Database) -> None:
    whole = asked(samples).whole
    assert whole.total > 1_000_000 and whole.calls > 100
    for by in DIMENSIONS:
        answer = asked(samples, by, zone=ZoneInfo("Asia/Kathmandu"))
        counted = [group.figures for group in answer.groups]
        counted += [answer.others] if answer.others is not None else []
        assert sum(each.calls for each in counted) == whole.calls == answer.whole.calls
        if by == "tool":
            continue
        assert sum(each.total for each in counted) == whole.total
        assert sum(each.turns for each in counted) == whole.turns
        assert sum(each.told_usd for each in counted) == pytest.approx(whole.told_usd)


@pytest.mark.parametrize("query", ["", "model:o", "tool:bash -model:o"])
def test_a_group_opens_the_sessions_that_it_counts(samples: Database, query: str) -> None:
    zone, narrowing = ZoneInfo("America/New_York"), parse(query, now=START)
    seen = 0
    with open_rollups(samples, PRICES) as stats:
        for by in ("week", "model", "agent", "source", "workspace", "branch", "tool"):
            answer = figures(samples, stats, by=by, span=ALWAYS, query=narrowing,
                             zone=zone, stack="agent")
            for group in answer.groups:
                found = counted_sessions(
                    samples, stats, by=cast(Any, by if group.span is None else None),
                    key=group.key, span=group.span or ALWAYS, query=narrowing)
                assert found, (by, group.key)
                if group.figures.sessions:
                    assert len(found) == group.figures.sessions, (by, group.key)
                    seen += 1
    assert seen > 20


def test_a_groups_query_asks_for_less_than_what_narrows_it(samples: Database) -> None:
    found = asked(samples, "model", "agent:claude model:opus,o branch:main")
    assert found.groups[0].query == (
        f"agent:claude branch:main model:={found.groups[0].key}")


def test_the_groups_beyond_a_limit_are_summed_up(samples: Database) -> None:
    with open_rollups(samples, PRICES) as stats:
        of: tuple[Dimension, ...] = ("session", "family", "model", "agent", "tool")
        for by in of:
            answer = figures(samples, stats, by=by, span=ALWAYS, zone=UTC,
                             query=parse("", now=START), limit=3)  # fmt: skip
            others = answer.others
            assert others is not None and len(answer.groups) == 3
            known = [group.figures for group in answer.groups]
            assert sum(each.calls for each in [*known, others]) == answer.whole.calls
            if by != "tool":
                assert sum(each.total for each in [*known, others]) == answer.whole.total
                assert known == sorted(known, key=lambda each: -each.total)


def test_bars_are_divided_by_agent_and_model(samples: Database) -> None:
    of: tuple[Dimension, ...] = ("day", "workspace")
    stacks: tuple[Stack, ...] = ("agent", "model")
    for by in of:
        for stack in stacks:
            with open_rollups(samples, PRICES) as stats:
                answer = figures(
                    samples, stats, by=by, span=ALWAYS, zone=UTC,
                    query=parse("", now=START), stack=stack)  # fmt: skip
                plain = figures(samples, stats, by=by, span=ALWAYS, zone=UTC,
                                query=parse("", now=START))  # fmt: skip
            assert [group.figures.sessions for group in answer.groups] == [
                group.figures.sessions for group in plain.groups]
            for group in answer.groups:
                assert sum(part.total for part in group.parts.values()) == group.figures.total


def test_copies_are_counted_once(talk: Talk) -> None:
    session = talk.session()
    talk.message(session)
    talk.call(session, input=10, output=2)
    last = talk.message(session, "assistant", usage={"input": 3, "cache_read": 40})
    talk.now += 100_000
    made = in_transaction(talk.db, fork, session, last, ids=talk.ids, now=talk.now)
    talk.message(made.session_id, "assistant", usage={"output": 5})
    whole = asked(talk.db).whole
    assert (whole.sessions, whole.answers, whole.copies, whole.total) == (2, 3, 2, 60)
    assert (whole.calls, whole.turns) == (1, 1)
    assert totals(asked(talk.db, "session")) == {session: 55, made.session_id: 5}
    assert totals(asked(talk.db, "family")) == {session: 60}


def test_of_copies_without_their_original_one_counts(talk: Talk) -> None:
    for _ in range(2):
        talk.message(
            talk.session(), "assistant", usage={"input": 7}, inherited_from="msg_forgotten"
        )
    whole = asked(talk.db).whole
    assert (whole.answers, whole.copies, whole.total) == (1, 1, 7)


def test_groups(own_talk: Talk) -> None:
    talk = own_talk
    one = talk.session(workspace_root="/a", agent="x")
    talk.message(one, "assistant", usage={"input": 1}, model={"model_id": "opus"})
    two = talk.session(workspace_root="/b", agent="x")
    talk.message(two, "assistant", usage={"input": 9})
    assert totals(asked(talk.db, "workspace")) == {"/b": 9, "/a": 1}
    assert totals(asked(talk.db, "agent")) == {"x": 10}
    assert totals(asked(talk.db, "model")) == {"m": 9, "opus": 1}
    assert totals(asked(talk.db, "branch")) == {"": 10}
    assert asked(talk.db, query=f"id:{one}").whole.total == 1
    assert asked(talk.db, query="model:opus").whole.total == 1
    assert asked(talk.db, query="workspace:/b").whole.total == 9
    assert asked(talk.db, query="id:ses_none").whole.total == 0
    assert [group.query for group in asked(talk.db, "workspace").groups] == [
        "workspace:=/b", "workspace:=/a"]


def test_what_is_told_is_not_estimated(own_talk: Talk) -> None:
    talk = own_talk
    session = talk.session()
    talk.message(session, "assistant", usage={"input": 1_000_000}, cost_usd=0.25)
    talk.message(session, "assistant", usage={"input": 1_000_000})
    talk.message(session, "assistant", usage={"cache_read": 5}, model={"model_id": "m"})
    talk.message(session, "assistant", usage={"input": 5}, model={"model_id": "other"})
    whole = asked(talk.db).whole
    assert (whole.told_usd, whole.told_answers) == (0.25, 1)
    assert (whole.estimated_usd, whole.estimated_answers) == (1.0, 1)
    assert (whole.unknown_answers, whole.covered, whole.cost_usd) == (2, 2, 1.25)
    by = {group.key: group.figures.cost_usd for group in asked(talk.db, "model").groups}
    assert by == {"m": 1.25, "other": None}


def test_a_cost_of_nothing_is_unknown(own_talk: Talk) -> None:
    talk = own_talk
    session = talk.session()
    first = talk.message(session, "assistant", usage={"input": 1_000_000}, cost_usd=0)
    talk.message(session, "assistant", usage={"input": 5}, cost_usd=0.0, model={"model_id": "x"})
    fork = talk.session(parent_id=session)
    talk.message(fork, "assistant", usage={"input": 1_000_000}, cost_usd=0, inherited_from=first)
    whole = asked(talk.db).whole
    assert (whole.told_answers, whole.estimated_usd, whole.unknown_answers) == (0, 1.0, 1)


def test_what_a_session_costs_beyond_its_answers(own_talk: Talk) -> None:
    talk = own_talk
    one = talk.session()

    def noted(**models: float) -> dict[str, object]:
        so_far = {"usd": sum(models.values()), "counter": "1", "models": models}
        return {"cost_so_far": so_far}

    talk.message(one, "assistant", usage={"input": 5}, model={"model_id": "opus"},
                 backscroll=noted(opus=0.5, haiku=0.25))  # fmt: skip
    day = 86_400_000
    talk.now += day
    talk.message(one, "assistant", usage={"input": 9}, model={"model_id": "opus"},
                 backscroll=noted(opus=1.5, haiku=0.25))  # fmt: skip
    talk.now += day
    talk.message(one, "assistant", usage={"input": 9}, model={"model_id": "opus"})
    cost = {"usd": 1.75, "totals": {"1": 1.75}}
    talk.db.connection.execute(
        "UPDATE chat_sessions SET metadata_json = ?", (json.dumps({"backscroll": {"cost": cost}}),))
    whole = asked(talk.db).whole
    # The third answer is newer than what the source noted.
    assert (whole.told_usd, whole.told_answers, whole.estimated_answers) == (1.75, 2, 1)
    models = {group.key: group.figures.told_usd for group in asked(talk.db, "model").groups}
    assert models == {"opus": 1.5, "haiku": 0.25}
    days = [group.figures.told_usd for group in asked(talk.db, "day").groups]
    assert days == [0.75, 1.0, 0.0]


def test_without_notes_it_falls_on_the_largest_group(own_talk: Talk) -> None:
    talk = own_talk
    two = talk.session()
    talk.message(two, "assistant", usage={"input": 5}, cost_usd=0.25, model={"model_id": "opus"})
    talk.message(two, "assistant", usage={"input": 9}, cost_usd=1.0, model={"model_id": "haiku"})
    talk.db.connection.execute("UPDATE chat_sessions SET cost_usd = 1.5 WHERE id = ?", (two,))
    models = {group.key: group.figures.cost_usd for group in asked(talk.db, "model").groups}
    assert models == {"opus": 0.25, "haiku": 1.25}
    assert [group.figures.cost_usd for group in asked(talk.db, "day").groups] == [1.5]


@pytest.mark.parametrize("zone", ["UTC", "Asia/Kolkata", "Asia/Kathmandu", "Europe/Berlin"])
def test_days_and_hours_are_those_of_the_zone(own_talk: Talk, zone: str) -> None:
    talk = own_talk
    session = talk.session()
    expected_days: dict[str, int] = {}
    expected_hours: dict[str, int] = {}
    # Across the end of summer time in Berlin, 2026-10-25.
    talk.now = int(datetime(2026, 10, 24, 20, tzinfo=UTC).timestamp() * 1000)
    for step in range(40):
        talk.message(session, "assistant", usage={"input": 1})
        local = datetime.fromtimestamp(talk.now / 1000, ZoneInfo(zone))
        for found, key in ((expected_days, f"{local:%Y-%m-%d}"),
                           (expected_hours, f"{local:%Y-%m-%dT%H}")):  # fmt: skip
            found[key] = found.get(key, 0) + 1
        talk.now += 2_000_000 + step
    assert totals(asked(talk.db, "day", zone=ZoneInfo(zone))) == expected_days
    hours = asked(talk.db, "hour", zone=ZoneInfo(zone))
    assert totals(hours) == expected_hours
    whole = hours.groups[0]
    assert whole.span is not None
    inside = asked(talk.db, span=whole.span, zone=ZoneInfo(zone))
    assert inside.whole.total == whole.figures.total


def test_weeks_begin_on_monday_and_months_on_the_first(own_talk: Talk) -> None:
    talk = own_talk
    session = talk.session()
    for day in (datetime(2026, 11, 1, tzinfo=UTC), datetime(2026, 11, 2, tzinfo=UTC)):
        talk.now = int(day.timestamp() * 1000)
        talk.message(session, "assistant", usage={"input": 1})
    weeks = asked(talk.db, "week").groups
    assert [group.key for group in weeks] == ["2026-10-26", "2026-11-02"]
    assert [group.key for group in asked(talk.db, "month").groups] == ["2026-11"]


def test_a_span_is_exact_to_the_millisecond(own_talk: Talk) -> None:
    talk = own_talk
    session = talk.session()
    times = []
    for _ in range(30):
        talk.now += 100_000
        talk.message(session, "assistant", usage={"input": 1})
        times.append(talk.now)
    for start, end in ((3, 4), (0, 29), (5, 25), (7, 7), (12, 9)):
        span = Span(times[start], times[end])
        assert asked(talk.db, span=span).whole.total == max(0, end - start)
    assert asked(talk.db, span=Span(times[4] + 1, None)).whole.total == 25


def test_tools_roles_and_words_narrow(own_talk: Talk) -> None:
    talk = own_talk
    one, two = talk.session(), talk.session()
    talk.message(one, text="find the kingfisher")
    talk.call(one, "Bash", input=5)
    talk.call(one, "Read", input=5)
    talk.message(two, text="hello")
    talk.call(two, "Read", "output-error", input=100)
    assert totals(asked(talk.db, "tool")) == {"Read": 0, "Bash": 0}
    found = {group.key: (group.figures.calls, group.figures.failed)
             for group in asked(talk.db, "tool").groups}  # fmt: skip
    assert found == {"Read": (2, 1), "Bash": (1, 0)}
    narrowed = asked(talk.db, query="tool:bash").whole
    assert (narrowed.calls, narrowed.total) == (1, 10)
    users = asked(talk.db, query="role:user").whole
    assert (users.turns, users.total, users.calls) == (2, 0, 0)
    assert asked(talk.db, query="kingfisher").whole.total == 10


def test_the_longest_turns(own_talk: Talk) -> None:
    talk = own_talk
    session = talk.session("Long")
    short = talk.message(session)
    talk.message(session, "assistant")
    long = talk.message(session)
    talk.now += 1_000_000
    talk.message(session, "assistant")
    with open_rollups(talk.db) as rollups:
        found = longest_turns(talk.db, rollups, span=ALWAYS, query=parse("", now=START))
    assert [(each.message_id, each.milliseconds) for each in found] == [
        (long, 1_001_000), (short, 1_000)]
    assert found[0].title == "Long"
    # The wait of a quarter hour is no active time.
    assert asked(talk.db).whole.active_ms == 1_000


def test_the_opencode_sample_costs_what_its_own_answers_did(tmp_path: Path) -> None:
    sample = DATA / "opencode"
    expected = json.loads((sample / "EXPECTED.json").read_text())["opencode.db"]
    copy = shutil.copytree(sample, tmp_path / "opencode")
    db = open_database(tmp_path / "library.db", create=True)
    Sync(db).run([Target(source("opencode"), copy / "opencode.db")])
    assert asked(db).whole.told_usd == pytest.approx(expected["cost_without_fork_copies"])
    db.close()


def test_the_claude_code_sample_adds_up_to_what_was_served(tmp_path: Path) -> None:
    sample = DATA / "claude-code"
    expected = json.loads((sample / "EXPECTED.json").read_text())["tokens_all_files_deduplicated"]
    db = open_database(tmp_path / "library.db", create=True)
    Sync(db).run([Target(source("claude-code"), sample / "home" / ".claude")])
    assert asked(db).whole.tokens == (
        expected["input"], expected["output"] - expected["reasoning"], expected["reasoning"],
        expected["cache_read"], expected["cache_write"],
    )  # fmt: skip
    db.close()


def test_copies_are_counted_once_and_hidden_turns_stay_spent(talk: Talk) -> None:
    session = talk.session()
    first = talk.message(session)
    talk.call(session, input=10, output=2)
    last = talk.message(session, "assistant", usage={"input": 3, "cache_read": 40})
    for _ in range(2):
        talk.now += 100_000
        made = in_transaction(talk.db, fork, session, last, ids=talk.ids, now=talk.now)
    talk.message(made.session_id, "assistant", usage={"output": 5})
    in_transaction(talk.db, rewind, session, first, now=talk.now + 100_000)
    whole = asked(talk.db).whole
    assert (whole.sessions, whole.answers, whole.copies, whole.total) == (3, 3, 4, 60)
    assert whole.tokens == (13, 7, 0, 40, 0)
    by_session = totals(asked(talk.db, "session"))
    assert by_session == {session: 55, made.session_id: 5} | {
        other: 0 for other in by_session if other not in (session, made.session_id)
    }


def test_what_copies_cost_is_counted_once(own_talk: Talk) -> None:
    talk = own_talk
    one = talk.session()
    first = talk.message(one, "assistant", usage={"input": 5}, cost_usd=0.25,
                         model={"model_id": "opus"})  # fmt: skip
    talk.message(one, "assistant", usage={"input": 1}, cost_usd=0.5, model={"model_id": "haiku"})
    talk.db.connection.execute("UPDATE chat_sessions SET cost_usd = 0.75")
    two = talk.session()
    talk.message(two, "assistant", usage={"input": 5}, cost_usd=0.25, inherited_from=first,
                 model={"model_id": "opus"})  # fmt: skip
    talk.message(two, "assistant", usage={"input": 1}, cost_usd=1.0, model={"model_id": "haiku"})
    # A source may know of more than its answers tell.
    talk.db.connection.execute("UPDATE chat_sessions SET cost_usd = 1.5 WHERE id = ?", (two,))

    def costs(by: Dimension) -> dict[str, float]:
        return {group.key: group.figures.told_usd for group in asked(talk.db, by).groups}

    assert asked(talk.db).whole.told_usd == 2.0
    assert costs("session") == {one: 0.75, two: 1.25}
    assert costs("model") == {"opus": 0.25, "haiku": 1.75}
    assert list(costs("day").values()) == [2.0]


def test_context_is_what_the_newest_visible_answer_left(talk: Talk) -> None:
    session = talk.session()
    assert context_tokens(talk.db, session) is None
    first = talk.message(session, "assistant", usage={"input": 5, "cache_read": 100, "output": 9})
    talk.message(session, "assistant", usage={"input": 500})
    assert context_tokens(talk.db, session) == 500
    in_transaction(talk.db, rewind, session, first, now=talk.now)
    assert context_tokens(talk.db, session) == 114


def test_after_a_compaction_its_summary_is_in_context(talk: Talk) -> None:
    session = talk.session()
    talk.message(session, "assistant", usage={"input": 9000, "cache_read": 500, "output": 80})
    used = {"input": 9600, "output": 70, "reasoning": 5}
    talk.message(session, "assistant", usage=used, compaction=True)
    assert context_tokens(talk.db, session) == 70
    # Grida counts the summary itself as what its marker was given.
    talk.message(session, "assistant", usage={"input": 42}, compaction=True)
    assert context_tokens(talk.db, session) == 42
    talk.message(session, "assistant", usage={"input": 100, "output": 1, "reasoning": 2})
    assert context_tokens(talk.db, session) == 103


@pytest.mark.file
@pytest.mark.parametrize("at", [-(2**63), -1, 2**63 - 1, "soon", None])
@pytest.mark.one_in(3)
def test_hostile_rows_are_counted_within_bounds(talk: Talk, at: object) -> None:
    session = talk.session(workspace_root="\x1b[2J")
    write = talk.db.connection.execute
    for value in (2**63 - 1, 2**62, -(2**63), 1e300, "many", None, {"a": 1}):
        message = talk.message(session, "assistant", usage={"input": value}, cost_usd=value,  # type: ignore[dict-item]
                               model={"model_id": value})  # fmt: skip
        write("UPDATE chat_messages SET created_at = coalesce(?, created_at) WHERE id = ?",
              (at, message))  # fmt: skip
        data = {"type": "dynamic-tool", "toolName": value, "state": "output-available",
                "resultProviderMetadata": {"backscroll": {"duration_ms": value}}}  # fmt: skip
        talk.part(session, message, 9, data)
        write("UPDATE chat_parts SET updated_at = 9223372036854775807 WHERE message_id = ?",
              (message,))  # fmt: skip
    talk.message(session)
    write("UPDATE chat_sessions SET cost_usd = 1e308, metadata_json = '[1'")
    for by in DIMENSIONS:
        answer = asked(talk.db, by)
        assert answer.whole.answers == 7
        assert answer.whole.calls == 7
        assert sum(group.figures.calls for group in answer.groups) == 7


def test_a_subagents_answers_are_in_the_total_that_its_starters_source_notes(
    own_talk: Talk,
) -> None:
    talk = own_talk
    lead = talk.session()
    talk.message(lead, "assistant", usage={"input": 1_000_000}, model={"model_id": "m"})
    lineage = {"lineage": {"kind": "subagent"}}
    helper = talk.session(parent_id=lead, metadata_json=json.dumps(lineage))
    talk.message(helper, "assistant", usage={"input": 2_000_000}, model={"model_id": "m"})
    assert asked(talk.db).whole.estimated_usd == 3.0
    # The counter has both: 1 + 2 dollars.
    so_far = {"usd": 3.0, "counter": "1", "models": {"m": 3.0}}
    talk.message(lead, "assistant", usage={}, backscroll={"cost_so_far": so_far})
    cost = {"backscroll": {"cost": {"usd": 3.0, "totals": {"1": 3.0}}}}
    talk.db.connection.execute(
        "UPDATE chat_sessions SET metadata_json = ? WHERE id = ?", (json.dumps(cost), lead))
    whole = asked(talk.db).whole
    assert (whole.told_usd, whole.estimated_usd, whole.unknown_answers) == (3.0, 0.0, 0)
    assert sum(group.figures.told_usd for group in asked(talk.db, "model").groups) == 3.0
    # What it did after the note is not in the counter.
    talk.message(helper, "assistant", usage={"input": 4_000_000}, model={"model_id": "m"})
    assert asked(talk.db).whole.estimated_usd == 4.0


def test_the_copies_in_a_hosts_forks_are_counted_once(tmp_path: Path) -> None:
    """A host marks no copies: they keep their times and say the same as the parent's messages."""
    path = Path(shutil.copy(DATA / "grida" / "sessions.db", tmp_path))
    with contextlib.closing(open_database(path)) as db:
        root, child, grandchild = (row[0] for row in db.connection.execute(
            "SELECT id FROM chat_sessions ORDER BY created_at LIMIT 3"))  # fmt: skip
        found = counted_by(db, "session")
        assert (found[root].answers, found[root].copies, found[root].turns) == (3, 0, 3)
        # The answer of its own has 50 and 5 tokens.
        own = found[child]
        assert (own.answers, own.copies, own.total, own.turns) == (1, 1, 55, 2)
        assert (found[grandchild].answers, found[grandchild].copies) == (0, 1)
        kept(path)
        assert check(path) == []
        # Without its parent, a fork has the only copy that is left.
        for table, column in (("parts", "session_id"), ("messages", "session_id"),
                              ("sessions", "id")):  # fmt: skip
            db.connection.execute(f"DELETE FROM chat_{table} WHERE {column} = ?", (root,))
        assert counted_by(db, "session")[child].answers == 2
        kept(path)
        assert check(path) == []


def test_a_hosts_fork_is_no_copy_where_it_says_something_else(tmp_path: Path) -> None:
    talk = Talk(make_store(tmp_path / "s.db", "contract"))
    parent = talk.session()
    talk.message(parent, "assistant", usage={"input": 5})
    at = talk.now
    fork = talk.session(parent_id=parent, created_at=at + 60_000)
    for used, moment in ((5, at), (5, at), (6, at), (5, at + 1), (5, at + 60_000)):
        talk.now = moment - 1000
        talk.message(fork, "assistant", usage={"input": used})
    found = counted_by(talk.db, "session")
    assert (found[parent].answers, found[fork].answers, found[fork].copies) == (1, 4, 1)


def test_words_are_searched_for_once_for_all_questions(
    talk: Talk, monkeypatch: pytest.MonkeyPatch
) -> None:
    talk.message(talk.session(), "assistant", usage={"input": 10})
    searched: list[str] = []
    narrow = narrowing.narrowed

    def narrowed(db: Database, query: Query) -> Narrowed:
        searched.append(query.text)
        return narrow(db, query)

    monkeypatch.setattr(rollups, "narrowed", narrowed)
    with open_rollups(talk.db) as stats:
        for text in ("", "upload"):
            query = parse(text, now=START)
            for span in (ALWAYS, Span(0, START), ALWAYS):
                figures(talk.db, stats, by="day", span=span, query=query, zone=UTC)
                longest_turns(talk.db, stats, span=span, query=query)
    assert searched == ["", "upload"]


@pytest.mark.parametrize(("written", "usd"), [
    # 100,000 x 1 + 60,000 x 0.1 + 40,000 x 1.25 + 10 x 10, and twice as much above.
    (40_000, 0.1561), (40_001, 2 * 0.15610125),
])  # fmt: skip
def test_a_request_is_larger_by_what_it_writes_to_the_cache_too(
    own_talk: Talk, written: int, usd: float
) -> None:
    above = Above(200_000, 2.0, 20.0, 0.2, 2.5, 4.0)
    prices = PriceTable([[Price(1.0, 10.0, 0.1, 1.25, 2.0, above=(above,), pattern="m")]])
    own_talk.message(own_talk.session(), "assistant", usage={
        "input": 100_000, "cache_read": 60_000, "cache_write": written, "output": 10})  # fmt: skip
    with open_rollups(own_talk.db, prices) as stats:
        whole = figures(own_talk.db, stats, by=None, span=ALWAYS, query=parse("", now=0),
                        zone=UTC).whole  # fmt: skip
    assert whole.cost_usd == pytest.approx(usd)


def test_no_more_is_kept_for_an_hour_than_is_written(own_talk: Talk) -> None:
    prices = PriceTable([[Price(1.0, 10.0, 0.1, 1.25, 2.0, pattern="m")]])
    own_talk.message(own_talk.session(), "assistant", usage={"cache_write": 1_000_000},
                     usage_details={"cache_write_1h": 3_000_000})  # fmt: skip
    with open_rollups(own_talk.db, prices) as stats:
        whole = figures(own_talk.db, stats, by=None, span=ALWAYS, query=parse("", now=0),
                        zone=UTC).whole  # fmt: skip
    assert whole.cost_usd == pytest.approx(2.0)


def test_thinking_costs_what_output_does_and_no_tokens_cost_nothing_known(own_talk: Talk) -> None:
    session = own_talk.session()
    own_talk.message(session, "assistant", usage={"output": 100_000, "reasoning": 200_000})
    own_talk.message(session, "assistant", usage={"input": 0})
    with open_rollups(own_talk.db, PRICES) as stats:
        whole = figures(own_talk.db, stats, by=None, span=ALWAYS, query=parse("", now=0),
                        zone=UTC).whole  # fmt: skip
    assert whole.cost_usd == pytest.approx(3.0)
    assert (whole.estimated_answers, whole.unknown_answers) == (1, 1)
