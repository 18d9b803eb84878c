"""Which rows a compiled context may hold: the whole table of states, with a second reading of SPEC 4 as the judge."""

from __future__ import annotations

from itertools import product
from typing import Any

import pytest

from memory.compiling.compiler import Limits, compile_context, compile_decisions
from memory.compiling.layers import DECISIONS, all_hold, decision_reason, memory_reason, memory_scopes
from memory.enums import (
    DecisionStatus,
    DecisionType,
    Importance,
    Layer,
    MemoryType,
    TrustPolicy,
    TrustState,
)
from memory.models import AgentMemory, Decision, Project
from tests.conftest import Team
from tests.factories import APPROVED, LEGACY, RETIRED, DecisionFactory, MemoryFactory, agent_of

pytestmark = pytest.mark.django_db

TRUST: dict[str, dict[str, Any]] = {
    "pending": {"trust_state": TrustState.PENDING},
    "approved": APPROVED,
    "scribe": {**APPROVED, "approved_by": "scribe:0b5e"},
    "legacy": LEGACY,
}
TAGS = (
    "",
    "cross-team",
    "cross-teams",
    "my-cross-team",
    "cross-team-a,b",
    "a,cross-team,b",
    "cross_team",
    "cross%",
)

CROSSING = {"cross-team", "a,cross-team,b"}


def memory_why_not(
    own: bool, type: str, importance: str, trust: str, tags: str, retired: bool, *, strict: bool
) -> str:
    """SPEC 4 for one memory, read by a person: the first reason that keeps it out, or nothing."""
    if retired:
        return "retired"
    if trust == "legacy":
        return "legacy"
    if type == "core_context":
        if not own:
            return "other_agent"
        return "not_approved" if strict and trust == "pending" else ""
    if type == "update":
        return "type_not_compiled"
    if own:
        if importance != "high":
            return "low_importance"
        return "not_approved" if strict and trust == "pending" else ""
    if tags not in CROSSING:
        return "other_agent"
    if trust != "approved":
        return "not_approved"
    return "" if importance == "high" else "low_importance"


def decision_why_not(type: str, status: str, trust: str) -> str:
    """SPEC 4 for one decision."""
    if status != "active":
        return "not_active"
    if trust == "legacy":
        return "legacy"
    if type not in ("architectural", "scope"):
        return "type_not_compiled"
    return "not_approved" if trust == "pending" else ""


def every_memory(project: Project) -> dict[int, tuple[Any, ...]]:
    """One memory for every combination of what the rules look at."""
    agents = {True: agent_of(project, "Ana"), False: agent_of(project, "Ben")}
    states = list(product((True, False), MemoryType, Importance, TRUST, TAGS, (False, True)))
    rows = [
        MemoryFactory.build(
            project=project, agent=agents[own], type=kind, importance=importance, tags=[t for t in tags.split(",") if t],
            **TRUST[trust], **(RETIRED if retired else {}),
        )
        for own, kind, importance, trust, tags, retired in states
    ]  # fmt: skip
    stored = AgentMemory.objects.bulk_create(rows)
    return {row.pk: state for row, state in zip(stored, states, strict=True)}


def every_decision(project: Project) -> dict[int, tuple[str, str, str]]:
    successor = DecisionFactory(project=project)
    states = {successor.pk: ("architectural", "active", "approved")}
    for kind, status, trust in product(DecisionType, DecisionStatus, TRUST):
        row = DecisionFactory(
            project=project, agent=successor.agent, type=kind, status=status, **TRUST[trust],
            superseded_by=successor if status == DecisionStatus.SUPERSEDED else None,
        )  # fmt: skip
        states[row.pk] = (kind.value, status.value, trust)
    return states


@pytest.mark.parametrize("policy", TrustPolicy)
def test_every_state_of_a_memory_has_its_layer_or_its_reason(team: Team, policy: TrustPolicy) -> None:
    states = every_memory(team.project)
    ana, strict = agent_of(team.project, "Ana"), policy == TrustPolicy.STRICT
    expected = {pk: memory_why_not(*state, strict=strict) for pk, state in states.items()}

    scopes = memory_scopes(ana.pk, policy)
    explained = AgentMemory.objects.annotate(why=memory_reason(scopes)).values_list("pk", "why")
    assert dict(explained) == expected

    selected = [set(AgentMemory.objects.filter(s.selected).values_list("pk", flat=True)) for s in scopes]
    assert set.union(*selected) == {pk for pk, why in expected.items() if not why}
    assert sum(len(rows) for rows in selected) == len(set.union(*selected))

    Project.objects.update(max_items=10_000, max_tokens=1_000_000, trust=policy)
    result = compile_context(Project.objects.get(), "Ana", Limits())
    assert {row.id: row.layer for row in result.included} == {
        pk: Layer.CORE if states[pk][1] == "core_context" else Layer.LEARNINGS
        for pk, why in expected.items()
        if not why
    }
    newest_out = sorted((pk for pk, why in expected.items() if why), reverse=True)[:200]
    assert {row.id: str(row.reason) for row in result.omitted} == {pk: expected[pk] for pk in newest_out}
    assert result.omitted_truncated is True


def test_an_agent_nobody_has_named_gets_what_crosses_and_nothing_else(team: Team) -> None:
    states = every_memory(team.project)
    expected = {pk: memory_why_not(False, *state[1:], strict=False) for pk, state in states.items()}
    scopes = memory_scopes(None, TrustPolicy.STANDARD)
    explained = AgentMemory.objects.annotate(why=memory_reason(scopes)).values_list("pk", "why")
    assert dict(explained) == expected
    Project.objects.update(max_items=10_000, max_tokens=1_000_000)
    result = compile_context(Project.objects.get(), "Nobody yet")
    assert {row.id for row in result.included} == {pk for pk, why in expected.items() if not why}


def test_every_state_of_a_decision_is_compiled_or_has_its_reason(team: Team) -> None:
    expected = {pk: decision_why_not(*state) for pk, state in every_decision(team.project).items()}
    explained = Decision.objects.annotate(why=decision_reason()).values_list("pk", "why")
    assert dict(explained) == expected
    selected = set(Decision.objects.filter(all_hold(DECISIONS)).values_list("pk", flat=True))
    assert selected == {pk for pk, why in expected.items() if not why}
    for result in (compile_context(Project.objects.get(), "Ana"), compile_decisions(Project.objects.get())):
        assert {row.id for row in result.included} == selected
        assert {row.id: str(row.reason) for row in result.omitted} == {
            pk: why for pk, why in expected.items() if why
        }
        assert result.omitted_truncated is False


def test_no_state_stands_in_two_layers_or_none(team: Team) -> None:
    states = every_memory(team.project)
    for agent_id in (agent_of(team.project, "Ana").pk, None):
        within = [
            list(AgentMemory.objects.filter(scope.within).values_list("pk", flat=True))
            for scope in memory_scopes(agent_id, TrustPolicy.STANDARD)
        ]
        assert sorted(pk for rows in within for pk in rows) == sorted(states)


@pytest.mark.parametrize("name", ["An", "Ana2", "ANA-", "A%", "___", "Ana\u200b", "Anä"])
def test_nothing_crosses_agents_by_prefix_wildcard_or_likeness(team: Team, name: str) -> None:
    MemoryFactory(project=team.project, type=MemoryType.CORE_CONTEXT, content="Ana's alone")
    MemoryFactory(project=team.project, agent=agent_of(team.project, name), content="the other's alone")
    for asked, got in (("Ana", "Ana's alone"), (name, "the other's alone")):
        text = compile_context(team.project, asked).text
        assert text is not None
        assert got.replace("'", "\\u0027") in text
        assert text.count("alone") == 1


def test_the_tag_is_whole_and_the_column_says_so(team: Team) -> None:
    crossing = {
        tags: MemoryFactory(project=team.project, tags=[t for t in tags.split(",") if t]).pk for tags in TAGS
    }
    rows = AgentMemory.objects.filter(cross_team=True).values_list("pk", flat=True)
    assert set(rows) == {crossing["cross-team"], crossing["a,cross-team,b"]}


@pytest.mark.parametrize(
    ("wanted", "found"),
    [
        (["cross-team"], {"cross-team", "a,cross-team,b"}),
        (["cross%"], {"cross%"}),
        (["cross_team"], {"cross_team"}),
        (["b", "cross%"], {"cross-team-a,b", "a,cross-team,b", "cross%"}),
        (["cross"], set()),
        (["%"], set()),
    ],
)
def test_a_search_for_tags_finds_whole_tags_only(team: Team, wanted: list[str], found: set[str]) -> None:
    for tags in TAGS:
        MemoryFactory(project=team.project, tags=[t for t in tags.split(",") if t])
    rows = AgentMemory.objects.tagged_any(wanted)
    assert {",".join(row.tags) for row in rows} == found
