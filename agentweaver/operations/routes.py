"""Which of our addresses a request came for, as a name from a closed list (SPEC 10)."""

from __future__ import annotations

from django.conf import settings
from django.http import HttpRequest

NO_ROUTE = "none"
"""Nothing of ours answers there."""


def route_of(request: HttpRequest) -> str:
    """The pattern that answered, such as `/api/projects/<project:p>/runs`: a closed list, whatever anyone asks for."""
    if request.resolver_match is not None:
        return f"/{request.resolver_match.route}"
    return settings.STATIC_URL if request.path_info.startswith(settings.STATIC_URL) else NO_ROUTE
