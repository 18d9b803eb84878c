"""Filters of lists, by django-filter: each names its words, a wrong one is a 400 that names the parameter (SPEC 7)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar
from uuid import UUID

import django_filters
from django.db.models import Q, QuerySet, TextChoices
from drf_spectacular.utils import OpenApiParameter
from rest_framework.request import Request

from agentweaver.api import fields
from memory import values
from memory.enums import (
    DecisionStatus,
    DecisionType,
    EntryStatus,
    EntryType,
    Importance,
    MemoryType,
    RunStatus,
    TrustState,
)
from memory.errors import Invalid
from memory.values import agent_key

M = TypeVar("M", bound=Any)

ALL = "all"
MEMORY_STATUS = ("active", "retired")
_LONGEST = 200


class Filters(django_filters.FilterSet):  # type: ignore[misc]
    """Parameters that narrow a list. `defaults` hold where a parameter is absent."""

    defaults: dict[str, str] = {}

    @classmethod
    def names(cls) -> frozenset[str]:
        return frozenset(cls.base_filters)

    @classmethod
    def parameters(cls) -> list[OpenApiParameter]:
        """The parameters as the schema tells them."""
        return [_parameter(name, f, cls.defaults.get(name)) for name, f in cls.base_filters.items()]


def _parameter(name: str, given: Any, default: str | None) -> OpenApiParameter:
    schema: dict[str, Any] = {"type": "string"}
    if choices := given.extra.get("choices"):
        schema["enum"] = [value for value, _ in choices]
    elif limit := given.extra.get("max_length"):
        schema["maxLength"] = limit
    if default is not None:
        schema["default"] = default
    return OpenApiParameter(name, schema, description=given.extra.get("help_text", ""))


def filtered(filters: type[Filters], request: Request, rows: QuerySet[M]) -> QuerySet[M]:
    """`rows` narrowed by a request's parameters. Raises Invalid that names each wrong one."""
    given = {name: value for name, value in request.query_params.items() if name in filters.base_filters}
    _refuse_empty(filters, given)
    bound = filters({**filters.defaults, **given}, queryset=rows)
    if not bound.is_valid():
        raise Invalid(fields.flat(bound.errors))
    narrowed: QuerySet[M] = bound.qs
    return narrowed


def _refuse_empty(filters: type[Filters], given: Mapping[str, Any]) -> None:
    """No word is not a word of a closed list; read as "no filter" it would show what the default hides."""
    listed = [name for name, f in filters.base_filters.items() if f.extra.get("choices")]
    if errors := {name: ["This may not be empty."] for name in listed if given.get(name) == ""}:
        raise Invalid(errors)


def _listed(listed: type[TextChoices], **more: Any) -> django_filters.ChoiceFilter:
    return django_filters.ChoiceFilter(choices=listed.choices, **more)


def _status(words: list[str], default: str) -> django_filters.ChoiceFilter:
    return django_filters.ChoiceFilter(
        choices=[(word, word) for word in [*words, ALL]],
        method="by_status",
        help_text=f"Default `{default}`.",
    )


def _text(method: str, help_text: str) -> django_filters.CharFilter:
    return django_filters.CharFilter(method=method, max_length=_LONGEST, help_text=help_text)


class OfAgent(Filters):
    """`agent`: rows of one agent, under any spelling of its name."""

    agent = _text("by_agent", "An agent's name, in any spelling of it.")

    def by_agent(self, rows: QuerySet[M], name: str, value: str) -> QuerySet[M]:
        return rows.filter(agent__key=agent_key(value))


class WithStatus(Filters):
    """`status`: one status, or `all`."""

    def by_status(self, rows: QuerySet[M], name: str, value: str) -> QuerySet[M]:
        return rows if value == ALL else rows.filter(status=value)


class RunFilters(OfAgent):
    status = _listed(RunStatus)


class MemoryFilters(Filters):
    type = _listed(MemoryType)
    importance = _listed(Importance)
    trust_state = _listed(TrustState)
    status = django_filters.ChoiceFilter(
        choices=[(word, word) for word in (*MEMORY_STATUS, ALL)],
        method="by_status",
        help_text="Retired or not. Default `all`.",
    )

    def by_status(self, rows: QuerySet[M], name: str, value: str) -> QuerySet[M]:
        return rows if value == ALL else rows.filter(retired_at__isnull=value != "retired")


class MemorySearch(MemoryFilters, OfAgent):
    q = _text("by_text", "Part of the content, in any letter case.")
    tags = django_filters.CharFilter(
        method="by_tags", max_length=2_000, help_text="Comma list of whole tags: any of them."
    )

    def by_text(self, rows: QuerySet[M], name: str, value: str) -> QuerySet[M]:
        return rows.filter(content__icontains=value)

    def by_tags(self, rows: Any, name: str, value: str) -> Any:
        try:
            tags = values.clean_tags(value)
        except ValueError as wrong:
            raise Invalid({"tags": [str(wrong)]}) from wrong
        return rows.tagged_any(tags) if tags else rows


class EntryFilters(OfAgent, WithStatus):
    defaults = {"status": EntryStatus.PENDING.value}

    status = _status(EntryStatus.values, EntryStatus.PENDING)
    type = _listed(EntryType)


class DecisionFilters(OfAgent, WithStatus):
    defaults = {"status": DecisionStatus.ACTIVE.value}

    status = _status(DecisionStatus.values, DecisionStatus.ACTIVE)
    type = _listed(DecisionType)
    trust_state = _listed(TrustState)


class EventFilters(Filters):
    action = _text("by_word", "An action, such as `decision.approve`.")
    actor = _text("by_word", "A user name, `run:{id}` or `scribe:{id}`.")
    target = _text("by_word", "A row, such as `memory:12`.")
    run = _text("by_run", "A run's UUID: what it did, what its scribe did, and what was done to it.")

    def by_word(self, rows: QuerySet[M], name: str, value: str) -> QuerySet[M]:
        return rows.filter(**{name: value})

    def by_run(self, rows: QuerySet[M], name: str, value: str) -> QuerySet[M]:
        if not values.looks_like_uuid(value):
            raise Invalid({"run": ["This must be a UUID."]})
        run = UUID(value)
        return rows.filter(Q(actor__in=[f"run:{run}", f"scribe:{run}"]) | Q(target=f"run:{run}"))
