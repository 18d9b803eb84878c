"""Does the ledger still tell the truth? (SPEC 3, LedgerEvent; `manage.py verify_ledger`)

Three questions in one pass: does every event hash to its own key and chain to the one before, does the chain end where the
project says it ends, and does every row still read as the last event about it left it. A chain proves nothing to someone who
can rewrite all of it: keep a `Checkpoint` elsewhere and hand it back.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from django.db import connection, transaction
from django.db.models import F, QuerySet, TextField
from django.db.models.functions import Cast

from memory.ledger import KINDS, state_of, target_of
from memory.models import LedgerEvent, Project
from memory.models.event import digest
from memory.models.project import NO_HASH


@dataclass(frozen=True, slots=True)
class Broken:
    """The first thing that does not fit: an event by its number, or a row by its name."""

    number: int | None
    target: str
    problem: str


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """An anchor kept outside the database: where the chain stood at some moment."""

    project: str
    number: int
    hash: str


@dataclass(frozen=True, slots=True)
class Verification:
    """What checking one project found. `checked` counts events; `head` is the checkpoint of this moment."""

    valid: bool
    checked: int
    first_broken: Broken | None
    head: Checkpoint


class _Fault(Exception):
    def __init__(self, number: int | None, target: str, problem: str) -> None:
        super().__init__(problem)
        self.broken = Broken(number, target, problem)


def checkpoint(project: Project) -> Checkpoint:
    """Where the chain stands now."""
    return Checkpoint(str(project.pk), project.ledger_number, project.ledger_hash)


def verify(project: Project, anchor: Checkpoint | None = None) -> Verification:
    """Check one project's ledger from the first event to the last, and every row against it; memory stays flat in text.

    `anchor` is an earlier checkpoint: the chain must pass through it.
    """
    with transaction.atomic():
        # Nobody writes in between: the head, the events and the rows are of one moment.
        project = Project.objects.select_for_update(no_key=True).get(pk=project.pk)
        checked = 0
        states: dict[str, str] = {}
        broken = None
        try:
            for event in _chain(project, anchor):
                checked += 1
                if event.state:
                    states[event.target] = event.state
            _check_rows(project, states)
        except _Fault as fault:
            broken = fault.broken
        return Verification(broken is None, checked, broken, checkpoint(project))


def _chain(project: Project, anchor: Checkpoint | None) -> Iterator[LedgerEvent]:
    """The project's events in order; raises _Fault at the first that does not fit."""
    number, previous = 0, NO_HASH
    for event in _raw_events(project):
        number += 1
        if problem := _problem(event, number, previous):
            raise _Fault(number, event.target, problem)
        if anchor and anchor.number == number and anchor.hash != event.hash:
            raise _Fault(number, event.target, "the chain does not pass through the checkpoint")
        previous = event.hash
        yield event
    if (number, previous) != (project.ledger_number, project.ledger_hash):
        raise _Fault(
            number + 1,
            target_of(project),
            f"the ledger ends at {number}, the project at {project.ledger_number}",
        )
    if anchor and anchor.number > number:
        raise _Fault(
            number + 1,
            target_of(project),
            f"the checkpoint names event {anchor.number}, the ledger ends at {number}",
        )


def _raw_events(project: Project) -> Iterator[LedgerEvent]:
    events: QuerySet[LedgerEvent] = LedgerEvent.objects.filter(project=project).order_by("number", "hash")
    # SQLite keeps times as text, and several texts read as one time: compare the very bytes.
    raw = Cast("at", TextField()) if connection.vendor == "sqlite" else F("at")
    return events.annotate(raw_at=raw).iterator(chunk_size=500)


def _problem(event: Any, number: int, previous: str) -> str | None:
    if event.number != number:
        return f"event {number} is missing, event {event.number} stands in its place"
    if event.prev_hash != previous:
        return "it does not follow the event before it"
    if isinstance(event.raw_at, str) and event.raw_at != str(event.at.replace(tzinfo=None)):
        return "its time was changed"
    if event.computed_hash() != event.hash:
        return "its content does not match its hash"
    return None


def _check_rows(project: Project, states: dict[str, str]) -> None:
    """Every row must read as the last event about it says, and every event's row must be there."""
    left = dict(states)
    for row in _rows(project):
        name = target_of(row)
        expected = left.pop(name, None)
        if expected is None:
            raise _Fault(None, name, "the row was written outside the ledger")
        if digest(state_of(row)) != expected:
            raise _Fault(None, name, "the row does not read as the ledger left it")
    if left:
        raise _Fault(None, min(left), "the row is gone")


def _rows(project: Project) -> Iterator[Any]:
    yield project
    for model in KINDS:
        if model is not Project:
            rows: QuerySet[Any] = model._default_manager.filter(project=project)
            yield from rows.order_by("pk").iterator(chunk_size=500)
