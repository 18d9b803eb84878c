"""What was read from files, so that reading it again adds nothing (SPEC 8, Import)."""

from __future__ import annotations

from django.db import models
from django.db.models import Q

from memory.models.decision import Decision, DecisionInboxEntry
from memory.models.memory import AgentMemory
from memory.models.project import Project
from memory.models.session import SessionContext


class ImportedRecord(models.Model):
    """One record of one file and the row it became. A changed text at the same place points at the record before it."""

    project = models.ForeignKey(Project, on_delete=models.PROTECT, related_name="imported")
    path = models.TextField()
    line = models.PositiveIntegerField()
    digest = models.CharField(max_length=64)
    """SHA-256 over kind, agent, title and text: the identity of what was read."""
    place = models.CharField(max_length=64)
    """SHA-256 over kind, path and heading: where a changed text is recognised."""
    dated_at = models.DateTimeField(null=True, blank=True)
    """When the file says it was written; NULL when it does not say."""
    original_id = models.CharField(max_length=60, blank=True)
    """The row's id in the ledger it was exported from."""
    replaces = models.ForeignKey(
        "self", null=True, blank=True, on_delete=models.PROTECT, related_name="replaced_by"
    )
    decision = models.OneToOneField(
        Decision, null=True, blank=True, on_delete=models.PROTECT, related_name="imported"
    )
    memory = models.OneToOneField(
        AgentMemory, null=True, blank=True, on_delete=models.PROTECT, related_name="imported"
    )
    entry = models.OneToOneField(
        DecisionInboxEntry, null=True, blank=True, on_delete=models.PROTECT, related_name="imported"
    )
    session = models.OneToOneField(
        SessionContext, null=True, blank=True, on_delete=models.PROTECT, related_name="imported"
    )

    class Meta:
        constraints = (
            models.UniqueConstraint(fields=["project", "digest"], name="imported_once"),
            models.CheckConstraint(
                condition=Q(
                    decision__isnull=False, memory__isnull=True, entry__isnull=True, session__isnull=True
                )
                | Q(decision__isnull=True, memory__isnull=False, entry__isnull=True, session__isnull=True)
                | Q(decision__isnull=True, memory__isnull=True, entry__isnull=False, session__isnull=True)
                | Q(decision__isnull=True, memory__isnull=True, entry__isnull=True, session__isnull=False),
                name="imported_names_one_row",
            ),
        )
        indexes = (models.Index(fields=["project", "place"], name="imported_place"),)

    def __str__(self) -> str:
        return f"{self.path}#L{self.line}"
