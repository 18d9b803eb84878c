"""Decisions: the ledger by status, one decision with its chain, and who could take its place (SPEC 9)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from django.db.models import Q

from governance.pages.queues.keyset import Slice, slice_of
from memory.enums import DecisionStatus, DecisionType, TrustState
from memory.errors import NotFound
from memory.models import Decision, Project
from memory.models.decision import DecisionQuerySet

SUCCESSORS = 20


@dataclass(frozen=True, slots=True)
class DecisionFilters:
    """What the reader narrows the list to; None leaves a filter out."""

    status: DecisionStatus | None = DecisionStatus.ACTIVE
    type: DecisionType | None = None
    agent: int | None = None
    trust: TrustState | None = None
    text: str = ""


def decisions_of(project: Project) -> DecisionQuerySet:
    """Decisions with everything a row shows."""
    return Decision.objects.filter(project=project).select_related("agent", "superseded_by", "source_run")


def decisions(project: Project, filters: DecisionFilters, *, after: str) -> Slice[Decision]:
    """A page of the ledger, newest first. Two queries."""
    wanted = Q()
    if filters.status is not None:
        wanted &= Q(status=filters.status)
    if filters.type is not None:
        wanted &= Q(type=filters.type)
    if filters.agent is not None:
        wanted &= Q(agent_id=filters.agent)
    if filters.trust is not None:
        wanted &= Q(trust_state=filters.trust)
    if filters.text:
        wanted &= matching(filters.text)
    return slice_of(decisions_of(project).filter(wanted), after=after, newest_first=True)


def matching(text: str) -> Q:
    return Q(title__icontains=text) | Q(content__icontains=text) | Q(rationale__icontains=text)


def decision_of(project: Project, decision_id: int) -> Decision:
    """One decision of the project; raises NotFound. One query."""
    decision = decisions_of(project).filter(pk=decision_id).first()
    if decision is None:
        raise NotFound
    return decision


def successors(project: Project, decision: Decision, text: str) -> list[Decision]:
    """Active decisions that could take over, newest first; all of them when `text` is empty. One query."""
    active = decisions_of(project).active().exclude(pk=decision.pk)
    found = active.filter(matching(text)) if text else active
    return list(found.order_by("-created_at", "-pk")[:SUCCESSORS])


@dataclass(frozen=True, slots=True)
class Chain:
    """What a decision took the place of, oldest first, and what took its place, in order."""

    before: Sequence[Decision]
    after: Sequence[Decision]


def chain_of(project: Project, decision: Decision) -> Chain:
    """The decisions that lead to this one and on from it. Two queries, however long the chain."""
    superseded = Decision.objects.filter(project=project, status=DecisionStatus.SUPERSEDED)
    leads_to: dict[int, int | None] = dict(superseded.order_by("pk").values_list("pk", "superseded_by_id"))
    later = _onwards(leads_to, decision.pk)
    earlier = _backwards(leads_to, decision.pk)
    rows = decisions_of(project).in_bulk([*later, *earlier]) if later or earlier else {}
    return Chain([rows[pk] for pk in reversed(earlier)], [rows[pk] for pk in later])


def _onwards(leads_to: Mapping[int, int | None], pk: int) -> list[int]:
    chain: list[int] = []
    following = leads_to.get(pk)
    while following is not None and following not in chain:
        chain.append(following)
        following = leads_to.get(following)
    return chain


def _backwards(leads_to: Mapping[int, int | None], pk: int) -> list[int]:
    """Everything that was superseded by this row or by something it superseded, nearest first."""
    found: list[int] = []
    waiting = [pk]
    while waiting:
        target = waiting.pop(0)
        nearer = [old for old, new in leads_to.items() if new == target and old not in found]
        found += nearer
        waiting += nearer
    return found
