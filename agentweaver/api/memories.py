"""/projects/{p}/agents/{name}/memory and /projects/{p}/memory (SPEC 7): record, read, edit, approve, retire, search."""

from __future__ import annotations

from functools import partial
from typing import Any

from django.db.models import QuerySet
from django.utils import timezone
from rest_framework.request import Request
from rest_framework.response import Response

from agentweaver.api.authentication import actor_of
from agentweaver.api.fields import Body, Content, OneOf, Reason, Revision, SessionId, Tags, read
from agentweaver.api.filters import MemoryFilters, MemorySearch, filtered
from agentweaver.api.histories import RevisionRow, WithToldRuns, history, told_runs
from agentweaver.api.names import agent_name
from agentweaver.api.pagination import page_of, paged
from agentweaver.api.routing import operation
from agentweaver.api.rows import MemoryRow
from governance.deciding import memories as verbs
from governance.deciding.gate import Corrections
from governance.people.policies import Action
from memory import recording
from memory.enums import Importance, MemoryType
from memory.errors import NotFound
from memory.models import AgentMemory, Project
from memory.values import agent_key

_operation = partial(operation, tag="memory")


class NewMemory(Body):
    type = OneOf(MemoryType)
    content = Content()
    importance = OneOf(Importance, required=False, help_text="Default `medium`.")
    tags = Tags(required=False)
    session_id = SessionId(required=False, allow_null=True)


class MemoryChange(Body):
    revision = Revision()
    type = OneOf(MemoryType, required=False)
    content = Content(required=False)
    importance = OneOf(Importance, required=False)
    tags = Tags(required=False)


class MemoryApproval(Body):
    revision = Revision()
    type = OneOf(MemoryType, required=False)
    importance = OneOf(Importance, required=False)
    tags = Tags(required=False)


class WithReason(Body):
    reason = Reason()


class RetiredMemory(WithToldRuns, MemoryRow):
    """A retired memory, and the runs that were told it before."""


def shown(memory: AgentMemory) -> dict[str, Any]:
    return dict(MemoryRow(memory).data)


def _memories(project: Project) -> QuerySet[AgentMemory]:
    rows = AgentMemory.objects.filter(project=project).select_related("agent", "session")
    return rows.order_by("-created_at", "-pk")


def _memory(project: Project, memory_id: int, name: str | None = None) -> AgentMemory:
    """A memory of the project, and of the agent when one is named. Raises NotFound."""
    rows = _memories(project).filter(pk=memory_id)
    if name is not None:
        rows = rows.filter(agent__key=agent_key(agent_name(name)))
    found = rows.first()
    if found is None:
        raise NotFound
    return found


@_operation(Action.RECORD, body=NewMemory, answers={201: MemoryRow})
def record_memory(request: Request, project: Project, name: str) -> Response:
    """Remember something for an agent: a pending memory. A run writes as its own agent only (403 `agent_mismatch`)."""
    actor = actor_of(request)
    recording.require_own_agent(actor, agent_name(name))
    memory = recording.record_memory(
        project_id=project.pk, actor=actor, agent_name=name, now=timezone.now(), **read(NewMemory, request)
    )
    return Response(shown(memory), status=201)


@_operation(Action.READ, filters=MemoryFilters, answers={200: page_of(MemoryRow)})
def list_memories(request: Request, project: Project, name: str) -> Response:
    """An agent's memories, newest first; retired ones too unless `status` says otherwise."""
    rows = _memories(project).filter(agent__key=agent_key(agent_name(name)))
    return paged(request, filtered(MemoryFilters, request, rows), shown)


@_operation(Action.READ, answers={200: MemoryRow})
def get_memory(request: Request, project: Project, name: str, id: int) -> Response:
    """One memory of an agent."""
    return Response(shown(_memory(project, id, name)))


@_operation(Action.RECORD, body=MemoryChange, answers={200: MemoryRow}, problem_codes=[409])
def edit_memory(request: Request, project: Project, name: str, id: int) -> Response:
    """Change a memory at the revision that was read; it goes back to `pending`. A run edits its own agent's only."""
    actor = actor_of(request)
    recording.require_own_agent(actor, agent_name(name))
    memory = recording.edit_memory(
        project_id=project.pk, actor=actor, memory_id=id, agent_name=name, now=timezone.now(),
        **read(MemoryChange, request),
    )  # fmt: skip
    return Response(shown(memory))


@_operation(Action.DECIDE, body=MemoryApproval, answers={200: MemoryRow}, problem_codes=[409])
def approve_memory(request: Request, project: Project, name: str, id: int) -> Response:
    """Approve a memory at the revision that was read, correcting type, importance and tags in the same step."""
    fields = read(MemoryApproval, request)
    memory = verbs.approve_memory(
        project_id=project.pk, actor=actor_of(request), memory_id=id, agent_name=agent_name(name),
        revision=fields.pop("revision"), corrections=Corrections(**fields), now=timezone.now(),
    )  # fmt: skip
    return Response(shown(memory))


@_operation(Action.DECIDE, body=WithReason, answers={200: RetiredMemory}, problem_codes=[409])
def retire_memory(request: Request, project: Project, name: str, id: int) -> Response:
    """Take a memory out of every later context, with a reason; also how a legacy memory is refused."""
    memory = verbs.retire_memory(
        project_id=project.pk, actor=actor_of(request), memory_id=id, agent_name=agent_name(name),
        reason=read(WithReason, request)["reason"], now=timezone.now(),
    )  # fmt: skip
    return Response({**shown(memory), "told_runs": told_runs(project, memory)})


@_operation(Action.READ, answers={200: page_of(RevisionRow)})
def memory_history(request: Request, project: Project, name: str, id: int) -> Response:
    """What happened to a memory, oldest first, retold from the ledger."""
    return history(request, project, _memory(project, id, name))


@_operation(Action.READ, filters=MemorySearch, answers={200: page_of(MemoryRow)})
def search_memories(request: Request, project: Project) -> Response:
    """Memories of all agents, newest first."""
    return paged(request, filtered(MemorySearch, request, _memories(project)), shown)
