"""Problem documents as the OpenAPI schema tells them (RFC 9457)."""

from __future__ import annotations

from collections.abc import Iterable
from http import HTTPStatus
from typing import Any

from drf_spectacular.utils import OpenApiExample, OpenApiResponse
from rest_framework import serializers

MEDIA_TYPE = "application/problem+json"


class Problem(serializers.Serializer[Any]):
    """What every error is answered with. Further members may be there."""

    type = serializers.CharField(help_text="A stable reference made of the code.")
    title = serializers.CharField()
    status = serializers.IntegerField()
    detail = serializers.CharField()
    code = serializers.CharField(help_text="The refusal's word in the contract.")
    request_id = serializers.CharField(help_text="What the log calls this request.")


class InvalidProblem(Problem):
    """Bad input: what is wrong with each field, by name."""

    errors = serializers.DictField(  # type: ignore[assignment]
        child=serializers.ListField(child=serializers.CharField())
    )


class ConflictProblem(Problem):
    """Someone else was first, the text changed, or the state does not allow it."""

    current = serializers.DictField(allow_null=True, help_text="The row as it is now.")


class OverBudgetProblem(Problem):
    """Layers 1 and 2 alone exceed the budget and the policy says `fail`. Both figures are characters."""

    budget = serializers.IntegerField()
    required = serializers.IntegerField()  # type: ignore[assignment]


_SHAPES: dict[int, type[Problem]] = {400: InvalidProblem, 409: ConflictProblem, 422: OverBudgetProblem}


def problem_responses(statuses: Iterable[int]) -> dict[tuple[int, str], OpenApiResponse]:
    """The problems an operation may answer with, by status."""
    return {
        (status, MEDIA_TYPE): OpenApiResponse(
            _SHAPES.get(status, Problem), description=HTTPStatus(status).phrase
        )
        for status in sorted(statuses)
    }


EXAMPLE = OpenApiExample(
    "stale",
    value={
        "type": "/problems/stale", "title": "The text changed since it was read", "status": 409,
        "detail": "The text changed since it was read.", "code": "stale", "current": {"id": 12, "revision": 4},
        "request_id": "4f6c2d5d0b6c4d0f9a1e6f0b8c2d7e11",
    },
    response_only=True, status_codes=["409"], media_type=MEDIA_TYPE,
)  # fmt: skip
