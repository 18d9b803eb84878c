"""Reads the candidate rows of a compile: everything in one SQL statement, so that all of it is of one moment (SPEC 4, 11).

The statement is a UNION ALL of the project's epoch, the rows each layer selects (with their text) and the newest rows that
the rules leave out (without it). Its parts are built from `memory.layers`; nothing here knows a rule.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from typing import Any, NamedTuple

from django.db.models import (
    BigIntegerField,
    CharField,
    DateTimeField,
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
    """One row of the statement. `reason` is empty for a row the rules select; the text is empty for one they leave out."""

    kind: str
    id: int
    revision: int
    layer: int
    reason: str
    created_at: datetime | None
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
    "created": DateTimeField(),
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
    values = {
        name: given.get(name, Cast(Value(None), field) if name in ("created", "by") else _empty(name, field))
        for name, field in _COLUMNS.items()
    }
    columns: QuerySet[Any, Any] = rows.order_by().annotate(**values).values_list(*_COLUMNS)
    return columns


def _empty(name: str, field: Field[Any, Any]) -> Value:
    return Value(0 if name in _NUMBERS else "", output_field=field)


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
        rows, kind=_constant("decision"), row_layer=_constant(int(Layer.DECISIONS)), created=F("created_at"),
        row_title=F("title"), row_content=F("content"), row_rationale=F("rationale"), **_AUTHOR, **_ROW,
    )  # fmt: skip


def _memories(project: Project, agent_id: int | None, trust: TrustPolicy) -> Iterator[QuerySet[Any, Any]]:
    layers = (Layer.CORE, Layer.LEARNINGS, Layer.LEARNINGS)
    for layer, scope in zip(layers, memory_scopes(agent_id, trust), strict=True):
        rows = AgentMemory.objects.filter(scope.selected, project=project)
        yield _columns(
            rows, kind=_constant("memory"), row_layer=_constant(int(layer)), created=F("created_at"),
            row_content=F("content"), row_importance=F("importance"), **_AUTHOR, **_ROW,
        )  # fmt: skip


def _session(project: Project) -> QuerySet[Any, Any]:
    rows = SessionContext.objects.filter(all_hold(SESSION), project=project)
    return _columns(
        rows, kind=_constant("session"), row_id=F("pk"), row_revision=F("revision"),
        row_layer=_constant(int(Layer.SESSION)), created=F("started_at"), row_title=F("focus_area"),
        row_content=F("summary"), issues=Cast("active_issues", TextField()),
    )  # fmt: skip


def _left_out_decisions(project: Project) -> QuerySet[Any, Any]:
    rows = Decision.objects.filter(project=project).annotate(out=decision_reason()).exclude(out="")
    # A slice inside a compound statement must be a subquery on SQLite.
    newest = rows.order_by("-created_at", "-pk").values("pk")[: OMITTED_LIMIT + 1]
    return _columns(
        Decision.objects.filter(pk__in=newest),
        kind=_constant("decision"), row_id=F("pk"), reason=decision_reason(), created=F("created_at"),
    )  # fmt: skip


def _left_out_memories(project: Project, agent_id: int | None, trust: TrustPolicy) -> QuerySet[Any, Any]:
    why = memory_reason(memory_scopes(agent_id, trust))
    rows = AgentMemory.objects.filter(project=project).annotate(out=why).exclude(out="")
    newest = rows.order_by("-created_at", "-pk").values("pk")[: OMITTED_LIMIT + 1]
    return _columns(
        AgentMemory.objects.filter(pk__in=newest),
        kind=_constant("memory"), row_id=F("pk"), reason=why, created=F("created_at"),
    )  # fmt: skip


def of_agent(project: Project, agent_id: int | None, trust: TrustPolicy) -> list[Candidate]:
    """The candidates of all four layers for one agent. One statement."""
    parts = [
        _decisions(project),
        *_memories(project, agent_id, trust),
        _session(project),
        _left_out_decisions(project),
        _left_out_memories(project, agent_id, trust),
    ]
    return _read(project, parts)


def of_decisions(project: Project) -> list[Candidate]:
    """The candidates of layer 1 alone. One statement."""
    return _read(project, [_decisions(project), _left_out_decisions(project)])


def _read(project: Project, parts: list[QuerySet[Any, Any]]) -> list[Candidate]:
    return [Candidate._make(row) for row in _epoch(project).union(*parts, all=True)]
