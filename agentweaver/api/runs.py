"""/projects/{p}/runs (SPEC 7): register, read, complete. Contexts of runs are in `contexts`."""

from __future__ import annotations

from functools import partial
from typing import Any

from django.utils import timezone
from drf_spectacular.utils import OpenApiResponse
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from agentweaver.api.authentication import actor_of
from agentweaver.api.fields import Body, Flag, Identifier, Name, OneOf, Text, read
from agentweaver.api.filters import RunFilters, filtered
from agentweaver.api.pagination import page_of, paged
from agentweaver.api.routing import operation
from agentweaver.api.rows import Row, RunRow, words
from governance.deciding import scribe
from governance.people import policies
from governance.people.credentials import issue_run_credential
from governance.people.policies import Action
from memory.enums import RunRole, RunStatus
from memory.ledger.changes import change
from memory.models import Project, Run
from memory.runs import ENDED
from memory.runs import register_run as register
from memory.values import MAX_EXTERNAL_ID, clean_title

_operation = partial(operation, tag="runs")


class NewRun(Body):
    agent_name = Name()
    role = OneOf(RunRole, required=False, help_text="Default `worker`. A child run is never a coordinator.")
    parent_run_id = Identifier(required=False, allow_null=True)
    external_id = Text(
        MAX_EXTERNAL_ID,
        partial(clean_title, limit=MAX_EXTERNAL_ID),
        required=False,
        allow_null=True,
        help_text="The orchestrator's own id. The same one again answers with the same run and a new token.",
    )
    charter = Text(required=False, allow_null=True, help_text="Becomes the agent's charter.")


class Completion(Body):
    status = serializers.ChoiceField(choices=[word.value for word in ENDED], required=False)
    summary = Text(required=False)
    end_session = Flag(
        required=False, help_text="Close the open session too; otherwise it is only summarised."
    )


class RegisteredRun(RunRow):
    """A run with its credential, which is shown this once."""

    token = serializers.CharField()
    token_expires_at = serializers.DateTimeField()


class ScribeStep(Row):
    name = serializers.ChoiceField(choices=words(scribe.Step))
    state = serializers.ChoiceField(choices=words(scribe.State))
    code = serializers.CharField()
    detail = serializers.CharField()


class ScribeReportRow(Row):
    """What followed the end of a run (SPEC 6, Scribe)."""

    run = serializers.UUIDField()
    status = serializers.ChoiceField(choices=RunStatus.choices)
    steps = ScribeStep(many=True)
    promoted = serializers.ListField(child=serializers.DictField())
    waiting = serializers.ListField(child=serializers.DictField())
    session = serializers.DictField(allow_null=True)
    exported_files = serializers.IntegerField(allow_null=True)


def shown(run: Run) -> dict[str, Any]:
    return dict(RunRow(run).data)


@_operation(
    Action.RUN_RUNS,
    body=NewRun,
    answers={
        201: RegisteredRun,
        200: OpenApiResponse(RegisteredRun, description="This external_id is registered; a new token."),
    },
    problem_codes=[409],
)
def register_run(request: Request, project: Project) -> Response:
    """Register a run. `token` is the run's credential, shown this once; an earlier one of the same run is dead."""
    fields = read(NewRun, request)
    actor, now = actor_of(request), timezone.now()
    with change(project.pk, actor, now) as opened:
        policies.require(actor, Action.RUN_RUNS, opened.project)
        run, is_new = register(opened, **fields)
        issued = issue_run_credential(run, now)
    token = {"token": issued.token, "token_expires_at": issued.credential.expires_at}
    answer = {**shown(run), **token}
    headers = {"Location": f"/api/projects/{project.pk}/runs/{run.pk}", "Cache-Control": "no-store"}
    return Response(answer, status=201 if is_new else 200, headers=headers)


@_operation(Action.READ, filters=RunFilters, answers={200: page_of(RunRow)})
def list_runs(request: Request, project: Project) -> Response:
    """The project's runs, newest first."""
    rows = Run.objects.filter(project=project).select_related("agent").order_by("-started_at", "-pk")
    return paged(request, filtered(RunFilters, request, rows), shown)


@_operation(Action.READ, answers={200: RunRow})
def get_run(request: Request, run: Run) -> Response:
    """One run."""
    return Response(shown(run))


@_operation(Action.RUN_RUNS, body=Completion, answers={200: ScribeReportRow}, problem_codes=[409])
def complete_run(request: Request, run: Run) -> Response:
    """End a run and let the scribe do its work. Repeating it answers with the same report and retries what failed."""
    fields = {"status": RunStatus.COMPLETED.value, **read(Completion, request)}
    report = scribe.complete_run(
        project_id=run.project_id, actor=actor_of(request), run_id=run.pk, now=timezone.now(), **fields
    )
    return Response(report.as_json())
