"""Memory: per agent, and the requests to cross teams; searched, filtered, paged by place (SPEC 9)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from django.db.models import Q

from governance.pages.queues.keyset import Slice, slice_of
from memory.enums import Importance, MemoryType, TrustState
from memory.errors import NotFound
from memory.models import AgentMemory, Project
from memory.models.memory import MemoryQuerySet

ALL, REQUESTS, RETIRED = "all", "requests", "retired"
VIEWS = (ALL, REQUESTS, RETIRED)


@dataclass(frozen=True, slots=True)
class MemoryFilters:
    """What the reader narrows the list to; None leaves a filter out. `tags`: any of them, whole."""

    view: str = ALL
    agent: int | None = None
    type: MemoryType | None = None
    importance: Importance | None = None
    trust: TrustState | None = None
    tags: Sequence[str] = ()
    text: str = ""


def memories_of(project: Project) -> MemoryQuerySet:
    """Memories with everything a row shows."""
    return AgentMemory.objects.filter(project=project).select_related("agent", "session", "source_run")


def memories(
    project: Project, filters: MemoryFilters, *, after: str, without: frozenset[int] = frozenset()
) -> Slice[AgentMemory]:
    """A page of memories: newest first, requests to cross teams oldest first, as a queue. Two queries."""
    rows = _view(memories_of(project), filters.view).filter(_wanted(filters))
    if filters.tags:
        rows = rows.tagged_any(filters.tags)
    if without:
        rows = rows.exclude(pk__in=without)
    return slice_of(rows, after=after, newest_first=filters.view != REQUESTS)


def _view(rows: MemoryQuerySet, view: str) -> MemoryQuerySet:
    if view == REQUESTS:
        return rows.cross_team_requests()
    return rows.filter(retired_at__isnull=view != RETIRED)


def _wanted(filters: MemoryFilters) -> Q:
    wanted = Q()
    if filters.agent is not None:
        wanted &= Q(agent_id=filters.agent)
    if filters.type is not None:
        wanted &= Q(type=filters.type)
    if filters.importance is not None:
        wanted &= Q(importance=filters.importance)
    if filters.trust is not None:
        wanted &= Q(trust_state=filters.trust)
    if filters.text:
        wanted &= Q(content__icontains=filters.text)
    return wanted


def memory_of(project: Project, memory_id: int) -> AgentMemory:
    """One memory of the project; raises NotFound. One query."""
    memory = memories_of(project).filter(pk=memory_id).first()
    if memory is None:
        raise NotFound
    return memory
