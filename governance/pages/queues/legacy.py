"""The legacy workbench: imported rows that wait for a person, grouped by file and agent (SPEC 9)."""

from __future__ import annotations

from dataclasses import dataclass
from urllib.parse import urlencode

from django.db.models import Count, Q, QuerySet

from governance.pages.queues.decisions import decisions_of
from governance.pages.queues.keyset import Slice, slice_of
from governance.pages.queues.memories import memories_of
from memory.enums import DecisionStatus, SourceKind, TrustState
from memory.models import AgentMemory, Decision, Project

DECISION, MEMORY = "decision", "memory"
KINDS = (DECISION, MEMORY)

_WAITING_DECISION = Q(trust_state=TrustState.LEGACY, status=DecisionStatus.ACTIVE)
_WAITING_MEMORY = Q(trust_state=TrustState.LEGACY, retired_at__isnull=True)


@dataclass(frozen=True, slots=True)
class LegacyGroup:
    """The imported decisions or memories of one agent in one file. `path` is empty for rows that came from no file."""

    kind: str
    path: str
    agent_id: int
    agent_name: str
    waiting: int
    total: int

    @property
    def done(self) -> int:
        return self.total - self.waiting

    @property
    def query(self) -> str:
        """The address of the group's rows."""
        return urlencode({"kind": self.kind, "path": self.path, "agent": self.agent_id})


@dataclass(frozen=True, slots=True)
class LegacyFilters:
    """Which group, and a word to look for in it; None for all groups."""

    kind: str
    path: str | None = None
    agent: int | None = None
    text: str = ""


def groups(project: Project) -> list[LegacyGroup]:
    """Every file and agent with imported rows: those with rows waiting first, then by path. Two queries."""
    decisions = Decision.objects.filter(project=project, source_kind=SourceKind.LEGACY)
    memories = AgentMemory.objects.filter(project=project, source_kind=SourceKind.LEGACY)
    found = [*_groups(DECISION, decisions, _WAITING_DECISION), *_groups(MEMORY, memories, _WAITING_MEMORY)]
    return sorted(found, key=lambda group: (group.waiting == 0, group.path, group.kind, group.agent_name))


def _groups(kind: str, rows: QuerySet[Decision] | QuerySet[AgentMemory], waiting: Q) -> list[LegacyGroup]:
    counted = (
        rows.order_by()
        .values_list("imported__path", "agent_id", "agent__name")
        .annotate(waiting=Count("pk", filter=waiting), total=Count("pk"))
    )
    return [LegacyGroup(kind, path or "", *rest) for path, *rest in counted]


def waiting_decisions(
    project: Project, filters: LegacyFilters, *, after: str, without: frozenset[int]
) -> Slice[Decision]:
    """Imported decisions that wait, in the order of the file. Two queries."""
    rows = decisions_of(project).select_related("imported").filter(_WAITING_DECISION, _wanted(filters))
    if filters.text:
        rows = rows.filter(Q(title__icontains=filters.text) | Q(content__icontains=filters.text))
    return slice_of(rows.exclude(pk__in=without) if without else rows, after=after)


def waiting_memories(
    project: Project, filters: LegacyFilters, *, after: str, without: frozenset[int]
) -> Slice[AgentMemory]:
    """Imported memories that wait, in the order of the file. Two queries."""
    rows = memories_of(project).select_related("imported").filter(_WAITING_MEMORY, _wanted(filters))
    if filters.text:
        rows = rows.filter(content__icontains=filters.text)
    return slice_of(rows.exclude(pk__in=without) if without else rows, after=after)


def _wanted(filters: LegacyFilters) -> Q:
    wanted = Q()
    if filters.agent is not None:
        wanted &= Q(agent_id=filters.agent)
    if filters.path is not None:
        wanted &= Q(imported__path=filters.path) if filters.path else Q(imported__isnull=True)
    return wanted
