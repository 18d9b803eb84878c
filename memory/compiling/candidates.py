"""Reads the candidate rows of a compile: everything in one SQL statement, so that all of it is of one moment (SPEC 4, 11).

The statement is a UNION ALL of the project's epoch, the rows each layer selects (with their text) and the newest rows that
the rules leave out (without it). Its parts are built from `memory.compiling.layers`; nothing here knows a rule.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache, partial
from typing import Any, NamedTuple
from uuid import UUID

from django.db.models import BigIntegerField, Case, CharField, F, Field, Q, QuerySet, TextField, Value
from django.db.models.functions import Cast

from memory.compiling.layers import (
    DECISIONS,
    SESSION,
    all_hold,
    decision_reason,
    memory_reason,
    memory_scopes,
    memory_scopes_where,
)
from memory.enums import Layer, TrustPolicy
from memory.models import Agent, AgentMemory, Decision, Project, SessionContext
from memory.models.compiled import decision_compiled_in, memory_compiled_across, memory_compiled_for
from memory.replica import PRIMARY
from memory.statements import Statement, prepared_key, run, union_all
from memory.values import agent_key

OMITTED_LIMIT = 200
"""How many left-out decisions, and how many left-out memories, a compile names: newest first. `explain` names all of them."""


class Candidate(NamedTuple):
    """One row of the statement. `reason` is None for a row the rules select; the text is None for one they leave out.

    `created_at` is a time as the database writes it: good for ordering, nothing else. What a table does not have is None, and so is
    `agent_name` on the asking agent's own memories.
    """

    kind: str
    id: int
    revision: int
    layer: int
    reason: str | None
    created_at: str
    agent_id: int | None
    agent_name: str
    type: str
    importance: str
    trust_state: str
    title: str
    content: str
    rationale: str
    active_issues: str


_candidate = partial(tuple.__new__, Candidate)
"""`Candidate._make` without its check of the length, which the statement's columns settle: a third of the time of reading."""

_COLUMNS: dict[str, Field[Any, Any]] = {
    "kind": CharField(),
    "row_id": BigIntegerField(),
    "row_revision": BigIntegerField(),
    "row_layer": BigIntegerField(),
    "reason": CharField(),
    "created": TextField(),
    "by": BigIntegerField(),
    "by_name": CharField(),
    "row_type": CharField(),
    "row_importance": CharField(),
    "row_trust": CharField(),
    "row_title": CharField(),
    "row_content": TextField(),
    "row_rationale": TextField(),
    "issues": TextField(),
}


def _columns(rows: QuerySet[Any], **given: Any) -> QuerySet[Any, Any]:
    """The shared columns of the union; what a table does not have is a typed NULL, which costs next to nothing to read."""
    values = {name: given.get(name, Cast(Value(None), field)) for name, field in _COLUMNS.items()}
    columns: QuerySet[Any, Any] = rows.annotate(**values).values_list(*_COLUMNS)
    return columns


def _time(column: str) -> Cast:
    """A time as text: it orders as the time does on both engines, and reading it builds no object."""
    return Cast(column, TextField())


def _constant(value: str | int) -> Value:
    return Value(value, output_field=BigIntegerField() if isinstance(value, int) else CharField())


_AUTHOR = {"by": F("agent_id"), "by_name": F("agent__name")}
# Whoever asks knows its own name: not looking it up for each row saves two joins.
_ONESELF = {"by": F("agent_id")}
_ROW = {
    "row_id": F("pk"),
    "row_revision": F("revision"),
    "row_type": F("type"),
    "row_trust": F("trust_state"),
}


def _epoch(project: Project) -> QuerySet[Any, Any]:
    return _columns(Project.objects.filter(pk=project.pk), kind=_constant("epoch"), row_id=F("epoch"))


def _decisions(project: Project) -> QuerySet[Any, Any]:
    rows = _found(Decision.objects.all(), decision_compiled_in(), project.pk).filter(all_hold(DECISIONS))
    return _columns(
        rows, kind=_constant("decision"), row_layer=_constant(int(Layer.DECISIONS)), created=_time("created_at"),
        row_title=F("title"), row_content=F("content"), row_rationale=F("rationale"), **_AUTHOR, **_ROW,
    )  # fmt: skip


def _found(rows: QuerySet[Any], index: Case, key: Any) -> QuerySet[Any]:
    """The rows an index of the compiler has under a project or an agent; it says nothing else than the rules that follow say.

    Neither is named a second time as a column: PostgreSQL would join a wider index to this one.
    """
    found: QuerySet[Any] = rows.alias(found_under=index).filter(found_under=key)
    return found


def _memories(project: Project, agent_id: int, trust: TrustPolicy) -> Iterator[QuerySet[Any, Any]]:
    memories = AgentMemory.objects.all()
    core, own, _ = memory_scopes_where(Q(found_under=agent_id), trust)
    *_, others = memory_scopes(agent_id, trust)
    of_agent = _found(memories, memory_compiled_for(), agent_id)
    across = _found(memories, memory_compiled_across(), project.pk)
    yield _memory_columns(of_agent.filter(core.selected), Layer.CORE, _ONESELF)
    yield _memory_columns(of_agent.filter(own.selected), Layer.LEARNINGS, _ONESELF)
    yield _memory_columns(across.filter(others.selected), Layer.LEARNINGS, _AUTHOR)


def _memory_columns(rows: QuerySet[Any], layer: Layer, by: Mapping[str, F]) -> QuerySet[Any, Any]:
    return _columns(
        rows, kind=_constant("memory"), row_layer=_constant(int(layer)), created=_time("created_at"),
        row_content=F("content"), row_importance=F("importance"), **by, **_ROW,
    )  # fmt: skip


def _session(project: Project) -> QuerySet[Any, Any]:
    rows = SessionContext.objects.filter(all_hold(SESSION), project=project)
    return _columns(
        rows, kind=_constant("session"), row_id=F("pk"), row_revision=F("revision"),
        row_layer=_constant(int(Layer.SESSION)), created=_time("started_at"), row_title=F("focus_area"),
        row_content=F("summary"), issues=Cast("active_issues", TextField()),
    )  # fmt: skip


def _left_out_decisions(project: Project) -> QuerySet[Any, Any]:
    rows = Decision.objects.filter(project=project)
    return _left_out(rows.exclude(all_hold(DECISIONS)), "decision", decision_reason())


def _left_out_memories(project: Project, agent_id: int, trust: TrustPolicy) -> QuerySet[Any, Any]:
    scopes = memory_scopes(agent_id, trust)
    core, own, others = (scope.selected for scope in scopes)
    rows = AgentMemory.objects.filter(project=project).exclude(core | own | others)
    return _left_out(rows, "memory", memory_reason(scopes))


def _left_out(rows: QuerySet[Any], kind: str, why: Any) -> QuerySet[Any, Any]:
    """The newest rows that are out, with the reason: one more than is named, so that a rest is noticed.

    That a reason is there would say the same as that no layer selects them, and costs the database twice the time.
    """
    values = {"kind": _constant(kind), "row_id": F("pk"), "reason": why, "created": _time("created_at")}
    return _columns(rows.order_by("-created_at", "-pk"), **values)[: OMITTED_LIMIT + 1]


# Building this SQL costs the ORM some twenty milliseconds and always ends in the same text, so it is built once per process for
# these stand-ins, and executed with the real values in their place.
_ANY_PROJECT = Project(pk=UUID("00000000-feed-4000-8000-00000000feed"))
_ANY_AGENT = 4_611_686_018_427_387_905
_ANY_KEY = "any agent's key"
_NOBODY = 0
"""The agent nobody has named yet: no row has this id, so every memory is another agent's."""


class NamedAgent(NamedTuple):
    """Whom a name means: the agent's id, None when nobody has named it yet, and the name to show."""

    id: int | None
    name: str


@cache
def _name_statement(alias: str) -> Statement:
    named = Agent.objects.filter(project=_ANY_PROJECT, key=_ANY_KEY).values_list("pk", "name")
    return union_all(alias, (_key(alias, _ANY_PROJECT), _ANY_KEY), named)


def agent_named(project: Project, name: str) -> NamedAgent:
    """The agent that `name` means under trim, NFC and case folding. One statement; asking creates nothing.

    From the primary: a replica could not know an agent yet whose rows it has by the time it is asked for them.
    """
    values = {_key(PRIMARY, _ANY_PROJECT): _key(PRIMARY, project), _ANY_KEY: agent_key(name)}
    found = run(_name_statement(PRIMARY), values)
    return NamedAgent(*found[0]) if found else NamedAgent(None, name.strip())


@cache
def _agent_statement(alias: str, trust: TrustPolicy) -> Statement:
    return union_all(
        alias,
        _standins(alias),
        _epoch(_ANY_PROJECT),
        _decisions(_ANY_PROJECT),
        *_memories(_ANY_PROJECT, _ANY_AGENT, trust),
        _session(_ANY_PROJECT),
        _left_out_decisions(_ANY_PROJECT),
        _left_out_memories(_ANY_PROJECT, _ANY_AGENT, trust),
    )


@cache
def _decisions_statement(alias: str) -> Statement:
    parts = (_epoch(_ANY_PROJECT), _decisions(_ANY_PROJECT), _left_out_decisions(_ANY_PROJECT))
    return union_all(alias, _standins(alias)[:1], *parts)


def _standins(alias: str) -> tuple[Any, Any]:
    return _key(alias, _ANY_PROJECT), _ANY_AGENT


def _key(alias: str, project: Project) -> Any:
    return prepared_key(alias, Project, project.pk)


def of_agent(project: Project, agent_id: int | None, trust: TrustPolicy, alias: str) -> list[Candidate]:
    """The candidates of all four layers for one agent, in the named database. One statement."""
    known = agent_id if agent_id is not None else _NOBODY
    values = {_key(alias, _ANY_PROJECT): _key(alias, project), _ANY_AGENT: known}
    return list(map(_candidate, run(_agent_statement(alias, trust), values)))


def of_decisions(project: Project, alias: str) -> list[Candidate]:
    """The candidates of layer 1 alone, in the named database. One statement."""
    values = {_key(alias, _ANY_PROJECT): _key(alias, project)}
    return list(map(_candidate, run(_decisions_statement(alias), values)))
