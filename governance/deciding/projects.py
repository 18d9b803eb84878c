"""Making projects and changing their name and policy (SPEC 4, Policy; SPEC 7, projects)."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any
from uuid import UUID

from django.db import IntegrityError

from governance.models import User
from governance.people import policies
from governance.people.policies import Action, Role
from memory.actors import Human
from memory.enums import Overflow, TrustPolicy
from memory.errors import Conflict, Invalid
from memory.ledger.changes import change, founding
from memory.models import Project
from memory.values import Cleaner, clean_slug, clean_title, looks_like_uuid, one_of

MAX_ITEMS = 10_000
MAX_TOKENS = 1_000_000


def create_project(
    *, actor: Human, name: str, slug: str, policy: Mapping[str, Any] | None = None, now: datetime
) -> Project:
    """A new project; its creator becomes owner (SPEC 7). Raises Invalid, Conflict when the slug is taken."""
    with Cleaner() as clean:
        values = {
            "name": clean("name", clean_title, name),
            "slug": clean("slug", clean_project_slug, slug),
            **_policy(clean, policy or {}),
        }
    project = Project(created_at=now, **values)
    try:
        with founding(project, actor, now) as opened:
            policies.put_grant(opened, actor.username, Role.OWNER)
    except IntegrityError as taken:
        existing = Project.objects.filter(slug=values["slug"]).exists()
        if not existing or not User.objects.filter(username=actor.username).exists():
            raise
        raise Conflict("A project with this slug exists.") from taken
    return project


def update_project(
    *,
    project_id: UUID,
    actor: Human,
    name: str | None = None,
    slug: str | None = None,
    policy: Mapping[str, Any] | None = None,
    now: datetime,
) -> Project:
    """Change a project's name, slug or policy; None leaves it. Raises Invalid, NotFound, Refused, Conflict."""
    with Cleaner() as clean:
        values = _policy(clean, policy or {})
        if name is not None:
            values["name"] = clean("name", clean_title, name)
        if slug is not None:
            values["slug"] = clean("slug", clean_project_slug, slug)
    with change(project_id, actor, now) as opened:
        policies.require(actor, Action.MANAGE, opened.project)
        project = opened.project
        values = {field: value for field, value in values.items() if getattr(project, field) != value}
        if "slug" in values and Project.objects.filter(slug=values["slug"]).exists():
            raise Conflict("A project with this slug exists.")
        if values:
            opened.update(project, "project.update", values)
        return project


def clean_project_slug(value: str) -> str:
    """A slug that cannot be taken for a project's UUID. Raises ValueError."""
    slug = clean_slug(value)
    if looks_like_uuid(slug):
        raise ValueError("A slug may not look like a UUID.")
    return slug


def _policy(clean: Cleaner, policy: Mapping[str, Any]) -> dict[str, Any]:
    cleaners: dict[str, Any] = {
        "max_items": _between(0, MAX_ITEMS),
        "max_tokens": _between(1, MAX_TOKENS),
        "on_overflow": one_of(Overflow),
        "trust": one_of(TrustPolicy),
    }
    if unknown := sorted(set(policy) - set(cleaners)):
        raise Invalid({f"policy.{field}": ["Unknown field."] for field in unknown})
    return {field: clean(f"policy.{field}", cleaners[field], value) for field, value in policy.items()}


def _between(least: int, most: int) -> Any:
    def clean(value: int) -> int:
        if not least <= value <= most:
            raise ValueError(f"Between {least} and {most}.")
        return value

    return clean
