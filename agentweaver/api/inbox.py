"""/projects/{p}/decisions/inbox (SPEC 6 and 7): submit, read, merge, reject."""

from __future__ import annotations

from functools import partial
from typing import Any

from django.db.models import QuerySet
from django.utils import timezone
from drf_spectacular.utils import OpenApiResponse
from rest_framework.request import Request
from rest_framework.response import Response

from agentweaver.api.authentication import actor_of
from agentweaver.api.fields import Body, Content, Name, OneOf, Reason, Revision, Slug, Tags, Text, read
from agentweaver.api.filters import EntryFilters, filtered
from agentweaver.api.pagination import page_of, paged
from agentweaver.api.routing import operation
from agentweaver.api.rows import DecisionRow, EntryRow, MemoryRow
from governance.deciding import entries as verbs
from governance.deciding.gate import Corrections
from governance.people.policies import Action
from memory import recording
from memory.enums import EntryType, Importance
from memory.errors import NotFound
from memory.models import DecisionInboxEntry, Project
from memory.values import MAX_TITLE, clean_title

_operation = partial(operation, tag="inbox")


class NewEntry(Body):
    agent_name = Name()
    slug = Slug()
    type = OneOf(EntryType)
    content = Content()
    title = Text(
        MAX_TITLE, partial(clean_title, required=False), required=False, help_text="Default: the slug."
    )
    rationale = Text(required=False)
    importance = OneOf(Importance, required=False, help_text="Default `high`.")
    tags = Tags(required=False)


class Merge(Body):
    revision = Revision()
    type = OneOf(EntryType, required=False)
    importance = OneOf(Importance, required=False)
    tags = Tags(required=False)


class Rejection(Body):
    reason = Reason()
    revision = Revision(required=False)


class MergedEntry(EntryRow):
    """A merged entry with the row it became."""

    decision_row = DecisionRow(allow_null=True)
    memory_row = MemoryRow(allow_null=True)


def shown(entry: DecisionInboxEntry) -> dict[str, Any]:
    return dict(EntryRow(entry).data)


def _entries(project: Project) -> QuerySet[DecisionInboxEntry]:
    rows = DecisionInboxEntry.objects.filter(project=project).select_related("agent")
    return rows.order_by("-created_at", "-pk")


@_operation(
    Action.RECORD,
    body=NewEntry,
    answers={
        201: EntryRow,
        200: OpenApiResponse(EntryRow, description="A pending entry was updated in place."),
    },
    problem_codes=[409],
)
def submit_entry(request: Request, project: Project) -> Response:
    """Propose something. A slug that is taken by somebody else becomes `{slug}--{agent}`; the answer says which it is."""
    entry, is_new = recording.submit_entry(
        project_id=project.pk, actor=actor_of(request), now=timezone.now(), **read(NewEntry, request)
    )
    return Response(shown(entry), status=201 if is_new else 200)


@_operation(Action.READ, filters=EntryFilters, answers={200: page_of(EntryRow)})
def list_entries(request: Request, project: Project) -> Response:
    """Inbox entries, newest first; pending ones unless `status` says otherwise."""
    return paged(request, filtered(EntryFilters, request, _entries(project)), shown)


@_operation(Action.READ, answers={200: EntryRow})
def get_entry(request: Request, project: Project, id: int) -> Response:
    """One inbox entry."""
    entry = _entries(project).filter(pk=id).first()
    if entry is None:
        raise NotFound
    return Response(shown(entry))


@_operation(Action.DECIDE, body=Merge, answers={200: MergedEntry}, problem_codes=[409])
def merge_entry(request: Request, project: Project, id: int) -> Response:
    """Merge a pending entry at the revision that was read: it becomes an active decision or an approved memory.

    The same caller merging it again gets the same row.
    """
    fields = read(Merge, request)
    verbs.merge_entry(
        project_id=project.pk, actor=actor_of(request), entry_id=id, revision=fields.pop("revision"),
        corrections=Corrections(**fields), now=timezone.now(),
    )  # fmt: skip
    entry = _entries(project).select_related("decision__agent", "memory__agent", "memory__session").get(pk=id)
    return Response(
        {
            **shown(entry),
            "decision_row": DecisionRow(entry.decision).data if entry.decision else None,
            "memory_row": MemoryRow(entry.memory).data if entry.memory else None,
        }
    )


@_operation(Action.DECIDE, body=Rejection, answers={200: EntryRow}, problem_codes=[409])
def reject_entry(request: Request, project: Project, id: int) -> Response:
    """Reject a pending entry with a reason, which the proposing agent can read."""
    entry = verbs.reject_entry(
        project_id=project.pk,
        actor=actor_of(request),
        entry_id=id,
        now=timezone.now(),
        **read(Rejection, request),
    )
    return Response(shown(entry))
