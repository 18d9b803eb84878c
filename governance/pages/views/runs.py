"""Runs: what each wrote, what it was told, what the scribe did, and what an owner may do about it (SPEC 9, Runs)."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from django import forms
from django.core.paginator import Paginator
from django.http import HttpResponse
from django.urls import reverse
from django.utils import timezone
from django.views.decorators.http import require_POST, require_safe

from governance.deciding import scribe
from governance.pages.forms.runs import FinishForm, RunFilterForm
from governance.pages.queues.inbox import agents_of
from governance.pages.queues.runs import (
    PAGE_SIZE,
    children_of,
    credential_of,
    receipts_of_run,
    report_of,
    run_of,
    tallies,
    wrote_of,
)
from governance.pages.queues.runs import runs as filtered_runs
from governance.pages.views.access import Access, PageRequest, project_page
from governance.pages.views.attempts import attempt
from governance.pages.views.replies import go, is_partial, outcome, page, return_address
from governance.pages.views.rows import sentence_for
from governance.people.policies import Action
from governance.people.revoking import revoke_credential
from memory.enums import RunStatus
from memory.errors import Conflict
from memory.models import Run

LIST = "governance/runs.html"
RUN = "governance/run.html"
RECEIPTS = 20

WHY_WAITING = {
    "decider_required": "this type needs an owner or a coordinator",
    "other_agent": "it names another agent than the run's",
    "outside_the_run": "it was written before the run began or after it ended",
    "step_failed": "the step that would have filed it failed",
    "child_run": "the run has a parent, so nothing was promoted",
    "run_failed": "the run failed, so nothing was promoted",
    "run_cancelled": "the run was cancelled, so nothing was promoted",
}
"""Why the scribe left an entry to a person, in words."""


@require_safe
@project_page(Action.READ)
def runs(request: PageRequest, access: Access) -> HttpResponse:
    """The project's runs, newest first, filtered."""
    form = RunFilterForm(request.GET, agents=agents_of(access.project))
    found = filtered_runs(access.project, form.filters()) if form.is_valid() else Run.objects.none()
    query = request.GET.copy()
    query.pop("page", None)
    listed = Paginator(found, PAGE_SIZE).get_page(request.GET.get("page"))
    rows = list(listed)
    counted = tallies(rows)
    context = {
        "form": form, "page_obj": listed, "rows": [(row, counted[row.pk]) for row in rows],
        "query": f"{query.urlencode()}&" if query else "", "is_filtered": bool(form.changed_data),
    }  # fmt: skip
    return page(request, access, LIST, context, section="runs", fragment="results")


@require_safe
@project_page(Action.READ)
def run(request: PageRequest, access: Access, run_id: UUID) -> HttpResponse:
    """One run."""
    return show(request, access, run_of(access.project, run_id), FinishForm())


def show(
    request: PageRequest, access: Access, found: Run, form: forms.Form, status: int = 200
) -> HttpResponse:
    """The page of a run."""
    told = Paginator(receipts_of_run(found), RECEIPTS).get_page(request.GET.get("page"))
    context = {
        **scribe_context(found), "form": form, "wrote": wrote_of(found), "children": children_of(found),
        "receipts": told, "page_obj": told, "query": "", "credential": credential_of(found), "now": timezone.now(),
    }  # fmt: skip
    return page(request, access, RUN, context, section="runs", status=status)


def scribe_context(found: Run, problem: str = "") -> dict[str, Any]:
    """What the part about the scribe needs."""
    report = report_of(found)
    waiting = (
        [{**row, "why": WHY_WAITING.get(row["reason"], row["reason"])} for row in report.waiting]
        if report
        else []
    )
    return {"run": found, "report": report, "waiting": waiting, "problem": problem}


def address(access: Access, run_id: UUID) -> str:
    return reverse("governance:run", args=[access.project.slug, run_id])


@require_POST
@project_page(Action.RUN_RUNS)
def retry(request: PageRequest, access: Access, run_id: UUID) -> HttpResponse:
    """Carry out again what the scribe could not."""
    try:
        report = scribe.retry_scribe(
            project_id=access.project.pk, actor=access.actor, run_id=run_id, now=timezone.now()
        )  # fmt: skip
    except Conflict as lost:
        return _retried(request, access, run_id, sentence_for(lost), status=409)
    said = "Some steps failed again; the report says why." if report.has_failed else "Every step is done."
    return _retried(request, access, run_id, said)


def _retried(
    request: PageRequest, access: Access, run_id: UUID, said: str, status: int = 200
) -> HttpResponse:
    if is_partial(request):
        context = scribe_context(run_of(access.project, run_id), said if status != 200 else "")
        return outcome(request, access, f"{RUN}#scribe", context, said=said, status=status)
    if status == 200:
        return go(request, address(access, run_id), said)
    form = FinishForm({"status": RunStatus.COMPLETED})
    form.add_error(None, said)
    return show(request, access, run_of(access.project, run_id), form, status)


@require_POST
@project_page(Action.RUN_RUNS)
def finish(request: PageRequest, access: Access, run_id: UUID) -> HttpResponse:
    """End a run by hand; what follows an end follows."""
    form = FinishForm(request.POST)

    def verb() -> HttpResponse:
        report = scribe.complete_run(
            project_id=access.project.pk, actor=access.actor, run_id=run_id,
            now=timezone.now(), **form.cleaned_data,
        )  # fmt: skip
        return go(request, address(access, run_id), f"The run is {report.run.status}.")

    def again(form: forms.Form, status: int) -> HttpResponse:
        return show(request, access, run_of(access.project, run_id), form, status)

    return attempt(form, verb, again)


@require_POST
@project_page(Action.MANAGE)
def revoke(request: PageRequest, access: Access, run_id: UUID) -> HttpResponse:
    """Take the run's credential away at once."""
    revoke_credential(project_id=access.project.pk, actor=access.actor, run_id=run_id, now=timezone.now())
    back = return_address(request, address(access, run_id))
    return go(request, back, "The credential is revoked: the run can ask for nothing any more.")
