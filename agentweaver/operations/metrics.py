"""Figures for operations, in Prometheus' format (SPEC 10). docs/operations.md says what to watch.

Counters live in this process; under gunicorn in files that the workers share (gunicorn.conf.py). What waits for people is counted in the
database when somebody asks. Labels are closed lists: no project, agent or person is ever one, so a reader learns no
names and a thousand projects cost no more than one.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator
from datetime import datetime
from http import HTTPStatus

from django.conf import settings
from django.db import DatabaseError
from django.db.models import Count, Min, OuterRef, Subquery
from django.http import HttpRequest, HttpResponse
from django.utils import timezone
from django.utils.crypto import constant_time_compare
from prometheus_client import (
    CONTENT_TYPE_LATEST,
    REGISTRY,
    CollectorRegistry,
    Counter,
    Histogram,
    generate_latest,
)
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.multiprocess import MultiProcessCollector
from prometheus_client.registry import Collector

from agentweaver.codes import TITLES
from agentweaver.operations.routes import NO_ROUTE
from memory.compiling.compiler import CompiledContext
from memory.enums import RunStatus
from memory.models import AgentMemory, ContextReceipt, Decision, DecisionInboxEntry, Run

logger = logging.getLogger(__name__)

requests = Histogram(
    "agentweaver_request_seconds",
    "Requests by method, route and status, and how long they took.",
    ("method", "route", "status"),
    buckets=(0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 10),
)
refusals = Counter("agentweaver_refusals", "Problems the API answered with, by code.", ("code",))
log_ins = Counter("agentweaver_log_ins", "Attempts to log in: ok, failed, locked_out, too_many.", ("result",))
compiles = Counter(
    "agentweaver_compiles",
    "Contexts asked for: compiled, empty, unchanged (304) or failed.",
    ("of", "result"),
)

# From nought, not from the first time: an alert on a rise sees the first one, too. And a worker opens its files now, while the
# folder is surely there.
requests.labels("GET", NO_ROUTE, HTTPStatus.NOT_FOUND.value)
for known in TITLES:
    refusals.labels(known)
for known in ("ok", "failed", "locked_out", "too_many"):
    log_ins.labels(known)


def count_request(method: str, route: str, status: int, seconds: float, code: str | None) -> None:
    """One answered request; `code` is that of a problem."""
    requests.labels(method, route, status).observe(seconds)
    if code is not None:
        refusals.labels(code if code in TITLES else "other").inc()


def count_compile(of: str, compiled: CompiledContext | None) -> None:
    """One context for a `run` or a `preview`; None: it could not be compiled."""
    result = "failed" if compiled is None else "empty" if compiled.text is None else "compiled"
    compiles.labels(of, result).inc()


class Waiting(Collector):
    """What waits for people, over all projects, as the database has it now. A database that is down leaves the rest readable."""

    def collect(self) -> Iterator[GaugeMetricFamily]:
        try:
            figures = dict(waiting(timezone.now()))
        except DatabaseError:
            logger.exception("The figures of the database could not be read")
            figures = {}
        yield GaugeMetricFamily(
            "agentweaver_database_up", "Whether the database answered.", value=bool(figures)
        )
        for name, value in figures.items():
            yield GaugeMetricFamily(f"agentweaver_{name}", _MEANING[name], value=value)

    def describe(self) -> Iterator[GaugeMetricFamily]:
        """Nothing: registering must not ask the database."""
        return iter(())


_MEANING = {
    "inbox_pending": "Entries that wait for a decision.",
    "inbox_oldest_pending_seconds": "Age of the oldest of them; 0 when none waits.",
    "legacy_waiting": "Imported decisions and memories nobody has looked at.",
    "runs_with_compile_error": "Running runs whose latest context could not be compiled.",
}


def waiting(now: datetime) -> Iterator[tuple[str, float]]:
    """The figures of the database. Four statements, whatever is stored."""
    pending = DecisionInboxEntry.objects.pending().aggregate(number=Count("pk"), oldest=Min("created_at"))
    yield "inbox_pending", pending["number"]
    yield "inbox_oldest_pending_seconds", max(0.0, (now - (pending["oldest"] or now)).total_seconds())
    yield "legacy_waiting", Decision.objects.legacy().count() + AgentMemory.objects.legacy().count()
    latest = (
        ContextReceipt.objects.filter(run=OuterRef("pk")).order_by("-at", "-pk").values("compile_error")[:1]
    )
    running = Run.objects.filter(status=RunStatus.RUNNING).annotate(error=Subquery(latest))
    yield "runs_with_compile_error", running.exclude(error__isnull=True).exclude(error="").count()


def metrics(request: HttpRequest) -> HttpResponse:
    """GET /metrics, for whoever holds METRICS_TOKEN. Without that setting there is no such address."""
    if not settings.METRICS_TOKEN:
        return HttpResponse(status=404, content_type="text/plain")
    given = request.headers.get("Authorization", "")
    if not constant_time_compare(given, f"Bearer {settings.METRICS_TOKEN}"):
        return HttpResponse(
            status=401, headers={"WWW-Authenticate": 'Bearer realm="metrics"'}, content_type="text/plain"
        )
    return HttpResponse(generate_latest(_registry()), content_type=CONTENT_TYPE_LATEST)


def _registry() -> CollectorRegistry:
    """Every process's counters where there are several, else this one's; then what waits."""
    found = CollectorRegistry()
    if os.path.isdir(os.environ.get("PROMETHEUS_MULTIPROC_DIR", "")):  # noqa: PTH112
        MultiProcessCollector(found)  # type: ignore[no-untyped-call]
    else:
        found.register(REGISTRY)
    found.register(Waiting())
    return found
