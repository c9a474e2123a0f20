"""Regular expressions of users, bounded in size and in time."""

from __future__ import annotations

import re
import time
from functools import lru_cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from regex import Pattern

LONGEST = 1_000
"""Characters of a regular expression."""
MOST_COPIES = 10_000
"""What all counts of an expression, such as the ones of ``(a{20}){30}``, may multiply to."""
FLAGS = "imsx"
"""Letters that may stand behind an expression."""
SLOWEST_TEXT_S = 0.1
"""Seconds that an expression may take on one text."""
SLOWEST_S = 0.5
"""Seconds that an expression may lose to texts on which it took too long, together."""
MOST_MATCHES = 10_000
_COUNT = re.compile(r"\{(\d*)(?:,(\d*))?\}")


class BadPattern(ValueError):
    """A regular expression that cannot be used.

    Attributes:
        at: Where in the expression it is wrong.
    """

    def __init__(self, message: str, at: int = 0) -> None:
        """Say what is wrong, and where."""
        super().__init__(message)
        self.at = at


class BoundedPattern:
    """A regular expression that gives up on a text where it takes too long.

    Attributes:
        gave_up: Whether it took too long on any text; what it found is then not all.
        read_all: Whether the text that was searched last was read to its end.
    """

    def __init__(self, pattern: Pattern[str]) -> None:
        """Take a compiled expression; ``compiled`` makes it."""
        self._pattern = pattern
        self._left_s = SLOWEST_S
        self.gave_up = False
        self.read_all = True

    def spans(
        self, text: str, most: int = MOST_MATCHES, *, slowest_s: float = SLOWEST_TEXT_S
    ) -> list[tuple[int, int]]:
        """Return where the expression matches; nothing once it has lost its time.

        Args:
            text: Where to look.
            most: After so many matches the rest of the text is left out.
            slowest_s: Seconds that it may take.
        """
        found: list[tuple[int, int]] = []
        self.read_all = self._left_s > 0
        if not self.read_all:
            return found
        started = time.monotonic()
        try:
            for match in self._pattern.finditer(text, timeout=slowest_s):
                found.append(match.span())
                if len(found) >= most:
                    self.read_all = False
                    break
        except (TimeoutError, MemoryError):
            self.gave_up, self.read_all = True, False
            self._left_s -= time.monotonic() - started
        return found


def compiled(source: str, flags: str = "") -> BoundedPattern:
    """Return an expression in Python's syntax; ``^`` and ``$`` also stand at line breaks.

    Args:
        source: The expression.
        flags: Letters of ``FLAGS``: ``i`` ignores case.

    Raises:
        BadPattern: It is wrong, too long, or repeats too much.
    """
    return BoundedPattern(_compiled(source, "".join(sorted(set(flags)))))


@lru_cache(maxsize=64)
def _compiled(source: str, flags: str) -> Pattern[str]:
    unknown = [flag for flag in flags if flag not in FLAGS]
    if unknown:
        raise BadPattern(f"there is no flag `{unknown[0]}`; flags are {', '.join(FLAGS)}",
                         len(source) + 1)
    if len(source) > LONGEST:
        raise BadPattern(f"it is longer than {LONGEST:,} characters", LONGEST)
    _refuse_many_copies(source)
    wanted = re.MULTILINE
    for flag in flags:
        wanted |= re.RegexFlag[flag.upper()]
    try:
        # The standard library refuses what only ``regex`` knows, such as recursion.
        re.compile(source, wanted)
        import regex

        return regex.compile(source, int(wanted) | regex.VERSION0)
    except re.error as error:
        raise BadPattern(str(error.msg), error.pos or 0) from None
    except RecursionError:
        raise BadPattern("it is nested too deep") from None
    except Exception as error:  # ``regex`` has an error class of its own, and odd others.
        raise BadPattern(str(error) or type(error).__name__,
                         getattr(error, "pos", 0) or 0) from None


def _refuse_many_copies(source: str) -> None:
    """Refuse an expression whose counted repeats would fill the memory."""
    copies = 1
    for found in _COUNT.finditer(source):
        numbers = [each for each in found.groups() if each]
        if any(len(each) > 5 for each in numbers):
            raise BadPattern("it repeats too often", found.start())
        copies *= max([1, *map(int, numbers)])
        if copies > MOST_COPIES:
            raise BadPattern("it repeats too often", found.start())
