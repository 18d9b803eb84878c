"""How much one credential may ask (SPEC 10, rate limits per credential)."""

from __future__ import annotations

import time
from typing import Any

from django.conf import settings
from django.core.cache import cache
from rest_framework.request import Request
from rest_framework.throttling import BaseThrottle

WINDOW = 60
"""Seconds."""


class PerCredential(BaseThrottle):
    """At most API_REQUESTS_PER_MINUTE requests of one person or run in each minute; 0 means no limit.

    A counter for each minute, not a list of times: it costs the same however much is asked. With the default cache it counts in
    each process by itself.
    """

    def allow_request(self, request: Request, view: Any) -> bool:
        limit = settings.API_REQUESTS_PER_MINUTE
        actor: Any = request.user
        if not limit or actor is None:
            return True
        key = f"api-rate:{actor.identity}:{int(time.time()) // WINDOW}"
        cache.add(key, 0, timeout=2 * WINDOW)
        try:
            asked = cache.incr(key)
        except ValueError:
            # A full cache dropped the counter: rather let one request through than refuse it.
            return True
        return bool(asked <= limit)

    def wait(self) -> float:
        """Seconds until the next minute begins."""
        return WINDOW - time.time() % WINDOW
