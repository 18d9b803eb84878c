"""Home: my projects with what waits for me, and what changed lately (SPEC 9)."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import Protocol

from django.db.models import BooleanField, Case, DateTimeField, F, OuterRef, QuerySet, Subquery, Value, When
from django.db.models.functions import Least

from governance.pages.queues.counters import number_of
from governance.people.policies import owned_projects, visible_projects
from memory.actors import Human
from memory.models import AgentMemory, Decision, DecisionInboxEntry, LedgerEvent, Project

LATELY = 12
_OF_EACH_PROJECT = 6


class WaitingProject(Protocol):
    """A project as the list shows it."""

    slug: str
    name: str
    mine: bool
    """Whether the reader decides there."""
    inbox: int
    legacy: int
    cross_team: int
    oldest: datetime | None
    """Since when the oldest of these rows waits."""


def my_projects(actor: Human) -> QuerySet[Project]:
    """The projects the reader sees: first those that wait for them, longest waiting first. One query."""
    return (
        visible_projects(actor)
        .annotate(
            mine=Case(
                When(pk__in=owned_projects(actor.username).values("pk"), then=Value(True)),
                default=Value(False), output_field=BooleanField(),
            ),
            inbox=number_of(DecisionInboxEntry.objects.pending()),
            legacy=number_of(Decision.objects.legacy()) + number_of(AgentMemory.objects.legacy()),
            cross_team=number_of(AgentMemory.objects.cross_team_requests()),
            oldest=_oldest_waiting(),
        )
        .order_by("-mine", F("oldest").asc(nulls_last=True), "name", "pk")
    )  # fmt: skip


def _oldest_waiting() -> Case:
    """The earlier of the oldest pending entry and the oldest request to cross teams; imported rows do not press."""
    entry = _first(DecisionInboxEntry.objects.pending())
    request = _first(AgentMemory.objects.cross_team_requests())
    # On both databases a comparison with NULL gives NULL, so a missing one is told apart first.
    return Case(
        When(inbox=0, then=request),
        When(cross_team=0, then=entry),
        default=Least(entry, request),
        output_field=DateTimeField(),
    )


def _first(rows: QuerySet[DecisionInboxEntry] | QuerySet[AgentMemory]) -> Subquery:
    mine = rows.filter(project=OuterRef("pk")).order_by("created_at", "pk")
    return Subquery(mine.values("created_at")[:1], output_field=DateTimeField())


def changed_lately(projects: Iterable[Project], limit: int = LATELY) -> list[LedgerEvent]:
    """The newest events of some projects, each with its project loaded. One query, by the index of the numbers."""
    newest = LedgerEvent.objects.select_related("project").filter(
        project__in=[project.pk for project in projects],
        number__gt=F("project__ledger_number") - max(limit, _OF_EACH_PROJECT),
    )
    return list(newest.order_by("-at", "-number")[:limit])
