"""Tokens: a person's own, and the credentials of runs that are alive (SPEC 9, Tokens)."""

from __future__ import annotations

from datetime import datetime

from django.db.models import Q, QuerySet

from governance.models import PersonalToken, RunCredential
from memory.enums import RunStatus
from memory.models import Project

SHOWN = 100
"""Tokens of one person that are listed, newest first."""
PAGE_SIZE = 50


def tokens_of(username: str) -> list[PersonalToken]:
    """The newest tokens of a person. One query."""
    return list(PersonalToken.objects.filter(user__username=username).order_by("-created_at", "-pk")[:SHOWN])


def live_credentials(project: Project, now: datetime) -> QuerySet[RunCredential]:
    """Credentials with which a running run can ask for something at this moment, newest first."""
    alive = Q(revoked_at__isnull=True) & (Q(expires_at__isnull=True) | Q(expires_at__gt=now))
    return (
        RunCredential.objects.filter(alive, run__project=project, run__status=RunStatus.RUNNING)
        .select_related("run__agent")
        .defer("run__agent__charter", "run__summary")
        .order_by("-created_at", "-pk")
    )
