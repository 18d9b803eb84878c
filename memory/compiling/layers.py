"""Which rows a compiled context may hold: each rule once (SPEC 4, the four layers).

A rule is a condition that must hold and the reason given when it does not. Selection is all conditions of a layer joined;
explanation is the first rule that fails, in the order written here. Both are built from the same tuples, so they cannot
disagree, and both run in the database, so neither loads what it leaves out.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from django.db.models import Case, CharField, Q, Value, When

from memory.actors import SCRIBE_PREFIX
from memory.enums import (
    DecisionStatus,
    DecisionType,
    Importance,
    MemoryType,
    OmitReason,
    SourceKind,
    TrustPolicy,
    TrustState,
)


class Rule(NamedTuple):
    """`holds` must be true of a compiled row; `reason` is the answer when it is not."""

    holds: Q
    reason: OmitReason


Rules = Sequence[Rule]

_COMPILED_DECISIONS = [DecisionType.ARCHITECTURAL, DecisionType.SCOPE]
_COMPILED_LEARNINGS = [MemoryType.LEARNING, MemoryType.PATTERN]
_ANYTHING = Q(pk__isnull=False)

# Said as lists of what is allowed, not as what is not: so PostgreSQL can prove that the partial indexes hold every row.
_NOT_LEGACY = Rule(Q(trust_state__in=[TrustState.PENDING, TrustState.APPROVED]), OmitReason.LEGACY)
_APPROVED = Rule(Q(trust_state=TrustState.APPROVED), OmitReason.NOT_APPROVED)
_HIGH = Rule(Q(importance=Importance.HIGH), OmitReason.LOW_IMPORTANCE)

DECISIONS: Rules = (
    Rule(Q(status=DecisionStatus.ACTIVE), OmitReason.NOT_ACTIVE),
    _NOT_LEGACY,
    Rule(Q(type__in=_COMPILED_DECISIONS), OmitReason.TYPE_NOT_COMPILED),
    _APPROVED,
)
"""Layer 1."""

SESSION: Rules = (
    Rule(Q(ended_at__isnull=True), OmitReason.NOT_ACTIVE),
    Rule(~Q(source_kind=SourceKind.LEGACY), OmitReason.LEGACY),
)
"""Layer 4."""

_ANY_MEMORY: Rules = (Rule(Q(retired_at__isnull=True), OmitReason.RETIRED), _NOT_LEGACY)
_ANY_LEARNING: Rules = (*_ANY_MEMORY, Rule(Q(type__in=_COMPILED_LEARNINGS), OmitReason.TYPE_NOT_COMPILED))


@dataclass(frozen=True)
class Scope:
    """Which memories are meant (`within`), and the rules that hold for them."""

    within: Q
    rules: Rules

    @property
    def selected(self) -> Q:
        return self.within & all_hold(self.rules)


def memory_scopes(agent_id: int | None, trust: TrustPolicy) -> tuple[Scope, Scope, Scope]:
    """Layer 2, own layer 3 and cross-team layer 3 for one agent; together they partition all memories of a project.

    `agent_id` is None for an agent nobody has named yet: every memory is then another agent's.
    """
    return memory_scopes_where(Q(agent_id=agent_id) if agent_id is not None else ~_ANYTHING, trust)


def memory_scopes_where(own: Q, trust: TrustPolicy) -> tuple[Scope, Scope, Scope]:
    """`memory_scopes` for whoever has another way to say which memories are the agent's own."""
    core = Q(type=MemoryType.CORE_CONTEXT)
    trusted = (_APPROVED,) if trust == TrustPolicy.STRICT else ()
    return (
        Scope(core, (*_ANY_MEMORY, Rule(own, OmitReason.OTHER_AGENT), *trusted)),
        Scope(own & ~core, (*_ANY_LEARNING, _HIGH, *trusted)),
        Scope(~own & ~core, (*_ANY_LEARNING, *CROSS_TEAM_RULES, _HIGH)),
    )


CROSS_TEAM_RULES: Rules = (
    Rule(Q(cross_team=True), OmitReason.OTHER_AGENT),
    _APPROVED,
    # The scribe approves for the row's own agent; crossing needs a person or a coordinator (SPEC 6, Scribe).
    Rule(~Q(approved_by__startswith=SCRIBE_PREFIX), OmitReason.NOT_APPROVED),
)


def all_hold(rules: Rules) -> Q:
    """The condition of a selected row."""
    joined = Q()
    for rule in rules:
        joined &= rule.holds
    return joined


def reason_why_not(rules: Rules, within: Q = _ANYTHING) -> list[When]:
    """The first failing rule's reason, as branches of a CASE."""
    return [When(within & ~rule.holds, then=Value(rule.reason.value)) for rule in rules]


def decision_reason() -> Case:
    """The reason a decision is out, or an empty string."""
    return Case(*reason_why_not(DECISIONS), default=Value(""), output_field=CharField())


def session_reason() -> Case:
    """The reason a session is out, or an empty string."""
    return Case(*reason_why_not(SESSION), default=Value(""), output_field=CharField())


def memory_reason(scopes: Sequence[Scope]) -> Case:
    """The reason a memory is out for this agent, or an empty string."""
    branches = [when for scope in scopes for when in reason_why_not(scope.rules, scope.within)]
    return Case(*branches, default=Value(""), output_field=CharField())
