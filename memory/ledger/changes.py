"""The one write path (SPEC 3, LedgerEvent; SPEC 10): lock the project, write the rows, append the chained events.

Every change of the product goes through `change()`. The project's row is the lock: whoever holds it is alone in that project, so
checks made inside the block hold until it commits, numbers have no gaps and the chain has no fork. Epoch, events and rows
commit together or not at all.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, TypeVar
from uuid import UUID

from django.db import models, transaction
from django.db.models import QuerySet

from memory.actors import Author, VerifiedRun
from memory.enums import RunStatus
from memory.errors import CredentialRefused, NotFound
from memory.models import (
    Agent,
    AgentMemory,
    Decision,
    DecisionInboxEntry,
    LedgerEvent,
    Project,
    Run,
    SessionContext,
)
from memory.models.event import canonical, digest

Row = Project | Agent | Run | AgentMemory | Decision | DecisionInboxEntry | SessionContext
R = TypeVar("R", bound=Row)

KINDS: dict[type[models.Model], str] = {
    Project: "project",
    Agent: "agent",
    Run: "run",
    AgentMemory: "memory",
    Decision: "decision",
    DecisionInboxEntry: "entry",
    SessionContext: "session",
}
"""How a row is named in the ledger: `{kind}:{primary key}`."""

_UNRECORDED: dict[type[models.Model], frozenset[str]] = {
    # The ledger's own bookkeeping: it changes with every event and is covered by the chain itself.
    Project: frozenset({"epoch", "ledger_number", "ledger_hash"}),
    # Computed by the database from the tags.
    AgentMemory: frozenset({"cross_team"}),
}

_BATCH = 500


def target_of(row: models.Model) -> str:
    """The ledger's name of a row, `memory:12`."""
    return f"{KINDS[type(row)]}:{row.pk}"


def recorded_fields(model: type[models.Model]) -> list[models.Field[Any, Any]]:
    """The columns that the ledger records of a table. A row's project is the ledger it stands in."""
    left_out = _UNRECORDED.get(model, frozenset()) | {"project"}
    return [
        column
        for column in model._meta.concrete_fields
        if column.name not in left_out and not column.primary_key
    ]


def state_of(row: models.Model) -> dict[str, Any]:
    """Every recorded column of a row as JSON values; times in UTC with microseconds."""
    return {column.attname: as_json(getattr(row, column.attname)) for column in recorded_fields(type(row))}


def as_json(value: Any) -> Any:
    """A column's value as the ledger writes it."""
    if isinstance(value, datetime):
        return value.astimezone(UTC).isoformat(timespec="microseconds")
    return str(value) if isinstance(value, (UUID, models.enums.Choices)) else value


@dataclass
class Change:
    """One open change: the locked project, who makes it, and the events it will append when it closes."""

    project: Project
    author: Author
    now: datetime
    events: list[LedgerEvent] = field(default_factory=list, repr=False)
    raises_epoch: bool = False

    @property
    def identity(self) -> str:
        return self.author.identity

    @contextmanager
    def acting_as(self, author: Author) -> Iterator[None]:
        """Write the events of a block in another author's name: the scribe's, or a finished coordinator's."""
        before, self.author = self.author, author
        try:
            yield
        finally:
            self.author = before

    @contextmanager
    def part(self) -> Iterator[None]:
        """A part that may fail alone: when the block raises, its rows and its events go back, the rest of the change stands."""
        events, epoch = len(self.events), self.raises_epoch
        number, last = self.project.ledger_number, self.project.ledger_hash
        try:
            with transaction.atomic():
                yield
        except BaseException:
            del self.events[events:]
            self.raises_epoch = epoch
            self.project.ledger_number, self.project.ledger_hash = number, last
            raise

    def insert(
        self,
        row: R,
        action: str,
        *,
        before: dict[str, Any] | None = None,
        reason: str = "",
        compiled: bool = True,
    ) -> R:
        """Write a new row and its event. `before`: what was proposed where it was corrected; `compiled`: whether it could alter a compiled context."""
        row.save(force_insert=True)
        self._append(action, row, before or {}, state_of(row), reason, compiled)
        return row

    def insert_all(self, rows: list[R], action: str, *, reason: str = "", compiled: bool = True) -> list[R]:
        """Write many new rows of one table, each with its own event."""
        manager: models.Manager[Any] = type(rows[0])._default_manager
        manager.bulk_create(rows, batch_size=_BATCH)
        for row in rows:
            self._append(action, row, {}, state_of(row), reason, compiled)
        return rows

    def update(
        self, row: R, action: str, values: dict[str, Any], *, reason: str = "", compiled: bool = True
    ) -> R:
        """Set `values` on a locked row and record what changed: exactly those columns, before and after."""
        old = state_of(row)
        for name, value in values.items():
            setattr(row, name, value)
        row.save(update_fields=list(values))
        if isinstance(row, AgentMemory) and "tags" in values:
            # Computed by the database; the caller's row must not remember the old answer.
            row.refresh_from_db(fields=["cross_team"])
        new = state_of(row)
        changed = [name for name in new if new[name] != old[name]]
        self._append(
            action, row, {n: old[n] for n in changed}, {n: new[n] for n in changed}, reason, compiled
        )
        return row

    def note(
        self, action: str, target: str, before: Any, after: Any, *, reason: str = "", compiled: bool = False
    ) -> None:
        """Record a change of something that is no row of the ledger's own tables, such as a grant."""
        self._event(action, target, before, after, "", reason, compiled)

    def _append(
        self, action: str, row: models.Model, before: Any, after: Any, reason: str, compiled: bool
    ) -> None:
        self._event(action, target_of(row), before, after, digest(state_of(row)), reason, compiled)

    def _event(
        self, action: str, target: str, before: Any, after: Any, state: str, reason: str, compiled: bool
    ) -> None:
        event = LedgerEvent(
            project_id=self.project.pk, number=self.project.ledger_number + 1, at=self.now, action=action,
            actor=self.identity, target=target, before=canonical(before), after=canonical(after),
            state=state, reason=reason, prev_hash=self.project.ledger_hash,
        )  # fmt: skip
        event.hash = event.computed_hash()
        self.project.ledger_number, self.project.ledger_hash = event.number, event.hash
        self.events.append(event)
        self.raises_epoch |= compiled

    def close(self) -> None:
        """Append the collected events and move the project's head; nothing to do when nothing changed."""
        if not self.events:
            return
        self.project.epoch += int(self.raises_epoch)
        LedgerEvent.objects.bulk_create(self.events, batch_size=_BATCH)
        self.project.save(update_fields=["epoch", "ledger_number", "ledger_hash"])


@contextmanager
def change(project_id: UUID, author: Author, now: datetime) -> Iterator[Change]:
    """Open the one kind of write transaction: the project is locked until it ends (SPEC 3 and 10).

    Raises NotFound when there is no such project, and CredentialRefused `run_ended` when the author is a run that ended
    between its authentication and the lock.
    """
    with transaction.atomic():
        project = Project.objects.select_for_update(no_key=True).filter(pk=project_id).first()
        if project is None:
            raise NotFound
        if isinstance(author, VerifiedRun):
            require_running(author)
        opened = Change(project, author, now)
        yield opened
        opened.close()


@contextmanager
def founding(project: Project, author: Author, now: datetime) -> Iterator[Change]:
    """Open the change that makes a project: its row is the first thing the ledger tells. Nobody else can know it yet."""
    with transaction.atomic():
        opened = Change(project, author, now)
        opened.insert(project, "project.create")
        yield opened
        opened.close()


def require_running(author: VerifiedRun) -> None:
    """A run's credential dies with the run, also when it ends while a request of its own waits for the lock."""
    if not Run.objects.filter(pk=author.run_id, status=RunStatus.RUNNING).exists():
        raise CredentialRefused("run_ended", "This run has ended.")


def locked(rows: QuerySet[Any], **lookup: Any) -> Any:
    """One row of an open change, locked; raises NotFound. The project's lock is already held, so this never waits for long."""
    row = rows.select_for_update(of=("self",), no_key=True).filter(**lookup).first()
    if row is None:
        raise NotFound
    return row
