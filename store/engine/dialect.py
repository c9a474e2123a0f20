"""What SQLite and PostgreSQL say in different words.

Statements are written once, for both. Where the engines differ, a statement takes the words
from the dialect of its store, ``db.sql``. This is SQLite's; ``store.engine.server.dialect``
has PostgreSQL's, with the same methods.
"""

from __future__ import annotations


def quoted(name: str) -> str:
    """Return a name as a quoted identifier of SQL, of either engine."""
    return '"' + name.replace('"', '""') + '"'


def quoted_text(text: str) -> str:
    """Return a text as a constant of SQL, of either engine."""
    return "'" + text.replace("'", "''") + "'"


class Dialect:
    """SQL of SQLite.

    Attributes:
        name: ``sqlite`` or ``postgresql``.
        same: Operator that compares values and NULL: ``a IS b``.
        other: Its opposite.
        then_join: Join whose second table is looked up for each row of the first one.
        random_tail: Expression for 14 random hexadecimal digits, other ones in each row.
        row_order: What a table's rows are ordered by as they were written.
        begin_unmoving: Statement that begins a transaction whose reads all see the same.
        data_version: Statement for a number that differs after every foreign commit.
        partitions: Whether tables may be partitioned by session.
        rewritten: JSON columns whose text is not the one that was written, but the engine's.
    """

    name = "sqlite"
    same = "IS"
    other = "IS NOT"
    then_join = "CROSS JOIN"
    random_tail = "hex(randomblob(7))"
    row_order = "rowid"
    begin_unmoving = "BEGIN"
    data_version = "PRAGMA data_version"
    partitions = False
    rewritten: frozenset[str] = frozenset()

    def found(self, table: str, name: str, condition: str) -> str:
        """Return a join with the few rows of a table that are looked up for each row before it.

        Args:
            table: The table.
            name: What the condition calls it.
            condition: About its rows, by an index.
        """
        return f" JOIN {table} {name} ON {condition}"

    def usual(self, condition: str) -> str:
        """Return a condition that many rows meet, so that an index is walked until one is found.

        Args:
            condition: The condition, never NULL.
        """
        return condition

    # JSON in columns. A column is named with its table: ``s.metadata_json``.

    def fact(self, column: str, path: str) -> str:
        """Return an expression for a text in a JSON column; NULL when unset or invalid.

        Other values come as SQLite has them here, and as their JSON text on a server.

        Args:
            column: The column.
            path: Keys joined by dots, such as ``user.title`` or ``source.answer[0]``.
        """
        return f"CASE WHEN json_valid({column}) THEN json_extract({column}, '{_path(path)}') END"

    def rare_fact(self, column: str, path: str) -> str:
        """Return the same as ``fact``, for a key that few rows have.

        Args:
            column: The column.
            path: As in ``fact``.
        """
        return self.fact(column, path)

    def first_fact(self, column: str, *paths: str) -> str:
        """Return an expression for the first of several texts that is set.

        Args:
            column: The column.
            paths: As in ``fact``.
        """
        found = ", ".join(f"json_extract({column}, '{_path(path)}')" for path in paths)
        return f"CASE WHEN json_valid({column}) THEN coalesce({found}) END"

    def number(self, column: str, path: str) -> str:
        """Return an expression for a whole number in a JSON column; NULL when unset.

        What is set and no number is not NULL; ``store.engine.values.number`` makes it 0.

        Args:
            column: The column.
            path: As in ``fact``.
        """
        return self.fact(column, path)

    def true_number(self, column: str, path: str) -> str:
        """Return an expression for a number in a JSON column; NULL for all else.

        Args:
            column: The column.
            path: As in ``fact``.
        """
        kind = f"json_type({column}, '{_path(path)}')"
        found = f"json_extract({column}, '{_path(path)}')"
        return f"CASE WHEN json_valid({column}) AND {kind} IN ('integer', 'real') THEN {found} END"

    def amount(self, column: str, path: str) -> str:
        """Return an expression for a number with a fraction in a JSON column; NULL for all else.

        Args:
            column: The column.
            path: As in ``fact``.
        """
        return self.true_number(column, path)

    def first_number(self, column: str, *paths: str) -> str:
        """Return an expression for the first of several whole numbers in a JSON column, or 0.

        Args:
            column: The column.
            paths: As in ``fact``.
        """
        choices = " ".join(
            f"WHEN json_type({column}, '{_path(path)}') IN ('integer', 'real')"
            f" THEN CAST(json_extract({column}, '{_path(path)}') AS INTEGER)"
            for path in paths
        )
        return f"CASE WHEN NOT json_valid({column}) THEN 0 {choices} ELSE 0 END"

    def is_number(self, column: str, path: str) -> str:
        """Return the condition that a value in a JSON column is a number; never NULL.

        Args:
            column: The column.
            path: As in ``fact``.
        """
        return f"coalesce(typeof({self.fact(column, path)}) IN ('integer', 'real'), 0)"

    def is_set(self, column: str, path: str) -> str:
        """Return the condition that a JSON column has a value that is not null; never NULL.

        Args:
            column: The column.
            path: As in ``fact``.
        """
        return f"({self.fact(column, path)} IS NOT NULL)"

    def is_there(self, column: str, path: str) -> str:
        """Return the condition that a JSON column has a value, even null; never NULL.

        Args:
            column: The column.
            path: As in ``fact``.
        """
        kind = f"json_type({column}, '{_path(path)}')"
        return f"(CASE WHEN json_valid({column}) THEN {kind} END IS NOT NULL)"

    def is_true(self, column: str, path: str) -> str:
        """Return the condition that a value in a JSON column is true, or 1; never NULL.

        Args:
            column: The column.
            path: As in ``fact``.
        """
        return self.first_is_true(column, path)

    def first_is_true(self, column: str, *paths: str) -> str:
        """Return the condition that the first of several values that is set is true; never NULL.

        Args:
            column: The column.
            paths: As in ``fact``.
        """
        return f"(coalesce({', '.join(self.fact(column, path) for path in paths)}, 0) = 1)"

    def is_text(self, column: str, path: str) -> str:
        """Return the condition that a value in a JSON column is a text; never NULL.

        Args:
            column: The column.
            path: As in ``fact``.
        """
        return (
            f"coalesce(CASE WHEN json_valid({column})"
            f" THEN json_type({column}, '{_path(path)}') = 'text' END, FALSE)"
        )

    def json_at(self, column: str, path: str) -> str:
        """Return an expression for the JSON text of a value in a JSON column.

        Args:
            column: The column.
            path: As in ``fact``.
        """
        return f"CASE WHEN json_valid({column}) THEN {column} -> '{_path(path)}' END"

    def items(self, column: str, path: str, name: str) -> str:
        """Return a table of the values of an object or array in a JSON column.

        Args:
            column: The column; its JSON must be valid, see ``is_json``.
            path: As in ``fact``.
            name: Of the table; its column is ``value``.
        """
        return f"json_each({column}, '{_path(path)}') {name}"

    def is_json(self, column: str) -> str:
        """Return the condition that the text of a JSON column is valid."""
        return f"json_valid({column})"

    def with_text(self, column: str, key: str, value: str) -> str:
        """Return a JSON column with a text set at a key of its object; as it is if invalid.

        Args:
            column: The column.
            key: The key.
            value: An expression for the text.
        """
        changed = f"json_set({column}, '$.{key}', {value})"
        return f"CASE WHEN json_valid({column}) THEN {changed} ELSE {column} END"

    def as_json(self, expression: str) -> str:
        """Return a text as the value of a JSON column."""
        return expression

    # Values that are bound.

    def texts(self, place: str, name: str) -> str:
        """Return a table of the texts of a JSON array that is bound at a place.

        Args:
            place: ``?`` or ``$1``; ``store.text.stored_json.array_of`` makes the array.
            name: Of the table; its columns are ``value`` and, for the order, ``key``.
        """
        return f"json_each({place}) {name}"

    def numbers(self, place: str, name: str) -> str:
        """Return a table of the whole numbers of a JSON array that is bound at a place.

        Args:
            place: As in ``texts``.
            name: Of the table; its column is ``value``.
        """
        return f"json_each({place}) {name}"

    def is_among(self, column: str, place: str) -> str:
        """Return a condition for a column with one of some whole numbers, by an index of it.

        Args:
            column: The column.
            place: As in ``texts``.
        """
        return f"{column} IN (SELECT j.value FROM {self.numbers(place, 'j')})"

    def as_id(self, place: str) -> str:
        """Return a value that is bound as an id, where no column says what it is."""
        return place

    def as_fact(self, column: str) -> str:
        """Return an id as it is compared with facts of JSON columns, by their indexes."""
        # With the affinity of its column, all entries of an index of an expression are read.
        return f"+{column}"

    def limit(self, count: int) -> int | None:
        """Return what is bound after ``LIMIT``; a negative count is all rows."""
        return count

    # Texts and numbers.

    def bytes_of(self, column: str) -> str:
        """Return an expression for the number of bytes of a text; NULL where it is."""
        return f"length(CAST({column} AS BLOB))"

    def text(self, column: str) -> str:
        """Return a JSON column as a text."""
        return column

    def contains(self, column: str, words: str) -> str:
        """Return the condition that a column contains a text, letter by letter.

        Args:
            column: The column, JSON ones too.
            words: A literal or place.
        """
        return f"instr({column}, {words}) > 0"

    def like(self, expression: str, pattern: str) -> str:
        r"""Return the condition of ``LIKE`` without regard to the case of ASCII letters.

        Args:
            expression: A text.
            pattern: A literal or place; ``\\`` takes the meaning from ``%`` and ``_``.
        """
        return f"{expression} LIKE {pattern} ESCAPE '\\'"

    def folded(self, expression: str) -> str:
        """Return a text as it is compared without regard to case, in any script."""
        return f"casefold({expression})"

    def plain_number(self, column: str) -> str:
        """Return a number column, 0 where it holds no number."""
        return f"CASE WHEN typeof({column}) IN ('integer', 'real') THEN {column} ELSE 0 END"

    def greatest(self, *expressions: str) -> str:
        """Return the greatest of several numbers; NULL where one of them is."""
        return f"max({', '.join(expressions)})"

    def least(self, *expressions: str) -> str:
        """Return the smallest of several numbers; NULL where one of them is."""
        return f"min({', '.join(expressions)})"

    def walked(self, column: str) -> str:
        """Return a column that no index is used for."""
        return f"+{column}"

    def hex12(self, number: str) -> str:
        """Return a number's lowest 48 bits as 12 hexadecimal digits."""
        return f"printf('%012x', {number} & 0xffffffffffff)"

    # Rows.

    def rowid(self, table: str = "") -> str:
        """Return a session's number, which stays as long as the session is in the store.

        Args:
            table: What the statement calls the table of sessions; empty where it is alone.
        """
        return f"{table}.rowid" if table else "rowid"

    def most_sessions(self) -> str:
        """Return a statement for a number that no less sessions have, without counting."""
        return "SELECT max(rowid) FROM chat_sessions"

    def has_columns(self, table: str, *columns: str) -> str:
        """Return a statement that finds the names of those columns that a table has.

        Args:
            table: The table.
            columns: Their names.
        """
        listed = ", ".join(f"'{name}'" for name in columns)
        return f"SELECT name FROM pragma_table_info('{table}') WHERE name IN ({listed})"

    def required_columns(self, table: str) -> str:
        """Return a statement that finds the names of a table's columns that may not be NULL."""
        return f"SELECT name FROM pragma_table_info('{table}') WHERE \"notnull\""

    def is_indexed(self, table: str, first: str, second: str) -> str:
        """Return a statement that finds a row if an index begins with two columns.

        Args:
            table: The table.
            first: The index's first column.
            second: Its second one.
        """
        return (
            f"SELECT 1 FROM pragma_index_list('{table}') AS list"
            f" JOIN pragma_index_info(list.name) AS one ON one.seqno = 0 AND one.name = '{first}'"
            f" JOIN pragma_index_info(list.name) AS two ON two.seqno = 1 AND two.name = '{second}'"
            " WHERE list.partial = 0"
        )


def _path(path: str) -> str:
    """Return a path as SQLite's JSON functions take it."""
    return f"$.{path}"


SQLITE = Dialect()
