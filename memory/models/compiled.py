"""Index expressions that find the rows a compile may take, and hold nothing but them (SPEC 11).

A partial index would say the same, but PostgreSQL guesses how many rows meet its condition from each column alone: where many
rows meet each part and few meet all, it takes a wider index instead and reads every row of the project. It keeps statistics of an
indexed expression as it does of a column, so here it knows. The rules themselves are in `memory.compiling.layers`; a row they select is
always in the index (`tests/memory/compiling/test_compiled_indexes.py` goes through every kind of row).
"""

from django.db.models import BigIntegerField, Case, F, Q, UUIDField, When

from memory.enums import DecisionStatus, DecisionType, Importance, MemoryType, TrustState

_LEARNED_HIGH = Q(type__in=[MemoryType.LEARNING, MemoryType.PATTERN], importance=Importance.HIGH)


def decision_compiled_in() -> Case:
    """The project of a decision that layer 1 takes, else NULL."""
    taken = Q(
        status=DecisionStatus.ACTIVE,
        trust_state=TrustState.APPROVED,
        type__in=[DecisionType.ARCHITECTURAL, DecisionType.SCOPE],
    )
    return Case(When(taken, then=F("project_id")), output_field=UUIDField())


def memory_compiled_for() -> Case:
    """The agent of a memory that its own layer 2 or 3 may take, else NULL."""
    taken = Q(retired_at__isnull=True, trust_state__in=[TrustState.PENDING, TrustState.APPROVED]) & (
        Q(type=MemoryType.CORE_CONTEXT) | _LEARNED_HIGH
    )
    return Case(When(taken, then=F("agent_id")), output_field=BigIntegerField())


def memory_compiled_across() -> Case:
    """The project of a memory that layer 3 of every other agent may take, else NULL."""
    taken = Q(retired_at__isnull=True, trust_state=TrustState.APPROVED, cross_team=True) & _LEARNED_HIGH
    return Case(When(taken, then=F("project_id")), output_field=UUIDField())
