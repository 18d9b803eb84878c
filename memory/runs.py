"""Registering and ending runs (SPEC 3, Run). Credentials are made above, in `governance.people.credentials`."""

from __future__ import annotations

from datetime import datetime
from uuid import UUID

from django.db.models import Max

from memory.agents import agent_named, set_charter
from memory.enums import RunRole, RunStatus
from memory.errors import Conflict, Invalid, NotFound
from memory.ledger import told
from memory.ledger.changes import Change, target_of
from memory.models import Agent, DecisionInboxEntry, Run
from memory.values import MAX_EXTERNAL_ID, Cleaner, checked_text, clean_name, clean_title, one_of

ENDED = (RunStatus.COMPLETED, RunStatus.FAILED, RunStatus.CANCELLED)


def register_run(
    opened: Change,
    *,
    agent_name: str,
    role: str = RunRole.WORKER,
    parent_run_id: UUID | None = None,
    external_id: str | None = None,
    charter: str | None = None,
) -> tuple[Run, bool]:
    """The run and whether it is new. Same `external_id`: the run that has it (SPEC 7). `charter` becomes the agent's.

    Raises Invalid; Conflict when `external_id` belongs to a run that ended or that is another agent's, role's or parent's.
    """
    with Cleaner() as clean:
        name = clean("agent_name", clean_name, agent_name)
        kind = clean("role", one_of(RunRole), role)
        text = clean("charter", checked_text, charter) if charter is not None else None
        outside = clean("external_id", _external_id, external_id) if external_id is not None else None
    parent = _parent(opened, parent_run_id, kind)
    agent = agent_named(opened, name)
    if text is not None:
        set_charter(opened, agent, text)
    existing = (
        Run.objects.select_related("agent").filter(project=opened.project, external_id=outside).first()
        if outside
        else None
    )
    if existing is not None:
        return _same_run(existing, agent, kind, parent), False
    run = Run(
        project=opened.project,
        agent=agent,
        role=kind,
        parent=parent,
        external_id=outside,
        started_at=opened.now,
    )
    return opened.insert(run, "run.register", compiled=False), True


def _external_id(value: str) -> str:
    return clean_title(value, MAX_EXTERNAL_ID)


def _parent(opened: Change, parent_id: UUID | None, role: RunRole) -> Run | None:
    if parent_id is None:
        return None
    if role == RunRole.COORDINATOR:
        raise Invalid({"role": ["A child run is never a coordinator."]})
    parent = Run.objects.filter(project=opened.project, pk=parent_id).first()
    if parent is None:
        raise Invalid({"parent_run_id": ["There is no such run in this project."]})
    return parent


def _same_run(run: Run, agent: Agent, role: RunRole, parent: Run | None) -> Run:
    if not run.is_running:
        raise Conflict("The run with this external_id has ended.", run)
    if (run.agent_id, run.role, run.parent_id) != (agent.pk, role, parent.pk if parent else None):
        raise Conflict("The run with this external_id has another agent, role or parent.", run)
    return run


def finish_run(opened: Change, run_id: UUID, status: str, summary: str = "") -> tuple[Run, bool]:
    """End a running run as `completed`, `failed` or `cancelled`; the run and whether this call ended it.

    Raises Invalid, NotFound; Conflict when it already ended with another status.
    """
    with Cleaner() as clean:
        wanted = clean("status", _ended_status, status)
        text = clean("summary", checked_text, summary)
    run = Run.objects.select_related("agent", "project").filter(project=opened.project, pk=run_id).first()
    if run is None:
        raise NotFound
    if not run.is_running:
        if run.status != wanted:
            raise Conflict(f"This run has already {run.status}.", run)
        return run, False
    ended = {"status": wanted, "summary": text, "ended_at": max(opened.now, _last_wrote(run))}
    opened.update(run, "run.finish", ended, compiled=False)
    # After the update: from here on the database takes no receipt of this run any more.
    opened.note(told.ACTION, target_of(run), None, told.proof_of(run).as_json())
    return run, True


def _last_wrote(run: Run) -> datetime:
    """When the run last proposed something that still waits: what was committed before its end was created before its end.

    Each server reads its own clock before it waits for the lock, so two requests can be stamped in the other order.
    """
    waiting = DecisionInboxEntry.objects.pending().filter(source_run=run)
    latest = waiting.aggregate(latest=Max("created_at"))["latest"]
    return max(run.started_at, latest or run.started_at)


def _ended_status(value: str) -> RunStatus:
    if value not in ENDED:
        raise ValueError(f"Must be one of: {', '.join(ENDED)}.")
    return RunStatus(value)
