"""Triggers that keep every reference inside one project (SPEC 3: all rows belong to one project).

A check constraint cannot look at another row and Django has no composite foreign keys, so the database checks it this way:
a row of one project can never name an agent, run, session, decision, memory or snapshot of another.
"""

from typing import Any

from django.db import migrations
from django.db.backends.base.schema import BaseDatabaseSchemaEditor

REFERENCES = {
    "memory_run": {"agent_id": "memory_agent", "parent_id": "memory_run"},
    "memory_sessioncontext": {"source_run_id": "memory_run"},
    "memory_agentmemory": {
        "agent_id": "memory_agent",
        "source_run_id": "memory_run",
        "session_id": "memory_sessioncontext",
    },
    "memory_decision": {
        "agent_id": "memory_agent",
        "source_run_id": "memory_run",
        "superseded_by_id": "memory_decision",
    },
    "memory_decisioninboxentry": {
        "agent_id": "memory_agent",
        "source_run_id": "memory_run",
        "decision_id": "memory_decision",
        "memory_id": "memory_agentmemory",
    },
    "memory_contextreceipt": {"run_id": "memory_run", "snapshot_id": "memory_contextsnapshot"},
    "memory_importedrecord": {
        "decision_id": "memory_decision",
        "memory_id": "memory_agentmemory",
        "entry_id": "memory_decisioninboxentry",
        "session_id": "memory_sessioncontext",
        "replaces_id": "memory_importedrecord",
    },
}

ELSEWHERE = (
    "NEW.{column} IS NOT NULL AND NOT EXISTS"
    " (SELECT 1 FROM {target} t WHERE t.id = NEW.{column} AND t.project_id = NEW.project_id)"
)

SQLITE = """
CREATE TRIGGER {table}_same_project_{verb} BEFORE {verb} ON {table} WHEN {elsewhere}
BEGIN SELECT RAISE(ABORT, '{table} names a row of another project'); END
"""

POSTGRESQL_FUNCTION = """
CREATE FUNCTION {table}_same_project() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF {elsewhere} THEN
    RAISE EXCEPTION '{table} names a row of another project' USING ERRCODE = 'integrity_constraint_violation';
  END IF;
  RETURN NEW;
END $$
"""
POSTGRESQL = """
CREATE TRIGGER {table}_same_project BEFORE INSERT OR UPDATE ON {table}
FOR EACH ROW EXECUTE FUNCTION {table}_same_project()
"""


def elsewhere(columns: dict[str, str]) -> str:
    return " OR ".join(f"({ELSEWHERE.format(column=c, target=t)})" for c, t in columns.items())


def install(apps: Any, schema_editor: BaseDatabaseSchemaEditor) -> None:
    for table, columns in REFERENCES.items():
        condition = elsewhere(columns)
        if schema_editor.connection.vendor == "postgresql":
            schema_editor.execute(POSTGRESQL_FUNCTION.format(table=table, elsewhere=condition), params=None)
            schema_editor.execute(POSTGRESQL.format(table=table), params=None)
            continue
        for verb in ("insert", "update"):
            schema_editor.execute(SQLITE.format(table=table, verb=verb, elsewhere=condition), params=None)


def remove(apps: Any, schema_editor: BaseDatabaseSchemaEditor) -> None:
    for table in REFERENCES:
        if schema_editor.connection.vendor == "postgresql":
            schema_editor.execute(f"DROP FUNCTION {table}_same_project() CASCADE", params=None)
            continue
        for verb in ("insert", "update"):
            schema_editor.execute(f"DROP TRIGGER {table}_same_project_{verb}", params=None)


class Migration(migrations.Migration):
    dependencies = [("memory", "0002_append_only")]

    operations = [migrations.RunPython(install, remove, elidable=False)]
