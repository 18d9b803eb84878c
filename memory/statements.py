"""SQL that the ORM builds once and the database plans once (SPEC 11).

Building a large query costs the ORM more than the database needs to run it, and PostgreSQL plans it anew each time. A
`Statement` is built once per process from querysets over stand-ins for the values that differ. All other values are written into
its text: both engines can then see which index fits, and only the few values travel. On PostgreSQL psycopg prepares it when the
settings allow that (`DATABASE_PREPARED_STATEMENTS`). What the rows mean is nobody's business here.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from itertools import chain
from types import SimpleNamespace
from typing import Any, NamedTuple

from django.db import connections
from django.db.models import Model, QuerySet


class Statement(NamedTuple):
    """`params` are stand-ins, in the order in which `sql` has places for them."""

    alias: str
    sql: str
    params: tuple[Any, ...]


def union_all(alias: str, standins: Sequence[Any], *parts: QuerySet[Any, Any]) -> Statement:
    """One statement of several querysets with the same columns; a sliced one keeps its order and its limit."""
    pieces: list[str] = []
    params: list[Any] = []
    for part in parts:
        sql, given = part.query.get_compiler(using=alias).as_sql()
        pieces.append(_one_level_down(sql) if part.query.is_sliced else sql)
        params += given
    return _bound(alias, standins, " UNION ALL ".join(pieces), params)


def _one_level_down(sql: str) -> str:
    """Neither engine takes a limit inside a compound statement, both take it in here."""
    return f"SELECT * FROM ({sql}) AS newest"  # noqa: S608 - text of the ORM, which holds no value of anybody's


def _bound(alias: str, standins: Sequence[Any], sql: str, params: list[Any]) -> Statement:
    """The constants written into the text, and places for the stand-ins alone."""
    connection = connections[alias]
    quote = connection.SchemaEditorClass(connection).quote_value
    numbered = connection.vendor == "postgresql"
    places = {value: f"${number}" if numbered else "%s" for number, value in enumerate(standins, start=1)}
    texts = [places.get(value) or str(quote(value)).replace("%", "%%") for value in params]
    text = "".join(chain.from_iterable(zip(sql.split("%s"), [*texts, ""], strict=True)))
    if numbered:
        return Statement(alias, text.replace("%%", "%"), tuple(standins))
    return Statement(alias, text, tuple(value for value in params if value in places))


def prepared_key(alias: str, model: type[Model], key: Any) -> Any:
    """A primary key as the database of `alias` takes it, for a stand-in or in place of one."""
    return model._meta.pk.get_db_prep_value(key, connections[alias])


def run(statement: Statement, values: Mapping[Any, Any]) -> list[tuple[Any, ...]]:
    """All rows of the statement with `values` in the places of their stand-ins."""
    connection = connections[statement.alias]
    params = [values[standin] for standin in statement.params]
    with connection.cursor() as cursor:
        if connection.vendor == "postgresql":
            # As text without a type, so that one plan serves small and large numbers.
            cursor.cursor = _prepared_cursor()(connection.connection, [str(value) for value in params])
            cursor.execute(statement.sql)
        else:
            cursor.execute(statement.sql, params)
        rows: list[tuple[Any, ...]] = cursor.fetchall()
        return rows


@cache
def _prepared_cursor() -> Any:
    """A cursor that binds in the server and prepares what it executes, unless its connection forbids that.

    Django's own bind in the client. Its wrapper stays around this one, so that the statement is counted and shown like any other.
    psycopg is there only with PostgreSQL.
    """
    from psycopg import RawCursor

    class Prepared(RawCursor[Any]):
        def __init__(self, connection: Any, values: Sequence[str]) -> None:
            super().__init__(connection)
            self.values = values

        def execute(self, query: str, *_: Any, **options: Any) -> Any:  # type: ignore[override]
            answer = super().execute(query, self.values, prepare=True, **options)
            # Where Django looks for what was executed when it keeps the statements.
            self._query = SimpleNamespace(query=query.encode())  # type: ignore[assignment]
            return answer

    return Prepared
