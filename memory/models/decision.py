"""Team decisions and the inbox that proposes them (SPEC 3)."""

from __future__ import annotations

from django.db import models
from django.db.models import F, Q

from memory.enums import DecisionStatus, DecisionType, EntryStatus, EntryType, Importance, TrustState
from memory.models.compiled import decision_compiled_in
from memory.models.fields import TagsField
from memory.models.memory import AgentMemory
from memory.models.project import Agent, Project
from memory.models.provenance import Sourced, Trusted, listed


class DecisionQuerySet(models.QuerySet["Decision"]):
    def active(self) -> DecisionQuerySet:
        return self.filter(status=DecisionStatus.ACTIVE)

    def legacy(self) -> DecisionQuerySet:
        """Imported rows that wait for a person."""
        return self.active().filter(trust_state=TrustState.LEGACY)


class Decision(Sourced, Trusted):
    """A decision of the team. `agent` is its display author."""

    project = models.ForeignKey(Project, on_delete=models.PROTECT, related_name="decisions")
    agent = models.ForeignKey(Agent, on_delete=models.PROTECT, related_name="decisions")
    type = models.CharField(max_length=14, choices=DecisionType)
    status = models.CharField(
        max_length=12, choices=DecisionStatus, default=DecisionStatus.ACTIVE, editable=False
    )
    title = models.CharField(max_length=300)
    content = models.TextField()
    rationale = models.TextField(blank=True)
    tags = TagsField()
    superseded_by = models.ForeignKey(
        "self", null=True, blank=True, editable=False, on_delete=models.PROTECT, related_name="supersedes"
    )
    revision = models.PositiveIntegerField(default=1, editable=False)
    created_at = models.DateTimeField(editable=False)
    updated_at = models.DateTimeField(editable=False)

    objects = DecisionQuerySet.as_manager()

    class Meta:
        constraints = (
            *Sourced.Meta.constraints,
            *Trusted.Meta.constraints,
            listed("decision", "type", DecisionType),
            listed("decision", "status", DecisionStatus),
            models.CheckConstraint(
                condition=Q(superseded_by__isnull=True) | ~Q(superseded_by=F("id")),
                name="decision_not_own_successor",
            ),
            models.CheckConstraint(
                condition=Q(status=DecisionStatus.SUPERSEDED, superseded_by__isnull=False)
                | (~Q(status=DecisionStatus.SUPERSEDED) & Q(superseded_by__isnull=True)),
                name="decision_superseded_names_successor",
            ),
        )
        indexes = (
            # Compiler, layer 1.
            models.Index(decision_compiled_in(), name="decision_compiled_in"),
            models.Index(fields=["project", "status", "-created_at", "-id"], name="decision_status_newest"),
            models.Index(
                fields=["project", "trust_state", "-created_at", "-id"], name="decision_trust_newest"
            ),
            models.Index(fields=["project", "-created_at", "-id"], name="decision_newest"),
        )

    def __str__(self) -> str:
        return self.title


class EntryQuerySet(models.QuerySet["DecisionInboxEntry"]):
    def pending(self) -> EntryQuerySet:
        return self.filter(status=EntryStatus.PENDING)


class DecisionInboxEntry(Sourced):
    """A proposal of an agent. It has no trust of its own: its status is the review."""

    project = models.ForeignKey(Project, on_delete=models.PROTECT, related_name="entries")
    agent = models.ForeignKey(Agent, on_delete=models.PROTECT, related_name="entries")
    slug = models.CharField(max_length=120)
    type = models.CharField(max_length=14, choices=EntryType)
    title = models.CharField(max_length=300)
    content = models.TextField()
    rationale = models.TextField(blank=True)
    importance = models.CharField(max_length=8, choices=Importance, default=Importance.HIGH)
    tags = TagsField()
    status = models.CharField(max_length=10, choices=EntryStatus, default=EntryStatus.PENDING, editable=False)
    reviewed_by = models.CharField(max_length=160, blank=True, editable=False)
    reviewed_at = models.DateTimeField(null=True, blank=True, editable=False)
    reason = models.TextField(blank=True, editable=False)
    decision = models.OneToOneField(
        Decision, null=True, blank=True, editable=False, on_delete=models.PROTECT, related_name="entry"
    )
    memory = models.OneToOneField(
        AgentMemory, null=True, blank=True, editable=False, on_delete=models.PROTECT, related_name="entry"
    )
    revision = models.PositiveIntegerField(default=1, editable=False)
    created_at = models.DateTimeField(editable=False)
    updated_at = models.DateTimeField(editable=False)

    objects = EntryQuerySet.as_manager()

    class Meta(Sourced.Meta):
        verbose_name_plural = "decision inbox entries"
        constraints = (
            *Sourced.Meta.constraints,
            listed("entry", "type", EntryType),
            listed("entry", "importance", Importance),
            listed("entry", "status", EntryStatus),
            models.UniqueConstraint(fields=["project", "slug"], name="entry_slug_unique"),
            models.CheckConstraint(
                condition=Q(status=EntryStatus.MERGED, decision__isnull=False, memory__isnull=True)
                | Q(status=EntryStatus.MERGED, decision__isnull=True, memory__isnull=False)
                | (~Q(status=EntryStatus.MERGED) & Q(decision__isnull=True, memory__isnull=True)),
                name="entry_merged_has_exactly_one_row",
            ),
            models.CheckConstraint(
                condition=Q(status=EntryStatus.PENDING, reviewed_by="", reviewed_at__isnull=True)
                | (~Q(status=EntryStatus.PENDING) & ~Q(reviewed_by="") & Q(reviewed_at__isnull=False)),
                name="entry_reviewed_says_who_and_when",
            ),
            models.CheckConstraint(
                condition=~Q(status=EntryStatus.REJECTED) | ~Q(reason=""), name="entry_rejected_says_why"
            ),
        )
        indexes = (
            models.Index(fields=["project", "status", "-created_at", "-id"], name="entry_status_newest"),
            # The scribe's selection: the pending entries of one run.
            models.Index(
                fields=["source_run"], name="entry_pending_of_run", condition=Q(status=EntryStatus.PENDING)
            ),
        )

    def __str__(self) -> str:
        return self.slug
