"""People, what they were granted, and the credentials that prove who is asking (SPEC 5)."""

from __future__ import annotations

from typing import Any, ClassVar

from django.contrib.auth.models import AbstractUser
from django.db import models
from django.db.models import Q
from guardian.models import GroupObjectPermissionBase, UserObjectPermissionBase

from memory.models import Project, Run


class User(AbstractUser):
    """A person or a service account. A user name holds no colon: `run:…` and `scribe:…` can never be somebody's name."""

    class Meta(AbstractUser.Meta):  # type: ignore[name-defined,misc]
        constraints: ClassVar = [
            models.CheckConstraint(condition=~Q(username__contains=":"), name="user_name_has_no_colon"),
        ]


class ProjectUserGrant(UserObjectPermissionBase):
    """The role of one user in one project. A direct foreign key: a grant goes with its project."""

    id = models.BigAutoField(primary_key=True)
    content_object = models.ForeignKey(Project, on_delete=models.CASCADE, related_name="user_grants")

    class Meta(UserObjectPermissionBase.Meta):
        abstract = False
        # Unique in this order serves the question of every request: the role of this user in that project.
        constraints = (
            models.UniqueConstraint(
                fields=["user", "content_object"], name="user_grant_one_role_per_project"
            ),
        )


class ProjectGroupGrant(GroupObjectPermissionBase):
    """The role of a group's members in one project."""

    id = models.BigAutoField(primary_key=True)
    content_object = models.ForeignKey(Project, on_delete=models.CASCADE, related_name="group_grants")

    class Meta(GroupObjectPermissionBase.Meta):
        abstract = False
        constraints = (
            models.UniqueConstraint(
                fields=["group", "content_object"], name="group_grant_one_role_per_project"
            ),
        )


class Credential(models.Model):
    """What both kinds of credential share: 256 random bits, of which only a SHA-256 digest is kept."""

    digest = models.CharField(max_length=64, unique=True, editable=False)
    prefix = models.CharField(max_length=12, editable=False)
    """The first characters of the token, to recognise it in a list."""
    created_at = models.DateTimeField(editable=False)
    expires_at = models.DateTimeField(null=True, blank=True)
    revoked_at = models.DateTimeField(null=True, blank=True, editable=False)
    last_used_at = models.DateTimeField(null=True, blank=True, editable=False)

    class Meta:
        abstract = True

    def __str__(self) -> str:
        return f"{self.prefix}…"


class PersonalToken(Credential):
    """A token of a person or service account: it carries that user's own rights."""

    user = models.ForeignKey(User, on_delete=models.CASCADE, related_name="tokens")
    name = models.CharField(max_length=100, blank=True)

    class Meta:
        indexes = (models.Index(fields=["user", "-created_at", "-id"], name="token_newest"),)


class RunCredential(Credential):
    """The one credential of a run. It dies with the run, and after RUN_CREDENTIAL_HOURS at the latest."""

    run = models.OneToOneField(Run, on_delete=models.CASCADE, related_name="credential")


class ScribeReport(models.Model):
    """What followed a run's end: written with the end itself, filled in step by step, kept for retries (SPEC 6, Scribe)."""

    run = models.OneToOneField(
        Run, primary_key=True, on_delete=models.PROTECT, related_name="scribe_report", editable=False
    )
    end_session = models.BooleanField(default=False, editable=False)
    """Whether the open session was to be closed; a repeated completion cannot change its mind."""
    steps = models.JSONField(default=list, editable=False)
    promoted = models.JSONField(default=list, editable=False)
    waiting = models.JSONField(default=list, editable=False)
    session = models.JSONField(null=True, editable=False)
    exported_files = models.PositiveIntegerField(null=True, editable=False)
    updated_at = models.DateTimeField(editable=False)

    class Meta:
        indexes = (models.Index(fields=["-updated_at"], name="scribe_report_newest"),)

    def __str__(self) -> str:
        return f"scribe of {self.run_id}"

    @property
    def has_failed(self) -> bool:
        """Whether a step failed or was cut off: the report's owner may retry it."""
        return any(step["state"] in ("failed", "pending") for step in self.steps)

    def as_json(self) -> dict[str, Any]:
        """The report as the API answers it: the same for every repetition. Needs `run` loaded."""
        return {
            "run": str(self.run_id), "status": self.run.status, "steps": self.steps, "promoted": self.promoted,
            "waiting": self.waiting, "session": self.session, "exported_files": self.exported_files,
        }  # fmt: skip
