"""What a run is told, and the proof of it (SPEC 4, Building for a run; SPEC 3, ContextSnapshot and ContextReceipt)."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db import IntegrityError, transaction

from memory.compiling.compiler import CompiledContext, Limits, compile_decisions, compile_for_agent
from memory.errors import Conflict, DomainError, OverBudget
from memory.models import ContextReceipt, ContextSnapshot, Run, SnapshotRow
from memory.models.event import digest

logger = logging.getLogger(__name__)

COMPILE_FAILED = "compile_failed"
"""The code when the failure has none of its own."""


@dataclass(frozen=True, slots=True)
class RunContext:
    """What an orchestrator injects for one turn: the charter, and the block if there is one.

    `context` is None both when nothing is eligible (`compile_error` is None) and when compiling failed (`compile_error` is a code).
    """

    run: Run
    charter: str
    compiled: CompiledContext | None
    receipt: ContextReceipt
    compile_error: str | None = None
    error: DomainError | None = None


def build_for_run(run: Run, limits: Limits, now: datetime) -> RunContext:
    """Compile for a run, and write down what it was told.

    A run without a parent gets its charter and the four layers; a child its charter and decisions only. Needs `agent` and
    `project` loaded. A failure never stops the caller: it gets the charter, a code, a warning in the log and a receipt that says
    so, which is what the run's page shows. Raises Conflict when the run has ended: then it is told nothing any more.
    """
    try:
        return _built(run, limits, now)
    except IntegrityError as refused:
        # The database takes no receipt of a run that ended while its context was compiled.
        run.refresh_from_db(fields=["status", "summary", "ended_at"])
        if run.is_running:
            raise
        raise Conflict("This run has ended.", run) from refused


def _built(run: Run, limits: Limits, now: datetime) -> RunContext:
    try:
        compiled = (
            compile_decisions(run.project, limits)
            if run.is_child
            else compile_for_agent(run.project, run.agent, limits)
        )
    except Exception as failure:  # noqa: BLE001 - whatever went wrong, a run goes on with its charter, and the log says why
        return _failed(run, failure, now)
    return RunContext(run, run.agent.charter, compiled, _told(run, compiled, now))


def _told(run: Run, compiled: CompiledContext, now: datetime) -> ContextReceipt:
    """The receipt. A block that was told before costs one look and one insert; a new one is stored with its rows."""
    if compiled.text is None:
        return _receipt(run, now, epoch=compiled.epoch)
    rows = [[row.kind, row.id, row.revision, int(row.layer)] for row in compiled.included]
    known = {"project_id": run.project_id, "sha256": compiled.sha256, "rows_sha256": digest(rows)}
    snapshot = _stored(known)
    if snapshot is None:
        try:
            with transaction.atomic():
                snapshot = _store(known, compiled)
                return _receipt(run, now, epoch=compiled.epoch, snapshot=snapshot)
        except IntegrityError:
            # Another request told the same block first.
            snapshot = _stored(known)
            if snapshot is None:
                raise
    return _receipt(run, now, epoch=compiled.epoch, snapshot=snapshot)


def _stored(known: dict[str, Any]) -> ContextSnapshot | None:
    return ContextSnapshot.objects.only("pk").filter(**known).first()


def _store(known: dict[str, Any], compiled: CompiledContext) -> ContextSnapshot:
    snapshot = ContextSnapshot.objects.create(**known, block=compiled.text or "")
    SnapshotRow.objects.bulk_create(
        SnapshotRow(snapshot=snapshot, layer=row.layer, revision=row.revision, **{f"{row.kind}_id": row.id})
        for row in compiled.included
    )
    return snapshot


def _failed(run: Run, failure: Exception, now: datetime) -> RunContext:
    code = failure.code if isinstance(failure, DomainError) else COMPILE_FAILED
    logger.warning(
        "Context of run %s could not be compiled: %s",
        run.pk,
        code,
        exc_info=failure if code == COMPILE_FAILED else None,
    )
    receipt = _receipt(run, now, epoch=run.project.epoch, compile_error=code)
    error = failure if isinstance(failure, OverBudget) else None
    return RunContext(run, run.agent.charter, None, receipt, code, error)


def _receipt(
    run: Run, now: datetime, *, epoch: int, snapshot: ContextSnapshot | None = None, compile_error: str = ""
) -> ContextReceipt:
    return ContextReceipt.objects.create(
        project_id=run.project_id, run=run, at=now, epoch=epoch, snapshot=snapshot, decisions_only=run.is_child,
        compile_error=compile_error,
    )  # fmt: skip
