"""Statements that every click runs: written for SQLAlchemy, compiled once, run on the driver's own cursor.

A click with an effect runs some thirty statements in four transactions. ``Connection.execute`` does 50 to 80 µs of
work around each, the driver 5 to 10 µs (``python -m benchmarks clicks-sync`` shows the sum), and an agent waits for
every one. What SQLAlchemy decides is kept: the SQL of each database, the types' conversions both ways, and the errors'
classes. What it does anew at each execution is left out. Everything that is not on a click's way uses ``execute``.
"""

from __future__ import annotations

from collections import namedtuple
from typing import TYPE_CHECKING, Any

from sqlalchemy import Select
from sqlalchemy.exc import DBAPIError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from sqlalchemy import BindParameter, Connection
    from sqlalchemy.engine.interfaces import Dialect
    from sqlalchemy.sql.dml import UpdateBase
    from sqlalchemy.types import TypeEngine

    from browsermw.ledger.schema import AnyRow

    Convert = Callable[[Any], Any]


class Prepared:
    """A statement that is compiled at its first use on each database, and once for each set of parameters' names.

    Args:
        statement: A ``select``, or an ``insert`` or ``update`` whose columns follow from the parameters' names. Its
            ``IN`` lists must be written out with ``or_``.
    """

    def __init__(self, statement: Select[Any] | UpdateBase) -> None:
        self._statement = statement
        self._compiled: dict[tuple[str, ...], _Compiled] = {}

    def all(self, conn: Connection, marks: Mapping[str, object]) -> list[AnyRow]:
        """The rows that a ``select`` finds."""
        compiled = self._for(conn, marks)
        found = compiled.execute(conn, marks).fetchall()
        return [compiled.row_of(values) for values in found]

    def first(self, conn: Connection, marks: Mapping[str, object]) -> AnyRow | None:
        """The first row that a ``select`` finds."""
        compiled = self._for(conn, marks)
        found = compiled.execute(conn, marks).fetchall()  # all: a cursor that is not read to its end stays open
        return compiled.row_of(found[0]) if found else None

    def run(self, conn: Connection, marks: Mapping[str, object]) -> int:
        """Insert or update; how many rows."""
        return int(self._for(conn, marks).execute(conn, marks).rowcount)

    def _for(self, conn: Connection, marks: Mapping[str, object]) -> _Compiled:
        key = (conn.dialect.name, *marks)
        found = self._compiled.get(key)
        if found is None:
            found = self._compiled[key] = _Compiled(self._statement, conn.dialect, list(marks))
        return found


class _Compiled:
    """One statement on one database."""

    def __init__(self, statement: Select[Any] | UpdateBase, dialect: Dialect, names: list[str]) -> None:
        selects = isinstance(statement, Select)
        compiled = statement.compile(dialect=dialect, column_keys=None if selects else names)
        self._sql = str(compiled)
        self._dialect = dialect
        binds: Mapping[str, BindParameter[Any]] = compiled.binds
        order: Iterable[str] | None = compiled.positiontup
        self._by_position = order is not None
        self._marks = [(name, *_mark(binds[name], dialect)) for name in order or binds]
        columns: Sequence[Any] = list(statement.selected_columns) if isinstance(statement, Select) else []
        self._row = _row_type(tuple(column.key for column in columns))
        found = ((at, _reads(column.type, dialect)) for at, column in enumerate(columns))
        self._conversions = [(at, convert) for at, convert in found if convert is not None]

    def execute(self, conn: Connection, marks: Mapping[str, object]) -> Any:
        """Run it; the driver's cursor.

        Raises:
            SQLAlchemyError: As ``Connection.execute`` would.
        """
        given = [
            (name, constant if name not in marks else marks[name] if convert is None else convert(marks[name]))
            for name, convert, constant in self._marks
        ]
        cursor = conn.connection.cursor()
        try:
            cursor.execute(self._sql, [value for _, value in given] if self._by_position else dict(given))
        except self._dialect.loaded_dbapi.Error as error:
            base = self._dialect.loaded_dbapi.Error
            raise DBAPIError.instance(
                self._sql, None, error, base, hide_parameters=True, dialect=self._dialect
            ) from error
        return cursor

    def row_of(self, values: Sequence[Any]) -> AnyRow:
        """A row of the driver's, converted."""
        if not self._conversions:
            return self._row(*values)
        converted = list(values)
        for at, convert in self._conversions:
            converted[at] = convert(converted[at])
        return self._row(*converted)


def _mark(bind: BindParameter[Any], dialect: Dialect) -> tuple[Convert | None, Any]:
    """How a parameter is converted, and the value of one that stands in the statement itself."""
    convert = bind.type.dialect_impl(dialect).bind_processor(dialect)
    constant = None if bind.required else bind.effective_value
    return convert, constant if convert is None or bind.required else convert(constant)


def _reads(of_type: TypeEngine[Any], dialect: Dialect) -> Convert | None:
    return of_type.dialect_impl(dialect).result_processor(dialect, None)


def _row_type(names: tuple[str, ...]) -> Callable[..., AnyRow]:
    """Rows with SQLAlchemy's two ways to a column: by attribute, and by name in ``_mapping``."""
    row: Any = type("Row", (namedtuple("Plain", list(names)),), {"_mapping": property(lambda it: it._asdict())})  # noqa: PYI024
    return row  # type: ignore[no-any-return]
