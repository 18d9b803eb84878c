"""Tokens: made in the browser, shown once, revoked at once; for owners the credentials of runs that are alive (SPEC 5; SPEC 9, Tokens)."""

from __future__ import annotations

import re
from datetime import timedelta
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone

from governance.models import PersonalToken, User
from governance.people.credentials import issue_personal_token, issue_run_credential, verify
from memory.actors import Human
from memory.errors import CredentialRefused
from memory.ledger.changes import change
from memory.models import Run
from memory.runs import finish_run
from tests.conftest import Team, start_run
from tests.governance.pages.asking import MEMBERS, READERS, answers, statements
from tests.governance.pages.conftest import HTMX, Browsers

pytestmark = pytest.mark.django_db

MINE = "/account/tokens"
PAGE = "/projects/lighthouse/tokens"
TOKEN = re.compile(r'<code class="secret" id="token">(awp_[\w-]+)</code>')


def make(client: Client, name: str = "laptop", days: str = "30") -> Any:
    return client.post(MINE, {"name": name, "days": days})


def made(response: Any) -> str:
    found = TOKEN.search(response.content.decode())
    assert found is not None
    return found[1]


def test_a_token_is_shown_once_and_never_again(team: Team, owner: Client) -> None:
    response = make(owner)
    token = made(response)
    assert response.status_code == 201
    assert response.headers["Cache-Control"] == "private, no-store"
    assert verify(token, timezone.now()) == Human("owner")
    for address in (MINE, PAGE):
        page = owner.get(address).content.decode()
        assert token[:10] in page
        assert token not in page
        assert PersonalToken.objects.get().digest not in page


def test_a_token_says_what_it_is_for_and_when_it_ends(team: Team, owner: Client) -> None:
    make(owner, "laptop", "30")
    make(owner, "for ever", "")
    lives = dict(PersonalToken.objects.values_list("name", "expires_at"))
    assert lives["laptop"] is not None
    left = lives["laptop"] - timezone.now()
    assert timedelta(days=29) < left <= timedelta(days=30)
    assert lives["for ever"] is None
    page = owner.get(MINE).content.decode()
    assert re.search(r'"For"><span>for ever<.*?"Expires"><span>never', page, re.DOTALL)


def test_the_last_use_is_shown(team: Team, owner: Client) -> None:
    token = made(make(owner))
    assert 'data-label="Last used"><span>never' in owner.get(MINE).content.decode()
    verify(token, timezone.now() - timedelta(hours=2))
    assert re.search(r'"Last used"><span><time[^>]*>2\xa0hours ago', owner.get(MINE).content.decode())


@pytest.mark.parametrize(
    ("form", "says"),
    [
        ({"name": "", "days": "30"}, "This field is required."),
        ({"name": "x" * 101, "days": "30"}, "at most 100 characters"),
        ({"name": "x", "days": "4000"}, "Select a valid choice"),
    ],
)
def test_what_is_wrong_stands_beside_its_field(
    team: Team, owner: Client, form: dict[str, str], says: str
) -> None:
    response = owner.post(MINE, form)
    assert (response.status_code, says in response.content.decode()) == (422, True)
    assert PersonalToken.objects.count() == 0


def test_a_token_is_revoked_at_once(team: Team, owner: Client) -> None:
    token = made(make(owner))
    stored = PersonalToken.objects.get()
    response = owner.post(f"{MINE}/{stored.pk}/revoke", {"back": PAGE}, follow=True)
    assert response.redirect_chain == [(PAGE, 302)]
    assert f"The token {stored.prefix}… is revoked." in response.content.decode()
    with pytest.raises(CredentialRefused):
        verify(token, timezone.now())
    assert owner.post(f"{MINE}/{stored.pk}/revoke").status_code == 302


@pytest.mark.parametrize("back", ["https://example.com/", "//example.com", "/\\example.com", "javascript:x"])
def test_nobody_is_sent_elsewhere(team: Team, owner: Client, back: str) -> None:
    make(owner)
    there = owner.post(f"{MINE}/{PersonalToken.objects.get().pk}/revoke", {"back": back}).headers["Location"]
    assert there == MINE


def test_a_token_of_somebody_else_is_not_found(team: Team, browsers: Browsers) -> None:
    make(browsers.owner)
    stored = PersonalToken.objects.get()
    assert browsers.viewer.post(f"{MINE}/{stored.pk}/revoke").status_code == 404
    assert stored.prefix not in browsers.viewer.get(MINE).content.decode()
    stored.refresh_from_db()
    assert stored.revoked_at is None


def test_everybody_signed_in_has_their_own(team: Team, browsers: Browsers) -> None:
    assert answers(browsers, MINE) == [200] * 6 + [302]
    assert answers(browsers, MINE, {"name": "x", "days": "30"}) == [201] * 6 + [302]
    assert answers(browsers, PAGE) == MEMBERS
    assert answers(browsers, PAGE, {}) == [405] * 6 + [302]


def test_an_expired_and_a_revoked_token_say_so(team: Team, owner: Client) -> None:
    user = User.objects.get(username="owner")
    issue_personal_token(user, days=1, now=timezone.now() - timedelta(days=2))
    revoked = issue_personal_token(user, now=timezone.now())
    PersonalToken.objects.filter(pk=revoked.credential.pk).update(revoked_at=timezone.now())
    page = owner.get(MINE).content.decode()
    assert [word in page for word in (">expired<", ">revoked<", "/revoke")] == [True, True, False]


# Credentials of runs


def test_owners_see_the_credentials_that_are_alive(team: Team, browsers: Browsers) -> None:
    now = timezone.now()
    runs = [start_run(team, name) for name in ("Ana", "Ben", "Cleo")]
    issued = [issue_run_credential(Run.objects.get(pk=run.run_id), now) for run in runs]
    with change(team.project.pk, team.orchestrator, now) as opened:
        finish_run(opened, runs[2].run_id, "completed", "")
    page = browsers.owner.get(PAGE).content.decode()
    assert [one.credential.prefix in page for one in issued] == [True, True, False]
    assert [one.token in page for one in issued] == [False, False, False]
    for name in READERS[1:4]:
        assert issued[0].credential.prefix not in getattr(browsers, name).get(PAGE).content.decode()


def test_a_credential_is_revoked_from_the_list(team: Team, owner: Client) -> None:
    run = start_run(team)
    issued = issue_run_credential(Run.objects.get(), timezone.now())
    response = owner.post(f"/projects/lighthouse/runs/{run.run_id}/revoke", {"back": PAGE}, follow=True)
    assert response.redirect_chain == [(PAGE, 302)]
    assert issued.credential.prefix not in response.content.decode()


def test_one_credential_or_three_make_the_same_statements(team: Team, owner: Client) -> None:
    counts = []
    for names in (("Ana",), ("Ben", "Cleo")):
        for name in names:
            issue_run_credential(Run.objects.get(pk=start_run(team, name).run_id), timezone.now())
            make(owner, name)
        counts.append((statements(owner, PAGE), statements(owner, MINE)))
    assert counts[0] == counts[1]


def test_htmx_gets_a_part_alone(team: Team, owner: Client) -> None:
    assert owner.get(MINE, headers=HTMX).content.strip().startswith(b'<div class="stack" id="results">')
    assert (
        owner.get(PAGE, headers=HTMX).content.strip().startswith(b'<section class="panel" id="credentials"')
    )
