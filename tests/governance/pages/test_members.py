"""Members: who has which role, given and taken away by owners alone, and never the last one's (SPEC 5; SPEC 9, Members)."""

from __future__ import annotations

import re
from typing import Any

import pytest
from django.contrib.auth.models import Group
from django.test import Client

from governance.models import User
from governance.people.policies import Member, Role, grant_group, members
from memory.models import LedgerEvent
from tests.conftest import NOW, Team
from tests.governance.pages.asking import MEMBERS, READERS, answers, statements
from tests.governance.pages.conftest import HTMX, Browsers

pytestmark = pytest.mark.django_db

PAGE = "/projects/lighthouse/members"
MANAGERS = [302, 403, 403, 403, 404, 403, 302]


def give(client: Client, name: str, role: str, kind: str = "user", **more: Any) -> Any:
    return client.post(f"{PAGE}/grant", {"kind": kind, "name": name, "role": role}, **more)


def take(client: Client, name: str, kind: str = "user", **more: Any) -> Any:
    return client.post(f"{PAGE}/revoke", {"kind": kind, "name": name}, **more)


def roles(team: Team) -> dict[str, str]:
    return {member.name: member.role.value for member in members(team.project)}


def test_every_member_sees_who_has_which_role(team: Team, browsers: Browsers) -> None:
    assert answers(browsers, PAGE) == MEMBERS
    page = browsers.viewer.get(PAGE).content.decode()
    assert re.findall(r'badge--plain">(owner|contributor|viewer|orchestrator)<', page) == [
        "contributor", "orchestrator", "owner", "viewer",
    ]  # fmt: skip
    assert "<form" not in page.partition('id="main"')[2]


def test_a_member_is_added_changed_and_removed(team: Team, owner: Client) -> None:
    assert b"stranger is viewer now." in give(owner, "stranger", "viewer", follow=True).content
    assert b"stranger is contributor now." in give(owner, "stranger", "contributor", follow=True).content
    assert roles(team)["stranger"] == "contributor"
    assert b"stranger has no role of their own" in take(owner, "stranger", follow=True).content
    assert "stranger" not in roles(team)
    events = LedgerEvent.objects.filter(target="member:stranger").order_by("number")
    assert list(events.values_list("action", "actor")) == [
        ("member.grant", "owner"), ("member.grant", "owner"), ("member.revoke", "owner"),
    ]  # fmt: skip


@pytest.mark.parametrize("verb", ["grant", "revoke"])
def test_only_owners_manage(team: Team, browsers: Browsers, verb: str) -> None:
    found = []
    for name in READERS:
        User.objects.create_user(f"new-{name}")
        give(browsers.owner, f"new-{name}", "viewer")
        form = {"kind": "user", "name": f"new-{name}", "role": "orchestrator"}
        assert getattr(browsers, name).get(f"{PAGE}/{verb}").status_code in (405, 302)
        found.append(getattr(browsers, name).post(f"{PAGE}/{verb}", form).status_code)
    assert found == MANAGERS


@pytest.mark.parametrize("way", ["grant", "revoke"])
def test_the_last_owner_stays_one_and_the_page_says_why(team: Team, owner: Client, way: str) -> None:
    response = give(owner, "owner", "viewer") if way == "grant" else take(owner, "owner")
    assert response.status_code == 409
    assert b"Nothing was done: a project keeps at least one owner." in response.content
    assert roles(team)["owner"] == "owner"


def test_an_owner_leaves_when_there_is_another(team: Team, owner: Client) -> None:
    give(owner, "stranger", "owner")
    response = take(owner, "owner", follow=True)
    assert response.redirect_chain == [("/", 302)]
    assert roles(team) == {
        "contributor": "contributor", "orchestrator": "orchestrator", "stranger": "owner", "viewer": "viewer",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("kind", "name", "role", "says"),
    [
        ("user", "nobody", "viewer", "There is no such user."),
        ("group", "nobody", "viewer", "There is no such group."),
        ("user", "stranger", "king", "Select a valid choice"),
        ("user", "", "viewer", "This field is required."),
        ("robot", "stranger", "viewer", "Select a valid choice"),
    ],
)
def test_what_cannot_be_given_says_why(
    team: Team, owner: Client, kind: str, name: str, role: str, says: str
) -> None:
    before = roles(team)
    response = give(owner, name, role, kind)
    assert (response.status_code, says in response.content.decode()) == (422, True)
    assert roles(team) == before


def test_taking_what_nobody_has_says_so(team: Team, owner: Client) -> None:
    response = take(owner, "stranger")
    assert (response.status_code, b"This user has no role here." in response.content) == (422, True)


def test_a_group_gets_a_role_and_its_people_have_it(team: Team, browsers: Browsers) -> None:
    board = Group.objects.create(name="board")
    User.objects.get(username="stranger").groups.add(board)
    assert b"board is viewer now." in give(browsers.owner, "board", "viewer", "group", follow=True).content
    assert Member("board", Role.VIEWER, is_group=True) in members(team.project)
    page = browsers.stranger.get(PAGE).content.decode()
    assert re.search(r'board\s+<span class="badge badge--plain">group</span>.*stranger', page)
    assert take(browsers.owner, "board", "group").status_code == 302
    assert browsers.stranger.get(PAGE).status_code == 404


def test_somebody_who_was_shut_out_is_marked(team: Team, owner: Client) -> None:
    User.objects.filter(username="viewer").update(is_active=False)
    assert re.search(
        r'viewer\s+<span class="badge badge--retired">inactive', owner.get(PAGE).content.decode()
    )


def test_a_name_is_text(team: Team, owner: Client) -> None:
    group = Group.objects.create(name="<b>board</b>\u202e")
    grant_group(project_id=team.project.pk, actor=team.owner, group=group, role="viewer", now=NOW)
    page = owner.get(PAGE).content.decode()
    assert "&lt;b&gt;board&lt;/b&gt;" in page
    assert "<b>board" not in page


def test_three_more_members_make_the_same_statements(team: Team, owner: Client) -> None:
    board = Group.objects.create(name="board")
    give(owner, "board", "viewer", "group")
    before = statements(owner, PAGE)
    for number in range(3):
        user = User.objects.create_user(f"user-{number}")
        user.groups.add(board)
        give(owner, user.username, "viewer")
        give(owner, Group.objects.create(name=f"group-{number}").name, "viewer", "group")
    assert statements(owner, PAGE) == before


def test_htmx_gets_the_list_alone(team: Team, owner: Client) -> None:
    page = owner.get(PAGE, headers=HTMX).content
    assert page.strip().startswith(b'<div id="results">')
