"""A receipt can only be written for a run that is running: its end writes a digest of all of them into the ledger (SPEC 3)."""

from typing import Any

from django.db import migrations
from django.db.backends.base.schema import BaseDatabaseSchemaEditor

SQLITE = """
CREATE TRIGGER memory_contextreceipt_running BEFORE INSERT ON memory_contextreceipt
WHEN NOT EXISTS (SELECT 1 FROM memory_run WHERE id = NEW.run_id AND status = 'running')
BEGIN SELECT RAISE(ABORT, 'the run of a receipt has to be running'); END
"""

# FOR SHARE: an end that is under way is waited for, and one that comes later waits for this receipt and counts it.
POSTGRESQL_FUNCTION = """
CREATE FUNCTION memory_contextreceipt_running() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  PERFORM 1 FROM memory_run WHERE id = NEW.run_id AND status = 'running' FOR SHARE;
  IF NOT FOUND THEN
    RAISE EXCEPTION 'the run of a receipt has to be running' USING ERRCODE = 'integrity_constraint_violation';
  END IF;
  RETURN NEW;
END $$
"""
POSTGRESQL = """
CREATE TRIGGER memory_contextreceipt_running BEFORE INSERT ON memory_contextreceipt
FOR EACH ROW EXECUTE FUNCTION memory_contextreceipt_running()
"""


def install(apps: Any, schema_editor: BaseDatabaseSchemaEditor) -> None:
    if schema_editor.connection.vendor == "postgresql":
        schema_editor.execute(POSTGRESQL_FUNCTION, params=None)
        schema_editor.execute(POSTGRESQL, params=None)
        return
    schema_editor.execute(SQLITE, params=None)


def remove(apps: Any, schema_editor: BaseDatabaseSchemaEditor) -> None:
    if schema_editor.connection.vendor == "postgresql":
        schema_editor.execute("DROP FUNCTION memory_contextreceipt_running() CASCADE", params=None)
        return
    schema_editor.execute("DROP TRIGGER memory_contextreceipt_running", params=None)


class Migration(migrations.Migration):
    dependencies = [("memory", "0006_waiting_indexes")]

    operations = [migrations.RunPython(install, remove, elidable=False)]
