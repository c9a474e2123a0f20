"""Work that lets others come first."""

from __future__ import annotations

import os
import sys

import pytest

from store.system.priority import NICE, run_behind


def niceness() -> int:
    return os.getpriority(os.PRIO_PROCESS, 0)


@pytest.mark.skipif(sys.platform != "linux", reason="threads have no priority of their own")
def test_it_is_lower_while_the_work_runs() -> None:
    before = niceness()
    assert run_behind(niceness) == min(before + NICE, 19)
    assert niceness() == before


def test_an_error_of_the_work_is_raised() -> None:
    with pytest.raises(ZeroDivisionError):
        run_behind(lambda: 1 // 0)
