"""Compiled contexts (SPEC 4 and 7): for a run with a receipt, as a preview with a strong ETag, and explained row by row."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from django.http import HttpResponse
from django.http.response import HttpResponseBase
from django.utils import timezone
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, OpenApiResponse
from rest_framework import serializers
from rest_framework.renderers import BaseRenderer
from rest_framework.request import Request
from rest_framework.response import Response

from agentweaver.api import problems
from agentweaver.api.fields import Body, Whole, read
from agentweaver.api.names import agent_name
from agentweaver.api.pagination import Page, page_of, whole_number
from agentweaver.api.routing import operation
from agentweaver.api.rows import PolicyRow, Row
from agentweaver.operations import metrics
from governance.people.policies import Action
from memory.compiling import explanation
from memory.compiling.compiler import CompiledContext, Limits, compile_context, compile_decisions, etag
from memory.compiling.receipts import RunContext, build_for_run
from memory.enums import Layer, OmitReason
from memory.errors import Conflict
from memory.models import Project, Run

_operation = partial(operation, tag="contexts")

LARGEST = 2**31 - 1
LARGEST_EPOCH = 2**63 - 1
_SEEN = "An epoch the caller has seen: the answer is of that one or a later one, or 409."
_VARY = "Accept, Authorization, Cookie"
_CACHING = "private, no-cache"


class PlainText(BaseRenderer):
    """Lets a request ask for `text/plain`; the block itself is written by the view."""

    media_type = "text/plain"
    format = "text"
    charset = "utf-8"

    def render(
        self, data: Any, accepted_media_type: str | None = None, renderer_context: Any = None
    ) -> bytes:
        return str(data).encode()


class LimitsBody(Body):
    """A request may only narrow the project's policy."""

    max_items = Whole(min_value=0, max_value=LARGEST, required=False, allow_null=True)
    max_tokens = Whole(min_value=1, max_value=LARGEST, required=False, allow_null=True)
    min_epoch = Whole(min_value=0, max_value=LARGEST_EPOCH, required=False, allow_null=True, help_text=_SEEN)


_LIMITS = [
    OpenApiParameter(
        name,
        {"type": "integer", "minimum": least, "maximum": LARGEST},
        description="Narrows the policy's limit.",
    )
    for name, least in (("max_items", 0), ("max_tokens", 1))
]
_MIN_EPOCH = OpenApiParameter(
    "min_epoch", {"type": "integer", "minimum": 0, "maximum": LARGEST_EPOCH}, description=_SEEN
)
_IF_NONE_MATCH = OpenApiParameter(
    "If-None-Match",
    {"type": "string"},
    location=OpenApiParameter.HEADER,
    description="ETags seen: 304 when one fits.",
)


class IncludedRow(Row):
    kind = serializers.ChoiceField(choices=["decision", "memory", "session"])
    id = serializers.IntegerField()
    revision = serializers.IntegerField()
    characters = serializers.IntegerField()


class LayerRow(Row):
    number = serializers.IntegerField(min_value=min(Layer), max_value=max(Layer))
    name = serializers.CharField()
    rows = IncludedRow(many=True)


class OmittedRow(Row):
    kind = serializers.ChoiceField(choices=["decision", "memory", "session"])
    id = serializers.IntegerField()
    reason = serializers.ChoiceField(choices=OmitReason.choices)


class ContextRow(Row):
    """A compiled context. `context` is null when no layer holds a row: then nothing is injected."""

    agent_name = serializers.CharField(allow_null=True, help_text="null where decisions only were asked for.")
    context = serializers.CharField(allow_null=True)  # type: ignore[assignment]
    sha256 = serializers.CharField(allow_null=True)
    epoch = serializers.IntegerField()
    tokens = serializers.IntegerField()
    policy = PolicyRow(help_text="The policy in force, as narrowed by the request.")
    over_budget = serializers.BooleanField()
    layers = LayerRow(many=True)
    omitted = OmittedRow(many=True)
    omitted_truncated = serializers.BooleanField(
        help_text="More rows are left out than are named here; see explain."
    )


class RunContextRow(Row):
    """What to inject for one turn of a run. `compile_error` is a code when compiling failed; then `context` is null."""

    run_id = serializers.UUIDField()
    agent_name = serializers.CharField()
    charter = serializers.CharField(allow_null=True)
    decisions_only = serializers.BooleanField(help_text="A child run gets its charter and decisions only.")
    context = serializers.CharField(allow_null=True)  # type: ignore[assignment]
    compile_error = serializers.CharField(allow_null=True)
    receipt_id = serializers.IntegerField()
    epoch = serializers.IntegerField()
    sha256 = serializers.CharField(allow_null=True)
    tokens = serializers.IntegerField()
    policy = PolicyRow(allow_null=True)
    over_budget = serializers.BooleanField()
    layers = LayerRow(many=True)
    omitted = OmittedRow(many=True)
    omitted_truncated = serializers.BooleanField()


class ExplainedRow(Row):
    """A candidate row: in the context, or the one reason why not."""

    kind = serializers.ChoiceField(choices=["decision", "memory", "session"])
    id = serializers.IntegerField()
    agent_name = serializers.CharField(allow_null=True)
    type = serializers.CharField(allow_null=True)
    title = serializers.CharField(help_text="A decision's title, or how a memory or a session begins.")
    created_at = serializers.DateTimeField()
    layer = serializers.IntegerField(allow_null=True, help_text="Of an included row.")
    included = serializers.BooleanField()
    reason = serializers.ChoiceField(choices=OmitReason.choices, allow_null=True)
    explanation = serializers.CharField(allow_null=True)


class ExplanationPage(page_of(ExplainedRow)):  # type: ignore[misc]
    agent_name = serializers.CharField()
    epoch = serializers.IntegerField()


def _compiled(compiled: CompiledContext) -> dict[str, Any]:
    """A plain dictionary: this answer is asked for before every turn."""
    policy = compiled.policy
    return {
        "context": compiled.text, "sha256": compiled.sha256, "epoch": compiled.epoch, "tokens": compiled.tokens,
        "policy": {
            "max_items": policy.max_items, "max_tokens": policy.max_tokens,
            "on_overflow": policy.on_overflow.value, "trust": policy.trust.value,
        },
        "over_budget": compiled.over_budget,
        "layers": [_layer(compiled, layer) for layer in Layer],
        "omitted": [{"kind": row.kind, "id": row.id, "reason": row.reason.value} for row in compiled.omitted],
        "omitted_truncated": compiled.omitted_truncated,
    }  # fmt: skip


def _layer(compiled: CompiledContext, layer: Layer) -> dict[str, Any]:
    rows = [
        {"kind": row.kind, "id": row.id, "revision": row.revision, "characters": row.characters}
        for row in compiled.layer(layer)
    ]
    return {"number": layer.value, "name": layer.label, "rows": rows}


# For a run


@_operation(
    Action.RUN_RUNS, own_run=True, body=LimitsBody, answers={200: RunContextRow}, problem_codes=[409, 422]
)
def build_run_context(request: Request, run: Run) -> HttpResponseBase:
    """What a run is told before its turn, with a receipt. An orchestrator asks for any run, a run for itself.

    A failure to compile answers with the charter, `context: null` and `compile_error`; only a run without a parent whose
    mandatory context exceeds a budget that is to `fail` gets 422, with the same members. A run that has ended is told nothing: 409.
    """
    given = read(LimitsBody, request)
    _require_epoch(run.project, given.pop("min_epoch", None))
    if not run.is_running:
        raise Conflict("This run has ended.", run)
    built = build_for_run(run, Limits(**given), timezone.now())
    metrics.count_compile("run", built.compiled)
    if built.error is not None and not run.is_child:
        return _over_budget(request, built)
    return Response(_told(built), headers={"Cache-Control": "no-store"})


def _told(built: RunContext) -> dict[str, Any]:
    return {
        "run_id": str(built.run.pk), "agent_name": built.run.agent.name, "charter": built.charter or None,
        "decisions_only": built.run.is_child, "compile_error": built.compile_error, "receipt_id": built.receipt.pk,
        **(_compiled(built.compiled) if built.compiled else _nothing(built)),
    }  # fmt: skip


def _nothing(built: RunContext) -> dict[str, Any]:
    return {
        "context": None, "sha256": None, "epoch": built.receipt.epoch, "tokens": 0, "policy": None,
        "over_budget": False, "layers": [], "omitted": [], "omitted_truncated": False,
    }  # fmt: skip


def _over_budget(request: Request, built: RunContext) -> HttpResponse:
    """422, from which an orchestrator can still take the charter."""
    error = built.error
    problem = problems.problem_of(error) if error is not None else problems.problem_of(RuntimeError())
    told = {
        "charter": built.charter or None, "context": None, "compile_error": built.compile_error,
        "receipt_id": built.receipt.pk,
    }  # fmt: skip
    more = {**problem.more, **told}
    answer = problems.Problem(problem.status, problem.code, problem.detail, more=more)
    return problems.answer(answer, request._request)


# Previews

_PREVIEW: dict[Any, Any] = {
    (200, "application/json"): ContextRow,
    (200, "text/plain"): OpenApiResponse(OpenApiTypes.STR, description="The bare block."),
    204: OpenApiResponse(None, description="`text/plain` was asked for and there is no block."),
    304: OpenApiResponse(None, description="The ETag fits: nothing changed."),
}
_preview = partial(
    _operation,
    Action.READ,
    answers=_PREVIEW,
    parameters=[*_LIMITS, _MIN_EPOCH, _IF_NONE_MATCH],
    problem_codes=[409, 422],
)


@_preview()
def preview_context(request: Request, project: Project, name: str) -> HttpResponseBase:
    """What an agent would be told now, without a receipt. `Accept: text/plain` gives the bare block, or 204.

    An agent nobody has named yet gets what any agent would get; asking creates nothing.
    """
    asked = agent_name(name)
    return _previewed(
        request, project, f"agent:{asked}", lambda limits: compile_context(project, asked, limits)
    )


@_preview()
def preview_decisions(request: Request, project: Project) -> HttpResponseBase:
    """Decisions only: what any child run would be told beside its charter."""
    return _previewed(request, project, "decisions", lambda limits: compile_decisions(project, limits))


def _previewed(
    request: Request, project: Project, what: str, compile_: Callable[[Limits], CompiledContext]
) -> HttpResponseBase:
    """The answer with its validator, which is made of the project's row alone before any other row is read (SPEC 11)."""
    limits = _limits(request)
    _require_epoch(project, whole_number(request, "min_epoch", 0, LARGEST_EPOCH, default=0))
    as_text = request.accepted_renderer.format == PlainText.format
    tag = etag(project, what, limits.max_items, limits.max_tokens, "text" if as_text else "json")
    if _is_known(request, tag):
        answer: HttpResponseBase = HttpResponse(status=304)
        metrics.compiles.labels("preview", "unchanged").inc()
    else:
        compiled = compile_(limits)
        metrics.count_compile("preview", compiled)
        # A change in between would put the newer rows under the older tag.
        tag = tag if compiled.epoch == project.epoch else ""
        answer = (
            _block(compiled)
            if as_text
            else Response({"agent_name": compiled.agent_name, **_compiled(compiled)})
        )
    if tag:
        answer["ETag"] = tag
    answer["Vary"], answer["Cache-Control"] = _VARY, _CACHING
    return answer


def _limits(request: Request) -> Limits:
    """The limits among a query's parameters. Raises Invalid."""
    given = request.query_params
    return Limits(
        whole_number(request, "max_items", 0, LARGEST, default=0) if "max_items" in given else None,
        whole_number(request, "max_tokens", 1, LARGEST, default=1) if "max_tokens" in given else None,
    )


def _require_epoch(project: Project, seen: int | None) -> None:
    """A compile is never of an older epoch than the project's row, so it is enough to look at that. Raises Conflict.

    A project that is behind what a caller has seen was restored, or failed over to a replica that had not everything.
    """
    if seen is not None and project.epoch < seen:
        raise Conflict(f"This project is at epoch {project.epoch}, not at {seen}.", project)


def _block(compiled: CompiledContext) -> HttpResponse:
    if compiled.text is None:
        return HttpResponse(status=204)
    return HttpResponse(compiled.text, content_type="text/plain; charset=utf-8")


def _is_known(request: Request, tag: str) -> bool:
    """Whether If-None-Match names the tag: a list of tags, or `*`."""
    given = request.headers.get("If-None-Match", "")
    seen = [part.strip().removeprefix("W/") for part in given.split(",")]
    return given.strip() == "*" or tag in seen


# Explained


@_operation(Action.READ, answers={200: ExplanationPage}, parameters=_LIMITS, problem_codes=[422])
def explain_context(request: Request, project: Project, name: str) -> Response:
    """Every candidate row, newest first: in the agent's context, or the one reason why not."""
    page = Page.of(request)
    found = explanation.explain(project, agent_name(name), _limits(request), page.slice)
    items = [_explained(row) for row in found.rows]
    return Response({**page.answer(items, found.total), "agent_name": found.agent_name, "epoch": found.epoch})


def _explained(row: explanation.Explained) -> dict[str, Any]:
    return {
        "kind": row.kind, "id": row.id, "agent_name": row.agent_name or None, "type": row.type or None,
        "title": row.title, "created_at": row.created_at, "layer": row.layer and int(row.layer),
        "included": row.reason is None, "reason": row.reason and row.reason.value,
        "explanation": row.reason and row.reason.label,
    }  # fmt: skip
