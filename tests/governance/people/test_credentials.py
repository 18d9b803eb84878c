"""Credentials: 256 bits, shown once, dead when they should be (SPEC 5 and 7)."""

from __future__ import annotations

import base64
import hashlib
import logging
from datetime import timedelta

import pytest
from django.db import OperationalError, connection
from django.test.utils import CaptureQueriesContext, override_settings

from governance.deciding.scribe import complete_run
from governance.models import PersonalToken, RunCredential, User
from governance.people import credentials
from governance.people.credentials import (
    issue_personal_token,
    issue_run_credential,
    revoke_personal_token,
    revoke_run_credential,
    verify,
)
from memory.actors import Human, VerifiedRun
from memory.errors import CredentialRefused, Invalid, NotFound
from memory.ledger.changes import change
from memory.models import LedgerEvent, Run
from memory.recording import record_memory
from memory.runs import register_run
from tests.conftest import NOW, Team, start_run

pytestmark = pytest.mark.django_db


def at(**distance: float):
    return NOW + timedelta(**distance)


def refused(token: str, now=NOW) -> str:
    with pytest.raises(CredentialRefused) as raised:
        verify(token, now)
    return raised.value.code


def user(name: str = "owner") -> User:
    return User.objects.get(username=name)


def run_of(team: Team, **more) -> Run:
    return Run.objects.get(pk=start_run(team, **more).run_id)


# What is stored


def test_a_token_is_256_random_bits_behind_a_prefix_and_only_its_digest_is_kept(team: Team) -> None:
    personal = issue_personal_token(user(), name="laptop", now=NOW)
    ofrun = issue_run_credential(run_of(team), NOW)
    for issued, prefix in ((personal, "awp_"), (ofrun, "awr_")):
        secret = issued.token.removeprefix(prefix)
        assert len(base64.urlsafe_b64decode(secret + "=")) == 32
        stored = type(issued.credential).objects.values().get(pk=issued.credential.pk)
        assert stored["digest"] == hashlib.sha256(issued.token.encode()).hexdigest()
        assert stored["prefix"] == issued.token[:10]
        assert secret not in str(stored)
    assert len({issue_personal_token(user(), now=NOW).token for _ in range(50)}) == 50


def test_no_token_and_no_digest_reaches_the_ledger(team: Team) -> None:
    issued = issue_run_credential(run_of(team), NOW)
    issue_personal_token(user(), now=NOW)
    told = " ".join(LedgerEvent.objects.values_list("after", flat=True))
    assert issued.token not in told
    assert issued.credential.digest not in told


def test_the_comparison_is_in_constant_time(team: Team, monkeypatch) -> None:
    seen = []

    def compare(one: str, other: str) -> bool:
        seen.append((one, other))
        return False

    issued = issue_personal_token(user(), now=NOW)
    monkeypatch.setattr(credentials, "constant_time_compare", compare)
    assert refused(issued.token) == "invalid_credential"
    assert seen == [(issued.credential.digest, issued.credential.digest)]


# Personal tokens


def test_a_personal_token_is_its_user(team: Team) -> None:
    assert verify(issue_personal_token(user(), now=NOW).token, NOW) == Human("owner")


@pytest.mark.parametrize("token", [
    "", "awp_", "awr_", "awp_" + "A" * 43, "awr_" + "A" * 43, "Bearer x", "ünïcode", "awp_\x00", "awp_" + "x" * 100_000,
])  # fmt: skip
def test_an_unknown_token_proves_nothing(team: Team, token: str) -> None:
    assert refused(token) == "invalid_credential"


def test_a_token_that_is_no_text_proves_nothing(team: Team) -> None:
    assert refused("awp_\ud800") == "invalid_credential"


def test_a_token_with_another_prefix_or_one_character_changed_proves_nothing(team: Team) -> None:
    token = issue_personal_token(user(), now=NOW).token
    other = "A" if token[-1] != "A" else "B"
    for forged in (
        token.replace("awp_", "awr_"),
        token[:-1] + other,
        token + " ",
        token.upper(),
        token.removeprefix("awp_"),
    ):
        assert refused(forged) == "invalid_credential"


def test_a_personal_token_lives_until_its_day_and_not_a_moment_longer(team: Team) -> None:
    token = issue_personal_token(user(), days=2, now=NOW).token
    assert verify(token, at(days=2, microseconds=-1)) == Human("owner")
    assert refused(token, at(days=2)) == "invalid_credential"
    assert verify(issue_personal_token(user(), now=NOW).token, at(days=9999)) == Human("owner")


@pytest.mark.parametrize("days", [0, -1, 3651])
def test_a_lifetime_out_of_range_is_refused(team: Team, days: int) -> None:
    with pytest.raises(Invalid) as raised:
        issue_personal_token(user(), days=days, now=NOW)
    assert list(raised.value.errors) == ["days"]


def test_a_name_for_a_token_is_one_line(team: Team) -> None:
    with pytest.raises(Invalid) as raised:
        issue_personal_token(user(), name="a\nb", now=NOW)
    assert list(raised.value.errors) == ["name"]


def test_a_revoked_token_is_dead_at_once_and_revoking_again_changes_nothing(team: Team) -> None:
    issued = issue_personal_token(user(), now=NOW)
    revoke_personal_token(user(), issued.credential.pk, at(minutes=1))
    assert refused(issued.token, at(minutes=1)) == "invalid_credential"
    again = revoke_personal_token(user(), issued.credential.pk, at(minutes=2))
    assert again.revoked_at == at(minutes=1)


def test_nobody_revokes_another_users_token(team: Team) -> None:
    issued = issue_personal_token(user(), now=NOW)
    with pytest.raises(NotFound):
        revoke_personal_token(user("viewer"), issued.credential.pk, NOW)
    assert verify(issued.token, NOW) == Human("owner")


def test_a_user_who_is_switched_off_has_no_working_token(team: Team) -> None:
    token = issue_personal_token(user(), now=NOW).token
    User.objects.filter(username="owner").update(is_active=False)
    assert refused(token) == "invalid_credential"


def test_tokens_are_listed_newest_first_with_what_tells_them_apart(team: Team) -> None:
    first = issue_personal_token(user(), name="laptop", now=NOW)
    second = issue_personal_token(user(), name="server", days=1, now=at(hours=1))
    revoke_personal_token(user(), first.credential.pk, at(hours=2))
    verify(second.token, at(hours=3))
    listed = PersonalToken.objects.filter(user=user()).order_by("-created_at", "-pk")
    assert [(t.name, t.prefix, t.expires_at, t.revoked_at, t.last_used_at) for t in listed] == [
        ("server", second.token[:10], at(days=1, hours=1), None, at(hours=3)),
        ("laptop", first.token[:10], None, at(hours=2), None),
    ]


# Last use


def test_the_last_use_is_kept_once_a_minute_and_costs_one_query_in_between(team: Team) -> None:
    issued = issue_personal_token(user(), now=NOW)
    for seconds, noted in ((0, 0), (59, 0), (60, 60), (61, 60), (3600, 3600)):
        verify(issued.token, at(seconds=seconds))
        issued.credential.refresh_from_db()
        assert issued.credential.last_used_at == at(seconds=noted)
    with CaptureQueriesContext(connection) as queries:
        verify(issued.token, at(seconds=3601))
    assert len(queries) == 1


def test_a_refused_token_was_not_used(team: Team) -> None:
    issued = issue_personal_token(user(), days=1, now=NOW)
    refused(issued.token, at(days=1))
    issued.credential.refresh_from_db()
    assert issued.credential.last_used_at is None


def test_a_busy_database_does_not_refuse_a_good_token(team: Team, monkeypatch, caplog) -> None:
    """Noting the last use is the one write of a reading request: it may be missed."""
    issued = issue_personal_token(user(), now=NOW)

    def locked(*_: object, **__: object) -> int:
        raise OperationalError("database is locked")

    monkeypatch.setattr("django.db.models.query.QuerySet.update", locked)
    with caplog.at_level(logging.WARNING):
        assert verify(issued.token, NOW) == Human("owner")
    assert "last use" in caplog.text
    assert issued.token not in caplog.text


# Credentials of runs


def test_a_runs_credential_is_that_run_with_its_role(team: Team) -> None:
    actor = start_run(team, "Cora", role="coordinator")
    token = issue_run_credential(Run.objects.get(pk=actor.run_id), NOW).token
    assert verify(token, NOW) == actor
    assert actor.is_coordinator


def test_a_runs_credential_dies_after_its_hours(team: Team) -> None:
    token = issue_run_credential(run_of(team), NOW).token
    assert isinstance(verify(token, at(hours=24, microseconds=-1)), VerifiedRun)
    assert refused(token, at(hours=24)) == "invalid_credential"
    with override_settings(RUN_CREDENTIAL_HOURS=1):
        token = issue_run_credential(run_of(team), NOW).token
        assert refused(token, at(hours=1)) == "invalid_credential"


@pytest.mark.parametrize("status", ["completed", "failed", "cancelled"])
def test_a_runs_credential_dies_with_the_run(team: Team, status: str) -> None:
    run = run_of(team, role="coordinator")
    token = issue_run_credential(run, NOW).token
    complete_run(project_id=team.project.pk, actor=team.orchestrator, run_id=run.pk, status=status, now=NOW)
    assert refused(token) == "run_ended"
    assert refused(token, at(days=2)) == "run_ended"


def test_registering_a_run_again_kills_its_older_credential(team: Team) -> None:
    tokens = []
    for _ in range(2):
        with change(team.project.pk, team.orchestrator, NOW) as opened:
            run, _ = register_run(opened, agent_name="Ana", external_id="turn-1")
            tokens.append(issue_run_credential(run, NOW).token)
    assert refused(tokens[0]) == "invalid_credential"
    assert isinstance(verify(tokens[1], NOW), VerifiedRun)
    assert (Run.objects.count(), RunCredential.objects.count()) == (1, 1)


def test_a_new_credential_of_a_run_starts_afresh(team: Team) -> None:
    run = run_of(team)
    old = issue_run_credential(run, NOW)
    verify(old.token, NOW)
    revoke_run_credential(run, NOW)
    assert refused(old.token) == "invalid_credential"
    fresh = issue_run_credential(run, at(hours=1)).credential
    fresh.refresh_from_db()
    assert (fresh.revoked_at, fresh.last_used_at, fresh.expires_at) == (None, None, at(hours=25))


def test_a_run_without_a_credential_has_none_to_revoke(team: Team) -> None:
    with pytest.raises(NotFound):
        revoke_run_credential(run_of(team), NOW)


def test_a_run_that_ends_while_its_request_waits_writes_nothing(team: Team) -> None:
    """Its credential was good when it was looked at; the lock came after the end."""
    actor = start_run(team)
    complete_run(
        project_id=team.project.pk, actor=team.orchestrator, run_id=actor.run_id, status="failed", now=NOW
    )
    with pytest.raises(CredentialRefused) as raised:
        record_memory(
            project_id=team.project.pk, actor=actor, agent_name="Ana", type="update", content="x", now=NOW
        )
    assert raised.value.code == "run_ended"
