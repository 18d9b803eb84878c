"""Pages of lists: `page`, `page_size` → `{items, page, page_size, total_count, total_pages}` (SPEC 7)."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

from django.db.models import QuerySet
from drf_spectacular.utils import OpenApiParameter
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from memory.errors import Invalid

DEFAULT_SIZE = 25
LARGEST_SIZE = 100
LAST_PAGE = 2**31 - 1

_NUMBER = re.compile(r"[0-9]{1,20}")

PARAMETERS = (
    OpenApiParameter(
        "page", {"type": "integer", "minimum": 1, "maximum": LAST_PAGE, "default": 1},
        description="A page past the end is empty.",
    ),
    OpenApiParameter(
        "page_size", {"type": "integer", "minimum": 1, "maximum": LARGEST_SIZE, "default": DEFAULT_SIZE}
    ),
)  # fmt: skip
NAMES = frozenset({"page", "page_size"})


@dataclass(frozen=True, slots=True)
class Page:
    """Which part of a list is asked for."""

    number: int
    size: int

    @classmethod
    def of(cls, request: Request) -> Page:
        """The page a request asks for. Raises Invalid that names the parameter."""
        return cls(
            whole_number(request, "page", 1, LAST_PAGE, default=1),
            whole_number(request, "page_size", 1, LARGEST_SIZE, default=DEFAULT_SIZE),
        )

    def slice(self, rows: Any, total: int) -> Sequence[Any]:
        """The rows of this page; past the end none, without asking the database with an offset it cannot hold."""
        start = (self.number - 1) * self.size
        return list(rows[start : start + self.size]) if start < total else []

    def answer(self, items: Sequence[Any], total: int) -> dict[str, Any]:
        return {
            "items": items, "page": self.number, "page_size": self.size, "total_count": total,
            "total_pages": math.ceil(total / self.size),
        }  # fmt: skip


def whole_number(request: Request, name: str, least: int, most: int, *, default: int) -> int:
    """A whole number among the query's parameters. Raises Invalid that names it."""
    given = request.query_params.get(name)
    if given is None:
        return default
    if not _NUMBER.fullmatch(given) or not least <= int(given) <= most:
        raise Invalid({name: [f"This must be a whole number between {least} and {most}."]})
    return int(given)


def paged(
    request: Request, rows: QuerySet[Any, Any] | Sequence[Any], show: Callable[[Any], Mapping[str, Any]]
) -> Response:
    """One page of `rows`, each as `show` answers it. Two queries for a queryset, whatever the page."""
    page = Page.of(request)
    total = rows.count() if isinstance(rows, QuerySet) else len(rows)
    items = [show(row) for row in page.slice(rows, total)]
    return Response(page.answer(items, total))


class PageRow(serializers.Serializer[Any]):
    """What surrounds the items of every list."""

    page = serializers.IntegerField(min_value=1)
    page_size = serializers.IntegerField(min_value=1, max_value=LARGEST_SIZE)
    total_count = serializers.IntegerField(min_value=0)
    total_pages = serializers.IntegerField(min_value=0)


@cache
def page_of(row: type[serializers.Serializer[Any]]) -> type[serializers.Serializer[Any]]:
    """The schema of a page of `row`."""
    name = f"{row.__name__.removesuffix('Row')}Page"
    return type(name, (PageRow,), {"items": row(many=True), "__doc__": ""})
