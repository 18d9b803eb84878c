"""What every request gets, whoever answers it: an id, and under /api a problem document for every error (SPEC 7).

Pages get a signed-in reader, that reader's time zone, and headers that keep them out of caches (SPEC 9 and 10).
"""

from __future__ import annotations

import re
import uuid
from collections.abc import Callable
from functools import cache
from typing import Any
from urllib.parse import unquote, urlencode, urlsplit, urlunsplit
from zoneinfo import ZoneInfo, available_timezones

from django.contrib.auth.middleware import LoginRequiredMiddleware
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.http.response import HttpResponseBase
from django.shortcuts import resolve_url
from django.utils import timezone
from django.utils.cache import patch_cache_control, patch_vary_headers
from django.views.defaults import page_not_found
from django_htmx.http import HttpResponseClientRedirect

from agentweaver.api import problems
from agentweaver.api.problem_schema import MEDIA_TYPE
from agentweaver.operations import logs

HEADER = "X-Request-ID"

_ACCEPTED_ID = re.compile(r"[A-Za-z0-9._-]{8,64}")

Handler = Callable[[HttpRequest], HttpResponse]


def request_ids(get_response: Handler) -> Handler:
    """Every request has an id, the caller's if it sent a plain one; the answer, every problem and every log line name it."""

    def middleware(request: HttpRequest) -> HttpResponse:
        given = request.headers.get(HEADER, "")
        request_id = given if _ACCEPTED_ID.fullmatch(given) else uuid.uuid4().hex
        request.META[problems.REQUEST_ID] = request_id
        held = logs.request_id.set(request_id)
        try:
            response = get_response(request)
        finally:
            logs.request_id.reset(held)
        response[HEADER] = request_id
        return response

    return middleware


def api_problems(get_response: Handler) -> Handler:
    """Errors that Django itself answers under /api (no such route, a host it does not know) become problems too."""

    def middleware(request: HttpRequest) -> HttpResponse:
        response = get_response(request)
        if response.status_code < 400 or not problems.is_api(request.path_info):
            return response
        if response.get("Content-Type", "").startswith(MEDIA_TYPE):
            return response
        return problems.in_place_of(response, request)

    return middleware


def no_such_address(request: HttpRequest, exception: Exception) -> HttpResponseBase:
    """A page for people. Under /api nothing is rendered: `api_problems` says it, and needs no template and no static file."""
    if problems.is_api(request.path_info):
        return HttpResponse(status=404)
    return page_not_found(request, exception)


class SignedIn(LoginRequiredMiddleware):
    """Every page asks who is there, unless its view says `open_page`. The API answers for itself (SPEC 5).

    htmx follows a redirect unseen and would put the log-in page into a list, so it is told to take the whole browser there; after
    logging in the reader comes back to the page they were on, also when it was a form that found the session gone.
    """

    def handle_no_permission(self, request: HttpRequest, view_func: Any) -> HttpResponse:  # type: ignore[override]
        login = f"{resolve_url(self.get_login_url(view_func))}?{urlencode({'next': _place_of(request)})}"
        return HttpResponseClientRedirect(login) if is_htmx(request) else HttpResponseRedirect(login)


def _place_of(request: HttpRequest) -> str:
    """The address of the page the reader looks at: for a form the page that holds it, since its target only takes posts."""
    if request.method in ("GET", "HEAD") and not is_htmx(request):
        return request.get_full_path()
    given = urlsplit(request.headers.get("HX-Current-URL") or request.headers.get("Referer", ""))
    if given.netloc != request.get_host() or not given.path.startswith("/"):
        return "/"
    return urlunsplit(("", "", given.path, given.query, ""))


def is_htmx(request: HttpRequest) -> bool:
    return request.headers.get("HX-Request") == "true"


def reader_zone(get_response: Handler) -> Handler:
    """Times are written in the zone the browser named in a cookie, if there is such a zone; else in UTC."""

    def middleware(request: HttpRequest) -> HttpResponse:
        with timezone.override(_zone(request.COOKIES.get("zone", ""))):
            return get_response(request)

    return middleware


def _zone(cookie: str) -> ZoneInfo | None:
    name = unquote(cookie)
    return ZoneInfo(name) if name in _zones() else None


@cache
def _zones() -> frozenset[str]:
    return frozenset(available_timezones())


def private_pages(get_response: Handler) -> Handler:
    """Pages are the reader's own: no cache keeps them, and one that keeps them anyway tells page and fragment apart."""

    def middleware(request: HttpRequest) -> HttpResponse:
        response = get_response(request)
        if response.get("Content-Type", "").startswith("text/html"):
            patch_vary_headers(response, ["HX-Request"])
            if "Cache-Control" not in response:
                patch_cache_control(response, private=True, no_store=True)
        return response

    return middleware


FEATURES = (
    "accelerometer", "autoplay", "camera", "display-capture", "geolocation", "gyroscope", "hid", "magnetometer",
    "microphone", "midi", "payment", "publickey-credentials-get", "screen-wake-lock", "serial", "usb", "xr-spatial-tracking",
)  # fmt: skip
"""What browsers offer and no page of ours asks for."""


def closed_features(get_response: Handler) -> Handler:
    """No page may use a device, and no other site may take an answer of ours into its own pages (SPEC 10)."""
    policy = ", ".join(f"{feature}=()" for feature in FEATURES)

    def middleware(request: HttpRequest) -> HttpResponse:
        response = get_response(request)
        response["Permissions-Policy"] = policy
        response["Cross-Origin-Resource-Policy"] = "same-origin"
        return response

    return middleware
