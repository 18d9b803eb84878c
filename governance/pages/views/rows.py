"""A waiting row as a page draws it: the row, what to watch out for, and what went wrong with the last attempt."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from governance.deciding.differences import FieldChange, fields_between
from governance.deciding.flags import Flag
from governance.deciding.lookalikes import Lookalike
from memory.enums import DecisionStatus, EntryStatus, TrustState
from memory.errors import Conflict, DomainError, Stale
from memory.ledger.changes import KINDS, state_of, target_of
from memory.ledger.history import revision_at
from memory.models import AgentMemory, Decision, DecisionInboxEntry, Project

Row = DecisionInboxEntry | Decision | AgentMemory

FIELDS = ("title", "content", "rationale", "type", "importance", "tags", "status")


@dataclass(frozen=True, slots=True)
class WaitingRow:
    """One row of a queue. `problem` says in a sentence why the last attempt failed, `changes` what the reader had not seen."""

    row: Row
    flags: Sequence[Flag] = ()
    lookalikes: Sequence[Lookalike] = ()
    problem: str = ""
    changes: Sequence[FieldChange] = ()
    errors: Mapping[str, Sequence[str]] = field(default_factory=dict)
    reason: str = ""
    """What the reader typed, kept."""
    picked: bool = False

    @property
    def kind(self) -> str:
        """`entry`, `decision` or `memory`."""
        return KINDS[type(self.row)]

    @property
    def name(self) -> str:
        """Unique on a page, fit for an id: `memory-12`."""
        return f"{self.kind}-{self.row.pk}"

    @property
    def is_open(self) -> bool:
        """Whether anything can still be decided about it."""
        if isinstance(self.row, AgentMemory):
            return not self.row.is_retired
        return self.row.status in (EntryStatus.PENDING, DecisionStatus.ACTIVE)

    @property
    def awaits_approval(self) -> bool:
        """Whether nobody with the right has approved it; the scribe's word holds for the row's own agent only."""
        if isinstance(self.row, DecisionInboxEntry):
            return self.is_open
        return self.row.trust_state != TrustState.APPROVED or getattr(self.row, "approved_by_scribe", False)

    @property
    def away(self) -> str:
        """The word for putting it away."""
        if isinstance(self.row, DecisionInboxEntry):
            return "Reject"
        if self.row.trust_state == TrustState.LEGACY:
            return "Refuse"
        return "Archive" if isinstance(self.row, Decision) else "Retire"


def texts_of(row: Row) -> tuple[str, ...]:
    """What a reader is asked to believe."""
    if isinstance(row, AgentMemory):
        return (row.content,)
    return row.title, row.content, row.rationale


def changes_since(project: Project, row: Any, revision: int) -> tuple[FieldChange, ...]:
    """What changed in a row since a revision of it was read. One query; empty when the ledger does not know that revision."""
    read = revision_at(project, target_of(row), revision)
    return fields_between(read.values, state_of(row), FIELDS) if read is not None else ()


def sentence_for(error: DomainError) -> str:
    """Why nothing was done, for a person."""
    if isinstance(error, Stale):
        return "The text changed since you read it, so nothing was done. See what changed, then decide again."
    if isinstance(error, Conflict):
        return f"Nothing was done: {error.detail[0].lower()}{error.detail[1:]}"
    return error.detail
