"""Logging in and out, changing a password, and the pages of errors (SPEC 9 and 10)."""

from __future__ import annotations

from typing import Any

import pytest
from django.conf import settings
from django.test import Client

from governance.models import User
from tests.conftest import Team
from tests.governance.pages.conftest import HTMX, Browsers

pytestmark = pytest.mark.django_db

PASSWORD = "a lamp, a lens and a clock"


@pytest.fixture
def keeper(team: Team) -> User:
    owner = User.objects.get(username="owner")
    owner.set_password(PASSWORD)
    owner.save()
    return owner


def log_in(client: Client, password: str, **more: str) -> Any:
    return client.post("/account/login", {"username": "owner", "password": password, **more})


def test_logging_in_leads_where_one_wanted_to_go(keeper: User) -> None:
    client = Client()
    asked = client.get("/projects/lighthouse/inbox?type=scope")
    assert asked["Location"] == "/account/login?next=%2Fprojects%2Flighthouse%2Finbox%3Ftype%3Dscope"
    response = log_in(client, PASSWORD, next="/projects/lighthouse/inbox?type=scope")
    assert (response.status_code, response["Location"]) == (302, "/projects/lighthouse/inbox?type=scope")


@pytest.mark.parametrize("place", ["https://evil.example/", "//evil.example", "javascript:alert(1)"])
def test_logging_in_leads_to_no_other_site(keeper: User, place: str) -> None:
    assert log_in(Client(), PASSWORD, next=place)["Location"] == "/"


def test_a_wrong_password_says_only_that_the_two_do_not_fit(keeper: User) -> None:
    wrong = log_in(Client(), "wrong").content
    unknown = Client().post("/account/login", {"username": "nobody", "password": "wrong"}).content
    assert b"do not fit together" in wrong
    assert b"do not fit together" in unknown


def test_who_tries_too_often_has_to_wait(keeper: User) -> None:
    client = Client()
    statuses = [log_in(client, "wrong").status_code for _ in range(settings.AXES_FAILURE_LIMIT)]
    response = log_in(client, PASSWORD)
    assert statuses[-1] == response.status_code == 429
    assert b"Too many attempts" in response.content


def test_logging_out_is_a_post_and_ends_the_session(browsers: Browsers) -> None:
    assert browsers.owner.get("/account/logout").status_code == 405
    assert browsers.owner.post("/account/logout").status_code == 302
    assert browsers.owner.get("/").status_code == 302


def test_a_new_password_logs_other_browsers_out(keeper: User, browsers: Browsers) -> None:
    mine, other = Client(), Client()
    for client in (mine, other):
        log_in(client, PASSWORD)
    new = "another lamp, another lens"
    response = mine.post(
        "/account/password",
        {"old_password": PASSWORD, "new_password1": new, "new_password2": new},
        follow=True,
    )
    assert b"Your password was changed." in response.content
    assert (mine.get("/").status_code, other.get("/").status_code) == (200, 302)


@pytest.mark.parametrize("new", ["short", "12345678901", "password123"])
def test_a_password_that_is_easily_guessed_is_refused(keeper: User, new: str) -> None:
    client = Client()
    log_in(client, PASSWORD)
    response = client.post(
        "/account/password", {"old_password": PASSWORD, "new_password1": new, "new_password2": new}
    )
    assert b'id="id_new_password2_error"' in response.content
    keeper.refresh_from_db()
    assert keeper.check_password(PASSWORD)


def test_htmx_is_told_to_take_the_whole_browser_to_the_log_in(team: Team) -> None:
    current = {"HX-Current-URL": "http://testserver/projects/lighthouse/memory?view=requests"}
    response = Client().get("/projects/lighthouse/memory", headers={**HTMX, **current})
    assert (
        response["HX-Redirect"] == "/account/login?next=%2Fprojects%2Flighthouse%2Fmemory%3Fview%3Drequests"
    )


def test_the_way_back_is_a_page_of_ours(team: Team) -> None:
    foreign = {"HX-Current-URL": "https://evil.example/projects"}
    response = Client().get("/projects/lighthouse/memory", headers={**HTMX, **foreign})
    assert response["HX-Redirect"] == "/account/login?next=%2F"


def test_pages_are_kept_by_no_cache_and_run_nothing_of_others(browsers: Browsers) -> None:
    response = browsers.owner.get("/projects/lighthouse/inbox")
    assert response["Cache-Control"] == "private, no-store"
    assert "HX-Request" in response["Vary"]
    policy = dict(
        part.strip().split(" ", 1) for part in response["Content-Security-Policy"].split(";") if part.strip()
    )
    assert (policy["default-src"], policy["script-src"], policy["style-src"]) == (
        "'none'",
        "'self'",
        "'self'",
    )


@pytest.mark.parametrize(
    ("address", "status", "says"),
    [
        ("/nothing/here", 404, b"There is nothing here"),
        ("/projects/nowhere", 404, b"There is nothing here"),
        ("/projects/lighthouse/decisions/new", 403, b"Your role does not allow this"),
    ],
)
def test_an_error_page_helps(browsers: Browsers, address: str, status: int, says: bytes) -> None:
    response = browsers.viewer.get(address)
    assert response.status_code == status
    assert says in response.content
    assert b"To my projects" in response.content


def test_a_fault_of_ours_is_a_page_too(browsers: Browsers, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*args: object) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr("governance.pages.views.home.counters_of", broken)
    browsers.owner.raise_request_exception = False
    response = browsers.owner.get("/projects/lighthouse")
    assert response.status_code == 500
    assert b"Something broke on our side" in response.content
    assert b"ZeroDivisionError" not in response.content
