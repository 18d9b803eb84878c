"""Triggers that refuse SQLite's REPLACE on the append-only tables (SPEC 3).

`INSERT OR REPLACE` deletes the row in its way without firing a delete trigger, unless the connection asked for recursive
triggers; so what would be in the way is looked for before the insert. PostgreSQL's ON CONFLICT updates, which is refused already.
"""

from typing import Any

from django.db import migrations
from django.db.backends.base.schema import BaseDatabaseSchemaEditor

KEYS: dict[str, tuple[tuple[str, ...], ...]] = {
    "memory_ledgerevent": (("rowid",), ("hash",), ("project_id", "number")),
    "memory_contextsnapshot": (("rowid",), ("project_id", "sha256", "rows_sha256")),
    "memory_snapshotrow": (("rowid",),),
    "memory_contextreceipt": (("rowid",),),
}
"""By what one row of a table can stand in another's way."""

STANDS = "EXISTS (SELECT 1 FROM {table} WHERE {same})"

SQLITE = """
CREATE TRIGGER {table}_no_replace BEFORE INSERT ON {table} WHEN {in_the_way}
BEGIN SELECT RAISE(ABORT, '{table} is append-only'); END
"""


def in_the_way(table: str, keys: tuple[tuple[str, ...], ...]) -> str:
    same = (" AND ".join(f"{column} = NEW.{column}" for column in key) for key in keys)
    return " OR ".join(STANDS.format(table=table, same=condition) for condition in same)


def install(apps: Any, schema_editor: BaseDatabaseSchemaEditor) -> None:
    if schema_editor.connection.vendor != "sqlite":
        return
    for table, keys in KEYS.items():
        schema_editor.execute(SQLITE.format(table=table, in_the_way=in_the_way(table, keys)), params=None)


def remove(apps: Any, schema_editor: BaseDatabaseSchemaEditor) -> None:
    if schema_editor.connection.vendor != "sqlite":
        return
    for table in KEYS:
        schema_editor.execute(f"DROP TRIGGER {table}_no_replace", params=None)


class Migration(migrations.Migration):
    dependencies = [("memory", "0004_compiled_indexes")]

    operations = [migrations.RunPython(install, remove, elidable=False)]
