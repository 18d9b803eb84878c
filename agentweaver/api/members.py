"""/projects/{p}/members (SPEC 5 and 7): who has which role."""

from __future__ import annotations

from functools import partial
from typing import Any

from django.utils import timezone
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from agentweaver.api.authentication import actor_of
from agentweaver.api.fields import Body, read
from agentweaver.api.pagination import page_of, paged
from agentweaver.api.routing import operation
from agentweaver.api.rows import MemberRow, words
from governance.people import policies
from governance.people.policies import Action, Member, Role
from memory.errors import NotFound
from memory.models import Project
from memory.values import text_problem

_operation = partial(operation, tag="members")

_LONGEST_NAME = 150


class RoleBody(Body):
    role = serializers.ChoiceField(choices=words(Role))


def _shown(member: Member) -> dict[str, Any]:
    username, group = (None, member.name) if member.is_group else (member.name, None)
    return {"username": username, "group": group, "role": member.role.value}


def _username(given: str) -> str:
    """A name from the path; one that cannot be anybody's is nobody's. Raises NotFound."""
    if text_problem(given, _LONGEST_NAME):
        raise NotFound
    return given


@_operation(Action.READ, answers={200: page_of(MemberRow)})
def list_members(request: Request, project: Project) -> Response:
    """Everybody with a grant of their own: users first, then groups, each by name."""
    return paged(request, policies.members(project), _shown)


@_operation(Action.READ, answers={200: MemberRow})
def get_member(request: Request, project: Project, username: str) -> Response:
    """One user's own role."""
    return Response(_shown(policies.member(project, _username(username))))


@_operation(Action.MANAGE, body=RoleBody, answers={200: MemberRow}, problem_codes=[409])
def put_member(request: Request, project: Project, username: str) -> Response:
    """Give a user a role, replacing the one they had. The last owner stays one: 409 `last_owner`."""
    role = read(RoleBody, request)["role"]
    member = policies.grant(
        project_id=project.pk,
        actor=actor_of(request),
        username=_username(username),
        role=role,
        now=timezone.now(),
    )
    return Response(_shown(member))


@_operation(Action.MANAGE, answers={204: None}, problem_codes=[409])
def delete_member(request: Request, project: Project, username: str) -> Response:
    """Take a user's role away. The last owner stays: 409 `last_owner`."""
    policies.revoke(
        project_id=project.pk, actor=actor_of(request), username=_username(username), now=timezone.now()
    )
    return Response(status=204)
