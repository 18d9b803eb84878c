"""The standard loads of SPEC 11: GM-1, GM-10 and GM-1000 hold the same eligible rows among ever more that are not.

Rows are copied in past the write path: a benchmark needs full tables, not a history. Times of eligible and other rows are mixed,
so that no index finds the eligible ones at one end.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from itertools import cycle, islice
from typing import Any

from django.db import connection, models
from django.db.models import Max
from psycopg import sql

from governance.deciding.projects import create_project
from governance.models import User
from memory.actors import Human
from memory.models import (
    Agent,
    AgentMemory,
    Decision,
    DecisionInboxEntry,
    LedgerEvent,
    Project,
    SessionContext,
)
from tests.benchmarks.texts import texts

NOW = datetime(2026, 12, 1, 9, 0, tzinfo=UTC)
OWNER = Human("bench-owner")
TEXTS = texts(1000)

Row = dict[str, Any]
Way = Mapping[str, Any]

DECISIONS, CORE, OWN, CROSS = 150, 30, 100, 100
"""The eligible rows of every load; the open session makes one more."""
ELIGIBLE = DECISIONS + CORE + OWN + CROSS + 1


@dataclass(frozen=True)
class Size:
    """A standard load: `times` the rows of GM-1."""

    name: str
    times: int


GM_1, GM_10, GM_1000 = Size("GM-1", 1), Size("GM-10", 10), Size("GM-1000", 1000)

_APPROVED: Way = {"trust_state": "approved", "approved_by": OWNER.identity, "approved_at": NOW}
_PENDING: Way = {"trust_state": "pending"}
_LEGACY: Way = {"trust_state": "legacy", "source_kind": "legacy", "source_identity": "import:decisions.md#L1"}
_RETIRED: Way = {"retired_at": NOW, "retired_by": OWNER.identity, "retire_reason": "no longer true"}
_TAGGED: Way = {"tags": ",cross-team,"}


def load(size: Size) -> Project:
    """A project of this size; its agent `a0` is the one whose context is compiled."""
    project = new_project(size.name.lower())
    agents = new_agents(project, 6 * min(size.times, 100))
    with _copying():
        _copy(Decision, _decisions(project, agents, 200 * size.times))
        _copy(AgentMemory, _memories(project, agents, size.times))
        _copy(SessionContext, _sessions(project, size.times))
    return project


def new_project(slug: str) -> Project:
    User.objects.get_or_create(username=OWNER.username)
    return create_project(actor=OWNER, slug=slug, name=slug, now=NOW)


def new_agents(project: Project, count: int) -> list[Agent]:
    return Agent.objects.bulk_create(
        Agent(project=project, name=f"a{number}", key=f"a{number}", created_at=NOW) for number in range(count)
    )


def analyse() -> None:
    """What autovacuum does in a running system."""
    with connection.cursor() as cursor:
        cursor.execute("VACUUM (ANALYZE)")


# What is eligible, and the ways in which the others are not

_LEFT_OUT_DECISIONS: tuple[Way, ...] = (
    {**_APPROVED, "type": "process"},
    {**_APPROVED, "type": "technical"},
    {**_APPROVED, "status": "superseded"},
    {**_APPROVED, "status": "archived"},
    _PENDING,
    _LEGACY,
)
_CORE: Way = {**_PENDING, "type": "core_context"}
_OWN: Way = {**_PENDING, "importance": "high"}
_CROSS: Way = {**_APPROVED, **_TAGGED, "importance": "high"}


def _decisions(project: Project, agents: list[Agent], count: int) -> Iterator[Row]:
    first = _next_id(Decision)
    left_out = islice(cycle(_LEFT_OUT_DECISIONS), count - DECISIONS)
    for number, way in enumerate([*[_APPROVED] * DECISIONS, *left_out]):
        superseded = way.get("status") == "superseded"
        yield {
            **_shared(project, agents[number % len(agents)], number, DECISIONS),
            "id": first + number, "type": ("architectural", "scope")[number % 2], "status": "active",
            "title": f"Decision {number}: {TEXTS[number % 97][:40]}",
            "rationale": TEXTS[number * 3 % 1000][:160],
            "superseded_by_id": first if superseded else None, **way,
        }  # fmt: skip


def _memories(project: Project, agents: list[Agent], times: int) -> Iterator[Row]:
    own, others = agents[:1], agents[1:]
    yield from _some_memories(project, own, CORE, _CORE)
    yield from _some_memories(project, own, OWN, _OWN)
    yield from _some_memories(project, own, 100, {**_PENDING, "importance": "medium"})
    yield from _some_memories(project, own, 100, {**_PENDING, "importance": "low"})
    yield from _some_memories(project, others, CROSS, _CROSS)
    more = times - 1
    for agent, count, way in (
        (others, 20 * more, _CORE),
        (own, 5 * more, {**_CORE, **_LEGACY}),
        (own, 5 * more, {**_CORE, **_RETIRED}),
        (own, 60 * more, {**_PENDING, "importance": "low"}),
        (own, 40 * more, {**_OWN, **_RETIRED}),
        (own, 40 * more, {**_PENDING, "type": "update", "importance": "high"}),
        (others, 160 * more, {**_APPROVED, "importance": "high"}),
        (others, 40 * more, {**_PENDING, **_TAGGED, "importance": "high"}),
        (others, 30 * more, {**_APPROVED, **_TAGGED, "importance": "low"}),
        (others, 30 * more, {**_CROSS, **_RETIRED}),
    ):
        yield from _some_memories(project, agent, count, way)


def _some_memories(project: Project, agents: list[Agent], count: int, way: Way) -> Iterator[Row]:
    for number in range(count):
        yield {
            **_shared(project, agents[number % len(agents)], number, count),
            "type": ("learning", "pattern")[number % 2], "importance": "medium", "session_id": None,
            "retired_at": None, "retired_by": "", "retire_reason": "", **way,
        }  # fmt: skip


def _sessions(project: Project, count: int) -> Iterator[Row]:
    for number in range(count):
        yield {
            "project_id": project.pk, "source_kind": "human", "source_identity": OWNER.identity, "source_run_id": None,
            "session_id": f"session-{number}", "focus_area": "Speed of the compiler",
            "active_issues": '["#12 slow lists", "#15 the replica lags"]', "summary": TEXTS[number % 1000],
            "serialized_state": "", "started_at": NOW - timedelta(hours=number),
            "ended_at": NOW if number else None, "revision": 1,
        }  # fmt: skip


def pending_entries(project: Project, agents: list[Agent], count: int) -> None:
    """An inbox with `count` pending entries."""
    with _copying():
        _copy(DecisionInboxEntry, _entries(project, agents, count))


def plain_memories(project: Project, agents: list[Agent], count: int) -> None:
    """`count` pending and approved memories of all agents."""
    with _copying():
        _copy(AgentMemory, _some_memories(project, agents, count // 2, _PENDING))
        _copy(AgentMemory, _some_memories(project, agents, count - count // 2, _APPROVED))


def legacy_memories(project: Project, agents: list[Agent], count: int) -> None:
    """`count` imported memories that nobody has decided on."""
    with _copying():
        _copy(AgentMemory, _some_memories(project, agents, count, _LEGACY))


def events(project: Project, count: int) -> None:
    """A ledger of `count` events that reads as one; no chain holds it together, so it cannot be verified."""
    with _copying():
        _copy(LedgerEvent, _events(project, count))
    last = LedgerEvent.objects.filter(project=project).latest("number")
    Project.objects.filter(pk=project.pk).update(ledger_number=last.number, ledger_hash=last.hash)


def _events(project: Project, count: int) -> Iterator[Row]:
    first = Project.objects.get(pk=project.pk).ledger_number + 1
    for number in range(first, first + count):
        yield {
            "hash": _hash(project, number), "prev_hash": _hash(project, number - 1), "project_id": project.pk,
            "number": number, "at": NOW, "action": ("memory.record", "memory.approve", "entry.submit")[number % 3],
            "actor": OWNER.identity, "target": f"memory:{number}", "before": "{}",
            "after": '{"content":"Keep the outbox behind the gateway.","importance":"high"}', "state": "0" * 64,
            "reason": "",
        }  # fmt: skip


def _hash(project: Project, number: int) -> str:
    return sha256(f"{project.pk} {number}".encode()).hexdigest()


def _entries(project: Project, agents: list[Agent], count: int) -> Iterator[Row]:
    kinds = ("architectural", "scope", "process", "technical", "learning", "pattern", "update")
    for number in range(count):
        row = _shared(project, agents[number % len(agents)], number, count)
        del row["trust_state"], row["approved_by"], row["approved_at"]
        yield {
            **row, "slug": f"entry-{number}", "type": kinds[number % len(kinds)], "importance": "high",
            "title": f"Entry {number}: {TEXTS[number % 97][:40]}", "rationale": TEXTS[number * 3 % 1000][:160],
            "status": "pending", "reviewed_by": "", "reviewed_at": None, "reason": "", "decision_id": None,
            "memory_id": None,
        }  # fmt: skip


def _shared(project: Project, agent: Agent, number: int, count: int) -> Row:
    """The columns all three tables have; the times of `count` rows are spread evenly over the same 300 days."""
    at = NOW - timedelta(days=300) * ((number + 0.5) / count)
    return {
        "project_id": project.pk, "agent_id": agent.pk, "content": TEXTS[number % 1000], "tags": "", "revision": 1,
        "source_kind": "human", "source_identity": OWNER.identity, "source_run_id": None,
        "approved_by": "", "approved_at": None, "trust_state": "pending", "created_at": at, "updated_at": at,
    }  # fmt: skip


# Copying


@contextmanager
def _copying() -> Iterator[None]:
    """Triggers and foreign keys are not asked: a million rows in seconds."""
    with connection.cursor() as cursor:
        cursor.execute("SET session_replication_role = replica")
        yield
        cursor.execute("SET session_replication_role = origin")


def _copy(model: type[models.Model], rows: Iterable[Row]) -> None:
    table = model._meta.db_table
    source = iter(rows)
    first = next(source, None)
    if first is None:
        return
    statement = sql.SQL("COPY {} ({}) FROM STDIN").format(
        sql.Identifier(table), sql.SQL(",").join(map(sql.Identifier, first))
    )
    with connection.cursor() as cursor:
        with cursor.copy(statement) as copy:
            copy.write_row(tuple(first.values()))
            for row in source:
                copy.write_row(tuple(row.values()))
        if "id" in {field.name for field in model._meta.concrete_fields}:
            cursor.execute(
                f"SELECT setval(pg_get_serial_sequence('{table}', 'id'), (SELECT max(id) FROM {table}))"
            )


def _next_id(model: type[models.Model]) -> int:
    highest: int | None = model._default_manager.aggregate(highest=Max("pk"))["highest"]
    return (highest or 0) + 1
