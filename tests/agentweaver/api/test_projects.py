"""/projects and /members over HTTP (SPEC 5 and 7)."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from memory.models import Project
from tests.agentweaver.api.conftest import Caller, errors, problem
from tests.conftest import Team


def test_whoever_makes_a_project_owns_it(as_person: Callable[[str], Caller]) -> None:
    stranger = as_person("stranger")
    made = stranger.post(
        "/api/projects", {"name": " Harbour ", "slug": "harbour", "policy": {"max_items": 5}}
    )
    body = made.json()
    assert (made.status_code, made["Location"]) == (201, f"/api/projects/{body['id']}")
    assert {k: body[k] for k in ("name", "slug", "policy")} == {
        "name": "Harbour",
        "slug": "harbour",
        "policy": {"max_items": 5, "max_tokens": 8000, "on_overflow": "include", "trust": "standard"},
    }
    members = stranger.get("/api/projects/harbour/members").json()["items"]
    assert members == [{"username": "stranger", "group": None, "role": "owner"}]


def test_a_project_is_found_by_uuid_in_any_form_and_by_slug(team: Team, owner: Caller) -> None:
    uuid = str(team.project.pk)
    for reference in (uuid, uuid.upper(), uuid.replace("-", ""), "lighthouse"):
        assert owner.get(f"/api/projects/{reference}").json()["id"] == uuid
    assert problem(owner.get("/api/projects/Lighthouse")) == (404, "not_found")


def test_a_slug_is_taken_once_and_never_looks_like_a_uuid(team: Team, owner: Caller) -> None:
    taken = owner.post("/api/projects", {"name": "N", "slug": "lighthouse"})
    assert problem(taken) == (409, "conflict")
    for slug in ("a b", "Upper", "-a", "a" * 121, str(team.project.pk), ""):
        assert errors(owner.post("/api/projects", {"name": "N", "slug": slug})).keys() == {"slug"}
    assert Project.objects.count() == 1


@pytest.mark.parametrize(
    ("policy", "named"),
    [
        ({"max_items": -1}, "policy.max_items"), ({"max_items": True}, "policy.max_items"),
        ({"max_tokens": 0}, "policy.max_tokens"), ({"on_overflow": "drop"}, "policy.on_overflow"),
        ({"trust": 1}, "policy.trust"), ({"nonsense": 1}, "policy.nonsense"), ([], "policy"), (None, "policy"),
    ],
)  # fmt: skip
def test_a_wrong_policy_is_named_by_its_field(owner: Caller, policy: object, named: str) -> None:
    assert errors(owner.patch("", {"policy": policy})).keys() == {named}


def test_a_changed_policy_raises_the_epoch_and_an_equal_one_does_not(owner: Caller) -> None:
    before = owner.get().json()
    changed = owner.patch("", {"policy": {"trust": "strict"}}).json()
    assert (changed["policy"]["trust"], changed["epoch"]) == ("strict", before["epoch"] + 1)
    assert owner.patch("", {"policy": {"trust": "strict"}, "name": "Lighthouse"}).json() == changed


def test_roles_are_given_replaced_and_taken(owner: Caller, as_person: Callable[[str], Caller]) -> None:
    stranger = as_person("stranger")
    assert problem(stranger.get()) == (404, "not_found")
    assert owner.put("members/stranger", {"role": "viewer"}).json() == {
        "username": "stranger", "group": None, "role": "viewer",
    }  # fmt: skip
    assert stranger.get().status_code == 200
    owner.put("members/stranger", {"role": "contributor"})
    assert owner.get("members/stranger").json()["role"] == "contributor"
    gone = owner("DELETE", "members/stranger")
    assert (gone.status_code, gone.content) == (204, b"")
    assert problem(stranger.get()) == (404, "not_found")
    assert problem(owner("DELETE", "members/stranger")) == (404, "not_found")


def test_the_last_owner_cannot_be_removed_or_demoted(owner: Caller) -> None:
    assert problem(owner("DELETE", "members/owner")) == (409, "last_owner")
    assert problem(owner.put("members/owner", {"role": "viewer"})) == (409, "last_owner")
    assert owner.put("members/owner", {"role": "owner"}).status_code == 200
    owner.put("members/stranger", {"role": "owner"})
    assert owner("DELETE", "members/owner").status_code == 204
    assert problem(owner.get()) == (404, "not_found")


def test_a_member_nobody_knows_and_a_role_nobody_knows(owner: Caller) -> None:
    assert errors(owner.put("members/nobody", {"role": "viewer"})).keys() == {"username"}
    assert errors(owner.put("members/viewer", {"role": "admin"})).keys() == {"role"}
    assert errors(owner.put("members/viewer", {"role": True})).keys() == {"role"}
    for name in ("nobody", "a%00b", "x" * 200, "run:1"):
        assert problem(owner.get(f"members/{name}")) == (404, "not_found")
    assert problem(owner.put("members/a%00b", {"role": "viewer"})) == (404, "not_found")
