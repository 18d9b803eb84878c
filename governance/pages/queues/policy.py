"""What the policy lets through: each agent's context against the limits, as they are or as they would be (SPEC 9, Policy)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from django.db import transaction
from django.db.models import F, Max

from governance.pages.charts import Bars, bars
from memory.compiling.compiler import CompiledContext, compile_context, compile_decisions
from memory.compiling.envelope import tokens
from memory.enums import Layer, OmitReason
from memory.errors import NotFound, OverBudget
from memory.models import Agent, Project

AGENTS = 8
"""Agents looked at: those who ran last. Child runs come on top."""
CHILD_RUNS = "child runs"


@dataclass(frozen=True, slots=True)
class Load:
    """How one agent fills the policy. Tokens as the policy counts them; `crowded_out` counts rows that the limits leave out."""

    agent: str
    tokens: int
    max_tokens: int
    items: int
    max_items: int
    crowded_out: int
    over_budget: bool
    error: str = ""

    @property
    def bars(self) -> Bars:
        return bars([("context", self.tokens)], self.max_tokens)


@dataclass(frozen=True, slots=True)
class Loads:
    """The agents looked at; `unseen` counts those that were not."""

    agents: tuple[Load, ...]
    unseen: int


@dataclass(frozen=True, slots=True)
class Effect:
    """One agent under the policy as it is and as it would be."""

    now: Load
    then: Load


def loads(project: Project) -> Loads:
    """Every agent's context now. A few queries for each agent looked at."""
    names, unseen = _audience(project)
    return Loads(tuple(_load(project, name) for name in names), unseen)


def effects(project: Project, verb: Callable[[], object]) -> tuple[Sequence[Effect], int]:
    """What changing the policy would do; `verb` runs and is rolled back, so nothing is predicted. Raises what it raises."""
    names, unseen = _audience(project)
    now = [_load(project, name) for name in names]
    with transaction.atomic():
        verb()
        changed = Project.objects.filter(pk=project.pk).first()
        if changed is None:
            raise NotFound
        then = [_load(changed, name) for name in names]
        transaction.set_rollback(True)
    return [Effect(*pair) for pair in zip(now, then, strict=True)], unseen


def _audience(project: Project) -> tuple[list[str], int]:
    agents = Agent.objects.filter(project=project).annotate(ran=Max("runs__started_at"))
    newest = agents.order_by(F("ran").desc(nulls_last=True), "name")
    names = list(newest.values_list("name", flat=True)[: AGENTS + 1])
    unseen = agents.count() - AGENTS if len(names) > AGENTS else 0
    return [*names[:AGENTS], CHILD_RUNS], unseen


def _load(project: Project, name: str) -> Load:
    try:
        context = compile_decisions(project) if name == CHILD_RUNS else compile_context(project, name)
    except OverBudget as refusal:
        return Load(
            name,
            tokens(refusal.required),
            tokens(refusal.budget),
            0,
            project.max_items,
            0,
            True,
            refusal.code,
        )
    return _loaded(name, context)


def _loaded(name: str, context: CompiledContext) -> Load:
    items = len(context.layer(Layer.CORE)) + len(context.layer(Layer.LEARNINGS))
    limits = (OmitReason.ITEM_LIMIT, OmitReason.TOKEN_BUDGET)
    crowded = sum(1 for row in context.omitted if row.reason in limits)
    return Load(
        name,
        context.tokens,
        context.policy.max_tokens,
        items,
        context.policy.max_items,
        crowded,
        context.over_budget,
    )
