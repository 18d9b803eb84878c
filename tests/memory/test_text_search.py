"""Text search finds by trigrams on PostgreSQL (SPEC 9 and 11)."""

from __future__ import annotations

import json
from typing import Any

import pytest
from django.db import connection
from django.db.models import Q, QuerySet

from memory.models import AgentMemory, Decision, DecisionInboxEntry
from tests.conftest import Team
from tests.factories import DecisionFactory, EntryFactory, MemoryFactory

pytestmark = [
    pytest.mark.django_db,
    pytest.mark.skipif(connection.vendor != "postgresql", reason="trigrams are PostgreSQL's"),
]

WORD = "Sternwarte"

SEARCHES: dict[str, tuple[type[Any], tuple[str, ...]]] = {
    "memory_agentmemory_trigrams": (AgentMemory, ("content",)),
    "memory_decision_trigrams": (Decision, ("title", "content", "rationale")),
    "memory_decisioninboxentry_trigrams": (DecisionInboxEntry, ("title", "content", "slug")),
}


@pytest.mark.parametrize("index", SEARCHES)
def test_a_search_can_use_its_index_and_finds_in_any_column_and_letter_case(index: str, team: Team) -> None:
    model, columns = SEARCHES[index]
    factory: Any = {AgentMemory: MemoryFactory, Decision: DecisionFactory, DecisionInboxEntry: EntryFactory}[
        model
    ]
    wanted = {factory(project=team.project, **{column: f"an {WORD.lower()} stands"}).pk for column in columns}
    factory(project=team.project)
    matching = Q()
    for column in columns:
        matching |= Q(**{f"{column}__icontains": WORD.upper()})
    found = model.objects.filter(matching)
    assert set(found.values_list("pk", flat=True)) == wanted
    assert index in _indexes(found)


def _indexes(rows: QuerySet[Any]) -> set[str]:
    """The indexes of the plan, where reading the whole table is no choice: a small table would be read whole."""
    with connection.cursor() as cursor:
        cursor.execute("SET LOCAL enable_seqscan = off")
        cursor.execute("SET LOCAL enable_indexscan = off")
        cursor.execute("SET LOCAL enable_indexonlyscan = off")
    return set(_names(json.loads(rows.explain(format="json"))))


def _names(plan: Any) -> list[str]:
    if isinstance(plan, list):
        return [name for part in plan for name in _names(part)]
    if not isinstance(plan, dict):
        return []
    inner = [name for value in plan.values() for name in _names(value)]
    return [plan["Index Name"], *inner] if "Index Name" in plan else inner
