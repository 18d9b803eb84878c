"""Only a proxy of ours is believed what it forwards (SPEC 10)."""

from __future__ import annotations

from typing import Any

import pytest
from django.core.exceptions import ImproperlyConfigured
from django.http import HttpRequest, HttpResponse
from django.test import RequestFactory

from agentweaver.operations.addresses import client_addresses, group_of

PROXIES = ["10.0.0.0/8", "192.0.2.1", "2001:db8:ffff::/48"]
GUEST = "198.51.100.7"


def seen(peer: str, forwarded: str | None = None, proto: str | None = None) -> HttpRequest:
    """The request as everything after the middleware sees it."""
    held: list[HttpRequest] = []

    def view(request: HttpRequest) -> HttpResponse:
        held.append(request)
        return HttpResponse()

    meta = {"REMOTE_ADDR": peer, "HTTP_X_FORWARDED_FOR": forwarded, "HTTP_X_FORWARDED_PROTO": proto}
    request = RequestFactory().get("/", **{name: value for name, value in meta.items() if value is not None})  # type: ignore[arg-type]
    client_addresses(view)(request)
    return held[0]


@pytest.mark.parametrize(
    ("peer", "forwarded", "caller"),
    [
        ("10.1.2.3", GUEST, GUEST),
        # What the caller wrote itself stands before what our proxy added.
        ("10.1.2.3", f"203.0.113.99, {GUEST}", GUEST),
        ("10.1.2.3", f"127.0.0.1, 10.9.9.9, {GUEST}", GUEST),
        # Two proxies of ours, one behind the other.
        ("10.1.2.3", f"203.0.113.99,{GUEST} , 192.0.2.1", GUEST),
        ("2001:db8:ffff::5", "2001:db8:1::7", "2001:db8:1::7"),
        ("::ffff:10.1.2.3", GUEST, GUEST),
        ("10.1.2.3", "::ffff:198.51.100.7", GUEST),
        # Nothing readable: the proxy itself.
        ("10.1.2.3", None, "10.1.2.3"),
        ("10.1.2.3", "", "10.1.2.3"),
        ("10.1.2.3", "unknown", "10.1.2.3"),
        ("10.1.2.3", f"{GUEST}, <script>", "10.1.2.3"),
        ("10.1.2.3", "10.0.0.8, 10.0.0.9", "10.0.0.8"),
        # Not from a proxy of ours.
        ("203.0.113.5", GUEST, "203.0.113.5"),
        ("203.0.113.5", "10.1.2.3", "203.0.113.5"),
        ("203.0.113.5", None, "203.0.113.5"),
        ("", GUEST, ""),
    ],
)
def test_the_caller_is_the_last_forwarded_address_that_is_no_proxy_of_ours(
    settings: Any, peer: str, forwarded: str | None, caller: str
) -> None:
    settings.TRUSTED_PROXIES = PROXIES
    assert seen(peer, forwarded).META["REMOTE_ADDR"] == caller


@pytest.mark.parametrize(("peer", "secure"), [("10.1.2.3", True), ("203.0.113.5", False), ("", False)])
def test_https_is_believed_from_a_proxy_of_ours_only(settings: Any, peer: str, secure: bool) -> None:
    settings.TRUSTED_PROXIES = PROXIES
    assert seen(peer, GUEST, "https").is_secure() is secure


def test_a_unix_socket_is_believed_when_it_is_named(settings: Any) -> None:
    settings.TRUSTED_PROXIES = ["unix"]
    assert seen("", GUEST, "https").META["REMOTE_ADDR"] == GUEST
    assert seen("", GUEST, "https").is_secure()
    assert seen("203.0.113.5", GUEST).META["REMOTE_ADDR"] == "203.0.113.5"


def test_nobody_is_believed_by_default(settings: Any) -> None:
    assert settings.TRUSTED_PROXIES == []
    assert seen("127.0.0.1", GUEST).META["REMOTE_ADDR"] == "127.0.0.1"


def test_a_proxy_that_is_no_address_stops_the_start(settings: Any) -> None:
    settings.TRUSTED_PROXIES = ["10.0.0.0/8", "proxy.example"]
    with pytest.raises(ImproperlyConfigured, match=r"TRUSTED_PROXIES: 'proxy\.example'"):
        client_addresses(lambda request: HttpResponse())


@pytest.mark.parametrize(
    ("address", "group"),
    [
        (GUEST, GUEST),
        ("2001:db8:1:2:3:4:5:6", "2001:db8:1:2::/64"),
        ("::ffff:198.51.100.7", GUEST),
        ("", "None"),
    ],
)
def test_an_ipv6_subscriber_counts_as_one_caller(address: str, group: str) -> None:
    request = HttpRequest()
    request.META["REMOTE_ADDR"] = address
    assert group_of(request) == group
