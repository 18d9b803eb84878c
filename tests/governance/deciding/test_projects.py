"""Making projects, and their policy (SPEC 4, Policy; SPEC 7, projects)."""

from __future__ import annotations

import uuid
from typing import Any

import pytest

from governance.deciding.projects import create_project, update_project
from governance.models import User
from governance.people.policies import Member, Role, grant, members
from memory.actors import Human
from memory.errors import Conflict, DomainError, Invalid, NotFound
from memory.ledger.changes import state_of
from memory.ledger.verification import verify
from memory.models import LedgerEvent, Project
from tests.conftest import NOW, Team, start_run
from tests.factories import ProjectFactory

pytestmark = pytest.mark.django_db

POLICY = {"max_items": 5, "max_tokens": 500, "on_overflow": "fail", "trust": "strict"}


def update(team: Team, actor: Any = None, **values: Any) -> Project:
    return update_project(project_id=team.project.pk, actor=actor or team.owner, now=NOW, **values)


def test_a_new_project_belongs_to_its_creator_and_has_the_default_policy(db: None) -> None:
    User.objects.create_user("ana")
    project = create_project(actor=Human("ana"), name=" Lighthouse ", slug=" lighthouse ", now=NOW)
    assert state_of(project) == state_of(Project.objects.get()) == {
        "slug": "lighthouse", "name": "Lighthouse", "created_at": "2026-12-01T09:00:00.000000+00:00", "max_items": 20,
        "max_tokens": 8000, "on_overflow": "include", "trust": "standard", "workspace": "",
    }  # fmt: skip
    assert members(project) == [Member("ana", Role.OWNER)]
    events = LedgerEvent.objects.order_by("number").values_list("number", "action", "actor")
    assert list(events) == [(1, "project.create", "ana"), (2, "member.grant", "ana")]
    assert verify(Project.objects.get()).valid is True


def test_a_project_may_begin_with_a_policy_of_its_own(db: None) -> None:
    User.objects.create_user("ana")
    project = create_project(actor=Human("ana"), name="P", slug="p", policy=POLICY, now=NOW)
    assert {field: getattr(project, field) for field in POLICY} == POLICY


WRONG = [
    ({"name": ""}, "name"),
    ({"name": "a\nb"}, "name"),
    ({"name": "x" * 301}, "name"),
    ({"slug": "Not Kebab"}, "slug"),
    ({"slug": ""}, "slug"),
    ({"slug": "x" * 121}, "slug"),
    ({"slug": str(uuid.UUID(int=1))}, "slug"),
    ({"slug": uuid.UUID(int=10**36).hex}, "slug"),
    ({"policy": {"max_items": -1}}, "policy.max_items"),
    ({"policy": {"max_items": 10_001}}, "policy.max_items"),
    ({"policy": {"max_tokens": 0}}, "policy.max_tokens"),
    ({"policy": {"max_tokens": 1_000_001}}, "policy.max_tokens"),
    ({"policy": {"on_overflow": "drop"}}, "policy.on_overflow"),
    ({"policy": {"trust": "blind"}}, "policy.trust"),
    ({"policy": {"epoch": 1}}, "policy.epoch"),
]


@pytest.mark.parametrize(("values", "field"), WRONG)
def test_a_wrong_field_is_named_and_nothing_is_written(
    team: Team, values: dict[str, Any], field: str
) -> None:
    before = LedgerEvent.objects.count()
    with pytest.raises(Invalid) as caught:
        create_project(actor=team.owner, now=NOW, **{"name": "P", "slug": "p", **values})
    assert list(caught.value.errors) == [field]
    with pytest.raises(Invalid) as caught:
        update(team, **values)
    assert list(caught.value.errors) == [field]
    assert (Project.objects.count(), LedgerEvent.objects.count()) == (1, before)


def test_a_slug_is_taken_once(team: Team) -> None:
    with pytest.raises(Conflict):
        create_project(actor=team.stranger, name="Mine", slug="lighthouse", now=NOW)
    ProjectFactory(slug="other")
    with pytest.raises(Conflict):
        update(team, slug="other")
    assert Project.objects.get(pk=team.project.pk).slug == "lighthouse"
    assert Project.objects.count() == 2


def test_a_creator_nobody_knows_makes_nothing(db: None) -> None:
    with pytest.raises(DomainError):
        create_project(actor=Human("nobody"), name="P", slug="p", now=NOW)
    assert not Project.objects.exists()
    assert not LedgerEvent.objects.exists()


def test_an_owner_changes_name_slug_and_policy_and_the_epoch_rises(team: Team) -> None:
    project = update(team, name="Beacon", slug="beacon", policy=POLICY)
    stored = Project.objects.get()
    assert state_of(project) == state_of(stored)
    assert (stored.name, stored.slug, {field: getattr(stored, field) for field in POLICY}) == (
        "Beacon",
        "beacon",
        POLICY,
    )
    assert stored.epoch == team.project.epoch + 1
    assert verify(stored).valid is True


def test_a_change_to_what_is_there_changes_nothing(team: Team) -> None:
    events = LedgerEvent.objects.count()
    update(team, name="Lighthouse", slug="lighthouse", policy={"max_items": 20})
    update(team)
    assert (LedgerEvent.objects.count(), Project.objects.get().epoch) == (events, team.project.epoch)


@pytest.mark.parametrize(
    ("who", "code"),
    [("contributor", "role_required"), ("viewer", "role_required"), ("orchestrator", "role_required"), ("stranger", "not_found")],
)  # fmt: skip
def test_only_an_owner_changes_a_project(team: Team, who: str, code: str) -> None:
    with pytest.raises(DomainError) as caught:
        update(team, getattr(team, who), policy={"max_tokens": 1})
    assert caught.value.code == code
    assert Project.objects.get().max_tokens == 8000


def test_a_coordinator_does_not_set_the_policy_it_works_under(team: Team) -> None:
    with pytest.raises(DomainError) as caught:
        update(team, start_run(team, role="coordinator"), policy={"max_tokens": 1})
    assert caught.value.code == "role_required"


def test_a_project_is_found_by_id_and_by_slug_and_by_nothing_like_them(team: Team) -> None:
    pk = team.project.pk
    for reference in (str(pk), pk.hex, str(pk).upper(), "lighthouse"):
        assert Project.objects.named(reference).get() == team.project
    for reference in ("", "LIGHTHOUSE", "light", "lighthous_", "%", str(uuid.uuid4()), str(pk)[:-1]):
        assert not Project.objects.named(reference).exists()


def test_a_project_that_is_not_there_is_not_found(team: Team) -> None:
    with pytest.raises(NotFound):
        update_project(project_id=uuid.uuid4(), actor=team.owner, name="X", now=NOW)
    with pytest.raises(NotFound):
        grant(project_id=uuid.uuid4(), actor=team.owner, username="viewer", role="viewer", now=NOW)
