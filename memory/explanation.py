"""Every candidate row of a context, with the reason it is out (SPEC 4, Result; SPEC 7, explain).

Nothing here knows a rule: whether the rules select a row is `memory.layers`' own annotation, and what became of the selected
rows (item limit, budget) is read from a compile by `memory.compiler`. The number of statements does not depend on the rows.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db import transaction
from django.db.models import CharField, F, QuerySet, TextField, Value
from django.db.models.functions import Left

from memory.compiler import CompiledContext, Limits, compile_context
from memory.enums import Layer, OmitReason
from memory.layers import decision_reason, memory_reason, memory_scopes, session_reason
from memory.models import Agent, AgentMemory, Decision, Project, SessionContext
from memory.values import agent_key

_BEGINNING = 120
_ATTEMPTS = 4

Slice = Callable[[Any, int], Sequence[Any]]
"""Takes the part of the rows that is wanted, given how many there are."""


@dataclass(frozen=True, slots=True)
class Explained:
    """One row. `reason` is None when it is in the context, and then `layer` says where."""

    kind: str
    id: int
    created_at: datetime
    agent_name: str
    type: str
    title: str
    layer: Layer | None
    reason: OmitReason | None


@dataclass(frozen=True, slots=True)
class Explanation:
    """Some of the rows, newest first, and how many there are at this epoch."""

    agent_name: str
    epoch: int
    total: int
    rows: tuple[Explained, ...]


def explain(project: Project, agent_name: str, limits: Limits, part: Slice) -> Explanation:
    """The candidate rows of one agent's context that `part` takes. Raises OverBudget, like the compile itself."""
    for _ in range(_ATTEMPTS):
        if found := _explained(project, agent_name, limits, part):
            return found
    with transaction.atomic():
        held = Project.objects.select_for_update(no_key=True).get(pk=project.pk)
        found = _explained(held, agent_name, limits, part)
        if found is None:
            raise RuntimeError("The epoch moved while the project was locked.")
        return found


def _explained(project: Project, agent_name: str, limits: Limits, part: Slice) -> Explanation | None:
    """None when a change came between the compile and the rows."""
    compiled = compile_context(project, agent_name, limits)
    agent = Agent.objects.filter(project=project, key=agent_key(agent_name)).first()
    rows = _candidates(project, agent.pk if agent else None, compiled)
    total = rows.count()
    taken = [_row(row, compiled) for row in part(rows, total)]
    now = Project.objects.filter(pk=project.pk, epoch=compiled.epoch)
    if not now.exists():
        return None
    return Explanation(compiled.agent_name or agent_name, compiled.epoch, total, tuple(taken))


def _candidates(project: Project, agent_id: int | None, compiled: CompiledContext) -> QuerySet[Any, Any]:
    """Decisions, memories and sessions of the project in one list, newest first, each with what the rules say of it."""
    scopes = memory_scopes(agent_id, compiled.policy.trust)
    decisions = _columns(
        Decision.objects.filter(project=project), "decision", decision_reason(), F("created_at"), F("title")
    )
    memories = _columns(
        AgentMemory.objects.filter(project=project), "memory", memory_reason(scopes), F("created_at"),
        Left("content", _BEGINNING),
    )  # fmt: skip
    sessions = _columns(
        SessionContext.objects.filter(project=project), "session", session_reason(), F("started_at"),
        Left("focus_area", _BEGINNING), authored=False,
    )  # fmt: skip
    return decisions.union(memories, sessions, all=True).order_by("-at", "row_kind", "-row_id")


def _columns(
    rows: QuerySet[Any], kind: str, reason: Any, at: Any, title: Any, *, authored: bool = True
) -> QuerySet[Any, Any]:
    nothing = Value("", output_field=CharField())
    annotated: QuerySet[Any, Any] = (
        rows.order_by()
        .annotate(
            row_kind=Value(kind, output_field=CharField()),
            row_id=F("pk"),
            at=at,
            by=F("agent__name") if authored else nothing,
            row_type=F("type") if authored else nothing,
            text=Left(title, _BEGINNING, output_field=TextField()),
            why=reason,
        )
        .values_list("row_kind", "row_id", "at", "by", "row_type", "text", "why")
    )
    return annotated


def _row(row: Sequence[Any], compiled: CompiledContext) -> Explained:
    kind, row_id, at, by, row_type, text, why = row
    if why:
        return Explained(kind, row_id, at, by, row_type, text, None, OmitReason(why))
    layer = next((r.layer for r in compiled.included if (r.kind, r.id) == (kind, row_id)), None)
    left_out = (r.reason for r in compiled.omitted if (r.kind, r.id) == (kind, row_id))
    # Selected by the rules and not taken in: the compile names every such row.
    return Explained(kind, row_id, at, by, row_type, text, layer, None if layer else next(left_out, None))
