"""Members: add, change, remove. The last owner stays one (SPEC 5)."""

from __future__ import annotations

from django import forms
from django.http import HttpResponse
from django.urls import reverse
from django.utils import timezone
from django.views.decorators.http import require_POST, require_safe

from governance.pages.forms.members import GrantForm, MemberForm
from governance.pages.queues.members import ROLES, member_rows
from governance.pages.views.access import Access, PageRequest, project_page
from governance.pages.views.attempts import attempt
from governance.pages.views.replies import go, page
from governance.people import policies
from governance.people.policies import Action, Role
from memory.errors import Invalid, NotFound

MEMBERS = "governance/members.html"


@require_safe
@project_page(Action.READ)
def members(request: PageRequest, access: Access) -> HttpResponse:
    """Who has which role."""
    return show(request, access, empty_form())


def empty_form() -> GrantForm:
    return GrantForm(initial={"role": Role.VIEWER})


def show(
    request: PageRequest, access: Access, form: forms.Form, status: int = 200, problem: str = ""
) -> HttpResponse:
    """The page; `problem` says why nothing was done, where no field can."""
    context = {
        "rows": member_rows(access.project), "form": form, "problem": problem, "roles": [role.value for role in Role],
        "explained": [(role.value, words) for role, words in ROLES.items()],
    }  # fmt: skip
    return page(request, access, MEMBERS, context, section="members", fragment="results", status=status)


def address(access: Access) -> str:
    return reverse("governance:members", args=[access.project.slug])


@require_POST
@project_page(Action.MANAGE)
def grant(request: PageRequest, access: Access) -> HttpResponse:
    """Give a user or a group a role, in place of the one they had."""
    form = GrantForm(request.POST)

    def verb() -> HttpResponse:
        name, role = form.cleaned_data["name"], form.cleaned_data["role"]
        if form.is_group:
            _grant_group(access, form, role)
        else:
            _grant_user(access, name, role)
        return go(request, address(access), f"{name} is {role} now.")

    def again(form: forms.Form, status: int) -> HttpResponse:
        return show(request, access, form, status)

    return attempt(form, verb, again)


def _grant_group(access: Access, form: MemberForm, role: str | None) -> None:
    policies.grant_group(
        project_id=access.project.pk, actor=access.actor, group=form.group(), role=role, now=timezone.now()
    )


def _grant_user(access: Access, name: str, role: str) -> None:
    try:
        policies.grant(
            project_id=access.project.pk, actor=access.actor, username=name, role=role, now=timezone.now()
        )
    except Invalid as refusal:
        raise Invalid(
            {"name" if field == "username" else field: texts for field, texts in refusal.errors.items()}
        ) from refusal


@require_POST
@project_page(Action.MANAGE)
def revoke(request: PageRequest, access: Access) -> HttpResponse:
    """Take a role away."""
    form = MemberForm(request.POST)

    def verb() -> HttpResponse:
        name = form.cleaned_data["name"]
        if form.is_group:
            _grant_group(access, form, None)
        else:
            _revoke_user(access, name)
        mine = name == access.actor.username and not form.is_group
        there = reverse("governance:home") if mine else address(access)
        return go(request, there, f"{name} has no role of their own in {access.project.name} any more.")

    def again(form: forms.Form, status: int) -> HttpResponse:
        wrong = " ".join(str(text) for texts in form.errors.values() for text in texts)
        return show(request, access, empty_form(), status, problem=wrong)

    return attempt(form, verb, again)


def _revoke_user(access: Access, name: str) -> None:
    try:
        policies.revoke(project_id=access.project.pk, actor=access.actor, username=name, now=timezone.now())
    except NotFound:
        raise Invalid({"name": ["This user has no role here."]}) from None
