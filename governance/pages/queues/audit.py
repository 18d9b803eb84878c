"""The ledger as an auditor reads it, and the way from a row back to its source (SPEC 9, Audit)."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from django.db import models
from django.db.models import Q, QuerySet

from governance.deciding.differences import FieldChange, as_text, fields_between
from governance.pages.queues.runs import events_about
from memory.errors import NotFound
from memory.ledger.changes import KINDS
from memory.ledger.history import Revision, revisions
from memory.models import AgentMemory, Decision, DecisionInboxEntry, ImportedRecord, LedgerEvent, Project
from memory.values import looks_like_uuid

PAGE_SIZE = 50
SHORT = 60
"""Characters of a value that a list shows; the event's page shows all of it."""
NAMED = 3
"""Changed fields named in a list."""
TELLING = (
    "title",
    "name",
    "slug",
    "session_id",
    "content",
    "focus_area",
    "status",
    "trust_state",
    "type",
    "role",
)
"""What a list names first of a change."""
PLUMBING = frozenset(
    {
        "agent_id", "project_id", "key", "revision", "source_kind", "source_identity", "source_run_id", "created_at",
        "updated_at", "started_at", "ended_at", "approved_at", "reviewed_at", "retired_at",
    }
)  # fmt: skip
"""What a list leaves to the event's own page, unless the event changed nothing else."""

ACTIONS = (
    "agent.charter", "agent.create", "decision.approve", "decision.archive", "decision.create", "decision.edit",
    "decision.import", "decision.merge", "decision.refuse", "decision.supersede", "entry.import", "entry.merge",
    "entry.reject", "entry.submit", "entry.update", "member.grant", "member.revoke", "memory.approve", "memory.edit",
    "memory.import", "memory.merge", "memory.record", "memory.refuse", "memory.retire", "project.create",
    "project.import", "project.update", "run.finish", "run.register", "run.revoke_credential", "run.scribe", "run.told",
    "session.end", "session.import", "session.start", "session.update",
)  # fmt: skip
"""What can have happened. The name before the dot is the kind of row it happened to."""


@dataclass(frozen=True, slots=True)
class EventFilters:
    """What the reader narrows the ledger to; an empty value leaves a filter out. `action` may end in a dot: `decision.`"""

    action: str = ""
    actor: str = ""
    target: str = ""
    run: UUID | None = None
    since: datetime | None = None
    until: datetime | None = None


@dataclass(frozen=True, slots=True)
class Changed:
    """One field as a list shows it: shortened, before and after."""

    field: str
    before: str
    after: str


@dataclass(frozen=True, slots=True)
class ListedEvent:
    """An event with the first fields it changed; `more` counts the others."""

    event: LedgerEvent
    changed: Sequence[Changed]
    more: int


@dataclass(frozen=True, slots=True)
class EventPage:
    """Events, newest first; `next` is the number to go on below, None at the end."""

    events: Sequence[ListedEvent]
    next: int | None


def events(project: Project, filters: EventFilters, below: int | None = None) -> EventPage:
    """A page of the ledger, by the events' own numbers. One query."""
    rows = LedgerEvent.objects.filter(_wanted(project, filters), project=project)
    if below is not None:
        rows = rows.filter(number__lt=below)
    found = list(rows.order_by("-number")[: PAGE_SIZE + 1])
    following = found[PAGE_SIZE - 1].number if len(found) > PAGE_SIZE else None
    return EventPage([_listed(event) for event in found[:PAGE_SIZE]], following)


def _wanted(project: Project, filters: EventFilters) -> Q:
    wanted = Q()
    if filters.action.endswith("."):
        # Named one by one an index finds them, also where they are few in a long ledger.
        wanted &= Q(action__in=[action for action in ACTIONS if action.startswith(filters.action)])
    elif filters.action:
        wanted &= Q(action=filters.action)
    if filters.actor:
        wanted &= Q(actor=filters.actor)
    if filters.target:
        wanted &= Q(target=filters.target)
    if filters.run is not None:
        wanted &= events_about(project, filters.run)
    if filters.since is not None:
        wanted &= Q(at__gte=filters.since)
    if filters.until is not None:
        wanted &= Q(at__lt=filters.until)
    return wanted


def _listed(event: LedgerEvent) -> ListedEvent:
    before, after = sides_of(event)
    fields = [name for name in _fields(before, after) if _short(before.get(name)) != _short(after.get(name))]
    named = _telling(fields)[:NAMED]
    shown = tuple(Changed(name, _short(before.get(name)), _short(after.get(name))) for name in named)
    return ListedEvent(event, shown, len(fields) - len(shown))


def _telling(fields: list[str]) -> list[str]:
    """The fields that say most come first; times and keys only where there is nothing else."""
    told = [name for name in fields if name not in PLUMBING]
    return sorted(told or fields, key=lambda name: TELLING.index(name) if name in TELLING else len(TELLING))


def _short(value: Any) -> str:
    text = " ".join(as_text(value)[: SHORT * 4].split())
    return text if len(text) <= SHORT else f"{text[: SHORT - 1]}…"


def sides_of(event: LedgerEvent) -> tuple[dict[str, Any], dict[str, Any]]:
    """What the event says was before and is after; nothing on a side that says nothing."""
    return tuple(json.loads(side) or {} for side in (event.before, event.after))  # type: ignore[return-value]


def _fields(before: dict[str, Any], after: dict[str, Any]) -> list[str]:
    return [*after, *(name for name in before if name not in after)]


def event_of(project: Project, number: int) -> LedgerEvent:
    """One event by its number; raises NotFound. One query."""
    event = LedgerEvent.objects.filter(project=project, number=number).first()
    if event is None:
        raise NotFound
    return event


def changes_of(event: LedgerEvent) -> tuple[FieldChange, ...]:
    """What the event changed, whole, field by field."""
    before, after = sides_of(event)
    return fields_between(before, after, _fields(before, after))


# From a row to its source


@dataclass(frozen=True, slots=True)
class Approval:
    """Who approved a row, when, why, and which revision they had read (None when it was written approved)."""

    by: str
    at: datetime
    number: int
    revision: int | None
    reason: str


@dataclass(frozen=True, slots=True)
class Trail:
    """A row, where it came from, who gave it authority, and everything that happened to it."""

    kind: str
    row: Any
    imported: ImportedRecord | None
    entry: DecisionInboxEntry | None
    """The inbox entry a decision or memory was merged from."""
    approval: Approval | None
    steps: Sequence[Revision]


def trail_of(project: Project, kind: str, row_id: str) -> Trail:
    """Follow a row of the ledger; raises NotFound. At most four queries."""
    row = _row(project, kind, row_id)
    steps = revisions(project, f"{kind}:{row.pk}")
    return Trail(kind, row, _imported(row), _entry(row), _approval(row, steps), steps)


_MODELS: dict[str, type[models.Model]] = {kind: model for model, kind in KINDS.items()}
_RELATED = {
    "decision": ("agent", "source_run__agent", "superseded_by"),
    "memory": ("agent", "source_run__agent", "session"),
    "entry": ("agent", "source_run__agent", "decision", "memory"),
    "session": ("source_run__agent",),
    "run": ("agent", "parent"),
    "agent": (),
    "project": (),
}


def _row(project: Project, kind: str, row_id: str) -> Any:
    if kind not in _MODELS or not _is_key(kind, row_id):
        raise NotFound
    rows: QuerySet[Any] = _MODELS[kind]._default_manager.select_related(*_RELATED[kind])
    row = rows.filter(pk=row_id, **({} if kind == "project" else {"project": project})).first()
    if row is None or (kind == "project" and row.pk != project.pk):
        raise NotFound
    return row


def _is_key(kind: str, row_id: str) -> bool:
    if kind in ("run", "project"):
        return looks_like_uuid(row_id)
    return row_id.isascii() and row_id.isdigit() and len(row_id) <= 18


def _imported(row: Any) -> ImportedRecord | None:
    """The record of the file a row was read from, with the record whose text it replaced."""
    kind = KINDS[type(row)]
    if kind not in ("decision", "memory", "entry", "session"):
        return None
    return ImportedRecord.objects.select_related("replaces").filter(**{kind: row}).first()


def _entry(row: Any) -> DecisionInboxEntry | None:
    if not isinstance(row, (Decision, AgentMemory)):
        return None
    return DecisionInboxEntry.objects.filter(**{KINDS[type(row)]: row}).first()


def _approval(row: Any, steps: Sequence[Revision]) -> Approval | None:
    """The event that set the stamps the row has now."""
    if not isinstance(row, (Decision, AgentMemory)) or row.approved_at is None:
        return None
    stamp = next((s.values.get("approved_at") for s in reversed(steps)), None)
    for index, step in enumerate(steps):
        if step.values.get("approved_at") == stamp:
            read = steps[index - 1].revision if index else None
            return Approval(row.approved_by, row.approved_at, step.number, read, step.reason)
    return None
