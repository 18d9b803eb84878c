"""The addresses for machines that watch this one: /healthz, /readyz, /metrics (SPEC 10).

They answer before anything that a probe cannot give: it comes by address instead of by name, by plain http, and has no session. It
is not logged either: every ten seconds it would say the same.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from functools import cache

from django.db import DatabaseError, connection
from django.db.migrations.loader import MigrationLoader
from django.db.migrations.recorder import MigrationRecorder
from django.http import HttpRequest, HttpResponse, HttpResponseNotAllowed, JsonResponse

from agentweaver.operations.metrics import metrics

logger = logging.getLogger(__name__)

Handler = Callable[[HttpRequest], HttpResponse]


def healthz(request: HttpRequest) -> HttpResponse:
    """This process answers. Asks nobody else: a database that is down is no reason to restart it."""
    return JsonResponse({"status": "ok"})


def readyz(request: HttpRequest) -> HttpResponse:
    """Whether to send requests here: the database answers and has every migration of this version. Else 503 and which failed."""
    failed = failed_checks()
    if failed:
        logger.warning("Not ready: %s", ", ".join(failed))
    status = {"status": "unavailable", "failed": failed} if failed else {"status": "ok"}
    return JsonResponse(status, status=503 if failed else 200)


def failed_checks() -> list[str]:
    """Names of the checks that fail. One statement."""
    try:
        applied = MigrationRecorder(connection).applied_migrations()
    except DatabaseError:
        logger.exception("The database does not answer")
        return ["database"]
    return [] if expected() <= set(applied) else ["migrations"]


@cache
def expected() -> frozenset[tuple[str, str]]:
    """The migrations of this version; read from the disk once."""
    return frozenset(MigrationLoader(None).disk_migrations or {})


PROBES = {"/healthz": healthz, "/readyz": readyz, "/metrics": metrics}


def probes(get_response: Handler) -> Handler:
    """Answers the three addresses, GET and HEAD only, and passes everything else on."""

    def middleware(request: HttpRequest) -> HttpResponse:
        probe = PROBES.get(request.path_info)
        if probe is None:
            return get_response(request)
        if request.method not in ("GET", "HEAD"):
            return HttpResponseNotAllowed(["GET", "HEAD"])
        response = probe(request)
        response["Cache-Control"] = "no-store"
        response._has_been_logged = True  # type: ignore[attr-defined]
        return response

    return middleware
