"""The verbs of deciders (SPEC 6): merge, reject, approve, refuse, create, edit, supersede, archive, retire.

Each locks the project, asks again whether the actor may decide, locks the row, checks what was read, writes, and appends the event
in one transaction. Of any number of racing deciders one wins; the others get Conflict or Stale with the row as it is now.
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
from memory.agents import agent_named
from memory.enums import (
    DecisionStatus,
    DecisionType,
    EntryStatus,
    EntryType,
    Importance,
    MemoryType,
    TrustState,
)
from memory.errors import Conflict, Invalid
from memory.ledger.changes import Change, as_json, change, locked
from memory.models import AgentMemory, Decision, DecisionInboxEntry
from memory.models.provenance import source_columns
from memory.recording import (
    Tags,
    changed_values,
    locked_memory,
    require_own_agent,
    require_revision,
    revise,
)
from memory.values import Cleaner, checked_text, clean_name, clean_reason, clean_tags, clean_title, one_of


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


# Inbox


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
        corrected = _corrected(clean, corrections, EntryType)
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


def approved_by(opened: Change) -> dict[str, Any]:
    """The trust columns of a row the change's author approves."""
    return {"trust_state": TrustState.APPROVED, "approved_by": opened.identity, "approved_at": opened.now}


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
        _require_read(entry, revision)
        rejected = {
            "status": EntryStatus.REJECTED,
            "reviewed_by": opened.identity,
            "reviewed_at": now,
            "reason": why,
        }
        return opened.update(entry, "entry.reject", rejected, reason=why, compiled=False)


def _require_read(row: Any, revision: int | None) -> None:
    """Putting a row away gives nothing authority, so the API need not name a revision; the pages always do. Raises Stale."""
    if revision is not None:
        require_revision(row, revision)


# Memories


def approve_memory(
    *,
    project_id: UUID,
    actor: Actor,
    memory_id: int,
    agent_name: str | None = None,
    revision: int,
    corrections: Corrections = NO_CORRECTIONS,
    now: datetime,
) -> AgentMemory:
    """Approve a memory, imported ones too, at the revision that was read.

    Approving twice answers with the row. An approval by the scribe counts for the row's own agent only, so a person can still
    approve over it. Raises NotFound, Refused, Invalid, Stale, Conflict when the memory is retired.
    """
    with Cleaner() as clean:
        corrected = _corrected(clean, corrections, MemoryType)
    with deciding(project_id, actor, now) as opened:
        memory = locked_memory(opened, memory_id, agent_name)
        if memory.is_retired:
            raise Conflict("A retired memory cannot be approved.", memory)
        approved: AgentMemory = _approve(opened, memory, "memory.approve", revision, corrected)
        return approved


def _approve(opened: Change, row: Any, action: str, revision: int, corrected: dict[str, Any]) -> Any:
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


def retire_memory(
    *,
    project_id: UUID,
    actor: Actor,
    memory_id: int,
    agent_name: str | None = None,
    reason: str,
    revision: int | None = None,
    now: datetime,
) -> AgentMemory:
    """Take a memory out of every later compile; the row and its history stay. Also how a legacy memory is refused.

    With a `revision` it must be the one that was read. Raises NotFound, Refused, Invalid, Stale, Conflict when it is retired already.
    """
    with Cleaner() as clean:
        why = clean("reason", clean_reason, reason)
    with deciding(project_id, actor, now) as opened:
        memory = locked_memory(opened, memory_id, agent_name)
        if memory.is_retired:
            if (memory.retired_by, memory.retire_reason) == (actor.identity, why):
                return memory
            raise Conflict(f"This memory was already retired by {memory.retired_by}.", memory)
        _require_read(memory, revision)
        retired = {"retired_at": now, "retired_by": opened.identity, "retire_reason": why, "updated_at": now}
        action = "memory.refuse" if memory.trust_state == TrustState.LEGACY else "memory.retire"
        return opened.update(memory, action, retired, reason=why)


# Decisions


def create_decision(
    *,
    project_id: UUID,
    actor: Actor,
    agent_name: str,
    type: str,
    title: str,
    content: str,
    rationale: str = "",
    tags: Tags = (),
    now: datetime,
) -> Decision:
    """A new decision, active and approved by whoever creates it. Raises Invalid, NotFound, Refused."""
    with Cleaner() as clean:
        name = clean("agent_name", clean_name, agent_name)
        decision = Decision(
            created_at=now, updated_at=now, **source_columns(actor.provenance),
            **_decision_values(clean, type=type, title=title, content=content, rationale=rationale, tags=tags),
        )  # fmt: skip
    with deciding(project_id, actor, now) as opened:
        require_own_agent(actor, name)
        decision.project, decision.agent = opened.project, agent_named(opened, name)
        for field, value in approved_by(opened).items():
            setattr(decision, field, value)
        return opened.insert(decision, "decision.create")


def edit_decision(
    *,
    project_id: UUID,
    actor: Actor,
    decision_id: int,
    revision: int,
    type: str | None = None,
    title: str | None = None,
    content: str | None = None,
    rationale: str | None = None,
    tags: Tags | None = None,
    now: datetime,
) -> Decision:
    """Change an active decision; whoever edits it approves it (SPEC 6, edit).

    A legacy decision is approved only by an edit of its content, never by changing something else. Raises Invalid, NotFound,
    Refused, Stale, Conflict when it is not active.
    """
    with Cleaner() as clean:
        values = _decision_values(
            clean, type=type, title=title, content=content, rationale=rationale, tags=tags
        )
    with deciding(project_id, actor, now) as opened:
        decision = locked_decision(opened, decision_id)
        require_revision(decision, revision)
        require_active(decision)
        values = changed_values(decision, values)
        if values and (decision.trust_state != TrustState.LEGACY or "content" in values):
            values |= approved_by(opened)
        edited: Decision = revise(opened, decision, "decision.edit", values)
        return edited


def _decision_values(clean: Cleaner, **given: Any) -> dict[str, Any]:
    cleaners: dict[str, Any] = {
        "type": one_of(DecisionType), "title": clean_title, "content": _content, "rationale": checked_text, "tags": clean_tags,
    }  # fmt: skip
    return {
        field: clean(field, cleaners[field], value) for field, value in given.items() if value is not None
    }


def _content(value: str) -> str:
    return checked_text(value, required=True)


def locked_decision(opened: Change, decision_id: int) -> Decision:
    """A decision of this project, locked; raises NotFound."""
    rows = Decision.objects.select_related("agent").filter(project=opened.project)
    decision: Decision = locked(rows, pk=decision_id)
    return decision


def require_active(decision: Decision) -> None:
    """Raises Conflict with the decision when it is superseded or archived."""
    if decision.status != DecisionStatus.ACTIVE:
        raise Conflict(f"This decision is {decision.status}.", decision)


def approve_decision(
    *,
    project_id: UUID,
    actor: Actor,
    decision_id: int,
    revision: int,
    corrections: Corrections = NO_CORRECTIONS,
    now: datetime,
) -> Decision:
    """Approve an active decision, imported ones too, at the revision that was read; type and tags may be corrected.

    Approving twice answers with the row. Raises NotFound, Refused, Invalid, Stale, Conflict when it is not active.
    """
    if corrections.importance is not None:
        raise Invalid({"importance": ["A decision has no importance."]})
    with Cleaner() as clean:
        corrected = _corrected(clean, corrections, DecisionType)
    with deciding(project_id, actor, now) as opened:
        decision = locked_decision(opened, decision_id)
        require_active(decision)
        approved: Decision = _approve(opened, decision, "decision.approve", revision, corrected)
        return approved


def supersede_decision(
    *,
    project_id: UUID,
    actor: Actor,
    decision_id: int,
    superseded_by: int,
    reason: str,
    revision: int | None = None,
    now: datetime,
) -> Decision:
    """Let another decision of the project take this one's place: it leaves the next compile, its history stays.

    With a `revision` it must be the one that was read. Raises NotFound, Refused, Invalid (unknown successor, itself, or a circle),
    Stale, Conflict when it is not active.
    """
    with Cleaner() as clean:
        why = clean("reason", clean_reason, reason)
    with deciding(project_id, actor, now) as opened:
        decision = locked_decision(opened, decision_id)
        require_active(decision)
        _require_read(decision, revision)
        successor = _successor(decision, superseded_by)
        values = {"status": DecisionStatus.SUPERSEDED, "superseded_by": successor, "updated_at": now}
        return opened.update(decision, "decision.supersede", values, reason=why)


def _successor(decision: Decision, successor_id: int) -> Decision:
    """The decision that takes over. Only an active one can, so no circle can close: nothing leads on from it."""
    successor = Decision.objects.filter(project_id=decision.project_id, pk=successor_id).first()
    if successor is None:
        raise Invalid({"superseded_by": ["There is no such decision in this project."]})
    if successor.pk == decision.pk:
        raise Invalid({"superseded_by": ["A decision cannot supersede itself."]})
    if successor.status != DecisionStatus.ACTIVE:
        raise Conflict(f"The decision that should take over is {successor.status}.", successor)
    return successor


def archive_decision(
    *,
    project_id: UUID,
    actor: Actor,
    decision_id: int,
    reason: str,
    revision: int | None = None,
    now: datetime,
) -> Decision:
    """Put an active decision away; also how a legacy decision is refused.

    With a `revision` it must be the one that was read. Raises NotFound, Refused, Invalid, Stale, Conflict.
    """
    with Cleaner() as clean:
        why = clean("reason", clean_reason, reason)
    with deciding(project_id, actor, now) as opened:
        decision = locked_decision(opened, decision_id)
        require_active(decision)
        _require_read(decision, revision)
        action = "decision.refuse" if decision.trust_state == TrustState.LEGACY else "decision.archive"
        values = {"status": DecisionStatus.ARCHIVED, "updated_at": now}
        return opened.update(decision, action, values, reason=why)


def _corrected(clean: Cleaner, corrections: Corrections, types: Any) -> dict[str, Any]:
    values: dict[str, Any] = {}
    if corrections.type is not None:
        values["type"] = clean("type", one_of(types), corrections.type)
    if corrections.importance is not None:
        values["importance"] = clean("importance", one_of(Importance), corrections.importance)
    if corrections.tags is not None:
        values["tags"] = clean("tags", clean_tags, corrections.tags)
    return values
