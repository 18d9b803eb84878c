"""Roles and what they allow; who is a member (SPEC 5)."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
from django.contrib.auth.models import Group

from governance.deciding.projects import create_project
from governance.models import ProjectUserGrant, User
from governance.people.policies import (
    Action,
    Member,
    Role,
    allowed,
    can,
    grant,
    grant_group,
    member,
    members,
    owned_projects,
    require,
    revoke,
    visible_projects,
)
from memory.actors import Human
from memory.errors import Conflict, DomainError, Invalid, NotFound, Refused
from memory.models import LedgerEvent, Project
from tests.conftest import NOW, Team, start_run
from tests.factories import ProjectFactory

pytestmark = pytest.mark.django_db

# SPEC 5, row by row.
TABLE: dict[str, set[str]] = {
    "owner": {"read", "record", "export", "import", "decide", "run_runs", "manage"},
    "contributor": {"read", "record", "export", "import"},
    "viewer": {"read"},
    "orchestrator": {"read", "run_runs", "export"},
    "stranger": set(),
    "worker run": {"read", "record", "export"},
    "coordinator run": {"read", "record", "export", "decide"},
    "superuser": {"read"},
    "nobody": set(),
}


def actor(team: Team, who: str) -> Any:
    if who.endswith(" run"):
        return start_run(team, role=who.removesuffix(" run"))
    if who == "superuser":
        User.objects.create_superuser("root")
        return Human("root")
    return Human(who)


@pytest.mark.parametrize("who", TABLE)
def test_each_role_may_do_exactly_what_the_table_says(team: Team, who: str) -> None:
    someone = actor(team, who)
    assert {action.value for action in allowed(someone, team.project.pk)} == TABLE[who]
    for action in Action:
        may = action.value in TABLE[who]
        assert can(someone, action, team.project) is may
        assert outcome(partial(require, someone, action, team.project)) == (
            "done" if may else "not_found" if not TABLE[who]
            else "decider_required" if action == Action.DECIDE else "role_required"
        )  # fmt: skip
    assert can(None, Action.READ, team.project) is False


@pytest.mark.parametrize("who", TABLE)
def test_nobody_may_do_anything_in_another_project(team: Team, who: str) -> None:
    other = ProjectFactory()
    looks = {Action.READ} if who == "superuser" else set()
    assert allowed(actor(team, who), other.pk) == looks


def test_one_sees_the_projects_one_is_in(team: Team) -> None:
    other = ProjectFactory()
    for who in ("owner", "contributor", "viewer", "orchestrator", "worker run", "coordinator run"):
        assert list(visible_projects(actor(team, who))) == [team.project]
    assert set(visible_projects(actor(team, "superuser"))) == {team.project, other}
    for who in ("stranger", "nobody"):
        assert list(visible_projects(Human(who))) == []
    assert list(owned_projects("owner")) == [team.project]
    assert list(owned_projects("contributor")) == []


def outcome(attempt: Callable[[], Any]) -> str:
    try:
        attempt()
    except DomainError as refusal:
        return refusal.code
    return "done"


def give(team: Team, username: str, role: str, by: Human | None = None) -> Member:
    return grant(project_id=team.project.pk, actor=by or team.owner, username=username, role=role, now=NOW)


def take(team: Team, username: str, by: Human | None = None) -> None:
    revoke(project_id=team.project.pk, actor=by or team.owner, username=username, now=NOW)


def roles(team: Team) -> dict[str, str]:
    return {found.name: found.role.value for found in members(team.project)}


def test_a_role_is_given_changed_and_taken_and_the_ledger_says_by_whom(team: Team) -> None:
    everyone = roles(team)
    assert give(team, "stranger", "viewer") == Member("stranger", Role.VIEWER)
    assert roles(team) == {**everyone, "stranger": "viewer"}
    give(team, "stranger", "contributor")
    assert member(team.project, "stranger") == Member("stranger", Role.CONTRIBUTOR)
    assert ProjectUserGrant.objects.filter(user__username="stranger").count() == 1
    take(team, "stranger")
    assert roles(team) == everyone
    with pytest.raises(NotFound):
        member(team.project, "stranger")
    told = LedgerEvent.objects.order_by("-number").values_list("action", "actor", "target", "before", "after")
    assert list(told[:3]) == [
        ("member.revoke", "owner", "member:stranger", '{"role":"contributor"}', "null"),
        ("member.grant", "owner", "member:stranger", '{"role":"viewer"}', '{"role":"contributor"}'),
        ("member.grant", "owner", "member:stranger", "null", '{"role":"viewer"}'),
    ]


def test_giving_the_role_one_has_changes_nothing(team: Team) -> None:
    events = LedgerEvent.objects.count()
    assert give(team, "viewer", "viewer") == Member("viewer", Role.VIEWER)
    assert LedgerEvent.objects.count() == events


def test_members_alter_no_context(team: Team) -> None:
    epoch = Project.objects.get().epoch
    give(team, "stranger", "owner")
    take(team, "stranger")
    assert Project.objects.get().epoch == epoch


@pytest.mark.parametrize(
    "who", ["contributor", "viewer", "orchestrator", "stranger", "superuser", "coordinator run"]
)
def test_only_an_owner_manages_members(team: Team, who: str) -> None:
    someone = actor(team, who)
    expected = "not_found" if who == "stranger" else "role_required"
    before = roles(team), LedgerEvent.objects.count()
    group = Group.objects.create(name="everyone")
    assert outcome(lambda: give(team, "stranger", "owner", someone)) == expected
    assert outcome(lambda: take(team, "viewer", someone)) == expected
    assert outcome(lambda: grant_group(project_id=team.project.pk, actor=someone, group=group, role="owner", now=NOW)) == expected  # fmt: skip
    assert (roles(team), LedgerEvent.objects.count()) == before


def test_the_last_owner_stays(team: Team) -> None:
    events = LedgerEvent.objects.count()
    for leave in (lambda: take(team, "owner"), lambda: give(team, "owner", "contributor")):
        with pytest.raises(Conflict) as caught:
            leave()
        assert caught.value.code == "last_owner"
    assert (roles(team)["owner"], LedgerEvent.objects.count()) == ("owner", events)
    give(team, "stranger", "owner")
    take(team, "owner")
    assert outcome(lambda: take(team, "stranger", Human("stranger"))) == "last_owner"


def test_an_owner_who_cannot_sign_in_is_no_owner(team: Team) -> None:
    give(team, "stranger", "owner")
    User.objects.filter(username="stranger").update(is_active=False)
    assert allowed(team.stranger, team.project.pk) == frozenset()
    assert outcome(lambda: take(team, "owner")) == "last_owner"


def test_unknown_people_and_roles_are_named(team: Team) -> None:
    for username, role, field in (("nobody", "viewer", "username"), ("stranger", "admin", "role"), ("stranger", "", "role")):  # fmt: skip
        with pytest.raises(Invalid) as caught:
            give(team, username, role)
        assert list(caught.value.errors) == [field]
    for username in ("stranger", "nobody"):
        assert outcome(partial(take, team, username)) == "not_found"


# Groups


@pytest.fixture
def group(team: Team) -> Group:
    group = Group.objects.create(name="reviewers")
    User.objects.get(username="stranger").groups.add(group)
    return group


def give_group(team: Team, group: Group, role: str | None, by: Human | None = None) -> None:
    grant_group(project_id=team.project.pk, actor=by or team.owner, group=group, role=role, now=NOW)


def test_a_groups_role_is_its_members(team: Team, group: Group) -> None:
    give_group(team, group, "owner")
    assert can(team.stranger, Action.DECIDE, team.project) is True
    assert list(visible_projects(team.stranger)) == list(owned_projects("stranger")) == [team.project]
    assert Member("reviewers", Role.OWNER, is_group=True) in members(team.project)
    give_group(team, group, "viewer")
    assert allowed(team.stranger, team.project.pk) == {Action.READ}
    give_group(team, group, None)
    assert allowed(team.stranger, team.project.pk) == frozenset()
    assert LedgerEvent.objects.filter(target="group:reviewers").count() == 3


def test_roles_add_up(team: Team, group: Group) -> None:
    User.objects.get(username="orchestrator").groups.add(group)
    give_group(team, group, "contributor")
    assert allowed(team.orchestrator, team.project.pk) == {
        Action.READ, Action.RECORD, Action.EXPORT, Action.IMPORT, Action.RUN_RUNS,
    }  # fmt: skip


def test_an_owning_group_counts_as_owner_while_it_has_somebody(team: Team, group: Group) -> None:
    give_group(team, group, "owner")
    take(team, "owner")
    assert outcome(lambda: give_group(team, group, None, team.stranger)) == "last_owner"
    assert outcome(lambda: give_group(team, group, "viewer", team.stranger)) == "last_owner"
    assert can(team.stranger, Action.MANAGE, team.project) is True


def test_an_empty_group_owns_nothing(team: Team) -> None:
    give_group(team, Group.objects.create(name="empty"), "owner")
    assert outcome(lambda: take(team, "owner")) == "last_owner"


def test_a_group_that_has_no_role_changes_nothing_when_it_is_taken(team: Team, group: Group) -> None:
    events = LedgerEvent.objects.count()
    give_group(team, group, None)
    assert LedgerEvent.objects.count() == events
    with pytest.raises(Invalid):
        give_group(team, group, "admin")


def test_a_role_may_be_asked_in_a_constant_number_of_queries(
    team: Team, django_assert_num_queries: Any
) -> None:
    for n in range(5):
        create_project(actor=team.owner, name=f"P{n}", slug=f"p-{n}", now=NOW)
    with django_assert_num_queries(1):
        assert Action.MANAGE in allowed(team.owner, team.project.pk)
    run = start_run(team)
    with django_assert_num_queries(0):
        assert Action.RECORD in allowed(run, team.project.pk)


def test_a_refusal_says_which_role_is_missing_and_never_that_a_row_exists(team: Team) -> None:
    with pytest.raises(Refused, match="role"):
        give(team, "stranger", "viewer", team.viewer)
    with pytest.raises(NotFound, match=r"^Not found\.$"):
        give(team, "stranger", "viewer", team.stranger)
