"""Does the ledger still tell the truth? (SPEC 3, LedgerEvent; `manage.py verify_ledger`)

Five questions in one pass over one moment: does every event hash to its own key and chain to the one before, does the chain end
where the project says it ends, does every row still read as the last event about it left it, does every block that a run was told
still hash to its name, and are the receipts of every run that ended those that its end wrote down. A chain proves nothing to
someone who can rewrite all of it: keep a `Checkpoint` elsewhere and hand it back (docs/ledger.md).
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass

from django.db import DataError

from memory.ledger import stored, told
from memory.ledger.changes import KINDS, target_of
from memory.models import ContextReceipt, ContextSnapshot, LedgerEvent, Project, SnapshotRow
from memory.models.event import canonical, digest
from memory.models.project import NO_HASH


@dataclass(frozen=True, slots=True)
class Broken:
    """The first thing that does not fit, by its name in the ledger; `number` is the event, or the last event about the row."""

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

    `anchor` is an earlier checkpoint of this project: the chain must pass through it. Writers are not kept waiting, unless the
    caller is in a transaction already. Raises ValueError for another project's checkpoint.
    """
    if anchor is not None and anchor.project != str(project.pk):
        raise ValueError("The checkpoint is of another project.")
    with stored.one_moment(project) as current:
        checked, states = 0, _States()
        broken = None
        try:
            for event in _chain(current, anchor):
                checked += 1
                states.saw(event)
            _check_rows(current, states)
            _check_snapshots(current)
            _check_receipts(current, states)
        except _Fault as fault:
            broken = fault.broken
        except DataError:
            broken = Broken(None, target_of(current), "a stored value cannot be read")
        return Verification(broken is None, checked, broken, checkpoint(current))


def verify_newest(project: Project, most: int) -> Verification:
    """Check that the newest events, at most so many, hash to their keys, are chained, and end where the project says.

    It says nothing of older events and of the rows: for somebody who waits, where `verify` would take minutes.
    """
    with stored.one_moment(project) as current:
        after = max(current.ledger_number - most, 0)
        checked, broken = 0, None
        try:
            for _ in _chain(current, None, after):
                checked += 1
        except _Fault as fault:
            broken = fault.broken
        except DataError:
            broken = Broken(None, target_of(current), "a stored value cannot be read")
        return Verification(broken is None, checked, broken, checkpoint(current))


# The chain


def _chain(project: Project, anchor: Checkpoint | None, after: int = 0) -> Iterator[LedgerEvent]:
    """The project's events past a number, in order; raises _Fault at the first that does not fit."""
    number, previous = after, _hash_of(project, after)
    for found, target, event in stored.events(project, after):
        number += 1
        if found != number:
            raise _Fault(number, str(target), f"event {number} is missing, event {found} stands in its place")
        if isinstance(event, stored.Unreadable):
            raise _Fault(number, str(target), str(event))
        if problem := _problem(project, event, previous, anchor):
            raise _Fault(number, event.target, problem)
        previous = event.hash
        yield event
    _check_end(project, anchor, number, previous)


def _hash_of(project: Project, number: int) -> str:
    """The key of the event that a piece of the chain has to follow; no hash at all when it is not there, which none follows."""
    if number == 0:
        return NO_HASH
    keys = LedgerEvent.objects.filter(project=project, number=number).values_list("hash", flat=True)
    return keys.first() or ""


def _problem(project: Project, event: LedgerEvent, previous: str, anchor: Checkpoint | None) -> str | None:
    if event.prev_hash != previous:
        return "it does not follow the event before it"
    if event.computed_hash() != event.hash:
        return "its content does not match its hash"
    if event.number > project.ledger_number:
        return f"it stands after the project's last event, {project.ledger_number}"
    if anchor and anchor.number == event.number and anchor.hash != event.hash:
        return "the chain does not pass through the checkpoint"
    return None


def _check_end(project: Project, anchor: Checkpoint | None, number: int, last: str) -> None:
    name = target_of(project)
    if number < project.ledger_number:
        missing = f"the ledger ends at event {number}, the project's last event is {project.ledger_number}"
        raise _Fault(number + 1, name, missing)
    if last != project.ledger_hash:
        raise _Fault(number, name, "the project names another last event")
    if anchor and anchor.number > number:
        cut = f"the checkpoint names event {anchor.number}, the ledger ends at event {number}"
        raise _Fault(number + 1, name, cut)
    if anchor and anchor.number == 0 and anchor.hash != NO_HASH:
        raise _Fault(0, name, "the chain does not pass through the checkpoint")


# The rows


class _States:
    """What the ledger says of every row: the number of the last event about it and the digest it left."""

    def __init__(self) -> None:
        self.left: dict[str, tuple[int, str]] = {}
        self.told: dict[str, tuple[int, str]] = {}
        """What the end of every run says it was told."""

    def saw(self, event: LedgerEvent) -> None:
        if event.action == told.ACTION:
            self.told[event.target] = (event.number, event.after)
        if event.state:
            self.left[event.target] = (event.number, event.state)


def _check_rows(project: Project, states: _States) -> None:
    """Every row must read as the last event about it says, and every event's row must be there."""
    for model, kind in KINDS.items():
        for key, found in stored.row_digests(model, project):
            name = f"{kind}:{key}"
            number, expected = states.left.pop(name, (None, None))
            if expected is None:
                raise _Fault(None, name, "the row was written outside the ledger")
            if isinstance(found, stored.Unreadable):
                raise _Fault(number, name, str(found))
            if found != expected:
                raise _Fault(number, name, f"the row does not read as event {number} left it")
    if states.left:
        name, (number, _) = min(states.left.items(), key=lambda item: item[1])
        raise _Fault(number, name, "the row is gone")


# What runs were told


def _check_snapshots(project: Project) -> None:
    """Every block that was told must hash to its name, and its rows to theirs."""
    snapshots = ContextSnapshot.objects.filter(project=project).order_by("pk").prefetch_related("rows")
    for snapshot in snapshots.iterator(chunk_size=100):
        name = f"snapshot:{snapshot.pk}"
        if hashlib.sha256(snapshot.block.encode("utf-8", "surrogateescape")).hexdigest() != snapshot.sha256:
            raise _Fault(None, name, "the block that was told does not match its hash")
        rows = sorted(snapshot.rows.all(), key=lambda row: row.pk)
        if digest([_row(row) for row in rows]) != snapshot.rows_sha256:
            raise _Fault(None, name, "the rows of the block do not match their hash")


def _row(row: SnapshotRow) -> list[str | int | None]:
    kind = "decision" if row.decision_id else "memory" if row.memory_id else "session"
    return [kind, getattr(row, f"{kind}_id"), row.revision, row.layer]


def _check_receipts(project: Project, states: _States) -> None:
    """The receipts of a run that ended must be those its end wrote down; of a running one nothing is known yet."""
    proofs = _proofs(project)
    for name, (number, expected) in states.told.items():
        if canonical(proofs.get(name, told.Proof()).as_json()) != expected:
            raise _Fault(number, name, f"what the run was told is not what event {number} wrote down")


def _proofs(project: Project) -> dict[str, told.Proof]:
    """The proof of every run with receipts, from the columns as they are stored."""
    proofs: dict[str, told.Proof] = {}
    receipts = ContextReceipt.objects.filter(project=project).order_by("pk")
    shown = receipts.values_list("run", "snapshot__sha256", "snapshot__rows_sha256")
    rows = stored.row_digests(ContextReceipt, project)
    for (key, found), (run, *digests) in zip(rows, shown.iterator(chunk_size=500), strict=True):
        if isinstance(found, stored.Unreadable):
            raise _Fault(None, f"receipt:{key}", str(found))
        name = f"run:{run}"
        proofs[name] = proofs.get(name, told.Proof()).then(key, found, *digests)
    return proofs
