"""How rows are answered: explicit fields, the spec's words, absent stamps as null (SPEC 3 and 7)."""

from __future__ import annotations

from enum import StrEnum
from typing import Any

from rest_framework import serializers

from governance.people.policies import Role
from memory.enums import (
    DecisionStatus,
    DecisionType,
    EntryStatus,
    EntryType,
    Importance,
    MemoryType,
    Overflow,
    RunRole,
    RunStatus,
    SourceKind,
    TrustPolicy,
    TrustState,
)
from memory.models import AgentMemory, Decision, DecisionInboxEntry, Project, Run, SessionContext


class Row(serializers.Serializer[Any]):
    """A row as answered. Read only."""


def words(listed: type[StrEnum]) -> list[tuple[str, str]]:
    """The choices of a closed list that carries no labels."""
    return [(word.value, word.name) for word in listed]


class Stamp(serializers.CharField):
    """A text that is null as long as nothing was stamped."""

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(allow_null=True, **kwargs)

    def to_representation(self, value: Any) -> Any:
        return str(value) or None


class TagList(serializers.ListField):
    """Tags as a list."""

    child = serializers.CharField()


class PolicyRow(Row):
    """What bounds a compile of the project (SPEC 4)."""

    max_items = serializers.IntegerField()
    max_tokens = serializers.IntegerField()
    on_overflow = serializers.ChoiceField(choices=Overflow.choices)
    trust = serializers.ChoiceField(choices=TrustPolicy.choices)


class ProjectRow(Row):
    id = serializers.UUIDField()
    slug = serializers.CharField()
    name = serializers.CharField()
    policy = PolicyRow(source="*")
    epoch = serializers.IntegerField()
    created_at = serializers.DateTimeField()


class MemberRow(Row):
    """A grant: `username` or `group` is set, and the role."""

    username = serializers.CharField(allow_null=True)
    group = serializers.CharField(allow_null=True)
    role = serializers.ChoiceField(choices=words(Role))


class RunRow(Row):
    id = serializers.UUIDField()
    agent_name = serializers.CharField(source="agent.name")
    role = serializers.ChoiceField(choices=RunRole.choices)
    parent_run_id = serializers.UUIDField(source="parent_id", allow_null=True)
    external_id = serializers.CharField(allow_null=True)
    status = serializers.ChoiceField(choices=RunStatus.choices)
    summary = serializers.CharField()
    started_at = serializers.DateTimeField()
    ended_at = serializers.DateTimeField(allow_null=True)


class SourcedRow(Row):
    """Provenance: resolved by the server, never by a body."""

    source_kind = serializers.ChoiceField(choices=SourceKind.choices)
    source_identity = serializers.CharField()
    source_run = serializers.UUIDField(source="source_run_id", allow_null=True)


class TrustedRow(SourcedRow):
    trust_state = serializers.ChoiceField(choices=TrustState.choices)
    approved_by = Stamp()
    approved_at = serializers.DateTimeField(allow_null=True)


class MemoryRow(TrustedRow):
    id = serializers.IntegerField()
    agent_name = serializers.CharField(source="agent.name")
    type = serializers.ChoiceField(choices=MemoryType.choices)
    importance = serializers.ChoiceField(choices=Importance.choices)
    content = serializers.CharField()
    tags = TagList()
    session_id = serializers.CharField(source="session.session_id", default=None, allow_null=True)
    revision = serializers.IntegerField()
    status = serializers.SerializerMethodField()
    created_at = serializers.DateTimeField()
    updated_at = serializers.DateTimeField()
    retired_at = serializers.DateTimeField(allow_null=True)
    retired_by = Stamp()
    retire_reason = Stamp()

    def get_status(self, memory: AgentMemory) -> str:
        return "retired" if memory.is_retired else "active"


class DecisionRow(TrustedRow):
    id = serializers.IntegerField()
    agent_name = serializers.CharField(source="agent.name")
    type = serializers.ChoiceField(choices=DecisionType.choices)
    status = serializers.ChoiceField(choices=DecisionStatus.choices)
    title = serializers.CharField()
    content = serializers.CharField()
    rationale = serializers.CharField()
    tags = TagList()
    superseded_by = serializers.IntegerField(source="superseded_by_id", allow_null=True)
    revision = serializers.IntegerField()
    created_at = serializers.DateTimeField()
    updated_at = serializers.DateTimeField()


class EntryRow(SourcedRow):
    id = serializers.IntegerField()
    agent_name = serializers.CharField(source="agent.name")
    slug = serializers.CharField()
    type = serializers.ChoiceField(choices=EntryType.choices)
    title = serializers.CharField()
    content = serializers.CharField()
    rationale = serializers.CharField()
    importance = serializers.ChoiceField(choices=Importance.choices)
    tags = TagList()
    status = serializers.ChoiceField(choices=EntryStatus.choices)
    reviewed_by = Stamp()
    reviewed_at = serializers.DateTimeField(allow_null=True)
    reason = Stamp()
    decision = serializers.IntegerField(source="decision_id", allow_null=True)
    memory = serializers.IntegerField(source="memory_id", allow_null=True)
    revision = serializers.IntegerField()
    created_at = serializers.DateTimeField()
    updated_at = serializers.DateTimeField()


class SessionRow(SourcedRow):
    id = serializers.IntegerField()
    session_id = serializers.CharField()
    focus_area = serializers.CharField()
    active_issues = serializers.ListField(child=serializers.CharField())
    summary = serializers.CharField()
    serialized_state = serializers.CharField()
    revision = serializers.IntegerField()
    started_at = serializers.DateTimeField()
    ended_at = serializers.DateTimeField(allow_null=True)


_ROWS: dict[type, type[Row]] = {
    Project: ProjectRow,
    Run: RunRow,
    AgentMemory: MemoryRow,
    Decision: DecisionRow,
    DecisionInboxEntry: EntryRow,
    SessionContext: SessionRow,
}


def current(row: Any) -> dict[str, Any] | None:
    """A row of any table as answered, for the problem that says how it stands now; null when there is none to show."""
    shown = _ROWS.get(type(row))
    return dict(shown(row).data) if shown is not None else None
