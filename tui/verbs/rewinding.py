"""Rewind a session after a preview, and restore what rewinds have hidden."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from store.engine.database import Database
from store.text import figures
from store.verbs.guards import refuse_while_running
from store.verbs.rewind import (
    RewindPreview,
    batches,
    message_before,
    preview_rewind,
    restore,
    rewind,
    rewind_again,
)
from tui.dialogs.choose import ChooseDialog, Option
from tui.dialogs.notes import words
from tui.host import Rewound
from tui.verbs.doing import ask_store, counted, name_of, perform, report_done
from tui.words.messages import clock_time, day

if TYPE_CHECKING:
    from tui.host import Host


@dataclass(frozen=True, slots=True)
class Rewinds:
    """What a rewind at a message can hide.

    Attributes:
        after: What comes after the message.
        before_turn: The message before its turn; None where the session begins with the turn.
        turn: The turn and all that follows, where it can be hidden.
    """

    after: RewindPreview
    before_turn: str | None
    turn: RewindPreview | None


def _rewinds(
    db: Database, session_id: str, message_id: str, turn_id: str | None, now: int
) -> Rewinds:
    after = preview_rewind(db, session_id, message_id)
    refuse_while_running(db, session_id, now)
    before = message_before(db, session_id, turn_id) if turn_id is not None else None
    turn = preview_rewind(db, session_id, before) if before is not None else None
    return Rewinds(after, before, turn)


async def rewind_to(
    host: Host, session_id: str, message_id: str, turn_id: str | None, *, latest: bool
) -> None:
    """Preview a rewind; once it is confirmed, do it.

    Args:
        host: The app.
        session_id: The session.
        message_id: The selected message.
        turn_id: The user message that begins its turn, where there is one.
        latest: Whether that turn is the last one.
    """
    found = await ask_store(
        host, _rewinds, session_id, message_id, turn_id, host.library.clock()
    )
    if found is None:
        return
    known = found.value
    if not known.after.messages and known.turn is None:
        # The verb is refused with the reason.
        await perform(host, rewind, session_id, message_id)
        return
    target = await host.push_screen_wait(_dialog(
        known, message_id, await name_of(host, session_id), latest=latest))
    if target is None:
        return
    done = await perform(host, rewind, session_id, target)
    if done is not None:
        host.rewinds[session_id] = Rewound(target, done.value.last_at)
        hidden = counted(done.value.messages, "message")
        report_done(host, f"hidden: {hidden}, files were not changed")


def _dialog(known: Rewinds, message_id: str, name: str, *, latest: bool) -> ChooseDialog:
    nothing = None if known.after.messages else "nothing comes after it"
    options = [Option("Hide all after this message", message_id,
                      _words(known.after), nothing)]
    if known.turn is not None:
        name = "Hide the latest turn" if latest else "Hide this turn and all after it"
        options.append(Option(name, known.before_turn, _words(known.turn)))
    notes = [words(("Hidden messages stay in the store; ", "muted"), ("files are not changed",
             "text bold"), (".", "muted"))]
    return ChooseDialog("Rewind", options, about=name, notes=notes, verb="hide",
                        start=1 if nothing and len(options) > 1 else 0)


def _words(preview: RewindPreview) -> str:
    words = [counted(preview.messages, "message"), counted(preview.tool_calls, "tool call")]
    return ", ".join([*words, f"{figures.tokens(preview.tokens)} tokens"])


async def hide_again(host: Host, session_id: str, rewound: Rewound) -> None:
    """Repeat a rewind that another program has undone.

    Args:
        host: The app.
        session_id: The session.
        rewound: The rewind.
    """
    done = await perform(
        host, rewind_again, session_id, rewound.kept, until=rewound.last_at)
    if done is not None:
        host.rewinds[session_id] = Rewound(rewound.kept, done.value.last_at)
        report_done(host, f"hid {counted(done.value.messages, 'message')} again")


async def restore_batch(host: Host, session_id: str) -> None:
    """Restore what one rewind has hidden: the only one at once, else the one that is chosen."""
    found = await ask_store(host, batches, session_id)
    if found is None:
        return
    batch = None
    if len(found.value) > 1:
        options = [
            Option(
                f"{day(one.hidden_at)}, {clock_time(one.hidden_at)}", one.hidden_at,
                counted(one.messages, "message")
                + ("" if one.by_user else ", abandoned in the agent"),
            )
            for one in found.value
        ]
        batch = await host.push_screen_wait(
            ChooseDialog("Restore", options,
                         about=f"{await name_of(host, session_id)}, the newest first",
                         verb="show again")
        )
        if batch is None:
            return
    done = await perform(
        host, restore, session_id, batch=batch,
        written=lambda _: host.rewinds.pop(session_id, None))
    if done is not None:
        report_done(host, f"restored {counted(done.value.messages, 'message')}")
