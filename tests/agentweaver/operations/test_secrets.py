"""SECRET_KEY can be changed while people are logged in (docs/operations.md)."""

from __future__ import annotations

from typing import Any

from django.test import Client

from governance.models import User
from tests.agentweaver.api.conftest import Caller
from tests.conftest import Team


def logged_in(browser: Client) -> bool:
    return browser.get("/").status_code == 200


def test_a_former_key_keeps_people_logged_in_and_is_not_needed_for_long(team: Team, settings: Any) -> None:
    browser, idle = Client(), Client()
    for client in (browser, idle):
        client.force_login(User.objects.get(username="owner"), "django.contrib.auth.backends.ModelBackend")
    settings.SECRET_KEY, settings.SECRET_KEY_FALLBACKS = "k" * 60, [settings.SECRET_KEY]
    assert logged_in(browser)
    settings.SECRET_KEY_FALLBACKS = []
    assert logged_in(browser)
    assert not logged_in(idle)


def test_tokens_do_not_depend_on_the_key(owner: Caller, settings: Any) -> None:
    settings.SECRET_KEY, settings.SECRET_KEY_FALLBACKS = "k" * 60, []
    assert owner.get().status_code == 200
