"""What a run was told (SPEC 3, ContextSnapshot and ContextReceipt). Both are append-only, like the ledger."""

from __future__ import annotations

from django.db import models
from django.db.models import Q

from memory.models.decision import Decision
from memory.models.memory import AgentMemory
from memory.models.project import Project
from memory.models.run import Run
from memory.models.session import SessionContext


class ContextSnapshot(models.Model):
    """A compiled block, stored once per distinct block and rows."""

    project = models.ForeignKey(Project, on_delete=models.PROTECT, related_name="snapshots")
    sha256 = models.CharField(max_length=64)
    rows_sha256 = models.CharField(max_length=64)
    """Digest of the rows with their revisions: the same bytes can come from another revision of a row."""
    block = models.TextField()

    class Meta:
        constraints = (
            models.UniqueConstraint(fields=["project", "sha256", "rows_sha256"], name="snapshot_stored_once"),
        )

    def __str__(self) -> str:
        return self.sha256[:12]


class SnapshotRow(models.Model):
    """A row that stood in a snapshot, at the revision that was told."""

    snapshot = models.ForeignKey(ContextSnapshot, on_delete=models.PROTECT, related_name="rows")
    layer = models.PositiveSmallIntegerField()
    decision = models.ForeignKey(
        Decision, null=True, blank=True, on_delete=models.PROTECT, related_name="told"
    )
    memory = models.ForeignKey(
        AgentMemory, null=True, blank=True, on_delete=models.PROTECT, related_name="told"
    )
    session = models.ForeignKey(
        SessionContext, null=True, blank=True, on_delete=models.PROTECT, related_name="told"
    )
    revision = models.PositiveIntegerField()

    class Meta:
        constraints = (
            models.CheckConstraint(
                condition=Q(decision__isnull=False, memory__isnull=True, session__isnull=True)
                | Q(decision__isnull=True, memory__isnull=False, session__isnull=True)
                | Q(decision__isnull=True, memory__isnull=True, session__isnull=False),
                name="snapshot_row_names_one_row",
            ),
        )

    def __str__(self) -> str:
        return f"{self.snapshot} layer {self.layer}"


class ContextReceipt(models.Model):
    """Ties a run and a time to what it was told: a snapshot, nothing (no eligible row), or a failure's code."""

    project = models.ForeignKey(Project, on_delete=models.PROTECT, related_name="receipts")
    run = models.ForeignKey(Run, on_delete=models.PROTECT, related_name="receipts")
    at = models.DateTimeField()
    epoch = models.PositiveBigIntegerField()
    decisions_only = models.BooleanField(default=False)
    snapshot = models.ForeignKey(
        ContextSnapshot, null=True, blank=True, on_delete=models.PROTECT, related_name="receipts"
    )
    compile_error = models.CharField(max_length=60, blank=True)

    class Meta:
        constraints = (
            models.CheckConstraint(
                condition=Q(compile_error="") | Q(snapshot__isnull=True),
                name="receipt_failure_has_no_snapshot",
            ),
        )
        indexes = (
            models.Index(fields=["run", "-at", "-id"], name="receipt_run_newest"),
            models.Index(fields=["project", "-at", "-id"], name="receipt_newest"),
        )

    def __str__(self) -> str:
        return f"receipt {self.pk}"
