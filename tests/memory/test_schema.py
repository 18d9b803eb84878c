"""The database keeps the rules itself (SPEC 3): every constraint and every trigger refuses what it is there for."""

from __future__ import annotations

import importlib
import re
import uuid
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from django.apps import apps
from django.contrib.auth.models import Group, Permission
from django.db import IntegrityError, connection, models, transaction

from governance.models import ProjectGroupGrant, ProjectUserGrant, User
from memory.models import (
    AgentMemory,
    ContextReceipt,
    ContextSnapshot,
    Decision,
    DecisionInboxEntry,
    ImportedRecord,
    LedgerEvent,
    Project,
    Run,
    SessionContext,
    SnapshotRow,
)
from memory.models.project import NO_HASH
from tests.conftest import NOW, Team
from tests.factories import (
    APPROVED,
    AgentFactory,
    DecisionFactory,
    EntryFactory,
    MemoryFactory,
    ProjectFactory,
    RunFactory,
    SessionFactory,
    agent_of,
)

pytestmark = pytest.mark.django_db

APPEND_ONLY: tuple[str, ...] = importlib.import_module("memory.migrations.0002_append_only").TABLES
UNIQUE: dict[str, tuple[tuple[str, ...], ...]] = importlib.import_module(
    "memory.migrations.0005_no_replacement"
).KEYS
REFERENCES: dict[str, dict[str, str]] = importlib.import_module(
    "memory.migrations.0003_same_project"
).REFERENCES


def execute(sql: str, *params: Any) -> None:
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(sql, params)


def refused(sql: str, *params: Any, because: str = "") -> None:
    with pytest.raises(IntegrityError, match=re.escape(because)):
        execute(sql, *params)


def raw(value: uuid.UUID) -> Any:
    """A UUID as a parameter of a hand-written statement."""
    return value.hex if connection.vendor == "sqlite" else value


# Constraints: every one has its violation here

Violation = Callable[[Project], Any]

SOURCED: dict[str, Any] = {
    "agentmemory": MemoryFactory,
    "decision": DecisionFactory,
    "decisioninboxentry": EntryFactory,
    "sessioncontext": SessionFactory,
}
TRUSTED: dict[str, Any] = {"agentmemory": MemoryFactory, "decision": DecisionFactory}
MERGED = {"status": "merged", "reviewed_by": "owner", "reviewed_at": NOW}


def snapshot(project: Project, **values: Any) -> ContextSnapshot:
    return ContextSnapshot.objects.create(
        project=project, **{"sha256": "a", "rows_sha256": "b", "block": "c", **values}
    )


def imported(project: Project, **values: Any) -> ImportedRecord:
    return ImportedRecord.objects.create(
        project=project, path="p", line=1, place="p", **{"digest": "d", **values}
    )


def receipt(project: Project, **values: Any) -> ContextReceipt:
    return ContextReceipt.objects.create(
        project=project, run=RunFactory(project=project), at=NOW, epoch=1, **values
    )


def grant(project: Project, codename: str) -> ProjectUserGrant:
    user, _ = User.objects.get_or_create(username="new")
    permission = Permission.objects.get(codename=codename, content_type__model="project")
    return ProjectUserGrant.objects.create(user=user, content_object=project, permission=permission)


def grant_group(project: Project, codename: str) -> ProjectGroupGrant:
    group, _ = Group.objects.get_or_create(name="new")
    permission = Permission.objects.get(codename=codename, content_type__model="project")
    return ProjectGroupGrant.objects.create(group=group, content_object=project, permission=permission)


def of(make: Any, **values: Any) -> Violation:
    return lambda project: make(project=project, **values)


def with_run(make: Any, source_kind: str) -> Violation:
    return lambda project: make(
        project=project, source_kind=source_kind, source_run=RunFactory(project=project)
    )


def twice(make: Callable[[], Any]) -> None:
    make()
    make()


def own_successor(project: Project) -> None:
    row = DecisionFactory(project=project)
    Decision.objects.filter(pk=row.pk).update(status="superseded", superseded_by=row.pk)


def own_parent(project: Project) -> None:
    run = RunFactory(project=project)
    Run.objects.filter(pk=run.pk).update(parent=run.pk)


VIOLATIONS: dict[str, list[Violation]] = {
    "project_on_overflow_listed": [lambda p: ProjectFactory(on_overflow="drop")],
    "project_trust_listed": [lambda p: ProjectFactory(trust="")],
    "project_slug_not_blank": [lambda p: ProjectFactory(slug="")],
    "agent_one_identity_per_project": [lambda p: twice(lambda: AgentFactory(project=p))],
    "agent_key_not_blank": [lambda p: AgentFactory(project=p, key="")],
    "run_role_listed": [lambda p: RunFactory(project=p, role="owner")],
    "run_status_listed": [lambda p: RunFactory(project=p, status="lost", ended_at=NOW)],
    "run_external_id_unique": [lambda p: twice(lambda: RunFactory(project=p, external_id="x"))],
    "run_child_is_no_coordinator": [
        lambda p: RunFactory(project=p, role="coordinator", parent=RunFactory(project=p))
    ],
    "run_not_own_parent": [own_parent],
    "run_ended_has_time": [
        lambda p: RunFactory(project=p, status="completed"),
        lambda p: RunFactory(project=p, ended_at=NOW),
    ],
    **{f"{name}_source_kind_listed": [of(make, source_kind="robot")] for name, make in SOURCED.items()},
    **{
        f"{name}_run_source_has_run": [of(make, source_kind="run"), with_run(make, "human"), with_run(make, "legacy")]
        for name, make in SOURCED.items()
    },
    **{
        f"{name}_trust_state_listed": [of(make, trust_state="trusted", approved_by="", approved_at=None)]
        for name, make in TRUSTED.items()
    },
    **{
        f"{name}_approved_has_both_stamps": [
            of(make, trust_state="approved", approved_by="", approved_at=NOW),
            of(make, trust_state="approved", approved_by="owner", approved_at=None),
            of(make, trust_state="approved", approved_by="", approved_at=None),
            of(make, trust_state="pending", approved_by="owner", approved_at=None),
            of(make, trust_state="pending", approved_by="", approved_at=NOW),
            of(make, trust_state="legacy", approved_by="owner", approved_at=NOW),
        ]
        for name, make in TRUSTED.items()
    },
    "memory_type_listed": [lambda p: MemoryFactory(project=p, type="scope")],
    "memory_importance_listed": [lambda p: MemoryFactory(project=p, importance="")],
    "memory_retired_says_who_and_why": [
        lambda p: MemoryFactory(project=p, retired_at=NOW),
        lambda p: MemoryFactory(project=p, retired_at=NOW, retired_by="owner"),
        lambda p: MemoryFactory(project=p, retired_at=NOW, retire_reason="Old."),
        lambda p: MemoryFactory(project=p, retired_by="owner", retire_reason="Old."),
        lambda p: MemoryFactory(project=p, retire_reason="Old."),
    ],
    "decision_type_listed": [lambda p: DecisionFactory(project=p, type="learning")],
    "decision_status_listed": [lambda p: DecisionFactory(project=p, status="draft")],
    "decision_not_own_successor": [own_successor],
    "decision_superseded_names_successor": [
        lambda p: DecisionFactory(project=p, status="superseded"),
        lambda p: DecisionFactory(project=p, status="active", superseded_by=DecisionFactory(project=p)),
        lambda p: DecisionFactory(project=p, status="archived", superseded_by=DecisionFactory(project=p)),
    ],
    "entry_type_listed": [lambda p: EntryFactory(project=p, type="core_context")],
    "entry_importance_listed": [lambda p: EntryFactory(project=p, importance="top")],
    "entry_status_listed": [
        lambda p: EntryFactory(project=p, status="approved", reviewed_by="owner", reviewed_at=NOW)
    ],
    "entry_slug_unique": [lambda p: twice(lambda: EntryFactory(project=p, slug="s"))],
    "entry_merged_has_exactly_one_row": [
        lambda p: EntryFactory(project=p, **MERGED),
        lambda p: EntryFactory(
            project=p, **MERGED, decision=DecisionFactory(project=p), memory=MemoryFactory(project=p)
        ),
        lambda p: EntryFactory(project=p, decision=DecisionFactory(project=p)),
        lambda p: EntryFactory(
            project=p, status="rejected", reviewed_by="owner", reviewed_at=NOW, reason="No.", memory=MemoryFactory(project=p)
        ),
    ],
    "entry_reviewed_says_who_and_when": [
        lambda p: EntryFactory(project=p, reviewed_by="owner"),
        lambda p: EntryFactory(project=p, reviewed_at=NOW),
        lambda p: EntryFactory(project=p, status="rejected", reason="No.", reviewed_at=NOW),
        lambda p: EntryFactory(project=p, status="rejected", reason="No.", reviewed_by="owner"),
        lambda p: EntryFactory(project=p, status="merged", memory=MemoryFactory(project=p)),
    ],
    "entry_rejected_says_why": [
        lambda p: EntryFactory(project=p, status="rejected", reviewed_by="owner", reviewed_at=NOW)
    ],
    "session_id_unique": [lambda p: twice(lambda: SessionFactory(project=p, session_id="s", ended_at=NOW))],
    "session_one_open_per_project": [lambda p: twice(lambda: SessionFactory(project=p))],
    "event_number_unique": [
        lambda p: LedgerEvent.objects.create(
            hash="x", project=p, number=1, at=NOW, action="a", actor="a", target="t", before="", after="", prev_hash=NO_HASH
        )
    ],
    "imported_once": [
        lambda p: [imported(p, memory=MemoryFactory(project=p)), imported(p, memory=MemoryFactory(project=p))]
    ],
    "imported_names_one_row": [
        imported,
        lambda p: imported(p, memory=MemoryFactory(project=p), decision=DecisionFactory(project=p)),
        lambda p: imported(p, entry=EntryFactory(project=p), session=SessionFactory(project=p)),
    ],
    "snapshot_stored_once": [lambda p: twice(lambda: snapshot(p))],
    "snapshot_row_names_one_row": [
        lambda p: SnapshotRow.objects.create(snapshot=snapshot(p), layer=1, revision=1),
        lambda p: SnapshotRow.objects.create(
            snapshot=snapshot(p), layer=1, revision=1, memory=MemoryFactory(project=p), decision=DecisionFactory(project=p)
        ),
    ],
    "receipt_failure_has_no_snapshot": [lambda p: receipt(p, snapshot=snapshot(p), compile_error="failed")],
    "user_name_has_no_colon": [lambda p: User.objects.create(username="run:1")],
    "user_grant_one_role_per_project": [lambda p: [grant(p, role) for role in ("viewer", "owner")]],
    "group_grant_one_role_per_project": [lambda p: [grant_group(p, role) for role in ("viewer", "owner")]],
}  # fmt: skip


def constraints() -> Iterator[models.BaseConstraint]:
    for label in ("memory", "governance"):
        for model in apps.get_app_config(label).get_models():
            yield from model._meta.constraints


def test_every_constraint_has_a_violation_in_this_file() -> None:
    assert {constraint.name for constraint in constraints()} == set(VIOLATIONS)


CASES = [
    pytest.param(name, violate, id=f"{name}-{number}")
    for name, cases in VIOLATIONS.items()
    for number, violate in enumerate(cases)
]


@pytest.mark.parametrize(("name", "violate"), CASES)
def test_the_database_refuses_what_breaks_a_constraint(team: Team, name: str, violate: Violation) -> None:
    with pytest.raises(IntegrityError) as caught, transaction.atomic():
        violate(team.project)
    message = str(caught.value)
    # SQLite names the columns of a unique constraint, not the constraint; on append-only tables a trigger speaks first.
    assert name in message or message.startswith("UNIQUE constraint failed") or "append-only" in message


def test_two_projects_cannot_share_a_slug(team: Team) -> None:
    with pytest.raises(IntegrityError), transaction.atomic():
        ProjectFactory(slug=team.project.slug)


# Defaults: who forgets to say where a row comes from gets what is never compiled

BARE_ROWS = {
    AgentMemory: {"type": "core_context", "importance": "high", "content": "x", "tags": ",cross-team,", "retired_by": "",
                  "retire_reason": "", "revision": 1},
    Decision: {"type": "scope", "status": "active", "title": "t", "content": "x", "rationale": "", "tags": "",
               "revision": 1},
    DecisionInboxEntry: {"slug": "s", "type": "scope", "title": "t", "content": "x", "rationale": "", "importance": "high",
                         "tags": "", "status": "pending", "reviewed_by": "", "reason": "", "revision": 1},
    SessionContext: {"session_id": "s", "focus_area": "", "active_issues": "[]", "summary": "", "serialized_state": "",
                     "source_identity": "", "started_at": NOW.isoformat(), "revision": 1},
}  # fmt: skip


@pytest.mark.parametrize("model", BARE_ROWS)
def test_a_row_written_without_provenance_is_legacy(team: Team, model: type[Any]) -> None:
    values = {"project_id": raw(team.project.pk), "source_identity": "", **BARE_ROWS[model]}
    if model is not SessionContext:
        values |= {
            "agent_id": agent_of(team.project).pk,
            "created_at": NOW.isoformat(),
            "updated_at": NOW.isoformat(),
        }
    columns = ", ".join(values)
    execute(
        f"INSERT INTO {model._meta.db_table} ({columns}) VALUES ({', '.join(['%s'] * len(values))})",
        *values.values(),
    )
    row = model.objects.get()
    assert (row.source_kind, row.source_run_id) == ("legacy", None)
    if model in (AgentMemory, Decision):
        assert (row.trust_state, row.approved_by, row.approved_at) == ("legacy", "", None)
        assert model().trust_state == "legacy"
    assert model().source_kind == "legacy"


# Append-only tables


def one_row_of_each(project: Project) -> None:
    run = RunFactory(project=project)
    kept = snapshot(project)
    SnapshotRow.objects.create(snapshot=kept, layer=2, revision=1, memory=MemoryFactory(project=project))
    ContextReceipt.objects.create(project=project, run=run, at=NOW, epoch=1, snapshot=kept)


@pytest.mark.parametrize("table", APPEND_ONLY)
def test_what_is_append_only_can_be_neither_changed_nor_deleted(team: Team, table: str) -> None:
    one_row_of_each(team.project)
    [model] = [m for m in apps.get_app_config("memory").get_models() if m._meta.db_table == table]
    assert model._default_manager.exists()
    for column in model._meta.concrete_fields:
        refused(f"UPDATE {table} SET {column.column} = {column.column}", because="append-only")
    refused(f"DELETE FROM {table}", because="append-only")
    if connection.vendor == "postgresql":
        execute("SET CONSTRAINTS ALL IMMEDIATE")
        refused(f"TRUNCATE {table} CASCADE", because="append-only")


@pytest.mark.parametrize(
    ("table", "key"), [(table, key) for table, keys in UNIQUE.items() for key in keys], ids=str
)
def test_what_is_append_only_cannot_be_replaced(team: Team, table: str, key: tuple[str, ...]) -> None:
    """Whichever key of a row the replacement repeats; a different one of its own for every other key."""
    if connection.vendor != "sqlite":
        pytest.skip("only SQLite knows REPLACE")
    one_row_of_each(team.project)
    [model] = [m for m in apps.get_app_config("memory").get_models() if m._meta.db_table == table]
    columns = [column.column for column in model._meta.concrete_fields if column.column != "id"]
    other = {"hash": "'another'", "number": "number + 1000000", "sha256": "'another'"}
    values = [column if column in key else other.get(column, column) for column in columns]
    identity = "rowid" if "rowid" in key else "NULL"
    refused(
        f"INSERT OR REPLACE INTO {table} (rowid, {', '.join(columns)})"
        f" SELECT {identity}, {', '.join(values)} FROM {table} LIMIT 1",
        because="append-only",
    )


def test_a_run_that_ended_is_told_nothing_any_more(team: Team) -> None:
    one_row_of_each(team.project)
    Run.objects.update(status="completed", ended_at=NOW)
    told = ContextReceipt.objects.get()
    told.pk = None
    with pytest.raises(IntegrityError, match="has to be running"), transaction.atomic():
        told.save(force_insert=True)


def test_every_key_of_an_append_only_table_is_guarded_against_replacement() -> None:
    found = {}
    for model in apps.get_app_config("memory").get_models():
        if (table := model._meta.db_table) in APPEND_ONLY:
            unique = [c for c in model._meta.constraints if isinstance(c, models.UniqueConstraint)]
            columns = {column.name: column.column for column in model._meta.concrete_fields}
            keys = [tuple(columns[name] for name in constraint.fields) for constraint in unique]
            key = columns[model._meta.pk.name]
            found[table] = {("rowid",), *keys, *([(key,)] if key != "id" else [])}
    assert {table: set(keys) for table, keys in UNIQUE.items()} == found


def triggers_present() -> set[tuple[str, str]]:
    sql = (
        "SELECT tbl_name, name FROM sqlite_master WHERE type = 'trigger'"
        if connection.vendor == "sqlite"
        else "SELECT tgrelid::regclass::text, tgname FROM pg_trigger WHERE NOT tgisinternal AND tgenabled = 'O'"
    )
    with connection.cursor() as cursor:
        cursor.execute(sql)
        return set(cursor.fetchall())


RUNNING = {("memory_contextreceipt", "memory_contextreceipt_running")}


def triggers_promised() -> set[tuple[str, str]]:
    if connection.vendor == "postgresql":
        return (
            RUNNING
            | {(table, f"{table}_append_only") for table in APPEND_ONLY}
            | {(table, f"{table}_same_project") for table in REFERENCES}
        )
    verbs = ("update", "delete", "replace")
    return (
        RUNNING
        | {(table, f"{table}_no_{verb}") for table in APPEND_ONLY for verb in verbs}
        | {(table, f"{table}_same_project_{verb}") for table in REFERENCES for verb in ("insert", "update")}
    )


def test_every_trigger_stands_after_all_migrations() -> None:
    assert triggers_promised() <= triggers_present()


@pytest.mark.django_db(transaction=True)
def test_the_triggers_are_back_after_a_flush(team: Team) -> None:
    refused("DELETE FROM memory_ledgerevent", because="append-only")


@pytest.mark.django_db(transaction=True)
def test_the_triggers_are_still_back_after_that_flush(team: Team) -> None:
    assert triggers_promised() <= triggers_present()


# One project per row

MAKE: dict[str, Callable[[Project], Any]] = {
    "memory_agent": lambda p: AgentFactory(project=p, name="Own"),
    "memory_run": lambda p: RunFactory(project=p),
    "memory_sessioncontext": lambda p: SessionFactory(project=p, ended_at=NOW),
    "memory_agentmemory": lambda p: MemoryFactory(project=p, **APPROVED),
    "memory_decision": lambda p: DecisionFactory(project=p),
    "memory_decisioninboxentry": lambda p: EntryFactory(project=p),
    "memory_contextsnapshot": lambda p: snapshot(p, sha256=uuid.uuid4().hex),
    "memory_contextreceipt": receipt,
    "memory_importedrecord": lambda p: imported(p, digest=uuid.uuid4().hex, memory=MemoryFactory(project=p)),
}


def test_every_reference_inside_a_project_is_guarded() -> None:
    found: dict[str, dict[str, str]] = {}
    for model in apps.get_app_config("memory").get_models():
        columns = {column.name: column for column in model._meta.concrete_fields}
        for column in columns.values():
            target = column.related_model
            if "project" in columns and isinstance(target, type) and target is not Project:
                found.setdefault(model._meta.db_table, {})[column.column] = target._meta.db_table
    assert found == REFERENCES


@pytest.mark.parametrize(
    ("table", "column", "target"),
    [(table, column, target) for table, columns in REFERENCES.items() for column, target in columns.items()],
)
def test_a_row_cannot_name_a_row_of_another_project(team: Team, table: str, column: str, target: str) -> None:
    theirs = MAKE[target](ProjectFactory())
    key = raw(theirs.pk) if isinstance(theirs.pk, uuid.UUID) else theirs.pk
    ours = MAKE[table](team.project)
    if table not in APPEND_ONLY:
        mine = raw(ours.pk) if isinstance(ours.pk, uuid.UUID) else ours.pk
        refused(f"UPDATE {table} SET {column} = %s WHERE id = %s", key, mine, because="another project")
    ours.pk = uuid.uuid4() if isinstance(ours.pk, uuid.UUID) else None
    setattr(ours, column, theirs.pk)
    with pytest.raises(IntegrityError, match="another project"), transaction.atomic():
        ours.save(force_insert=True)
