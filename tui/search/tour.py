"""Goes from hit to hit of a search in the transcript, in whichever sessions they are."""

from __future__ import annotations

from collections.abc import Callable

from store.errors import BackscrollError
from store.search.hits import Hit
from tui.host import Host, WayBack
from tui.search.model import SearchModel
from tui.search.results import key_of
from tui.transcript.shown_hit import ShownHit


class Tour:
    """Shows hits in the transcript; escape leads back to the results.

    Attributes:
        hit: The hit that was shown last; None before the first.
    """

    def __init__(self, host: Host, model: SearchModel, back: Callable[[], object]) -> None:
        """Start with no hit shown.

        Args:
            host: Opens sessions.
            model: What was found.
            back: Shows the results again.
        """
        self._host, self._model, self._back = host, model, back
        self.hit: Hit | None = None

    @property
    def words(self) -> str:
        """Which hit is shown, such as ``hit 3 of 48``."""
        return self.words_of(self.hit)

    def words_of(self, hit: Hit | None) -> str:
        """Return which of all hits one is, such as ``hit 3 of 48``; "" for none."""
        number = self._model.results.number_of(hit) if hit is not None else None
        if number is None:
            return ""
        counts = self._model.counts
        most = max(counts.hits, number)
        return f"hit {number:,} of {most:,}{'' if counts.whole else '+'}"

    def show(self, hit: Hit) -> None:
        """Open the transcript at a hit."""
        self.hit = hit
        self._model.results.select(key_of(hit))
        self._host.open_session(
            hit.session_id, hit.message_id, back=WayBack("the search", self._back),
            hit=ShownHit(hit, self._model.marks, self),
        )

    async def step(self, by: int) -> None:
        """Show the next (1) or previous (-1) hit."""
        if self.hit is None:
            return
        try:
            other = await self._model.beside(self.hit, by)
        except BackscrollError as error:
            self._host.report("The next hit could not be read", error)
            return
        if other is None:
            words = "This is the last hit" if by > 0 else "This is the first hit"
            self._host.notify(words, timeout=2, markup=False)
        else:
            self.show(other)
