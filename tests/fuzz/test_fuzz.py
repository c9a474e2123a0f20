"""A bounded number of rounds; ``python -m tests.fuzz`` does more."""

from __future__ import annotations

import os

import pytest

from tests.fuzz.rounds import TARGETS, one

pytestmark = pytest.mark.long

ROUNDS = int(os.environ.get("BACKSCROLL_FUZZ_ROUNDS", "25"))


@pytest.mark.parametrize("name", TARGETS)
def test_rounds(name: str) -> None:
    for seed in range(ROUNDS):
        try:
            one(name, seed)
        except Exception as error:
            raise AssertionError(f"python -m tests.fuzz {name} --seed {seed}") from error
