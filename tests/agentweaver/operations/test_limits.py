"""How much a caller may ask and how often one may try to log in: bounded, told how long to wait, never shut out by others (SPEC 10)."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import pytest
import time_machine
from django.core.cache import cache
from django.test import Client

from agentweaver.operations import limits
from governance.models import User
from tests.agentweaver.api.conftest import Caller, problem
from tests.agentweaver.operations.test_probes import TOKEN, counted, scraped
from tests.conftest import Team

PASSWORD = "correct-horse-battery"
HERE, ELSEWHERE = "198.51.100.7", "203.0.113.9"


@pytest.fixture(autouse=True)
def clock() -> Iterator[Any]:
    """A quarter past, and standing still."""
    with time_machine.travel(datetime(2030, 1, 1, 12, 0, 15, tzinfo=UTC), tick=False) as clock:
        yield clock


def statuses(caller: Caller, times: int, path: str = "") -> list[int]:
    return [caller.get(path).status_code for _ in range(times)]


def from_(address: str, base: str, token: str | None = None) -> Caller:
    return Caller(base, token, Client(REMOTE_ADDR=address))


# Without proof


def test_an_address_without_a_credential_waits_and_other_addresses_do_not(
    owner: Caller, settings: Any, clock: Any
) -> None:
    settings.UNPROVEN_REQUESTS_PER_MINUTE = 3
    here = from_(HERE, owner.base)
    assert statuses(here, 4) == [401, 401, 401, 429]
    refused = here.get("/api/schema")
    assert (problem(refused), refused["Retry-After"]) == ((429, "too_many_requests"), "46")
    assert statuses(from_(ELSEWHERE, owner.base), 1) == [401]
    clock.shift(46)
    assert statuses(here, 1) == [401]


def test_guessing_tokens_is_answered_with_waiting_whatever_is_guessed(owner: Caller, settings: Any) -> None:
    settings.UNPROVEN_REQUESTS_PER_MINUTE = 3
    guesses = ["awp_" + "x" * 43, "awr_" + "y" * 43, "nonsense", "awp_" + "z" * 43, "awr_" + "z" * 43]
    answers = [from_(HERE, owner.base, guess).get() for guess in guesses]
    assert [answer.status_code for answer in answers] == [401, 401, 401, 429, 429]
    assert answers[-1]["Retry-After"] == "46"


def test_a_good_credential_is_served_from_an_address_that_guesses(owner: Caller, settings: Any) -> None:
    """One broken agent must not silence its neighbours behind the same address."""
    settings.UNPROVEN_REQUESTS_PER_MINUTE = 1
    assert statuses(from_(HERE, owner.base, "awr_wrong"), 3) == [401, 429, 429]
    assert statuses(from_(HERE, owner.base, owner.token), 3) == [200, 200, 200]


def test_addresses_of_one_ipv6_subscriber_count_together(owner: Caller, settings: Any) -> None:
    settings.UNPROVEN_REQUESTS_PER_MINUTE = 2
    answers = [from_(f"2001:db8:1:2::{host}", owner.base).get().status_code for host in range(1, 5)]
    assert answers == [401, 401, 429, 429]


def test_an_address_somebody_made_up_changes_nothing(owner: Caller, settings: Any) -> None:
    settings.UNPROVEN_REQUESTS_PER_MINUTE = 2
    here = from_(HERE, owner.base)
    answers = [here.get("", **{"X-Forwarded-For": f"203.0.113.{n}"}).status_code for n in range(4)]
    assert answers == [401, 401, 429, 429]


def test_nought_means_no_limit(owner: Caller, settings: Any) -> None:
    settings.UNPROVEN_REQUESTS_PER_MINUTE = settings.API_REQUESTS_PER_MINUTE = (
        settings.LOGIN_ATTEMPTS_PER_MINUTE
    ) = 0
    assert statuses(Caller(owner.base), 400) == [401] * 400


def test_a_counter_that_was_dropped_lets_through(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cache, "add", lambda *_, **__: False)
    assert not limits.is_over("anyone", 1)


# Logging in


@pytest.fixture
def person(team: Team) -> str:
    person = User.objects.get(username="owner")
    person.set_password(PASSWORD)
    person.save()
    return "owner"


def log_in(address: str, name: str, password: str, **headers: str) -> Any:
    form = {"username": name, "password": password}
    return Client(REMOTE_ADDR=address).post("/account/login", form, headers=headers)


def test_a_name_is_paused_from_the_address_that_failed_and_from_no_other(person: str, settings: Any) -> None:
    answers = [log_in(HERE, person, "wrong") for _ in range(settings.AXES_FAILURE_LIMIT)]
    assert [answer.status_code for answer in answers] == [200, 200, 200, 200, 429]
    paused = log_in(HERE, person, PASSWORD)
    assert (paused.status_code, paused["Retry-After"]) == (429, "901")
    assert "opens again by itself after 15 minutes" in paused.content.decode()
    assert log_in(ELSEWHERE, person, PASSWORD).status_code == 302
    assert log_in(HERE, "viewer", "wrong").status_code == 200


def test_a_name_opens_again_by_itself(person: str, clock: Any) -> None:
    for _ in range(6):
        log_in(HERE, person, "wrong")
    clock.shift(901)
    assert log_in(HERE, person, PASSWORD).status_code == 302


def test_a_made_up_address_neither_opens_nor_shuts_a_name(person: str) -> None:
    for number in range(6):
        log_in(HERE, person, "wrong", **{"X-Forwarded-For": ELSEWHERE if number % 2 else f"192.0.2.{number}"})
    assert log_in(HERE, person, PASSWORD, **{"X-Forwarded-For": "192.0.2.77"}).status_code == 429
    assert log_in(ELSEWHERE, person, PASSWORD).status_code == 302


def test_behind_a_proxy_of_ours_the_forwarded_address_is_the_one_that_is_paused(
    person: str, settings: Any
) -> None:
    settings.TRUSTED_PROXIES = ["192.0.2.1"]
    for _ in range(5):
        log_in("192.0.2.1", person, "wrong", **{"X-Forwarded-For": HERE})
    assert log_in("192.0.2.1", person, PASSWORD, **{"X-Forwarded-For": HERE}).status_code == 429
    assert log_in("192.0.2.1", person, PASSWORD, **{"X-Forwarded-For": ELSEWHERE}).status_code == 302


def test_an_address_may_not_try_one_name_after_another(person: str, settings: Any, clock: Any) -> None:
    settings.LOGIN_ATTEMPTS_PER_MINUTE = 4
    answers = [log_in(HERE, f"name-{number}", "wrong") for number in range(6)]
    assert [answer.status_code for answer in answers] == [200, 200, 200, 200, 429, 429]
    assert answers[-1]["Retry-After"] == "46"
    assert "opens again by itself after 1 minute " in answers[-1].content.decode()
    assert Client(REMOTE_ADDR=HERE).get("/account/login").status_code == 200
    assert log_in(ELSEWHERE, person, PASSWORD).status_code == 302
    clock.shift(46)
    assert log_in(HERE, person, PASSWORD).status_code == 302


@pytest.mark.parametrize(
    "name",
    [
        "",
        "a\x00b",
        "x" * 151,
        "x" * 100_000,
        "\ud83d\ude00 ".encode("utf-16", "surrogatepass").decode("utf-16"),
        "o\u200bwner",
    ],
)
def test_no_name_is_an_error_of_ours(person: str, name: str) -> None:
    assert log_in(HERE, name, "wrong").status_code == 200


def test_attempts_are_counted_by_how_they_ended(person: str, settings: Any) -> None:
    settings.METRICS_TOKEN = TOKEN
    settings.LOGIN_ATTEMPTS_PER_MINUTE = 8
    before = scraped()
    for password in (PASSWORD, *["wrong"] * 8):
        log_in(HERE, person, password)
    rose = {name: value for name, value in counted(before, scraped()).items() if "log_ins" in name}
    assert rose == {
        'agentweaver_log_ins_total{result="ok"}': 1, 'agentweaver_log_ins_total{result="failed"}': 4,
        'agentweaver_log_ins_total{result="locked_out"}': 3, 'agentweaver_log_ins_total{result="too_many"}': 1,
    }  # fmt: skip
