"""Who is asking: the credential of this very request, and nobody else (SPEC 5 and 7)."""

from __future__ import annotations

from typing import cast

from django.utils import timezone
from rest_framework import exceptions
from rest_framework.authentication import BaseAuthentication, SessionAuthentication
from rest_framework.request import Request

from agentweaver.api.problems import challenge
from agentweaver.operations import limits
from governance.people.credentials import verify
from memory.actors import Actor, Human
from memory.errors import CredentialRefused, Refused


class CredentialAuthentication(BaseAuthentication):
    """`Authorization: Bearer …`, or else the browser's session with CSRF.

    A request that carries an Authorization header is never taken for the person whose browser session came with it.
    """

    def authenticate(self, request: Request) -> tuple[Actor, None] | None:
        header = request.META.get("HTTP_AUTHORIZATION")
        actor = _proven(request, header) if header is not None else _session(request)
        return (actor, None) if actor is not None else None

    def authenticate_header(self, request: Request) -> str:
        return challenge("not_authenticated")


def _proven(request: Request, header: str) -> Actor:
    """The actor of a credential. An address whose credentials are refused too often is told to wait, not why.

    A credential that is good is served from the same address all the same: one broken agent must not silence its neighbours, and nobody
    guesses 256 bits.
    """
    try:
        return _bearer(header)
    except CredentialRefused:
        if limits.unproven_is_over(request._request):
            raise exceptions.Throttled(limits.wait()) from None
        raise


def _bearer(header: str) -> Actor:
    scheme, _, token = header.strip().partition(" ")
    if scheme.lower() != "bearer" or not token.strip():
        raise CredentialRefused("invalid_credential", "Use `Authorization: Bearer` with a token.")
    return verify(token.strip(), timezone.now())


def _session(request: Request) -> Human | None:
    user = request._request.user
    if not user.is_authenticated or not user.is_active:
        return None
    try:
        SessionAuthentication().enforce_csrf(request)
    except exceptions.PermissionDenied as refused:
        raise Refused("csrf_failed", "Send the CSRF token of the browser session.") from refused
    return Human(user.get_username())


def actor_of(request: Request) -> Actor:
    """The actor of an authenticated request. Raises CredentialRefused `not_authenticated`."""
    if request.user is None:
        raise CredentialRefused(
            "not_authenticated", "Give a credential: `Authorization: Bearer` with a token."
        )
    return cast(Actor, request.user)
