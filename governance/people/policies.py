"""THE permission module (SPEC 5): who may do what, as data, and the only place that speaks to guardian's grants.

Grants exist on projects only; rows inherit by belonging to one. A superuser may look at everything and decide nothing. Hidden is
NotFound, forbidden is Refused with a code.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from functools import cache
from types import MappingProxyType
from uuid import UUID

from django.contrib.auth.models import Group, Permission
from django.db.models import QuerySet, Value

from governance.models import ProjectGroupGrant, ProjectUserGrant, User
from memory.actors import Actor, VerifiedRun
from memory.enums import RunRole
from memory.errors import Conflict, Invalid, NotFound, Refused
from memory.ledger.changes import Change, change
from memory.models import Project, Run
from memory.replica import PRIMARY
from memory.statements import Statement, prepared_key, run, union_all


class Role(StrEnum):
    """A grant on a project; the value is the codename of the permission."""

    OWNER = "owner"
    CONTRIBUTOR = "contributor"
    VIEWER = "viewer"
    ORCHESTRATOR = "orchestrator"


class Action(StrEnum):
    """What can be asked of a project. Every route names exactly one."""

    READ = "read"
    RECORD = "record"
    """Record memory, submit an entry, update the session."""
    EXPORT = "export"
    IMPORT = "import"
    DECIDE = "decide"
    """Merge, reject, approve, refuse, edit and retire: what gives or takes authority."""
    RUN_RUNS = "run_runs"
    """Register and finish runs, build any run's context."""
    MANAGE = "manage"
    """Members, policy, credentials of runs."""


_EVERYBODY = frozenset({Action.READ})

ROLE_ACTIONS: Mapping[Role, frozenset[Action]] = MappingProxyType(
    {
        Role.OWNER: frozenset(Action),
        Role.CONTRIBUTOR: _EVERYBODY | {Action.RECORD, Action.EXPORT, Action.IMPORT},
        Role.VIEWER: _EVERYBODY,
        Role.ORCHESTRATOR: _EVERYBODY | {Action.RUN_RUNS, Action.EXPORT},
    }
)

RUN_ACTIONS: Mapping[RunRole, frozenset[Action]] = MappingProxyType(
    {
        RunRole.WORKER: _EVERYBODY | {Action.RECORD, Action.EXPORT},
        RunRole.COORDINATOR: _EVERYBODY | {Action.RECORD, Action.EXPORT, Action.DECIDE},
    }
)

SUPERUSER_ACTIONS = _EVERYBODY
"""A superuser without a role may look, and nothing more (SPEC 5)."""


def allowed(actor: Actor, project_id: UUID) -> frozenset[Action]:
    """Everything the actor may do in the project; empty for a stranger. One query for a person, none for a run."""
    if isinstance(actor, VerifiedRun):
        return RUN_ACTIONS[actor.role] if actor.project_id == project_id else frozenset()
    found = _found_for(actor.username, project_id)
    granted = frozenset().union(*(ROLE_ACTIONS[Role(word)] for word in found - {_LOOKS}))
    return granted or (SUPERUSER_ACTIONS if _LOOKS in found else frozenset())


def roles_of(username: str, project_id: UUID) -> frozenset[Role]:
    """The roles of an active user in a project, direct and through groups."""
    return frozenset(Role(word) for word in _found_for(username, project_id) - {_LOOKS})


_LOOKS = "superuser"
"""Stands among the roles that were found for a superuser, who may look (SPEC 5), and nothing more."""

_ANY_PROJECT = UUID("00000000-feed-4000-8000-00000000feed")
_ANYBODY = "any user's name"


def _found_for(username: str, project_id: UUID) -> set[str]:
    """What the grants say of an active user in a project. One query, of the primary: what was taken away is gone at once."""
    asked = {prepared_key(PRIMARY, Project, _ANY_PROJECT): prepared_key(PRIMARY, Project, project_id)}
    return {word for (word,) in run(_grants_statement(), {**asked, _ANYBODY: username})}


@cache
def _grants_statement() -> Statement:
    """Asked with every request, so the ORM builds it once: that takes it longer than the database needs to answer."""
    return union_all(
        PRIMARY,
        (prepared_key(PRIMARY, Project, _ANY_PROJECT), _ANYBODY),
        ProjectUserGrant.objects.filter(
            content_object_id=_ANY_PROJECT, user__username=_ANYBODY, user__is_active=True
        ).values_list("permission__codename"),
        ProjectGroupGrant.objects.filter(
            content_object_id=_ANY_PROJECT, group__user__username=_ANYBODY, group__user__is_active=True
        ).values_list("permission__codename"),
        _superusers(_ANYBODY).values_list(Value(_LOOKS)),
    )


def _superusers(username: str) -> QuerySet[User]:
    return User.objects.filter(username=username, is_active=True, is_superuser=True)


def can(actor: Actor | None, action: Action, project: Project) -> bool:
    """Whether the actor may; nobody may do nothing."""
    return actor is not None and action in allowed(actor, project.pk)


def require(actor: Actor, action: Action, project: Project) -> None:
    """Raises NotFound for a stranger, Refused `decider_required` or `role_required` for a member without the right."""
    check(allowed(actor, project.pk), action)


def check(actions: frozenset[Action], action: Action) -> None:
    """`require` for actions already looked up."""
    if not actions:
        raise NotFound
    if action in actions:
        return
    if action == Action.DECIDE:
        raise Refused(
            "decider_required", "Only a project owner or a verified coordinator run may decide this."
        )
    raise Refused("role_required", f"Your role in this project does not allow this ({action}).")


# What a request names in its path: the row, and the caller's actions on it

_NOWHERE = UUID(int=0)
"""Asked about when there is no such project: a stranger's answer takes no longer for one that exists."""


def standing(actor: Actor, reference: str) -> tuple[Project, frozenset[Action]]:
    """The project with this UUID or slug, and what the actor may do there. Raises NotFound for a stranger. Two queries."""
    project = Project.objects.named(reference).first()
    actions = allowed(actor, project.pk if project is not None else _NOWHERE)
    if project is None or not actions:
        raise NotFound
    return project, actions


def standing_on_run(actor: Actor, reference: str, run_id: UUID) -> tuple[Run, frozenset[Action]]:
    """A run of that project with its agent and project, and what the actor may do there. Raises NotFound. Two queries."""
    runs = Run.objects.select_related("agent", "project").filter(
        pk=run_id, project__in=Project.objects.named(reference)
    )
    found = runs.first()
    actions = allowed(actor, found.project_id if found is not None else _NOWHERE)
    if found is None or not actions:
        raise NotFound
    return found, actions


def require_superuser(actor: Actor) -> None:
    """For what belongs to the whole installation and decides nothing. Raises NotFound for everybody else."""
    if isinstance(actor, VerifiedRun) or not _superusers(actor.username).exists():
        raise NotFound


def visible_projects(actor: Actor) -> QuerySet[Project]:
    """The projects the actor may read."""
    if isinstance(actor, VerifiedRun):
        return Project.objects.filter(pk=actor.project_id)
    if _superusers(actor.username).exists():
        return Project.objects.all()
    return Project.objects.filter(pk__in=_granted(actor.username))


def _granted(username: str, *roles: Role) -> QuerySet[ProjectUserGrant, UUID]:
    wanted = [str(role) for role in roles or tuple(Role)]
    direct = ProjectUserGrant.objects.filter(
        user__username=username, user__is_active=True, permission__codename__in=wanted
    ).values_list("content_object_id", flat=True)
    grouped = ProjectGroupGrant.objects.filter(
        group__user__username=username, group__user__is_active=True, permission__codename__in=wanted
    ).values_list("content_object_id", flat=True)
    return direct.union(grouped)


def owned_projects(username: str) -> QuerySet[Project]:
    """The projects in which the user decides."""
    return Project.objects.filter(pk__in=_granted(username, Role.OWNER))


# Members


@dataclass(frozen=True, slots=True)
class Member:
    """A user's or a group's role in a project."""

    name: str
    role: Role
    is_group: bool = False


def members(project: Project) -> list[Member]:
    """Everybody with a grant of their own: users first, then groups, each by name."""
    users = ProjectUserGrant.objects.filter(content_object=project).order_by("user__username")
    groups = ProjectGroupGrant.objects.filter(content_object=project).order_by("group__name")
    return [
        *(
            Member(name, Role(code))
            for name, code in users.values_list("user__username", "permission__codename")
        ),
        *(
            Member(name, Role(code), True)
            for name, code in groups.values_list("group__name", "permission__codename")
        ),
    ]


def member(project: Project, username: str) -> Member:
    """One user's own grant; raises NotFound."""
    codes = ProjectUserGrant.objects.filter(content_object=project, user__username=username)
    code = codes.values_list("permission__codename", flat=True).first()
    if code is None:
        raise NotFound
    return Member(username, Role(code))


def grant(*, project_id: UUID, actor: Actor, username: str, role: str, now: datetime) -> Member:
    """Give a user a role, replacing the one they had. Raises Invalid; Conflict `last_owner` when nobody would be left to decide."""
    wanted = _role(role)
    with change(project_id, actor, now) as opened:
        require(actor, Action.MANAGE, opened.project)
        return put_grant(opened, username, wanted)


def put_grant(opened: Change, username: str, role: Role) -> Member:
    """`grant` inside an open change, without asking who does it: for the creation of a project and for commands."""
    user = User.objects.filter(username=username).first()
    if user is None:
        raise Invalid({"username": ["There is no such user."]})
    old = ProjectUserGrant.objects.filter(content_object=opened.project, user=user)
    before = _codename(old)
    if before == role:
        return Member(username, role)
    ProjectUserGrant.objects.update_or_create(
        content_object=opened.project, user=user, defaults={"permission": _permission(role)}
    )
    if before == Role.OWNER:
        _require_an_owner(opened.project)
    opened.note("member.grant", f"member:{username}", _as_role(before), _as_role(role))
    return Member(username, role)


def revoke(*, project_id: UUID, actor: Actor, username: str, now: datetime) -> None:
    """Take a user's role away. Raises NotFound; Conflict `last_owner`."""
    with change(project_id, actor, now) as opened:
        require(actor, Action.MANAGE, opened.project)
        held = ProjectUserGrant.objects.filter(content_object=opened.project, user__username=username)
        before = _codename(held)
        if before is None:
            raise NotFound
        held.delete()
        if before == Role.OWNER:
            _require_an_owner(opened.project)
        opened.note("member.revoke", f"member:{username}", _as_role(before), None)


def grant_group(*, project_id: UUID, actor: Actor, group: Group, role: str | None, now: datetime) -> None:
    """Give a group's members a role, or take it away with None. Raises Invalid; Conflict `last_owner`."""
    wanted = _role(role) if role is not None else None
    with change(project_id, actor, now) as opened:
        require(actor, Action.MANAGE, opened.project)
        held = ProjectGroupGrant.objects.filter(content_object=opened.project, group=group)
        before = _codename(held)
        if wanted is None:
            held.delete()
        else:
            ProjectGroupGrant.objects.update_or_create(
                content_object=opened.project, group=group, defaults={"permission": _permission(wanted)}
            )
        if before == Role.OWNER:
            _require_an_owner(opened.project)
        if before != wanted:
            opened.note("member.grant", f"group:{group.name}", _as_role(before), _as_role(wanted))


def _role(role: str) -> Role:
    if role not in set(Role):
        raise Invalid({"role": [f"Must be one of: {', '.join(Role)}."]})
    return Role(role)


def _codename(grants: QuerySet[ProjectUserGrant] | QuerySet[ProjectGroupGrant]) -> str | None:
    return grants.values_list("permission__codename", flat=True).first()


def _as_role(role: str | None) -> dict[str, str] | None:
    return {"role": str(role)} if role is not None else None


def _permission(role: Role) -> Permission:
    return Permission.objects.get(
        content_type__app_label="memory", content_type__model="project", codename=str(role)
    )


def _require_an_owner(project: Project) -> None:
    """The last owner cannot be removed or demoted (SPEC 5)."""
    if not has_owner(project):
        raise Conflict("A project keeps at least one owner.", code="last_owner")


def has_owner(project: Project) -> bool:
    """Whether somebody active can decide in the project, directly or through a group."""
    users = User.objects.filter(is_active=True)
    owner = Role.OWNER.value
    direct = users.filter(
        projectusergrant__content_object=project, projectusergrant__permission__codename=owner
    )
    grouped = users.filter(
        groups__projectgroupgrant__content_object=project,
        groups__projectgroupgrant__permission__codename=owner,
    )
    return direct.exists() or grouped.exists()
