"""Goes through the places that one was at, and to marks and labels."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from tui.kit.text import one_line
from tui.messages import JumpedFrom
from tui.state.marks import Mark, Marks, marks_paths
from tui.state.places import Places, Visit
from tui.verbs.doing import ask_store, counted, opened, quoted

if TYPE_CHECKING:
    from store.files.history import Checkpoint
    from store.queries.places import PlaceFacts
    from tui.dialogs.choose import Option
    from tui.host import Host
    from tui.main.opener import SessionOpener
    from tui.main.panes import Panes
    from tui.state.view_state import ViewState

SHOWN_S = 2.5
"""A toast that says where one is stays this long."""


class MarkLetter:
    """Takes the letter of a mark."""

    asks = "Mark this place with a letter; the same letter again takes it away"

    def __init__(self, keeper: PlaceKeeper, mark: Mark) -> None:
        """Take what is marked."""
        self._keeper, self._mark = keeper, mark

    async def take(self, key: str) -> bool:
        """Set the mark."""
        if len(key) == 1:
            self._keeper.put(key, self._mark)
        return False

    def leave(self) -> None:
        """Nothing was shown."""


class PlaceKeeper:
    """Remembers where one reads, and goes back there.

    Attributes:
        places: The places that jumps have left.
        marks: The marks by letter.
    """

    def __init__(
        self, host: Host, state: ViewState, panes: Panes, opener: SessionOpener, *,
        meant: Callable[[], str | None], show: Callable[[str], None],
    ) -> None:
        """Start without places, with the marks of the store.

        Args:
            host: The app.
            state: Keeps the place in each session.
            panes: Say whether one reads or chooses in the list.
            opener: Knows which session is shown.
            meant: Returns the session that a command of any pane acts on.
            show: Shows a session and gives the transcript the focus.
        """
        self._host, self._state, self._panes, self._opener = host, state, panes, opener
        self._session_meant, self._show = meant, show
        self.places = Places()
        self.marks = Marks(marks_paths(host.library.database))
        self._read: str | None = None

    # Where one is

    def here(self) -> Visit | None:
        """Return the place that is read, or was read last; None before the first."""
        if self._read is None:
            return None
        transcript = self._opener.transcript
        place: Any = self._state.places.get(self._read)
        session = transcript.session if transcript is not None else None
        if transcript is not None and session is not None and session.id == self._read:
            place = transcript.place() or place
        return _visit(self._read, place)

    def jumped(self, event: JumpedFrom) -> None:
        """Keep the place that a jump in the transcript left."""
        visit = _visit(event.session_id, event.place)
        if visit is not None:
            self.places.leave(visit)

    def reads(self, session_id: str | None, *, jumps: bool = False) -> None:
        """Take over which session is read now; the place in the one before is kept.

        Args:
            session_id: The session.
            jumps: Keep the place in the same session too, as another one in it is opened.
        """
        if session_id is None or (session_id == self._read and not jumps):
            return
        here = self.here()
        if here is not None:
            self.places.leave(here)
        self._read = session_id

    # Back and forward

    async def step(self, by: int) -> None:
        """Go to the previous (-1) or next (1) place that is still there."""
        from store.queries.places import place_facts

        here = self.here()
        listed = self._panes.focused == "sessions"
        if here is not None and listed and self._opener.shown != self._read and by < 0:
            # From the list one first comes back to what was read.
            self.places.leave(here)
            here = None
        while (visit := self.places.step(by, here)) is not None:
            found = await ask_store(self._host, place_facts, [visit.key])
            if found is None:
                return
            if found.value[0] is None:
                self.places.drop(by)
                continue
            same = visit.session_id == self._opener.shown
            where = (_turn if same else _where)(found.value[0])
            await self.go(visit)
            words = f"Place {self.places.number} of {len(self.places)}"
            self._host.notify(
                f"{words}: {where}" if where else words, timeout=SHOWN_S, markup=False)
            return
        self._host.notify(
            "No earlier place" if by < 0 else "No later place", timeout=SHOWN_S, markup=False)

    async def go(self, visit: Visit) -> None:
        """Show a place; the list of places stays as it is."""
        place = visit.place
        self._read = visit.session_id
        if visit.message_id and place is None:
            place = {"selected": [visit.message_id, visit.part]}
        if visit.session_id != self._opener.shown and place is not None:
            known = self._state.places.get(visit.session_id) or {}
            self._state.keep_place(visit.session_id, {
                "message": visit.message_id, "index": visit.part, "line": 0,
                "folds": known.get("folds", []), **place, "at_end": False})
        self._show(visit.session_id)
        transcript = self._opener.transcript
        if transcript is not None and place is not None:
            await opened(transcript)
            await transcript.navigator.to_place(place)

    # Marks

    def ask_mark(self) -> None:
        """Mark what is selected with the letter that is typed next."""
        mark = self._meant()
        if mark is not None:
            self._host.take_keys(MarkLetter(self, mark))

    def _meant(self) -> Mark | None:
        """Return what is to be marked: the selected part, or in the list the session."""
        now, session_id = self._host.library.clock(), self._session_meant()
        if session_id is None:
            return None
        visit = self.here() if self._panes.focused != "sessions" else None
        return Mark(session_id, "", 0, now) if visit is None or visit.session_id != session_id \
            else Mark(session_id, visit.message_id, visit.part, now)

    def put(self, letter: str, mark: Mark) -> None:
        """Set a mark, or take it away where it is there already."""
        self.marks.read()
        known = self.marks.by_letter.get(letter)
        try:
            if known is not None and known.is_at(mark):
                self.marks.remove(letter)
                words = f"Mark {letter} removed"
            else:
                self.marks.set(letter, mark)
                words = f"Mark {letter} set · ' {letter} comes back here"
        except OSError as error:
            self._host.report("The mark could not be kept", error)
            return
        self.show_marks()
        self._host.notify(words, timeout=SHOWN_S, markup=False)

    def show_marks(self) -> None:
        """Show the marks of the session in the transcript."""
        transcript = self._opener.transcript
        if transcript is not None:
            transcript.update_headings()

    # Marks and labels to choose from

    async def choose(self) -> None:
        """List labels and checkpoints of the session and all marks, and go to what is chosen."""
        self.marks.read()
        options = await self._options()
        if options is None:
            return
        if not options:
            table = self._host.commands
            hints = table.hint("app.mark", "sets a mark") + table.hint(
                "transcript.label", "a label")
            self._host.notify(f"No marks, and no labels in this session{hints}", markup=False)
            return
        from tui.dialogs.choose import ChooseDialog

        about = f"{counted(len(options), 'place')}; a letter goes there at once"
        visit: Visit | None = await self._host.push_screen_wait(
            ChooseDialog("Marks, labels and checkpoints", options, about=about, verb="go there"))
        if visit is None:
            return
        self.reads(visit.session_id, jumps=True)
        await self.go(visit)

    async def _checkpoints(self, session_id: str | None) -> list[tuple[Checkpoint, int | None]]:
        """Return the points that the agent of a session can go back to."""
        from store.files.history import checkpoints_of

        found = await ask_store(self._host, checkpoints_of, session_id) if session_id else None
        return found.value if found is not None else []

    async def _options(self) -> list[Option] | None:
        """Return what can be chosen; None where the store refuses to be read."""
        from store.queries.places import WHOLE_MESSAGE, place_facts
        from store.queries.tree_facts import labels_of

        session_id = self._session_meant()
        found = await ask_store(self._host, labels_of, session_id) if session_id else None
        labels = found.value if found is not None else []
        visits = [Visit(mark.session_id, mark.message_id, mark.part)
                  for mark in self.marks.by_letter.values()]
        visits += [Visit(session_id or "", label.message_id, WHOLE_MESSAGE) for label in labels]
        names = [f"“{label.text}” " for label in labels]
        for point, index in await self._checkpoints(session_id):
            visits.append(Visit(session_id or "", point.message_id,
                                WHOLE_MESSAGE if index is None else index))
            names.append(f"{point.kept_by}'s checkpoint {one_line(point.name, 40)} ")
        facts = await ask_store(self._host, place_facts, [visit.key for visit in visits])
        if facts is None:
            return None
        keys = [*self.marks.by_letter, *"123456789"]
        options = []
        for number, (visit, fact) in enumerate(zip(visits, facts.value, strict=True)):
            at = number - len(self.marks.by_letter)
            name = "" if at < 0 else names[at]
            key = keys[number] if number < len(keys) else ""
            options.append(_option(
                visit, fact, name=name, key=key, here=visit.session_id == session_id))
        return options


def _option(
    visit: Visit, facts: PlaceFacts | None, *, name: str, key: str, here: bool
) -> Option:
    from tui.dialogs.choose import Option
    from tui.words.calls import part_words

    if facts is None:
        return Option(f"{name}gone", visit, refused="It is no longer in the store", key=key)
    words = part_words(*facts.part) if facts.part is not None else "the session"
    about = _turn(facts) if here and facts.part is not None else _where(facts)
    return Option(f"{name}{words}", visit, about, key=key)


def _turn(facts: PlaceFacts) -> str:
    return f"turn {facts.turn}" if facts.turn is not None else ""


def _where(facts: PlaceFacts) -> str:
    return f"{quoted(facts.title)} {_turn(facts)}".strip()


def _visit(session_id: str, place: Any) -> Visit | None:
    """Return a visit to a place of the transcript; None where there was nothing to select."""
    if not place:
        return None
    message_id, part = place.get("selected") or (place["message"], place.get("index", 0))
    return Visit(session_id, message_id, part, {"selected": [message_id, part], **place})

