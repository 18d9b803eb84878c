"""Rows exactly as the database holds them, for proving that nobody touched them (SPEC 3, LedgerEvent).

Reading through a model forgives: SQLite's `2026-12-01T09:00:00` and `2026-12-01 09:00:00` are one time, `,a,,b,` and `,a,b,` one
list of tags. Here the stored bytes are what is compared: a value must be the very value the product would have written.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Any, cast

from django.db import connection, models, transaction

from memory.ledger.changes import as_json, recorded_fields
from memory.models import LedgerEvent, Project
from memory.models.event import digest

_CHUNK = 500
_EVENT_TEXTS = (
    "hash",
    "action",
    "actor",
    "target",
    "before",
    "after",
    "state",
    "reason",
    "prev_hash",
)


class Unreadable(Exception):
    """A stored value that the product cannot have written; the message names the column."""


def on_sqlite() -> bool:
    return connection.vendor == "sqlite"


@contextmanager
def one_moment(project: Project) -> Iterator[Project]:
    """A read transaction that sees one moment of the database and keeps no writer waiting; the project as of that moment.

    PostgreSQL: a REPEATABLE READ snapshot. SQLite: a deferred transaction, which in WAL mode reads beside a writer. Inside a
    transaction of the caller neither can be had: then the project is locked and writers wait.
    """
    if connection.in_atomic_block:
        with transaction.atomic(), _undecoded():
            yield Project.objects.select_for_update(no_key=True).get(pk=project.pk)
        return
    with _deferred(), transaction.atomic(), _undecoded():
        if not on_sqlite():
            with connection.cursor() as cursor:
                cursor.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY")
        yield Project.objects.get(pk=project.pk)


@contextmanager
def _deferred() -> Iterator[None]:
    """Let the next transaction on SQLite begin without the write lock that every other one takes at once."""
    if not on_sqlite():
        yield
        return
    connection.ensure_connection()
    backend = cast(Any, connection)
    mode, backend.transaction_mode = backend.transaction_mode, "DEFERRED"
    try:
        yield
    finally:
        backend.transaction_mode = mode


@contextmanager
def _undecoded() -> Iterator[None]:
    """Read text that is not UTF-8 instead of failing on it; the stray bytes become lone surrogates, which fit no digest."""
    if not on_sqlite():
        yield
        return
    connection.ensure_connection()
    raw = connection.connection
    before, raw.text_factory = raw.text_factory, lambda data: data.decode("utf-8", "surrogateescape")
    try:
        yield
    finally:
        raw.text_factory = before


def _select(
    model: type[models.Model], columns: list[str], where: str, order: str, *params: Any
) -> Iterator[Any]:
    table = connection.ops.quote_name(model._meta.db_table)
    # Table and columns are the model's own, never input.
    sql = f"SELECT {', '.join(columns)} FROM {table} WHERE {where} = %s ORDER BY {order}"  # noqa: S608
    with connection.chunked_cursor() as cursor:
        cursor.execute(sql, params)
        while rows := cursor.fetchmany(_CHUNK):
            yield from rows


def _plain(column: str) -> str:
    """A column without SQLite's parsing by declared type: an expression has none."""
    name = connection.ops.quote_name(column)
    return f"+{name}" if on_sqlite() else name


# Events


def events(project: Project, after: int = 0) -> Iterator[tuple[int, str, LedgerEvent | Unreadable]]:
    """The project's events past a number, in order: (number, target, the event, or what is unreadable about it)."""
    time = (
        _plain("at") if on_sqlite() else """to_char("at" AT TIME ZONE 'UTC', 'YYYY-MM-DD HH24:MI:SS.US BC')"""
    )
    columns = [_plain("number"), time, *(_plain(name) for name in _EVENT_TEXTS)]
    # All of them when none is left out: a number that no event can have must not hide one.
    where, params = ("number > %s AND project_id", [after]) if after else ("project_id", [])
    for number, at, *texts in _select(LedgerEvent, columns, where, "number, hash", *params, _key(project)):
        named = dict(zip(_EVENT_TEXTS, texts, strict=True))
        yield number, named["target"], _event(project, number, at, named)


def _key(project: Project) -> Any:
    return Project._meta.pk.get_db_prep_value(project.pk, connection)


def _event(project: Project, number: Any, at: Any, texts: dict[str, Any]) -> LedgerEvent | Unreadable:
    for column, value in {"at": at, **texts}.items():
        if not isinstance(value, str):
            return Unreadable(f"its column {column} is not text")
    if not isinstance(number, int):
        return Unreadable("its number is not a number")
    time = _time(at)
    if time is None:
        return Unreadable("its time was changed")
    return LedgerEvent(project_id=project.pk, number=number, at=time, **texts)


def _time(stored: str) -> datetime | None:
    """The time of an event, or None when it is not written as the product writes times on this engine."""
    text = stored if on_sqlite() else stored.removesuffix(" AD")
    try:
        time = datetime.fromisoformat(text)
    except ValueError:
        return None
    written = str(time) if on_sqlite() else f"{time.isoformat(' ', timespec='microseconds')} AD"
    return time.replace(tzinfo=UTC) if time.tzinfo is None and written == stored else None


# Rows


def row_digests(model: type[models.Model], project: Project) -> Iterator[tuple[Any, str | Unreadable]]:
    """Every row of one table in the project: its primary key, and the digest of its recorded columns or what is unreadable."""
    key = model._meta.pk
    assert key is not None  # noqa: S101 - every model has one
    fields = [key, *recorded_fields(model)]
    columns = [_plain(field.column) for field in fields]
    where = key.column if model is Project else "project_id"
    for row in _select(model, columns, where, connection.ops.quote_name(key.column), _key(project)):
        yield _digest(fields, row)


def _digest(fields: list[Any], row: tuple[Any, ...]) -> tuple[Any, str | Unreadable]:
    values: dict[str, Any] = {}
    try:
        for field, stored in zip(fields, row, strict=True):
            values[field.attname] = _value(field, stored)
    except Unreadable as problem:
        return values.get(fields[0].attname, row[0]), problem
    key = values.pop(fields[0].attname)
    return key, digest({name: as_json(value) for name, value in values.items()})


def _value(field: Any, stored: Any) -> Any:
    """The field's value, as the model would read it. Raises Unreadable when the product would have stored it otherwise."""
    column = field.get_col(field.model._meta.db_table)
    value = stored
    try:
        for convert in (*connection.ops.get_db_converters(column), *column.get_db_converters(connection)):
            value = convert(value, column, connection)
        written = field.get_db_prep_save(value, connection)
        if on_sqlite() and isinstance(written, bool):
            # What Python's driver makes of it on the way: SQLite has no booleans.
            written = int(written)
    except (ValueError, TypeError, AttributeError) as problem:
        raise Unreadable(f"its column {field.column} cannot be read") from problem
    if _comparable(field, stored) and (type(written), written) != (type(stored), stored):
        raise Unreadable(f"its column {field.column} is not stored as the product writes it")
    return value


def _comparable(field: Any, stored: Any) -> bool:
    """SQLite keeps what it is given; PostgreSQL types its columns, so only plain text can hide a difference."""
    return on_sqlite() or (isinstance(stored, str) and not isinstance(field, models.JSONField))
