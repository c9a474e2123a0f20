from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from store.sources.base.protocol import FileStamp, Unit
from store.sync.frames import Task
from store.sync.scheduling import Scheduler


def tasks(folders: str) -> list[Task]:
    """One task for each letter, in the folder of that letter."""
    return [
        Task(number, "lines", Path("/s"),
             Unit(f"{folder}{number}", (FileStamp(f"/s/{folder}/{number}", 1, 1, 1),), 1), None, 0)
        for number, folder in enumerate(folders)
    ]  # fmt: skip


def taken(dealer: Scheduler, helpers: str) -> list[str]:
    return [dealer.next(helper).unit.key for helper in helpers]


def test_a_folder_stays_with_the_helper_that_began_it() -> None:
    dealer = Scheduler(tasks("aabbab"))
    assert taken(dealer, "XYXYXY") == ["a0", "b2", "a1", "b3", "a4", "b5"]
    assert not dealer


def test_the_newest_comes_first_among_what_a_helper_may_take() -> None:
    dealer = Scheduler(tasks("abcab"))
    assert taken(dealer, "XXYXX") == ["a0", "b1", "c2", "a3", "b4"]


def test_a_helper_without_folders_takes_over_the_last_wanted_one() -> None:
    dealer = Scheduler(tasks("abab"))
    assert taken(dealer, "XXYX") == ["a0", "b1", "b3", "a2"]


def test_one_folder_is_shared_when_there_is_no_other() -> None:
    dealer = Scheduler(tasks("aaaa"))
    assert taken(dealer, "XYXY") == ["a0", "a1", "a2", "a3"]


def test_what_is_given_back_comes_first_and_its_folders_are_anybodys() -> None:
    given_tasks = tasks("aabb")
    dealer = Scheduler(given_tasks)
    assert taken(dealer, "XY") == ["a0", "b2"]
    dealer.give_back("X", [given_tasks[0]])
    assert taken(dealer, "ZZY") == ["a0", "a1", "b3"]
    assert not dealer
    with pytest.raises(KeyError):
        dealer.next("Z")


@given(st.text("abcd", min_size=1), st.lists(st.sampled_from("XYZ")), st.data())
def test_each_task_is_dealt_once(
    folders: str, helpers: list[str], data: st.DataObject
) -> None:
    dealer, found = Scheduler(tasks(folders)), list[Task]()
    for helper in [*helpers, *"X" * len(folders)]:
        if not dealer:
            break
        found.append(dealer.next(helper))
        if data.draw(st.integers(0, 9)) == 0:
            dealer.give_back(helper, [found.pop()])
    while dealer:
        found.append(dealer.next("X"))
    assert sorted(task.number for task in found) == list(range(len(folders)))
