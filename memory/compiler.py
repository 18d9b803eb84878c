"""Compiles the context of an agent: order, budget, result (SPEC 4).

A compile is a pure function of (epoch, agent, policy): the same input gives the same bytes on every worker, for ever. The rows
come from `memory.candidates` in one statement that also reads the epoch; a change that slips in between the project's row and
that statement is noticed and the compile starts over.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from django.db import transaction

from memory import candidates, envelope
from memory.candidates import OMITTED_LIMIT, Candidate
from memory.enums import Layer, OmitReason, Overflow, TrustPolicy
from memory.errors import NotFound, OverBudget
from memory.models import Agent, Project
from memory.values import agent_key

VERSION = 1
"""Rises when the same rows would compile to other bytes, so that no cache answers with the old ones."""

_ATTEMPTS = 4


@dataclass(frozen=True, slots=True)
class Policy:
    """What bounds a compile: the project's policy, narrowed by a request. Tokens are four characters each."""

    max_items: int
    max_tokens: int
    on_overflow: Overflow
    trust: TrustPolicy

    @classmethod
    def of(cls, project: Project, limits: Limits) -> Policy:
        """The project's policy; a request may only narrow its limits."""
        return cls(
            min(project.max_items, limits.max_items if limits.max_items is not None else project.max_items),
            min(
                project.max_tokens, limits.max_tokens if limits.max_tokens is not None else project.max_tokens
            ),
            Overflow(project.on_overflow),
            TrustPolicy(project.trust),
        )

    @property
    def budget(self) -> int:
        """Characters of the whole block."""
        return self.max_tokens * envelope.CHARACTERS_PER_TOKEN


@dataclass(frozen=True, slots=True)
class Limits:
    """What a request asks for instead of the policy's limits; None leaves the policy's."""

    max_items: int | None = None
    max_tokens: int | None = None


class Included(NamedTuple):
    """A row in the block, at the revision that was compiled. `characters` is the length of its record."""

    kind: str
    id: int
    revision: int
    layer: Layer
    characters: int


class Omitted(NamedTuple):
    """A row that is not in the block, and the one reason why."""

    kind: str
    id: int
    reason: OmitReason


@dataclass(frozen=True, slots=True)
class CompiledContext:
    """The result of a compile. `text` is None when no layer holds a row: then no block is injected."""

    agent_name: str | None
    epoch: int
    policy: Policy
    text: str | None
    included: tuple[Included, ...]
    omitted: tuple[Omitted, ...]
    omitted_truncated: bool
    over_budget: bool

    @property
    def sha256(self) -> str | None:
        """SHA-256 of the block's bytes, in hexadecimal."""
        return hashlib.sha256(self.text.encode("ascii")).hexdigest() if self.text is not None else None

    @property
    def characters(self) -> int:
        return len(self.text or "")

    @property
    def tokens(self) -> int:
        """The block's size in tokens; 0 when there is none."""
        return envelope.tokens(self.characters)

    def layer(self, layer: Layer) -> tuple[Included, ...]:
        return tuple(row for row in self.included if row.layer == layer)


@dataclass
class _Filling:
    """The block while it is being filled: records as text, and the length the whole block has with them."""

    policy: Policy
    decisions: list[str] = field(default_factory=list)
    memory: list[str] = field(default_factory=list)
    session: str | None = None
    included: list[Included] = field(default_factory=list)
    omitted: list[Omitted] = field(default_factory=list)
    length: int = len(envelope.block([], [], None))

    def put(self, row: Candidate, record: str) -> None:
        """Take a row in, whatever the budget says."""
        records = self.decisions if row.layer == Layer.DECISIONS else self.memory
        self.length += self.cost(row, record)
        if row.layer == Layer.SESSION:
            self.session = record
        else:
            records.append(record)
        self.included.append(Included(row.kind, row.id, row.revision, Layer(row.layer), len(record)))

    def cost(self, row: Candidate, record: str) -> int:
        """Characters the block grows by."""
        if row.layer == Layer.SESSION:
            return len(record) - len("null")
        records = self.decisions if row.layer == Layer.DECISIONS else self.memory
        return len(record) + (1 if records else 0)

    def put_if_it_fits(self, row: Candidate, agent_id: int | None) -> None:
        """Take a row in whole or leave it out whole."""
        if row.layer == Layer.LEARNINGS and len(self.memory) >= self.policy.max_items:
            return self.leave_out(row, OmitReason.ITEM_LIMIT)
        record = _record(row, agent_id)
        if self.length + self.cost(row, record) > self.policy.budget:
            return self.leave_out(row, OmitReason.TOKEN_BUDGET)
        return self.put(row, record)

    def leave_out(self, row: Candidate, reason: OmitReason) -> None:
        self.omitted.append(Omitted(row.kind, row.id, reason))


def compile_context(project: Project, agent_name: str, limits: Limits = Limits()) -> CompiledContext:
    """The context of one agent: four layers in strict priority, within the policy (SPEC 4).

    An agent nobody has named yet gets what any agent would get; asking creates nothing. Raises OverBudget when layers 1 and 2
    exceed the budget and the policy says `fail`.
    """

    def read(current: Project) -> CompiledContext | None:
        agent = Agent.objects.filter(project=current, key=agent_key(agent_name)).first()
        policy = Policy.of(current, limits)
        rows = candidates.of_agent(current, agent.pk if agent else None, policy.trust)
        name = agent.name if agent else agent_name.strip()
        return _assemble(current, name, agent.pk if agent else None, policy, rows)

    return _at_one_epoch(project, read)


def compile_for_agent(project: Project, agent: Agent, limits: Limits = Limits()) -> CompiledContext:
    """`compile_context` for an agent that is loaded already. Raises OverBudget."""

    def read(current: Project) -> CompiledContext | None:
        policy = Policy.of(current, limits)
        rows = candidates.of_agent(current, agent.pk, policy.trust)
        return _assemble(current, agent.name, agent.pk, policy, rows)

    return _at_one_epoch(project, read)


def compile_decisions(project: Project, limits: Limits = Limits()) -> CompiledContext:
    """Layer 1 alone in the same envelope, with no memory and no session (SPEC 4, Decisions only). Raises OverBudget."""

    def read(current: Project) -> CompiledContext | None:
        return _assemble(current, None, None, Policy.of(current, limits), candidates.of_decisions(current))

    return _at_one_epoch(project, read)


def _at_one_epoch(project: Project, read: Any) -> CompiledContext:
    """Run `read` until the project's row and the rows it read are of one epoch; hold the project still if it will not settle."""
    current = project
    for _ in range(_ATTEMPTS):
        result: CompiledContext | None = read(current)
        if result is not None:
            return result
        current = _fresh(Project.objects.filter(pk=project.pk))
    with transaction.atomic():
        result = read(_fresh(Project.objects.select_for_update(no_key=True).filter(pk=project.pk)))
        if result is None:
            raise RuntimeError("The epoch moved while the project was locked.")
        return result


def _fresh(projects: Any) -> Project:
    project: Project | None = projects.first()
    if project is None:
        raise NotFound
    return project


def _assemble(
    project: Project, name: str | None, agent_id: int | None, policy: Policy, rows: Sequence[Candidate]
) -> CompiledContext | None:
    """The result, or None when the rows are of another epoch than the project's row."""
    if [row.id for row in rows if row.kind == "epoch"] != [project.epoch]:
        return None
    filling = _fill(policy, agent_id, [row for row in rows if not row.reason and row.kind != "epoch"])
    left_out = _newest_first(row for row in rows if row.reason)
    named = [row for kind in ("decision", "memory") for row in _of_kind(left_out, kind)[:OMITTED_LIMIT]]
    for row in named:
        filling.leave_out(row, OmitReason(row.reason))
    text = envelope.block(filling.decisions, filling.memory, filling.session) if filling.included else None
    return CompiledContext(
        agent_name=name, epoch=project.epoch, policy=policy, text=text,
        included=tuple(filling.included), omitted=tuple(filling.omitted),
        omitted_truncated=len(named) < len(left_out),
        over_budget=text is not None and len(text) > policy.budget,
    )  # fmt: skip


def _of_kind(rows: Iterable[Candidate], kind: str) -> list[Candidate]:
    return [row for row in rows if row.kind == kind]


def _fill(policy: Policy, agent_id: int | None, rows: Sequence[Candidate]) -> _Filling:
    """Layers 1 and 2 whole, layer 3 newest first into what is left, layer 4 last, whole or not at all."""
    filling = _Filling(policy)
    for layer in (Layer.DECISIONS, Layer.CORE):
        for row in _oldest_first(row for row in rows if row.layer == layer):
            filling.put(row, _record(row, agent_id))
    if filling.length > policy.budget and policy.on_overflow == Overflow.FAIL and filling.included:
        raise OverBudget(budget=policy.budget, required=filling.length)
    for layer in (Layer.LEARNINGS, Layer.SESSION):
        for row in _newest_first(row for row in rows if row.layer == layer):
            filling.put_if_it_fits(row, agent_id)
    return filling


def _oldest_first(rows: Iterable[Candidate]) -> list[Candidate]:
    return sorted(rows, key=_age)


def _newest_first(rows: Iterable[Candidate]) -> list[Candidate]:
    return sorted(rows, key=_age, reverse=True)


def _age(row: Candidate) -> tuple[str, int]:
    return row.created_at, row.id


def _record(row: Candidate, agent_id: int | None) -> str:
    if row.kind == "decision":
        return envelope.decision_record(
            title=row.title,
            type=row.type,
            agent_name=row.agent_name,
            content=row.content,
            rationale=row.rationale,
        )
    if row.kind == "session":
        issues = json.loads(row.active_issues)
        return envelope.session_record(focus_area=row.title, active_issues=issues, summary=row.content)
    return envelope.memory_record(
        label=_label(row, agent_id), type=row.type, agent_name=row.agent_name, importance=row.importance,
        content=row.content, trust_state=row.trust_state,
    )  # fmt: skip


def _label(row: Candidate, agent_id: int | None) -> str:
    if row.layer == Layer.CORE:
        return "core"
    return row.type if row.agent_id == agent_id else f"{row.type} from {row.agent_name}"


def etag(project: Project, *parts: str | int | None) -> str:
    """A strong validator from the project's row alone (SPEC 11): it changes whenever the answer could.

    `parts` are what else the answer depends on: the agent, the limits asked for, the representation.
    """
    known = [
        VERSION,
        str(project.pk),
        project.epoch,
        project.max_items,
        project.max_tokens,
        project.on_overflow,
        project.trust,
    ]
    digest = hashlib.sha256(json.dumps([*known, *parts]).encode()).hexdigest()
    return f'"{digest[:32]}"'
