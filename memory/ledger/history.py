"""What happened to a row, and who was told it (SPEC 7, history and receipts; SPEC 9, Audit).

The history is folded from the ledger alone, never from the row: someone who has only the events can retell it. Every step is
checked against the digest its event carries, so a history that does not add up says so.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

from django.db.models import Count, F, Max, Min, QuerySet

from memory.models import ContextReceipt, LedgerEvent, Project, SnapshotRow
from memory.models.event import digest

TOLD_LIMIT = 100
"""How many runs `told_runs` names; its `total` counts all of them, and `receipts_of` pages through every receipt."""

TOLD_KINDS = ("decision", "memory", "session")


@dataclass(frozen=True, slots=True)
class Changed:
    """One field of a row, before and after. `before` is what was proposed when a reviewer corrected an entry while merging."""

    field: str
    before: Any
    after: Any


@dataclass(frozen=True, slots=True)
class Revision:
    """A row as one event left it: who did what, why, what changed, and every value it had then.

    `number` is the event's number in the ledger, `revision` the row's own (a change that alters no text keeps it; None for rows
    that have none). `adds_up` says whether `values` match the digest that the event wrote down.
    """

    number: int
    at: datetime
    actor: str
    action: str
    reason: str
    revision: int | None
    values: dict[str, Any]
    changed: tuple[Changed, ...]
    adds_up: bool

    def as_json(self) -> dict[str, Any]:
        """As the API answers it."""
        return {
            "number": self.number, "at": _time(self.at), "actor": self.actor, "action": self.action,
            "reason": self.reason, "revision": self.revision, "values": self.values, "adds_up": self.adds_up,
            "changed": {c.field: {"before": c.before, "after": c.after} for c in self.changed},
        }  # fmt: skip


def revisions(project: Project, target: str) -> list[Revision]:
    """The history of a row by its ledger name (`memory:12`, `decision:7`, `entry:3`, `session:1` …), oldest first.

    Empty for a name the ledger does not know. One query.
    """
    events = LedgerEvent.objects.filter(project=project, target=target).exclude(state="").order_by("number")
    values: dict[str, Any] = {}
    told = []
    for event in events:
        before, after = json.loads(event.before), json.loads(event.after)
        values = {**values, **after}
        told.append(_revision(event, values, before, after))
    return told


def _revision(
    event: LedgerEvent, values: dict[str, Any], before: dict[str, Any], after: dict[str, Any]
) -> Revision:
    return Revision(
        number=event.number, at=event.at, actor=event.actor, action=event.action, reason=event.reason,
        revision=values.get("revision"), values=values,
        changed=tuple(Changed(name, before[name], after.get(name)) for name in sorted(before)),
        adds_up=digest(values) == event.state,
    )  # fmt: skip


def revision_at(project: Project, target: str, revision: int) -> Revision | None:
    """The last state of a row under one revision number, to compare what was told with what stands now; None when unknown."""
    return next((r for r in reversed(revisions(project, target)) if r.revision == revision), None)


# Who was told


def receipts_of(project: Project, kind: str, row_id: int) -> QuerySet[Any]:
    """Every `ContextReceipt` whose block held this `decision`, `memory` or `session`, newest first; page it.

    Each carries `told_revision` and `told_layer`, and has `run`, its agent and `snapshot` (without the block) loaded.
    """
    if kind not in TOLD_KINDS:
        raise ValueError(f"Only a {', '.join(TOLD_KINDS)} is ever told.")
    told = ContextReceipt.objects.filter(**{"project": project, f"snapshot__rows__{kind}_id": row_id})
    found: QuerySet[Any] = (
        told.annotate(told_revision=F("snapshot__rows__revision"), told_layer=F("snapshot__rows__layer"))
        .select_related("run__agent", "snapshot")
        .defer("snapshot__block")
        .order_by("-at", "-id")
    )
    return found


@dataclass(frozen=True, slots=True)
class ToldRun:
    """A run that was told a row: how often, from when to when, at which revisions of it."""

    run_id: UUID
    agent_name: str
    role: str
    status: str
    times: int
    first_at: datetime
    last_at: datetime
    revisions: tuple[int, ...]

    def as_json(self) -> dict[str, Any]:
        return {
            "run": str(self.run_id), "agent_name": self.agent_name, "role": self.role, "status": self.status,
            "times": self.times, "first_at": _time(self.first_at), "last_at": _time(self.last_at),
            "revisions": list(self.revisions),
        }  # fmt: skip


@dataclass(frozen=True, slots=True)
class ToldRuns:
    """The runs that were told a row, last told first; `total` counts those beyond the limit too."""

    total: int
    runs: tuple[ToldRun, ...]

    def as_json(self) -> dict[str, Any]:
        return {"total": self.total, "runs": [run.as_json() for run in self.runs]}


def told_runs(project: Project, kind: str, row_id: int, *, limit: int = TOLD_LIMIT) -> ToldRuns:
    """Which runs were told a row; at most three queries, however many there are.

    The answers of retire, refuse, supersede and archive carry it as `told_runs`: those runs worked with what is now withdrawn.
    """
    receipts = receipts_of(project, kind, row_id).order_by()
    columns = ("run", "run__agent__name", "run__role", "run__status")
    grouped = receipts.values(*columns).annotate(times=Count("pk"), first=Min("at"), last=Max("at"))
    rows = list(grouped.order_by("-last", "-run")[: limit + 1])
    total = len(rows) if len(rows) <= limit else receipts.aggregate(runs=Count("run", distinct=True))["runs"]
    seen = _revisions_told(receipts, [row["run"] for row in rows[:limit]])
    return ToldRuns(
        total,
        tuple(
            ToldRun(
                row["run"], row["run__agent__name"], row["run__role"], row["run__status"], row["times"],
                row["first"], row["last"], seen[row["run"]],
            )
            for row in rows[:limit]
        ),
    )  # fmt: skip


def _revisions_told(receipts: QuerySet[Any], runs: Iterable[UUID]) -> dict[UUID, tuple[int, ...]]:
    pairs = receipts.filter(run__in=list(runs)).values_list("run", "told_revision").distinct()
    told: dict[UUID, list[int]] = defaultdict(list)
    for run, revision in pairs.order_by("run", "told_revision"):
        told[run].append(revision)
    return {run: tuple(found) for run, found in told.items()}


def rows_told(receipt: ContextReceipt) -> list[SnapshotRow]:
    """What stood in a receipt's block, in the order of the layers; empty when nothing was told."""
    if receipt.snapshot_id is None:
        return []
    return list(SnapshotRow.objects.filter(snapshot_id=receipt.snapshot_id).order_by("layer", "pk"))


def _time(value: datetime) -> str:
    return value.astimezone(UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")
