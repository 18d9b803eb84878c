"""/projects/{p}/decisions (SPEC 6 and 7): create, read, edit, approve, supersede, archive."""

from __future__ import annotations

from functools import partial
from typing import Any

from django.db.models import QuerySet
from django.utils import timezone
from rest_framework.request import Request
from rest_framework.response import Response

from agentweaver.api.authentication import actor_of
from agentweaver.api.fields import (
    Body,
    Content,
    Name,
    OneOf,
    Reason,
    Revision,
    Tags,
    Text,
    Title,
    Whole,
    read,
)
from agentweaver.api.filters import DecisionFilters, filtered
from agentweaver.api.histories import RevisionRow, WithToldRuns, history, told_runs
from agentweaver.api.pagination import page_of, paged
from agentweaver.api.routing import operation
from agentweaver.api.rows import DecisionRow
from governance.deciding import decisions as verbs
from governance.deciding.gate import Corrections
from governance.people.policies import Action
from memory.enums import DecisionType
from memory.errors import NotFound
from memory.models import Decision, Project

_operation = partial(operation, tag="decisions")


class NewDecision(Body):
    agent_name = Name(help_text="The decision's author as shown.")
    type = OneOf(DecisionType)
    title = Title()
    content = Content()
    rationale = Text(required=False)
    tags = Tags(required=False)


class DecisionChange(Body):
    revision = Revision()
    type = OneOf(DecisionType, required=False)
    title = Title(required=False)
    content = Content(required=False)
    rationale = Text(required=False)
    tags = Tags(required=False)


class DecisionApproval(Body):
    revision = Revision()
    type = OneOf(DecisionType, required=False)
    tags = Tags(required=False)


class Supersession(Body):
    superseded_by = Whole(
        min_value=1, max_value=2**63 - 1, help_text="The id of the active decision that takes over."
    )
    reason = Reason()


class Archival(Body):
    reason = Reason()


class WithdrawnDecision(WithToldRuns, DecisionRow):
    """A decision that left the compile, and the runs that were told it before."""


def shown(decision: Decision) -> dict[str, Any]:
    return dict(DecisionRow(decision).data)


def _withdrawn(project: Project, decision: Decision) -> Response:
    return Response({**shown(decision), "told_runs": told_runs(project, decision)})


def _decisions(project: Project) -> QuerySet[Decision]:
    rows = Decision.objects.filter(project=project).select_related("agent")
    return rows.order_by("-created_at", "-pk")


def _decision(project: Project, decision_id: int) -> Decision:
    found = _decisions(project).filter(pk=decision_id).first()
    if found is None:
        raise NotFound
    return found


@_operation(Action.DECIDE, body=NewDecision, answers={201: DecisionRow})
def create_decision(request: Request, project: Project) -> Response:
    """Decide: active at once, approved by the caller."""
    decision = verbs.create_decision(
        project_id=project.pk, actor=actor_of(request), now=timezone.now(), **read(NewDecision, request)
    )
    headers = {"Location": f"/api/projects/{project.pk}/decisions/{decision.pk}"}
    return Response(shown(decision), status=201, headers=headers)


@_operation(Action.READ, filters=DecisionFilters, answers={200: page_of(DecisionRow)})
def list_decisions(request: Request, project: Project) -> Response:
    """Decisions, newest first; active ones unless `status` says otherwise."""
    return paged(request, filtered(DecisionFilters, request, _decisions(project)), shown)


@_operation(Action.READ, answers={200: DecisionRow})
def get_decision(request: Request, project: Project, id: int) -> Response:
    """One decision."""
    return Response(shown(_decision(project, id)))


@_operation(Action.DECIDE, body=DecisionChange, answers={200: DecisionRow}, problem_codes=[409])
def edit_decision(request: Request, project: Project, id: int) -> Response:
    """Change an active decision at the revision that was read; the caller approves what it becomes."""
    decision = verbs.edit_decision(
        project_id=project.pk, actor=actor_of(request), decision_id=id, now=timezone.now(),
        **read(DecisionChange, request),
    )  # fmt: skip
    return Response(shown(decision))


@_operation(Action.DECIDE, body=DecisionApproval, answers={200: DecisionRow}, problem_codes=[409])
def approve_decision(request: Request, project: Project, id: int) -> Response:
    """Approve a decision, imported ones too, at the revision that was read."""
    fields = read(DecisionApproval, request)
    decision = verbs.approve_decision(
        project_id=project.pk, actor=actor_of(request), decision_id=id, revision=fields.pop("revision"),
        corrections=Corrections(**fields), now=timezone.now(),
    )  # fmt: skip
    return Response(shown(decision))


@_operation(Action.DECIDE, body=Supersession, answers={200: WithdrawnDecision}, problem_codes=[409])
def supersede_decision(request: Request, project: Project, id: int) -> Response:
    """Let another active decision take this one's place."""
    decision = verbs.supersede_decision(
        project_id=project.pk, actor=actor_of(request), decision_id=id, now=timezone.now(),
        **read(Supersession, request),
    )  # fmt: skip
    return _withdrawn(project, decision)


@_operation(Action.DECIDE, body=Archival, answers={200: WithdrawnDecision}, problem_codes=[409])
def archive_decision(request: Request, project: Project, id: int) -> Response:
    """Put an active decision away; also how a legacy decision is refused."""
    decision = verbs.archive_decision(
        project_id=project.pk,
        actor=actor_of(request),
        decision_id=id,
        now=timezone.now(),
        **read(Archival, request),
    )
    return _withdrawn(project, decision)


@_operation(Action.READ, answers={200: page_of(RevisionRow)})
def decision_history(request: Request, project: Project, id: int) -> Response:
    """What happened to a decision, oldest first, retold from the ledger."""
    return history(request, project, _decision(project, id))
