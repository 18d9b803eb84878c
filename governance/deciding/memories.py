"""Deciding about memories (SPEC 6): approve, retire, refuse."""

from __future__ import annotations

from datetime import datetime
from uuid import UUID

from governance.deciding.gate import (
    NO_CORRECTIONS,
    Corrections,
    approve,
    corrected_values,
    deciding,
    require_read,
)
from memory.actors import Actor
from memory.enums import (
    MemoryType,
    TrustState,
)
from memory.errors import Conflict
from memory.models import AgentMemory
from memory.recording import (
    locked_memory,
)
from memory.values import Cleaner, clean_reason


def approve_memory(
    *,
    project_id: UUID,
    actor: Actor,
    memory_id: int,
    agent_name: str | None = None,
    revision: int,
    corrections: Corrections = NO_CORRECTIONS,
    now: datetime,
) -> AgentMemory:
    """Approve a memory, imported ones too, at the revision that was read.

    Approving twice answers with the row. An approval by the scribe counts for the row's own agent only, so a person can still
    approve over it. Raises NotFound, Refused, Invalid, Stale, Conflict when the memory is retired.
    """
    with Cleaner() as clean:
        corrected = corrected_values(clean, corrections, MemoryType)
    with deciding(project_id, actor, now) as opened:
        memory = locked_memory(opened, memory_id, agent_name)
        if memory.is_retired:
            raise Conflict("A retired memory cannot be approved.", memory)
        approved: AgentMemory = approve(opened, memory, "memory.approve", revision, corrected)
        return approved


def retire_memory(
    *,
    project_id: UUID,
    actor: Actor,
    memory_id: int,
    agent_name: str | None = None,
    reason: str,
    revision: int | None = None,
    now: datetime,
) -> AgentMemory:
    """Take a memory out of every later compile; the row and its history stay. Also how a legacy memory is refused.

    With a `revision` it must be the one that was read. Raises NotFound, Refused, Invalid, Stale, Conflict when it is retired already.
    """
    with Cleaner() as clean:
        why = clean("reason", clean_reason, reason)
    with deciding(project_id, actor, now) as opened:
        memory = locked_memory(opened, memory_id, agent_name)
        if memory.is_retired:
            if (memory.retired_by, memory.retire_reason) == (actor.identity, why):
                return memory
            raise Conflict(f"This memory was already retired by {memory.retired_by}.", memory)
        require_read(memory, revision)
        retired = {"retired_at": now, "retired_by": opened.identity, "retire_reason": why, "updated_at": now}
        action = "memory.refuse" if memory.trust_state == TrustState.LEGACY else "memory.retire"
        return opened.update(memory, action, retired, reason=why)
