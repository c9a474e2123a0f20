"""The Raw view: the records that the source itself wrote for a part."""

from __future__ import annotations

from dataclasses import dataclass

from store.engine.database import Database
from store.queries import originals
from store.text.figures import count_of, size
from store.text.neutral import with_escapes
from store.text.stored_json import DamagedJson, loads
from tui.inspector.subject import Subject
from tui.kit.blocks import Block, Fixed, Text, plain, section
from tui.kit.lines import BLANK, Value
from tui.kit.tree import Tree


@dataclass(frozen=True, slots=True)
class Records:
    """A part's original records.

    Attributes:
        texts: Each as the source wrote it.
        whole_message: They belong to the message, none of them to the part alone.
    """

    texts: list[str]
    whole_message: bool = False


def read_records(db: Database, part_id: str, message_id: str) -> Records:
    """Return the original records of a part; of its message where the part has none.

    Args:
        db: The store.
        part_id: The part.
        message_id: Its message.
    """
    texts = originals.records_of_part(db, part_id)
    if texts:
        return Records(texts)
    return Records(originals.records_of_message(db, message_id), whole_message=True)


def raw_blocks(records: Records, why_none: str, subject: Subject) -> list[Block]:
    """Return the records as JSON trees, or as text where one is not JSON.

    Args:
        records: The records.
        why_none: Shown when there are none.
        subject: Keeps how the trees are folded.
    """
    if not records.texts:
        none = f"The store keeps no original record of this part. {why_none}"
        return [Text(none, words=True, paint=plain("muted"))]
    blocks: list[Block] = []
    if records.whole_message:
        note = "These records belong to the message as a whole."
        blocks += [Text(note, words=True, paint=plain("faint")), Fixed(lambda _: [BLANK])]
    for number, text in enumerate(records.texts, 1):
        blocks += _record(number, len(records.texts), text, subject)
    return blocks


def _record(number: int, count: int, text: str, subject: Subject) -> list[Block]:
    name = "Record" if count == 1 else f"Record {number} of {count}"
    facts = [size(len(text.encode("utf-8", "surrogatepass")))]
    body: Block
    try:
        parsed = loads(text)
    except DamagedJson:
        facts.append("not JSON, shown as it is")
        value = Value(name.lower(), lambda: text)
        body = Text(with_escapes(text), value=value)
    else:
        value = Value(name.lower(), lambda: text, ".json")
        facts.append(count_of(len(parsed), "key") if isinstance(parsed, dict) else "JSON")
        body = Tree(subject.root(f"record {number}", parsed), escapes=True)
    return section(name, facts, body, value=value)
