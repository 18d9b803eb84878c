"""How often in a minute: counters for callers of the API and for attempts to log in (SPEC 10).

A counter for each minute, not a list of times: it costs the same however much is asked. Each worker counts by itself, so all
together let through at most the limit times the number of workers (ADR 13).
"""

from __future__ import annotations

import time
from collections.abc import Callable
from http import HTTPStatus
from typing import Any

from django.conf import settings
from django.core.cache import cache
from django.http import HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import render

from agentweaver.operations import metrics
from agentweaver.operations.addresses import group_of

WINDOW = 60
"""Seconds."""


def is_over(name: str, limit: int) -> bool:
    """Counts one more under this name, and says whether that is more than the limit; 0 means no limit."""
    if not limit:
        return False
    key = f"{name}:{int(time.time()) // WINDOW}"
    cache.add(key, 0, timeout=2 * WINDOW)
    try:
        return bool(cache.incr(key) > limit)
    except ValueError:
        # A full cache dropped the counter: rather let one request through than refuse it.
        return False


def wait() -> float:
    """Seconds until the next minute begins."""
    return WINDOW - time.time() % WINDOW


def unproven_is_over(request: HttpRequest) -> bool:
    """Counts a request of an address that has proved nothing: without a credential, or with one that was refused."""
    return is_over(f"unproven:{group_of(request)}", settings.UNPROVEN_REQUESTS_PER_MINUTE)


def log_ins(view: Callable[..., HttpResponseBase]) -> Callable[..., HttpResponseBase]:
    """The log-in page, for so many attempts of one address in a minute, under whatever names.

    django-axes pauses one name from one address, so that nobody can lock a person out from elsewhere; this bounds how many names one
    address can try.
    """

    def limited(request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        if request.method != "POST":
            return view(request, *args, **kwargs)
        if is_over(f"log-in:{group_of(request)}", settings.LOGIN_ATTEMPTS_PER_MINUTE):
            metrics.log_ins.labels("too_many").inc()
            return paused(request, wait())
        response = view(request, *args, **kwargs)
        metrics.log_ins.labels(_result(request, response)).inc()
        return response

    # The policy of the page stands on the function (governance.pages.views.access).
    limited.__dict__.update(view.__dict__)
    return limited


def _result(request: HttpRequest, response: HttpResponseBase) -> str:
    if getattr(request, "axes_locked_out", False):
        return "locked_out"
    return "ok" if response.status_code == HTTPStatus.FOUND else "failed"


def paused(request: HttpRequest, seconds: float) -> HttpResponse:
    """429, with the time to wait in the header and in words."""
    context = {"minutes": max(1, round(seconds / 60))}
    response = render(request, "registration/locked_out.html", context, status=429)
    response["Retry-After"] = str(int(seconds) + 1)
    return response


def locked_out(
    request: HttpRequest, original: HttpResponse | None = None, credentials: Any = None
) -> HttpResponse:
    """What django-axes answers while a name is paused from this address (AXES_LOCKOUT_CALLABLE)."""
    return paused(request, settings.AXES_COOLOFF_TIME * 3600)
