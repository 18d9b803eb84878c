"""What follows a run's end (SPEC 6, Scribe and Coordinator finalisation; the seed, "Scribe's role in memory").

The end itself and an empty report are one change. The steps come after it and each keeps its outcome in the report: a step that
fails never undoes the end, is shown, and is carried out again by repeating the completion or by `retry_scribe`. Every step
looks at the report under the project's lock before it acts, so neither a repetition nor a second caller does anything twice.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any
from uuid import UUID

from django.db import transaction

from governance.deciding.entries import promote
from governance.models import ScribeReport
from governance.people import policies
from governance.people.policies import Action
from memory.actors import Actor, Finalisation, Scribe
from memory.enums import EntryType, RunRole, RunStatus, SourceKind
from memory.errors import Conflict, DomainError, NotFound
from memory.ledger.changes import KINDS, Change, change
from memory.mirror.writing.export import export_to_workspace
from memory.models import DecisionInboxEntry, Project, Run
from memory.runs import finish_run
from memory.sessions import append_outcome, end_session
from memory.values import CROSS_TEAM

logger = logging.getLogger(__name__)


class Step(StrEnum):
    """The steps, in the order they are carried out. The first three are one transaction, the last is outside of it."""

    PROMOTE = "promote"
    FINALISE = "finalise"
    SESSION = "session"
    EXPORT = "export"


class State(StrEnum):
    """How far a step got. `pending` is a step nobody has carried out: the server stopped, or an earlier step failed."""

    PENDING = "pending"
    DONE = "done"
    FAILED = "failed"
    SKIPPED = "skipped"


UNFINISHED = frozenset({State.PENDING, State.FAILED})

_LEARNT = (EntryType.LEARNING, EntryType.PATTERN, EntryType.UPDATE)
_BINDING = (EntryType.ARCHITECTURAL, EntryType.SCOPE)
_SUMMARY = 500


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of a step: a code and a sentence, never a path outside the workspace, a token or a stored text."""

    state: State
    code: str = ""
    detail: str = ""


DONE = Outcome(State.DONE)


@dataclass(frozen=True, slots=True)
class Exported:
    """What an exporter did: how many files, or why it had nothing to do."""

    files: int | None = None
    skipped: str = ""
    detail: str = ""


Exporter = Callable[[Project, datetime], Exported]
"""Writes the project's mirror. Called outside any transaction, perhaps twice at once: it must bring its own lock. May raise."""


def to_workspace(project: Project, now: datetime) -> Exported:
    """Write the mirror into the project's workspace folder; skipped where the installation has none. Raises ExportFailed."""
    try:
        return Exported(files=len(export_to_workspace(project_id=project.pk, now=now).files))
    except Conflict as refused:
        if refused.code != "no_workspace":
            raise
        return Exported(skipped=refused.code, detail=refused.detail)


def no_workspace(project: Project, now: datetime) -> Exported:
    """The exporter of an installation without workspaces."""
    return Exported(skipped="no_workspace", detail="This project has no workspace folder.")


def complete_run(
    *,
    project_id: UUID,
    actor: Actor,
    run_id: UUID,
    status: str,
    summary: str = "",
    end_session: bool = False,
    exporter: Exporter = to_workspace,
    now: datetime,
) -> ScribeReport:
    """End a run and carry out what follows; the report. Repeating it answers with the same report and retries what failed.

    Promotions follow only when a run without a parent has `completed`. `end_session` closes the open session after the outcome
    line. `exporter` writes the mirror, by default into the project's workspace. Raises Invalid, NotFound, Refused, Conflict (with
    the run) when it already ended with another status.
    """
    with change(project_id, actor, now) as opened:
        policies.require(actor, Action.RUN_RUNS, opened.project)
        run, _ = finish_run(opened, run_id, status, summary)
        _open_report(opened, run, end_session)
    return _carry_out(run, exporter, now)


def retry_scribe(
    *, project_id: UUID, actor: Actor, run_id: UUID, exporter: Exporter = to_workspace, now: datetime
) -> ScribeReport:
    """Carry out the steps of an ended run that failed or were cut off; the report.

    Raises NotFound, Refused, Conflict (with the run) while it is running.
    """
    with change(project_id, actor, now) as opened:
        policies.require(actor, Action.RUN_RUNS, opened.project)
        run = Run.objects.select_related("agent", "project").filter(project=opened.project, pk=run_id).first()
        if run is None:
            raise NotFound
        if run.is_running:
            raise Conflict("This run has not ended.", run)
        _open_report(opened, run, False)
    return _carry_out(run, exporter, now)


def scribe_report(run: Run) -> ScribeReport | None:
    """The report of a run as it stands; None while the run has not ended."""
    return ScribeReport.objects.select_related("run").filter(run=run).first()


def _open_report(opened: Change, run: Run, end_session: bool) -> None:
    """Write the report with the run's end, every step still to do, so that a killed process leaves a truthful one."""
    if ScribeReport.objects.filter(run=run).exists():
        return
    why = _nothing_follows(run)
    steps = [_step(step, _skipped(run, step) if why is None else why) for step in Step]
    ScribeReport.objects.create(
        run=run, end_session=end_session, steps=steps, updated_at=opened.now,
        waiting=_waiting(run, why.code) if why is not None else [],
    )  # fmt: skip


def _nothing_follows(run: Run) -> Outcome | None:
    """Why a run's end promotes nothing, or None when it does (SPEC 6, Scribe)."""
    if run.is_child:
        return Outcome(
            State.SKIPPED, "child_run", "The run has a parent; what it proposed waits for a person."
        )
    if run.status != RunStatus.COMPLETED:
        return Outcome(
            State.SKIPPED, f"run_{run.status}", f"The run {run.status}; what it proposed waits for a person."
        )
    return None


def _skipped(run: Run, step: Step) -> Outcome:
    if step == Step.FINALISE and run.role != RunRole.COORDINATOR:
        return Outcome(
            State.SKIPPED, "not_a_coordinator", "Only a coordinator's own proposals are finalised."
        )
    return Outcome(State.PENDING, "not_carried_out", "The step has not been carried out yet.")


def _step(step: Step, outcome: Outcome) -> dict[str, Any]:
    return {"name": step.value, "state": outcome.state.value, "code": outcome.code, "detail": outcome.detail}


def _state(report: ScribeReport, step: Step) -> State:
    return State(next(kept["state"] for kept in report.steps if kept["name"] == step))


def _keep(report: ScribeReport, step: Step, outcome: Outcome) -> None:
    report.steps = [_step(step, outcome) if kept["name"] == step else kept for kept in report.steps]


def _unfinished(report: ScribeReport, steps: Iterable[Step]) -> list[Step]:
    return [step for step in steps if _state(report, step) in UNFINISHED]


_INSIDE = (Step.PROMOTE, Step.FINALISE, Step.SESSION)


def _carry_out(run: Run, exporter: Exporter, now: datetime) -> ScribeReport:
    report = _report(run)
    wrote = False
    if _unfinished(report, _INSIDE):
        report, wrote = _file(run, now)
    if wrote or _unfinished(report, [Step.EXPORT]):
        report = _export(run, exporter, now, again=wrote)
    return report


def _report(run: Run) -> ScribeReport:
    return ScribeReport.objects.select_related("run").get(run=run)


def _locked_report(run: Run) -> ScribeReport:
    """The report, locked for the rest of the transaction. SQLite's transaction is the lock."""
    return ScribeReport.objects.select_for_update(of=("self",)).select_related("run").get(run=run)


# Inside one transaction: promotions, finalisation, the outcome line


def _file(run: Run, now: datetime) -> tuple[ScribeReport, bool]:
    """The three steps that write the ledger, in one change; the report and whether a step was carried out now."""
    try:
        with change(run.project_id, Scribe(run.pk), now) as opened:
            report = _locked_report(run)
            todo = _unfinished(report, _INSIDE)
            for step in todo:
                _attempt(opened, run, report, step)
            _close_report(opened, run, report, todo)
        return report, any(_state(report, step) == State.DONE for step in todo)
    except Exception as failure:
        logger.exception("Scribe of run %s failed", run.pk)
        return _store_failure(run, failure, now), False


def _attempt(opened: Change, run: Run, report: ScribeReport, step: Step) -> None:
    """Carry out one step; when it fails its writes go back alone and the steps after it may still succeed."""
    if step == Step.SESSION and _unfinished(report, (Step.PROMOTE, Step.FINALISE)):
        _keep(report, step, Outcome(State.PENDING, "waits", "An earlier step has to succeed first."))
        return
    try:
        with opened.part():
            outcome = _ACTIONS[step](opened, run, report)
    except Exception as failure:
        logger.exception("Scribe step %s of run %s failed", step, run.pk)
        outcome = _failed(step, failure)
    _keep(report, step, outcome)


def _failed(step: Step, failure: Exception) -> Outcome:
    """A failure for people to read: the domain's own words, or the kind of error, never a message with data in it."""
    if isinstance(failure, DomainError):
        return Outcome(State.FAILED, failure.code, failure.detail)
    return Outcome(State.FAILED, f"{step}_failed", f"{type(failure).__name__}; the server's log says more.")


def _promote_learnt(opened: Change, run: Run, report: ScribeReport) -> Outcome:
    """Learnings, patterns and updates of exactly this run, in the scribe's name."""
    return _promote_all(opened, report, _own_pending(run, _LEARNT))


def _finalise(opened: Change, run: Run, report: ScribeReport) -> Outcome:
    """A coordinator's own architectural and scope entries, in the run's name."""
    with opened.acting_as(Finalisation(run.pk)):
        return _promote_all(opened, report, _own_pending(run, _BINDING))


def _own_pending(run: Run, types: Iterable[EntryType]) -> list[DecisionInboxEntry]:
    """Pending entries of exactly this run and its agent, created between its start and its end (SPEC 6)."""
    entries = DecisionInboxEntry.objects.select_related("agent", "source_run").pending()
    mine = entries.filter(
        project_id=run.project_id, source_kind=SourceKind.RUN, source_run=run, agent_id=run.agent_id, type__in=types,
        created_at__gte=run.started_at, created_at__lte=run.ended_at,
    )  # fmt: skip
    return list(mine.select_for_update(of=("self",), no_key=True).order_by("created_at", "pk"))


def _promote_all(opened: Change, report: ScribeReport, entries: list[DecisionInboxEntry]) -> Outcome:
    promoted = [_promoted(opened, entry) for entry in entries]
    report.promoted = [*report.promoted, *promoted]
    return Outcome(State.DONE, detail=f"{len(promoted)} promoted.")


def _promoted(opened: Change, entry: DecisionInboxEntry) -> dict[str, Any]:
    row = promote(opened, entry, {})
    return {
        "entry": entry.pk, "slug": entry.slug, "type": entry.type, "kind": KINDS[type(row)], "id": row.pk,
        "approved_by": row.approved_by,
        # A scribe's approval holds for the row's own agent; crossing to others stays a person's decision.
        "cross_team_requested": KINDS[type(row)] == "memory" and CROSS_TEAM in entry.tags,
    }  # fmt: skip


def _summarise(opened: Change, run: Run, report: ScribeReport) -> Outcome:
    """The outcome line for the open session, and its end when the completion asked for that."""
    said = " ".join(run.summary.split()) or "no summary"
    if len(said) > _SUMMARY:
        said = said[: _SUMMARY - 1] + "…"
    counts = f"Promoted {len(report.promoted)}, waiting {len(_waiting(run))}."
    session = append_outcome(opened, run.pk, f"{run.agent.name}: {said} {counts}")
    if session is None:
        return Outcome(State.SKIPPED, "no_open_session", "No session is open.")
    if report.end_session:
        end_session(opened, session)
    report.session = {"session_id": session.session_id, "ended": report.end_session}
    return DONE


_ACTIONS: dict[Step, Callable[[Change, Run, ScribeReport], Outcome]] = {
    Step.PROMOTE: _promote_learnt,
    Step.FINALISE: _finalise,
    Step.SESSION: _summarise,
}


def _close_report(opened: Change, run: Run, report: ScribeReport, todo: list[Step]) -> None:
    if not todo:
        return
    report.waiting, report.updated_at = _waiting(run), opened.now
    report.save()
    after = {"steps": report.steps, "promoted": report.promoted, "waiting": report.waiting}
    opened.note("run.scribe", f"run:{run.pk}", None, after)


def _waiting(run: Run, reason: str = "") -> list[dict[str, Any]]:
    """What the run proposed and nobody has decided, each with the reason why the scribe did not."""
    entries = DecisionInboxEntry.objects.pending().filter(project_id=run.project_id, source_run=run)
    return [
        {
            "entry": entry.pk,
            "slug": entry.slug,
            "type": entry.type,
            "reason": reason or _why_waiting(run, entry),
        }
        for entry in entries.order_by("created_at", "pk")
    ]


def _why_waiting(run: Run, entry: DecisionInboxEntry) -> str:
    if run.ended_at is None or not run.started_at <= entry.created_at <= run.ended_at:
        return "outside_the_run"
    if entry.agent_id != run.agent_id:
        return "other_agent"
    coordinated = run.role == RunRole.COORDINATOR and entry.type in _BINDING
    return "step_failed" if entry.type in _LEARNT or coordinated else "decider_required"


# Outside the transaction: the export


def _export(run: Run, exporter: Exporter, now: datetime, *, again: bool) -> ScribeReport:
    """Refresh the file mirror; the first success is kept. `again`: rows were written, so earlier files are out of date."""
    try:
        exported = exporter(run.project, now)
        outcome = Outcome(
            State.SKIPPED if exported.skipped else State.DONE, exported.skipped, exported.detail
        )
    except Exception as failure:
        logger.exception("Export after run %s failed", run.pk)
        exported, outcome = Exported(), _failed(Step.EXPORT, failure)
    with transaction.atomic():
        report = _locked_report(run)
        if again or _unfinished(report, [Step.EXPORT]):
            _keep(report, Step.EXPORT, outcome)
            report.exported_files, report.updated_at = exported.files, now
            report.save(update_fields=["steps", "exported_files", "updated_at"])
    return report


def _store_failure(run: Run, failure: Exception, now: datetime) -> ScribeReport:
    """The transaction as a whole failed: nothing of it was kept, so every step of it that was to do has failed."""
    with transaction.atomic():
        report = _locked_report(run)
        for step in _unfinished(report, _INSIDE):
            _keep(report, step, _failed(step, failure))
        report.updated_at = now
        report.save(update_fields=["steps", "updated_at"])
    return report
