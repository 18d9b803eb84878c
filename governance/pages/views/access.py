"""Who gets into a page: the first line of every view (SPEC 5; DESIGN, Views).

A view that carries neither `project_page` nor `signed_in_page` nor `open_page` has no policy; a test walks all routes and says so.
What is hidden from the reader and what does not exist answer alike, with 404; what a member may not do answers 403 and says why.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import wraps
from typing import Concatenate, ParamSpec, TypeVar

from django.contrib.auth.decorators import login_not_required
from django.http import HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import render
from django.template.response import TemplateResponse
from django_htmx.middleware import HtmxDetails

from governance.people import policies
from governance.people.policies import Action
from memory.actors import Human
from memory.errors import NotFound, Refused
from memory.models import Project

P = ParamSpec("P")
V = TypeVar("V", bound=Callable[..., HttpResponseBase])

SIGNED_IN = "signed_in"
OPEN = "open"


class PageRequest(HttpRequest):
    """A request that came through our middleware."""

    htmx: HtmxDetails


@dataclass(frozen=True, slots=True)
class Access:
    """A signed-in person inside a project, with everything they may do there."""

    project: Project
    actor: Human
    actions: frozenset[Action]

    @property
    def may_decide(self) -> bool:
        return Action.DECIDE in self.actions

    @property
    def may_record(self) -> bool:
        return Action.RECORD in self.actions

    @property
    def may_manage(self) -> bool:
        return Action.MANAGE in self.actions

    @property
    def may_run_runs(self) -> bool:
        return Action.RUN_RUNS in self.actions

    @property
    def may_export(self) -> bool:
        return Action.EXPORT in self.actions

    @property
    def may_import(self) -> bool:
        return Action.IMPORT in self.actions


ProjectView = Callable[Concatenate[PageRequest, Access, P], HttpResponse]
GuardedView = Callable[..., HttpResponse]
"""The same view as the router calls it: with the project's slug or UUID."""


def project_page(action: Action) -> Callable[[ProjectView[P]], GuardedView]:
    """A page of one project: the view gets an `Access` in place of the project's slug or UUID."""

    def decorate(view: ProjectView[P]) -> GuardedView:
        @wraps(view)
        def guarded(request: PageRequest, project: str, *args: P.args, **kwargs: P.kwargs) -> HttpResponse:
            try:
                return view(request, enter(actor_of(request), project, action), *args, **kwargs)
            except NotFound:
                return not_found(request)
            except Refused as refusal:
                return forbidden(request, refusal)

        return stamped(guarded, action)

    return decorate


def enter(actor: Human, reference: str, action: Action) -> Access:
    """The named project, for someone who may do this there. Raises NotFound, Refused. Two queries."""
    project = Project.objects.named(reference).first()
    if project is None:
        raise NotFound
    access = Access(project, actor, policies.allowed(actor, project.pk))
    policies.check(access.actions, action)
    return access


def actor_of(request: HttpRequest) -> Human:
    """The signed-in person; the middleware let nobody else through."""
    return Human(request.user.get_username())


def signed_in_page(view: V) -> V:
    """A page of the person, of no project."""
    return stamped(view, SIGNED_IN)


def open_page(view: V) -> V:
    """A page for everybody, signed in or not."""
    return stamped(login_not_required(view), OPEN)


def stamped(view: V, policy: str) -> V:
    """Say on the view itself which policy guards it, for the test that walks all routes."""
    view.policy = policy  # type: ignore[attr-defined]
    return view


def not_found(request: HttpRequest) -> HttpResponse:
    return render(request, "404.html", status=404)


def forbidden(request: HttpRequest, refusal: Refused) -> HttpResponse:
    return TemplateResponse(request, "403.html", {"refusal": refusal}, status=403).render()
