"""A rewind that was done here, so that one which another program undoes is noticed."""

from __future__ import annotations

from typing import NamedTuple


class Rewound(NamedTuple):
    """What a rewind left and hid.

    Attributes:
        kept: The last message that it left visible.
        last_at: ``created_at`` of the last message that it hid, epoch ms.
        told: Whether the user was told that it is undone.
    """

    kept: str
    last_at: int
    told: bool = False
