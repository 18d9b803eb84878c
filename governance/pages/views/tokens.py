"""Tokens: one's own, shown once and revocable; for owners the run credentials that are alive (SPEC 5; SPEC 9, Tokens)."""

from __future__ import annotations

from typing import Any

from django import forms
from django.core.paginator import Paginator
from django.http import Http404, HttpResponse
from django.template.response import TemplateResponse
from django.urls import reverse
from django.utils import timezone
from django.views.decorators.debug import sensitive_variables
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from governance.models import User
from governance.pages.forms.tokens import TokenForm
from governance.pages.queues.tokens import PAGE_SIZE, live_credentials, tokens_of
from governance.pages.views.access import Access, PageRequest, actor_of, project_page, signed_in_page
from governance.pages.views.attempts import attempt
from governance.pages.views.replies import go, is_partial, page, return_address
from governance.people.credentials import issue_personal_token, revoke_personal_token
from governance.people.policies import Action
from memory.errors import NotFound

MINE = "governance/my_tokens.html"


@require_safe
@project_page(Action.READ)
def tokens(request: PageRequest, access: Access) -> HttpResponse:
    """My tokens, and for owners the live credentials of the project's runs."""
    now = timezone.now()
    context: dict[str, Any] = {**mine(access.actor.username), "now": now, "here": request.get_full_path()}
    if access.may_manage:
        found = Paginator(live_credentials(access.project, now), PAGE_SIZE).get_page(request.GET.get("page"))
        context |= {"credentials": found, "page_obj": found, "query": ""}
    return page(request, access, "governance/tokens.html", context, section="tokens", fragment="credentials")


def mine(username: str, form: forms.Form | None = None) -> dict[str, Any]:
    return {"tokens": tokens_of(username), "form": form or TokenForm()}


@require_http_methods(["GET", "HEAD", "POST"])
@signed_in_page
def my_tokens(request: PageRequest) -> HttpResponse:
    """My tokens outside of any project; a POST makes one, and its answer is the only place that ever shows it."""
    if request.method == "POST":
        return create(request)
    return show(request)


def show(
    request: PageRequest, form: forms.Form | None = None, status: int = 200, **more: Any
) -> HttpResponse:
    context = {**mine(actor_of(request).username, form), "now": timezone.now(), **more}
    context["here"] = return_address(request, reverse("governance:my-tokens"))
    template = f"{MINE}#results" if is_partial(request) else MINE
    return TemplateResponse(request, template, context, status=status)


@sensitive_variables()
def create(request: PageRequest) -> HttpResponse:
    """A new token. It is in this answer and nowhere else: a redirect would have to keep it somewhere."""
    form = TokenForm(request.POST)

    def verb() -> HttpResponse:
        user = User.objects.get(username=actor_of(request).username)
        issued = issue_personal_token(user, now=timezone.now(), **form.cleaned_data)
        return show(request, status=201, issued=issued)

    def again(form: forms.Form, status: int) -> HttpResponse:
        return show(request, form, status)

    return attempt(form, verb, again)


@require_POST
@signed_in_page
def revoke(request: PageRequest, token_id: int) -> HttpResponse:
    """Make one of my tokens useless at once."""
    user = User.objects.get(username=actor_of(request).username)
    try:
        token = revoke_personal_token(user, token_id, timezone.now())
    except NotFound as missing:
        raise Http404 from missing
    return go(
        request,
        return_address(request, reverse("governance:my-tokens")),
        f"The token {token.prefix}… is revoked.",
    )
