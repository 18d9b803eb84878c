"""Every error of the API as one kind of document: application/problem+json, RFC 9457 (SPEC 5, refusals; SPEC 7).

`type` is a stable reference made of `code`; `errors` names each field that is wrong; a 409 carries the row as it is now under
`current`; `request_id` is what the log calls the request.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Any

from django.core.exceptions import PermissionDenied, RequestDataTooBig, SuspiciousOperation
from django.db import OperationalError
from django.http import Http404, HttpRequest, HttpResponse, UnreadablePostError
from rest_framework import exceptions
from rest_framework.utils.encoders import JSONEncoder

from agentweaver.api import rows
from agentweaver.api.problem_schema import MEDIA_TYPE
from agentweaver.codes import OF_STATUS, TITLES
from agentweaver.operations.routes import route_of
from memory.errors import (
    Conflict,
    CredentialRefused,
    DomainError,
    ExportFailed,
    Invalid,
    NotFound,
    OverBudget,
    Refused,
)

logger = logging.getLogger(__name__)

REQUEST_ID = "agentweaver.request_id"
"""Where the request's id is kept in its META."""


@dataclass(frozen=True, slots=True)
class Problem:
    """One problem document. `more` holds further members, such as `current`."""

    status: int
    code: str
    detail: str
    errors: Mapping[str, list[str]] | None = None
    more: Mapping[str, Any] = field(default_factory=dict)
    headers: Mapping[str, str] = field(default_factory=dict)

    def document(self, request_id: str) -> dict[str, Any]:
        """The members in a fixed order."""
        told: dict[str, Any] = {
            "type": f"/problems/{self.code.replace('_', '-')}",
            "title": TITLES.get(self.code, "The request failed"),
            "status": self.status,
            "detail": self.detail,
            "code": self.code,
        }
        if self.errors is not None:
            told["errors"] = self.errors
        return {**told, **self.more, "request_id": request_id}


def is_api(path: str) -> bool:
    """Whether a path is the API's."""
    return path == "/api" or path.startswith("/api/")


def answer(problem: Problem, request: HttpRequest | None) -> HttpResponse:
    """The response of a problem. ASCII JSON, so that no text anybody sent can break it."""
    request_id = request.META.get(REQUEST_ID, "") if request is not None else ""
    body = json.dumps(problem.document(request_id), cls=JSONEncoder, ensure_ascii=True)
    response = HttpResponse(
        body, status=problem.status, content_type=MEDIA_TYPE, headers=dict(problem.headers)
    )
    response["Cache-Control"] = "no-store"
    # For the access log and the counters.
    response.problem_code = problem.code  # type: ignore[attr-defined]
    return response


def exception_handler(error: Exception, context: Mapping[str, Any]) -> HttpResponse:
    """What the REST framework calls for everything a view raises: nothing leaves the API but a problem."""
    request = getattr(context.get("request"), "_request", None)
    problem = problem_of(error)
    _log(error, problem, request)
    response = answer(problem, request)
    # Logged above, with its code: Django need not log it again.
    response._has_been_logged = True  # type: ignore[attr-defined]
    return response


def in_place_of(response: HttpResponse, request: HttpRequest) -> HttpResponse:
    """The problem that says what an answer of Django's own said; its headers stay, except those about the body."""
    status = response.status_code
    code = OF_STATUS.get(status, "invalid" if status < 500 else "internal_error")
    problem = answer(Problem(status, code, f"{HTTPStatus(status).phrase}."), request)
    for name in ("Allow", "Retry-After", "WWW-Authenticate", "Vary"):
        if name in response:
            problem[name] = response[name]
    return problem


def _log(error: Exception, problem: Problem, request: HttpRequest | None) -> None:
    """Faults of ours with a trace; what callers do in one line, since expected conflicts are no faults."""
    route = route_of(request) if request is not None else ""
    if problem.status >= 500:
        logger.error("%s at %s", problem.code, route, exc_info=error)
    elif problem.status == HTTPStatus.CONFLICT:
        logger.warning("%s at %s: %s", problem.code, route, problem.detail)
    else:
        logger.info("%s at %s", problem.code, route)


def problem_of(error: Exception) -> Problem:
    """The problem an exception means; an unexpected one says nothing of itself."""
    if isinstance(error, DomainError):
        return _domain(error)
    if isinstance(error, exceptions.APIException):
        return _framework(error)
    if isinstance(error, Http404):
        return _domain(NotFound())
    if isinstance(error, PermissionDenied):
        return Problem(403, "role_required", "This is not allowed.")
    if isinstance(error, RequestDataTooBig):
        return Problem(413, "too_large", "The request body is too large.")
    if isinstance(error, (SuspiciousOperation, UnreadablePostError)):
        return Problem(400, "invalid", "The request cannot be read.", {"body": ["It cannot be read."]})
    if isinstance(error, OperationalError):
        headers = {"Retry-After": "2"}
        return Problem(503, "unavailable", "The database does not answer now. Try again.", headers=headers)
    return Problem(500, "internal_error", "An unexpected error. The log has it under the request's id.")


def _domain(error: DomainError) -> Problem:
    """The domain's refusals, mapped once (SPEC 5)."""
    match error:
        case Invalid():
            return Problem(400, error.code, "Some fields are not valid.", error.errors)
        case CredentialRefused():
            return Problem(401, error.code, error.detail, headers={"WWW-Authenticate": challenge(error.code)})
        case Refused():
            return Problem(403, error.code, error.detail)
        case NotFound():
            return Problem(404, error.code, error.detail)
        case Conflict():
            return Problem(409, error.code, error.detail, more={"current": rows.current(error.row)})
        case ExportFailed():
            return Problem(503, error.code, error.detail)
        case OverBudget():
            figures = {"budget": error.budget, "required": error.required}
            return Problem(422, error.code, error.detail, more=figures)
        case _:
            return Problem(400, error.code, error.detail)


def challenge(code: str) -> str:
    """The WWW-Authenticate header of a 401 (RFC 6750)."""
    realm = 'Bearer realm="agentweaver"'
    return realm if code == "not_authenticated" else f'{realm}, error="invalid_token"'


def _framework(error: exceptions.APIException) -> Problem:
    match error:
        case exceptions.ParseError():
            return Problem(400, "invalid", "The body cannot be read.", {"body": [str(error.detail)]})
        case exceptions.Throttled():
            wait = {"Retry-After": str(int(getattr(error, "wait", None) or 1) + 1)}
            return Problem(429, "too_many_requests", "Too many requests in this minute.", headers=wait)
        case exceptions.UnsupportedMediaType():
            return Problem(415, "unsupported_media_type", "This kind of body is not read here.")
        case _:
            code = OF_STATUS.get(error.status_code, "invalid")
            return Problem(error.status_code, code, f"{TITLES[code]}.")
