"""What agents remember (SPEC 3, AgentMemory)."""

from __future__ import annotations

from collections.abc import Iterable

from django.db import models
from django.db.models import Case, F, Q, Value, When

from memory.actors import SCRIBE_PREFIX
from memory.enums import Importance, MemoryType, TrustState
from memory.models.compiled import memory_compiled_across, memory_compiled_for
from memory.models.fields import TagsField, needle
from memory.models.project import Agent, Project
from memory.models.provenance import Sourced, Trusted, listed
from memory.models.session import SessionContext
from memory.values import CROSS_TEAM

_ASKS_TO_CROSS = Q(cross_team=True, retired_at__isnull=True) & (
    Q(trust_state=TrustState.PENDING) | Q(approved_by__startswith=SCRIBE_PREFIX)
)


class MemoryQuerySet(models.QuerySet["AgentMemory"]):
    def live(self) -> MemoryQuerySet:
        """Not retired."""
        return self.filter(retired_at__isnull=True)

    def legacy(self) -> MemoryQuerySet:
        """Imported rows that wait for a person."""
        return self.live().filter(trust_state=TrustState.LEGACY)

    def tagged_any(self, tags: Iterable[str]) -> MemoryQuerySet:
        """Rows that carry at least one of these whole tags."""
        wanted = Q()
        for tag in tags:
            wanted |= Q(tags__contains=needle(tag))
        return self.filter(wanted)

    def cross_team_requests(self) -> MemoryQuerySet:
        """Tagged `cross-team`, but nobody with the right has approved that: pending, or approved by the scribe alone."""
        return self.filter(_ASKS_TO_CROSS)


class AgentMemory(Sourced, Trusted):
    """One thing one agent remembers."""

    project = models.ForeignKey(Project, on_delete=models.PROTECT, related_name="memories")
    agent = models.ForeignKey(Agent, on_delete=models.PROTECT, related_name="memories")
    type = models.CharField(max_length=14, choices=MemoryType)
    importance = models.CharField(max_length=8, choices=Importance, default=Importance.MEDIUM)
    content = models.TextField()
    tags = TagsField()
    # The database computes it from the tags, so the compiler's index can never disagree with them.
    cross_team = models.GeneratedField(
        expression=Case(When(tags__contains=needle(CROSS_TEAM), then=Value(True)), default=Value(False)),
        output_field=models.BooleanField(),
        db_persist=True,
    )
    session = models.ForeignKey(
        SessionContext, null=True, blank=True, on_delete=models.PROTECT, related_name="memories"
    )
    revision = models.PositiveIntegerField(default=1, editable=False)
    created_at = models.DateTimeField(editable=False)
    updated_at = models.DateTimeField(editable=False)
    retired_at = models.DateTimeField(null=True, blank=True, editable=False)
    retired_by = models.CharField(max_length=160, blank=True, editable=False)
    retire_reason = models.TextField(blank=True, editable=False)

    objects = MemoryQuerySet.as_manager()

    class Meta:
        verbose_name_plural = "agent memories"
        constraints = (
            *Sourced.Meta.constraints,
            *Trusted.Meta.constraints,
            listed("memory", "type", MemoryType),
            listed("memory", "importance", Importance),
            models.CheckConstraint(
                condition=(Q(retired_at__isnull=False) & ~Q(retired_by="") & ~Q(retire_reason=""))
                | Q(retired_at__isnull=True, retired_by="", retire_reason=""),
                name="memory_retired_says_who_and_why",
            ),
        )
        indexes = (
            # Compiler, layers 2 and 3 of one agent, and layer 3 across agents.
            models.Index(memory_compiled_for(), F("type"), name="memory_compiled_for"),
            models.Index(memory_compiled_across(), name="memory_compiled_across"),
            # Lists of the API and the pages: one agent, one trust state, the whole project; newest first.
            models.Index(fields=["agent", "-created_at", "-id"], name="memory_agent_newest"),
            models.Index(fields=["project", "trust_state", "-created_at", "-id"], name="memory_trust_newest"),
            models.Index(fields=["project", "-created_at", "-id"], name="memory_newest"),
            # What waits for a person: counted beside the navigation of every page, listed oldest first.
            models.Index(
                fields=["project", "created_at", "id"],
                name="memory_legacy_waiting",
                condition=Q(trust_state=TrustState.LEGACY, retired_at__isnull=True),
            ),
            models.Index(
                fields=["project", "created_at", "id"],
                name="memory_asks_cross_team",
                condition=_ASKS_TO_CROSS,
            ),
        )

    def __str__(self) -> str:
        return f"{self.type} {self.pk}"

    @property
    def is_retired(self) -> bool:
        return self.retired_at is not None

    @property
    def approved_by_scribe(self) -> bool:
        """The scribe's approval holds for the row's own agent only; `cross-team` stays a request (SPEC 6)."""
        return self.approved_by.startswith(SCRIBE_PREFIX)
