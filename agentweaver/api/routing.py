"""Routes as plain functions, each with the one policy that opens it (SPEC 5).

`operation` names the policy of a function; `resource` makes the view of a path from its operations and refuses anything else, so
a route without a policy does not start. The project and the run of the path are loaded here, together with what the caller may
do there, and a stranger gets the answer of a row that does not exist.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any, ClassVar

from django.http import HttpResponse
from django.http.response import HttpResponseBase
from drf_spectacular.utils import OpenApiParameter, OpenApiResponse, extend_schema
from rest_framework.exceptions import MethodNotAllowed, UnsupportedMediaType
from rest_framework.parsers import BaseParser
from rest_framework.renderers import BaseRenderer, JSONRenderer
from rest_framework.request import Request
from rest_framework.serializers import Serializer
from rest_framework.views import APIView

from agentweaver.api import pagination
from agentweaver.api.authentication import actor_of
from agentweaver.api.filters import Filters
from agentweaver.api.parsing import StrictJSONParser
from agentweaver.api.problem_schema import problem_responses
from governance.people import policies
from governance.people.policies import Action
from memory.actors import Actor, VerifiedRun
from memory.errors import Invalid, Refused


class Access(StrEnum):
    """What a route outside any project asks for."""

    PUBLIC = "public"
    SIGNED_IN = "signed_in"
    """Anyone with a credential."""
    PERSON = "person"
    """A person or a service account, never a run."""


Policy = Action | Access
Function = Callable[..., HttpResponseBase]
Answers = Mapping[Any, Any]


@dataclass(frozen=True, slots=True)
class Operation:
    """One method of one path. `own_run`: the run of the path may do it to itself without the action."""

    function: Function
    policy: Policy
    own_run: bool
    parameters: Sequence[OpenApiParameter] = field(default=(), repr=False)
    schema: Mapping[str, Any] = field(default_factory=dict, repr=False)

    def alias(self, name: str) -> Operation:
        """The same operation for a second path, under a name of its own in the schema."""
        return replace(self, schema={**self.schema, "operation_id": name})

    def admit(self, request: Request, path: Mapping[str, Any]) -> dict[str, Any]:
        """The function's arguments for a caller who may call it. Raises CredentialRefused, NotFound, Refused, Invalid."""
        given = dict(path)
        if self.policy != Access.PUBLIC:
            given = self._standing(actor_of(request), given)
        self._refuse_unknown(request)
        return given

    def _standing(self, actor: Actor, path: dict[str, Any]) -> dict[str, Any]:
        if isinstance(self.policy, Access):
            if self.policy == Access.PERSON and isinstance(actor, VerifiedRun):
                raise Refused("role_required", "A run may not do this.")
            return path
        reference = path.pop("p")
        if "run_id" not in path:
            project, actions = policies.standing(actor, reference)
            policies.check(actions, self.policy)
            return {"project": project, **path}
        run, actions = policies.standing_on_run(actor, reference, path.pop("run_id"))
        if not (self.own_run and isinstance(actor, VerifiedRun) and actor.run_id == run.pk):
            policies.check(actions, self.policy)
        return {"run": run, **path}

    def _refuse_unknown(self, request: Request) -> None:
        """A misspelt filter must not answer with the whole list."""
        known = {parameter.name for parameter in self.parameters}
        errors = {}
        for name, values in request.query_params.lists():
            if name not in known:
                shown = name if name.isprintable() and 0 < len(name) <= 60 else "query"
                errors[shown] = ["Unknown parameter."]
            elif len(values) > 1:
                errors[name] = ["Given more than once."]
        if errors:
            raise Invalid(errors)


def operation(
    policy: Policy,
    *,
    tag: str,
    answers: Answers,
    body: type[Serializer[Any]] | Mapping[str, type[Serializer[Any]]] | None = None,
    filters: type[Filters] | None = None,
    parameters: Sequence[OpenApiParameter] = (),
    own_run: bool = False,
    problem_codes: Sequence[int] = (),
    examples: Sequence[Any] = (),
) -> Callable[[Function], Operation]:
    """Name the policy and the shape of a view function. `answers` maps a status to what it is answered with."""
    listed = any(_is_page(answer) for answer in answers.values())
    known = [
        *parameters,
        *(filters.parameters() if filters else ()),
        *(pagination.PARAMETERS if listed else ()),
    ]

    def decorate(function: Function) -> Operation:
        statuses = {*problem_codes, *_usual_problems(policy, body is not None, bool(known))}
        schema: dict[str, Any] = {
            "operation_id": function.__name__, "tags": [tag], "request": body, "parameters": known,
            "responses": {**answers, **problem_responses(statuses)}, "examples": list(examples),
        }  # fmt: skip
        if policy == Access.PUBLIC:
            schema["auth"] = []
        return Operation(function, policy, own_run, tuple(known), schema)

    return decorate


def _is_page(answer: Any) -> bool:
    shown = answer.response if isinstance(answer, OpenApiResponse) else answer
    return isinstance(shown, type) and issubclass(shown, pagination.PageRow)


def _usual_problems(policy: Policy, has_body: bool, has_query: bool) -> set[int]:
    """The refusals any such route may answer with."""
    found = {400, 406, 429, 500, 503}
    if policy != Access.PUBLIC:
        found |= {401, 403}
    if isinstance(policy, Action):
        found.add(404)
    return found | ({413, 415} if has_body else set())


class Resource(APIView):
    """The view of one path: finds the operation of the method, asks its policy, calls its function."""

    operations: ClassVar[Mapping[str, Operation]] = {}
    permission_classes = ()
    renderer_classes: Sequence[type[BaseRenderer]] = (JSONRenderer,)

    def initialize_request(self, request: Any, *args: Any, **kwargs: Any) -> Request:
        # A charset of the caller's choice would decide how its parameters are decoded.
        self.charset = request.content_params.get("charset", "utf-8") if request.content_params else "utf-8"
        request.encoding = "utf-8"
        return super().initialize_request(request, *args, **kwargs)

    def initial(self, request: Request, *args: Any, **kwargs: Any) -> None:
        method = "GET" if request.method == "HEAD" else str(request.method)
        if method not in self.operations and method != "OPTIONS":
            raise MethodNotAllowed(method)
        if self.charset.lower() not in ("utf-8", "utf8"):
            raise UnsupportedMediaType("")
        super().initial(request, *args, **kwargs)
        found = self.operations.get(method)
        self.admitted = found.admit(request, kwargs) if found is not None else {}

    def options(self, request: Any, *args: Any, **kwargs: Any) -> Any:
        """The methods of the path, in the Allow header that every answer carries."""
        return HttpResponse(status=204)


def resource(
    *,
    renderers: Sequence[type[BaseRenderer]] = (JSONRenderer,),
    parsers: Sequence[type[BaseParser]] = (StrictJSONParser,),
    **operations: Operation,
) -> Any:
    """The view of a path from its operations by method. Raises TypeError for a function nobody gave a policy."""
    methods: dict[str, Any] = {}
    for method, found in operations.items():
        if not isinstance(found, Operation):
            raise TypeError(f"{method}: every route needs `operation(policy, …)`.")
        methods[method.lower()] = _handler(found)
    first = next(iter(operations.values()))
    view: Any = type(
        f"{first.function.__name__}_resource",
        (Resource,),
        {
            "operations": operations,
            "renderer_classes": tuple(renderers),
            "parser_classes": tuple(parsers),
            "__module__": first.function.__module__,
            "__doc__": "",
            **methods,
        },
    )
    return view.as_view()


def _handler(found: Operation) -> Any:
    def handle(self: Resource, request: Request, *args: Any, **kwargs: Any) -> HttpResponseBase:
        return found.function(request, **self.admitted)

    handle.__doc__ = found.function.__doc__
    handle.__name__ = found.function.__name__
    return extend_schema(**found.schema)(handle)
