"""Compiles the context of an agent: order, budget, result (SPEC 4).

A compile is a pure function of (epoch, agent, policy): the same input gives the same bytes on every worker, for ever. The rows
come from `memory.compiling.candidates` in one statement that also reads the epoch; a change that slips in between the project's row and
that statement is noticed and the compile starts over.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import compress
from operator import attrgetter
from typing import Any, NamedTuple

from django.db import transaction

from memory import replica
from memory.compiling import candidates, envelope
from memory.compiling.candidates import OMITTED_LIMIT, Candidate, NamedAgent
from memory.enums import Layer, OmitReason, Overflow, TrustPolicy
from memory.errors import NotFound, OverBudget
from memory.models import Agent, Project

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
        """The project's policy; a request may only narrow it."""
        return cls(
            min(project.max_items, limits.max_items if limits.max_items is not None else project.max_items),
            min(
                project.max_tokens, limits.max_tokens if limits.max_tokens is not None else project.max_tokens
            ),
            Overflow(project.on_overflow),
            TrustPolicy.STRICT if limits.strict else TrustPolicy(project.trust),
        )

    @property
    def budget(self) -> int:
        """Characters of the whole block."""
        return self.max_tokens * envelope.CHARACTERS_PER_TOKEN


@dataclass(frozen=True, slots=True)
class Limits:
    """What a request asks for instead of the policy's limits; None leaves the policy's. `strict` asks for approved rows only."""

    max_items: int | None = None
    max_tokens: int | None = None
    strict: bool = False


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
    agent: NamedAgent | None
    decisions: list[str] = field(default_factory=list)
    memory: list[str] = field(default_factory=list)
    session: str | None = None
    included: list[Included] = field(default_factory=list)
    omitted: list[Omitted] = field(default_factory=list)
    length: int = len(envelope.block([], [], None))

    def put_all(self, layer: Layer, rows: Sequence[Candidate]) -> None:
        """Take rows in, whatever the budget says."""
        taken = _records(layer, rows, self.agent)
        records = self.decisions if layer == Layer.DECISIONS else self.memory
        commas = len(taken) if records else max(len(taken) - 1, 0)
        self.length += sum(map(len, taken)) + commas
        records += taken
        self.included += [
            Included(row.kind, row.id, row.revision, layer, len(record))
            for row, record in zip(rows, taken, strict=True)
        ]

    def put_what_fits(self, rows: Sequence[Candidate]) -> None:
        """Take learnings in, each whole or not at all, in the order given."""
        start = 0
        while (places := self.policy.max_items - len(self.memory)) > 0 and start < len(rows):
            batch = rows[start : start + places]
            start += places
            for row, record in zip(batch, self._learnings(batch), strict=True):
                self._put_if_it_fits(row, record)
        self.leave_out(rows[start:], OmitReason.ITEM_LIMIT)

    def _learnings(self, rows: Sequence[Candidate]) -> list[str | None]:
        """Their records, all encoded at once; None for a row whose bare text is already too long for what is left."""
        fits = [self.length + len(row.content) <= self.policy.budget for row in rows]
        records = iter(_records(Layer.LEARNINGS, list(compress(rows, fits)), self.agent))
        return [next(records) if may else None for may in fits]

    def _put_if_it_fits(self, row: Candidate, record: str | None) -> None:
        if record is None or self.length + (cost := len(record) + bool(self.memory)) > self.policy.budget:
            return self.leave_out([row], OmitReason.TOKEN_BUDGET)
        self.memory.append(record)
        return self._note(Layer.LEARNINGS, row, record, cost)

    def put_session(self, row: Candidate) -> None:
        """Take the session in, whole or not at all."""
        record = _session_record(row)
        cost = len(record) - len("null")
        if self.length + cost > self.policy.budget:
            return self.leave_out([row], OmitReason.TOKEN_BUDGET)
        self.session = record
        return self._note(Layer.SESSION, row, record, cost)

    def leave_out(self, rows: Iterable[Candidate], reason: OmitReason) -> None:
        self.omitted += [Omitted(row.kind, row.id, reason) for row in rows]

    def _note(self, layer: Layer, row: Candidate, record: str, cost: int) -> None:
        self.length += cost
        self.included.append(Included(row.kind, row.id, row.revision, layer, len(record)))


def compile_context(project: Project, agent_name: str, limits: Limits = Limits()) -> CompiledContext:
    """The context of one agent: four layers in strict priority, within the policy (SPEC 4).

    An agent nobody has named yet gets what any agent would get; asking creates nothing. Raises OverBudget when layers 1 and 2
    exceed the budget and the policy says `fail`.
    """

    def read(current: Project, alias: str) -> CompiledContext | None:
        agent = candidates.agent_named(current, agent_name)
        policy = Policy.of(current, limits)
        rows = candidates.of_agent(current, agent.id, policy.trust, alias)
        return _assemble(current, agent, policy, rows)

    return _at_one_epoch(project, read)


def compile_for_agent(project: Project, agent: Agent, limits: Limits = Limits()) -> CompiledContext:
    """`compile_context` for an agent that is loaded already. Raises OverBudget."""

    def read(current: Project, alias: str) -> CompiledContext | None:
        policy = Policy.of(current, limits)
        rows = candidates.of_agent(current, agent.pk, policy.trust, alias)
        return _assemble(current, NamedAgent(agent.pk, agent.name), policy, rows)

    return _at_one_epoch(project, read)


def compile_decisions(project: Project, limits: Limits = Limits()) -> CompiledContext:
    """Layer 1 alone in the same envelope, with no memory and no session (SPEC 4, Decisions only). Raises OverBudget."""

    def read(current: Project, alias: str) -> CompiledContext | None:
        rows = candidates.of_decisions(current, alias)
        return _assemble(current, None, Policy.of(current, limits), rows)

    return _at_one_epoch(project, read)


Read = Callable[[Project, str], CompiledContext | None]
"""A compile of the project's row as it is given, with rows of the named database; None when they are of another epoch."""


def _at_one_epoch(project: Project, read: Read) -> CompiledContext:
    """Run `read` until the project's row and the rows it read are of one epoch; hold the project still if it will not settle.

    `project` was read from the primary. A replica is asked first; behind that epoch, or ahead of it, it is not believed.
    """
    result = replica.asked_first(partial(read, project))
    if result is not None:
        return result
    current = project
    for _ in range(_ATTEMPTS):
        result = read(current, replica.PRIMARY)
        if result is not None:
            return result
        current = _fresh(Project.objects.filter(pk=project.pk))
    with transaction.atomic():
        held = _fresh(Project.objects.select_for_update(no_key=True).filter(pk=project.pk))
        result = read(held, replica.PRIMARY)
        if result is None:
            raise RuntimeError("The epoch moved while the project was locked.")
        return result


def _fresh(projects: Any) -> Project:
    project: Project | None = projects.first()
    if project is None:
        raise NotFound
    return project


def _assemble(
    project: Project, agent: NamedAgent | None, policy: Policy, rows: Sequence[Candidate]
) -> CompiledContext | None:
    """The result, or None when the rows are of another epoch than the project's row."""
    if [row.id for row in rows if row.kind == "epoch"] != [project.epoch]:
        return None
    filling = _fill(_Filling(policy, agent), [row for row in rows if row.layer])
    left_out = [row for row in rows if row.reason]
    named = [row for kind in ("decision", "memory") for row in _newest_of(kind, left_out)]
    filling.omitted += [Omitted(row.kind, row.id, _REASONS[row.reason]) for row in named]
    text = envelope.block(filling.decisions, filling.memory, filling.session) if filling.included else None
    return CompiledContext(
        agent_name=agent and agent.name, epoch=project.epoch, policy=policy, text=text,
        included=tuple(filling.included), omitted=tuple(filling.omitted),
        omitted_truncated=len(named) < len(left_out),
        over_budget=text is not None and len(text) > policy.budget,
    )  # fmt: skip


_REASONS: dict[str | None, OmitReason] = {reason.value: reason for reason in OmitReason}


def _newest_of(kind: str, rows: Iterable[Candidate]) -> list[Candidate]:
    return _newest_first(row for row in rows if row.kind == kind)[:OMITTED_LIMIT]


def _fill(filling: _Filling, rows: Sequence[Candidate]) -> _Filling:
    """Layers 1 and 2 whole, layer 3 newest first into what is left, layer 4 last, whole or not at all."""
    layers: dict[int, list[Candidate]] = {layer: [] for layer in Layer}
    for row in rows:
        layers[row.layer].append(row)
    filling.put_all(Layer.DECISIONS, _oldest_first(layers[Layer.DECISIONS]))
    filling.put_all(Layer.CORE, _oldest_first(layers[Layer.CORE]))
    policy = filling.policy
    if filling.length > policy.budget and policy.on_overflow == Overflow.FAIL and filling.included:
        raise OverBudget(budget=policy.budget, required=filling.length)
    filling.put_what_fits(_newest_first(layers[Layer.LEARNINGS]))
    for row in layers[Layer.SESSION]:
        filling.put_session(row)
    return filling


_age = attrgetter("created_at", "id")


def _oldest_first(rows: Iterable[Candidate]) -> list[Candidate]:
    return sorted(rows, key=_age)


def _newest_first(rows: Iterable[Candidate]) -> list[Candidate]:
    return sorted(rows, key=_age, reverse=True)


def _records(layer: Layer, rows: Iterable[Candidate], agent: NamedAgent | None) -> list[str]:
    """The records of layer 1, 2 or 3, in the order of their rows."""
    if layer == Layer.DECISIONS or agent is None:
        return envelope.decision_records([_decision(row) for row in rows])
    shown = _core if layer == Layer.CORE else _learning
    return envelope.memory_records([shown(row, agent) for row in rows])


def _decision(row: Candidate) -> envelope.Decision:
    return row.title, row.type, row.agent_name, row.content, row.rationale


def _core(row: Candidate, agent: NamedAgent) -> envelope.Memory:
    return "core", row.type, agent.name, row.importance, row.content, row.trust_state


def _learning(row: Candidate, agent: NamedAgent) -> envelope.Memory:
    if row.agent_id == agent.id:
        return row.type, row.type, agent.name, row.importance, row.content, row.trust_state
    label = f"{row.type} from {row.agent_name}"
    return label, row.type, row.agent_name, row.importance, row.content, row.trust_state


def _session_record(row: Candidate) -> str:
    issues = json.loads(row.active_issues)
    return envelope.session_record(focus_area=row.title, active_issues=issues, summary=row.content)


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
