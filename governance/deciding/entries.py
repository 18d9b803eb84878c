"""Deciding about inbox entries (SPEC 6): merge (promote) and reject. Both are final, in one transaction, once."""

from __future__ import annotations

from datetime import datetime
from typing import Any
from uuid import UUID

from governance.deciding.gate import (
    NO_CORRECTIONS,
    Corrections,
    approved_by,
    corrected_values,
    deciding,
    require_read,
)
from memory.actors import Actor
from memory.enums import (
    EntryStatus,
    EntryType,
)
from memory.errors import Conflict
from memory.ledger.changes import Change, as_json, locked
from memory.models import AgentMemory, Decision, DecisionInboxEntry
from memory.recording import (
    changed_values,
    require_revision,
)
from memory.values import Cleaner, clean_reason


def merge_entry(
    *,
    project_id: UUID,
    actor: Actor,
    entry_id: int,
    revision: int,
    corrections: Corrections = NO_CORRECTIONS,
    now: datetime,
) -> Decision | AgentMemory:
    """Merge (promote) a pending entry into an active, approved decision or an approved memory; the new row.

    The same actor merging again gets the same row. Raises NotFound, Refused, Invalid, Stale, Conflict.
    """
    with Cleaner() as clean:
        corrected = corrected_values(clean, corrections, EntryType)
    with deciding(project_id, actor, now) as opened:
        entry = locked_entry(opened, entry_id)
        if entry.status == EntryStatus.MERGED and entry.reviewed_by == actor.identity:
            return merged_row(entry)
        require_pending(entry)
        require_revision(entry, revision)
        return promote(opened, entry, corrected)


def locked_entry(opened: Change, entry_id: int) -> DecisionInboxEntry:
    """An entry of this project, locked; raises NotFound."""
    rows = DecisionInboxEntry.objects.select_related("agent", "decision__agent", "memory__agent")
    entry: DecisionInboxEntry = locked(rows.filter(project=opened.project), pk=entry_id)
    return entry


def require_pending(entry: DecisionInboxEntry) -> None:
    """A decision about an entry is final. Raises Conflict with the entry."""
    if entry.status != EntryStatus.PENDING:
        raise Conflict(f"This entry was already {entry.status} by {entry.reviewed_by}.", entry)


def merged_row(entry: DecisionInboxEntry) -> Decision | AgentMemory:
    """What a merged entry became."""
    row = entry.decision or entry.memory
    if row is None:
        raise Conflict("This entry was not merged.", entry)
    return row


def promote(opened: Change, entry: DecisionInboxEntry, corrected: dict[str, Any]) -> Decision | AgentMemory:
    """The row a locked pending entry becomes; the change's author approves it. Provenance is the entry's."""
    values = {"type": entry.type, "importance": entry.importance, "tags": entry.tags, **corrected}
    if EntryType(values["type"]).becomes_decision:
        row: Decision | AgentMemory = _decision_from(opened, entry, values)
        outcome: dict[str, Any] = {"decision": row}
    else:
        row = _memory_from(opened, entry, values)
        outcome = {"memory": row}
    reviewed = {"status": EntryStatus.MERGED, "reviewed_by": opened.identity, "reviewed_at": opened.now}
    opened.update(entry, "entry.merge", {**outcome, **reviewed}, compiled=False)
    return row


def _decision_from(opened: Change, entry: DecisionInboxEntry, values: dict[str, Any]) -> Decision:
    decision = Decision(
        agent=entry.agent, type=values["type"], tags=values["tags"], title=entry.title, content=entry.content,
        rationale=entry.rationale, **_copied(opened, entry),
    )  # fmt: skip
    return opened.insert(decision, "decision.merge", before=_proposed(entry, values))


def _memory_from(opened: Change, entry: DecisionInboxEntry, values: dict[str, Any]) -> AgentMemory:
    memory = AgentMemory(
        agent=entry.agent, type=values["type"], importance=values["importance"], tags=values["tags"],
        content=entry.content, **_copied(opened, entry),
    )  # fmt: skip
    return opened.insert(memory, "memory.merge", before=_proposed(entry, values))


def _proposed(entry: DecisionInboxEntry, values: dict[str, Any]) -> dict[str, Any]:
    """What the entry said where the reviewer decided otherwise: the event keeps both (SPEC 6, merge)."""
    return {field: as_json(getattr(entry, field)) for field in changed_values(entry, values)}


def _copied(opened: Change, entry: DecisionInboxEntry) -> dict[str, Any]:
    return {
        "project": opened.project, "created_at": opened.now, "updated_at": opened.now,
        "source_kind": entry.source_kind, "source_identity": entry.source_identity, "source_run": entry.source_run,
        **approved_by(opened),
    }  # fmt: skip


def reject_entry(
    *, project_id: UUID, actor: Actor, entry_id: int, reason: str, revision: int | None = None, now: datetime
) -> DecisionInboxEntry:
    """Reject a pending entry; the row stays and its agent can read the reason.

    The same actor rejecting again for the same reason gets the same row. Raises NotFound, Refused, Invalid, Stale, Conflict.
    """
    with Cleaner() as clean:
        why = clean("reason", clean_reason, reason)
    with deciding(project_id, actor, now) as opened:
        entry = locked_entry(opened, entry_id)
        if (entry.status, entry.reviewed_by, entry.reason) == (EntryStatus.REJECTED, actor.identity, why):
            return entry
        require_pending(entry)
        require_read(entry, revision)
        rejected = {
            "status": EntryStatus.REJECTED,
            "reviewed_by": opened.identity,
            "reviewed_at": now,
            "reason": why,
        }
        return opened.update(entry, "entry.reject", rejected, reason=why, compiled=False)
