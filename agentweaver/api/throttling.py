"""How much one caller may ask (SPEC 10, rate limits per credential)."""

from __future__ import annotations

from typing import Any

from django.conf import settings
from rest_framework.request import Request
from rest_framework.throttling import BaseThrottle

from agentweaver.operations import limits


class PerCaller(BaseThrottle):
    """At most API_REQUESTS_PER_MINUTE of one person or run; of everyone else UNPROVEN_REQUESTS_PER_MINUTE of one address."""

    def allow_request(self, request: Request, view: Any) -> bool:
        actor: Any = request.user
        if actor is None:
            return not limits.unproven_is_over(request._request)
        return not limits.is_over(f"api:{actor.identity}", settings.API_REQUESTS_PER_MINUTE)

    def wait(self) -> float:
        """Seconds until the next minute begins."""
        return limits.wait()
