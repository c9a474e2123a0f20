"""One session written to a file, for the command line and the browser."""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from store.engine.database import Database
from store.errors import Refused
from store.exports.reading import Playing, SessionReading, View, read_session, with_masks
from store.exports.registry import Format, file_name, writer
from store.exports.selection import Selection, selected
from store.prices.table import PriceTable
from store.sharing.masks import Masking, Masks
from store.system.files import made_folder, write_whole
from store.system.paths import expanded


class Prepared(NamedTuple):
    """A session that is about to be written.

    Attributes:
        format: How it is written.
        reading: Its rows; what was left out is known when it was written.
        masks: Which secrets were replaced; known when it was written.
    """

    format: Format
    reading: SessionReading
    masks: Masks

    def pieces(self) -> Iterator[str]:
        """Yield the text."""
        yield from writer(self.format.name)(self.reading)

    @property
    def name(self) -> str:
        """The usual name of the file; with folders where a session is one."""
        return file_name(self.format, self.reading.export_id, self.reading.session)

    def path_in(self, out: Path) -> Path:
        """Return the file to write: one with the usual name where ``out`` is a folder."""
        out = expanded(out)
        return out / self.name if out.is_dir() else out

    def write(self, path: Path, *, replace: bool = False) -> int:
        """Write it to a file, its other files where they belong, and return its size in bytes.

        A session that is a folder gets its other files only where the file has its usual name.

        Args:
            path: The file.
            replace: Whether files that are there are replaced.

        Raises:
            AlreadyThere: The file is there and is not to be replaced.
            Refused: It cannot be written.
        """
        name = self.name
        is_whole = "/" in name and path.parts[-len(name.split("/")) :] == tuple(name.split("/"))
        if is_whole:
            made_folder(path.parent)
        count = write_whole(path, self.pieces(), replace=replace)
        if not is_whole:
            self.tell_missing()
            return count
        top = path.parents[name.count("/")]
        for beside, text in self.reading.beside.items():
            made_folder((top / beside).parent)
            count += write_whole(top / beside, [text], replace=replace)
        return count

    def tell_missing(self) -> None:
        """Say which other files the session needs, where its one file was written alone."""
        if self.reading.beside:
            first, *others = self.reading.beside
            names = f"{first} and {len(others)} other files" if len(others) > 1 else (
                " and ".join((first, *others)))
            self.reading.remarks.append(
                f"the session also needs {names}; give a folder as the place, and all are written")


def prepare(
    database: Database, session_id: str, format: Format, *, view: View | None = None,
    masked: bool | None = None, masking: Masking | None = None, out: Path | None = None,
    selection: Selection | None = None, playing: Playing | None = None,
    further: Sequence[str] = (), pictures: bool = True, prices: PriceTable | None = None,
    export_id: str | None = None,
) -> Prepared:
    """Return a session, ready to be written from one state of the store.

    Args:
        database: The store; a transaction is begun, so that all is read from one state.
        session_id: The session.
        format: How it is written.
        view: Which rows; the usual ones of the format where None.
        masked: Whether secrets are replaced; as is usual for the format where None.
        masking: What is replaced where it is; secrets alone where None.
        out: Where it will be written, as some formats have their id in the name.
        selection: What of the session is written; all where None.
        playing: How a recording is played; the usual size and waits where None.
        further: More sessions for the same file; all of each is written.
        pictures: Whether pictures are included, in formats that show them.
        prices: What models cost, where an agent does not tell; None estimates nothing.
        export_id: The id that the session gets, unless the name of ``out`` has one; a new one
            where None.

    Raises:
        Refused: The format takes one session only, or an own rule cannot be used.
    """
    if further and not format.several:
        raise Refused(f"a file of {format.name} holds one session; only html takes several")
    view = format.view or view or ("all" if format.whole else "display")
    database.connection.execute("BEGIN")
    reading, *others = (
        read_session(database, each, view) for each in (session_id, *further)
    )
    reading.export_id = export_id or reading.export_id
    if format.view and out is not None and _is_uuid(out.stem[-36:]):
        reading.export_id = out.stem[-36:]
    reading.playing = playing or Playing()
    if selection is not None:
        reading = selected(reading, selection)
    masks = Masks(masking)
    if format.masked if masked is None else masked:
        reading, *others = (with_masks(each, masks) for each in (reading, *others))
    for each in (reading, *others):
        each.prices = prices
    reading.further = tuple(others)
    if not pictures:
        reading.largest_image = 0
    return Prepared(format, reading, masks)


def _is_uuid(text: str) -> bool:
    try:
        return str(uuid.UUID(text)) == text
    except ValueError:
        return False
