r"""SQL of PostgreSQL, method by method what ``store.engine.dialect`` says on SQLite.

PostgreSQL reads no JSON with ``\u0000`` or half a surrogate pair, which a host or a source
may have written, and fails on the whole of it. Facts are read from a text in which these are
U+FFFD; what is stored and shown stays as it was written.
"""

from __future__ import annotations

from store.engine.dialect import Dialect

_UNREADABLE = (
    r"\\u(0000|[dD][89abAB][[:xdigit:]]{2}(?!\\u[dD][c-fC-F]))"
    r"|(?<!\\u[dD][89abAB][[:xdigit:]]{2})\\u[dD][c-fC-F][[:xdigit:]]{2}"
)
_WHOLE = r"'^-?[0-9]{1,18}(\.[0-9]{1,40})?$|^-?[0-9](\.[0-9]{1,40})?[eE]\+?(1[0-7]|[0-9])$'"
"""Numbers that a BIGINT holds."""
_REAL = r"'^-?[0-9]{1,40}(\.[0-9]{1,40})?([eE][-+]?[0-9]{1,2})?$'"
_BEGINS = r"'^\s*[\[{].*[\]}]\s*$'"


class Postgres(Dialect):
    """SQL of PostgreSQL."""

    name = "postgresql"
    same = "IS NOT DISTINCT FROM"
    other = "IS DISTINCT FROM"
    then_join = "JOIN"
    random_tail = "upper(left(replace(CAST(gen_random_uuid() AS text), '-', ''), 14))"
    row_order = "ctid"
    begin_unmoving = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"
    partitions = True
    data_version = "SELECT hashtextextended(CAST(pg_current_snapshot() AS text), 0)"

    def __init__(
        self, *, texts: frozenset[str] = frozenset(), rewritten: frozenset[str] = frozenset(),
        version: int = 15, ids: str = "C", icu: bool = True,
    ) -> None:
        """Say what a store's columns are.

        Args:
            texts: Columns with JSON that are texts, so that their JSON may be invalid.
            rewritten: Columns of ``jsonb``, which orders keys and numbers anew.
            version: The server's major version.
            ids: The collation of ids; empty for that of the database.
            icu: Whether the server was built with ICU, which knows the case of all letters.
        """
        self._letters = ' COLLATE "und-x-icu"' if icu else ""
        self._texts, self.rewritten = texts, rewritten
        self._tests_json = version >= 16
        self._collation = f' COLLATE "{ids}"' if ids else ""

    def found(self, table: str, name: str, condition: str) -> str:
        """Return a join with the few rows of a table that are looked up for each row before it.

        Args:
            table: The table.
            name: What the condition calls it.
            condition: About its rows, by an index.
        """
        # With OFFSET 0 the planner keeps to it: else it may read a whole table for 40 rows.
        return (f" JOIN LATERAL (SELECT {name}.* FROM {table} {name} WHERE {condition}"
                f" OFFSET 0) {name} ON TRUE")

    def usual(self, condition: str) -> str:
        """Return a condition that many rows meet, so that an index is walked until one is found.

        Of an expression the planner assumes that one row in 200 meets it, and reads and sorts
        all messages of a session to find its last one. Of this form it assumes the half.

        Args:
            condition: The condition, never NULL.
        """
        return f"(CASE WHEN {condition} THEN TRUE ELSE FALSE END)"

    def fact(self, column: str, path: str) -> str:
        """Return an expression for a text in a JSON column; NULL when unset or invalid."""
        return f"({self._json(column)} #>> '{_path(path)}')"

    def rare_fact(self, column: str, path: str) -> str:
        """Return the same as ``fact``, for a key that few rows have."""
        return self._where_named(column, path, self.fact(column, path))

    def first_fact(self, column: str, *paths: str) -> str:
        """Return an expression for the first of several texts that is set."""
        return f"coalesce({', '.join(self.rare_fact(column, path) for path in paths)})"

    def number(self, column: str, path: str) -> str:
        """Return an expression for a whole number in a JSON column; NULL when unset."""
        value = f"{self._json(column)} #>> '{_path(path)}'"
        return self._where_named(
            column, path, f"CASE WHEN {value} IS NULL THEN NULL"
            f" WHEN {self._kind(column, path)} = 'number' THEN {_whole(value)} ELSE 0 END")

    def true_number(self, column: str, path: str) -> str:
        """Return an expression for a number in a JSON column; NULL for all else."""
        value = f"{self._json(column)} #>> '{_path(path)}'"
        return self._where_named(
            column, path,
            f"CASE WHEN {self._kind(column, path)} = 'number' THEN {_whole(value)} END")

    def amount(self, column: str, path: str) -> str:
        """Return an expression for a number with a fraction in a JSON column; NULL for all else."""
        value = f"{self._json(column)} #>> '{_path(path)}'"
        return self._where_named(
            column, path, f"CASE WHEN {self._kind(column, path)} = 'number'"
            f" AND {value} ~ {_REAL} THEN CAST({value} AS double precision) END")

    def first_number(self, column: str, *paths: str) -> str:
        """Return an expression for the first of several whole numbers in a JSON column, or 0."""
        return f"coalesce({', '.join(self.true_number(column, path) for path in paths)}, 0)"

    def is_number(self, column: str, path: str) -> str:
        """Return the condition that a value in a JSON column is a number; never NULL."""
        kind = self._where_named(column, path, self._kind(column, path))
        return f"(coalesce({kind}, '') = 'number')"

    def is_set(self, column: str, path: str) -> str:
        """Return the condition that a JSON column has a value that is not null; never NULL."""
        return f"({self.rare_fact(column, path)} IS NOT NULL)"

    def is_there(self, column: str, path: str) -> str:
        """Return the condition that a JSON column has a value, even null; never NULL."""
        value = f"CAST({self._json(column)} #> '{_path(path)}' AS text)"
        return f"({self._where_named(column, path, value)} IS NOT NULL)"

    def first_is_true(self, column: str, *paths: str) -> str:
        """Return the condition that the first of several values that is set is true; never NULL."""
        found = ", ".join(self.rare_fact(column, path) for path in paths)
        return f"(coalesce({found}, '') IN ('true', '1'))"

    def is_text(self, column: str, path: str) -> str:
        """Return the condition that a value in a JSON column is a text; never NULL."""
        kind = self._where_named(column, path, self._kind(column, path))
        return f"(coalesce({kind}, '') = 'string')"

    def json_at(self, column: str, path: str) -> str:
        """Return an expression for the JSON text of a value in a JSON column."""
        return f"CAST({self._json(column)} #> '{_path(path)}' AS text)"

    def items(self, column: str, path: str, name: str) -> str:
        """Return a table of the values of an object or array in a JSON column.

        Args:
            column: The column.
            path: As in ``fact``.
            name: Of the table; its column is ``value``.
        """
        found = f"{self._json(column)} #> '{_path(path)}'"
        kind = f"json_typeof({found})"
        return (
            "(SELECT value FROM json_array_elements_text("
            f"CASE WHEN {kind} = 'array' THEN {found} END) AS listed(value)"
            " UNION ALL SELECT value FROM json_each_text("
            f"CASE WHEN {kind} = 'object' THEN {found} END) AS named(key, value)) {name}"
        )

    def is_json(self, column: str) -> str:
        """Return the condition that the text of a JSON column is valid."""
        return self._valid(column) if self._is_text(column) else "TRUE"

    def texts(self, place: str, name: str) -> str:
        """Return a table of the texts of a JSON array that is bound at a place."""
        listed = f"json_array_elements_text(CAST({place} AS json))"
        return f"{listed} WITH ORDINALITY AS {name}(value, key)"

    def numbers(self, place: str, name: str) -> str:
        """Return a table of the whole numbers of a JSON array that is bound at a place."""
        return (
            "(SELECT CAST(listed.value AS bigint) AS value FROM"
            f" json_array_elements_text(CAST({place} AS json)) AS listed(value)) {name}"
        )

    def is_among(self, column: str, place: str) -> str:
        """Return a condition for a column with one of some whole numbers, by an index of it.

        They are an array: a join with as many takes twice as long.

        Args:
            column: The column.
            place: Of a JSON array.
        """
        return f"{column} = ANY(ARRAY(SELECT j.value FROM {self.numbers(place, 'j')}))"

    def as_id(self, place: str) -> str:
        """Return a value that is bound as an id, where no column says what it is."""
        return f"CAST({place} AS text){self._collation}"

    def as_fact(self, column: str) -> str:
        """Return an id as it is compared with facts of JSON columns, by their indexes."""
        # Of another collation than the index has, a whole table would be read.
        return f'{column} COLLATE "default"'

    def limit(self, count: int) -> int | None:
        """Return what is bound after ``LIMIT``; a negative count is all rows."""
        return count if count >= 0 else None

    def bytes_of(self, column: str) -> str:
        """Return an expression for the number of bytes of a text; NULL where it is."""
        return f"octet_length({column})"

    def text(self, column: str) -> str:
        """Return a JSON column as a text."""
        return f"CAST({column} AS text)"

    def contains(self, column: str, words: str) -> str:
        """Return the condition that a column contains a text, letter by letter."""
        return f"strpos(CAST({column} AS text), {words}) > 0"

    def like(self, expression: str, pattern: str) -> str:
        r"""Return the condition of ``LIKE`` without regard to the case of ASCII letters."""
        return f"{expression} ILIKE {pattern} ESCAPE '\\'"

    def folded(self, expression: str) -> str:
        """Return a text as it is compared without regard to case, in any script.

        Without ICU these are the scripts of the database's locale: with C, ASCII alone. Of the
        letters whose folded form is not their small one, those that words have are folded.
        """
        small = f"lower(CAST({expression} AS text){self._letters})"
        return f"replace(translate({small}, 'ςſ', 'σs'), 'ß', 'ss')"

    def hex12(self, number: str) -> str:
        """Return a number's lowest 48 bits as 12 hexadecimal digits."""
        return f"lpad(to_hex({number} & 281474976710655), 12, '0')"

    def with_text(self, column: str, key: str, value: str) -> str:
        """Return a JSON column with a text set at a key of its object; as it is if invalid.

        Args:
            column: The column.
            key: The key.
            value: An expression for the text.
        """
        text, new = f"rtrim(CAST({column} AS text))", f"CAST(to_json({value}) AS text)"
        comma = f"CASE WHEN {text} ~ '^\\s*\\{{\\s*\\}}$' THEN '' ELSE ',' END"
        added = f"""left({text}, -1) || {comma} || '"{key}":' || {new} || '}}'"""
        pair = (
            f"CAST(to_json(pair.key) AS text) || ':' || CASE pair.key WHEN '{key}' THEN {new}"
            " ELSE CAST(pair.value AS text) END"
        )
        changed = (
            f"(SELECT '{{' || string_agg({pair}, ',' ORDER BY pair.place) || '}}'"
            f" FROM json_each({self._json(column)}) WITH ORDINALITY AS pair(key, value, place))"
        )
        there = f"(coalesce(json_typeof({self._json(column)} -> '{key}'), '') <> '')"
        is_object = f"json_typeof({self._json(column)}) = 'object'"
        return (
            f"CAST(CASE WHEN {is_object} THEN CASE WHEN {there} THEN {changed} ELSE {added} END"
            f" ELSE CAST({column} AS text) END AS {'text' if self._is_text(column) else 'json'})"
        )

    def as_json(self, expression: str) -> str:
        """Return a text as the value of a JSON column."""
        return f"CAST({expression} AS json)"

    def plain_number(self, column: str) -> str:
        """Return a number column, 0 where it holds no number."""
        return f"coalesce({column}, 0)"

    def greatest(self, *expressions: str) -> str:
        """Return the greatest of several numbers; NULL where one of them is."""
        return _unless_null(f"greatest({', '.join(expressions)})", expressions)

    def least(self, *expressions: str) -> str:
        """Return the smallest of several numbers; NULL where one of them is."""
        return _unless_null(f"least({', '.join(expressions)})", expressions)

    def walked(self, column: str) -> str:
        """Return a column that no index is used for."""
        return column

    def rowid(self, table: str = "") -> str:
        """Return a session's number, which stays as long as the session is in the store."""
        return f"hashtextextended({table}.id, 0)" if table else "hashtextextended(id, 0)"

    def most_sessions(self) -> str:
        """Return a statement for a number that no less sessions have, without counting."""
        return "SELECT count(*) FROM chat_sessions"

    def has_columns(self, table: str, *columns: str) -> str:
        """Return a statement that finds the names of those columns that a table has."""
        listed = ", ".join(f"'{name}'" for name in columns)
        return (
            "SELECT a.attname FROM pg_catalog.pg_attribute a JOIN pg_catalog.pg_class c"
            f" ON c.oid = a.attrelid WHERE c.relname = '{table}' AND a.attnum > 0"
            f" AND NOT a.attisdropped AND a.attname IN ({listed})"
            " AND pg_catalog.pg_table_is_visible(c.oid)"
        )

    def required_columns(self, table: str) -> str:
        """Return a statement that finds the names of a table's columns that may not be NULL."""
        return (
            "SELECT a.attname FROM pg_catalog.pg_attribute a JOIN pg_catalog.pg_class c"
            f" ON c.oid = a.attrelid WHERE c.relname = '{table}' AND a.attnum > 0"
            " AND NOT a.attisdropped AND a.attnotnull AND pg_catalog.pg_table_is_visible(c.oid)"
        )

    def is_indexed(self, table: str, first: str, second: str) -> str:
        """Return a statement that finds a row if an index begins with two columns.

        Args:
            table: The table.
            first: The index's first column.
            second: Its second one.
        """
        return (
            "SELECT 1 FROM pg_catalog.pg_index i JOIN pg_catalog.pg_class c ON c.oid = i.indrelid"
            " JOIN pg_catalog.pg_attribute one ON one.attrelid = c.oid"
            f" AND one.attnum = i.indkey[0] AND one.attname = '{first}'"
            " JOIN pg_catalog.pg_attribute two ON two.attrelid = c.oid"
            f" AND two.attnum = i.indkey[1] AND two.attname = '{second}'"
            f" WHERE c.relname = '{table}' AND i.indpred IS NULL"
            " AND pg_catalog.pg_table_is_visible(c.oid)"
        )

    def _json(self, column: str) -> str:
        """Return a JSON column as PostgreSQL can read it; NULL where it is invalid."""
        text = f"CAST({column} AS text)"
        harmless = f"CAST(regexp_replace({text}, '{_UNREADABLE}', '\\\\ufffd', 'g') AS json)"
        readable = (
            f"CASE WHEN strpos({text}, '\\u') = 0 THEN CAST({column} AS json)"
            f" ELSE {harmless} END"
        )
        if self._is_text(column):
            return f"(CASE WHEN {self._valid(column)} THEN {readable} END)"
        return f"({readable})"

    def _kind(self, column: str, path: str) -> str:
        return f"json_typeof({self._json(column)} #> '{_path(path)}')"

    def _where_named(self, column: str, path: str, expression: str) -> str:
        """Return an expression that is only looked at where the last key is in the text."""
        key = path.rpartition(".")[2].partition("[")[0]
        return f"""CASE WHEN strpos(CAST({column} AS text), '"{key}"') > 0 THEN {expression} END"""

    def _is_text(self, column: str) -> bool:
        return column.rpartition(".")[2] in self._texts

    def _valid(self, column: str) -> str:
        return f"({column} IS JSON)" if self._tests_json else f"({column} ~ {_BEGINS})"


def _path(path: str) -> str:
    """Return a path as PostgreSQL's operators take it."""
    return "{" + path.replace("[", ".").replace("]", "").replace(".", ",") + "}"


def _whole(value: str) -> str:
    number = f"CAST(trunc(CAST({value} AS numeric)) AS bigint)"
    return f"CASE WHEN {value} ~ {_WHOLE} THEN {number} ELSE 0 END"


def _unless_null(found: str, expressions: tuple[str, ...]) -> str:
    # A sum also tells the type of a value that is bound.
    return f"CASE WHEN {' + '.join(expressions)} IS NULL THEN NULL ELSE {found} END"
