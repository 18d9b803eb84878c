"""Triggers that make the ledger, its snapshots and its receipts append-only (SPEC 3), on SQLite and PostgreSQL.

A later migration that rebuilds one of these tables on SQLite drops its triggers: it must install them again.
`tests/memory/test_schema.py` fails when one is missing.
"""

from typing import Any

from django.db import migrations
from django.db.backends.base.schema import BaseDatabaseSchemaEditor

TABLES = ("memory_ledgerevent", "memory_contextsnapshot", "memory_snapshotrow", "memory_contextreceipt")

SQLITE = """
CREATE TRIGGER {table}_no_{verb} BEFORE {verb} ON {table}
BEGIN SELECT RAISE(ABORT, '{table} is append-only'); END
"""

POSTGRESQL_FUNCTION = """
CREATE FUNCTION memory_append_only() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN RAISE EXCEPTION '% is append-only', TG_TABLE_NAME USING ERRCODE = 'restrict_violation'; END $$
"""
POSTGRESQL = """
CREATE TRIGGER {table}_append_only BEFORE UPDATE OR DELETE OR TRUNCATE ON {table}
FOR EACH STATEMENT EXECUTE FUNCTION memory_append_only()
"""


def install(apps: Any, schema_editor: BaseDatabaseSchemaEditor) -> None:
    if schema_editor.connection.vendor == "postgresql":
        schema_editor.execute(POSTGRESQL_FUNCTION, params=None)
        for table in TABLES:
            schema_editor.execute(POSTGRESQL.format(table=table), params=None)
        return
    for table in TABLES:
        for verb in ("update", "delete"):
            schema_editor.execute(SQLITE.format(table=table, verb=verb), params=None)


def remove(apps: Any, schema_editor: BaseDatabaseSchemaEditor) -> None:
    if schema_editor.connection.vendor == "postgresql":
        schema_editor.execute("DROP FUNCTION memory_append_only() CASCADE", params=None)
        return
    for table in TABLES:
        for verb in ("update", "delete"):
            schema_editor.execute(f"DROP TRIGGER {table}_no_{verb}", params=None)


class Migration(migrations.Migration):
    dependencies = [("memory", "0001_initial")]

    operations = [migrations.RunPython(install, remove, elidable=False)]
