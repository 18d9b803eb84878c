"""Every candidate row of a context, with the reason it is out (SPEC 4, Result; SPEC 7, explain).

Nothing here knows a rule: whether the rules select a row is `memory.compiling.layers`' own annotation, and what became of the selected
rows (item limit, budget) is read from a compile by `memory.compiling.compiler`. The number of statements does not depend on the rows.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, TypeVar

from django.db import transaction
from django.db.models import CharField, F, Q, QuerySet, TextField, Value
from django.db.models.functions import Left

from memory.compiling.compiler import CompiledContext, Limits, compile_context
from memory.compiling.layers import decision_reason, memory_reason, memory_scopes, session_reason
from memory.enums import Layer, OmitReason
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


@dataclass(frozen=True, slots=True)
class Place:
    """Where a page begins: just after the row with this time, kind and id."""

    at: datetime
    kind: str
    id: int


@dataclass(frozen=True, slots=True)
class ExplainedPage:
    """Some of the rows at one epoch, newest first; `next` is where to go on, None at the end."""

    agent_name: str
    epoch: int
    rows: tuple[Explained, ...]
    next: Place | None


def explain(project: Project, agent_name: str, limits: Limits, part: Slice) -> Explanation:
    """The candidate rows of one agent's context that `part` takes. Raises OverBudget, like the compile itself."""

    def read(agent_id: int | None, compiled: CompiledContext) -> tuple[int, Sequence[Any]]:
        rows = _candidates(project, agent_id, compiled)
        total = rows.count()
        return total, part(rows, total)

    compiled, (total, rows) = _settled(project, agent_name, limits, read)
    explained = tuple(_row(row, compiled) for row in rows)
    return Explanation(compiled.agent_name or agent_name, compiled.epoch, total, explained)


def explain_after(
    project: Project, agent_name: str, limits: Limits, after: Place | None, size: int
) -> ExplainedPage:
    """The `size` candidate rows that follow a place. However many rows there are, no more are read. Raises OverBudget."""

    def read(agent_id: int | None, compiled: CompiledContext) -> Sequence[Any]:
        found = [
            row
            for kind, at, rows in _branches(project, agent_id, compiled)
            for row in _following(rows, kind, at, after)[: size + 1]
        ]
        by_name = sorted(found, key=lambda row: (row[0], -row[1]))
        return sorted(by_name, key=lambda row: row[2], reverse=True)[: size + 1]

    compiled, rows = _settled(project, agent_name, limits, read)
    explained = tuple(_row(row, compiled) for row in rows[:size])
    last = explained[-1] if len(rows) > size else None
    following = Place(last.created_at, last.kind, last.id) if last is not None else None
    return ExplainedPage(compiled.agent_name or agent_name, compiled.epoch, explained, following)


def _following(rows: QuerySet[Any, Any], kind: str, at: str, after: Place | None) -> QuerySet[Any, Any]:
    """One kind of rows past a place, in an order and by a condition that an index serves."""
    if after is not None:
        rows = rows.filter(
            Q(**{f"{at}__lt": after.at}) | _same_moment(kind, at, after), **{f"{at}__lte": after.at}
        )
    return rows.order_by(f"-{at}", "-pk")


def _same_moment(kind: str, at: str, after: Place) -> Q:
    """Rows of the place's own moment that come after it: later kinds whole, its own kind by id."""
    if kind == after.kind:
        return Q(**{at: after.at}, pk__lt=after.id)
    return Q(**{at: after.at}) if kind > after.kind else Q(pk__in=[])


R = TypeVar("R")


def _settled(
    project: Project, agent_name: str, limits: Limits, read: Callable[[int | None, CompiledContext], R]
) -> tuple[CompiledContext, R]:
    """A compile and what `read` found beside it, of one epoch; the project is held still if it will not settle."""
    for _ in range(_ATTEMPTS):
        if found := _at_one_epoch(project, agent_name, limits, read):
            return found
    with transaction.atomic():
        held = Project.objects.select_for_update(no_key=True).get(pk=project.pk)
        found = _at_one_epoch(held, agent_name, limits, read)
        if found is None:
            raise RuntimeError("The epoch moved while the project was locked.")
        return found


def _at_one_epoch(
    project: Project, agent_name: str, limits: Limits, read: Callable[[int | None, CompiledContext], R]
) -> tuple[CompiledContext, R] | None:
    """None when a change came between the compile and the rows."""
    compiled = compile_context(project, agent_name, limits)
    agent = Agent.objects.filter(project=project, key=agent_key(agent_name)).first()
    found = read(agent.pk if agent else None, compiled)
    now = Project.objects.filter(pk=project.pk, epoch=compiled.epoch)
    return (compiled, found) if now.exists() else None


def _candidates(project: Project, agent_id: int | None, compiled: CompiledContext) -> QuerySet[Any, Any]:
    """Decisions, memories and sessions of the project in one list, newest first, each with what the rules say of it."""
    (_, _, first), *others = _branches(project, agent_id, compiled)
    return first.union(*(rows for _, _, rows in others), all=True).order_by("-at", "row_kind", "-row_id")


def _branches(
    project: Project, agent_id: int | None, compiled: CompiledContext
) -> list[tuple[str, str, QuerySet[Any, Any]]]:
    """Every kind of row, with the column that says when it was made."""
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
    return [
        ("decision", "created_at", decisions),
        ("memory", "created_at", memories),
        ("session", "started_at", sessions),
    ]


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
