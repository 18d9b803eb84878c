"""/projects (SPEC 7): the caller's projects, a new one, one project and its policy."""

from __future__ import annotations

from functools import partial
from typing import Any, cast

from django.utils import timezone
from rest_framework.request import Request
from rest_framework.response import Response

from agentweaver.api.authentication import actor_of
from agentweaver.api.fields import Body, OneOf, Slug, Title, Whole, read
from agentweaver.api.pagination import page_of, paged
from agentweaver.api.routing import Access, operation
from agentweaver.api.rows import ProjectRow
from governance.deciding import projects as verbs
from governance.people import policies
from governance.people.policies import Action
from memory.actors import Human
from memory.enums import Overflow, TrustPolicy
from memory.models import Project

_operation = partial(operation, tag="projects")


class PolicyBody(Body):
    """What bounds a compile of the project (SPEC 4). What is left out stays as it is."""

    max_items = Whole(min_value=0, max_value=verbs.MAX_ITEMS, required=False)
    max_tokens = Whole(min_value=1, max_value=verbs.MAX_TOKENS, required=False)
    on_overflow = OneOf(Overflow, required=False)
    trust = OneOf(TrustPolicy, required=False)


class NewProject(Body):
    name = Title()
    slug = Slug(help_text="Kebab-case, unique, and not a UUID.")
    policy = PolicyBody(required=False)


class ProjectChange(Body):
    name = Title(required=False)
    slug = Slug(required=False)
    policy = PolicyBody(required=False)


def _shown(project: Project) -> dict[str, Any]:
    return dict(ProjectRow(project).data)


@_operation(Access.SIGNED_IN, answers={200: page_of(ProjectRow)})
def list_projects(request: Request) -> Response:
    """The projects the caller may read, newest first."""
    rows = policies.visible_projects(actor_of(request)).order_by("-created_at", "-pk")
    return paged(request, rows, _shown)


@_operation(Access.PERSON, body=NewProject, answers={201: ProjectRow}, problem_codes=[409])
def create_project(request: Request) -> Response:
    """Make a project; its creator becomes owner."""
    fields = read(NewProject, request)
    project = verbs.create_project(actor=cast(Human, actor_of(request)), now=timezone.now(), **fields)
    return Response(_shown(project), status=201, headers={"Location": f"/api/projects/{project.pk}"})


@_operation(Action.READ, answers={200: ProjectRow})
def get_project(request: Request, project: Project) -> Response:
    """One project with its policy and epoch."""
    return Response(_shown(project))


@_operation(Action.MANAGE, body=ProjectChange, answers={200: ProjectRow}, problem_codes=[409])
def update_project(request: Request, project: Project) -> Response:
    """Change a project's name, slug or policy. Owners only."""
    fields = read(ProjectChange, request)
    actor = cast(Human, actor_of(request))
    changed = verbs.update_project(project_id=project.pk, actor=actor, now=timezone.now(), **fields)
    return Response(_shown(changed))
