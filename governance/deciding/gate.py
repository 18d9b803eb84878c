"""What every verb of a decider begins and ends with (SPEC 6): the right to decide asked under the lock, corrections, the approval.

Of any number of racing deciders one wins; the others get Conflict or Stale with the row as it is now.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from governance.people.policies import Action, require
from memory.actors import Actor
from memory.enums import (
    Importance,
    TrustState,
)
from memory.ledger.changes import Change, change
from memory.recording import (
    Tags,
    changed_values,
    require_revision,
    revise,
)
from memory.values import Cleaner, clean_tags, one_of


@dataclass(frozen=True, slots=True)
class Corrections:
    """What a reviewer may set right in the same step; None leaves a field as it is."""

    type: str | None = None
    importance: str | None = None
    tags: Tags | None = None


NO_CORRECTIONS = Corrections()


@contextmanager
def deciding(project_id: UUID, actor: Actor, now: datetime) -> Iterator[Change]:
    """An open change for someone who may decide. Raises NotFound, Refused `decider_required`."""
    with change(project_id, actor, now) as opened:
        require(actor, Action.DECIDE, opened.project)
        yield opened


def approved_by(opened: Change) -> dict[str, Any]:
    """The trust columns of a row the change's author approves."""
    return {"trust_state": TrustState.APPROVED, "approved_by": opened.identity, "approved_at": opened.now}


def require_read(row: Any, revision: int | None) -> None:
    """Putting a row away gives nothing authority, so the API need not name a revision; the pages always do. Raises Stale."""
    if revision is not None:
        require_revision(row, revision)


def approve(opened: Change, row: Any, action: str, revision: int, corrected: dict[str, Any]) -> Any:
    """Approve a locked row, or answer with it when that is done already; corrections make a new revision."""
    corrected = changed_values(row, corrected)
    settled = (
        row.trust_state == TrustState.APPROVED
        and not getattr(row, "approved_by_scribe", False)
        and not corrected
    )
    if settled and row.approved_by == opened.identity:
        return row
    require_revision(row, revision)
    if settled:
        return row
    values = {**corrected, **approved_by(opened)}
    if corrected:
        return revise(opened, row, action, values)
    return opened.update(row, action, {**values, "updated_at": opened.now})


def corrected_values(clean: Cleaner, corrections: Corrections, types: Any) -> dict[str, Any]:
    values: dict[str, Any] = {}
    if corrections.type is not None:
        values["type"] = clean("type", one_of(types), corrections.type)
    if corrections.importance is not None:
        values["importance"] = clean("importance", one_of(Importance), corrections.importance)
    if corrections.tags is not None:
        values["tags"] = clean("tags", clean_tags, corrections.tags)
    return values
