"""Reads the candidate rows of a compile: everything in one SQL statement, so that all of it is of one moment (SPEC 4, 11).

The statement is a UNION ALL of the project's epoch, the rows each layer selects (with their text) and the newest rows that
the rules leave out (without it). Its parts are built from `memory.layers`; nothing here knows a rule.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import Any, NamedTuple
from uuid import UUID

from django.db import connection
from django.db.models import (
    BigIntegerField,
    CharField,
    F,
    Field,
    QuerySet,
    TextField,
    Value,
)
from django.db.models.functions import Cast

from memory.enums import Layer, TrustPolicy
from memory.layers import (
    DECISIONS,
    SESSION,
    all_hold,
    decision_reason,
    memory_reason,
    memory_scopes,
)
from memory.models import AgentMemory, Decision, Project, SessionContext

OMITTED_LIMIT = 200
"""How many left-out decisions, and how many left-out memories, a compile names: newest first. `explain` names all of them."""


class Candidate(NamedTuple):
    """One row of the statement. `reason` is empty for a row the rules select; the text is empty for one they leave out.

    `created_at` is a time as the database writes it: good for ordering, nothing else.
    """

    kind: str
    id: int
    revision: int
    layer: int
    reason: str
    created_at: str
    agent_id: int | None
    agent_name: str
    type: str
    importance: str
    trust_state: str
    title: str
    content: str
    rationale: str
    active_issues: str


_COLUMNS: dict[str, Field[Any, Any]] = {
    "kind": CharField(),
    "row_id": BigIntegerField(),
    "row_revision": BigIntegerField(),
    "row_layer": BigIntegerField(),
    "reason": CharField(),
    "created": TextField(),
    "by": BigIntegerField(),
    "by_name": CharField(),
    "row_type": CharField(),
    "row_importance": CharField(),
    "row_trust": CharField(),
    "row_title": CharField(),
    "row_content": TextField(),
    "row_rationale": TextField(),
    "issues": TextField(),
}
_NUMBERS = {"row_id", "row_revision", "row_layer", "by"}


def _columns(rows: QuerySet[Any], **given: Any) -> QuerySet[Any, Any]:
    """The shared columns of the union; what a table does not have is a typed empty value."""
    values = {name: given.get(name, _empty(name, field)) for name, field in _COLUMNS.items()}
    columns: QuerySet[Any, Any] = rows.order_by().annotate(**values).values_list(*_COLUMNS)
    return columns


def _empty(name: str, field: Field[Any, Any]) -> Value:
    return Value(0 if name in _NUMBERS else "", output_field=field)


def _time(column: str) -> Cast:
    """A time as text: it orders as the time does on both engines, and reading it builds no object."""
    return Cast(column, TextField())


def _constant(value: str | int) -> Value:
    return Value(value, output_field=BigIntegerField() if isinstance(value, int) else CharField())


_AUTHOR = {"by": F("agent_id"), "by_name": F("agent__name")}
_ROW = {
    "row_id": F("pk"),
    "row_revision": F("revision"),
    "row_type": F("type"),
    "row_trust": F("trust_state"),
}


def _epoch(project: Project) -> QuerySet[Any, Any]:
    return _columns(Project.objects.filter(pk=project.pk), kind=_constant("epoch"), row_id=F("epoch"))


def _decisions(project: Project) -> QuerySet[Any, Any]:
    rows = Decision.objects.filter(all_hold(DECISIONS), project=project)
    return _columns(
        rows, kind=_constant("decision"), row_layer=_constant(int(Layer.DECISIONS)), created=_time("created_at"),
        row_title=F("title"), row_content=F("content"), row_rationale=F("rationale"), **_AUTHOR, **_ROW,
    )  # fmt: skip


def _memories(project: Project, agent_id: int | None, trust: TrustPolicy) -> Iterator[QuerySet[Any, Any]]:
    layers = (Layer.CORE, Layer.LEARNINGS, Layer.LEARNINGS)
    for layer, scope in zip(layers, memory_scopes(agent_id, trust), strict=True):
        rows = AgentMemory.objects.filter(scope.selected, project=project)
        yield _columns(
            rows, kind=_constant("memory"), row_layer=_constant(int(layer)), created=_time("created_at"),
            row_content=F("content"), row_importance=F("importance"), **_AUTHOR, **_ROW,
        )  # fmt: skip


def _session(project: Project) -> QuerySet[Any, Any]:
    rows = SessionContext.objects.filter(all_hold(SESSION), project=project)
    return _columns(
        rows, kind=_constant("session"), row_id=F("pk"), row_revision=F("revision"),
        row_layer=_constant(int(Layer.SESSION)), created=_time("started_at"), row_title=F("focus_area"),
        row_content=F("summary"), issues=Cast("active_issues", TextField()),
    )  # fmt: skip


def _left_out_decisions(project: Project) -> QuerySet[Any, Any]:
    rows = Decision.objects.filter(project=project).annotate(out=decision_reason()).exclude(out="")
    # A slice inside a compound statement must be a subquery on SQLite.
    newest = rows.order_by("-created_at", "-pk").values("pk")[: OMITTED_LIMIT + 1]
    return _columns(
        Decision.objects.filter(pk__in=newest),
        kind=_constant("decision"), row_id=F("pk"), reason=decision_reason(), created=_time("created_at"),
    )  # fmt: skip


def _left_out_memories(project: Project, agent_id: int | None, trust: TrustPolicy) -> QuerySet[Any, Any]:
    why = memory_reason(memory_scopes(agent_id, trust))
    rows = AgentMemory.objects.filter(project=project).annotate(out=why).exclude(out="")
    newest = rows.order_by("-created_at", "-pk").values("pk")[: OMITTED_LIMIT + 1]
    return _columns(
        AgentMemory.objects.filter(pk__in=newest),
        kind=_constant("memory"), row_id=F("pk"), reason=why, created=_time("created_at"),
    )  # fmt: skip


# Building this SQL costs the ORM some twenty milliseconds and always ends in the same text, so it is built once per process for
# these stand-ins, and executed with the real values in their place.
_ANY_PROJECT = Project(pk=UUID("00000000-feed-4000-8000-00000000feed"))
_ANY_AGENT = 4_611_686_018_427_387_905


class _Statement(NamedTuple):
    sql: str
    params: tuple[Any, ...]


@cache
def _agent_statement(alias: str, trust: TrustPolicy, is_known: bool) -> _Statement:
    agent_id = _ANY_AGENT if is_known else None
    return _compiled(
        alias,
        _decisions(_ANY_PROJECT),
        *_memories(_ANY_PROJECT, agent_id, trust),
        _session(_ANY_PROJECT),
        _left_out_decisions(_ANY_PROJECT),
        _left_out_memories(_ANY_PROJECT, agent_id, trust),
    )


@cache
def _decisions_statement(alias: str) -> _Statement:
    return _compiled(alias, _decisions(_ANY_PROJECT), _left_out_decisions(_ANY_PROJECT))


def _compiled(alias: str, *parts: QuerySet[Any, Any]) -> _Statement:
    union = _epoch(_ANY_PROJECT).union(*parts, all=True)
    return _Statement(*union.query.get_compiler(using=alias).as_sql())


def of_agent(project: Project, agent_id: int | None, trust: TrustPolicy) -> list[Candidate]:
    """The candidates of all four layers for one agent. One statement."""
    statement = _agent_statement(connection.alias, trust, agent_id is not None)
    return _read(statement, project, agent_id)


def of_decisions(project: Project) -> list[Candidate]:
    """The candidates of layer 1 alone. One statement."""
    return _read(_decisions_statement(connection.alias), project, None)


def _read(statement: _Statement, project: Project, agent_id: int | None) -> list[Candidate]:
    key = Project._meta.pk
    real = {
        key.get_db_prep_value(_ANY_PROJECT.pk, connection): key.get_db_prep_value(project.pk, connection),
        _ANY_AGENT: agent_id,
    }
    with connection.cursor() as cursor:
        cursor.execute(statement.sql, [real.get(value, value) for value in statement.params])
        return [Candidate._make(row) for row in cursor.fetchall()]
