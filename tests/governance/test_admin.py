"""People, grants and credentials in the admin: users are managed, roles are not, credentials can only be taken away (SPEC 5 and 9)."""

from __future__ import annotations

import re
from typing import Any

import pytest
from axes.models import AccessAttempt, AccessLog
from django.apps import apps
from django.contrib import admin
from django.contrib.auth.models import Group
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from governance.deciding import scribe
from governance.models import (
    PersonalToken,
    ProjectGroupGrant,
    ProjectUserGrant,
    RunCredential,
    ScribeReport,
    User,
)
from governance.people.credentials import digest_of, issue_personal_token, issue_run_credential, verify
from governance.people.policies import grant_group, has_owner
from memory.errors import CredentialRefused
from memory.models import LedgerEvent, Run
from tests.conftest import NOW, Team, start_run

pytestmark = pytest.mark.django_db

BACKEND = "django.contrib.auth.backends.ModelBackend"
LOOKED_AT = (
    PersonalToken, ProjectGroupGrant, ProjectUserGrant, RunCredential, ScribeReport, AccessLog,
)  # fmt: skip
PASSWORD = "a-quite-long-passphrase-7"


@pytest.fixture
def root(db: None) -> Client:
    User.objects.create_superuser("root")
    return signed_in("root")


def signed_in(username: str) -> Client:
    client = Client()
    client.force_login(User.objects.get(username=username), backend=BACKEND)
    return client


def list_of(model: Any) -> str:
    return reverse(f"admin:{model._meta.app_label}_{model._meta.model_name}_changelist")


def page_of(row: Any) -> str:
    return f"{list_of(type(row))}{row.pk}/change/"


def fill(team: Team, number: int) -> None:
    """One more row of every table."""
    user = User.objects.create_user(f"user-{number}")
    issue_personal_token(user, name="laptop", now=NOW)
    group = Group.objects.create(name=f"board-{number}")
    user.groups.add(group)
    grant_group(project_id=team.project.pk, actor=team.owner, group=group, role="viewer", now=NOW)
    run = Run.objects.get(pk=start_run(team, f"Agent {number}").run_id)
    issue_run_credential(run, NOW)
    scribe.complete_run(
        project_id=team.project.pk, actor=team.orchestrator, run_id=run.pk, status="completed", summary="",
        end_session=False, exporter=scribe.no_workspace, now=NOW,
    )  # fmt: skip
    AccessLog.objects.create(username=user.username, ip_address="192.0.2.1")


@pytest.fixture
def rows(team: Team) -> Team:
    fill(team, 1)
    return team


def test_every_table_of_the_product_is_there() -> None:
    missing = [m for m in apps.get_app_config("governance").get_models() if not admin.site.is_registered(m)]
    assert missing == []


@pytest.mark.parametrize("model", [User, Group, *LOOKED_AT], ids=lambda model: model.__name__)
def test_a_superuser_opens_every_list_and_every_row(rows: Team, root: Client, model: Any) -> None:
    assert root.get(list_of(model)).status_code == 200
    assert root.get(page_of(model.objects.first())).status_code == 200


@pytest.mark.parametrize("model", LOOKED_AT, ids=lambda model: model.__name__)
def test_grants_and_credentials_are_neither_added_nor_changed_nor_deleted(
    rows: Team, root: Client, model: Any
) -> None:
    row = model.objects.first()
    stored = list(model.objects.values())
    answers = [
        root.post(f"{list_of(model)}add/", {"user": 1}).status_code,
        root.post(page_of(row), {"name": "changed"}).status_code,
        root.post(page_of(row).replace("/change/", "/delete/"), {"post": "yes"}).status_code,
    ]
    assert answers == [403, 403, 403]
    assert list(model.objects.values()) == stored


@pytest.mark.parametrize("model", [User, Group, *LOOKED_AT], ids=lambda model: model.__name__)
def test_a_list_asks_as_much_for_three_rows_as_for_one(team: Team, root: Client, model: Any) -> None:
    counts = []
    for more in ((1,), (2, 3)):
        for number in more:
            fill(team, number)
        root.get(list_of(model))
        with CaptureQueriesContext(connection) as caught:
            root.get(list_of(model))
        counts.append(len(caught))
    assert counts[0] == counts[1]


# The door


def test_the_admin_has_the_log_in_of_the_product(client: Client) -> None:
    """One log-in, so its limits on failed attempts hold here too."""
    for address in ("/admin/", "/admin/memory/"):
        response: Any = client.get(address, follow=True)
        assert response.redirect_chain[-1] == (f"/account/login?next={address}", 302)
    assert client.post("/admin/login/", {"username": "root", "password": "x"}).status_code == 302
    assert AccessAttempt.objects.count() == 0


@pytest.mark.parametrize("reader", ["owner", "stranger", "staff"])
def test_nobody_but_a_superuser_gets_in(rows: Team, reader: str) -> None:
    User.objects.create_user("staff", is_staff=True)
    client = signed_in(reader)
    assert client.get("/admin/", follow=True).status_code == 403
    for model in (User, Group, *LOOKED_AT):
        assert client.get(list_of(model), follow=True).status_code == 403


def test_only_a_superuser_sees_the_link(rows: Team, root: Client) -> None:
    link = b'<a href="/admin/">'
    assert link in root.get("/").content
    User.objects.create_user("staff", is_staff=True)
    assert [link in signed_in(name).get("/").content for name in ("owner", "staff")] == [False, False]


# Users


def test_a_user_is_added_and_can_log_in(root: Client, client: Client) -> None:
    given = {"username": "nadia", "usable_password": "true", "password1": PASSWORD, "password2": PASSWORD}
    assert root.post("/admin/governance/user/add/", given).status_code == 302
    response = client.post("/account/login", {"username": "nadia", "password": PASSWORD})
    assert response.headers["Location"] == "/"


def test_a_name_that_could_be_a_runs_is_refused(root: Client) -> None:
    given = {"username": "run:1", "usable_password": "true", "password1": PASSWORD, "password2": PASSWORD}
    response = root.post("/admin/governance/user/add/", given)
    assert b"Enter a valid username" in response.content
    assert not User.objects.filter(username="run:1").exists()


def changed(user: User, **values: Any) -> dict[str, Any]:
    """The form of a user as it stands, with some fields changed."""
    form = {
        "first_name": user.first_name,
        "last_name": user.last_name,
        "email": user.email,
        "is_active": "on",
    }
    return {name: value for name, value in {**form, **values}.items() if value is not None}


def test_a_user_is_shut_out_at_once(team: Team, root: Client) -> None:
    viewer = User.objects.get(username="viewer")
    client = signed_in("viewer")
    issued = issue_personal_token(viewer, now=NOW)
    assert root.post(page_of(viewer), changed(viewer, is_active=None)).status_code == 302
    assert client.get("/projects/lighthouse").status_code == 302
    with pytest.raises(CredentialRefused):
        verify(issued.token, NOW)


def test_a_password_is_set(team: Team, root: Client, client: Client) -> None:
    viewer = User.objects.get(username="viewer")
    given = {"usable_password": "true", "password1": PASSWORD, "password2": PASSWORD}
    address = f"/admin/governance/user/{viewer.pk}/password/"
    assert root.post(address, given).status_code == 302
    assert client.post("/account/login", {"username": "viewer", "password": PASSWORD}).status_code == 302


def test_a_user_keeps_their_name_and_is_never_deleted(team: Team, root: Client) -> None:
    """The ledger names them for ever."""
    viewer = User.objects.get(username="viewer")
    root.post(page_of(viewer), changed(viewer, username="owner2", first_name="Vi"))
    viewer.refresh_from_db()
    assert (viewer.username, viewer.first_name) == ("viewer", "Vi")
    assert root.post(page_of(viewer).replace("/change/", "/delete/"), {"post": "yes"}).status_code == 403
    root.post(list_of(User), {"action": "delete_selected", "_selected_action": [viewer.pk], "post": "yes"})
    assert User.objects.filter(username="viewer").exists()


def test_shutting_out_the_last_owner_says_what_follows(team: Team, root: Client) -> None:
    """A leaked account cannot wait for a second owner, but nobody should be surprised."""
    owner = User.objects.get(username="owner")
    response = root.post(page_of(owner), changed(owner, is_active=None), follow=True)
    assert b"Nobody active can decide any more in: Lighthouse." in response.content
    assert not has_owner(team.project)


def test_no_role_can_be_given_on_a_users_page(team: Team, root: Client) -> None:
    viewer = User.objects.get(username="viewer")
    page = root.get(page_of(viewer)).content.decode()
    assert "user_permissions" not in page
    root.post(page_of(viewer), changed(viewer, user_permissions=[1, 2, 3], is_staff="on"))
    viewer.refresh_from_db()
    assert (list(viewer.user_permissions.all()), viewer.is_staff) == ([], False)


# Groups


def test_a_group_keeps_its_name_and_says_who_and_what(rows: Team, root: Client) -> None:
    group = Group.objects.get(name="board-1")
    page = root.get(page_of(group)).content.decode()
    assert "user-1" in page
    assert "viewer of Lighthouse" in page
    root.post(page_of(group), {"name": "owners"})
    group.refresh_from_db()
    assert group.name == "board-1"


def test_a_group_with_a_role_is_not_deleted(rows: Team, root: Client) -> None:
    """Its grants would go with it, and the ledger would not tell."""
    group = Group.objects.get(name="board-1")
    address = page_of(group).replace("/change/", "/delete/")
    assert b"Cannot delete group" in root.get(address).content
    assert root.post(address, {"post": "yes"}).status_code == 403
    assert ProjectGroupGrant.objects.count() == 1
    idle = Group.objects.create(name="idle")
    assert root.post(page_of(idle).replace("/change/", "/delete/"), {"post": "yes"}).status_code == 302


# Credentials


def test_no_digest_is_ever_shown(rows: Team, root: Client) -> None:
    for row in (PersonalToken.objects.get(), RunCredential.objects.get()):
        pages = [
            root.get(list_of(type(row))),
            root.get(page_of(row)),
            root.get(f"{list_of(type(row))}?q={row.prefix}"),
        ]
        assert [row.digest in page.content.decode() for page in pages] == [False, False, False]


def test_a_token_is_found_by_how_it_begins(rows: Team, root: Client) -> None:
    token = PersonalToken.objects.get()
    response: Any = root.get(f"{list_of(PersonalToken)}?q={token.prefix}")
    assert response.context["cl"].result_count == 1
    response = root.get(f"{list_of(PersonalToken)}?q=awp_nothing")
    assert response.context["cl"].result_count == 0


def test_tokens_are_revoked(rows: Team, root: Client) -> None:
    issued = issue_personal_token(User.objects.get(username="user-1"), now=NOW)
    assert issued.credential.digest == digest_of(issued.token)
    chosen = {"action": "revoke", "_selected_action": [issued.credential.pk]}
    assert b"1 revoked." in root.post(list_of(PersonalToken), chosen, follow=True).content
    assert b"0 revoked." in root.post(list_of(PersonalToken), chosen, follow=True).content
    with pytest.raises(CredentialRefused):
        verify(issued.token, NOW)
    assert PersonalToken.objects.filter(revoked_at=None).count() == 1
    assert (
        "Revoked." in root.get(page_of(issued.credential).replace("/change/", "/history/")).content.decode()
    )


def test_a_runs_credential_is_revoked_and_the_ledger_tells_it(team: Team, root: Client) -> None:
    run = Run.objects.get(pk=start_run(team).run_id)
    issued = issue_run_credential(run, NOW)
    chosen = {"action": "revoke", "_selected_action": [issued.credential.pk]}
    root.post(list_of(RunCredential), chosen)
    root.post(list_of(RunCredential), chosen)
    with pytest.raises(CredentialRefused):
        verify(issued.token, NOW)
    events = LedgerEvent.objects.filter(action="run.revoke_credential")
    assert list(events.values_list("actor", "target")) == [("root", f"run:{run.pk}")]


@pytest.mark.parametrize(
    ("query", "expected"), [("role=owner", 1), ("role=viewer", 1), ("q=contrib", 1), ("q=x-x", 0)]
)
def test_grants_are_found_by_role_and_name(rows: Team, root: Client, query: str, expected: int) -> None:
    response: Any = root.get(f"{list_of(ProjectUserGrant)}?{query}")
    assert response.context["cl"].result_count == expected
    assert b"/projects/lighthouse/members" in root.get(list_of(ProjectUserGrant)).content


# Log-ins


def test_deleting_a_failed_attempt_lets_somebody_in_again(root: Client) -> None:
    attempt = AccessAttempt.objects.create(
        username="viewer",
        ip_address="192.0.2.1",
        failures_since_start=5,
        user_agent="x",
        path_info="/account/login",
    )
    assert root.get(page_of(attempt)).status_code == 200
    assert root.post(page_of(attempt), {"failures_since_start": 0}).status_code == 403
    assert root.post(page_of(attempt).replace("/change/", "/delete/"), {"post": "yes"}).status_code == 302
    assert AccessAttempt.objects.count() == 0


# What the browser is given


def test_pages_hold_nothing_inline(rows: Team, root: Client) -> None:
    """The content security policy forbids it; Chromium is asked in tests/e2e."""
    viewer = User.objects.get(username="viewer")
    for address in (
        "/admin/",
        list_of(User),
        page_of(viewer),
        "/admin/governance/user/add/",
        list_of(PersonalToken),
    ):
        page = root.get(address).content.decode()
        assert re.findall(r"<script(?![^>]*\bsrc=)[^>]*>|<style|\sstyle=|\son\w+=", page) == []
        assert "css/admin.css" in page
