"""Decisions: the ledger, one decision with its past, and everything that may be done with it (SPEC 6 and 9)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django.http import HttpResponse
from django.urls import reverse
from django.utils import timezone
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from governance.deciding.decisions import (
    approve_decision,
    archive_decision,
    create_decision,
    edit_decision,
    supersede_decision,
)
from governance.pages.forms.deciding import ApproveForm, RefuseForm
from governance.pages.forms.decisions import (
    ANY_STATUS,
    DecisionFilterForm,
    EditDecisionForm,
    NewDecisionForm,
    SupersedeForm,
)
from governance.pages.forms.fields import add_refusal, with_line_ends_of
from governance.pages.queues.decisions import chain_of, decision_of, successors
from governance.pages.queues.decisions import decisions as decisions_slice
from governance.pages.queues.inbox import agents_of
from governance.pages.queues.keyset import Slice
from governance.pages.views.access import Access, PageRequest, project_page
from governance.pages.views.board import kept
from governance.pages.views.desk import Desk
from governance.pages.views.editing import Editor
from governance.pages.views.past import steps_of, told, told_sentence
from governance.pages.views.replies import go, page
from governance.pages.views.rows import changes_since, sentence_for
from governance.pages.views.trusted import CHOICES, drawn
from governance.people.policies import Action
from memory.enums import DecisionStatus
from memory.errors import Conflict, Invalid
from memory.models import Decision

LIST = "governance/decisions.html"
EDIT = "governance/decision_edit.html"
SUPERSEDE = "governance/decision_supersede.html"


def past_of(access: Access, decision: Decision) -> dict[str, Any]:
    """What the page of one decision shows beyond the decision."""
    project = access.project
    return {
        "chain": chain_of(project, decision),
        "steps": steps_of(project, decision),
        "told": told(project, decision),
    }


DESK = Desk(
    section="decisions", load=decision_of, draw=drawn, choices=CHOICES, row_template="components/_trusted.html",
    done_template="components/_trusted_done.html", page_template="governance/decision.html", beyond=past_of,
)  # fmt: skip


@require_safe
@project_page(Action.READ)
def decisions(request: PageRequest, access: Access) -> HttpResponse:
    """The ledger of decisions, by status."""
    form = DecisionFilterForm(request.GET, agents=agents_of(access.project))
    found: Slice[Decision] = Slice([], 0, "", is_first=True)
    if form.is_valid():
        found = decisions_slice(access.project, form.filters(), after=request.GET.get("after", ""))
    context = {
        "form": form, "slice": found, "rows": [drawn(access, row) for row in found.rows], "kept": kept(request.GET),
        "status": request.GET.get("status") or DecisionStatus.ACTIVE, "statuses": [*DecisionStatus.values, ANY_STATUS],
        "is_filtered": bool(set(form.changed_data) - {"status"}), "here": request.get_full_path(), **CHOICES,
    }  # fmt: skip
    return page(request, access, LIST, context, section="decisions", fragment="results")


@require_safe
@project_page(Action.READ)
def decision(request: PageRequest, access: Access, decision_id: int) -> HttpResponse:
    """One decision with its chain, its history and who was told it."""
    return DESK.show(request, access, drawn(access, decision_of(access.project, decision_id)))


def address(access: Access, decision_id: int) -> str:
    return reverse("governance:decision", args=[access.project.slug, decision_id])


@require_http_methods(["GET", "HEAD", "POST"])
@project_page(Action.DECIDE)
def create(request: PageRequest, access: Access) -> HttpResponse:
    """A new decision, active and approved by whoever writes it."""
    form = NewDecisionForm(request.POST or None)
    if request.method == "POST" and form.is_valid():
        try:
            made = create_decision(
                project_id=access.project.pk, actor=access.actor, now=timezone.now(), **form.cleaned_data
            )
        except Invalid as refusal:
            add_refusal(form, refusal)
        else:
            return go(request, address(access, made.pk), f"Decision {made.pk} is active and approved.")
    context = {"form": form, "agents": agents_of(access.project)}
    return page(request, access, EDIT, context, section="decisions", status=422 if form.errors else 200)


def write(access: Access, stored: Decision, typed: Mapping[str, Any]) -> Decision:
    return edit_decision(
        project_id=access.project.pk, actor=access.actor, decision_id=stored.pk, revision=typed["revision"],
        type=typed["type"], title=typed["title"], tags=typed["tags"],
        content=with_line_ends_of(stored.content, typed["content"]),
        rationale=with_line_ends_of(stored.rationale, typed["rationale"]), now=timezone.now(),
    )  # fmt: skip


EDITOR = Editor(
    section="decisions", template=EDIT, name="decision", row_page="decision", form=EditDecisionForm, load=decision_of,
    write=write, said=lambda saved: f"Decision {saved.pk} is saved at revision {saved.revision}.",
)  # fmt: skip


@require_http_methods(["GET", "HEAD", "POST"])
@project_page(Action.DECIDE)
def edit(request: PageRequest, access: Access, decision_id: int) -> HttpResponse:
    """Change the text of an active decision; the editor approves it."""
    return EDITOR.answer(request, access, decision_id)


@require_POST
@project_page(Action.DECIDE)
def approve(request: PageRequest, access: Access, decision_id: int) -> HttpResponse:
    """Approve a decision at the revision that was read; type and tags may be corrected."""
    form = ApproveForm(request.POST)

    def verb() -> str:
        approve_decision(
            project_id=access.project.pk, actor=access.actor, decision_id=decision_id,
            revision=form.cleaned_data["revision"], corrections=form.corrections(), now=timezone.now(),
        )  # fmt: skip
        return f"Approved decision {decision_id}."

    return DESK.attempt(request, access, decision_id, form, verb)


@require_POST
@project_page(Action.DECIDE)
def archive(request: PageRequest, access: Access, decision_id: int) -> HttpResponse:
    """Put a decision away, or refuse an imported one; the answer names the runs that had been told it."""
    form = RefuseForm(request.POST)

    def verb() -> str:
        row = archive_decision(
            project_id=access.project.pk, actor=access.actor, decision_id=decision_id,
            reason=form.cleaned_data["reason"], revision=form.cleaned_data["revision"], now=timezone.now(),
        )  # fmt: skip
        return f"Archived decision {decision_id}. {told_sentence(access.project, row)}"

    return DESK.attempt(request, access, decision_id, form, verb)


@require_http_methods(["GET", "HEAD", "POST"])
@project_page(Action.DECIDE)
def supersede(request: PageRequest, access: Access, decision_id: int) -> HttpResponse:
    """Choose the decision that takes over, by search, and say why."""
    row = decision_of(access.project, decision_id)
    form = SupersedeForm(request.POST or None)
    if request.method == "POST" and form.is_valid():
        try:
            return _superseded(request, access, row, form.cleaned_data)
        except Invalid as refusal:
            add_refusal(form, refusal)
        except Conflict as lost:
            return _supersede_lost(request, access, decision_id, form, lost)
    return _picker(request, access, row, form, status=422 if form.errors else 200)


def _superseded(request: PageRequest, access: Access, row: Decision, data: dict[str, Any]) -> HttpResponse:
    done = supersede_decision(
        project_id=access.project.pk, actor=access.actor, decision_id=row.pk,
        superseded_by=data["superseded_by"], reason=data["reason"], revision=data["revision"], now=timezone.now(),
    )  # fmt: skip
    said = f"Decision {row.pk} is superseded by decision {data['superseded_by']}."
    return go(request, address(access, row.pk), f"{said} {told_sentence(access.project, done)}")


def _supersede_lost(
    request: PageRequest, access: Access, decision_id: int, form: SupersedeForm, lost: Conflict
) -> HttpResponse:
    """409: what changed meanwhile, and what was chosen and typed, to be sent again at the revision that is shown now."""
    found = decision_of(access.project, decision_id)
    changes = changes_since(access.project, found, form.cleaned_data["revision"])
    return _picker(
        request, access, found, form, status=409, row={"problem": sentence_for(lost), "changes": changes}
    )


def _picker(
    request: PageRequest, access: Access, decision: Decision, form: SupersedeForm, *, status: int, **more: Any
) -> HttpResponse:
    text = request.GET.get("q", "").replace("\0", "")[:200]
    context = {
        "decision": decision, "form": form, "q": text, "candidates": successors(access.project, decision, text),
        "chosen": request.POST.get("superseded_by", ""), **more,
    }  # fmt: skip
    return page(
        request, access, SUPERSEDE, context, section="decisions", fragment="candidates", status=status
    )
