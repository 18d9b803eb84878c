"""Runs: one piece of work of one agent, registered by an orchestrator (SPEC 3)."""

from __future__ import annotations

import uuid

from django.db import models
from django.db.models import F, Q

from memory.actors import VerifiedRun
from memory.enums import RunRole, RunStatus
from memory.models.project import Agent, Project
from memory.models.provenance import listed


class Run(models.Model):
    """A run of an agent. "Coordinator" is the role, never the name; a child run is never a coordinator."""

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    project = models.ForeignKey(Project, on_delete=models.PROTECT, related_name="runs")
    agent = models.ForeignKey(Agent, on_delete=models.PROTECT, related_name="runs")
    role = models.CharField(max_length=12, choices=RunRole, default=RunRole.WORKER)
    parent = models.ForeignKey(
        "self", null=True, blank=True, on_delete=models.PROTECT, related_name="children"
    )
    external_id = models.CharField(max_length=200, null=True, blank=True)  # noqa: DJ001 - NULL: unique only when given
    status = models.CharField(max_length=10, choices=RunStatus, default=RunStatus.RUNNING)
    summary = models.TextField(blank=True)
    started_at = models.DateTimeField(editable=False)
    ended_at = models.DateTimeField(null=True, blank=True, editable=False)

    class Meta:
        constraints = (
            listed("run", "role", RunRole),
            listed("run", "status", RunStatus),
            models.UniqueConstraint(fields=["project", "external_id"], name="run_external_id_unique"),
            models.CheckConstraint(
                condition=Q(parent__isnull=True) | Q(role=RunRole.WORKER), name="run_child_is_no_coordinator"
            ),
            models.CheckConstraint(
                condition=Q(parent__isnull=True) | ~Q(parent=F("id")), name="run_not_own_parent"
            ),
            models.CheckConstraint(
                condition=Q(status=RunStatus.RUNNING, ended_at__isnull=True)
                | (~Q(status=RunStatus.RUNNING) & Q(ended_at__isnull=False)),
                name="run_ended_has_time",
            ),
        )
        indexes = (
            # The runs page and API: newest first, alone or by status.
            models.Index(fields=["project", "-started_at", "-id"], name="run_newest"),
            models.Index(fields=["project", "status", "-started_at"], name="run_by_status"),
        )

    def __str__(self) -> str:
        return f"{self.agent} {self.id}"

    @property
    def is_running(self) -> bool:
        return self.status == RunStatus.RUNNING

    @property
    def is_child(self) -> bool:
        return self.parent_id is not None

    def as_actor(self) -> VerifiedRun:
        """This run as the actor of a request; needs `agent` loaded."""
        return VerifiedRun(self.id, self.project_id, self.agent_id, self.agent.name, RunRole(self.role))
