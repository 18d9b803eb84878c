"""/projects/{p}/events (SPEC 7): the ledger, filtered, and its verification."""

from __future__ import annotations

import json
from functools import partial
from typing import Any

from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from agentweaver.api.filters import EventFilters, filtered
from agentweaver.api.pagination import page_of, paged
from agentweaver.api.routing import operation
from agentweaver.api.rows import Row
from governance.people.policies import Action
from memory.ledger.verification import verify
from memory.models import LedgerEvent, Project

_operation = partial(operation, tag="events")


class EventRow(Row):
    """One change. `hash` covers every other column and the project's UUID, as SPEC 3 says."""

    number = serializers.IntegerField()
    at = serializers.DateTimeField()
    action = serializers.CharField()
    actor = serializers.CharField()
    target = serializers.CharField()
    before = serializers.DictField(allow_null=True)
    after = serializers.DictField(allow_null=True)
    reason = serializers.CharField()
    state = serializers.CharField(
        help_text="SHA-256 of the whole row after the change; empty when it is no row."
    )
    prev_hash = serializers.CharField()
    hash = serializers.CharField()


class BrokenRow(Row):
    number = serializers.IntegerField(allow_null=True)
    target = serializers.CharField()
    problem = serializers.CharField()


class HeadRow(Row):
    """Where the ledger ends. Kept elsewhere, it proves later that nothing before it was rewritten."""

    number = serializers.IntegerField()
    hash = serializers.CharField()


class VerificationRow(Row):
    valid = serializers.BooleanField()
    checked = serializers.IntegerField()
    first_broken = BrokenRow(allow_null=True)
    head = HeadRow()


def _shown(event: LedgerEvent) -> dict[str, Any]:
    return {
        "number": event.number, "at": event.at, "action": event.action, "actor": event.actor, "target": event.target,
        "before": json.loads(event.before), "after": json.loads(event.after), "reason": event.reason,
        "state": event.state, "prev_hash": event.prev_hash, "hash": event.hash,
    }  # fmt: skip


@_operation(Action.READ, filters=EventFilters, answers={200: page_of(EventRow)})
def list_events(request: Request, project: Project) -> Response:
    """The project's ledger, newest first."""
    rows = LedgerEvent.objects.filter(project=project).order_by("-number", "-pk")
    return paged(request, filtered(EventFilters, request, rows), _shown)


@_operation(Action.READ, answers={200: VerificationRow})
def verify_events(request: Request, project: Project) -> Response:
    """Check the project's whole ledger, and every row against it."""
    found = verify(project)
    broken = found.first_broken
    return Response(
        {
            "valid": found.valid,
            "checked": found.checked,
            "first_broken": broken
            and {"number": broken.number, "target": broken.target, "problem": broken.problem},
            "head": {"number": found.head.number, "hash": found.head.hash},
        }
    )
