"""The indexes of the compiler: they hold every row a layer selects, and the database uses them (SPEC 11)."""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import product
from typing import Any

import pytest
from django.db import connection
from django.db.models import Q, QuerySet
from django.test.utils import CaptureQueriesContext

from memory.actors import SCRIBE_PREFIX
from memory.compiling import candidates
from memory.compiling.compiler import compile_context
from memory.compiling.layers import DECISIONS, all_hold, memory_scopes
from memory.enums import (
    DecisionStatus,
    DecisionType,
    Importance,
    MemoryType,
    SourceKind,
    TrustPolicy,
    TrustState,
)
from memory.models import Agent, AgentMemory, Decision
from memory.models.compiled import decision_compiled_in, memory_compiled_across, memory_compiled_for
from tests.benchmarks import load
from tests.conftest import NOW, Team
from tests.factories import AgentFactory

only_postgresql = pytest.mark.skipif(
    "connection.vendor != 'postgresql'", reason="only PostgreSQL chooses by what it knows of the rows"
)


# What the indexes hold


def found_under(rows: QuerySet[Any], index: Any, key: Any) -> set[int]:
    return set(rows.alias(found=index).filter(found=key).values_list("pk", flat=True))


def selected(rows: QuerySet[Any], rule: Q) -> set[int]:
    return set(rows.filter(rule).values_list("pk", flat=True))


def shared(agent: Agent, trust: str, approved_by: str = "") -> dict[str, Any]:
    legacy, approved = trust == TrustState.LEGACY, trust == TrustState.APPROVED
    return {
        "project": agent.project, "agent": agent, "content": "x", "created_at": NOW, "updated_at": NOW,
        "trust_state": trust, "approved_by": approved_by if approved else "", "approved_at": NOW if approved else None,
        "source_kind": SourceKind.LEGACY if legacy else SourceKind.HUMAN,
        "source_identity": "import:decisions.md#L1" if legacy else "owner",
    }  # fmt: skip


def every_decision(agent: Agent) -> Iterator[Decision]:
    for status, trust, kind in product(DecisionStatus.values, TrustState.values, DecisionType.values):
        if status != DecisionStatus.SUPERSEDED:
            yield Decision(**shared(agent, trust, "owner"), status=status, type=kind, title="x")


def every_memory(agent: Agent) -> Iterator[AgentMemory]:
    for kind, importance, trust, retired, tags, approver in product(
        MemoryType.values, Importance.values, TrustState.values, (False, True), ("", ",cross-team,"),
        ("owner", f"{SCRIBE_PREFIX}run"),
    ):  # fmt: skip
        retirement = {"retired_at": NOW, "retired_by": "owner", "retire_reason": "x"} if retired else {}
        yield AgentMemory(
            **shared(agent, trust, approver), **retirement, type=kind, importance=importance, tags=tags
        )


def test_every_decision_that_layer_1_selects_is_in_the_index(team: Team) -> None:
    Decision.objects.bulk_create(every_decision(AgentFactory(project=team.project)))
    rows = Decision.objects.filter(project=team.project)
    taken = selected(rows, all_hold(DECISIONS))
    assert len(taken) == 2
    assert found_under(rows, decision_compiled_in(), team.project.pk) == taken


@pytest.mark.parametrize("trust", TrustPolicy)
def test_every_memory_that_a_layer_selects_is_in_its_index(team: Team, trust: TrustPolicy) -> None:
    ana, ben = (AgentFactory(project=team.project, name=name) for name in ("Ana", "Ben"))
    for agent in (ana, ben):
        AgentMemory.objects.bulk_create(every_memory(agent))
    rows = AgentMemory.objects.all()
    core, own, others = (selected(rows, scope.selected) for scope in memory_scopes(ana.pk, trust))
    assert core
    assert own
    assert others
    assert core | own <= found_under(rows, memory_compiled_for(), ana.pk)
    assert others <= found_under(rows, memory_compiled_across(), team.project.pk)


# What the database does with them


@only_postgresql
def test_the_statements_of_a_compile_are_planned_once_for_all_agents_and_projects(team: Team) -> None:
    with connection.cursor() as cursor:
        cursor.execute("DEALLOCATE ALL")
    with CaptureQueriesContext(connection) as captured:
        for name in ("Ana", "Ben", "nobody"):
            compile_context(team.project, name)
    assert [query["sql"].split()[0] for query in captured] == ["SELECT"] * 6
    with connection.cursor() as cursor:
        cursor.execute("SELECT count(*), sum(generic_plans + custom_plans) FROM pg_prepared_statements")
        assert cursor.fetchall() == [(2, 6)]


@pytest.fixture
def large(db: None) -> Agent:
    """Fifty times the standard load, and what the database knows of it. The agent is the one whose context is compiled."""
    project = load.load(load.Size("GM-50", 50))
    with connection.cursor() as cursor:
        cursor.execute("ANALYZE")
    return Agent.objects.select_related("project").get(project=project, key="a0")


def plan(agent: Agent, trust: TrustPolicy, mode: str) -> list[dict[str, Any]]:
    """The scans of the executed statement of all four layers."""
    statement = candidates._agent_statement("default", trust)
    with connection.cursor() as cursor:
        cursor.execute(f"SET LOCAL plan_cache_mode = {mode}")
        cursor.execute(f"PREPARE compiling AS {statement.sql.replace('%', '%%')}", ())
        cursor.execute(
            f"EXPLAIN (ANALYZE, FORMAT JSON) EXECUTE compiling('{agent.project_id}', '{agent.pk}')"
        )
        [(answer,)] = cursor.fetchall()
        cursor.execute("DEALLOCATE compiling")
    return list(scans(answer[0]["Plan"]))


def scans(node: dict[str, Any]) -> Iterator[dict[str, Any]]:
    for child in node.get("Plans", ()):
        yield from scans(child)
    if "Scan" in node["Node Type"]:
        yield node


LEDGER = ("memory_decision", "memory_agentmemory")


@only_postgresql
@pytest.mark.parametrize("mode", ["force_generic_plan", "force_custom_plan"])
@pytest.mark.parametrize("trust", TrustPolicy)
def test_a_compile_finds_its_rows_among_many_through_the_indexes(
    large: Agent, trust: TrustPolicy, mode: str
) -> None:
    steps = plan(large, trust, mode)
    used = {step["Index Name"] for step in steps if "Index Name" in step}
    assert used >= {
        "decision_compiled_in", "memory_compiled_for", "memory_compiled_across", "decision_newest", "memory_newest",
    }  # fmt: skip
    of_ledger = [step for step in steps if step.get("Relation Name") in LEDGER]
    assert {step["Node Type"] for step in of_ledger} <= {"Index Scan", "Bitmap Heap Scan"}
    read = sum(step["Actual Rows"] + step.get("Rows Removed by Filter", 0) for step in of_ledger)
    # Each eligible row once for its layer and at most once more on the way to the newest that are left out.
    assert read <= 2 * (load.ELIGIBLE + candidates.OMITTED_LIMIT + 1)


@only_postgresql
def test_what_asks_to_cross_teams_is_counted_without_a_look_at_the_rest(large: Agent) -> None:
    asking = AgentMemory.objects.cross_team_requests().filter(project=large.project)
    found = json.loads(asking.explain(format="json", analyze=True))
    [step] = scans(found[0]["Plan"])
    assert step["Index Name"] == "memory_asks_cross_team"
    assert step.get("Rows Removed by Filter", 0) == 0


@pytest.mark.skipif("connection.vendor != 'sqlite'", reason="asks SQLite for its plan")
@pytest.mark.parametrize("trust", TrustPolicy)
def test_sqlite_takes_the_same_indexes_whatever_is_stored(db: None, trust: TrustPolicy) -> None:
    statement = candidates._agent_statement("default", trust)
    with connection.cursor() as cursor:
        cursor.execute(f"EXPLAIN QUERY PLAN {statement.sql}", statement.params)
        steps = [detail for *_, detail in cursor.fetchall()]
    of_ledger = [step.split(" USING INDEX ") for step in steps if any(table in step for table in LEDGER)]
    assert [(found, index.split()[0]) for found, index in of_ledger] == [
        ("SEARCH memory_decision", "decision_compiled_in"),
        ("SEARCH memory_agentmemory", "memory_compiled_for"),
        ("SEARCH memory_agentmemory", "memory_compiled_for"),
        ("SEARCH memory_agentmemory", "memory_compiled_across"),
        ("SEARCH memory_decision", "decision_newest"),
        ("SEARCH memory_agentmemory", "memory_newest"),
    ]
