"""issue_token and grant (SPEC 8.1): what a script needs on standard output alone, exit 0 only when it worked."""

from __future__ import annotations

from datetime import timedelta
from io import StringIO
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.utils import timezone

from governance.models import PersonalToken, User
from governance.people import policies
from governance.people.credentials import verify
from governance.people.policies import Role
from memory.actors import Human, Shell
from memory.ledger.verification import verify as verify_ledger
from memory.management.console import shell_author
from memory.models import LedgerEvent
from tests.conftest import Team

pytestmark = pytest.mark.django_db


def run(*arguments: str, **options: Any) -> tuple[str, str]:
    """What a command writes to standard output and to standard error."""
    out, err = StringIO(), StringIO()
    call_command(*arguments, stdout=out, stderr=err, **options)
    return out.getvalue(), err.getvalue()


def test_issue_token_prints_a_working_token_and_nothing_else() -> None:
    User.objects.create_user("ana")

    out, err = run("issue_token", "ana")

    assert out == out.strip() + "\n"
    assert verify(out.strip(), timezone.now()) == Human("ana")
    assert err == ""


def test_issue_token_without_days_makes_a_token_without_end() -> None:
    User.objects.create_user("ana")
    run("issue_token", "ana")
    assert PersonalToken.objects.get().expires_at is None


def test_issue_token_counts_its_days_from_now() -> None:
    User.objects.create_user("ana")

    run("issue_token", "ana", "--days", "30")

    token = PersonalToken.objects.get()
    assert token.expires_at == token.created_at + timedelta(days=30)


@pytest.mark.parametrize("days", ["0", "-1", "3651", "many"])
def test_issue_token_refuses_days_that_make_no_sense(days: str) -> None:
    User.objects.create_user("ana")
    with pytest.raises(CommandError):
        run("issue_token", "ana", "--days", days)
    assert not PersonalToken.objects.exists()


def test_issue_token_creates_a_user_only_when_told_to() -> None:
    with pytest.raises(CommandError, match="--create"):
        run("issue_token", "dispatch")
    assert not User.objects.exists()

    out, err = run("issue_token", "dispatch", "--create")

    assert verify(out.strip(), timezone.now()) == Human("dispatch")
    assert not User.objects.get(username="dispatch").has_usable_password()
    assert "dispatch" in err


def test_issue_token_leaves_no_user_behind_when_the_token_is_refused() -> None:
    with pytest.raises(CommandError):
        run("issue_token", "dispatch", "--create", "--days", "0")
    assert not User.objects.exists()


@pytest.mark.parametrize("name", ["run:1", "scribe:1", "", "command (root)", "a" * 151, "a\udcff"])
def test_issue_token_creates_no_user_under_a_name_that_belongs_to_the_product(name: str) -> None:
    with pytest.raises(CommandError):
        run("issue_token", name, "--create")
    assert not User.objects.exists()


def test_issue_token_refuses_a_user_who_is_not_active() -> None:
    User.objects.create_user("ana", is_active=False)
    with pytest.raises(CommandError, match="not active"):
        run("issue_token", "ana")


@pytest.mark.parametrize("reference", ["slug", "uuid"])
def test_grant_gives_a_role_by_slug_or_uuid(team: Team, reference: str) -> None:
    project = team.project.slug if reference == "slug" else str(team.project.pk)

    out, err = run("grant", project, "stranger", "viewer")

    assert policies.member(team.project, "stranger").role == Role.VIEWER
    assert out == ""
    assert "stranger is viewer in lighthouse" in err


def test_grant_stands_in_the_ledger_as_a_command_and_as_no_person(team: Team) -> None:
    User.objects.create_user(shell_author().login)

    run("grant", "lighthouse", "stranger", "contributor")

    event = LedgerEvent.objects.filter(project=team.project).latest("number")
    assert (event.actor, event.action, event.target) == (
        f"command ({shell_author().login})",
        "member.grant",
        "member:stranger",
    )
    assert verify_ledger(team.project).valid


def test_no_environment_variable_changes_who_ran_a_command(monkeypatch: pytest.MonkeyPatch) -> None:
    before = shell_author()
    for name in ("USER", "LOGNAME", "USERNAME", "LNAME"):
        monkeypatch.setenv(name, "mallory")
    assert shell_author() == before != Shell("mallory")


def test_granting_the_same_role_again_writes_no_second_event(team: Team) -> None:
    run("grant", "lighthouse", "stranger", "viewer")
    events = LedgerEvent.objects.count()
    run("grant", "lighthouse", "stranger", "viewer")
    assert LedgerEvent.objects.count() == events


@pytest.mark.parametrize(
    ("project", "user", "role", "words"),
    [
        ("nowhere", "stranger", "viewer", "no project"),
        ("lighthouse", "nobody", "viewer", "no such user"),
        ("lighthouse", "stranger", "king", "invalid choice"),
        ("lighthouse", "owner", "viewer", "at least one owner"),
        ("a\udcff", "stranger", "viewer", "not valid text"),
    ],
)
def test_grant_refuses_in_readable_words(team: Team, project: str, user: str, role: str, words: str) -> None:
    before = policies.members(team.project)
    with pytest.raises(CommandError, match=words):
        run("grant", project, user, role)
    assert policies.members(team.project) == before
