"""Rows in any state, written past the verbs: for tests of what reads them and of what the database refuses.

Where a test is about a verb, it calls the verb.
"""

from __future__ import annotations

from typing import Any, Generic, TypeVar

from django.db import models
from factory.declarations import LazyAttribute, LazyFunction, SelfAttribute, Sequence
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


M = TypeVar("M", bound=models.Model)


class Maker(Generic[M]):
    """A factory as a function whose answer has a type."""

    def __init__(self, factory: type[DjangoModelFactory[M]]) -> None:
        self._factory = factory

    def __call__(self, **columns: Any) -> M:
        """A stored row; what is not said has a plain value."""
        return self._factory.create(**columns)

    def build(self, **columns: Any) -> M:
        """The same, not stored."""
        return self._factory.build(**columns)


class _Project(DjangoModelFactory[Project]):
    class Meta:
        model = Project

    name = "Another project"
    slug = Sequence(lambda number: f"another-{number}")
    created_at = NOW


class _Agent(DjangoModelFactory[Agent]):
    class Meta:
        model = Agent

    name = "Ana"
    key = LazyAttribute(lambda agent: agent_key(agent.name))
    created_at = NOW


def agent_of(project: Project, name: str = "Ana") -> Agent:
    """The agent of that name, made when there is none."""
    return Agent.objects.filter(project=project, key=agent_key(name)).first() or AgentFactory(
        project=project, name=name
    )


class _Run(DjangoModelFactory[Run]):
    class Meta:
        model = Run

    agent = LazyAttribute(lambda run: agent_of(run.project))
    started_at = NOW


class _Sourced(DjangoModelFactory[M]):
    class Meta:
        abstract = True

    source_kind = SourceKind.HUMAN
    source_identity = "contributor"


class _Memory(_Sourced[AgentMemory]):
    class Meta:
        model = AgentMemory

    agent = LazyAttribute(lambda row: agent_of(row.project))
    type = MemoryType.LEARNING
    importance = Importance.HIGH
    content = "The build needs two cores."
    trust_state = TrustState.PENDING
    created_at = NOW
    updated_at = SelfAttribute("created_at")


class _Decision(_Sourced[Decision]):
    class Meta:
        model = Decision

    agent = LazyAttribute(lambda row: agent_of(row.project))
    type = DecisionType.ARCHITECTURAL
    title = "One database"
    content = "Everything is kept in one database."
    trust_state = TrustState.APPROVED
    approved_by = LazyAttribute(lambda row: "owner" if row.trust_state == TrustState.APPROVED else "")
    approved_at = LazyAttribute(lambda row: NOW if row.trust_state == TrustState.APPROVED else None)
    created_at = NOW
    updated_at = SelfAttribute("created_at")


class _Entry(_Sourced[DecisionInboxEntry]):
    class Meta:
        model = DecisionInboxEntry

    agent = LazyAttribute(lambda row: agent_of(row.project))
    slug = Sequence(lambda number: f"entry-{number}")
    type = EntryType.LEARNING
    title = SelfAttribute("slug")
    content = "The build needs two cores."
    created_at = NOW
    updated_at = SelfAttribute("created_at")


class _Session(_Sourced[SessionContext]):
    class Meta:
        model = SessionContext

    session_id = Sequence(lambda number: f"session-{number}")
    focus_area = "Release"
    active_issues = LazyFunction(lambda: ["#1 slow build"])
    summary = "Two of three steps are done."
    started_at = NOW


ProjectFactory: Maker[Project] = Maker(_Project)
AgentFactory: Maker[Agent] = Maker(_Agent)
RunFactory: Maker[Run] = Maker(_Run)
MemoryFactory: Maker[AgentMemory] = Maker(_Memory)
DecisionFactory: Maker[Decision] = Maker(_Decision)
EntryFactory: Maker[DecisionInboxEntry] = Maker(_Entry)
SessionFactory: Maker[SessionContext] = Maker(_Session)
