"""The codes of problems: every one with its title (SPEC 5, refusals). The API answers with them, operations counts them."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

TITLES: Mapping[str, str] = MappingProxyType(
    {
        "invalid": "The request is not valid",
        "not_authenticated": "No credential was given",
        "invalid_credential": "The credential proves nothing",
        "run_ended": "The run of this credential has ended",
        "not_found": "There is no such thing",
        "agent_mismatch": "A run writes as its own agent only",
        "decider_required": "Only an owner or a verified coordinator run decides",
        "role_required": "Another role is needed",
        "csrf_failed": "The browser session was not confirmed",
        "method_not_allowed": "This method is not allowed here",
        "not_acceptable": "No such representation",
        "stale": "The text changed since it was read",
        "conflict": "The state does not allow this",
        "last_owner": "A project keeps at least one owner",
        "too_large": "The request is too large",
        "unsupported_media_type": "This kind of body is not read here",
        "mandatory_context_exceeds_budget": "Mandatory context exceeds the budget",
        "too_many_requests": "Too many requests",
        "internal_error": "Something went wrong on our side",
        "unavailable": "The service cannot answer now",
        "no_workspace": "There is no workspace folder",
        "other_project": "The folder belongs to another project",
        "export_failed": "The files could not be written",
    }
)
"""Every code of the API with its title."""

OF_STATUS = {
    400: "invalid", 401: "not_authenticated", 403: "role_required", 404: "not_found", 405: "method_not_allowed",
    406: "not_acceptable", 413: "too_large", 415: "unsupported_media_type", 429: "too_many_requests",
    500: "internal_error", 503: "unavailable",
}  # fmt: skip
