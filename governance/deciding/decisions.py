"""Deciding about decisions (SPEC 6): create, edit, approve, supersede, archive, refuse."""

from __future__ import annotations

from datetime import datetime
from typing import Any
from uuid import UUID

from governance.deciding.gate import (
    NO_CORRECTIONS,
    Corrections,
    approve,
    approved_by,
    corrected_values,
    deciding,
    require_read,
)
from memory.actors import Actor
from memory.agents import agent_named
from memory.enums import (
    DecisionStatus,
    DecisionType,
    TrustState,
)
from memory.errors import Conflict, Invalid
from memory.ledger.changes import Change, locked
from memory.models import Decision
from memory.models.provenance import source_columns
from memory.recording import (
    Tags,
    changed_values,
    require_own_agent,
    require_revision,
    revise,
)
from memory.values import Cleaner, checked_text, clean_name, clean_reason, clean_tags, clean_title, one_of


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
        corrected = corrected_values(clean, corrections, DecisionType)
    with deciding(project_id, actor, now) as opened:
        decision = locked_decision(opened, decision_id)
        require_active(decision)
        approved: Decision = approve(opened, decision, "decision.approve", revision, corrected)
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
        require_read(decision, revision)
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
        require_read(decision, revision)
        action = "decision.refuse" if decision.trust_state == TrustState.LEGACY else "decision.archive"
        values = {"status": DecisionStatus.ARCHIVED, "updated_at": now}
        return opened.update(decision, action, values, reason=why)
