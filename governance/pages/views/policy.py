"""Policy: a project's name and limits, how they are filled, and what other limits would do (SPEC 4, Policy; SPEC 9)."""

from __future__ import annotations

from typing import Any

from django import forms
from django.http import HttpResponse
from django.urls import reverse
from django.utils import timezone
from django.views.decorators.http import require_http_methods

from governance.deciding.projects import update_project
from governance.pages.forms.fields import add_refusal
from governance.pages.forms.policy import PolicyForm
from governance.pages.queues.policy import effects, loads
from governance.pages.views.access import Access, PageRequest, project_page
from governance.pages.views.attempts import attempt
from governance.pages.views.replies import go, page
from governance.pages.views.rows import sentence_for
from governance.people.policies import Action, check
from memory.errors import Conflict, Invalid

POLICY = "governance/policy.html"


@require_http_methods(["GET", "HEAD", "POST"])
@project_page(Action.READ)
def policy(request: PageRequest, access: Access) -> HttpResponse:
    """The policy and how it is filled; with `preview` in the address what other limits would do; a POST changes it."""
    if request.method == "POST":
        return save(request, access)
    if "preview" in request.GET and access.may_manage:
        return preview(request, access)
    return show(request, access, PolicyForm.of(access.project), {"loads": loads(access.project)})


def show(
    request: PageRequest, access: Access, form: forms.Form, more: dict[str, Any], status: int = 200
) -> HttpResponse:
    context = {"form": form, **more}
    return page(request, access, POLICY, context, section="policy", fragment="results", status=status)


def preview(request: PageRequest, access: Access) -> HttpResponse:
    """Each agent's context under the limits of the form. Nothing is kept."""
    form = PolicyForm(request.GET)
    if not form.is_valid():
        return show(request, access, form, {}, 422)
    try:
        found, unseen = effects(access.project, lambda: change(access, form))
    except Invalid as refusal:
        add_refusal(form, _without_prefix(refusal))
        return show(request, access, form, {}, 422)
    except Conflict as lost:
        form.add_error(None, sentence_for(lost))
        return show(request, access, form, {}, 409)
    return show(request, access, form, {"effects": found, "unseen": unseen})


def change(access: Access, form: PolicyForm) -> Any:
    return update_project(
        project_id=access.project.pk, actor=access.actor, now=timezone.now(), **form.changes()
    )


def save(request: PageRequest, access: Access) -> HttpResponse:
    """Change the project."""
    check(access.actions, Action.MANAGE)
    form = PolicyForm(request.POST)

    def verb() -> HttpResponse:
        try:
            project = change(access, form)
        except Invalid as refusal:
            raise _without_prefix(refusal) from refusal
        return go(request, reverse("governance:policy", args=[project.slug]), "The policy is saved.")

    def again(form: forms.Form, status: int) -> HttpResponse:
        return show(request, access, form, {"loads": loads(access.project)}, status)

    return attempt(form, verb, again)


def _without_prefix(refusal: Invalid) -> Invalid:
    """The verb names the policy's fields as the API does, `policy.trust`; the form calls them by their own names."""
    return Invalid({field.removeprefix("policy."): texts for field, texts in refusal.errors.items()})
