"""Making the demo: where it may, under a password of the installation's own, and all or nothing."""

from __future__ import annotations

from collections import Counter
from datetime import UTC, datetime
from io import StringIO

import pytest
from django.contrib.auth.models import Group
from django.core.management import CommandError, call_command
from django.test import override_settings

from governance.deciding.projects import create_project
from governance.demo.making import STORIES, make_demo
from governance.demo.people import printable_password
from governance.demo.stage import Step
from governance.models import PersonalToken, User
from memory.actors import Human
from memory.models import LedgerEvent, Project

pytestmark = pytest.mark.django_db

NOW = datetime(2026, 12, 1, 9, 0, tzinfo=UTC)
SECRET = "a-key-of-this-test-that-is-long-enough-to-be-called-a-secret-0123456789"


def _counts() -> Counter:
    return Counter(
        {model.__name__: model.objects.count() for model in (User, Project, LedgerEvent, PersonalToken)}
    )


def test_the_superuser_is_made_only_where_debug_is_on() -> None:
    with override_settings(DEBUG=False, SECRET_KEY=SECRET):
        assert not make_demo(NOW).has_superuser
    assert not User.objects.filter(is_superuser=True).exists()


def test_the_password_differs_between_installations() -> None:
    passwords = set()
    for key in (SECRET, SECRET[::-1]):
        with override_settings(SECRET_KEY=key):
            passwords.add(printable_password())
    assert len(passwords) == 2


def test_a_key_that_everybody_knows_makes_no_password() -> None:
    """The stand-in key for debugging stands in the code: a password made from it would be known to everybody."""
    with override_settings(SECRET_KEY="only-for-debugging-never-in-production"):
        assert printable_password() is None


@pytest.mark.parametrize("taken", ["user", "group", "project"])
def test_it_takes_nothing_over_that_was_there_before(taken: str) -> None:
    owner = User.objects.create_user("tobias" if taken == "user" else "somebody")
    if taken == "group":
        Group.objects.create(name="harbour-board")
    if taken == "project":
        create_project(actor=Human(owner.username), name="Ours", slug="kaimauer", now=NOW)
    before = _counts()
    with pytest.raises(CommandError, match="taken"):
        call_command("demo", stdout=StringIO(), stderr=StringIO())
    assert _counts() == before


def test_a_demo_that_fails_half_way_leaves_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    def stumble(self: Step, *_: object) -> None:
        raise RuntimeError("stumbled")

    monkeypatch.setattr(type(STORIES[1].steps[-1]), "play", stumble)
    before = _counts()
    with pytest.raises(RuntimeError, match="stumbled"):
        make_demo(NOW)
    assert _counts() == before
