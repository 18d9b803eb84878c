"""What a decision would change in each agent's context (SPEC 9, Inbox).

Nothing is predicted: the verb itself runs, the real compiler compiles, and the transaction is rolled back. A look therefore holds
the project's lock for a moment; it is taken on demand only, and what stands now is compiled before the lock is taken.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace

from django.db import transaction
from django.db.models import Max, Q

from governance.deciding.differences import Line, between
from memory.compiling import envelope
from memory.compiling.compiler import CompiledContext, compile_context, compile_decisions
from memory.errors import NotFound, OverBudget
from memory.models import Agent, AgentMemory, Project

AGENTS = 8
"""Agents looked at: the row's own first, then those who ran last. Every one more holds the lock a little longer."""
CHILD_RUNS = "child runs"

Verb = Callable[[], object]
Row = tuple[str, int]


@dataclass(frozen=True, slots=True)
class Fallen:
    """A row that is in the block now and would no longer be; `reason` is the compiler's."""

    kind: str
    id: int
    reason: str
    content: str = ""


@dataclass(frozen=True, slots=True)
class AgentImpact:
    """The difference of one agent's block. Tokens as the policy counts them; an error is a compile's code, or empty."""

    agent: str
    tokens_before: int
    tokens_after: int
    budget: int
    over_budget: bool
    error_before: str
    error_after: str
    lines: tuple[Line, ...]
    fallen: tuple[Fallen, ...]

    @property
    def tokens_added(self) -> int:
        return self.tokens_after - self.tokens_before

    @property
    def changed(self) -> bool:
        return bool(self.lines) or self.error_before != self.error_after


@dataclass(frozen=True, slots=True)
class Impact:
    """What a verb would change for the agents looked at; `unseen` counts the agents that were not."""

    agents: tuple[AgentImpact, ...]
    unseen: int

    @property
    def changed(self) -> tuple[AgentImpact, ...]:
        return tuple(agent for agent in self.agents if agent.changed)

    @property
    def unchanged(self) -> tuple[AgentImpact, ...]:
        return tuple(agent for agent in self.agents if not agent.changed)


@dataclass(frozen=True, slots=True)
class _Compiled:
    """A compile's result, or the code of the error it raised instead."""

    context: CompiledContext | None
    error: str = ""

    def is_of(self, epoch: int) -> bool:
        return self.context is not None and self.context.epoch == epoch

    @property
    def lines(self) -> list[str]:
        return laid_out(self.context.text) if self.context and self.context.text else []

    @property
    def tokens(self) -> int:
        return self.context.tokens if self.context else 0

    @property
    def rows(self) -> set[Row]:
        return {(row.kind, row.id) for row in self.context.included} if self.context else set()


def impact_of(project: Project, verb: Verb, agent_name: str) -> Impact:
    """What `verb` would change for the named agent, a few others and child runs. Writes nothing; raises what the verb raises."""
    names, unseen = _audience(project, agent_name)
    before = {name: _compiled(project, name) for name in names}
    with transaction.atomic():
        now = _reread(project, lock=True)
        before = {
            name: side if side.is_of(now.epoch) else _compiled(now, name) for name, side in before.items()
        }
        verb()
        later = _reread(project)
        after = {name: _compiled(later, name) for name in names}
        transaction.set_rollback(True)
    compared = [_compared(name, before[name], after[name], project) for name in names]
    return Impact(tuple(_with_texts(compared)), unseen)


def _audience(project: Project, agent_name: str) -> tuple[list[str], int]:
    """The agents to look at and how many are left out; child runs are told decisions only and come last."""
    agents = Agent.objects.filter(project=project).annotate(ran=Max("runs__started_at"))
    others = agents.exclude(Q(name=agent_name)).order_by("-ran", "name").values_list("name", flat=True)
    names = list(others[: AGENTS - 1])
    unseen = others.count() - len(names) if len(names) == AGENTS - 1 else 0
    return [agent_name, *names, CHILD_RUNS], unseen


def _reread(project: Project, *, lock: bool = False) -> Project:
    rows = Project.objects.filter(pk=project.pk)
    found = (rows.select_for_update(no_key=True) if lock else rows).first()
    if found is None:
        raise NotFound
    return found


def _compiled(project: Project, name: str) -> _Compiled:
    try:
        return _Compiled(compile_decisions(project) if name == CHILD_RUNS else compile_context(project, name))
    except OverBudget as refusal:
        return _Compiled(None, refusal.code)


def laid_out(block: str) -> list[str]:
    """The JSON of a block laid out for people, one value a line."""
    return json.dumps(envelope.parse(block), indent=2, ensure_ascii=False).split("\n")


def _compared(name: str, before: _Compiled, after: _Compiled, project: Project) -> AgentImpact:
    return AgentImpact(
        agent=name,
        tokens_before=before.tokens,
        tokens_after=after.tokens,
        budget=project.max_tokens,
        over_budget=after.context is not None and after.context.over_budget,
        error_before=before.error,
        error_after=after.error,
        lines=tuple(between(before.lines, after.lines)),
        fallen=tuple(_fallen(before, after)),
    )


def _fallen(before: _Compiled, after: _Compiled) -> Iterable[Fallen]:
    reasons = {(row.kind, row.id): row.reason for row in after.context.omitted} if after.context else {}
    for kind, row_id in sorted(before.rows - after.rows):
        reason = reasons.get((kind, row_id))
        yield Fallen(kind, row_id, reason.label if reason else "no longer compiled")


def _with_texts(agents: Iterable[AgentImpact]) -> Iterable[AgentImpact]:
    """Give fallen memories the opening of their text, so that a reader knows which they are. At most one query."""
    agents = list(agents)
    wanted = {row.id for agent in agents for row in agent.fallen if row.kind == "memory"}
    texts = dict(AgentMemory.objects.filter(pk__in=wanted).values_list("pk", "content")) if wanted else {}
    for agent in agents:
        named = (Fallen(row.kind, row.id, row.reason, texts.get(row.id, "")[:200]) for row in agent.fallen)
        yield replace(agent, fallen=tuple(named))
