"""Every error is a problem document, and bad input of any kind names its field (SPEC 7 and 10)."""

from __future__ import annotations

import json
import logging
from datetime import UTC, datetime
from typing import Any

import pytest
import time_machine
from django.core.cache import cache
from django.db import OperationalError
from django.test import Client

from agentweaver.api import projects
from governance.models import User
from memory.models import AgentMemory, LedgerEvent
from tests.agentweaver.api.conftest import Caller, errors, problem
from tests.conftest import Team

MEMORY = "agents/Ana/memory"
GOOD = {"type": "learning", "content": "C"}


def raw(caller: Caller, body: bytes | str, content_type: str = "application/json", path: str = MEMORY) -> Any:
    return caller.client.generic(
        "POST",
        f"{caller.base}/{path}",
        body,
        content_type,
        headers={"Authorization": f"Bearer {caller.token}"},
    )


def test_a_problem_says_type_title_status_detail_code_and_request_id(owner: Caller) -> None:
    response = owner.get("decisions/999", **{"X-Request-ID": "from-the-caller-1"})
    assert json.loads(response.content) == {
        "type": "/problems/not-found", "title": "There is no such thing", "status": 404, "detail": "Not found.",
        "code": "not_found", "request_id": "from-the-caller-1",
    }  # fmt: skip
    assert response["X-Request-ID"] == "from-the-caller-1"
    assert response["Cache-Control"] == "no-store"


def test_an_id_that_could_confuse_a_log_is_replaced(owner: Caller) -> None:
    for given in ("short", "x" * 65, "a b c d e f g h", "äöüäöüäöü"):
        response = owner.get(**{"X-Request-ID": given})
        assert response["X-Request-ID"] != given
        assert len(response["X-Request-ID"]) == 32


@pytest.mark.parametrize(
    "path",
    ["/api", "/api/", "/api/nothing", "/api/projects/", "/api/projects/a_b", "/api/projects/%00", "/api/projects/x/y"],
)  # fmt: skip
def test_a_path_that_is_no_route_is_a_problem_for_anyone(anonymous: Caller, path: str) -> None:
    assert problem(anonymous.get(path)) == (404, "not_found")


@pytest.mark.parametrize("row", ["0", "-1", "1.0", "x", "9" * 40, "%00", "1e3", "٣"])
def test_a_malformed_id_reads_like_a_row_that_does_not_exist(owner: Caller, row: str) -> None:
    for path in (f"decisions/{row}", f"decisions/inbox/{row}", f"{MEMORY}/{row}", f"memory/{row}/receipts"):
        assert problem(owner.get(path)) == (404, "not_found")


@pytest.mark.parametrize("run", ["1", "x", "0" * 32, "00000000-0000-0000-0000-00000000000g", "%00"])
def test_a_malformed_run_is_not_found(owner: Caller, run: str) -> None:
    assert problem(owner.get(f"runs/{run}")) == (404, "not_found")


def test_a_row_of_another_project_reads_like_one_that_does_not_exist(
    team: Team, owner: Caller, contributor: Caller
) -> None:
    memory = contributor.post(MEMORY, GOOD).json()
    owner.post("/api/projects", {"name": "Other", "slug": "other"})
    other = Caller("/api/projects/other", owner.token)
    found, missing = other.get(f"{MEMORY}/{memory['id']}"), other.get(f"{MEMORY}/999999")
    ignored = {"request_id"}
    assert problem(found) == (404, "not_found")
    assert {k: v for k, v in found.json().items() if k not in ignored} == {
        k: v for k, v in missing.json().items() if k not in ignored
    }
    for path, body in (("", {"revision": 1}), ("/approve", {"revision": 1}), ("/retire", {"reason": "r"})):
        method = "PATCH" if not path else "POST"
        assert problem(other(method, f"{MEMORY}/{memory['id']}{path}", body)) == (404, "not_found")
    assert problem(other.get(f"{MEMORY}/{memory['id']}/history")) == (404, "not_found")


def test_a_method_nobody_offers_is_405_with_allow_whoever_asks(anonymous: Caller, owner: Caller) -> None:
    for caller in (anonymous, owner):
        for method in ("DELETE", "PUT", "TRACE", "BREW"):
            response = caller(method, "")
            assert problem(response) == (405, "method_not_allowed")
            assert set(response["Allow"].split(", ")) == {"GET", "PATCH", "HEAD", "OPTIONS"}


def test_options_and_head_are_sane(owner: Caller) -> None:
    options = owner("OPTIONS", "decisions")
    assert (options.status_code, options.content) == (204, b"")
    assert set(options["Allow"].split(", ")) == {"GET", "POST", "HEAD", "OPTIONS"}
    head = owner("HEAD", "decisions")
    assert (head.status_code, head.content, head["Content-Type"]) == (200, b"", "application/json")
    assert owner("HEAD", "decisions/99").status_code == 404


def test_another_representation_is_406(owner: Caller) -> None:
    assert problem(owner.get(Accept="text/html")) == (406, "not_acceptable")
    assert owner.get(Accept="text/html, */*;q=0.1").status_code == 200


# Credentials


def test_a_401_says_how_to_prove_oneself(anonymous: Caller) -> None:
    assert anonymous.get()["WWW-Authenticate"] == 'Bearer realm="agentweaver"'
    wrong = anonymous.get(Authorization="Bearer nonsense")
    assert problem(wrong) == (401, "invalid_credential")
    assert wrong["WWW-Authenticate"] == 'Bearer realm="agentweaver", error="invalid_token"'


@pytest.mark.parametrize(
    "header", ["", "Bearer", "Bearer ", "Basic b3duZXI6eA==", "Token x", "awp_x", "Bearer é"]
)
def test_a_header_that_is_no_bearer_token_never_falls_back_to_the_browser(team: Team, header: str) -> None:
    client = Client()
    client.force_login(_user("owner"), backend="django.contrib.auth.backends.ModelBackend")
    address = f"/api/projects/{team.project.slug}"
    assert client.get(address).status_code == 200
    refused = client.get(address, headers={"Authorization": header})
    assert problem(refused) == (401, "invalid_credential")


def test_the_browsers_session_counts_with_its_csrf_token_only(team: Team) -> None:
    client = Client(enforce_csrf_checks=True)
    client.force_login(_user("owner"), backend="django.contrib.auth.backends.ModelBackend")
    address = f"/api/projects/{team.project.slug}/{MEMORY}"
    body: dict[str, Any] = {"data": json.dumps(GOOD), "content_type": "application/json"}
    assert problem(client.post(address, **body)) == (403, "csrf_failed")
    client.get("/account/login")
    client.cookies["csrftoken"] = "a" * 32
    written = client.post(address, **body, headers={"X-CSRFToken": "a" * 32})
    assert written.status_code == 201, written.content
    assert (written.json()["source_kind"], written.json()["source_identity"]) == ("human", "owner")


def _user(name: str) -> Any:
    return User.objects.get(username=name)


# Bodies


@pytest.mark.parametrize(
    "body",
    [
        b"", b"{", b"[]", b"null", b'"text"', b"1", b"true", b'{"a":1,"a":2}', b'{"content": NaN}', b"\xff\xfe",
        b'{"type": Infinity}', b"[" * 100_000, b"{}x", b'{"content": ' + b"9" * 5_000 + b"}",
    ],
    ids=lambda body: repr(body[:20]),
)  # fmt: skip
def test_a_body_that_is_no_json_object_is_400_and_writes_nothing(contributor: Caller, body: bytes) -> None:
    events = LedgerEvent.objects.count()
    assert errors(raw(contributor, body))
    assert LedgerEvent.objects.count() == events


@pytest.mark.parametrize("digits", [b"9" * 101, b"-" + b"9" * 100_000])
def test_a_number_without_end_is_refused_before_it_is_read(contributor: Caller, digits: bytes) -> None:
    assert errors(raw(contributor, b'{"content": ' + digits + b"}")) == {
        "body": ["A number has too many digits."]
    }


def test_a_body_over_the_limit_is_413(contributor: Caller, settings: Any) -> None:
    settings.DATA_UPLOAD_MAX_MEMORY_SIZE = 1_000
    body = json.dumps({**GOOD, "content": "x" * 1_000})
    assert problem(raw(contributor, body)) == (413, "too_large")
    assert AgentMemory.objects.count() == 0


@pytest.mark.parametrize(
    "content_type",
    ["text/plain", "application/xml", "multipart/form-data; boundary=x", "application/x-www-form-urlencoded",
     "application/json; charset=utf-16", "application/json; charset=base64", "application/json; charset=zip"],
)  # fmt: skip
def test_another_kind_of_body_is_415(contributor: Caller, content_type: str) -> None:
    response = raw(contributor, json.dumps(GOOD), content_type)
    assert problem(response) == (415, "unsupported_media_type")


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("content", 1), ("content", None), ("content", ["C"]), ("content", {}), ("content", True), ("content", " \n"),
        ("content", "a\x00b"), ("content", "\ud800"), ("content", "x" * 65_537), ("type", "Learning"), ("type", 1),
        ("type", "learning "), ("type", ["learning"]), ("type", "\ud800"), ("importance", "urgent"),
        ("importance", None), ("tags", 1), ("tags", [1]), ("tags", [None]), ("tags", {"a": 1}), ("tags", None),
        ("tags", ["x" * 65]), ("tags", [f"t{n}" for n in range(21)]), ("tags", "a\x00b"), ("tags", ["a,b"]),
        ("tags", ["\udfff"]), ("session_id", 1), ("session_id", "unknown"), ("session_id", "a\x00"),
    ],
    ids=lambda value: repr(value)[:30],
)  # fmt: skip
def test_a_wrong_field_is_named_and_nothing_is_written(contributor: Caller, field: str, value: Any) -> None:
    events = LedgerEvent.objects.count()
    assert errors(contributor.post(MEMORY, {**GOOD, field: value})).keys() == {field}
    assert LedgerEvent.objects.count() == events


@pytest.mark.parametrize(
    "field",
    [
        "source_kind",
        "source_identity",
        "source_run",
        "source_run_id",
        "trust_state",
        "approved_by",
        "approved_at",
    ],
)
def test_what_the_server_resolves_may_not_be_named(contributor: Caller, owner: Caller, field: str) -> None:
    told = ["The server resolves this; it may not be given."]
    entry = {"agent_name": "Ana", "slug": "s", "type": "scope", "content": "C"}
    decision = {"agent_name": "Ana", "title": "T", "type": "scope", "content": "C"}
    for caller, path, body in (
        (contributor, MEMORY, GOOD),
        (contributor, "decisions/inbox", entry),
        (owner, "decisions", decision),
        (contributor, "sessions", {"session_id": "s"}),
    ):
        assert errors(caller.post(path, {**body, field: "approved"})) == {field: told}


def test_unknown_fields_are_refused_by_name_and_all_errors_come_at_once(contributor: Caller) -> None:
    body = {"type": "x", "content": 1, "nonsense": 1, "status": "merged", "bad\ud800": 1, "": 1}
    assert errors(contributor.post(MEMORY, body)) == {
        "type": ["Must be one of: core_context, learning, pattern, update."],
        "content": ["This must be a string."],
        "nonsense": ["Unknown field."],
        "status": ["The server resolves this; it may not be given."],
        "body": ["A field with an unknown name."],
    }


def test_missing_fields_are_named(contributor: Caller) -> None:
    assert errors(contributor.post(MEMORY, {})) == {
        "type": ["This field is required."], "content": ["This field is required."],
    }  # fmt: skip


def test_text_is_stored_as_it_came(contributor: Caller) -> None:
    text = "  first\r\nsecond\u2028 \u202e\U000e0041 ÅÅ é\n"
    memory = contributor.post(MEMORY, {**GOOD, "content": text}).json()
    assert contributor.get(f"{MEMORY}/{memory['id']}").json()["content"] == text


# Queries

LISTS = [
    "/api/projects", "members", "runs", MEMORY, "memory", "decisions", "decisions/inbox", "sessions", "events",
    "agents/Ana/context/explain",
]  # fmt: skip


@pytest.mark.parametrize("path", LISTS)
@pytest.mark.parametrize(
    ("query", "named"),
    [
        ("page=0", "page"), ("page=-1", "page"), ("page=x", "page"), ("page=%00", "page"), ("page=", "page"),
        ("page=1.5", "page"), (f"page={'9' * 30}", "page"), ("page_size=0", "page_size"), ("page_size=101", "page_size"),
        ("page_size=x", "page_size"), ("page=1&page=2", "page"), ("nonsense=1", "nonsense"), ("%00=1", "query"),
        ("colour%FF=1", "colour\ufffd"),
    ],
)  # fmt: skip
def test_a_wrong_page_or_parameter_is_named(owner: Caller, path: str, query: str, named: str) -> None:
    assert errors(owner.get(f"{path}?{query}")).keys() == {named}


@pytest.mark.parametrize(
    ("path", "filters"),
    [
        ("runs", "status agent"),
        (MEMORY, "type importance trust_state status"),
        ("memory", "q type agent tags importance trust_state status"),
        ("decisions", "status type agent trust_state"),
        ("decisions/inbox", "status type agent"),
        ("events", "action actor target run"),
    ],
)
def test_nul_and_endless_text_in_a_filter_are_400_with_its_name(
    owner: Caller, path: str, filters: str
) -> None:
    for name in filters.split():
        assert errors(owner.get(f"{path}?{name}=%00")).keys() == {name}
        assert errors(owner.get(f"{path}?{name}={'x' * 3_000}")).keys() == {name}


def test_a_huge_page_is_empty_and_costs_no_query_of_rows(owner: Caller) -> None:
    told = owner.get("events?page=2147483647&page_size=100").json()
    assert (told["items"], told["page"], told["page_size"]) == ([], 2147483647, 100)
    assert told["total_count"] > 0
    assert told["total_pages"] == 1


def test_too_many_parameters_are_400(owner: Caller) -> None:
    assert problem(owner.get("events?" + "&".join(f"a{n}=1" for n in range(1_500)))) == (400, "invalid")


# Faults of ours


def test_an_unexpected_error_is_a_problem_that_tells_nothing(
    owner: Caller, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def broken(_: object) -> None:
        raise KeyError("secret")

    monkeypatch.setattr(projects, "_shown", broken)
    response = owner.get()
    assert problem(response) == (500, "internal_error")
    assert b"secret" not in response.content
    assert [r.exc_info is not None for r in caplog.records if r.levelno == logging.ERROR] == [True]


def test_a_database_that_does_not_answer_is_503_with_retry_after(
    owner: Caller, monkeypatch: pytest.MonkeyPatch
) -> None:
    def locked(_: object) -> None:
        raise OperationalError("database is locked")

    monkeypatch.setattr(projects, "_shown", locked)
    response = owner.get()
    assert (problem(response), response["Retry-After"]) == ((503, "unavailable"), "2")


def test_an_expected_conflict_is_a_warning_without_a_trace(
    owner: Caller, caplog: pytest.LogCaptureFixture
) -> None:
    memory = owner.post(MEMORY, GOOD).json()
    with caplog.at_level(logging.INFO):
        stale = owner.patch(f"{MEMORY}/{memory['id']}", {"revision": 7, "content": "D"})
    assert problem(stale) == (409, "stale")
    assert stale.json()["current"] == memory
    warned = [r for r in caplog.records if r.levelno >= logging.WARNING]
    assert [(r.levelname, r.exc_info, "stale" in r.getMessage()) for r in warned] == [("WARNING", None, True)]


def test_a_host_we_do_not_know_is_a_problem_under_api(owner: Caller, settings: Any) -> None:
    settings.ALLOWED_HOSTS = ["memory.example"]
    assert problem(owner.get("", Host="elsewhere.example")) == (400, "invalid")


def test_a_credential_that_asks_too_much_waits_and_the_others_do_not(
    owner: Caller, contributor: Caller, settings: Any
) -> None:
    settings.API_REQUESTS_PER_MINUTE = 2
    cache.clear()
    with time_machine.travel(datetime(2030, 1, 1, 12, 0, 15, tzinfo=UTC), tick=False) as clock:
        assert [owner.get().status_code for _ in range(3)] == [200, 200, 429]
        refused = owner.get()
        assert (problem(refused), refused["Retry-After"]) == ((429, "too_many_requests"), "46")
        assert contributor.get().status_code == 200
        clock.shift(46)
        assert owner.get().status_code == 200
