"""The inbox: entries by status, filtered, paged by place (SPEC 9)."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from uuid import UUID

from django.db.models import Q, QuerySet

from governance.pages.queues.keyset import Slice, slice_of
from memory.enums import EntryStatus, EntryType
from memory.errors import NotFound
from memory.models import Agent, DecisionInboxEntry, Project


@dataclass(frozen=True, slots=True)
class InboxFilters:
    """What the reader narrows the inbox to; None leaves a filter out. `older` and `newer` are ages."""

    status: EntryStatus = EntryStatus.PENDING
    type: EntryType | None = None
    agent: int | None = None
    run: UUID | None = None
    older: timedelta | None = None
    newer: timedelta | None = None
    text: str = ""


def entries_of(project: Project) -> QuerySet[DecisionInboxEntry]:
    """Entries with everything a row shows."""
    return DecisionInboxEntry.objects.filter(project=project).select_related(
        "agent", "decision", "memory", "source_run"
    )


def inbox(
    project: Project,
    filters: InboxFilters,
    *,
    after: str,
    now: datetime,
    without: frozenset[int] = frozenset(),
) -> Slice[DecisionInboxEntry]:
    """A page of the inbox: what waits oldest first, what was decided newest first. Two queries."""
    rows = _narrowed(entries_of(project), filters, now)
    if without:
        rows = rows.exclude(pk__in=without)
    return slice_of(rows, after=after, newest_first=filters.status != EntryStatus.PENDING)


def _narrowed(
    rows: QuerySet[DecisionInboxEntry], filters: InboxFilters, now: datetime
) -> QuerySet[DecisionInboxEntry]:
    wanted = Q(status=filters.status)
    if filters.type is not None:
        wanted &= Q(type=filters.type)
    if filters.agent is not None:
        wanted &= Q(agent_id=filters.agent)
    if filters.run is not None:
        wanted &= Q(source_run_id=filters.run)
    if filters.older is not None:
        wanted &= Q(created_at__lte=now - filters.older)
    if filters.newer is not None:
        wanted &= Q(created_at__gte=now - filters.newer)
    if filters.text:
        wanted &= (
            Q(title__icontains=filters.text)
            | Q(content__icontains=filters.text)
            | Q(slug__icontains=filters.text)
        )
    return rows.filter(wanted)


def entry_of(project: Project, entry_id: int) -> DecisionInboxEntry:
    """One entry of the project; raises NotFound. One query."""
    entry = entries_of(project).filter(pk=entry_id).first()
    if entry is None:
        raise NotFound
    return entry


def agents_of(project: Project) -> list[tuple[int, str]]:
    """The agents to choose from, by name. One query."""
    return list(Agent.objects.filter(project=project).order_by("key", "pk").values_list("pk", "name"))
