"""Text search by trigrams on PostgreSQL, where its extension pg_trgm can be had (SPEC 9 and 11).

`icontains` asks for UPPER(column) LIKE UPPER(…), so that is what the indexes hold. Without the extension, or without the right to make it, the
same searches read every row; docs/operations.md says how to add it later.
"""

from typing import Any

from django.db import DatabaseError, migrations, transaction
from django.db.backends.base.schema import BaseDatabaseSchemaEditor

COLUMNS = {
    "memory_agentmemory": ("content",),
    "memory_decision": ("title", "content", "rationale"),
    "memory_decisioninboxentry": ("title", "content", "slug"),
}


def install(apps: Any, schema_editor: BaseDatabaseSchemaEditor) -> None:
    if schema_editor.connection.vendor != "postgresql" or not _has_trigrams(schema_editor):
        return
    for table, columns in COLUMNS.items():
        held = ", ".join(f"UPPER({column}) gin_trgm_ops" for column in columns)
        schema_editor.execute(
            f"CREATE INDEX IF NOT EXISTS {table}_trigrams ON {table} USING gin ({held})", params=None
        )


def _has_trigrams(schema_editor: BaseDatabaseSchemaEditor) -> bool:
    try:
        with transaction.atomic(using=schema_editor.connection.alias):
            schema_editor.execute("CREATE EXTENSION IF NOT EXISTS pg_trgm", params=None)
    except DatabaseError:
        # Not installed on the server, or not ours to make: searching without it is slower and finds the same.
        return False
    return True


def remove(apps: Any, schema_editor: BaseDatabaseSchemaEditor) -> None:
    if schema_editor.connection.vendor == "postgresql":
        for table in COLUMNS:
            schema_editor.execute(f"DROP INDEX IF EXISTS {table}_trigrams", params=None)


class Migration(migrations.Migration):
    dependencies = [("memory", "0007_receipts_of_running_runs")]

    operations = [migrations.RunPython(install, remove, elidable=False)]
