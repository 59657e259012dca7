"""``PgTable``: the table of a view, its index, and how far it is, in SQL. Whoever calls is in a transaction."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from psycopg.sql import SQL, Composable, Composed, Identifier, Literal

from weirflow.errors import ConfigError, DataError, DependencyMissing, SinkConflict
from weirflow.failpoints import failpoint
from weirflow.types import VectorMetric
from weirflow.vector.choices import VectorIndex
from weirflow.vector.pgvector.binary_rows import END, HEAD, copy_bytes, has_binary
from weirflow.vector.pgvector.columns import column_type, copy_lines, require_identifier, text_values

if TYPE_CHECKING:
    from weirflow.vector.pgvector.connection import Connection
    from weirflow.vector.store import VectorChanges, VectorLayout

POSITIONS = "weirflow_vector_positions"
"""The table, beside those of views, that says of each whose it is and how far."""
_CREATION_LOCK = SQL("SELECT pg_advisory_xact_lock(7812361903)")
_STAGED = SQL("pg_temp.weirflow_changes")
_NEW, _CHANGED, _GONE = 0, 1, 2
_OPERATORS = {
    VectorMetric.COSINE: "vector_cosine_ops",
    VectorMetric.L2: "vector_l2_ops",
    VectorMetric.INNER: "vector_ip_ops",
}
_COPIED_VALUES = 2_000_000
"""So many cells are made ready at a time."""
_FEW = 1000
"""Above, PostgreSQL has to know how many they are to merge them well."""
_ANOTHER = "write to another table, or drop this one"
_RESYNC = "write to another table, or pass resync=True to replace its rows with the view's current ones"


class PgTable:
    """A table that holds rows of a layout.

    Args:
        schema: PostgreSQL's schema that it is in.
        name: its name there.
        layout: of its rows.
        dimension: of its vectors.
        extension: the schema that pgvector is in.
    """

    def __init__(self, schema: str, name: str, layout: VectorLayout, dimension: int, extension: str) -> None:
        self._schema = schema
        self._name = name
        self._layout = layout
        self._extension = extension
        self._table = Identifier(schema, name)
        self._positions = Identifier(schema, POSITIONS)
        self._columns = [Identifier(require_identifier(column, "a column")) for column in layout.schema.names]
        self._key = [Identifier(column) for column in layout.key]
        self._vector_type = f"vector({dimension})"
        self._types = {
            field.name: self._vector_type if field.name == layout.vector else column_type(field)
            for field in layout.schema
        }

        self._texts = {field.name for field in layout.schema if not has_binary(field.type)}

    # The table

    def prepare(self, connection: Connection) -> None:
        """Make what is missing; ``ConfigError`` if what is there cannot hold the rows."""
        connection.execute(_CREATION_LOCK)
        failpoint("vector.before_create")
        if not self._exists(connection, POSITIONS):
            connection.execute(
                SQL("CREATE TABLE {} (table_name text PRIMARY KEY, owner text NOT NULL, epoch bigint NOT NULL)").format(
                    self._positions
                )
            )
        if self._exists(connection, self._name):
            self._require_columns(connection)
            self._require_key(connection)
            return
        # Whatever was known of a table that somebody has dropped is over.
        connection.execute(SQL("DELETE FROM {} WHERE table_name = %s").format(self._positions), [self._name])
        columns = [SQL("{} {}").format(Identifier(name), self._type(name)) for name in self._types]
        connection.execute(
            SQL("CREATE TABLE {} ({}, PRIMARY KEY ({}))").format(
                self._table, SQL(", ").join(columns), SQL(", ").join(self._key)
            )
        )

    def _exists(self, connection: Connection, name: str) -> bool:
        found = connection.execute(
            "SELECT 1 FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace "
            "WHERE n.nspname = %s AND c.relname = %s",
            [self._schema, name],
        )
        return found.fetchone() is not None

    def _require_columns(self, connection: Connection) -> None:
        rows = connection.execute(
            "SELECT a.attname, format_type(a.atttypid, a.atttypmod) "
            "FROM pg_attribute a JOIN pg_class c ON c.oid = a.attrelid "
            "JOIN pg_namespace n ON n.oid = c.relnamespace WHERE n.nspname = %s AND c.relname = %s "
            "AND a.attnum > 0 AND NOT a.attisdropped AND a.attgenerated = ''",
            [self._schema, self._name],
        )
        # The type's schema is part of its name where it is not on the search path.
        found = {name: kind.rpartition(".")[2] for name, kind in rows.fetchall()}
        if found != self._types:
            raise ConfigError(
                f"The table {self._name} has the columns {_listed(found)}; the sink writes {_listed(self._types)}.",
                hint=_ANOTHER,
            )

    def _require_key(self, connection: Connection) -> None:
        """Rows are found by an index of the key, and by nothing less is an upsert one."""
        rows = connection.execute(
            "SELECT (SELECT array_agg(a.attname::text) FROM pg_attribute a "
            "WHERE a.attrelid = c.oid AND a.attnum = ANY (i.indkey[0:i.indnkeyatts - 1])) "
            "FROM pg_index i JOIN pg_class c ON c.oid = i.indrelid JOIN pg_namespace n ON n.oid = c.relnamespace "
            "WHERE n.nspname = %s AND c.relname = %s AND i.indisunique AND i.indpred IS NULL AND i.indexprs IS NULL "
            "AND i.indisvalid AND i.indimmediate",
            [self._schema, self._name],
        )
        if not any(sorted(columns or ()) == sorted(self._layout.key) for (columns,) in rows.fetchall()):
            key = ", ".join(self._layout.key)
            raise ConfigError(
                f"The table {self._name} has neither a primary key nor a unique constraint of the key: {key}.",
                hint=f"add one to the table; or {_ANOTHER}",
            )

    def _type(self, name: str) -> Composable:
        if name != self._layout.vector:
            return SQL(self._types[name])
        size = self._types[name].removeprefix("vector")
        return SQL("{}.vector{}").format(Identifier(self._extension), SQL(size))

    # Its index

    def index(
        self, connection: Connection, kind: VectorIndex, metric: VectorMetric, options: Mapping[str, int]
    ) -> None:
        """Build the index, unless it is there; ``ConfigError`` if it is there with other options."""
        if kind is VectorIndex.NONE:
            return
        operators = _OPERATORS[metric]
        rows = connection.execute(
            "SELECT x.relname, x.reloptions FROM pg_index i JOIN pg_class x ON x.oid = i.indexrelid "
            "JOIN pg_am m ON m.oid = x.relam JOIN pg_opclass o ON o.oid = i.indclass[0] "
            "JOIN pg_class c ON c.oid = i.indrelid JOIN pg_namespace n ON n.oid = c.relnamespace "
            "JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum = i.indkey[0] "
            "WHERE n.nspname = %s AND c.relname = %s AND a.attname = %s AND m.amname = %s AND o.opcname = %s "
            "AND i.indpred IS NULL",
            [self._schema, self._name, self._layout.vector, str(kind), operators],
        )
        wanted = {f"{name}={value}" for name, value in options.items()}
        for name, found in rows.fetchall():
            if wanted <= set(found or ()):
                return
            has, asked = ", ".join(found or ()) or "no options", ", ".join(sorted(wanted))
            raise ConfigError(
                f"The table {self._name} has the {kind} index {name} with {has}; you asked for {asked}.",
                hint="drop the index and it is built again, or ask for what is there",
            )
        failpoint("vector.before_index")
        given = SQL(", ").join(
            SQL("{} = {}").format(Identifier(name), Literal(value)) for name, value in options.items()
        )
        connection.execute(
            SQL("CREATE INDEX ON {} USING {} ({} {}){}").format(
                self._table,
                Identifier(str(kind)),
                Identifier(self._layout.vector),
                Identifier(self._extension, operators),
                SQL(" WITH ({})").format(given) if options else SQL(""),
            )
        )

    # How far it is

    def position(self, connection: Connection, owner: str, *, to_write: bool = False) -> int | None:
        """The epoch that the owner's rows are of; None if nobody has written. Who is to write holds up others."""
        row = connection.execute(
            SQL("SELECT owner, epoch FROM {} WHERE table_name = %s{}").format(
                self._positions, SQL(" FOR UPDATE") if to_write else SQL("")
            ),
            [self._name],
        ).fetchone()
        if row is not None:
            if row[0] != owner:
                raise SinkConflict(
                    f"The table {self._name} was written by another flow, or by another definition of the view.",
                    hint=_RESYNC,
                )
            epoch: int = row[1]
            return epoch
        if connection.execute(SQL("SELECT 1 FROM {} LIMIT 1").format(self._table)).fetchone() is not None:
            raise SinkConflict(f"The table {self._name} has rows that no sink has written.", hint=_RESYNC)
        return None

    def _record(self, connection: Connection, owner: str, epoch: int) -> None:
        connection.execute(
            SQL(
                "INSERT INTO {} VALUES (%s, %s, %s) "
                "ON CONFLICT (table_name) DO UPDATE SET owner = excluded.owner, epoch = excluded.epoch"
            ).format(self._positions),
            [self._name, owner, epoch],
        )

    # Its rows

    def apply(self, connection: Connection, owner: str, after: int, upto: int, changes: VectorChanges) -> None:
        """Bring the rows from one epoch to another, unless they are there."""
        reached = self.position(connection, owner, to_write=True)
        if reached == upto:  # it was committed, and nobody came to know
            return
        if reached != after:
            at = "nothing" if reached is None else f"the rows of epoch {reached}"
            raise SinkConflict(
                f"The table {self._name} holds {at}, and not those of epoch {after}: somebody else has written it.",
                hint=_RESYNC,
            )
        if changes.new.num_rows or changes.changed.num_rows or changes.gone.num_rows:
            self._stage(connection, changes)
            self._require_new(connection)
            self._merge(connection)
        self._record(connection, owner, upto)

    def fill(self, connection: Connection, owner: str, epoch: int, rows: pa.Table) -> None:
        """Hold these rows and no others."""
        self._record(connection, owner, epoch)
        connection.execute(SQL("DELETE FROM {}").format(self._table))
        failpoint("vector.before_copy")
        columns = SQL("{} ({})").format(self._table, SQL(", ").join(self._columns))
        self._copy(connection, columns, rows, binary=not self._texts)

    def _stage(self, connection: Connection, changes: VectorChanges) -> None:
        """Copy what changes into a table of this transaction; its columns have numbers for names.

        What has no binary form is a text there, which PostgreSQL reads when rows are merged.
        """
        types = [
            SQL("{} {}").format(_at(index), SQL("text") if field.name in self._texts else self._type(field.name))
            for index, field in enumerate(self._layout.schema)
        ]
        connection.execute(
            SQL("CREATE TEMPORARY TABLE weirflow_changes (change smallint, {}) ON COMMIT DROP").format(
                SQL(", ").join(types)
            )
        )
        failpoint("vector.before_copy")
        gone = changes.gone
        empty = [
            gone.column(field.name) if field.name in gone.column_names else pa.nulls(gone.num_rows, field.type)
            for field in self._layout.schema
        ]
        whole = pa.Table.from_arrays(empty, schema=self._layout.schema)
        for change, rows in ((_NEW, changes.new), (_CHANGED, changes.changed), (_GONE, whole)):
            kinds = pa.repeat(pa.scalar(change, pa.int16()), rows.num_rows)
            self._copy(connection, _STAGED, rows.add_column(0, "", kinds), binary=True)
        if changes.new.num_rows + changes.changed.num_rows + gone.num_rows > _FEW:
            connection.execute(SQL("ANALYZE {}").format(_STAGED))

    def _copy(self, connection: Connection, into: Composable, rows: pa.Table, *, binary: bool) -> None:
        """Copy rows; where that is binary, columns without such a form are copied as texts."""
        if rows.num_rows == 0:
            return
        width = max(1, rows.num_columns + int(self._vector_type[len("vector(") : -1]))
        size = max(1, _COPIED_VALUES // width)
        form = SQL(" (FORMAT BINARY)") if binary else SQL("")
        with connection.cursor().copy(SQL("COPY {} FROM STDIN{}").format(into, form)) as copy:
            copy.write(HEAD if binary else b"")
            for begin in range(0, rows.num_rows, size):
                columns = [_one_chunk(column) for column in rows.slice(begin, size).columns]
                if binary:
                    copy.write(copy_bytes([one if has_binary(one.type) else text_values(one) for one in columns]))
                else:
                    copy.write(copy_lines(columns))
            copy.write(END if binary else b"")

    def _require_new(self, connection: Connection) -> None:
        found = connection.execute(
            SQL("SELECT {} FROM {} t JOIN {} s ON {} WHERE s.change = {} LIMIT 1").format(
                SQL(", ").join(SQL("t.{}::text").format(name) for name in self._key),
                self._table,
                _STAGED,
                self._same_key("t", "s"),
                _NEW,
            )
        ).fetchone()
        if found is not None:
            key = dict(zip(self._layout.key, found, strict=True))
            raise DataError(
                f"The table {self._name} has a row for the key {key} already: the view has several rows for it, "
                "or somebody else has written it.",
                hint="use a key that identifies the view's rows; pass resync=True to write the table again",
            )

    def _merge(self, connection: Connection) -> None:
        connection.execute(
            SQL("DELETE FROM {} t USING {} s WHERE s.change = {} AND {}").format(
                self._table, _STAGED, _GONE, self._same_key("t", "s")
            )
        )
        others = [name for name in self._columns if name not in self._key]
        connection.execute(
            SQL("INSERT INTO {} ({}) SELECT {} FROM {} WHERE change <> {} ON CONFLICT ({}) DO UPDATE SET {}").format(
                self._table,
                SQL(", ").join(self._columns),
                SQL(", ").join(self._staged(name) for name in self._types),
                _STAGED,
                _GONE,
                SQL(", ").join(self._key),
                SQL(", ").join(SQL("{0} = excluded.{0}").format(name) for name in others),
            )
        )

    def _same_key(self, table: str, staged: str) -> Composed:
        return SQL(" AND ").join(
            SQL("{}.{} = {}").format(Identifier(table), Identifier(name), self._staged(name, staged))
            for name in self._layout.key
        )

    def _staged(self, name: str, table: str = "weirflow_changes") -> Composable:
        """A column's value in the table of changes."""
        value = SQL("{}.{}").format(Identifier(table), _at(self._layout.schema.names.index(name)))
        return SQL("{}::{}").format(value, self._type(name)) if name in self._texts else value


def find_extension(connection: Connection, shown: str) -> str:
    """The schema that pgvector is in; ``DependencyMissing`` with what to do if it is nowhere."""
    found = connection.execute(
        "SELECT n.nspname FROM pg_extension e JOIN pg_namespace n ON n.oid = e.extnamespace WHERE e.extname = 'vector'"
    ).fetchone()
    if found is not None:
        schema: str = found[0]
        return schema
    known = connection.execute("SELECT 1 FROM pg_available_extensions WHERE name = 'vector'").fetchone()
    if known is not None:
        raise DependencyMissing(
            f"The database at {shown} has not loaded the extension pgvector.", hint="CREATE EXTENSION vector"
        )
    raise DependencyMissing(
        f"The PostgreSQL server at {shown} has no extension pgvector.",
        hint="install pgvector on the server, then run CREATE EXTENSION vector in the database",
    )


def current_schema(connection: Connection, wanted: str | None) -> str:
    """The schema for tables whose schema is not named; ``ConfigError`` if the wanted one, or any, is missing."""
    if wanted is None:
        (found,) = connection.execute("SELECT current_schema()").fetchone() or (None,)
        if found is None:
            raise ConfigError("No schema of the connection's search_path exists.", hint="pass schema=")
        return str(found)
    if connection.execute("SELECT 1 FROM pg_namespace WHERE nspname = %s", [wanted]).fetchone() is None:
        raise ConfigError(f"The database has no schema {wanted!r}.", hint="create it, or leave schema= out")
    return wanted


def _at(index: int) -> Identifier:
    return Identifier(f"c{index}")


def _one_chunk(column: pa.ChunkedArray) -> Any:
    found = column.combine_chunks()
    return pa.concat_arrays(found.chunks) if isinstance(found, pa.ChunkedArray) else found


def _listed(types: Mapping[str, str]) -> str:
    return ", ".join(f"{name} {kind}" for name, kind in types.items())
