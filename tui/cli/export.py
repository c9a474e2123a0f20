"""Write a session to stdout or to a file; html takes several, for one page.

--all writes every session to its own file in the folder --out, in any format. Run it again to go
on after an interruption, or to write what has changed since: other files are left as they are, and
none is replaced that it did not write. --dry-run counts. --json prints {"folder", "written",
"unchanged", "failed": {id: reason}, "masked"}; the exit code is 1 if one failed.

json and jsonl contain every row. The others omit hidden messages unless --hidden is given, and
report their number on stderr. Queued messages are in json and jsonl only.

In formats meant for people, keys, tokens, private keys and passwords are replaced by what they
are, and counted on stderr. --no-mask keeps them; --mask replaces them in any format. [masks] in
the config has rules of your own.
"""

from __future__ import annotations

import argparse
import sys
import textwrap
from dataclasses import asdict, replace
from pathlib import Path

from store.config import load_config
from store.engine.database import Database
from store.errors import Refused
from store.exports.files import Prepared, prepare
from store.exports.reading import Playing, View
from store.exports.registry import FORMATS, Format
from store.exports.selection import Selection
from store.prices.loading import load_prices
from store.queries.messages import resolve_message
from store.queries.sessions import resolve
from store.sharing.masks import Masking, Masks
from store.sharing.settings import checked_masking
from store.system.files import AlreadyThere
from store.system.locations import library_path
from store.system.paths import expanded
from store.text.figures import count_of
from store.text.neutral import neutral
from tui.cli.exporting import add_view_arguments, tell_left_out, view_of
from tui.cli.output import STREAM, UsageError, note, print_json
from tui.cli.stores import needs_store, store_for_reading
from tui.cli.working import showing

EXAMPLES = (
    ("backscroll export 4f1c --to html --out page.html", "a page to read and to share"),
    ("backscroll export 4f1c --to markdown --out notes.md", "a document to read"),
    ("backscroll export --all --to markdown --out sessions/", "every session, for a folder"),
    ("backscroll export 4f1c --to jsonl > session.jsonl", "every row, for `import`"),
)

LONGEST_WAIT_S = 86_400


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments, and list the formats below them."""
    parser.epilog = _formats()
    add_view_arguments(parser, several=True)
    parser.add_argument("--to", choices=tuple(FORMATS), required=True, help="the format")
    parser.add_argument("--out", metavar="PATH",
                        help="write to this file or folder; - is stdout")
    parser.add_argument(
        "--mask", action=argparse.BooleanOptionalAction, default=None,
        help="replace keys, tokens and passwords (default: only in formats meant for people)",
    )  # fmt: skip
    parser.add_argument(
        "--mask-emails", action="store_true", help="replace e-mail addresses, too")
    parser.add_argument(
        "--mask-home", action="store_true", help="replace the names of users in paths, too")
    parser.add_argument(
        "--list-masks", action="store_true", help="list on stderr what was masked, and where")
    parser.add_argument(
        "--outputs", choices=("all", "short", "none"), default="all",
        help="how much of the outputs of tools (default: all)")
    parser.add_argument(
        "--no-outputs", dest="outputs", action="store_const", const="none",
        help="leave the outputs of tools out")
    parser.add_argument(
        "--from", dest="first", metavar="MESSAGE", help="begin with this message")
    parser.add_argument(
        "--to-message", dest="last", metavar="MESSAGE", help="end with this message")
    parser.add_argument(
        "--longest-wait", type=_seconds, default=Playing().longest_wait, metavar="SECONDS",
        help="in asciicast: shorten longer waits to this (default: 2)",
    )  # fmt: skip
    parser.add_argument(
        "--size", type=_size, default=Playing(), metavar="COLUMNSxROWS",
        help="in asciicast: the terminal's size (default: 100x30)",
    )  # fmt: skip
    parser.add_argument(
        "--images", action=argparse.BooleanOptionalAction, default=True,
        help="include images, in html those of up to 2 MB (default: yes)",
    )  # fmt: skip
    parser.add_argument("--force", action="store_true", help="overwrite an existing file")
    parser.add_argument(
        "--all", action="store_true", help="every session, each to a file in the folder --out")
    parser.add_argument("--dry-run", action="store_true", help="with --all: only count")
    parser.add_argument("--json", action="store_true", help="with --all: print a JSON object")


def _seconds(text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        seconds = 0.0
    if not 0 < seconds <= LONGEST_WAIT_S:
        raise argparse.ArgumentTypeError("give seconds, such as 1.5")
    return seconds


def _size(text: str) -> Playing:
    numbers = [int(one) for one in text.split("x") if one.isdecimal() and len(one) <= 4]
    if len(numbers) != 2 or not all(10 <= one <= 1000 for one in numbers):
        raise argparse.ArgumentTypeError("give columns and rows, such as 100x30")
    return Playing(columns=numbers[0], rows=numbers[1])


def _formats() -> str:
    """Return what each format is, for ``--help``."""
    lines = ["formats:"]
    for format in FORMATS.values():
        words = ", ".join(filter(None, (format.help, format.details)))
        lines += textwrap.wrap(
            words, 96, initial_indent=f"  {format.name:<13}", subsequent_indent=" " * 15,
            break_on_hyphens=False)
    return "\n".join(lines)


def run(options: argparse.Namespace) -> int:
    """Write it."""
    format = FORMATS[options.to]
    view = format.view or view_of(options, whole=format.whole)
    _check(options)
    if options.all:
        return _export_all(options, format, view)
    with store_for_reading(options) as opened:
        database = needs_store(opened)
        session_id, *further = (resolve(database, each).id for each in options.sessions)
        masked, masking = _masking(options, format)
        out = None if options.out in (None, STREAM) else Path(options.out)
        made = prepare(
            database, session_id, format, view=view, masked=masked, masking=masking,
            out=out, selection=_selection(options, format, database, session_id),
            playing=options.size._replace(longest_wait=options.longest_wait),
            further=further, pictures=options.images,
            prices=load_prices(load_config().prices) if format.masked else None)
        reading = made.reading
        if out is None:
            for piece in made.pieces():
                sys.stdout.write(piece)
            made.tell_missing()
        else:
            path = made.path_in(out)
            _write(made, path, replace=options.force)
            note(f"written to {path}")
        tell_left_out(reading)
        _tell_masked(made.masks, listed=options.list_masks)
        for remark in reading.remarks:
            note(remark)
        ours = database.form.name == "own"
    if ours and reading.agent_id is not None:
        _remember(options, format.name, reading.agent_id, session_id)
    return 0


def _check(options: argparse.Namespace) -> None:
    """Refuse options that do not go together.

    Raises:
        UsageError: The message says which.
    """
    if not options.all:
        if not options.sessions:
            raise UsageError("name a session, or use --all")
        if options.dry_run or options.json:
            raise UsageError("--dry-run and --json are for --all")
    elif options.sessions or options.first or options.last or options.list_masks or options.force:
        raise UsageError("--all takes no SESSION, --from, --to-message, --list-masks or --force")
    elif options.out in (None, STREAM):
        raise UsageError("--all needs a folder: --out DIR")


def _export_all(options: argparse.Namespace, format: Format, view: View) -> int:
    """Write every session to a folder."""
    from store.exports.bulk import export_all

    folder = expanded(options.out)
    masked, masking = _masking(options, format)
    prices = load_prices(load_config().prices) if format.masked else None
    chosen = Selection(
        None, None, images=options.images or format.pictures, outputs=options.outputs)
    selection = None if chosen == Selection() else chosen
    playing = options.size._replace(longest_wait=options.longest_wait)
    with store_for_reading(options) as opened, showing() as shown:
        database = needs_store(opened)

        def prepared(session_id: str, export_id: str) -> Prepared:
            return prepare(
                database, session_id, format, view=view, masked=masked, masking=masking,
                selection=selection, playing=playing, pictures=options.images, prices=prices,
                export_id=export_id)

        done = export_all(
            database, format, folder, prepared, dry_run=options.dry_run,
            settings=repr((view, masked, masking, selection, playing, options.images)),
            telling=lambda count, total: shown("exporting", count, total))
    if options.json:
        print_json({"folder": str(folder), **asdict(done), "dry_run": options.dry_run})
    else:
        verb = "would be written to" if options.dry_run else "written to"
        note(f"{count_of(done.written, 'session')} {verb} {folder},"
             f" {done.unchanged:,} unchanged")
        if done.masked:
            note(f"{count_of(done.masked, 'secret')} masked. --no-mask writes them.")
    for session_id, reason in done.failed.items():
        note(f"backscroll: {neutral(session_id)} was not written: {neutral(reason)}")
    return 1 if done.failed else 0


def _masking(options: argparse.Namespace, format: Format) -> tuple[bool, Masking | None]:
    """Return whether texts are masked, and what in them.

    Raises:
        Refused: A rule of the config cannot be used.
    """
    chosen = options.mask
    if chosen is None:
        chosen = format.masked
    others = options.mask_emails or options.mask_home
    if not chosen and not others:
        return False, None
    masking = checked_masking(load_config())
    return True, replace(
        masking, secrets=chosen, emails=options.mask_emails or (chosen and masking.emails),
        home=options.mask_home or (chosen and masking.home))


def _selection(
    options: argparse.Namespace, format: Format, database: Database, session_id: str
) -> Selection | None:
    """Return what of the session is written; None for all of it.

    Raises:
        NotFound: There is no such message.
        Ambiguous: Its name fits several.
    """
    first, last = (
        None if name is None else resolve_message(database, session_id, name).id
        for name in (options.first, options.last)
    )
    selection = Selection(
        first, last, images=options.images or format.pictures, outputs=options.outputs)
    return None if selection == Selection() else selection


def _tell_masked(masks: Masks, *, listed: bool) -> None:
    """Print on stderr how many secrets were masked, by kind; each one where that is asked for."""
    for one in masks.found if listed else ():
        place = one.place.part_id or one.place.message_id or "the session"
        note(f"{place}: {one.kind}, {neutral(one.hint)}")
    kinds = ", ".join(f"{kind} {count}" for kind, count in masks.counts.most_common())
    if kinds:
        total = masks.counts.total()
        secrets = "secret" if total == 1 else "secrets"
        note(f"{total:,} {secrets} masked ({kinds}). --no-mask writes them.")


def _remember(options: argparse.Namespace, kind: str, agent_id: str, session_id: str) -> None:
    """Record the export, so that sync can link the continued session, if the store is writable."""
    from store.engine.database import in_transaction
    from store.engine.opening import open_target
    from store.exports.noting import note_export

    database = open_target(options.store or library_path(), write=True)
    try:
        if database.read_only is None:
            in_transaction(database, note_export, kind, agent_id, session_id)
    finally:
        database.close()


def _write(made: Prepared, path: Path, *, replace: bool) -> None:
    try:
        made.write(path, replace=replace)
    except AlreadyThere as error:
        raise Refused(f"{error}. Use --force to overwrite it.") from error
