"""How much is waiting in a project: the numbers beside the navigation."""

from __future__ import annotations

from dataclasses import dataclass

from django.db.models import Count, F, OuterRef, QuerySet, Subquery
from django.db.models.functions import Coalesce

from memory.models import AgentMemory, Decision, DecisionInboxEntry, Project


@dataclass(frozen=True, slots=True)
class Counters:
    """Rows waiting for a decider: pending entries, imported rows, requests to cross teams."""

    inbox: int
    legacy: int
    cross_team: int

    @property
    def total(self) -> int:
        return self.inbox + self.legacy + self.cross_team


def counters_of(project: Project) -> Counters:
    """One statement, each count from an index."""
    rows = (
        Project.objects.filter(pk=project.pk)
        .annotate(
            inbox=number_of(DecisionInboxEntry.objects.pending()),
            old_decisions=number_of(Decision.objects.legacy()),
            old_memories=number_of(AgentMemory.objects.legacy()),
            cross_team=number_of(AgentMemory.objects.cross_team_requests()),
        )
        .values_list("inbox", F("old_decisions") + F("old_memories"), "cross_team")
    )
    return Counters(*rows.get())


def number_of(rows: QuerySet[DecisionInboxEntry] | QuerySet[Decision] | QuerySet[AgentMemory]) -> Coalesce:
    """How many of `rows` belong to the project of the outer query."""
    counted = rows.filter(project=OuterRef("pk")).order_by().values("project").annotate(number=Count("pk"))
    return Coalesce(Subquery(counted.values("number")), 0)
