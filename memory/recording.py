"""The verbs of agents: record_memory, submit_entry, edit_memory and the sessions (SPEC 6).

They write pending rows under the provenance of whoever really asks. Who may call them is decided above, in `governance`; that a
run writes as its own agent only is decided here, since no caller may ever skip it.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Container, Iterable
from datetime import datetime
from itertools import chain, count
from typing import Any
from uuid import UUID

from django.db.models import Q

from memory.actors import Actor, VerifiedRun
from memory.agents import agent_named
from memory.enums import EntryStatus, EntryType, Importance, MemoryType, TrustState
from memory.errors import Conflict, Invalid, Refused, Stale
from memory.ledger.changes import Change, change, locked
from memory.models import Agent, AgentMemory, DecisionInboxEntry, SessionContext
from memory.models.provenance import source_columns
from memory.values import (
    MAX_SLUG,
    Cleaner,
    agent_key,
    checked_text,
    clean_name,
    clean_slug,
    clean_tags,
    clean_title,
    one_of,
)

Tags = str | Iterable[str]

_ROOM_FOR_NUMBER = 6


def require_own_agent(actor: Actor, agent_name: str) -> None:
    """A run writes as its own agent, under any spelling of that name. Raises Refused `agent_mismatch` (SPEC 5)."""
    if isinstance(actor, VerifiedRun) and agent_key(agent_name) != agent_key(actor.agent_name):
        raise Refused("agent_mismatch", "A run may only write as its own agent.")


def record_memory(
    *,
    project_id: UUID,
    actor: Actor,
    agent_name: str,
    type: str,
    content: str,
    importance: str = Importance.MEDIUM,
    tags: Tags = (),
    session_id: str | None = None,
    now: datetime,
) -> AgentMemory:
    """Remember something: a new pending memory of the named agent.

    Raises Invalid, Refused `agent_mismatch`, NotFound.
    """
    with Cleaner() as clean:
        name = clean("agent_name", clean_name, agent_name)
        memory = AgentMemory(
            type=clean("type", one_of(MemoryType), type),
            importance=clean("importance", one_of(Importance), importance),
            content=clean("content", _required_text, content),
            tags=clean("tags", clean_tags, tags),
            trust_state=TrustState.PENDING, created_at=now, updated_at=now, **source_columns(actor.provenance),
        )  # fmt: skip
    require_own_agent(actor, name)
    with change(project_id, actor, now) as opened:
        memory.project = opened.project
        memory.session = _session_named(opened, session_id)
        memory.agent = agent_named(opened, name)
        return opened.insert(memory, "memory.record")


def _required_text(value: str) -> str:
    return checked_text(value, required=True)


def _session_named(opened: Change, session_id: str | None) -> SessionContext | None:
    if session_id is None:
        return None
    session = SessionContext.objects.filter(project=opened.project, session_id=session_id.strip()).first()
    if session is None:
        raise Invalid({"session_id": ["There is no such session."]})
    return session


def edit_memory(
    *,
    project_id: UUID,
    actor: Actor,
    memory_id: int,
    agent_name: str | None = None,
    revision: int,
    type: str | None = None,
    importance: str | None = None,
    content: str | None = None,
    tags: Tags | None = None,
    now: datetime,
) -> AgentMemory:
    """Change a memory's text, type, importance or tags; it goes back to `pending` (SPEC 6, edit).

    A legacy memory stays legacy: only an approval may let an imported text out. None leaves a field as it is; a change to what
    is already there changes nothing. Raises Invalid, NotFound, Refused `agent_mismatch`, Stale, Conflict when it is retired.
    """
    with Cleaner() as clean:
        values: dict[str, Any] = {}
        if type is not None:
            values["type"] = clean("type", one_of(MemoryType), type)
        if importance is not None:
            values["importance"] = clean("importance", one_of(Importance), importance)
        if content is not None:
            values["content"] = clean("content", _required_text, content)
        if tags is not None:
            values["tags"] = clean("tags", clean_tags, tags)
    with change(project_id, actor, now) as opened:
        memory = locked_memory(opened, memory_id, agent_name)
        require_own_agent(actor, memory.agent.name)
        require_revision(memory, revision)
        if memory.is_retired:
            raise Conflict("A retired memory cannot be edited.", memory)
        values = changed_values(memory, values)
        if values and memory.trust_state != TrustState.LEGACY:
            values |= {"trust_state": TrustState.PENDING, "approved_by": "", "approved_at": None}
        edited: AgentMemory = revise(opened, memory, "memory.edit", values)
        return edited


def locked_memory(opened: Change, memory_id: int, agent_name: str | None = None) -> AgentMemory:
    """A memory of this project, and of this agent when one is named; raises NotFound."""
    rows = AgentMemory.objects.select_related("agent").filter(project=opened.project)
    if agent_name is not None:
        rows = rows.filter(agent__key=agent_key(agent_name))
    memory: AgentMemory = locked(rows, pk=memory_id)
    return memory


def require_revision(row: Any, revision: int) -> None:
    """The caller must have read the row as it is now. Raises Stale with the current row."""
    if row.revision != revision:
        raise Stale(row)


def changed_values(row: Any, values: dict[str, Any]) -> dict[str, Any]:
    """Those of `values` that differ from what the row has."""
    return {name: value for name, value in values.items() if getattr(row, name) != value}


def revise(
    opened: Change, row: Any, action: str, values: dict[str, Any], *, reason: str = "", compiled: bool = True
) -> Any:
    """Write changed values as the row's next revision; no values, no event."""
    if not values:
        return row
    values = {**values, "revision": row.revision + 1, "updated_at": opened.now}
    return opened.update(row, action, values, reason=reason, compiled=compiled)


# Inbox


def submit_entry(
    *,
    project_id: UUID,
    actor: Actor,
    agent_name: str,
    slug: str,
    type: str,
    content: str,
    title: str = "",
    rationale: str = "",
    importance: str = Importance.HIGH,
    tags: Tags = (),
    now: datetime,
) -> tuple[DecisionInboxEntry, bool]:
    """Propose something to the inbox; the entry and whether it is new (SPEC 6, submit).

    The same agent and source update their pending entry in place; anyone else gets an entry of their own under the next free
    slug. Raises Invalid, Refused `agent_mismatch`, Conflict when this agent's entry of that slug was already decided.
    """
    with Cleaner() as clean:
        name = clean("agent_name", clean_name, agent_name)
        wanted = clean("slug", clean_slug, slug)
        values = {
            "type": clean("type", one_of(EntryType), type),
            "title": clean("title", _optional_title, title) or wanted,
            "content": clean("content", _required_text, content),
            "rationale": clean("rationale", checked_text, rationale),
            "importance": clean("importance", one_of(Importance), importance),
            "tags": clean("tags", clean_tags, tags),
        }
    require_own_agent(actor, name)
    with change(project_id, actor, now) as opened:
        agent = agent_named(opened, name)
        mine = _own_entry(opened, agent, actor, wanted)
        if mine is None:
            slug_given = free_slug(opened, wanted, agent.name)
            return insert_entry(opened, agent, slug_given, values, source_columns(actor.provenance)), True
        if mine.status != EntryStatus.PENDING:
            raise Conflict(f"This entry was already {mine.status}.", mine)
        return revise(opened, mine, "entry.update", changed_values(mine, values), compiled=False), False


def _optional_title(value: str) -> str:
    return clean_title(value, required=False)


def insert_entry(
    opened: Change, agent: Agent, slug: str, values: dict[str, Any], source: dict[str, Any]
) -> DecisionInboxEntry:
    """Write a new pending entry under a slug that is known to be free."""
    entry = DecisionInboxEntry(
        project=opened.project,
        agent=agent,
        slug=slug,
        created_at=opened.now,
        updated_at=opened.now,
        **values,
        **source,
    )
    return opened.insert(entry, "entry.submit", compiled=False)


def _own_entry(opened: Change, agent: Agent, actor: Actor, slug: str) -> DecisionInboxEntry | None:
    """What this agent from this source has under the slug or one derived from it; else this agent's decided entry of the slug."""
    entries = DecisionInboxEntry.objects.select_related("agent").filter(project=opened.project, agent=agent)
    derived = _derived_base(slug, agent.name)
    mine = entries.filter(source_kind=actor.provenance.kind, source_identity=actor.identity).filter(
        Q(slug=slug) | Q(slug__startswith=derived)
    )
    # The slug itself before any made from it: a slug of one's own may read like one.
    for entry in sorted(mine, key=lambda entry: (entry.slug == slug, entry.pk), reverse=True):
        if entry.slug == slug or _is_derived(entry.slug, derived, slug):
            return entry
    return entries.filter(slug=slug).exclude(status=EntryStatus.PENDING).first()


def _derived_base(slug: str, agent_name: str) -> str:
    """`{slug}--{agent}`, cut so that a number still fits behind it."""
    suffix = f"--{kebab(agent_name)}"
    return slug[: MAX_SLUG - len(suffix) - _ROOM_FOR_NUMBER].rstrip("-") + suffix


def _is_derived(candidate: str, derived: str, slug: str) -> bool:
    """Whether `candidate` was made from `slug`. A slug that had to be cut is never recognised: another may begin alike."""
    whole = derived.startswith(f"{slug}--")
    return whole and re.fullmatch(re.escape(derived) + r"(--[0-9]+)?", candidate) is not None


def free_slug(opened: Change, slug: str, agent_name: str) -> str:
    """The slug itself, or the first free of `{slug}--{agent}`, `{slug}--{agent}--2`, … (SPEC 6, submit)."""
    slugs = DecisionInboxEntry.objects.filter(project=opened.project)
    near = slugs.filter(Q(slug=slug) | Q(slug__startswith=_derived_base(slug, agent_name)))
    return first_free(slug, agent_name, set(near.values_list("slug", flat=True)))


def first_free(slug: str, agent_name: str, taken: Container[str]) -> str:
    """`free_slug` among slugs that are already known."""
    derived = _derived_base(slug, agent_name)
    numbered = (f"{derived}--{number}" for number in count(2))
    return next(name for name in chain([slug, derived], numbered) if name not in taken)


def kebab(text: str, fallback: str = "agent") -> str:
    """`text` as a slug: ASCII letters and digits, everything else a hyphen; `fallback` when nothing is left."""
    ascii_text = unicodedata.normalize("NFKD", text).encode("ascii", "ignore").decode().lower()
    return re.sub(r"[^a-z0-9]+", "-", ascii_text).strip("-")[:60].strip("-") or fallback
