"""Whose address asks: the peer's own, or what a proxy of ours says of it (SPEC 10).

Anyone can send X-Forwarded-For. It is believed from the addresses in TRUSTED_PROXIES only, and read from its end: the last address
that is not one of our proxies is the caller. Everything after this middleware (log-in throttling, rate limits, logs, https)
reads REMOTE_ADDR and finds what was decided here.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network

from django.conf import settings
from django.core.exceptions import ImproperlyConfigured
from django.http import HttpRequest, HttpResponse

Address = IPv4Address | IPv6Address
Network = IPv4Network | IPv6Network
Handler = Callable[[HttpRequest], HttpResponse]

UNIX = "unix"
"""In TRUSTED_PROXIES: whoever connects through a unix socket, whose peer has no address."""
FORWARDED = ("HTTP_X_FORWARDED_FOR", "HTTP_X_FORWARDED_PROTO")


def client_addresses(get_response: Handler) -> Handler:
    """REMOTE_ADDR becomes the caller's; what a stranger forwards is thrown away. Raises ImproperlyConfigured at the start."""

    trusted(tuple(settings.TRUSTED_PROXIES))

    def middleware(request: HttpRequest) -> HttpResponse:
        peer = request.META.get("REMOTE_ADDR", "")
        if _is_ours(peer):
            request.META["REMOTE_ADDR"] = _caller(request.META.get("HTTP_X_FORWARDED_FOR", ""), peer)
        else:
            for name in FORWARDED:
                request.META.pop(name, None)
        return get_response(request)

    return middleware


def _caller(forwarded: str, peer: str) -> str:
    """The last forwarded address that is none of our proxies; at most what is readable from the end."""
    caller = peer
    for given in reversed(forwarded.split(",")):
        address = _address(given.strip())
        if address is None:
            break
        caller = str(address)
        if not _is_ours(caller):
            break
    return caller


def _is_ours(peer: str) -> bool:
    networks, unix = trusted(tuple(settings.TRUSTED_PROXIES))
    address = _address(peer)
    return unix if address is None else any(address in network for network in networks)


def _address(text: str) -> Address | None:
    """An IPv4 address inside IPv6 is the IPv4 address: one caller has one name."""
    try:
        address = ip_address(text)
    except ValueError:
        return None
    return (isinstance(address, IPv6Address) and address.ipv4_mapped) or address


@cache
def trusted(proxies: tuple[str, ...]) -> tuple[tuple[Network, ...], bool]:
    """The networks of TRUSTED_PROXIES and whether unix sockets are among them. Raises ImproperlyConfigured."""
    try:
        networks = tuple(ip_network(given) for given in proxies if given != UNIX)
    except ValueError as wrong:
        raise ImproperlyConfigured(f"TRUSTED_PROXIES: {wrong}.") from wrong
    return networks, UNIX in proxies


def group_of(request: HttpRequest) -> str:
    """What counts as one caller: an IPv4 address, or the 64-bit network that one IPv6 subscriber has to itself."""
    address = _address(request.META.get("REMOTE_ADDR", ""))
    if isinstance(address, IPv6Address):
        return str(ip_network((int(address), 64), strict=False))
    return str(address)
