"""Requests to the whole product, through WSGI in this process: every middleware, no network."""

from __future__ import annotations

import io
import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from typing import Any
from urllib.parse import urlsplit
from wsgiref.util import setup_testing_defaults

from django.contrib.auth.decorators import login_not_required
from django.core.handlers.wsgi import WSGIHandler
from django.db import connection
from django.http import HttpRequest, HttpResponse
from django.test import Client, override_settings
from django.test.utils import CaptureQueriesContext
from django.urls import path
from django.utils import timezone

from agentweaver.urls import urlpatterns as product
from governance.models import User
from governance.people.credentials import issue_personal_token

Headers = dict[str, str]

held: dict[str, tuple[str, bytes]] = {}
"""What the bare view answers with, by name: content type and bytes."""


@login_not_required
def bare(request: HttpRequest, name: str) -> HttpResponse:
    """The least that Django can do: the same bytes from memory, behind the same middleware."""
    content_type, body = held[name]
    return HttpResponse(body, content_type=content_type)


urlpatterns = [*product, path("bare/<str:name>", bare)]


@dataclass(frozen=True)
class Answer:
    status: int
    headers: Headers
    body: bytes


@cache
def _handler() -> WSGIHandler:
    return WSGIHandler()


def ask(method: str, address: str, headers: Headers, body: bytes = b"") -> Answer:
    """One request, answered and ended as a server would end it. Headers are named as WSGI names them."""
    parts = urlsplit(address)
    environ: dict[str, Any] = {
        "REQUEST_METHOD": method, "PATH_INFO": parts.path, "QUERY_STRING": parts.query, "HTTP_HOST": "localhost",
        "REMOTE_ADDR": "127.0.0.1", "CONTENT_LENGTH": str(len(body)), "wsgi.input": io.BytesIO(body), **headers,
    }  # fmt: skip
    setup_testing_defaults(environ)
    began: list[tuple[str, list[tuple[str, str]]]] = []

    def start(status: str, given: list[tuple[str, str]], *fault: Any) -> Callable[[bytes], object]:
        began.append((status, given))
        return lambda data: None

    parts_of_body: Any = _handler()(environ, start)
    try:
        answered = b"".join(parts_of_body)
    finally:
        parts_of_body.close()
    [(status, given)] = began
    return Answer(int(status.split()[0]), dict(given), answered)


@contextmanager
def as_served() -> Iterator[None]:
    """The bare view beside the product's; no caller asks too often; the log is written, and nobody has to see it."""
    handlers = logging.getLogger().handlers
    streams = {handler: handler.stream for handler in handlers if isinstance(handler, logging.StreamHandler)}
    for handler in streams:
        handler.setStream(io.StringIO())
    try:
        with override_settings(ROOT_URLCONF=__name__, API_REQUESTS_PER_MINUTE=10**9):
            yield
    finally:
        for handler, stream in streams.items():
            handler.setStream(stream)


def bearer(username: str) -> Headers:
    """The header of a new personal token."""
    user = User.objects.get(username=username)
    issued = issue_personal_token(user, name="bench", now=timezone.now())
    return {"HTTP_AUTHORIZATION": f"Bearer {issued.token}"}


def browser(username: str) -> Headers:
    """The cookie of a browser that is signed in."""
    client = Client()
    client.force_login(User.objects.get(username=username), "django.contrib.auth.backends.ModelBackend")
    return {"HTTP_COOKIE": "; ".join(f"{name}={cookie.value}" for name, cookie in client.cookies.items())}


def statements(work: Callable[[], Any]) -> list[str]:
    """The SQL of one call."""
    with CaptureQueriesContext(connection) as queries:
        work()
    return [query["sql"] for query in queries]
