"""What happened to a row and which runs were told it (SPEC 7, history and receipts)."""

from __future__ import annotations

from functools import partial
from typing import Any

from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from agentweaver.api.pagination import page_of, paged
from agentweaver.api.routing import operation
from agentweaver.api.rows import Row
from governance.people.policies import Action
from memory.enums import RunRole, RunStatus
from memory.errors import NotFound
from memory.ledger import history as ledger_history
from memory.ledger.changes import KINDS, target_of
from memory.models import AgentMemory, ContextReceipt, Decision, Project

_operation = partial(operation, tag="receipts")


class RevisionRow(Row):
    """A row as one event left it. `number` is the event's, `revision` the row's own."""

    number = serializers.IntegerField()
    at = serializers.DateTimeField()
    actor = serializers.CharField()
    action = serializers.CharField()
    reason = serializers.CharField()
    revision = serializers.IntegerField(allow_null=True)
    values = serializers.DictField()
    changed = serializers.DictField(help_text="Per field `before` and `after`.")
    adds_up = serializers.BooleanField(help_text="Whether the values match what the event wrote down.")


class ToldRunRow(Row):
    run = serializers.UUIDField()
    agent_name = serializers.CharField()
    role = serializers.ChoiceField(choices=RunRole.choices)
    status = serializers.ChoiceField(choices=RunStatus.choices)
    times = serializers.IntegerField()
    first_at = serializers.DateTimeField()
    last_at = serializers.DateTimeField()
    revisions = serializers.ListField(child=serializers.IntegerField())


class ToldRunsRow(Row):
    """The runs that were told a row, last told first; `total` counts all of them."""

    total = serializers.IntegerField()
    runs = ToldRunRow(many=True)


class WithToldRuns(Row):
    told_runs = ToldRunsRow()


class ReceiptRow(Row):
    """One telling of one row: when, to which run, at which revision, in which block."""

    receipt_id = serializers.IntegerField()
    run_id = serializers.UUIDField()
    agent_name = serializers.CharField()
    at = serializers.DateTimeField()
    epoch = serializers.IntegerField()
    revision = serializers.IntegerField()
    layer = serializers.IntegerField()
    sha256 = serializers.CharField()


def history(request: Request, project: Project, row: AgentMemory | Decision) -> Response:
    """One page of a row's history."""
    return paged(request, ledger_history.revisions(project, target_of(row)), lambda told: told.as_json())


def told_runs(project: Project, row: AgentMemory | Decision) -> dict[str, Any]:
    """The runs that worked with a row that is now withdrawn."""
    return ledger_history.told_runs(project, KINDS[type(row)], row.pk).as_json()


@_operation(Action.READ, answers={200: page_of(ReceiptRow)})
def memory_receipts(request: Request, project: Project, id: int) -> Response:
    """Which runs were told this memory, newest first."""
    _require(AgentMemory.objects.filter(project=project, pk=id))
    return _receipts(request, project, "memory", id)


@_operation(Action.READ, answers={200: page_of(ReceiptRow)})
def decision_receipts(request: Request, project: Project, id: int) -> Response:
    """Which runs were told this decision, newest first."""
    _require(Decision.objects.filter(project=project, pk=id))
    return _receipts(request, project, "decision", id)


def _require(rows: Any) -> None:
    if not rows.exists():
        raise NotFound


def _receipts(request: Request, project: Project, kind: str, row_id: int) -> Response:
    return paged(request, ledger_history.receipts_of(project, kind, row_id), _shown)


def _shown(receipt: ContextReceipt) -> dict[str, Any]:
    told: Any = receipt
    return {
        "receipt_id": told.pk, "run_id": told.run_id, "agent_name": told.run.agent.name, "at": told.at,
        "epoch": told.epoch, "revision": told.told_revision, "layer": told.told_layer,
        "sha256": told.snapshot.sha256,
    }  # fmt: skip
