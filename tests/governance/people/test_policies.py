"""The whole authority table: as a literal, as the policies say it, and as real callers get it (SPEC 5)."""

from __future__ import annotations

from datetime import timedelta
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.models import Group
from django.core.management import call_command

from governance.deciding.projects import create_project
from governance.deciding.scribe import complete_run
from governance.models import User
from governance.people import policies
from governance.people.authority import ASKS, BUILD_OWN, NOTHING, YES, Ask, Caller, Of, table
from governance.people.credentials import (
    issue_personal_token,
    issue_run_credential,
    revoke_personal_token,
    verify,
)
from governance.people.policies import (
    Action,
    Member,
    Role,
    grant,
    grant_group,
    member,
    members,
    revoke,
    roles_of,
    visible_projects,
)
from memory.actors import Actor, Human, VerifiedRun
from memory.errors import Conflict, CredentialRefused, DomainError, Invalid, NotFound, Refused
from memory.models import LedgerEvent, Project, Run
from memory.recording import record_memory
from tests.conftest import NOW, Team, start_run

pytestmark = pytest.mark.django_db

NEEDS_ROLE = "403 role_required"
DECIDER = "403 decider_required"
MISMATCH = "403 agent_mismatch"
HIDDEN = "404 not_found"

PROVEN = [
    Caller.OWNER, Caller.CONTRIBUTOR, Caller.VIEWER, Caller.ORCHESTRATOR, Caller.STRANGER, Caller.SUPERUSER,
    Caller.WORKER, Caller.COORDINATOR, Caller.ELSEWHERE,
]  # fmt: skip
# What is asked, then the callers in that order. The contract in one place: change it only with SPEC 5.
EXPECTED = [
    ("read", YES, YES, YES, YES, HIDDEN, YES, YES, YES, HIDDEN),
    ("record own", YES, YES, NEEDS_ROLE, NEEDS_ROLE, HIDDEN, NEEDS_ROLE, YES, YES, HIDDEN),
    ("record another's", YES, YES, NEEDS_ROLE, NEEDS_ROLE, HIDDEN, NEEDS_ROLE, MISMATCH, MISMATCH, HIDDEN),
    ("export", YES, YES, NEEDS_ROLE, YES, HIDDEN, NEEDS_ROLE, YES, YES, HIDDEN),
    ("import", YES, YES, NEEDS_ROLE, NEEDS_ROLE, HIDDEN, NEEDS_ROLE, NEEDS_ROLE, NEEDS_ROLE, HIDDEN),
    ("decide", YES, DECIDER, DECIDER, DECIDER, HIDDEN, DECIDER, DECIDER, YES, HIDDEN),
    ("run_runs another's", YES, NEEDS_ROLE, NEEDS_ROLE, YES, HIDDEN, NEEDS_ROLE, NEEDS_ROLE, NEEDS_ROLE, HIDDEN),
    ("run_runs own", NOTHING, NOTHING, NOTHING, NOTHING, NOTHING, NOTHING, YES, YES, HIDDEN),
    ("manage", YES, NEEDS_ROLE, NEEDS_ROLE, NEEDS_ROLE, HIDDEN, NEEDS_ROLE, NEEDS_ROLE, NEEDS_ROLE, HIDDEN),
]  # fmt: skip
UNPROVEN = {
    Caller.ENDED: "401 run_ended",
    Caller.REVOKED: "401 invalid_credential",
    Caller.EXPIRED: "401 invalid_credential",
    Caller.ANONYMOUS: "401 not_authenticated",
}


def expected() -> dict[str, dict[Caller, str]]:
    return {name: {**dict(zip(PROVEN, cells, strict=True)), **UNPROVEN} for name, *cells in EXPECTED}


def short(ask: Ask) -> str:
    return f"{ask.action} {ask.of}".strip()


def test_the_policies_say_what_the_contract_says() -> None:
    assert {short(ask): cells for ask, cells in table().items()} == expected()


def test_every_action_is_in_the_table() -> None:
    assert {ask.action for ask in ASKS} == set(Action)


# The same table, asked by real callers with real credentials


@pytest.fixture
def credentials(team: Team) -> dict[Caller, str]:
    """A token of every caller in the table, made the way such a token is made."""
    User.objects.create_superuser("root")
    tokens = {
        Caller(name): token_of(name)
        for name in ("owner", "contributor", "viewer", "orchestrator", "stranger")
    }
    worker, coordinator, ended = (
        start_run(team, role=role) for role in ("worker", "coordinator", "coordinator")
    )
    other = create_project(actor=team.owner, name="Other", slug="other", now=NOW)
    elsewhere = start_run(Team(other, *(team.owner,) * 5), role="coordinator")
    tokens |= {
        Caller.SUPERUSER: token_of("root"), Caller.WORKER: token_of_run(worker), Caller.COORDINATOR: token_of_run(coordinator),
        Caller.ELSEWHERE: token_of_run(elsewhere), Caller.ENDED: token_of_run(ended),
        Caller.REVOKED: token_of("owner", revoked=True), Caller.EXPIRED: token_of("owner", days=1),
        Caller.ANONYMOUS: "",
    }  # fmt: skip
    complete_run(
        project_id=team.project.pk, actor=team.orchestrator, run_id=ended.run_id, status="completed", now=NOW
    )
    return tokens


def token_of(username: str, *, revoked: bool = False, days: int | None = None) -> str:
    user = User.objects.get(username=username)
    issued = issue_personal_token(user, days=days, now=NOW)
    if revoked:
        revoke_personal_token(user, issued.credential.pk, NOW)
    return issued.token


def token_of_run(run: VerifiedRun) -> str:
    return issue_run_credential(Run.objects.get(pk=run.run_id), NOW + timedelta(days=1)).token


def answer_to(token: str, project: Project, ask: Ask) -> str:
    """What an edge does: resolve the actor, ask the policy, call the verb."""
    try:
        if not token:
            raise CredentialRefused("not_authenticated", "")
        actor = verify(token, NOW + timedelta(days=1))
        if not (ask == BUILD_OWN and isinstance(actor, VerifiedRun) and actor.project_id == project.pk):
            policies.require(actor, ask.action, project)
        if ask.action == Action.RECORD:
            record(actor, project, "Ana" if ask.of == Of.OWN else "Bo")
    except DomainError as refused:
        status = {CredentialRefused: 401, Refused: 403, NotFound: 404}[type(refused)]
        return f"{status} {refused.code}"
    return YES


def record(actor: Actor, project: Project, agent_name: str) -> None:
    record_memory(
        project_id=project.pk, actor=actor, agent_name=agent_name, type="update", content="x", now=NOW
    )


def test_real_callers_get_what_the_table_says(team: Team, credentials: dict[Caller, str]) -> None:
    asked = {
        short(ask): {caller: answer_to(token, team.project, ask) for caller, token in credentials.items()}
        for ask in ASKS
    }
    wanted = expected()
    # A person's "own run" is nothing that can be asked; every run is another's to them.
    for caller in PROVEN[:6]:
        wanted["run_runs own"][caller] = wanted["run_runs another's"][caller]
    assert asked == wanted


def test_the_command_and_the_page_show_the_same_table() -> None:
    out = StringIO()
    call_command("authority", stdout=out)
    page = (Path(__file__).parents[3] / "docs" / "authority.md").read_text(encoding="utf-8")
    assert out.getvalue() in page
    assert out.getvalue().count("\n") == len(ASKS) + 2 + 3 + 2 + len(UNPROVEN)


# Grants


def give(team: Team, username: str, role: str, actor: Human | None = None) -> Member:
    return grant(project_id=team.project.pk, actor=actor or team.owner, username=username, role=role, now=NOW)


def take(team: Team, username: str) -> None:
    revoke(project_id=team.project.pk, actor=team.owner, username=username, now=NOW)


def test_a_grant_replaces_the_role_before_and_is_told_in_the_ledger(team: Team) -> None:
    assert give(team, "viewer", "contributor") == Member("viewer", Role.CONTRIBUTOR)
    assert roles_of("viewer", team.project.pk) == {Role.CONTRIBUTOR}
    event = LedgerEvent.objects.order_by("-number")[0]
    assert (event.action, event.actor, event.target, event.before, event.after) == (
        "member.grant", "owner", "member:viewer", '{"role":"viewer"}', '{"role":"contributor"}',
    )  # fmt: skip


def test_granting_the_same_role_again_changes_nothing(team: Team) -> None:
    events = LedgerEvent.objects.count()
    give(team, "viewer", "viewer")
    assert LedgerEvent.objects.count() == events


def test_a_revoked_member_is_a_stranger(team: Team) -> None:
    take(team, "viewer")
    with pytest.raises(NotFound):
        policies.require(team.viewer, Action.READ, team.project)
    with pytest.raises(NotFound):
        member(team.project, "viewer")
    with pytest.raises(NotFound):
        take(team, "viewer")


@pytest.mark.parametrize("name", ["contributor", "viewer", "orchestrator"])
def test_only_an_owner_manages_members(team: Team, name: str) -> None:
    with pytest.raises(Refused) as raised:
        give(team, "stranger", "owner", actor=getattr(team, name))
    assert raised.value.code == "role_required"
    assert roles_of("stranger", team.project.pk) == frozenset()


def test_nobody_makes_himself_a_member_of_what_he_cannot_see(team: Team) -> None:
    User.objects.create_superuser("root")
    with pytest.raises(NotFound):
        give(team, "stranger", "owner", actor=team.stranger)
    with pytest.raises(Refused):
        give(team, "root", "owner", actor=Human("root"))


def test_the_last_owner_stays(team: Team) -> None:
    for step in (lambda: give(team, "owner", "viewer"), lambda: take(team, "owner")):
        with pytest.raises(Conflict) as raised:
            step()
        assert raised.value.code == "last_owner"
    assert roles_of("owner", team.project.pk) == {Role.OWNER}
    give(team, "viewer", "owner")
    take(team, "owner")
    assert roles_of("viewer", team.project.pk) == {Role.OWNER}


def test_an_owner_who_cannot_sign_in_does_not_count(team: Team) -> None:
    give(team, "viewer", "owner")
    User.objects.filter(username="viewer").update(is_active=False)
    with pytest.raises(Conflict):
        take(team, "owner")
    assert roles_of("viewer", team.project.pk) == frozenset()
    with pytest.raises(NotFound):
        policies.require(Human("viewer"), Action.READ, team.project)


def test_a_group_gives_its_role_to_its_members_while_they_are_in_it(team: Team) -> None:
    group = Group.objects.create(name="deciders")
    common: dict[str, Any] = {"project_id": team.project.pk, "actor": team.owner, "group": group, "now": NOW}
    grant_group(**common, role="owner")
    user = User.objects.get(username="stranger")
    user.groups.add(group)
    assert policies.can(team.stranger, Action.DECIDE, team.project)
    assert Member("deciders", Role.OWNER, is_group=True) in members(team.project)
    take(team, "owner")
    user.groups.remove(group)
    assert not policies.can(team.stranger, Action.READ, team.project)
    user.groups.add(group)
    with pytest.raises(Conflict):
        grant_group(**{**common, "actor": team.stranger}, role=None)


def test_roles_add_up(team: Team) -> None:
    group = Group.objects.create(name="writers")
    grant_group(project_id=team.project.pk, actor=team.owner, group=group, role="contributor", now=NOW)
    User.objects.get(username="orchestrator").groups.add(group)
    actions = policies.allowed(team.orchestrator, team.project.pk)
    assert actions == {Action.READ, Action.RECORD, Action.EXPORT, Action.IMPORT, Action.RUN_RUNS}


def test_an_unknown_role_or_user_is_refused(team: Team) -> None:
    for username, role in (("viewer", "king"), ("nobody", "viewer")):
        with pytest.raises(Invalid):
            give(team, username, role)


def test_what_one_sees_is_what_one_may_read(team: Team) -> None:
    other = create_project(actor=Human("stranger"), name="Other", slug="other", now=NOW)
    User.objects.create_superuser("root")
    seen = {
        name: set(visible_projects(Human(name)).values_list("slug", flat=True))
        for name in ("owner", "viewer", "stranger", "root", "nobody")
    }
    assert seen == {
        "owner": {"lighthouse"}, "viewer": {"lighthouse"}, "stranger": {"other"}, "root": {"lighthouse", "other"}, "nobody": set(),
    }  # fmt: skip
    run = start_run(team)
    assert list(visible_projects(run)) == [team.project]
    assert not policies.can(None, Action.READ, other)


def test_a_superuser_with_a_role_has_that_role_and_no_more(team: Team) -> None:
    User.objects.filter(username="contributor").update(is_superuser=True)
    with pytest.raises(Refused) as raised:
        policies.require(team.contributor, Action.DECIDE, team.project)
    assert raised.value.code == "decider_required"


def test_what_the_edges_ask_agrees_with_the_policies(team: Team) -> None:
    """By slug, by UUID and by run: `standing` and `standing_on_run` never differ from `allowed`."""
    User.objects.create_superuser("root")
    group = Group.objects.create(name="writers")
    grant_group(project_id=team.project.pk, actor=team.owner, group=group, role="contributor", now=NOW)
    User.objects.get(username="orchestrator").groups.add(group)
    User.objects.filter(username="viewer").update(is_active=False)
    run = start_run(team)
    row = Run.objects.get(pk=run.run_id)
    callers: list[Actor] = [
        *(Human(n) for n in ("owner", "contributor", "viewer", "orchestrator", "stranger", "root")),
        run,
    ]
    for caller in callers:
        actions = policies.allowed(caller, team.project.pk)
        for asked in (
            lambda caller=caller: policies.standing(caller, team.project.slug),
            lambda caller=caller: policies.standing_on_run(caller, str(team.project.pk), row.pk),
        ):
            if actions:
                assert asked()[1] == actions
            else:
                with pytest.raises(NotFound):
                    asked()
