"""Projects and the agents that work in them (SPEC 3)."""

from __future__ import annotations

import uuid

from django.db import models
from django.db.models import Q
from django.db.models.functions import Length

from memory.enums import Overflow, TrustPolicy
from memory.models.provenance import listed
from memory.values import agent_key, looks_like_uuid

NO_HASH = "0" * 64
"""The `prev_hash` of a project's first event."""


class ProjectQuerySet(models.QuerySet["Project"]):
    def named(self, reference: str) -> ProjectQuerySet:
        """The project with this UUID or slug. A slug that looks like a UUID cannot be made, so the two never meet."""
        if looks_like_uuid(reference):
            return self.filter(pk=uuid.UUID(reference))
        return self.filter(slug=reference)


class Project(models.Model):
    """Everything belongs to one project. `epoch` rises with every change that could alter a compiled context."""

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    slug = models.CharField(max_length=120, unique=True)
    name = models.CharField(max_length=300)
    created_at = models.DateTimeField(editable=False)

    max_items = models.PositiveIntegerField(default=20)
    max_tokens = models.PositiveIntegerField(default=8000)
    on_overflow = models.CharField(max_length=10, choices=Overflow, default=Overflow.INCLUDE)
    trust = models.CharField(max_length=10, choices=TrustPolicy, default=TrustPolicy.STANDARD)

    workspace = models.CharField(max_length=500, blank=True)
    """Folder of the file mirror, relative to AGENTWEAVER_WORKSPACE_ROOT; empty means the project's slug."""

    epoch = models.PositiveBigIntegerField(default=0, editable=False)
    # The head of the ledger lives here so that appending reads no event, and a cut-off tail is noticed.
    ledger_number = models.PositiveBigIntegerField(default=0, editable=False)
    ledger_hash = models.CharField(max_length=64, default=NO_HASH, editable=False)

    objects = ProjectQuerySet.as_manager()

    class Meta:
        constraints = (
            listed("project", "on_overflow", Overflow),
            listed("project", "trust", TrustPolicy),
            models.CheckConstraint(condition=~Q(slug=""), name="project_slug_not_blank"),
        )
        # One codename per role; the grants themselves live in governance (SPEC 5).
        permissions = (
            ("owner", "Owner: decide, manage members and policy"),
            ("contributor", "Contributor: write memory, entries and sessions"),
            ("viewer", "Viewer: read"),
            ("orchestrator", "Orchestrator: register and finish runs, build contexts"),
        )

    def __str__(self) -> str:
        return self.name


class AgentQuerySet(models.QuerySet["Agent"]):
    def named(self, name: str) -> AgentQuerySet:
        """The agent that `name` means under trim, NFC and case folding."""
        return self.filter(key=agent_key(name))


class Agent(models.Model):
    """A named agent of a project, shown in the spelling first seen."""

    project = models.ForeignKey(Project, on_delete=models.PROTECT, related_name="agents")
    name = models.CharField(max_length=100)
    key = models.CharField(max_length=100, editable=False)
    charter = models.TextField(blank=True)
    created_at = models.DateTimeField(editable=False)

    objects = AgentQuerySet.as_manager()

    class Meta:
        constraints = (
            models.UniqueConstraint(fields=["project", "key"], name="agent_one_identity_per_project"),
            models.CheckConstraint(condition=Q(key__length__gt=0), name="agent_key_not_blank"),
        )

    def __str__(self) -> str:
        return self.name


models.CharField.register_lookup(Length, "length")
