"""When each part came and what there was at a moment: the rules, one by one."""

from __future__ import annotations

import random

from store.replay.log import LATEST, Hiding
from store.replay.spans import Spans
from store.replay.timeline import LONGEST_TEXT_MS, UNTIMED_STEP_MS
from tests.store.replay.made import START, Msg, call, made, ms, raw, text, there, user, writes


def test_parts_come_at_their_times() -> None:
    timeline = made(user(0), Msg(1_000, [text(1_000), call(2_000, 5_000), text(6_000)]))
    assert [there(timeline, at) for at in (0, 999, 1_000, 2_000, 6_000)] == [
        [0], [0], [0, 1], [0, 1, 2], [0, 1, 2, 3]]
    assert timeline.begin == START and timeline.finish == ms(6_000)
    assert timeline.origin == "rows"


def test_a_call_runs_from_its_call_to_its_result() -> None:
    timeline = made(user(0), Msg(1_000, [call(2_000, 5_000), call(2_500, 3_000)]))
    assert [timeline.cut(ms(at)).open for at in (1_999, 2_000, 2_600, 3_000, 5_000)] == [
        (), (1,), (1, 2), (1,), ()]
    assert timeline.cut(ms(2_600)).answering == (1,)
    assert timeline.cut(ms(5_000)).answering == ()


def test_a_call_without_a_result_is_as_its_row_says() -> None:
    timeline = made(Msg(0, [call(0, 90_000, "input-available")]))
    assert timeline.cut(ms(50)).open == ()


def test_an_answer_is_written_and_a_prompt_is_there_at_once() -> None:
    timeline = made(Msg(0, [text(0, 4_000)], role="user"), Msg(5_000, [text(5_000, 9_000)]))
    assert timeline.cut(ms(100)).open == ()
    assert timeline.cut(ms(6_000)).open == (1,)
    assert timeline.share(1, ms(6_000)) == 0.25
    assert timeline.share(1, ms(9_000)) == 1.0


def test_a_text_ends_where_the_next_part_begins_and_an_edit_is_no_writing() -> None:
    late = LONGEST_TEXT_MS + 1_000
    timeline = made(Msg(0, [text(0, 9_000), call(3_000, 4_000), text(5_000, 5_000 + late)]))
    assert list(timeline.ends) == [ms(3_000), ms(4_000), ms(5_000)]


def test_a_message_that_grows_on_after_another_one_began() -> None:
    timeline = made(Msg(0, [text(0), text(8_000)]), user(3_000))
    assert [there(timeline, at) for at in (0, 3_000, 8_000)] == [[0], [0, 2], [0, 1, 2]]


def test_a_part_never_comes_before_its_message() -> None:
    assert made(Msg(5_000, [text(1_000)])).starts[0] == ms(5_000)


def test_messages_without_a_time() -> None:
    timeline = made(user(None), user(2_000), user(None), user(4_000))
    assert list(timeline.message_starts) == [ms(2_000), ms(2_001), ms(2_002), ms(4_000)]


def test_a_session_without_times_has_a_second_a_message() -> None:
    timeline = made(user(None), Msg(None, [text(0), call(0, 0)]), user(None))
    assert timeline.origin == "none"
    assert list(timeline.message_starts) == [UNTIMED_STEP_MS * n for n in (1, 2, 3)]
    assert timeline.cut(UNTIMED_STEP_MS).until == 1


def test_equal_times_are_steps_of_their_own() -> None:
    timeline = made(*(user(0) for _ in range(4)))
    assert [there(timeline, at) for at in range(4)] == [[0], [0, 1], [0, 1, 2], [0, 1, 2, 3]]
    assert timeline.next_message(ms(0)) == ms(1)


def test_a_clock_that_ran_backwards() -> None:
    timeline = made(user(9_000), user(2_000), user(9_500))
    assert list(timeline.message_starts) == [ms(9_000), ms(9_001), ms(9_500)]


def test_times_out_of_reach() -> None:
    timeline = made(user(0), user(10**18), user(10**18), user(-(10**18)))
    assert list(timeline.message_starts) == [START, LATEST, LATEST + 1, LATEST + 2]
    assert there(timeline, 1) == [0]


def test_what_a_fork_inherited_is_there_from_its_first_own_message() -> None:
    timeline = made(
        user(0, inherited=True), Msg(1_000, [call(1_000, 2_000)], inherited=True), user(90_000),
        user(95_000))
    assert timeline.begin == ms(90_000)
    assert there(timeline, 90_000) == [0, 1, 2]
    assert timeline.turn_at(ms(90_000)) == 2 and timeline.next_turn(ms(90_000)) == ms(95_000)
    assert timeline.cut(ms(90_000)).open == ()
    assert list(timeline.moments) == [ms(90_000), ms(95_000)]


def test_a_fork_without_anything_of_its_own_plays_what_it_inherited() -> None:
    timeline = made(user(0, inherited=True), user(1_000, inherited=True))
    assert [there(timeline, at) for at in (0, 1_000)] == [[0], [0, 1]]


def test_queued_messages_come_when_they_were_queued() -> None:
    timeline = made(user(0), user(9_000), user(9_000, queued=4_000))
    assert [there(timeline, at) for at in (3_999, 4_000, 9_000)] == [[0], [0, 2], [0, 1, 2]]
    assert list(timeline.turns) == [0, 1]


def test_hidden_messages_are_seen_until_they_were_hidden() -> None:
    timeline = made(user(0), user(1_000, hidden=5_000), user(2_000, hidden=5_000), user(6_000))
    assert timeline.rewinds == [(ms(5_000), True, [1, 2])]
    assert [timeline.cut(ms(at)).hidden for at in (4_999, 5_000)] == [0, 1]
    assert ms(5_000) in timeline.moments
    assert not timeline.is_hidden(1, ms(4_999)) and timeline.is_hidden(1, ms(5_000))


def test_turns_and_messages_are_steps() -> None:
    timeline = made(
        user(0), Msg(1_000, [text(1_000)]), user(2_000, origin="meta"), user(3_000))
    assert timeline.turn_times == [START, ms(3_000)]
    assert [timeline.turn_at(ms(at)) for at in (-1, 0, 2_999, 3_000)] == [0, 1, 1, 2]
    assert timeline.next_message(ms(1_000)) == ms(2_000)
    assert timeline.previous_message(ms(1_500)) == ms(1_000)
    assert timeline.previous_message(START) is None and timeline.next_turn(ms(3_000)) is None
    assert timeline.turn_around(1) == (0, 3)
    assert timeline.begin_of("m1") == ms(1_000) and timeline.begin_of("no") is None


def test_the_log_knows_better() -> None:
    timeline = raw([user(0), Msg(1_000, [text(1_000), call(1_000, 1_000)])])
    timeline.note(1, writes(1_100, 1_500, 2_500))
    timeline.note(2, writes(3_000, 7_000))
    timeline.note(0, writes(500_000, is_own=False))
    timeline.settle()
    assert timeline.origin == "both"
    assert (timeline.starts[1], timeline.ends[1]) == (ms(1_100), ms(2_500))
    assert timeline.cut(ms(5_000)).open == (2,)
    known = timeline.writes(1)
    assert known is not None and (known.times[0], known.times[-1], known.seqs[0], known.seqs[-1]) \
        == (ms(1_100), ms(2_500), 1_100, 2_500)
    assert timeline.writes(0) is None
    assert ms(1_500) in timeline.moments


def test_a_result_that_came_after_the_log_was_switched_off() -> None:
    timeline = raw([user(0), Msg(1_000, [call(1_000, 9_000), text(1_000, 9_000)])])
    for part in (1, 2):
        timeline.note(part, writes(2_000))
    timeline.settle()
    assert (timeline.ends[1], timeline.ends[2]) == (ms(9_000), ms(2_000))


def test_what_was_hidden_and_restored_by_the_log() -> None:
    timeline = raw([user(0), user(1_000), user(2_000, hidden=3_000), user(9_000, hidden=50_000)])
    for message, *hidings in (
        (1, (0, 1_000), (3_000, 3_001), (0, 6_000)),
        (2, (3_000, 3_001), (0, 6_000), (3_000, 8_000)), (3, (50_000, 50_002)),
    ):
        timeline.note_message(message, writes(1_000), [
            Hiding(hidden_at and ms(hidden_at), ms(at)) for hidden_at, at in hidings])
    timeline.settle()
    assert timeline.rewinds == [
        (ms(3_000), True, [1, 2]), (ms(6_000), False, [1, 2]), (ms(8_000), True, [2]),
        (ms(50_000), True, [3])]
    assert [timeline.is_hidden(1, ms(at)) for at in (2_999, 3_000, 6_000)] == [False, True, False]
    assert timeline.is_hidden(2, ms(8_000)) and not timeline.is_hidden(2, ms(7_999))
    assert not timeline.is_hidden(0, ms(99_000))


def test_a_session_that_is_all_in_the_log() -> None:
    timeline = raw([user(0)])
    timeline.note(0, writes(5))
    assert timeline.settle().origin == "log"


def test_nothing() -> None:
    assert len(made()) == 0


def test_a_cut_equals_a_look_at_every_part() -> None:
    chance = random.Random(4)
    for _ in range(60):
        messages = [
            Msg(at, [chance.choice((text, call))(begin, begin + chance.randrange(4_000))
                     for begin in (at + chance.randrange(-500, 9_000)
                                   for _ in range(chance.randrange(1, 5)))],
                role=chance.choice(("user", "assistant")),
                hidden=chance.choice((None, None, 20_000)), inherited=chance.random() < 0.1)
            for at in sorted(chance.randrange(0, 30_000) for _ in range(12))
        ]  # fmt: skip
        timeline = made(*messages)
        for at in range(-100, 45_000, 1_711):
            moment = max(ms(at), timeline.begin)
            assert there(timeline, at) == [
                part for part, start in enumerate(timeline.starts) if start <= moment]
            assert timeline.cut(ms(at)).open == tuple(
                part for part, (start, end) in enumerate(
                    zip(timeline.starts, timeline.ends, strict=True))
                if start <= moment < end)


def test_spans() -> None:
    spans = Spans([(0, 10, 1), (2, 3, 2), (4, 4, 3), (5, 8, 4)])
    assert [sorted(spans.at(at)) for at in (-1, 0, 2, 3, 4, 6, 10)] == [
        [], [1], [1, 2], [1], [1], [1, 4], []]
    assert [spans.until(at) for at in (-5, 6, 12)] == [-5, 10, 12]
