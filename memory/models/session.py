"""What a project is working on now (SPEC 3, SessionContext)."""

from django.db import models
from django.db.models import Q

from memory.models.project import Project
from memory.models.provenance import Sourced


class SessionContext(Sourced):
    """The focus of a project for a time. At most one is open."""

    project = models.ForeignKey(Project, on_delete=models.PROTECT, related_name="sessions")
    session_id = models.CharField(max_length=120)
    focus_area = models.TextField(blank=True)
    active_issues = models.JSONField(default=list, blank=True)
    summary = models.TextField(blank=True)
    serialized_state = models.TextField(blank=True)
    started_at = models.DateTimeField(editable=False)
    ended_at = models.DateTimeField(null=True, blank=True, editable=False)
    revision = models.PositiveIntegerField(default=1, editable=False)

    class Meta(Sourced.Meta):
        constraints = (
            *Sourced.Meta.constraints,
            models.UniqueConstraint(fields=["project", "session_id"], name="session_id_unique"),
            models.UniqueConstraint(
                fields=["project"], condition=Q(ended_at__isnull=True), name="session_one_open_per_project"
            ),
        )
        indexes = (models.Index(fields=["project", "-started_at", "-id"], name="session_newest"),)

    def __str__(self) -> str:
        return self.session_id
