"""Audit: the ledger, its verification, and the way from any row back to its source (SPEC 9, Audit). It only reads."""

from __future__ import annotations

import json
from dataclasses import asdict, replace
from typing import Any

from django.core.paginator import Paginator
from django.http import HttpResponse
from django.views.decorators.http import require_safe

from governance.deciding.differences import fields_between
from governance.pages.forms.audit import CheckpointForm, EventFilterForm
from governance.pages.queues.audit import (
    PLUMBING,
    EventPage,
    Trail,
    changes_of,
    event_of,
    events,
    trail_of,
)
from governance.pages.views.access import Access, PageRequest, project_page
from governance.pages.views.past import Step
from governance.pages.views.replies import page
from governance.people.policies import Action
from memory.errors import NotFound
from memory.ledger.history import TOLD_KINDS, receipts_of, told_runs
from memory.ledger.verification import Checkpoint, checkpoint, verify, verify_newest
from memory.management.commands.verify_ledger import FORMAT
from memory.models import Project

LIST = "governance/audit.html"
VERIFIED_AT_MOST = 10_000
"""Events a page verifies, with every row, while its reader waits: about two seconds. Of a longer ledger it checks that many, the
newest, and the chain alone; `manage.py verify_ledger` checks all of it (docs/ledger.md)."""
RECEIPTS = 50
STEPS = 100


@require_safe
@project_page(Action.READ)
def audit(request: PageRequest, access: Access) -> HttpResponse:
    """The ledger, newest first, filtered."""
    form = EventFilterForm(request.GET)
    found = EventPage([], None)
    if form.is_valid():
        found = events(access.project, form.filters(), _number(request.GET.get("below", "")))
    query = request.GET.copy()
    query.pop("below", None)
    context = {
        "form": form, "found": found, "kept": f"{query.urlencode()}&" if query else "",
        "is_filtered": bool(form.changed_data), "is_first": "below" not in request.GET,
    }  # fmt: skip
    return page(request, access, LIST, context, section="audit", fragment="results")


def _number(given: str) -> int | None:
    return int(given) if given.isascii() and given.isdigit() and len(given) <= 18 else None


@require_safe
@project_page(Action.READ)
def event(request: PageRequest, access: Access, number: int) -> HttpResponse:
    """One event with everything it changed, its hashes, and its neighbours."""
    found = event_of(access.project, number)
    context = {"event": found, "changes": changes_of(found), "fits": found.computed_hash() == found.hash}
    return page(request, access, "governance/audit_event.html", context, section="audit", fragment="change")


@require_safe
@project_page(Action.READ)
def verification(request: PageRequest, access: Access) -> HttpResponse:
    """Check the ledger, and that it passes through a checkpoint somebody kept."""
    form = CheckpointForm(request.GET)
    context: dict[str, Any] = {"form": form, "most": VERIFIED_AT_MOST, "head": checkpoint(access.project)}
    if access.project.ledger_number > VERIFIED_AT_MOST:
        context |= {"newest_only": True, "found": verify_newest(access.project, VERIFIED_AT_MOST)}
    elif form.is_valid():
        context["found"] = verify(access.project, _anchor(access.project, form))
    return page(request, access, "governance/audit_verify.html", context, section="audit", fragment="results")


def _anchor(project: Project, form: CheckpointForm) -> Checkpoint | None:
    number, hashed = form.cleaned_data["number"], form.cleaned_data["hash"]
    return Checkpoint(str(project.pk), number, hashed) if hashed else None


@require_safe
@project_page(Action.READ)
def checkpoint_file(request: PageRequest, access: Access) -> HttpResponse:
    """Where the chain stands now, as the file that `manage.py verify_ledger --against` reads."""
    head = checkpoint(access.project)
    text = json.dumps({"format": FORMAT, "checkpoints": [asdict(head)]}, indent=2)
    name = f"{access.project.slug}-checkpoint-{head.number}.json"
    return HttpResponse(
        f"{text}\n",
        content_type="application/json",
        headers={"Content-Disposition": f'attachment; filename="{name}"'},
    )


@require_safe
@project_page(Action.READ)
def trail(request: PageRequest, access: Access, kind: str, row_id: str) -> HttpResponse:
    """A row followed to its source: who wrote it, from what, who approved which revision, and which runs were told it."""
    found = trail_of(access.project, kind, row_id)
    context: dict[str, Any] = {
        "trail": found,
        "row": found.row,
        "name": f"{kind}:{found.row.pk}",
        **_steps(found),
    }
    if kind in TOLD_KINDS:
        context["told"] = told_runs(access.project, kind, found.row.pk)
    return page(request, access, "governance/trail.html", context, section="audit")


def _steps(found: Trail) -> dict[str, Any]:
    """The newest steps, newest first, each with what it changed that a reader looks for; the event's page has every field."""
    hidden = max(len(found.steps) - STEPS, 0)
    drawn, values = [], found.steps[hidden - 1].values if hidden else {}
    for step in found.steps[hidden:]:
        changed = fields_between(values, step.values, [name for name in step.values if name not in PLUMBING])
        drawn.append(Step(step, tuple(replace(one, field=one.field.replace("_", " ")) for one in changed)))
        values = step.values
    return {"steps": drawn[::-1], "hidden": hidden}


@require_safe
@project_page(Action.READ)
def told(request: PageRequest, access: Access, kind: str, row_id: int) -> HttpResponse:
    """Which runs were told a row, and every receipt of it."""
    if kind not in TOLD_KINDS:
        raise NotFound
    trail_of(access.project, kind, str(row_id))
    receipts = Paginator(receipts_of(access.project, kind, row_id), RECEIPTS).get_page(
        request.GET.get("page")
    )
    context = {
        "kind": kind, "row_id": row_id, "told": told_runs(access.project, kind, row_id), "receipts": receipts,
        "page_obj": receipts, "query": "",
    }  # fmt: skip
    return page(request, access, "governance/told.html", context, section="audit", fragment="runs")
