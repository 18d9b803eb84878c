"""One line and one measurement for every request: what was asked, by whom, how it ended, how long it took (SPEC 10).

The route is logged, not the path: paths hold the names of agents. Queries, bodies and headers stay out altogether.
"""

from __future__ import annotations

import logging
import re
import time
from collections.abc import Callable
from typing import Any

from django.http import HttpRequest, HttpResponse

from agentweaver.operations import metrics
from agentweaver.operations.routes import route_of

logger = logging.getLogger("agentweaver.access")

Handler = Callable[[HttpRequest], HttpResponse]

METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})
_PROJECT = re.compile(r"[A-Za-z0-9-]{1,120}")


def access_log(get_response: Handler) -> Handler:
    """Stands outside of everything that may refuse a request, so that refusals are logged and counted too."""

    def middleware(request: HttpRequest) -> HttpResponse:
        began = time.perf_counter()
        response = get_response(request)
        _tell(request, response, time.perf_counter() - began)
        # Django would say it once more, without the id. What it says of a fault of ours it has said by now.
        response._has_been_logged = True  # type: ignore[attr-defined]
        return response

    return middleware


def _tell(request: HttpRequest, response: HttpResponse, seconds: float) -> None:
    method = request.method if request.method in METHODS else "OTHER"
    told: dict[str, Any] = {
        "method": method, "route": route_of(request), "status": response.status_code, "ms": round(seconds * 1000, 1),
        "actor": _actor(request), "project": _project(request), "client": request.META.get("REMOTE_ADDR", ""),
        "code": getattr(response, "problem_code", None),
    }  # fmt: skip
    metrics.count_request(method, told["route"], response.status_code, seconds, told["code"])
    parts = (method, told["route"], told["status"], told["ms"], told["actor"] or "-", told["project"] or "-")
    logger.info("%s %s %s %s ms %s %s", *parts, extra={name: value for name, value in told.items() if value})


def _actor(request: HttpRequest) -> str:
    """Who was recognised: user name or `run:{id}`. Asks no database."""
    # The API puts its actor here; for pages Django keeps the person it has loaded, if anything asked for one.
    actor = request.__dict__.get("user")
    if hasattr(type(actor), "identity"):
        return str(actor.identity)  # type: ignore[union-attr]
    person = request.__dict__.get("_cached_user")
    return str(person.get_username()) if person is not None else ""


def _project(request: HttpRequest) -> str:
    """The project of the path, as the caller wrote it, when it could be one."""
    kwargs = request.resolver_match.kwargs if request.resolver_match is not None else {}
    named = str(kwargs.get("p", kwargs.get("project", "")))
    return named if _PROJECT.fullmatch(named) else ""
