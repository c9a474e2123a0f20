"""Values of PostgreSQL as text, numbers or bytes, each decoded by itself.

The server sends each value as its own text (``statement``), so that one that Python has no
type for, such as a time before Christ, is a text instead of an error that ends the reading.
"""

from __future__ import annotations

import codecs
import re
from collections.abc import Callable, Sequence
from decimal import Decimal, InvalidOperation
from typing import Any, NamedTuple

from store.engine.dialect import quoted
from store.sources.base.databases import Row

Decode = Callable[[bytes], object]

SETTINGS = (
    "SET LOCAL datestyle = 'ISO, MDY'; SET LOCAL timezone = 'UTC';"
    " SET LOCAL extra_float_digits = 3; SET LOCAL bytea_output = 'hex'"
)
"""Settings of a transaction in which values have the text that is decoded here."""
_TIME = re.compile(r"(\d{4}-\d\d-\d\d) (\d\d:\d\d:\d\d)(?:\.(\d{1,6}))?(?:\+00)?")
_MOST_DIGITS = 4000
"""Digits of the longest whole number that Python reads."""


class Encoding(NamedTuple):
    """How the bytes of texts are asked for, and what they are.

    Attributes:
        server: The server's name of the encoding that it has texts in; empty where it is to make
            them UTF-8.
        python: Python's name of the one in which they come.
    """

    server: str = ""
    python: str = "utf-8"


def encoding_of(name: str) -> Encoding:
    """Return how texts of a database are asked for.

    A text that has no equivalent in UTF-8, or that is no text, would end the whole answer.

    Args:
        name: The server's name of the database's encoding.
    """
    if name in ("UTF8", "SQL_ASCII"):
        return Encoding("" if name == "UTF8" else name)
    known = name.lower().replace("win", "cp").replace("koi8", "koi8_")
    try:
        return Encoding(name, codecs.lookup(known).name)
    except LookupError:
        return Encoding()


class Column(NamedTuple):
    """A column of a statement's result.

    Attributes:
        type_name: As in ``pg_type``.
        type_kind: ``scalar``, ``array``, ``composite`` or another word of the driver.
    """

    name: str
    type_name: str
    type_kind: str


class Fetched(NamedTuple):
    """What a statement found, as the server sent it.

    Attributes:
        columns: Those of the statement.
        records: The bytes of each value's text.
        encoding: Python's name of the one that these have.
    """

    columns: Sequence[Column]
    records: Sequence[Sequence[bytes | None]]
    encoding: str = "utf-8"

    def rows(self) -> list[Row]:
        """Return the rows by column name, their values decoded."""
        recode = _recode(self.encoding)
        shape = [(column.name, recode(_decoder(column))) for column in self.columns]
        return [
            {
                name: None if value is None else decode(value)
                for (name, decode), value in zip(shape, record, strict=True)
            }
            for record in self.records
        ]


def statement(sql: str, columns: Sequence[Column], encoding: str = "") -> str:
    """Return a statement that finds the same rows, each value as the bytes of its text.

    Args:
        sql: The statement.
        columns: What it finds.
        encoding: As ``Encoding.server``.
    """
    made = f"convert_to(CAST({{}} AS text), '{encoding}')" if encoding else (
        "textsend(CAST({} AS text))")
    listed = []
    for column in columns:
        value = f"q.{quoted(column.name)}"
        if column.type_kind in ("array", "composite") or column.type_name == "record":
            value = f"to_json({value})"
        listed.append(made.format(value))
    return f"SELECT {', '.join(listed)} FROM ({sql}) AS q"


def _recode(encoding: str) -> Callable[[Decode], Decode]:
    """Return what makes decoders of UTF-8 ones of another encoding."""
    if encoding == "utf-8":
        return lambda decode: decode
    return lambda decode: lambda value: decode(value.decode(encoding, "replace").encode())


def _decoder(column: Column) -> Decode:
    if column.type_kind == "array":
        return _text
    return _DECODERS.get(column.type_name, _text)


def _text(value: bytes) -> str:
    return value.decode("utf-8", "replace")


def _whole(value: bytes) -> object:
    return int(value)


def _real(value: bytes) -> object:
    """Return a number; a text for one that is none, such as NaN."""
    return _finite(_text(value))


def _finite(text: str) -> object:
    number = float(text)
    return number if abs(number) < float("inf") else text


def _numeric(value: bytes) -> object:
    text = _text(value)
    if len(text) > _MOST_DIGITS:
        return text
    try:
        number = Decimal(text)
    except InvalidOperation:
        return text
    if number.is_finite() and number == number.to_integral():
        return int(number)
    return _finite(text)


def _bool(value: bytes) -> object:
    return value == b"true"


def _bytes(value: bytes) -> object:
    return bytes.fromhex(_text(value).removeprefix("\\x"))


def _time(value: bytes) -> object:
    """Return ISO text in UTC with milliseconds, with microseconds where there are any.

    A time that ISO 8601 has no text for, such as ``infinity``, is the server's text.
    """
    text = _text(value)
    found = _TIME.fullmatch(text)
    if found is None:
        return text
    fraction = (found[3] or "").ljust(6, "0")
    fraction = fraction[:3] if fraction.endswith("000") else fraction
    return f"{found[1]}T{found[2]}.{fraction}Z"


_DECODERS: dict[str, Decode] = {
    **dict.fromkeys(("int2", "int4", "int8", "oid"), _whole),
    **dict.fromkeys(("float4", "float8"), _real),
    "numeric": _numeric,
    "bool": _bool,
    "bytea": _bytes,
    **dict.fromkeys(("timestamp", "timestamptz"), _time),
}


def columns_of(attributes: Sequence[Any]) -> list[Column]:
    """Return the columns of a statement that the driver has prepared."""
    return [Column(one.name, one.type.name, one.type.kind) for one in attributes]
