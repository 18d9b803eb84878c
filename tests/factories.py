"""Rows in any state, written past the verbs: for tests of what reads them and of what the database refuses.

Where a test is about a verb, it calls the verb.
"""

from __future__ import annotations

from typing import Any

import factory
from factory.django import DjangoModelFactory

from memory.enums import DecisionType, EntryType, Importance, MemoryType, SourceKind, TrustState
from memory.models import (
    Agent,
    AgentMemory,
    Decision,
    DecisionInboxEntry,
    Project,
    Run,
    SessionContext,
)
from memory.values import agent_key
from tests.conftest import NOW

APPROVED: dict[str, Any] = {
    "trust_state": TrustState.APPROVED,
    "approved_by": "owner",
    "approved_at": NOW,
}
LEGACY: dict[str, Any] = {
    "source_kind": SourceKind.LEGACY,
    "source_identity": "import:.squad/decisions.md#L1",
    "trust_state": TrustState.LEGACY,
    "approved_by": "",
    "approved_at": None,
}
RETIRED: dict[str, Any] = {"retired_at": NOW, "retired_by": "owner", "retire_reason": "Out of date."}


class ProjectFactory(DjangoModelFactory[Project]):
    class Meta:
        model = Project

    name = "Another project"
    slug = factory.Sequence(lambda number: f"another-{number}")
    created_at = NOW


class AgentFactory(DjangoModelFactory[Agent]):
    class Meta:
        model = Agent

    name = "Ana"
    key = factory.LazyAttribute(lambda agent: agent_key(agent.name))
    created_at = NOW


def agent_of(project: Project, name: str = "Ana") -> Agent:
    """The agent of that name, made when there is none."""
    return Agent.objects.filter(project=project, key=agent_key(name)).first() or AgentFactory(
        project=project, name=name
    )


class RunFactory(DjangoModelFactory[Run]):
    class Meta:
        model = Run

    agent = factory.LazyAttribute(lambda run: agent_of(run.project))
    started_at = NOW


class SourcedFactory(DjangoModelFactory[Any]):
    class Meta:
        abstract = True

    source_kind = SourceKind.HUMAN
    source_identity = "contributor"


class MemoryFactory(SourcedFactory):
    class Meta:
        model = AgentMemory

    agent = factory.LazyAttribute(lambda row: agent_of(row.project))
    type = MemoryType.LEARNING
    importance = Importance.HIGH
    content = "The build needs two cores."
    trust_state = TrustState.PENDING
    created_at = NOW
    updated_at = factory.SelfAttribute("created_at")


class DecisionFactory(SourcedFactory):
    class Meta:
        model = Decision

    agent = factory.LazyAttribute(lambda row: agent_of(row.project))
    type = DecisionType.ARCHITECTURAL
    title = "One database"
    content = "Everything is kept in one database."
    trust_state = TrustState.APPROVED
    approved_by = factory.LazyAttribute(lambda row: "owner" if row.trust_state == TrustState.APPROVED else "")
    approved_at = factory.LazyAttribute(lambda row: NOW if row.trust_state == TrustState.APPROVED else None)
    created_at = NOW
    updated_at = factory.SelfAttribute("created_at")


class EntryFactory(SourcedFactory):
    class Meta:
        model = DecisionInboxEntry

    agent = factory.LazyAttribute(lambda row: agent_of(row.project))
    slug = factory.Sequence(lambda number: f"entry-{number}")
    type = EntryType.LEARNING
    title = factory.SelfAttribute("slug")
    content = "The build needs two cores."
    created_at = NOW
    updated_at = factory.SelfAttribute("created_at")


class SessionFactory(SourcedFactory):
    class Meta:
        model = SessionContext

    session_id = factory.Sequence(lambda number: f"session-{number}")
    focus_area = "Release"
    active_issues = factory.LazyFunction(lambda: ["#1 slow build"])
    summary = "Two of three steps are done."
    started_at = NOW
