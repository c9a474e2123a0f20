from __future__ import annotations

import fcntl
import os
import threading
from collections.abc import Iterator

import pytest

from store.system.readable import readable
from store.system.stopping import Stop

ABOVE_SELECT = 1_200


@pytest.fixture
def pipe() -> Iterator[tuple[int, int]]:
    """A pipe whose numbers ``select`` cannot take."""
    ends = os.pipe()
    high = tuple(fcntl.fcntl(end, fcntl.F_DUPFD_CLOEXEC, ABOVE_SELECT) for end in ends)
    for end in ends:
        os.close(end)
    yield high[0], high[1]
    for end in high:
        os.close(end)


def test_descriptors_of_any_number_are_waited_for(pipe: tuple[int, int]) -> None:
    reading, writing = pipe
    assert min(pipe) >= ABOVE_SELECT
    assert not readable([reading], 0)
    assert not readable([reading], -1)
    os.write(writing, b"x")
    assert readable([reading])
    assert readable([reading], 60)


def test_an_end_is_readable_too() -> None:
    reading, writing = os.pipe()
    os.close(writing)
    assert readable([reading])
    os.close(reading)


def test_a_stop_is_heard_beside_a_descriptor_of_any_number(pipe: tuple[int, int]) -> None:
    stop = Stop()
    raising = threading.Thread(target=stop.set)
    raising.start()
    assert stop.wait(others=[pipe[0]])
    raising.join()
    other = Stop()
    os.write(pipe[1], b"x")
    assert not other.wait(others=[pipe[0]])
    stop.close()
    other.close()
