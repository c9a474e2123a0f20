"""Commands of the main screen, which work in each of its panes, and of every screen."""

from __future__ import annotations

from typing import TYPE_CHECKING

from textual.screen import ModalScreen

from tui.host import cannot_keep, cannot_run, cannot_save, cannot_write
from tui.keys.declaration import Command, CommandFactory

if TYPE_CHECKING:
    from tui.host import EveryScreen
    from tui.main.screen import MainScreen


def _has_session(screen: MainScreen) -> str | None:
    return None if screen.session_meant() else "No session is selected"


def _is_library(screen: MainScreen) -> str | None:
    if screen.library.database.form.name != "own":
        return "This store belongs to another program"
    return cannot_write(screen)


def _in_library(screen: MainScreen) -> str | None:
    return _has_session(screen) or _is_library(screen)


def _can_sync(screen: MainScreen) -> str | None:
    if not screen.library.is_kept:
        return cannot_write(screen)
    return None if screen.library.sync_targets else "Nothing is synced into this store"


def _can_export(screen: MainScreen) -> str | None:
    return _has_session(screen) or cannot_save(screen)


def _can_mark(screen: MainScreen) -> str | None:
    return _has_session(screen) or cannot_keep(screen)


def _can_resume(screen: MainScreen) -> str | None:
    return _has_session(screen) or cannot_keep(screen) or cannot_run(screen)


def _no_dialog(app: EveryScreen) -> str | None:
    return "Close this dialog first" if isinstance(app.screen, ModalScreen) else None


def _can_save(app: EveryScreen) -> str | None:
    return app.library.limits.no_files


def _changeable(app: EveryScreen) -> str | None:
    return _no_dialog(app) or app.library.no_change


_main = CommandFactory["MainScreen"]("main")
_everywhere = CommandFactory["EveryScreen"]("app")

MAIN_COMMANDS: tuple[Command[MainScreen], ...] = (
    _main("next-pane", ("tab",), "next pane", "Focus the next pane", "Screen",
          run=lambda screen: screen.panes.focus_beside(1)),
    _main("previous-pane", ("shift+tab",), "previous pane", "Focus the previous pane", "Screen",
          run=lambda screen: screen.panes.focus_beside(-1)),
    _main("sessions", ("1",), "sessions", "Focus the session list", "Screen",
          run=lambda screen: screen.panes.focus("sessions")),
    _main("transcript", ("2",), "transcript", "Focus the transcript", "Screen",
          run=lambda screen: screen.panes.focus("transcript")),
    _main("inspector", ("3",), "inspector", "Focus the inspector", "Screen",
          run=lambda screen: screen.panes.focus("inspector")),
    _main("zoom", ("z",), "zoom", "Zoom the focused pane", "Screen", footer=80,
          run=lambda screen: screen.panes.toggle_zoom(),
          also="full screen maximize"),
    _main("hide", ("\\", "f6"), "hide", "Hide or show the session list or the inspector",
          "Screen", run=lambda screen: screen.panes.toggle_hidden(),
          available=lambda screen: screen.panes.why_not_hidden,
          also="toggle side"),
    _main("narrower", ("<", "f7"), "narrower", "Make the focused pane narrower", "Screen",
          available=lambda screen: screen.panes.why_not_wider,
          run=lambda screen: screen.panes.widen(-1)),
    _main("wider", ("f8",), "wider", "Make the focused pane wider", "Screen",
          available=lambda screen: screen.panes.why_not_wider,
          run=lambda screen: screen.panes.widen(1)),
    _main("continue", ("C",), "continue", "Resume in its agent", "Change", footer=35,
          available=_can_resume, run=lambda screen: screen.resume(),
          also="resume go on reopen"),
    _main("replay", (">",), "replay",
          "Replay the session as it happened: from the selected message, or from its start where"
          " the end is followed", "Read", available=_has_session,
          run=lambda screen: screen.replay(), also="play time travel watch scrub history"),
    _main("export", ("w",), "save", "Save the session to a file, in a format of your choice",
          "Copy", available=_can_export, run=lambda screen: screen.export(),
          meaning="save", also="export share write download markdown json html"),
    _main("share", ("@",), "share",
          "Share the session: choose what goes out, look at it, and write it to a file",
          "Copy", available=_has_session, run=lambda screen: screen.share(),
          also="export send masks html publish colleague"),
    _main("forget", (), "forget", "Remove the session from the store permanently, after a question",
          "Change", available=_in_library, run=lambda screen: screen.forget(),
          also="delete remove erase purge"),
    _main("import", (), "import", "Bring in the sessions of an exported file", "Change",
          available=_is_library, run=lambda screen: screen.import_sessions(),
          also="load open file restore"),
    _main("sync", (), "sync now", "Read the sessions of your agents now", "Change",
          available=_can_sync, run=lambda screen: screen.sync(), also="refresh update reload"),
    _main("sources", (), "sources",
          "Show where sessions are looked for, and what could not be read", "Read",
          run=lambda screen: screen.show_sources(), also="agents problems folders doctor"),
    _main("place-back", ("ctrl+o", "alt+o"), "place back",
          "Go back to the place before: in this session or another", "Move",
          run=lambda screen: screen.keeper.step(-1), also="jump previous history"),
    _main("place-forward", ("alt+i", "ctrl+i"), "place forward",
          "Go forward to the place that you came back from", "Move",
          run=lambda screen: screen.keeper.step(1)),
    _main("mark", ("m",), "mark",
          "Mark the selected part, or in the list the session, with the letter typed next",
          "Move", run=lambda screen: screen.keeper.ask_mark(), available=_can_mark,
          also="bookmark"),
    _main("marks", ("'",), "marks",
          "List marks, labels and checkpoints; a letter goes to its mark at once", "Move",
          run=lambda screen: screen.choose_place(), meaning="labels", also="bookmarks"),
    _main("back", ("escape",), "back", "Go back one step", "Move", footer=5, meaning="close",
          run=lambda screen: screen.go_back()),
)

APP_COMMANDS: tuple[Command[EveryScreen], ...] = (
    _everywhere("palette", ("ctrl+p",), "palette", "Command palette", "Screen", footer=95,
                available=_no_dialog, run=lambda app: app.show_palette(),
                also="commands"),
    _everywhere("help", ("?", "f1"), "keys", "Show the keys that work here", "Screen", footer=99,
                run=lambda app: app.show_help(),
                also="shortcuts keyboard"),
    _everywhere("search", ("S", "ctrl+f"), "search",
                "Search all sessions: what was typed, thought, run and printed", "Find",
                footer=32, available=_no_dialog, run=lambda app: app.open_search(),
                also="find grep everywhere"),
    _everywhere("stats", ("$", "f2"), "statistics",
                "Show what was spent, on what, and when: cost, tokens, tools, time", "Read",
                available=_no_dialog, run=lambda app: app.open_stats(),
                also="stats usage cost tokens spending plot prices money budget plan limits"),
    _everywhere("theme", ("f9",), "theme", "Switch between the dark and the light theme",
                "Screen", run=lambda app: app.switch_theme(),
                also="dark light colours"),
    _everywhere("masks", ("I",), "masks",
                "Mask keys, passwords and tokens on the screen, or show them again", "Screen",
                run=lambda app: app.toggle_masks(),
                also="incognito hide secrets share privacy"),
    _everywhere("picture", ("P", "f12"), "picture",
                "Save what the screen shows as a picture (SVG) and as text", "Screen",
                available=_can_save, run=lambda app: app.save_picture(),
                also="screenshot svg image capture"),
    _everywhere("redraw", ("ctrl+l",), "redraw",
                "Draw the screen anew, as after another program wrote on it", "Screen",
                run=lambda app: app.redraw(),
                also="refresh repaint clear garbled"),
    _everywhere("undo", ("U",), "undo", "Undo the last change", "Change", footer=75,
                available=_changeable, run=lambda app: app.undo(),
                also="revert take back"),
    _everywhere("redo", ("ctrl+r",), "redo", "Redo what was undone", "Change",
                available=_changeable, run=lambda app: app.redo(),
                also="repeat again"),
    _everywhere("quit", ("q", "ctrl+q"), "quit", "Quit", "Screen", footer=90, meaning="close",
                run=lambda app: app.quit(),
                also="exit close leave"),
)
