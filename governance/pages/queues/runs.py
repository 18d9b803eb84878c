"""Runs: the list, and everything one run wrote, was told and left behind (SPEC 9, Runs)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from django.db.models import Count, Exists, OuterRef, Q, QuerySet
from django.db.models.functions import Length

from governance.models import RunCredential, ScribeReport
from memory.actors import SCRIBE_PREFIX
from memory.enums import RunRole, RunStatus
from memory.errors import NotFound
from memory.models import (
    AgentMemory,
    ContextReceipt,
    DecisionInboxEntry,
    LedgerEvent,
    Project,
    Run,
    SnapshotRow,
)

PAGE_SIZE = 50
SHOWN = 50
"""Rows of one kind that a run's page names; its counts count all."""


@dataclass(frozen=True, slots=True)
class RunFilters:
    """What the reader narrows the runs to; None leaves a filter out."""

    status: RunStatus | None = None
    role: RunRole | None = None
    agent: int | None = None
    external_id: str = ""


def runs(project: Project, filters: RunFilters) -> QuerySet[Run]:
    """Runs, newest first, each with its agent, its scribe report, and whether a context of it could not be compiled."""
    wanted = Q(project=project)
    if filters.status is not None:
        wanted &= Q(status=filters.status)
    if filters.role is not None:
        wanted &= Q(role=filters.role)
    if filters.agent is not None:
        wanted &= Q(agent_id=filters.agent)
    if filters.external_id:
        wanted &= Q(external_id__icontains=filters.external_id)
    failed = ContextReceipt.objects.filter(run=OuterRef("pk")).exclude(compile_error="")
    return (
        Run.objects.filter(wanted)
        .select_related("agent", "scribe_report")
        .defer("agent__charter", "scribe_report__promoted", "scribe_report__waiting")
        .annotate(compile_failed=Exists(failed))
        .order_by("-started_at", "-pk")
    )


@dataclass(frozen=True, slots=True)
class Tally:
    """How much one run wrote, and how often it was told something."""

    memories: int = 0
    entries: int = 0
    receipts: int = 0


def tallies(page: Sequence[Run]) -> dict[UUID, Tally]:
    """The tallies of the runs on one page; a run that did nothing has an empty one. Three queries, however many runs."""
    ids = [run.pk for run in page]
    memories = _per_run(AgentMemory.objects.filter(source_run__in=ids), "source_run")
    entries = _per_run(DecisionInboxEntry.objects.filter(source_run__in=ids), "source_run")
    receipts = _per_run(ContextReceipt.objects.filter(run__in=ids), "run")
    return {pk: Tally(memories.get(pk, 0), entries.get(pk, 0), receipts.get(pk, 0)) for pk in ids}


def _per_run(rows: QuerySet[Any], column: str) -> dict[UUID, int]:
    return dict(rows.order_by().values_list(column).annotate(number=Count("pk")))


def run_of(project: Project, run_id: UUID) -> Run:
    """One run of the project with its agent and parent; raises NotFound. One query."""
    run = Run.objects.select_related("agent", "parent__agent").filter(project=project, pk=run_id).first()
    if run is None:
        raise NotFound
    return run


@dataclass(frozen=True, slots=True)
class Some:
    """The first rows of a list and how many there are."""

    rows: Sequence[Any]
    total: int

    @property
    def more(self) -> int:
        return self.total - len(self.rows)


def some(rows: QuerySet[Any], shown: int = SHOWN) -> Some:
    """At most `shown` rows; counted only when there are more. One or two queries."""
    found = list(rows[: shown + 1])
    return Some(found[:shown], len(found) if len(found) <= shown else rows.count())


@dataclass(frozen=True, slots=True)
class Wrote:
    """What a run put into the ledger: its memories and entries as they are now, and what it changed of sessions."""

    memories: Some
    entries: Some
    sessions: Some
    decided: int
    """Events of a coordinator's decisions; the audit page lists them."""


def wrote_of(run: Run) -> Wrote:
    """What the run wrote. At most seven queries."""
    mine = {"project_id": run.project_id, "source_run": run}
    memories = AgentMemory.objects.filter(**mine).select_related("agent").order_by("created_at", "pk")
    entries = DecisionInboxEntry.objects.filter(**mine).select_related("agent").order_by("created_at", "pk")
    events = events_by(run)
    sessions = events.filter(target__startswith="session:").order_by("number")
    decided = events.filter(Q(action__startswith="decision.") | Q(action__in=_DECIDING)).count()
    return Wrote(some(memories), some(entries), some(sessions), decided)


_DECIDING = (
    "entry.merge",
    "entry.reject",
    "memory.merge",
    "memory.approve",
    "memory.refuse",
    "memory.retire",
)


def events_by(run: Run) -> QuerySet[LedgerEvent]:
    """The events written in the run's own name."""
    return LedgerEvent.objects.filter(project_id=run.project_id, actor=f"run:{run.pk}")


def events_about(project: Project, run_id: UUID) -> Q:
    """Events that a run or its scribe wrote, and those about the run itself."""
    return Q(actor__in=[f"run:{run_id}", f"{SCRIBE_PREFIX}{run_id}"]) | Q(target=f"run:{run_id}")


def children_of(run: Run) -> Some:
    """The runs this one started, oldest first."""
    return some(run.children.select_related("agent").order_by("started_at", "pk"))


def receipts_of_run(run: Run) -> QuerySet[Any]:
    """What the run was told, newest first: each with the size of its block and the number of rows in it, without the block."""
    rows = SnapshotRow.objects.filter(snapshot=OuterRef("snapshot")).order_by().values("snapshot")
    counted: QuerySet[Any] = (
        ContextReceipt.objects.filter(run=run)
        .select_related("snapshot")
        .defer("snapshot__block")
        .annotate(
            characters=Length("snapshot__block"), rows=rows.annotate(number=Count("pk")).values("number")
        )
        .order_by("-at", "-pk")
    )
    return counted


def credential_of(run: Run) -> RunCredential | None:
    """The run's credential; None when none was made. One query."""
    return RunCredential.objects.filter(run=run).first()


def report_of(run: Run) -> ScribeReport | None:
    """What followed the run's end; None while it runs. One query."""
    return ScribeReport.objects.filter(run=run).first()
