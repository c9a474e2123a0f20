"""A small JSON document beside a session's lines, such as its settings."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from store.sources.base.documents import parse_document
from store.sources.base.json_values import LineError
from store.sources.base.protocol import Problem
from store.sources.base.values import mapping


@dataclass(frozen=True, slots=True)
class SideFile:
    """What such a file holds.

    Attributes:
        body: Its bytes; None where it is missing or damaged.
        data: What it says; empty without a body.
    """

    body: bytes | None = None
    data: dict[str, Any] = field(default_factory=dict)

    @classmethod
    def read(cls, path: str, body: bytes | None, problems: list[Problem]) -> SideFile:
        """Return what a file says.

        Args:
            path: The file, for problems.
            body: Its bytes; None where there is none.
            problems: Takes what is wrong with it.
        """
        if body is None:
            return cls()
        try:
            value, repaired = parse_document(body)
        except LineError as error:
            problems.append(Problem(path, 0, str(error)))
            return cls()
        problems += [Problem(path, 0, repaired)] if repaired else []
        return cls(body, mapping(value))
