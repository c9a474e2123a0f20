"""What a search finds: hits grouped by session, counts, facets, and what was searched.

All texts are raw: hostile escapes and control characters are in them as the session holds
them. The screen and the command line neutralise what they draw.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple, Self

from store.queries.listing import ListRow
from store.search.text import Where

Order = Literal["newest", "best"]
FACETS = ("agent", "workspace", "tool", "role", "where", "month")
"""Names of the facets, in the order in which they are shown."""


class Place(NamedTuple):
    """Where a hit is in the order of all hits, newest first.

    Hits are ordered by ``created_at`` and then ``message_id``, both descending, and within a
    message by ``number``, ascending.

    Attributes:
        created_at: Of the message, epoch ms; of a title the session's ``updated_at``.
        message_id: Of a title the session's id.
        number: The part's index; -1 for a title.
    """

    created_at: int
    message_id: str
    number: int


class Descending(str):
    """A text that is ordered from the last to the first."""

    __slots__ = ()

    def __lt__(self, other: str) -> bool:
        """Return whether this text comes first."""
        return str.__gt__(self, other)


def order_of(score: float, place: Place) -> tuple[float, int, Descending, int]:
    """Return what orders hits, the first one least.

    Args:
        score: The hit's score; 0 where the newest comes first.
        place: Its place.
    """
    return -score, -place.created_at, Descending(place.message_id), place.number


@dataclass(frozen=True, slots=True)
class Excerpt:
    """The text around a match.

    Attributes:
        text: One line, or several where lines around were asked for; cut to the match.
        marks: Matches as ``(start, end)`` offsets into ``text``, ascending, not overlapping.
        cut_before: Whether the line begins before ``text``.
        cut_after: Whether it goes on behind ``text``.
        line: The number of the line with the match in the part's text, from 1.
    """

    text: str
    marks: tuple[tuple[int, int], ...]
    cut_before: bool = False
    cut_after: bool = False
    line: int = 1


@dataclass(frozen=True, slots=True)
class Hit:
    """One part of a session that matches, or its title.

    Attributes:
        message_id: None for a title.
        part_id: None for a title.
        index: The part's index in its message; -1 for a title.
        created_at: Epoch ms of the message; of a title the session's ``updated_at``.
        times: ``created_at`` and ``updated_at`` of the part.
        where: The place of the match that the excerpt shows.
        role: The role of the message; "" for a title.
        tool: The name of the called tool; None where the part is no call.
        state: ``tool_state`` of the call; None where the part is no call.
        failed: Whether the call failed.
        data: The part, decoded, its long strings cut: ``store.conversation.calls.describe`` makes
            a line of it. Empty for a title.
        matches: How many matches the part has.
    """

    session_id: str
    message_id: str | None
    part_id: str | None
    index: int
    created_at: int
    times: tuple[int, int]
    where: Where
    role: str
    tool: str | None
    state: str | None
    failed: bool
    data: Mapping[str, Any]
    excerpt: Excerpt
    matches: int
    score: float = 0.0

    @property
    def place(self) -> Place:
        """Its place in the order of all hits."""
        return Place(self.created_at, self.message_id or self.session_id, self.index)


@dataclass(slots=True)
class SessionHits:
    """The hits of a page in one session.

    Attributes:
        row: The session as the list shows it.
        hits: In the order of the page.
        more: How many further hits of the session were counted so far.
    """

    row: ListRow
    hits: list[Hit] = field(default_factory=list)
    more: int = 0


class Hits(list[Hit]):
    """Hits in the order of their search.

    Attributes:
        cursor: Continues behind the last hit; None if there are no more.
        why: Why not everything was searched; "" where everything was.
    """

    def __init__(self, hits: Iterable[Hit], cursor: str | None = None, why: str = "") -> None:
        """Take the hits.

        Args:
            hits: The hits.
            cursor: Of the next page.
            why: Why not everything was searched.
        """
        super().__init__(hits)
        self.cursor, self.why = cursor, why


@dataclass(slots=True)
class Page:
    """Some hits, grouped by session; sessions in the order of their first hit on the page.

    Attributes:
        cursor: Continues behind the last hit; None while that is not known, or there is none.
    """

    sessions: list[SessionHits] = field(default_factory=list)
    cursor: str | None = None

    @property
    def hits(self) -> list[Hit]:
        """All hits, session by session."""
        return [hit for session in self.sessions for hit in session.hits]

    @property
    def in_order(self) -> list[Hit]:
        """All hits in the order of the search, across sessions."""
        return sorted(self.hits, key=lambda hit: order_of(hit.score, hit.place))


@dataclass(frozen=True, slots=True)
class Counts:
    """How much was found so far.

    Attributes:
        hits: In sessions that are not archived; with ``is:archived``, in those that are.
        sessions: Sessions with hits.
        archived_hits: Further hits in archived sessions, which are not on the page.
        archived_sessions: The sessions of those.
        all_sessions: Sessions in the store, helpers' runs where they are searched; 0 until it is
            known.
        wanted_sessions: Sessions that fulfil the filters on sessions; -1 until it is known.
        whole: Whether all hits are counted.
    """

    hits: int = 0
    sessions: int = 0
    archived_hits: int = 0
    archived_sessions: int = 0
    all_sessions: int = 0
    wanted_sessions: int = -1
    whole: bool = False


Facets = Mapping[str, Mapping[str, int]]
"""By name of the facet: hits by value, most first. A month is ``2026-11``; a workspace may be
"" (none)."""


@dataclass(frozen=True, slots=True)
class Coverage:
    """What part of the store was searched.

    Attributes:
        searched: Messages that were searched, by index or scan.
        total: Messages in the store; 0 before they are counted.
        indexed: Whether the index answered for all of them.
        why: Why not all was searched, in words; "" where all was.
    """

    searched: int = 0
    total: int = 0
    indexed: bool = False
    why: str = ""

    @property
    def whole(self) -> bool:
        """Whether everything was searched."""
        return not self.why


@dataclass(slots=True)
class Update:
    """What is known of a search now; each update replaces the one before it.

    Attributes:
        page: Only grows: hits that were there stay, in their order.
        ready: Whether the page is final; with order ``best`` it is empty until then, and the
            best are those of the newest 5,000 hits.
        done: Whether the counting has ended too.
        days: Hits by local day, such as ``2026-11-03``.
    """

    page: Page
    counts: Counts
    facets: Facets
    coverage: Coverage
    ready: bool = False
    done: bool = False
    days: Mapping[str, int] = field(default_factory=dict)

    @classmethod
    def nothing(cls) -> Self:
        """Return the result of a search in an empty store."""
        facets: Facets = {name: {} for name in FACETS}
        counts = Counts(wanted_sessions=0, whole=True)
        return cls(Page(), counts, facets, Coverage(), ready=True, done=True)
